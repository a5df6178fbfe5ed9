"""A program on a device with memory of its own: `late`, which does everything later, and an emulated GPU. The numbers are the CPU's."""
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

PROGRAM = textwrap.dedent("""
    import json
    import numpy as np
    import tandem as tf
    import keras

    found = {}
    a = tf.constant([[3.0, 1.0], [2.0, 4.0]])
    found["eager"] = (a @ a + tf.sort(a)).numpy().tolist()
    f = tf.function(lambda x: tf.reduce_sum(tf.sort(x, axis=0) * x))
    found["function"] = float(f(a))
    v = tf.Variable(a)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.softmax(v @ a) ** 2)
    found["gradient"] = tape.gradient(loss, v).numpy().tolist()
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.layers.Reshape((4, 4, 1)), keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.BatchNormalization(),
         keras.layers.Flatten(), keras.layers.Dropout(0.2), keras.layers.Dense(3)]
    )
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    random = np.random.RandomState(1)
    x, y = random.rand(50, 16).astype("float32"), random.randint(0, 3, 50)
    found["fit"] = model.fit(x, y, epochs=2, batch_size=16, verbose=0).history["loss"]
    found["evaluate"] = model.evaluate(x, y, verbose=0)
    found["predict"] = model.predict(x, verbose=0).sum(0).tolist()
    weights = model.get_weights()
    model.set_weights(weights)
    found["weights"] = [float(w.sum()) for w in model.get_weights()]
    print(json.dumps(found))
""")


def run(device, **environment):
    import json

    environment = {**os.environ, "TANDEM_DEVICE": device, **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def on_cpu():
    return run("cpu")


@pytest.mark.parametrize("device", ["late", "gpu:0"])
def test_a_program_gives_the_numbers_of_the_cpu(device, on_cpu):
    found = run(device, TANDEM_VERIFY="1", TANDEM_EMULATE_GPU="1x1GiB")
    for name, wanted in on_cpu.items():
        for got, number in zip(found[name], wanted) if isinstance(wanted, list) else [(found[name], wanted)]:
            np.testing.assert_allclose(got, number, rtol=2e-4, atol=2e-5, err_msg=name)


PIPELINE = textwrap.dedent("""
    import numpy as np
    import tandem as tf
    import keras
    from tandem import _core

    with tf.device("/GPU:0"):  # pipelines run on the CPU, wherever they are made
        data = tf.data.Dataset.from_tensor_slices((tf.range(64.0), tf.range(64))).map(lambda x, y: (x * 2 + 1, y % 3)).shuffle(64, seed=1)
    values = sorted(float(x) for x, _ in data)
    assert values == [2.0 * i + 1 for i in range(64)], values
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = data.map(lambda x, y: (tf.reshape(x, [1]) / 64, y)).batch(16)
    losses = model.fit(batches, epochs=2, verbose=0).history["loss"]
    ahead = batches.prefetch(2)
    assert len(losses) == 2 and all(np.isfinite(losses)), losses
    assert np.isfinite(model.evaluate(ahead, verbose=0))
    print("done")
""")


@pytest.mark.parametrize("device", ["late", "gpu:0"])
def test_pipelines_feed_any_device(device):
    environment = {**os.environ, "TANDEM_DEVICE": device, "TANDEM_EMULATE_GPU": "1x1GiB", "TANDEM_VERIFY": "1"}
    done = subprocess.run([sys.executable, "-c", PIPELINE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1] == "done", done.stderr


TWO = textwrap.dedent("""
    import numpy as np
    import tandem as tf
    from tandem import _core

    class on:
        def __init__(self, name):
            self.name = name
        def __enter__(self):
            self.before = _core.enter_device(self.name)
        def __exit__(self, *_):
            _core.leave_device(self.before)

    def where(t):
        return _core.tensor_device(t)

    assert _core.engine_devices()[0] == "cpu" and {"gpu:0", "gpu:1"} <= set(_core.engine_devices())
    a = tf.constant(np.arange(16.0, dtype="float32").reshape(4, 4))
    assert where(a) == "cpu"  # small things stay
    with on("gpu:0"):
        x = a @ a
        assert _core.current_device() == "gpu:0"
    with on("/job:localhost/replica:0/task:0/device:GPU:1"):
        y = x + 1.0
        v = tf.Variable(a)
        with on(None):
            z = a + a
    assert [where(t) for t in (x, y, z)] == ["gpu:0", "gpu:1", "cpu"], [where(t) for t in (x, y, z)]
    assert where(y * 2.0) == "gpu:1"  # operands pull
    np.testing.assert_array_equal(y.numpy(), a.numpy() @ a.numpy() + 1)
    assert _core.device_name("GPU:1") == "gpu:1" and _core.device_name("/CPU:0") == "cpu"

    @tf.function
    def step(t):
        with on("gpu:0"):
            one = t @ t
        with on("gpu:1"):
            two = tf.sort(one) + t
        with tf.GradientTape() as tape:
            with on("gpu:1"):
                loss = tf.reduce_sum(tf.exp(v * 0.1) @ t)
        v.assign_add(tape.gradient(loss, v))
        return one, two

    before = v.numpy()
    one, two = step(a)
    assert (where(one), where(two)) == ("gpu:0", "gpu:1")
    n = a.numpy()
    np.testing.assert_allclose(two.numpy(), np.sort(n @ n, axis=-1) + n, rtol=1e-6)
    wanted = before + 0.1 * np.exp(before * 0.1) * n.sum(1)
    np.testing.assert_allclose(v.numpy(), wanted, rtol=1e-4)

    moved = _core.to_device(a, "gpu:1")
    assert where(moved) == "gpu:1"
    np.testing.assert_array_equal(moved.numpy(), n)
    current, peak, limit = _core.memory_info("gpu:1")
    assert 0 < current <= peak <= limit == 256 << 20, (current, peak, limit)
    _core.reset_peak("gpu:1")
    assert _core.memory_info("gpu:1")[1] <= peak

    with on("/GPU:7"):  # soft placement: the first there is
        assert where(a + 1.0) == "gpu:0"
    _core.set_soft_placement(False)
    for name, text in (("/GPU:7", "there is no device '/GPU:7'; there are cpu, "), ("nonsense", "there is no device 'nonsense'")):
        try:
            with on(name):
                pass
        except Exception as e:
            assert text in str(e), e
        else:
            raise AssertionError(name)
    try:
        with on("gpu:0"):
            tf.sort(a)
    except Exception as e:
        assert "sort: gpu:0 cannot do it" in str(e), e
    else:
        raise AssertionError("a GPU has no sort")
    _core.set_soft_placement(True)
    with on("gpu:0"):
        np.testing.assert_array_equal(tf.sort(a).numpy(), np.sort(n))

    _core.set_placement("tensorflow")
    assert _core.default_device() == "gpu:0" and where(tf.constant([1.0]) + 1.0) == "gpu:0"
    _core.set_placement("cost")
    assert where(tf.constant([1.0]) + 1.0) == "cpu"
    print("done")
""")


def test_scopes_on_two_emulated_gpus():
    environment = {**os.environ, "TANDEM_EMULATE_GPU": "2x256MiB", "TANDEM_VERIFY": "1"}
    environment.pop("TANDEM_DEVICE", None)
    done = subprocess.run([sys.executable, "-c", TWO], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1] == "done", done.stderr
