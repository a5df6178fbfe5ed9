"""tf.saved_model: what was saved comes back, with gradients, state and signatures."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tandem as tf


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.v = tf.Variable(3.0, name="v")
        self.table = [tf.Variable([1.0, 2.0], trainable=False)]

    @tf.function
    def __call__(self, x, twice=False):
        y = x * self.v + tf.constant(0.5)
        return y * 2.0 if twice else y

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def mutate(self, new):
        self.v.assign(new)

    @tf.function
    def branch(self, x):
        if tf.reduce_sum(x) > 0:
            for i in tf.range(3):
                x = x + tf.cast(i, x.dtype) * self.v
        return {"y": x, "n": 7}


def test_functions_and_state_come_back(tmp_path):
    m = Scale()
    m(tf.constant(0.0)), m(tf.constant([1.0, 2.0])), m(tf.constant(0.0), twice=True)
    m.branch.get_concrete_function(tf.TensorSpec([None], tf.float32))
    tf.saved_model.save(m, tmp_path / "m")
    assert tf.saved_model.contains_saved_model(tmp_path / "m") and not tf.saved_model.contains_saved_model(tmp_path)
    back = tf.saved_model.load(tmp_path / "m")
    assert back(tf.constant(2.0)).numpy() == 6.5 and back(tf.constant(2.0), twice=True).numpy() == 13.0
    np.testing.assert_array_equal(back(tf.constant([1.0, 0.0])), [3.5, 0.5])
    back.mutate(tf.constant(2.0))
    assert back.v.numpy() == 2.0 and back(tf.constant(2.0)).numpy() == 4.5 and m.v.numpy() == 3.0
    for values in ([1.0, 2.0], [1.0, 2.0, 3.0], [-1.0]):
        want = np.array(values) + (6.0 if sum(values) > 0 else 0.0)
        found = back.branch(tf.constant(values))
        np.testing.assert_array_equal(found["y"], want)
        assert found["n"] == 7
    assert back.table[0].numpy().tolist() == [1, 2] and not back.table[0].trainable and back.v.trainable
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        back(tf.constant([[1.0]]))


def test_gradients_go_through_what_was_loaded(tmp_path):
    m = Scale()
    m(tf.constant(0.0))
    tf.saved_model.save(m, tmp_path / "m")
    back = tf.saved_model.load(tmp_path / "m")

    def step():
        with tf.GradientTape() as tape:
            loss = (10.0 - back(tf.constant(2.0))) ** 2
        (variable,) = tape.watched_variables()
        return variable, tape.gradient(loss, variable)

    variable, gradient = step()
    assert variable is back.v and gradient.numpy() == -2 * 2 * (10 - 6.5)
    traced = tf.function(lambda: step()[1])
    assert traced().numpy() == gradient.numpy()


def test_a_custom_gradient_is_saved(tmp_path):
    class Clipped(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(None)])
        def call(self, x):
            @tf.custom_gradient
            def clip(v):
                return tf.identity(v), lambda dy: tf.clip_by_norm(dy, 0.5)

            return clip(x)

    tf.saved_model.save(Clipped(), tmp_path / "m")
    back, v = tf.saved_model.load(tmp_path / "m"), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = back.call(v * v)
    assert tape.gradient(y, v).numpy() == 2.0


def test_signatures(tmp_path):
    class Named(tf.Module):
        v = tf.Variable(2.0)

        def __init__(self):
            super().__init__()
            self.w = Named.v

        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def __call__(self, x):
            return {"product": x * self.w}

    m = Named()
    call = m.__call__.get_concrete_function(tf.TensorSpec(None, tf.float32))
    vector = m.__call__.get_concrete_function(tf.TensorSpec(None, tf.float32))
    tf.saved_model.save(m, tmp_path / "m", signatures={"serving_default": call, "vector": vector})
    back = tf.saved_model.load(tmp_path / "m")
    assert list(back.signatures) == ["serving_default", "vector"]
    assert back.signatures["serving_default"].structured_outputs == {"product": tf.TensorSpec(None, tf.float32, "product")}
    np.testing.assert_array_equal(back.signatures["vector"](x=tf.constant([1.0, 4.0]))["product"], [2, 8])
    plain = Scale()
    plain(tf.constant(0.0))
    tf.saved_model.save(plain, tmp_path / "p", signatures=plain.__call__.get_concrete_function(tf.constant(0.0)))
    assert tf.saved_model.load(tmp_path / "p").signatures["serving_default"](tf.constant(1.0))["output_0"].numpy() == 3.5


def test_a_keras_model_predicts_the_same(tmp_path):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input([4]),
            tf.keras.layers.Dense(3, "relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dense(2),
        ]
    )
    tf.saved_model.save(model, tmp_path / "m")
    x = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
    want = model.predict(x, verbose=0)
    # In a process that knows nothing of the model, nor of Keras.
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy as np, tandem as tf\n"
        f"m = tf.saved_model.load({str(tmp_path / 'm')!r})\nx = tf.constant(np.load({str(tmp_path / 'x.npy')!r}))\n"
        f"np.save({str(tmp_path / 'y.npy')!r}, m.signatures['serving_default'](x)[list(m.signatures['serving_default'].structured_outputs)[0]])\n"
        "np.testing.assert_array_equal(m(x), np.load(" + repr(str(tmp_path / "y.npy")) + "))\nassert 'keras' not in sys.modules\n"
        "assert len(m.variables) == 8 and len(m.trainable_variables) == 6\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), want, rtol=1e-6, atol=1e-6)


def test_extension_types_pass(tmp_path):
    class Pair(tf.experimental.ExtensionType):
        __name__ = "test_saved_model.Pair"
        a: tf.Tensor
        b: tf.Tensor

    class Grow(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(100.0)

        @tf.function
        def grow(self, p):
            return Pair(p.a * self.v, p.b)

    m = Grow()
    m.grow.get_concrete_function(Pair.Spec(a=tf.TensorSpec(None), b=tf.TensorSpec(None, tf.bool)))
    tf.saved_model.save(m, tmp_path / "m")
    grown = tf.saved_model.load(tmp_path / "m").grow(Pair([1.0, 2.0], [True, False]))
    assert isinstance(grown, Pair) and grown.a.numpy().tolist() == [100, 200] and grown.b.numpy().tolist() == [True, False]


def test_what_cannot_be_saved_says_so(tmp_path):
    outside = tf.Variable(1.0)

    class Uses(tf.Module):
        @tf.function(input_signature=[])
        def call(self):
            return outside + 1.0

    with pytest.raises(AssertionError, match="no attribute of the saved object"):
        tf.saved_model.save(Uses(), tmp_path / "u")

    class Text(tf.Module):
        @tf.function
        def call(self, x):
            return tf.strings.join([x, "!"])

    m = Text()
    m.call(tf.constant("a"))
    tf.saved_model.save(m, tmp_path / "t")
    with pytest.raises(ValueError, match="not saved: .*string"):
        tf.saved_model.load(tmp_path / "t").call(tf.constant("a"))
    os.makedirs(tmp_path / "theirs")
    (tmp_path / "theirs" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(NotImplementedError, match="written by TensorFlow"):
        tf.saved_model.load(tmp_path / "theirs")
    with pytest.raises(OSError, match="does not exist"):
        tf.saved_model.load(tmp_path / "nothing")


def test_variables_are_a_checkpoint(tmp_path):
    tf.saved_model.save(Scale(), tmp_path / "m")
    reader = tf.train.load_checkpoint(str(tmp_path / "m" / "variables" / "variables"))
    assert reader.get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE") == 3.0


def test_a_function_with_random_numbers_of_keras_is_saved_with_their_state(tmp_path):
    class Drops(tf.Module):
        def __init__(self):
            self.drop = tf.keras.layers.Dropout(0.5, seed=3)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return self.drop(x, training=True)

    module, x = Drops(), tf.ones([40])
    module(x)
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    first, second = loaded(x).numpy(), loaded(x).numpy()
    assert (first != second).any() and (first == module(x).numpy()).all() and (second == module(x).numpy()).all()
    # TensorFlow's checkpoints have no such state, so ours have none.
    assert not [k for k, _ in tf.train.list_variables(tf.train.Checkpoint(m=module).write(str(tmp_path / "c"))) if "seed" in k]


def test_a_function_that_calls_python_is_compiled_but_not_saved(tmp_path, capfd):
    class Prints(tf.Module):
        @tf.function
        def __call__(self, x):
            tf.print("x is", x)
            return x + 1

    module = Prints()
    module(tf.constant(1))
    assert module.__call__.explain().endswith(": compiled") and capfd.readouterr().err == "x is 1\n"
    tf.saved_model.save(module, str(tmp_path / "m"))
    with pytest.raises(ValueError, match="not saved: .*calls Python while it runs"):
        tf.saved_model.load(str(tmp_path / "m"))(tf.constant(1))
