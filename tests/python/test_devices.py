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


NAMES = textwrap.dedent("""
    import json
    import numpy as np
    import tandem as tf
    import keras

    found = {}
    local = "/job:localhost/replica:0/task:0/device:"
    short = lambda x: x.device.replace(local, "")
    scopes = ["/GPU:0", "gpu:0", "/device:GPU:1", local + "CPU:0", tf.DeviceSpec(device_type="GPU", device_index=1), "/GPU:7", "GPU", "/cpu:0"]
    found["scopes"] = []
    for scope in scopes:
        with tf.device(scope):
            found["scopes"].append(short(tf.constant([1.0, 2.0]) + 1.0))
    with tf.device("/GPU:1"):
        a = tf.random.normal([8, 8])
        with tf.device("/CPU:0"):
            b = tf.identity(a)
            with tf.device(None):
                pass
        v = tf.Variable(a)
        layer = keras.layers.Dense(4)
        layer.build([None, 8])
    found["copy"] = [short(a), short(b), bool(np.array_equal(a, b)), short(v), short(layer.kernel.value)]
    found["cpu and gpu"] = [short(a.cpu()), short(b.gpu(1)), short(b.gpu())]

    @tf.function
    def f(x):
        with tf.device("/GPU:1"):
            y = tf.matmul(x, x)
        with tf.device("/CPU:0"):
            return y, tf.reduce_sum(y)

    y, total = f(a)
    found["function"] = [short(y), short(total), bool(abs(float(total) - (a.numpy() @ a.numpy()).sum()) < 1e-3)]
    double = tf.function(lambda x: x * 2.0)
    double(a)
    with tf.device("/GPU:0"):
        found["scope of the call"] = short(double(tf.ones([3])))
    with tf.GradientTape() as tape:
        with tf.device("/GPU:1"):
            loss = tf.reduce_sum(v * v)
    found["gradient"] = bool(np.allclose(tape.gradient(loss, v), 2 * a.numpy()))
    rows = tf.explain(f)
    found["explain"] = sorted({r.device.replace(local, "") for r in rows}) + [all(r.seconds >= 0 and r.why and r.op for r in rows)]
    found["predicted"] = all(c.compiled.predicted_seconds() > 0 for c in f._concrete.values())
    batches = list(tf.data.Dataset.range(5).batch(2).apply(tf.data.experimental.prefetch_to_device("/gpu:1")))
    found["prefetch"] = [[short(b), b.numpy().tolist()] for b in batches]
    info = tf.config.experimental.get_memory_info("GPU:1")
    with tf.device("/GPU:1"):
        held = tf.ones([1024, 1024])
    more = tf.config.experimental.get_memory_info("GPU:1")
    del held
    tf.config.experimental.reset_memory_stats("GPU:1")
    after = tf.config.experimental.get_memory_info("GPU:1")
    found["memory"] = [more["current"] - info["current"] >= 4 * 2**20, more["peak"] >= more["current"], after["peak"] <= more["peak"], more["limit"] / 2**20]
    errors = {}
    def fails(name, function):
        try:
            function()
        except Exception as e:
            errors[name] = f"{type(e).__name__}: {e}"
    gpu = tf.config.list_physical_devices("GPU")[0]
    fails("growth", lambda: tf.config.experimental.set_memory_growth(gpu, True))
    fails("visible", lambda: tf.config.set_visible_devices([], "GPU"))
    fails("logical", lambda: tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=64)]))
    fails("threads", lambda: tf.config.threading.set_intra_op_parallelism_threads(7))
    fails("words", lambda: tf.device("/what:0").__enter__())
    tf.config.set_soft_device_placement(False)
    fails("soft", lambda: tf.device("/GPU:7").__enter__())
    tf.config.set_soft_device_placement(True)
    found["errors"] = errors
    print(json.dumps(found), flush=True)
    tf.debugging.set_log_device_placement(True)
    with tf.device("/GPU:1"):
        tf.matmul(a, a)
""")

CONFIGURED = textwrap.dedent("""
    import json
    import tandem as tf

    gpus = tf.config.list_physical_devices("GPU")
    (cpu,) = tf.config.list_physical_devices("CPU")
    found = {"physical": [d.name for d in gpus]}
    tf.config.set_visible_devices(gpus[1:], "GPU")
    tf.config.set_logical_device_configuration(gpus[1], [tf.config.LogicalDeviceConfiguration(memory_limit=64)] * 2)
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    found["logical"] = [d.name for d in tf.config.list_logical_devices()]
    found["limits"] = [tf.config.experimental.get_memory_info(f"GPU:{i}")["limit"] / 2**20 for i in range(2)]
    found["where"] = []
    for name in ("/GPU:0", "/GPU:1", "/CPU:0", "/CPU:1"):
        with tf.device(name):
            found["where"].append((tf.ones([4]) * 2.0).device[-5:])
    try:
        with tf.device("/GPU:1"):
            tf.ones([5000, 5000])
    except tf.errors.ResourceExhaustedError as e:
        found["too much"] = str(e)
    print(json.dumps(found))
""")


def results_of(text, **environment):
    import json

    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_names_of_devices():
    found, log = results_of(NAMES, TANDEM_EMULATE_GPU="2x256MiB")
    assert found["scopes"] == ["GPU:0", "GPU:0", "GPU:1", "CPU:0", "GPU:1", "GPU:0", "GPU:0", "CPU:0"]
    assert found["copy"] == ["GPU:1", "CPU:0", True, "GPU:1", "GPU:1"]
    assert found["cpu and gpu"] == ["CPU:0", "GPU:1", "GPU:0"]
    assert found["function"] == ["GPU:1", "CPU:0", True]
    assert found["scope of the call"] == "GPU:0" and found["gradient"]
    assert found["explain"] == ["CPU:0", "GPU:1", True]
    assert found["predicted"]
    assert found["prefetch"] == [["GPU:1", [0, 1]], ["GPU:1", [2, 3]], ["GPU:1", [4]]]
    assert found["memory"] == [True, True, True, 256]
    local = "/job:localhost/replica:0/task:0/device:"
    assert found["errors"] == {
        "growth": "RuntimeError: Physical devices cannot be modified after being initialized",
        "visible": "RuntimeError: Visible devices cannot be modified after being initialized",
        "logical": "RuntimeError: Virtual devices cannot be modified after being initialized",
        "threads": "RuntimeError: Intra op parallelism cannot be modified after initialization.",
        "words": "ValueError: Unknown attribute 'what' is encountered while parsing the device spec: '/what:0'.",
        "soft": f"InvalidArgumentError: Could not satisfy device specification '{local}GPU:7'. enable_soft_placement=0. Supported device types "
        f"[GPU, CPU]. All available devices [{local}CPU:0, {local}GPU:0, {local}GPU:1].",
    }
    assert any(line.startswith("matmul: (") and line.endswith(f"): {local}GPU:1") for line in log.splitlines()), log


def test_devices_are_configured_before_the_start():
    found, _ = results_of(CONFIGURED, TANDEM_EMULATE_GPU="2x256MiB")
    assert found["physical"] == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
    assert found["logical"] == ["/device:CPU:0", "/device:CPU:1", "/device:GPU:0", "/device:GPU:1"]
    assert found["limits"] == [64, 64]
    assert found["where"] == ["GPU:0", "GPU:1", "CPU:0", "CPU:1"]
    assert "too much" in found


def test_without_a_gpu():
    found, _ = results_of(
        "import json, tandem as tf\n"
        "with tf.device('/GPU:0'):\n"
        "    x = tf.ones([2])\n"
        "print(json.dumps([x.device[-5:], tf.config.list_physical_devices('GPU'), tf.config.list_logical_devices('GPU'),\n"
        "    tf.distribute.MirroredStrategy().num_replicas_in_sync, tf.distribute.TandemStrategy().num_replicas_in_sync]))\n",
        TANDEM_EMULATE_GPU="",
    )
    assert found == ["CPU:0", [], [], 1, 1]


def test_threads_of_the_pool():
    """TensorFlow's number is the pool's: a process has one more thread for each beyond the caller."""
    text = (
        "import json, os, tandem as tf\n"
        "tf.config.threading.set_intra_op_parallelism_threads({})\n"
        "(tf.ones([512, 512]) @ tf.ones([512, 512])).numpy()\n"
        "print(json.dumps([tf.config.threading.get_intra_op_parallelism_threads(), len(os.listdir('/proc/self/task'))]))\n"
    )
    one, _ = results_of(text.format(1), TANDEM_EMULATE_GPU="")
    three, _ = results_of(text.format(3), TANDEM_EMULATE_GPU="")
    assert one[0] == 1 and three[0] == 3 and three[1] - one[1] == 2


CORES = textwrap.dedent("""
    import json, os, threading
    import tandem as tf

    tf.config.threading.set_inter_op_parallelism_threads(2)
    seen, main = set(), threading.get_native_id()

    def cores_of(task):
        with open(f"/proc/self/task/{task}/status") as f:
            return next(line.split()[1] for line in f if line.startswith("Cpus_allowed_list"))

    def look(x):
        if threading.get_native_id() != main:
            seen.add(cores_of(threading.get_native_id()))
        return x

    data = tf.data.Dataset.range(64).map(lambda x: tf.py_function(look, [x], tf.int64), num_parallel_calls=2)
    assert [int(x) for x in data] == list(range(64))
    (tf.ones([512, 512]) @ tf.ones([512, 512])).numpy()
    errors = None
    try:
        tf.config.threading.set_inter_op_parallelism_threads(3)
    except RuntimeError as e:
        errors = str(e)
    print(json.dumps([sorted(seen), cores_of(main), tf.config.threading.get_inter_op_parallelism_threads(), errors]))
""")


def test_threads_stay_on_the_cores_they_were_given():
    cores = sorted(os.sched_getaffinity(0))
    found, _ = results_of(CORES, TANDEM_EMULATE_GPU="", TANDEM_CORES=str(cores[0]), TANDEM_DATA_CORES=str(cores[-1]))
    assert found == [[str(cores[-1])], str(cores[0]), 2, "Inter op parallelism cannot be modified after initialization."]


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
            tf.linalg.qr(a)
    except Exception as e:
        assert "qr: gpu:0 cannot do it" in str(e), e
    else:
        raise AssertionError("a GPU has no factorisations")
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


WRONG_INDEX = textwrap.dedent("""
    import numpy as np
    import tandem as tf
    import keras

    model = keras.Sequential([keras.layers.Embedding(50, 8), keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(0).integers(0, 50, (64, 4)), np.zeros(64, int)
    model.fit(x, y, batch_size=64, verbose=0)
    before = model.layers[0].embeddings.numpy()
    x[40, 1] = 77
    try:
        model.fit(x, y, batch_size=64, verbose=0)
    except IndexError as e:
        assert "index 77 is out of range for axis 0 with size 50" in str(e), e
    else:
        raise AssertionError("no error")
    np.testing.assert_array_equal(model.layers[0].embeddings.numpy(), before)
    print("done")
""")


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
def test_a_wrong_index_costs_nothing(device):
    environment = {**os.environ, "TANDEM_DEVICE": device, "TANDEM_EMULATE_GPU": "1x1GiB"}
    done = subprocess.run([sys.executable, "-c", WRONG_INDEX], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1] == "done", done.stderr
