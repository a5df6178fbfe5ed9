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


def test_a_pipeline_on_such_a_device_says_what_is_missing():
    text = "import tandem as tf; print(list(tf.data.Dataset.range(3).batch(2)))"
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "TANDEM_DEVICE": "late"}, capture_output=True, text=True)
    assert done.returncode != 0 and "data: the memory of device late cannot be written by the host" in done.stderr
