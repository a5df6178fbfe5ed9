"""Keras's fit, evaluate and predict on the native loop."""
import gc
import os
import signal
import threading
import weakref

import tandem as tf  # first: it chooses the backend

import keras
import numpy as np
import pytest
from keras import layers

rng = np.random.default_rng(0)
X = rng.random((100, 6), dtype=np.float32)
Y = (X.sum(axis=1) > 3).astype("int64")


def model(**compiled):
    keras.utils.set_random_seed(1)
    m = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(2)])
    options = {"optimizer": "adam", "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"]}
    m.compile(**{**options, **compiled})
    return m


def losses(m, **how):
    return m.fit(X, Y, **{"batch_size": 32, "epochs": 3, "shuffle": False, "verbose": 0, **how}).history["loss"]


def test_one_trace_serves_the_smaller_last_batch():
    m = model()
    losses(m)
    (compiled,) = m.train_function.step._compiled.values()
    assert compiled.function.trace_count == 1


def test_eager_and_compiled_agree():
    np.testing.assert_allclose(losses(model(run_eagerly=True)), losses(model()), rtol=1e-5)


def test_arrays_datasets_and_generators_agree():
    wanted = losses(model())
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32)
    np.testing.assert_allclose(model().fit(data, epochs=3, verbose=0).history["loss"], wanted, rtol=1e-6)

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return X[i * 32 : (i + 1) * 32], Y[i * 32 : (i + 1) * 32]

    np.testing.assert_allclose(model().fit(Batches(), epochs=3, shuffle=False, verbose=0).history["loss"], wanted, rtol=1e-6)


def test_a_callback_for_each_batch_sees_each_batch():
    seen = []

    class Each(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append((batch, logs["loss"]))

    losses(model(), epochs=1, callbacks=[Each()])
    assert [b for b, _ in seen] == [0, 1, 2, 3] and all(np.isfinite(loss) for _, loss in seen)


def test_a_step_of_ones_own():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, self(x, training=True), from_logits=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"mine": loss}

    m = Own()
    m.compile(optimizer=keras.optimizers.SGD(0.5))
    history = m.fit(X, Y, batch_size=20, epochs=5, verbose=0).history
    assert list(history) == ["mine"] and history["mine"][-1] < history["mine"][0]


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(gradient_accumulation_steps=2),
        lambda: keras.optimizers.Adam(use_ema=True, ema_overwrite_frequency=2),
        lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
        lambda: keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 20), momentum=0.9, clipnorm=1.0),
    ],
)
def test_optimizers_as_eager(optimizer):
    np.testing.assert_allclose(losses(model(optimizer=optimizer())), losses(model(optimizer=optimizer(), run_eagerly=True)), rtol=2e-5)


def test_weights_of_samples_and_classes():
    weights = np.where(Y == 1, 3.0, 1.0).astype("float32")
    np.testing.assert_allclose(losses(model(), sample_weight=weights), losses(model(), class_weight={0: 1.0, 1: 3.0}), rtol=1e-6)


def test_mixed_precision_trains():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        history = losses(model(), epochs=10)
    finally:
        keras.config.set_dtype_policy("float32")
    assert history[-1] < history[0]


def test_evaluate_and_predict():
    m = model()
    losses(m)
    loss, accuracy = m.evaluate(X, Y, verbose=0)
    logits = m.predict(X, batch_size=32, verbose=0)
    assert logits.shape == (100, 2)
    assert accuracy == pytest.approx((logits.argmax(axis=1) == Y).mean(), abs=1e-6)
    np.testing.assert_allclose(logits, m(X).numpy(), rtol=1e-5, atol=1e-6)
    assert np.isfinite(loss)


def test_models_are_collected():
    m = model()
    losses(m, epochs=1)
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None


def test_ctrl_c_ends_a_fit():
    m = model()
    losses(m, epochs=1)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        losses(m, epochs=10_000_000)
    timer.join()


def test_text_layers_need_no_tensorflow():
    lookup = layers.StringLookup(vocabulary=["a", "b", "c"])
    np.testing.assert_array_equal(lookup(tf.constant(["a", "x", "c"])), [1, 0, 3])
    vectors = layers.TextVectorization(vocabulary=["the", "cat"], output_sequence_length=4)
    np.testing.assert_array_equal(vectors(tf.constant(["the cat sat", "a cat"])), [[2, 3, 1, 0], [1, 3, 0, 0]])
    np.testing.assert_array_equal(layers.IntegerLookup(vocabulary=[3, 5, 7])(tf.constant([3, 9, 7])), [1, 0, 3])


def test_quantized_models_run_on_integers():
    m = model()
    before = m.predict(X, verbose=0)
    m.quantize("int8")
    after = m.predict(X, verbose=0)
    np.testing.assert_allclose(after, before, atol=0.05)
    assert m.layers[0].kernel.dtype == "int8"


def test_shuffling_follows_the_seed():
    first, second = losses(model(), shuffle=True), losses(model(), shuffle=True)
    np.testing.assert_array_equal(first, second)
    assert losses(model(), shuffle=False) != first


class Doubled(layers.Layer):
    """Calls Python, and says the shape of what that gives."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def call(self, x):
        def double(t):
            self.calls.append(t.shape[0])
            return t * 2.0

        y = tf.py_function(double, [x], tf.float32)
        y.set_shape(x.shape)
        return y


def test_a_layer_that_calls_python_is_compiled_and_learns():
    def made(layer):
        keras.utils.set_random_seed(0)
        m = keras.Sequential([keras.Input((4,)), layers.Dense(3), layer, layers.Dense(1)])
        m.compile("sgd", "mse")
        return m

    x = np.random.RandomState(0).rand(40, 4).astype("float32")
    y = x.sum(1, keepdims=True)
    layer = Doubled()
    m = made(layer)
    found = m.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False).history
    assert list(layer.calls) == [16, 16, 8] * 2  # the way back uses what the call has recorded
    assert [c.function.trace_count for c in m.train_function.step._compiled.values()] == [1]
    wanted = made(layers.Lambda(lambda t: t * 2.0)).fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False).history
    np.testing.assert_allclose(found["loss"], wanted["loss"], rtol=1e-6)


class Watched(keras.Model):
    def __init__(self, shape=()):
        super().__init__()
        self.dense, self.seen, self.shape_of_loss = layers.Dense(1), [], shape

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        tf.print("loss is a number", tf.math.is_finite(loss))
        tf.debugging.assert_less(loss, 1e4, message="the loss explodes")
        same = tf.py_function(lambda t: (self.seen.append(float(t)), t)[1], [loss], tf.float32)
        if self.shape_of_loss is not None:
            same.set_shape(self.shape_of_loss)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"same": same + 0.0}


def test_a_train_step_that_prints_checks_and_calls_python_is_compiled(capfd):
    x = np.ones([40, 4], "float32")
    m = Watched()
    m.compile("sgd")
    history = m.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0).history
    assert len(m.seen) == 6 and capfd.readouterr().err.count("loss is a number 1\n") == 6
    np.testing.assert_allclose(history["same"], [m.seen[2], m.seen[5]], rtol=1e-6)
    assert [c.function.trace_count for c in m.train_function.step._compiled.values()] == [1]
    m.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(16), verbose=0)
    assert len(m.seen) == 9
    with pytest.raises(tf.errors.InvalidArgumentError, match="the loss explodes"):
        m.fit(x * 1e4, x[:, :1], batch_size=16, verbose=0)


def test_a_step_that_cannot_be_compiled_runs_eagerly_and_says_so():
    x = np.ones([40, 4], "float32")
    m = Watched(shape=None)
    m.compile("sgd")
    with pytest.warns(UserWarning, match="train_step runs eagerly: the result of py_function has a shape that is not known.*test_keras_fit.py:"):
        m.fit(x, x[:, :1], batch_size=16, verbose=0)
    assert len(m.seen) == 3


class PrintingModel(keras.Model):
    def __init__(self, as_number):
        super().__init__()
        self.dense, self.as_number = layers.Dense(1), as_number

    def call(self, x):
        if self.as_number:  # the batch as a number: a trace for each size, made by the loop itself
            x = tf.reshape(x, [int(x.shape[0]), 4])
        tf.py_function(self.note, [x], [])
        return self.dense(x)

    def note(self, x):
        self.last = x.shape[0]


@pytest.mark.parametrize("as_number", [False, True])
def test_models_that_call_python_are_collected(as_number):
    m = PrintingModel(as_number)
    m.compile("sgd", "mse")
    x = np.ones([40, 4], "float32")
    m.fit(x, x[:, :1], batch_size=16, verbose=0)
    assert m.last == 8
    gone = weakref.ref(m)
    del m
    keras.utils.clear_session(free_memory=False)
    gc.collect()
    gc.collect()
    assert gone() is None


def test_predicting_with_strings_runs_eagerly():
    class Text(keras.Model):
        def call(self, x):
            return tf.strings.to_number(tf.strings.as_string(x))

    model = Text()
    model.jit_compile = False
    x = np.array([[1, 2, 3], [4, 5, 6]])
    with pytest.warns(UserWarning, match="predict_step runs eagerly: .*test_keras_fit.py:"):
        found = model.predict(x, verbose=0)
    np.testing.assert_array_equal(found, x)


def test_quantized_to_4_bits_and_to_floats_of_8():
    for mode, stored, error in (("int4", "int8", 0.25), ("float8", "float32", 0.1)):
        m = model()
        before = m.predict(X, verbose=0)
        m.quantize(mode)
        np.testing.assert_allclose(m.predict(X, verbose=0), before, atol=error)
        assert m.layers[0]._kernel.dtype == stored
        m.predict_function = None
        if mode == "float8":  # it goes on learning, with rounded products
            assert losses(m, epochs=5)[-1] < losses(model(), epochs=1)[0]


def test_remat_gives_the_same():
    block = lambda x: keras.ops.sin(x) * keras.ops.exp(x)  # noqa: E731
    x = tf.Variable([0.5, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        plain, again = block(x + 0), keras.remat(block)(x + 0)
    np.testing.assert_allclose(tape.gradient(again, x), tape.gradient(plain, x), rtol=1e-6)
    with keras.RematScope(mode="full"):
        m = model()
    np.testing.assert_allclose(losses(m), losses(model()), rtol=1e-5)


def test_sparse_inputs():
    dense = np.where(X > 0.7, X, 0)
    sparse = tf.sparse.from_dense(dense)

    def fresh():
        keras.utils.set_random_seed(1)
        x = layers.Input((6,), sparse=True)
        m = keras.Model(x, layers.Dense(2)(layers.Dense(8, activation="relu")(x)))
        m.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return m

    m = fresh()
    with tf.GradientTape(persistent=True) as tape:
        ours, theirs = tf.reduce_sum(m(sparse) ** 2), tf.reduce_sum(m(tf.constant(dense)) ** 2)
    for a, b in zip(tape.gradient(ours, m.trainable_variables), tape.gradient(theirs, m.trainable_variables)):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_allclose(m.predict(sparse, verbose=0), m.predict(dense, verbose=0), rtol=1e-5)
    how = {"batch_size": 25, "epochs": 2, "shuffle": False, "verbose": 0}
    expected = fresh().fit(dense, Y, **how).history["loss"]
    np.testing.assert_allclose(fresh().fit(sparse, Y, **how).history["loss"], expected, rtol=1e-5)
    batches = tf.data.Dataset.from_tensor_slices((sparse, Y)).batch(25)  # each batch is a sparse tensor
    assert isinstance(next(iter(batches))[0], tf.SparseTensor) and [e[0].shape[0] for e in batches.unbatch().batch(60)] == [60, 40]
    np.testing.assert_allclose(fresh().fit(batches, epochs=2, verbose=0).history["loss"], expected, rtol=1e-5)
