"""What TandemStrategy gains when the CPU and a GPU share each batch: share_table.py [NETWORK...] [--rounds N] [--json FILE] [--check].

The GPU is an emulated one, and each of the two has one core of its own: TANDEM_CORES is the first core, TANDEM_EMULATE_GPU takes the last one. The same network,
from the same weights and data, trains by `fit` on the CPU alone, on the GPU alone, and on both, in turn; each time is the best epoch after a warm-up. Two devices
of one speed reach at most twice one of them, so the table says how the two stand to each other, too, and a network counts as balanced where their times are within
a half. On a core with AVX-512, our kernels for products are more than twice as fast as PoCL's; so the cpu device runs as on a processor without it
(TANDEM_CPU_ISA=avx2, or --isa), which brings both to about the same rate of products. What is generated for functions of elements stays slower on PoCL, so the networks are
products in the main: `wide` large ones, `deep` more of smaller ones. Nothing is slowed down but by that one setting.

Shares, losses and ratios are printed; with --check the exit code is 1 when a balanced network gains less than 1.6 times the faster of both alone, none is balanced, or
losses differ by more than 1e-4 of themselves. Needs `./dev setup`, PoCL and two cores that nobody else uses."""

import argparse
import json
import os
import subprocess
import sys

LEAST_GAIN, BALANCED, LOSSES = 1.6, 1.5, 1e-4
BATCH, BATCHES = 1024, 4
WAYS = {"cpu": "/CPU:0", "gpu": "/GPU:0", "both": None}


def networks():
    import tandem  # noqa: F401 (before Keras, whose backend it is)
    import keras
    from keras import layers

    def products(inputs, *widths):
        x = y = keras.Input((inputs,))
        for width in widths:
            y = layers.Dense(width, activation="relu")(y)
        return keras.Model(x, layers.Dense(10)(y))

    return {"wide": lambda: products(1024, 2048, 2048), "deep": lambda: products(512, *[1024] * 5)}


def measured(name, rounds):
    """Runs in a process of its own, which has the variables."""
    import time

    import numpy as np
    import tandem as tf
    import keras

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


def environment(isa):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("share_table: it needs two cores, one for each device")
    return {**os.environ, "TANDEM_CPU_ISA": isa, "TANDEM_CORES": str(cores[0]), "TANDEM_EMULATE_GPU": "1x2GiB", "TANDEM_DEVICE": "", "TANDEM_PLACEMENT": "cost"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help="wide, deep (default: both)")
    parser.add_argument("--rounds", type=int, default=7, help="epochs of each way that are timed, in turn (default 7)")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--check", action="store_true", help=f"fail below {LEAST_GAIN} where the devices are balanced")
    parser.add_argument("--isa", default="avx2", help="vectors of the cpu device, as TANDEM_CPU_ISA (default avx2)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.rounds)))
        return
    print("| network | CPU ms | GPU ms | both ms | shares | gain | largest difference of losses |\n|---|---|---|---|---|---|---|")
    rows, problems, balanced = [], [], 0
    for name in options.networks or ["wide", "deep"]:
        done = subprocess.run([sys.executable, __file__, "--one", name, "--rounds", str(options.rounds)], env=environment(options.isa), stdout=subprocess.PIPE, text=True)
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
        is_balanced = max(cpu, gpu) / min(cpu, gpu) <= BALANCED
        balanced += is_balanced
        if is_balanced and gain < LEAST_GAIN:
            problems.append(f"{name} gains {gain:.2f}, not {LEAST_GAIN}")
        if off > LOSSES:
            problems.append(f"{name}: losses differ by {off:.1e}, more than {LOSSES:.0e}")
    if balanced == 0:
        problems.append("the devices are not about as fast as each other in any network")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    for problem in problems:
        print(f"share_table: {problem}")
    sys.exit(1 if options.check and problems else 0)


if __name__ == "__main__":
    main()
