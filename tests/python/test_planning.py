"""Planning a step before it runs: tandem.memory, and `tandem run --plan-only`."""
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

os.environ["KERAS_BACKEND"] = "tandem"

import numpy as np
import pytest

import tandem as tf
from tandem import memory

keras = tf.keras


def dense(layers=4, width=64, loss="sparse_categorical_crossentropy"):
    model = keras.Sequential(
        [keras.Input((width,)), *[keras.layers.Dense(width, activation="relu") for _ in range(layers)], keras.layers.Dense(8, activation="softmax")]
    )
    model.compile("adam", loss)
    return model


def run(folder, program, *options, arguments=()):
    file = pathlib.Path(folder) / "train.py"
    file.write_text(textwrap.dedent(program))
    words = [sys.executable, "-m", "tandem", "run", *options, str(file), *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


PROGRAM = """
    import numpy as np, sys
    import tensorflow as tf
    model = tf.keras.Sequential([tf.keras.Input((32,)), *[tf.keras.layers.Dense(64, activation="relu") for _ in range(5)], tf.keras.layers.Dense(4)])
    model.compile("adam", "mse")
    print("before", sys.argv[1:])
    model.fit(np.zeros((600, 32), "float32"), np.zeros((600, 4), "float32"), batch_size=256, epochs=2, verbose=0)
    print("after")
"""


def test_sizes():
    assert memory.parse_size("4GiB") == 4 << 30
    assert memory.parse_size("1.5 MiB") == 3 << 19
    assert memory.parse_size("2GB") == 2_000_000_000
    assert memory.parse_size(4096) == 4096
    for wrong in ("much", "4 Gib/s", "", 0, True):
        with pytest.raises(ValueError, match="a size of memory is"):
            memory.parse_size(wrong)


def test_a_plan_for_a_card_and_a_batch_size():
    model = dense()
    plan = memory.plan(model, 256, card="RTX 3060", effort=0.05)
    numbers = sum(int(np.prod(w.shape)) for w in model.weights)
    assert plan.fits and plan.why is None
    assert 4 * numbers <= plan.parts["weights"] <= 4 * numbers + 64 * len(model.weights)
    assert plan.parts["optimizer_state"] >= 8 * numbers
    assert sum(plan.parts.values()) == plan.peak_bytes == plan.unlimited_bytes
    assert plan.seconds == plan.unlimited_seconds > 0
    assert plan.largest_batch > 256
    assert plan.limit_bytes == int(11.25 * 2**30)
    assert "batch 256, on RTX 3060" in repr(plan)


def test_less_memory_takes_longer_and_the_least_works(tmp_path):
    model = dense(layers=6)
    free = memory.plan(model, 512, gpu_memory="1GiB", effort=0.05)
    refused = memory.plan(model, 512, gpu_memory=4096, effort=0.05)
    assert not refused.fits
    assert f"needs at least {refused.least_bytes} bytes" in refused.why
    tight = memory.plan(model, 512, gpu_memory=refused.least_bytes, effort=0.05)
    assert tight.fits
    assert tight.peak_bytes <= refused.least_bytes < free.peak_bytes
    assert tight.seconds > free.seconds
    assert {m["kind"] for m in tight.moves} & {"recomputed", "offloaded", "state_on_host"}
    assert [s for _, s in tight.curve] == sorted((s for _, s in tight.curve), reverse=True)
    tight.save(tmp_path / "plan.html")
    assert "What goes where, and why" in (tmp_path / "plan.html").read_text()


def test_nothing_of_the_model_changes():
    model = dense(layers=1)
    before = [w.numpy() for w in model.weights]
    memory.plan(model, 16, gpu_memory="1GiB", effort=0.01)
    for w, b in zip(model.weights, before):
        np.testing.assert_array_equal(w.numpy(), b)
    assert int(model.optimizer.iterations) == 0


def test_a_batch_of_data_decides_the_types():
    x = keras.Input((None, 8))
    model = keras.Model(x, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(x)))
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="give a batch of data instead of its size"):
        memory.plan(model, 4, gpu_memory="1GiB")
    plan = memory.plan(model, (np.zeros((4, 10, 8), "float32"), np.zeros((4, 1), "float32")), gpu_memory="1GiB", effort=0.01)
    assert plan.as_dict()["unlimited"]["batch"] == 4


def test_a_step_that_cannot_be_planned_says_why():
    model = dense(layers=1)
    model.run_eagerly = True
    with pytest.raises(ValueError, match="run_eagerly=True"):
        memory.plan(model, 4, gpu_memory="1GiB")


@pytest.mark.parametrize("kind", ["recurrent", "attention", "normalised"])
def test_models_of_other_kinds(kind):
    layers = keras.layers
    if kind == "recurrent":
        model = keras.Sequential([keras.Input((12, 8)), layers.LSTM(16, return_sequences=True), layers.GRU(16), layers.Dense(1)])
    elif kind == "attention":
        x = i = keras.Input((16, 32))
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
        model = keras.Model(i, layers.Dense(1)(layers.GlobalAveragePooling1D()(layers.Dropout(0.1)(x))))
    else:
        model = keras.Sequential(
            [keras.Input((16, 16, 3)), layers.Conv2D(8, 3), layers.BatchNormalization(), layers.ReLU(), layers.GlobalAveragePooling2D(), layers.Dense(1)]
        )
    model.compile("adamw", "mse")
    plan = memory.plan(model, 32, card="T4", effort=0.01)
    assert plan.fits
    assert sum(plan.parts.values()) == plan.peak_bytes
    assert plan.seconds > 0


def test_plan_only_ends_before_the_first_step(tmp_path):
    page = tmp_path / "plan.html"
    done = run(tmp_path, PROGRAM, "--plan-only", "--card", "RTX 3060", "--html", str(page), arguments=["--epochs", "3"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("before ['--epochs', '3']\n")
    assert "after" not in done.stdout
    assert re.search(r", batch 256, on RTX 3060 with ", done.stdout)
    assert "fits as it is" in done.stdout
    assert "Memory over a step" in page.read_text()


def test_plan_only_says_what_does_not_fit(tmp_path):
    done = run(tmp_path, PROGRAM, "--plan-only", "--gpu-memory", "8KiB", "--json")
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout.partition("\n")[2])
    assert not answer["fits"]
    assert answer["unlimited"]["batch"] == 256
    assert answer["least_bytes"] > 8192


def test_plan_only_of_a_program_that_does_not_train(tmp_path):
    done = run(tmp_path, "print('nothing')", "--plan-only", "--card", "T4")
    assert done.returncode == 1
    assert "the program ended without a training step to plan" in done.stderr


def test_options_that_make_no_sense_together(tmp_path):
    for options, message in [
        (["--plan-only"], "--plan-only needs --card"),
        (["--card", "T4"], "--card is an option of --plan-only"),
        (["--plan-only", "--card", "T4", "--device", "gpu:0"], "--card and --device cannot both be given"),
        (["--plan-only", "--gpu-memory", "much"], 'got "much"'),
    ]:
        done = run(tmp_path, "", *options)
        assert done.returncode == 2
        assert message in done.stderr


def test_options_become_variables(tmp_path):
    program = """
        import os
        print([os.environ.get(f"TANDEM_{n}") for n in ("EMULATE_GPU", "GPU_MEMORY", "HOST_MEMORY", "PLACEMENT")])
    """
    done = run(tmp_path, program, "--gpu-memory", "1GiB", "--host-memory", "2GiB")
    assert done.stdout == "[None, '1GiB', '2GiB', None]\n", done.stderr
