"""Training within a limit on an emulated GPU: the same losses, never more memory, and a line that says what was done."""
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

# Small networks of each kind, by name: a few steps, their losses and how much memory they took.
PROGRAM = textwrap.dedent("""
    import json
    import sys
    import tandem
    import keras
    import numpy as np
    from keras import layers
    from tandem import _core

    def cnn():
        return [layers.Input((16, 16, 3)), layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(2), layers.Conv2D(32, 3, activation="relu"),
                layers.Flatten(), layers.Dropout(0.3), layers.Dense(64, activation="relu"), layers.Dense(10)]

    def resnet():
        i = layers.Input((16, 16, 3))
        x = layers.Conv2D(8, 3, padding="same", use_bias=False)(i)
        for _ in range(4):
            y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(x)))
            x = layers.ReLU()(layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(y))]))
        return keras.Model(i, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))

    def transformer():
        i = layers.Input((16,), dtype="int32")
        x = layers.Embedding(600, 32)(i)
        for _ in range(2):
            x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
            x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(128, activation="gelu")(x)))
        return keras.Model(i, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))

    def lstm():
        return [layers.Input((12,), dtype="int32"), layers.Embedding(3000, 24), layers.LSTM(24), layers.Dense(10)]

    def mlp():
        return [layers.Input((192,))] + [layers.Dense(192, activation="relu") for _ in range(6)] + [layers.Dense(10)]

    def wide():  # results are larger than weights
        return [layers.Input((16, 16, 3)), layers.Conv2D(24, 3, padding="same", activation="relu"), layers.Conv2D(24, 3, padding="same", activation="relu"),
                layers.GlobalAveragePooling2D(), layers.Dense(10)]

    work = sys.argv[1]
    keras.utils.set_random_seed(0)
    made = globals()[work]()
    model = keras.Sequential(made) if isinstance(made, list) else made
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.RandomState(0)
    shape = model.input_shape[1:]
    rows = int(sys.argv[2])
    x = random.randint(0, 600, (rows, *shape)) if len(shape) == 1 and work != "mlp" else random.rand(rows, *shape).astype("float32")
    y = random.randint(0, 10, len(x))
    how = {"epochs": 2, "verbose": 2, "shuffle": False}
    if "dataset" in sys.argv:
        history = model.fit(tandem.data.Dataset.from_tensor_slices((x, y)).batch(32), **how).history["loss"]
    else:
        history = model.fit(x, y, batch_size=32, **how).history["loss"]
    account = _core.memory_account()
    weights = [float(np.abs(w, dtype="float64").sum()) for w in model.get_weights()]
    print(json.dumps({"loss": history, "weights": weights, "device": account["device"], "pinned": account["pinned"]}))
""")


def run(work, limit=None, rows=96, kind="arrays", **environment):
    environment = {**os.environ, "TANDEM_DEVICE": "gpu:0", "TANDEM_EMULATE_GPU": "1x1GiB@12GB/s", "TANDEM_VERIFY": "1", **environment}
    if limit:
        environment["TANDEM_GPU_MEMORY"] = f"{limit}B"
    return subprocess.run([sys.executable, "-c", PROGRAM, work, str(rows), kind], env=environment, capture_output=True, text=True)


def trained(work, limit=None, **environment):
    done = run(work, limit, **environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    found["lines"] = [line for line in done.stdout.splitlines() if line.startswith(("gpu:0: ", "batches in "))]
    return found


@pytest.mark.parametrize("work, share", [("cnn", 0.62), ("resnet", 0.4), ("transformer", 0.4), ("lstm", 0.5), ("mlp", 0.4)])
def test_a_network_trains_within_a_part_of_what_it_takes(work, share):
    free = trained(work)
    assert free["lines"] == []
    limit = int(free["device"]["peak"] * share)
    tight = trained(work, limit)
    assert tight["loss"] == free["loss"]
    assert tight["weights"] == free["weights"]
    assert tight["device"]["limit"] == limit
    assert tight["device"]["peak"] <= limit
    assert len(tight["lines"]) == 1 and re.match(r"gpu:0: [\d.]+ [KM]iB of [\d.]+ [KM]iB: .*predicted \+", tight["lines"][0]), tight["lines"]


def test_a_smaller_last_batch_does_not_hide_what_the_others_need():
    limit = int(trained("wide")["device"]["peak"] * 0.8)
    lines = trained("wide", limit, rows=100)["lines"]  # the last batch has 4 rows, and fits as it is
    assert len(lines) == 1 and lines[0].startswith("gpu:0: ") and "predicted +" in lines[0], lines


def test_memory_that_a_larger_batch_left_is_not_in_the_way_of_a_smaller_one():
    limit = int(trained("resnet")["device"]["peak"] * 0.4)
    assert trained("resnet", limit, rows=100)["loss"] == trained("resnet", rows=100)["loss"]


def test_state_of_three_times_the_limit_trains():
    free = trained("mlp")
    state = 3 * 4 * (6 * (192 * 192 + 192) + 193 * 10)
    tight = trained("mlp", state // 3)
    assert tight["loss"] == free["loss"] and tight["weights"] == free["weights"]
    assert tight["device"]["peak"] <= state // 3
    assert "state on the host" in tight["lines"][0]


def test_too_little_says_how_much_would_do():
    done = run("mlp", 200_000)
    assert done.returncode != 0
    error = done.stderr
    assert re.search(r"train_step: it does not fit into 196 KiB \(200000 bytes\) of gpu:0: it needs at least", error), error
    assert "largest values: " in error and "tried: computing again, results on the host" in error
    least = int(re.search(r"hint: a limit of (\d+) bytes or more", error)[1])
    assert trained("mlp", least)["device"]["peak"] <= least


def test_the_hosts_memory_has_a_limit_too():
    done = run("mlp", 400_000, TANDEM_HOST_MEMORY="300KiB")
    assert done.returncode != 0
    assert "host memory (TANDEM_HOST_MEMORY)" in done.stderr or "the host may take 300 KiB" in done.stderr, done.stderr


def close(one, other):
    for name, most in (("loss", 1e-5), ("weights", 2e-3)):  # biases near zero move as much as their gradients are rounded
        assert len(one[name]) == len(other[name])
        assert all(abs(a - b) <= most * abs(b) for a, b in zip(one[name], other[name])), (name, one[name], other[name])


def test_batches_in_parts_when_asked():
    whole, parts = trained("wide"), trained("wide", TANDEM_MICRO_BATCHES="4")
    close(parts, whole)
    assert parts["device"]["peak"] < 0.6 * whole["device"]["peak"]


def test_batches_in_parts_when_nothing_else_fits():
    limit = 700_000
    refused = run("wide", limit, TANDEM_MICRO_BATCHES="1")
    assert refused.returncode != 0 and "it does not fit into 684 KiB" in refused.stderr
    parts = trained("wide", limit)
    close(parts, trained("wide"))
    assert parts["device"]["peak"] <= limit
    assert len(parts["lines"]) == 1 and parts["lines"][0].endswith("parts, which rounds otherwise"), parts["lines"]


def test_batches_of_a_dataset_in_parts():
    parts = trained("wide", 700_000, rows=100, kind="dataset")  # the last batch has 4 rows
    close(parts, trained("wide", rows=100))
    assert parts["device"]["peak"] <= 700_000
    assert len(parts["lines"]) == 1 and parts["lines"][0].endswith("parts, which rounds otherwise"), parts["lines"]


def test_what_cannot_be_cut_says_why():
    done = run("resnet", 300_000)
    assert done.returncode != 0 and "DoesNotFitError: train_step: it does not fit into 293 KiB" in done.stderr, done.stderr
    assert re.search(r"the batches of functional\w* cannot be cut: the layer batch_normalization\w* computes with the whole batch", done.stderr), done.stderr


def test_batch_statistics_are_not_cut():
    done = run("resnet", TANDEM_MICRO_BATCHES="2")
    assert done.returncode != 0 and "cannot be cut: the layer batch_normalization" in done.stderr, done.stderr


EAGER = textwrap.dedent("""
    import json
    import numpy as np
    import tandem as tf
    from tandem import _core

    x = tf.constant(np.linspace(-1, 1, 128 * 512, dtype="float32").reshape(128, 512))
    kept = [x]
    for i in range(14):
        kept.append(kept[-1] * 0.5 + float(i))  # 256 KiB each
    y = kept[0]
    for other in kept[1:]:
        y = y + other
    sums = [float(tf.reduce_sum(k)) for k in kept]
    print(json.dumps({"sums": sums, "y": float(tf.reduce_sum(y)), "device": _core.memory_account()["device"], "pinned": _core.memory_account()["pinned"]}))
""")


def test_eager_tensors_wait_on_the_host():
    found = []
    for limit in ("1GiB", "1.25MiB"):
        environment = {**os.environ, "TANDEM_DEVICE": "gpu:0", "TANDEM_EMULATE_GPU": "1x1GiB", "TANDEM_GPU_MEMORY": limit}
        done = subprocess.run([sys.executable, "-c", EAGER], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout.splitlines()[-1]))
    free, tight = found
    assert tight["sums"] == free["sums"] and tight["y"] == free["y"]
    assert tight["device"]["peak"] <= 5 << 18 and free["device"]["peak"] > 3 << 20
    assert tight["pinned"]["peak"] > 0


SCOPE = textwrap.dedent("""
    import json
    import numpy as np
    import tandem as tf
    import keras
    from tandem import _core, memory

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((256,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(0).random((64, 256), dtype="float32"), np.arange(64) % 10
    found = {"before": memory.info("gpu:0"), "peaks": []}

    def step():
        _core.reset_peak("gpu:0")
        model.fit(x, y, batch_size=64, shuffle=False, verbose=0)
        found["peaks"].append(memory.info()["gpu:0"]["peak"])

    step()
    with memory.budget("4MiB"):
        found["within"] = memory.info("gpu:0")["limit"]
        step()  # what was on the device before goes to the host
        step()
    step()
    found["after"] = memory.info("gpu:0")["limit"]
    try:
        with memory.budget("64KiB"):
            step()
    except tf.errors.ResourceExhaustedError as e:
        found["too little"] = str(e)
    print(json.dumps(found))
""")


def test_a_budget_is_a_scope():
    environment = {**os.environ, "TANDEM_DEVICE": "gpu:0", "TANDEM_EMULATE_GPU": "1x256MiB"}
    done = subprocess.run([sys.executable, "-c", SCOPE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["before"]["limit"] == found["after"] == 256 << 20 and found["within"] == 4 << 20
    free, _, tight, again = found["peaks"]
    assert tight <= 4 << 20 < min(free, again), found["peaks"]
    assert "it does not fit into 64 KiB" in found["too little"]
