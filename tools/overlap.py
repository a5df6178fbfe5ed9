"""Whether copies are hidden behind computing: `fit` on the emulated GPU at the link rate at which a batch takes as long to copy as its step to compute.

    .venv/bin/python tools/overlap.py [--batch 256] [--rounds 5]

Prints milliseconds a step of computing alone (a link without a rate), of copying alone, and of `fit` with both, and what the larger of the two would be.
Each is a process of its own. Wants a quiet machine with two cores: one is the emulated GPU.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

STEPS = 30
FEATURES = 2048


def worker(what, batch, rounds):
    import numpy as np
    import tandem as tf

    x = np.random.RandomState(0).rand(STEPS * batch, FEATURES).astype("float32")
    y = np.zeros(STEPS * batch, "int32")
    if what == "copy":

        def run():
            for i in range(STEPS):
                with tf.device("/GPU:0"):
                    there = tf.identity(x[i * batch : (i + 1) * batch])
            return float(there[0, 0])  # which waits

    else:
        keras = tf.keras
        keras.utils.set_random_seed(0)
        layers = [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(10),
        ]
        model = keras.Sequential(layers)
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

        def run():
            model.fit(x, y, batch_size=batch, shuffle=False, verbose=0)

    run()
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        seconds.append((time.perf_counter() - begin) / STEPS)
    predicted = model.train_function.step.predicted_seconds()[0] if what == "fit" else None
    print(json.dumps([statistics.median(seconds), predicted]))


def measured(what, args, rate):
    gpu = f"1x2GiB@{rate / 1e9:.4f}GB/s" if rate else "1x2GiB"
    environment = {**os.environ, "TANDEM_EMULATE_GPU": gpu, "TANDEM_DEVICE": "gpu:0"}
    command = [sys.executable, __file__, "--worker", what, "--batch", str(args.batch), "--rounds", str(args.rounds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.batch, args.rounds)
        return
    nbytes = 4 * FEATURES * args.batch
    compute, _ = measured("fit", args, None)
    rate = nbytes / compute
    copy, _ = measured("copy", args, rate)
    both, predicted = measured("fit", args, rate)
    larger = max(copy, compute)
    print(f"a batch of {nbytes / 2**20:.1f} MiB over {rate / 1e9:.3f} GB/s, ms a step:")
    for name, seconds in (
        ("computing alone", compute),
        ("copying alone", copy),
        ("fit, both", both),
        ("the larger of the two", larger),
        ("their sum", copy + compute),
    ):
        print(f"  {name:22} {seconds * 1e3:8.2f}")
    print(f"fit takes {both / larger:.2f} times the larger; predicted were {predicted * 1e3:.2f} ms, {predicted / both - 1:+.0%}")


if __name__ == "__main__":
    main()
