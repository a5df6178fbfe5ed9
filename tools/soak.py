"""Whether memory stays flat: soak.py [--seconds N] [--seed N].

Trains, saves and loads models, calls functions with other shapes each time, and walks pipelines, over and over, each round with
other sizes. Prints the resident memory as it goes. Fails when it was more than 5 % higher in the last quarter of the time than in
the second.
"""

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import absl.logging
import numpy as np

import tandem as tf

MOST_GROWTH = 1.05
LINE_SECONDS = 10


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def data(random, rows, width):
    x = random.normal(size=(rows, width)).astype("float32")
    return x, (x.sum(axis=1) > 0).astype("int32")


def train(random, folder):
    """A model of other widths each time, with a callback, a custom metric name, and both file formats."""
    width, units = int(random.integers(4, 32)), int(random.integers(8, 64))
    x, y = data(random, int(random.integers(50, 400)), width)
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.layers.Input((width,)),
            keras.layers.Dense(units, "relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(2),
        ]
    )
    model.compile(
        random.choice(["adam", "sgd", "rmsprop"]),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        x,
        y,
        epochs=2,
        batch_size=32,
        validation_split=0.2,
        verbose=0,
        callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)],
    )
    found = model.evaluate(x, y, verbose=0)
    before = model.predict(x, verbose=0)
    for name in ("model.keras", "model.h5")[: int(random.integers(1, 3))]:
        model.save(folder / name)
        again = keras.models.load_model(folder / name)
        np.testing.assert_allclose(again.predict(x, verbose=0), before, rtol=1e-5, atol=1e-6)
    assert np.isfinite(found).all()


class Functions:
    """Functions that live as long as the process and see other shapes for ever, and one of each round."""

    def __init__(self):
        self.weight = tf.Variable(tf.ones((8, 8)))
        self.traced_for_each = tf.function(self._step)
        self.traced_once = tf.function(self._step, reduce_retracing=True)

    def _step(self, x, scale):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ self.weight) * scale)
        self.weight.assign_sub(0.01 * tape.gradient(loss, self.weight))
        return loss

    def __call__(self, random, folder):
        for _ in range(4):
            self.traced_once(tf.ones((int(random.integers(1, 1000)), 8)), tf.constant(2.0))
            # Each shape and each of Python's numbers makes a trace, which the function keeps: there are few of them.
            self.traced_for_each(tf.ones((int(random.integers(1, 9)), 8)), int(random.integers(0, 4)))
        factor = float(random.normal())

        @tf.function
        def own(n):
            total = tf.constant(0.0)
            while n > 0:
                total += factor * tf.cast(n, "float32")
                n -= 1
            return total

        assert np.isfinite(own(tf.constant(int(random.integers(1, 50)))))


def walk(random, folder):
    """Sources of several kinds, traced and called functions, caches, and an iterator that is left in the middle."""
    rows = int(random.integers(100, 1000))
    x, y = data(random, rows, 4)
    pipe = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).map(lambda a, b: (a * 2, b), num_parallel_calls=2)
    pipe = pipe.batch(int(random.integers(8, 64))).cache().repeat(2).prefetch(2)
    assert sum(int(b.shape[0]) for _, b in pipe) == 2 * rows
    next(iter(pipe))
    numbers = tf.data.Dataset.from_generator(lambda: iter(range(rows)), output_signature=tf.TensorSpec((), "int64"))
    assert (
        sum(int(v) for v in numbers.map(lambda v: tf.py_function(lambda e: e + 1, [v], "int64")).prefetch(4))
        == rows * (rows + 1) // 2
    )
    file = folder / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(file)) as writer:
        for row in x[:50]:
            writer.write(row.tobytes())
    assert len(list(tf.data.TFRecordDataset(str(file)).interleave(tf.data.Dataset.from_tensors, cycle_length=2))) == 50


def quarter(samples, seconds, number):
    return statistics.mean(mb for at, mb in samples if number * seconds / 4 <= at <= (number + 1) * seconds / 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="./dev soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.seconds < 40:
        parser.error(f"--seconds {options.seconds:g} is too short to compare quarters of, give at least 40")
    absl.logging.set_verbosity(absl.logging.ERROR)  # Keras's advice to save in another format
    random, works = np.random.default_rng(options.seed), [train, Functions(), walk]
    samples, rounds, start, line = [], 0, time.monotonic(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        while (passed := time.monotonic() - start) < options.seconds:
            works[rounds % len(works)](random, Path(folder))
            rounds += 1
            gc.collect()
            samples.append((time.monotonic() - start, resident_mb()))
            if passed >= line:
                now = samples[-1][1]
                print(f"{passed:6.0f} of {options.seconds:.0f} s  {rounds:6d} rounds  {now:7.1f} MB resident", flush=True)
                line = passed + LINE_SECONDS
    second, last = (quarter(samples, options.seconds, n) for n in (1, 3))
    growth = 100 * (last / second - 1)
    print(f"{rounds} rounds; resident memory in the second quarter {second:.1f} MB, in the last {last:.1f} MB: {growth:+.1f} %")
    if last > MOST_GROWTH * second:
        sys.exit(f"soak: memory grew by more than {100 * (MOST_GROWTH - 1):.0f} %")


if __name__ == "__main__":
    main()
