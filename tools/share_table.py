"""What TandemStrategy gains when the CPU and a GPU share each batch: share_table.py [NETWORK...] [--rounds N] [--json FILE].

The GPU is an emulated one, and each of the two has one core of its own: TANDEM_CORES is the first core, TANDEM_EMULATE_GPU takes the last one. The same network,
from the same weights and data, trains by `fit` on the CPU alone, on the GPU alone, and on both, in turn; each time is the best epoch after a warm-up. What two equal
devices can reach at most is twice one of them, so the table also says how the two stand to each other: a network is balanced where their times are within a
quarter. Nothing is slowed to make it so. The networks were chosen for it: our kernels for products on the CPU are faster than PoCL's, while what is generated
for elements of rows runs about alike, so `rows` and `deep_rows` do much of that between small products, and `mlp` shows what products alone give.

Shares, losses and ratios are printed; with --check the exit code is 1 when a balanced network gains less than 1.6 times the faster of both alone, or losses differ by
more than 1e-4 of themselves. Needs `./dev setup`, PoCL and two cores that nobody else uses."""

import argparse
import json
import os
import subprocess
import sys

LEAST_GAIN, BALANCED, LOSSES = 1.6, 1.25, 1e-4
BATCH, BATCHES = 512, 8
WAYS = {"cpu": "/CPU:0", "gpu": "/GPU:0", "both": None}


def networks():
    import keras
    from keras import layers

    def rows(width, blocks, functions):
        x = y = keras.Input((width,))
        for _ in range(blocks):
            y = layers.Dense(width)(y)
            for f in functions:
                y = layers.Activation(f)(y)
            y = layers.LayerNormalization()(y)
        return keras.Model(x, layers.Dense(10)(y))

    def mlp():
        x = keras.Input((512,))
        y = layers.Dense(1024, activation="relu")(x)
        y = layers.Dense(1024, activation="relu")(y)
        return keras.Model(x, layers.Dense(10)(y))

    return {
        "rows": lambda: rows(256, 4, ["tanh", "softmax", "gelu", "tanh", "sigmoid", "softplus"]),
        "deep_rows": lambda: rows(64, 10, ["tanh", "gelu", "softplus", "tanh", "sigmoid", "tanh"]),
        "mlp": mlp,
    }


def measured(name, rounds):
    """Runs in a process of its own, which has the variables."""
    import time

    import numpy as np
    import keras
    import tandem as tf

    make = networks()[name]
    width = make().input_shape[1]
    random = np.random.default_rng(0)
    x = random.standard_normal((BATCH * BATCHES, width), dtype=np.float32)
    y = random.integers(0, 10, len(x))
    models, shares = {}, {}
    for way, device in WAYS.items():
        keras.utils.set_random_seed(1)
        strategy = tf.distribute.OneDeviceStrategy(device) if device else tf.distribute.TandemStrategy()
        with strategy.scope():
            model = make()
            model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        models[way] = model, strategy
    found = {way: {"ms": float("inf"), "losses": []} for way in WAYS}
    for round_ in range(rounds + 1):
        for way, (model, strategy) in models.items():
            start = time.perf_counter()
            history = model.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
            ms = (time.perf_counter() - start) * 1e3 / BATCHES
            found[way]["losses"].append(history.history["loss"][0])
            if round_ > 0:
                found[way]["ms"] = min(found[way]["ms"], ms)
            if way == "both":
                shares = strategy.shares
    return {"network": name, "ways": found, "shares": {k[-5:]: v for k, v in shares.items()}}


def environment():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("share_table: it needs two cores, one for each device")
    return {**os.environ, "TANDEM_CORES": str(cores[0]), "TANDEM_DATA_CORES": str(cores[0]), "TANDEM_EMULATE_GPU": "1x2GiB", "TANDEM_DEVICE": "", "TANDEM_PLACEMENT": "cost"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help="rows, deep_rows, mlp (default: all)")
    parser.add_argument("--rounds", type=int, default=7, help="epochs of each way that are timed, in turn (default 7)")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--check", action="store_true", help=f"fail below {LEAST_GAIN} where the devices are balanced")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.rounds)))
        return
    print("| network | CPU ms | GPU ms | both ms | shares | gain | largest difference of losses |\n|---|---|---|---|---|---|---|")
    rows, problems = [], []
    for name in options.networks or ["rows", "deep_rows", "mlp"]:
        done = subprocess.run([sys.executable, __file__, "--one", name, "--rounds", str(options.rounds)], env=environment(), stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"share_table: {name} failed")
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        cpu, gpu, both = (row["ways"][way]["ms"] for way in WAYS)
        gain = min(cpu, gpu) / both
        losses = [row["ways"][way]["losses"] for way in WAYS]
        off = max(abs(a - b) / abs(a) for other in losses[1:] for a, b in zip(losses[0], other))
        shares = ", ".join(f"{device} {share:.2f}" for device, share in row["shares"].items())
        print(f"| {name} | {cpu:.1f} | {gpu:.1f} | {both:.1f} | {shares} | {gain:.2f} | {off:.1e} |", flush=True)
        if max(cpu, gpu) / min(cpu, gpu) <= BALANCED and gain < LEAST_GAIN:
            problems.append(f"{name} gains {gain:.2f}, not {LEAST_GAIN}")
        if off > LOSSES:
            problems.append(f"{name}: losses differ by {off:.1e}, more than {LOSSES:.0e}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    for problem in problems:
        print(f"share_table: {problem}")
    sys.exit(1 if options.check and problems else 0)


if __name__ == "__main__":
    main()
