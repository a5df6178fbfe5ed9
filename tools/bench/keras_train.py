"""What bench/train does in C++, in Keras on the backend that KERAS_BACKEND names. Runs in the environment of one engine.

usage: keras_train.py WORK [--steps N] [--passes N]    time passes of `fit` and print a line of JSON
                           --wait                     before each pass print 'ready' and wait for a line; there is one for each line
       keras_train.py WORK --losses N [--tiny]         print the losses of the first N steps, from the weights and data of formula.py
"""
import argparse
import importlib.metadata
import json
import resource
import sys
import time

import formula
import keras
import numpy as np
import works

LONGEST_PASS_S = 30


def versions():
    return {name: importlib.metadata.version(name) for name in ("keras", keras.backend.backend())}


def compiled(work):
    work.model.compile(optimizer="adam", loss=work.loss, metrics=["accuracy"])
    return work.model


def losses(name, count, tiny):
    work = works.WORKS[name](tiny, dropout=False)
    model = compiled(work)
    for w in model.weights:
        w.assign(formula.weight(w.path.removeprefix("sequential/"), w.shape))
    rows = work.batch * count
    x_shape = (rows, *model.input_shape[1:])
    x = formula.integers("x", x_shape, work.words) if work.words else formula.units("x", x_shape)
    y = formula.integers("y", (rows, *work.y), work.classes)
    found = []
    for step in range(count):
        batch = slice(step * work.batch, (step + 1) * work.batch)
        found.append(model.train_on_batch(x[batch], y[batch], return_dict=True)["loss"])
        model.reset_metrics()
    return {"work": name, "engine": keras.backend.backend(), "losses": [float(f"{loss:.9g}") for loss in found],
            "versions": versions()}


class Epoch(keras.callbacks.Callback):
    """How long an epoch took, without what `fit` does before and after: on TensorFlow it often goes on for seconds."""

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds = time.perf_counter() - self.start


def times(name, steps, passes, wait):
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    work = works.WORKS[name](tiny=False, dropout=True)
    model = compiled(work)
    steps = steps or work.steps
    rows = work.batch * steps
    x_shape = (rows, *model.input_shape[1:])
    x = random.integers(0, work.words, x_shape, dtype=np.int32) if work.words else random.random(x_shape, dtype=np.float32)
    y = random.integers(0, work.classes, (rows, *work.y))

    def fit(rows):
        epoch = Epoch()
        history = model.fit(x[:rows], y[:rows], batch_size=work.batch, verbose=0, callbacks=[epoch]).history
        return epoch.seconds, history

    def next_turn():
        print("ready", flush=True)
        return sys.stdin.readline() != ""

    start = time.perf_counter()
    fit(work.batch)
    first = time.perf_counter() - start
    warm = min(4, steps)
    seconds, history = fit(warm * work.batch)
    # PyTorch needs a hundred times as long when other programs keep the cores busy; such a pass is cut short.
    steps = min(steps, max(warm, int(LONGEST_PASS_S * warm / seconds)))
    passes_ms = []
    while next_turn() if wait else len(passes_ms) < passes:
        seconds, history = fit(steps * work.batch)
        passes_ms.append(seconds * 1e3 / steps)
    return {"work": name, "engine": keras.backend.backend(), "passes_ms": passes_ms, "first_step_s": first,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "loss": history["loss"][-1],
            "accuracy": history["accuracy"][-1], "steps": steps, "versions": versions()}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("work", choices=list(works.WORKS))
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--losses", type=int, default=0)
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    if arguments.losses:
        result = losses(arguments.work, arguments.losses, arguments.tiny)
    else:
        result = times(arguments.work, arguments.steps, arguments.passes, arguments.wait)
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
