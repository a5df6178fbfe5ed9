"""Profiles: a fit on an emulated GPU, tf.profiler.experimental, TensorBoard's profile_batch, TANDEM_PROFILE."""
import gzip
import json
import os
import subprocess
import sys

import pytest

STEPS, EPOCHS, BATCH, FEATURES = 6, 2, 32, 64

TRAIN = f"""
import numpy as np
import tandem as tf
import keras

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input(({FEATURES},)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x = np.random.default_rng(0).normal(size=({STEPS * BATCH}, {FEATURES})).astype("float32")
y = np.arange({STEPS * BATCH}) % 10
"""
FIT = f"model.fit(x, y, batch_size={BATCH}, epochs={EPOCHS}, verbose=0"


def run(program, folder, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stderr


class Trace:
    """The events of a trace file, by process and thread."""

    def __init__(self, text):
        events = json.loads(text)["traceEvents"]
        self.processes = {e["pid"]: e["args"]["name"].split(" (")[0] for e in events if e["name"] == "process_name"}
        self.threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.blocks = [e for e in events if e["ph"] == "X"]
        self.counters = [e for e in events if e["ph"] == "C"]

    def on(self, process, thread):
        found = [e for e in self.blocks if self.processes[e["pid"]] == process and self.threads[e["pid"], e["tid"]] == thread]
        return sorted(found, key=lambda e: e["ts"])

    def of(self, kind):
        return [e for e in self.blocks if e["cat"] == kind]


@pytest.fixture(scope="module")
def fit_on_gpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    program = TRAIN + f"{FIT})\nfrom tandem import _profile\n_profile.start('fit')\n{FIT})\nprint(_profile.stop())"
    said = run(program, folder, TANDEM_EMULATE_GPU="1x256MiB@1GB/s", TANDEM_DEVICE="gpu:0")
    return folder, said


def test_fit_on_an_emulated_gpu(fit_on_gpu):
    folder, said = fit_on_gpu
    assert "tandem: profile: wrote fit.html, fit.json" in said
    trace = Trace((folder / "fit.json").read_text())
    steps = trace.of("step")
    assert [e["name"] for e in steps] == [f"step {i}" for _ in range(EPOCHS) for i in range(STEPS)]

    # Kernels one after the other, each with its name and line, and no longer than the whole.
    kernels = [e for e in trace.on("gpu:0", "compute") if e["cat"] == "launch"]
    assert len(kernels) >= STEPS * EPOCHS * 4
    for before, after in zip(kernels, kernels[1:]):
        assert before["ts"] + before["dur"] <= after["ts"] + 1
    whole = max(e["ts"] + e["dur"] for e in trace.blocks) - min(e["ts"] for e in trace.blocks)
    assert 0 < sum(e["dur"] for e in kernels) <= whole
    products = [e for e in kernels if e["args"].get("flops", 0) >= 2 * BATCH * FEATURES * 128]
    assert len(products) >= STEPS * EPOCHS * 2  # forward, and the gradient of the kernel

    # Each batch crosses once: all rows, twice, and the labels. At the rate of the link or below.
    uploads = [e for e in trace.of("upload") if trace.processes[e["pid"]] == "gpu:0"]
    batches = [e for e in uploads if e["args"]["bytes"] == BATCH * FEATURES * 4]
    assert len(batches) == STEPS * EPOCHS
    for e in batches:
        assert e["args"]["GB/s"] <= 1.01
        assert e["dur"] >= 1e6 * BATCH * FEATURES * 4 / 1e9 * 0.99
    assert trace.on("gpu:0", "upload")
    assert any(e["name"] == "gpu:0 memory" and 0 < e["args"]["bytes"] <= 256 << 20 for e in trace.counters)


def test_the_page_of_it(fit_on_gpu):
    html = (fit_on_gpu[0] / "fit.html").read_text()
    for part in ("Advice", "Timeline", "Kernels by time", "Transfers", "Waiting", "gpu:0", "matmul", "upload", "step 2"):
        assert part in html, part
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in html


def test_tf_profiler_writes_below_the_logdir(tmp_path):
    run(
        TRAIN
        + """
from tandem import errors
with tf.profiler.experimental.Profile("logs"):
    for step in range(3):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            model.train_on_batch(x[:32], y[:32])
        with tf.profiler.experimental.Trace("between"):
            pass
    try:
        tf.profiler.experimental.start("logs")
    except errors.AlreadyExistsError as e:
        assert str(e) == "Another profiler is running."
    else:
        raise AssertionError("two profiles at once")
try:
    tf.profiler.experimental.stop()
except errors.UnavailableError as e:
    assert str(e) == "Cannot export profiling results. No profiler is running."
else:
    raise AssertionError("none is running")
tf.profiler.experimental.start("none", tf.profiler.experimental.ProfilerOptions(python_tracer_level=1))
tf.profiler.experimental.stop(save=False)
import os
assert not os.path.exists("none")
""",
        tmp_path,
    )
    (folder,) = (tmp_path / "logs" / "plugins" / "profile").iterdir()
    (packed,) = folder.glob("*.trace.json.gz")
    (page,) = folder.glob("*.html")
    trace = Trace(gzip.decompress(packed.read_bytes()))
    assert [e["name"] for e in trace.of("step")] == ["step 0", "step 1", "step 2"]
    assert [e["name"] for e in trace.of("annotation")] == ["between"] * 3
    assert trace.of("launch")
    assert "step 1" in page.read_text()


def test_tensorboard_profile_batch(tmp_path):
    pytest.importorskip("tensorboard")
    alias = "from tandem import _alias\n_alias.install()\n"  # as `tandem run`: the callback imports tensorflow.summary
    run(alias + TRAIN + f"{FIT}, callbacks=[keras.callbacks.TensorBoard('logs', profile_batch=(3, 5))])", tmp_path)
    (folder,) = (tmp_path / "logs" / "train" / "plugins" / "profile").iterdir()
    (packed,) = folder.glob("*.trace.json.gz")
    steps = Trace(gzip.decompress(packed.read_bytes())).of("step")
    assert len(steps) == 3


def test_a_slow_pipeline_and_callbacks_are_seen(tmp_path):
    run(
        TRAIN
        + f"""
import time
from tandem import _profile

def batches():
    for i in range({STEPS}):
        time.sleep(0.02)
        yield x[i * {BATCH} : (i + 1) * {BATCH}], y[i * {BATCH} : (i + 1) * {BATCH}]

class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)

types = (tf.TensorSpec((None, {FEATURES}), "float32"), tf.TensorSpec((None,), "int64"))
data = tf.data.Dataset.from_generator(batches, output_signature=types)
model.fit(data, verbose=0, callbacks=[Slow()])
_profile.start("slow")
model.fit(data, verbose=0, callbacks=[Slow()])
_profile.stop()
""",
        tmp_path,
    )
    trace = Trace((tmp_path / "slow.json").read_text())
    assert sum(e["dur"] for e in trace.of("pipeline")) >= 0.9e6 * STEPS * 0.02
    assert sum(e["dur"] for e in trace.of("callback")) >= 0.9e6 * (STEPS - 1) * 0.01
    assert "The input pipeline is too slow" in (tmp_path / "slow.html").read_text()


def test_summary_traces(tmp_path):
    run(
        """
import tandem as tf
x = tf.ones([8])
try:
    tf.summary.trace_export("early", step=0)
except ValueError as e:
    assert str(e) == "Must enable trace before export through tf.summary.trace_on."
else:
    raise AssertionError("no trace is on")
tf.summary.trace_on(graph=True, profiler=True, profiler_outdir="logs")
x + 1.
with tf.summary.create_file_writer("logs").as_default():
    tf.summary.trace_export("trace", step=0)
tf.summary.trace_on(profiler=True, profiler_outdir="none")
tf.summary.trace_off()
""",
        tmp_path,
    )
    assert len(list((tmp_path / "logs" / "plugins" / "profile").iterdir())) == 1
    assert not (tmp_path / "none").exists()


def test_environment(tmp_path):
    said = run("import tandem as tf\nprint(tf.reduce_sum(tf.ones([8, 8]) + 1.))", tmp_path, TANDEM_PROFILE="whole.json")
    assert "tandem: TANDEM_PROFILE: wrote whole.json" in said
    trace = Trace((tmp_path / "whole.json").read_text())
    assert any(e["name"].startswith("add") or e["name"].startswith("reduce") or "sum" in e["name"] for e in trace.of("launch"))
    done = subprocess.run(
        [sys.executable, "-c", "import tandem as tf\ntf.ones([2])"],
        cwd=tmp_path,
        env={**os.environ, "TANDEM_PROFILE": "/proc/none/x.html"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "/proc/none/x.html" in done.stderr


def test_host_functions_are_seen(tmp_path):
    run(
        """
import tandem as tf
from tandem import _profile

@tf.function
def f(x):
    tf.print('x', tf.reduce_sum(x), output_stream='file://said.txt')
    return x * 3.

x = tf.ones([64, 64])
f(x)
_profile.start("host.json")
f(x)
_profile.stop()
""",
        tmp_path,
    )
    trace = Trace((tmp_path / "host.json").read_text())
    assert trace.of("callback")
    assert not trace.of("compile")
