"""What a memory limit costs: four networks on the emulated GPU at parts of what they take without one.

    .venv/bin/python tools/budget_table.py [--works cnn,lstm] [--shares 60,25] [--steps 20] [--write]

Each run is a process of its own; those of a network take turns, so that a busy machine slows all alike. The losses of all steps are compared bit for bit
with those without a limit, and the measured peak with the limit. Then `fit` runs as many steps an epoch, as programs do: its fastest epoch is the measured time
of a step, beside what was predicted for it. --write makes docs/performance/budget.md and budget.svg.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKS = ("cnn", "resnet", "transformer", "lstm")
SHARES = (100, 60, 40, 25, 15)
MODES = {"all": "recompute,offload,state", "computed again only": "recompute", "host only": "offload,state"}
BASELINES = {"sqrt(n) kept": "sqrt", "all offloaded": "offload_all"}  # without a limit: each is one point
EPOCHS = 5  # of which the fastest counts


# --- one run, in its own process ----------------------------------------------------------------------------------------------------------


def network(work, keras):
    layers = keras.layers
    if work == "cnn":
        return keras.Sequential(
            [layers.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(2),
             layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dropout(0.5), layers.Dense(10)]
        )  # fmt: skip
    if work == "resnet":
        i = layers.Input((24, 24, 3))
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(12, 3, padding="same", use_bias=False)(i)))
        for filters, step in ((12, 1), (12, 1), (24, 2), (24, 1)):
            y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 3, strides=step, padding="same", use_bias=False)(x)))
            y = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same", use_bias=False)(y))
            if step != 1:
                x = layers.BatchNormalization()(layers.Conv2D(filters, 1, strides=step, use_bias=False)(x))
            x = layers.ReLU()(layers.Add()([x, y]))
        return keras.Model(i, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    if work == "transformer":
        i = layers.Input((64,), dtype="int32")
        x = layers.Embedding(2000, 96)(i)
        for _ in range(3):
            x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 24)(x, x))
            x = layers.LayerNormalization()(x + layers.Dense(96)(layers.Dense(384, activation="gelu")(x)))
        return keras.Model(i, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    return keras.Sequential([layers.Input((40,), dtype="int32"), layers.Embedding(4000, 48), layers.LSTM(96), layers.Dense(10)])


def worker(work, steps):
    import tandem  # noqa: F401  (the backend)
    import keras
    import numpy as np
    from tandem import _core

    keras.utils.set_random_seed(0)
    model = network(work, keras)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.RandomState(0)
    shape = model.input_shape[1:]
    rows = 32
    x = random.randint(0, 2000, (rows, *shape)) if len(shape) == 1 else random.rand(rows, *shape).astype("float32")
    y = random.randint(0, 10, rows)
    losses = []
    for step in range(steps):
        losses.append(float(model.train_on_batch(x, y)))
        if step == 0:
            first_peak = _core.memory_account(reset=True)["device"]["peak"]
    seconds = epoch_seconds(model, np.concatenate([x] * steps), np.concatenate([y] * steps), rows)
    account = _core.memory_account()
    step = model.train_function.step
    lines = step.budget_summaries()
    print(json.dumps({
        "losses": [x.hex() for x in losses], "ms": min(seconds) / steps * 1e3, "predicted_ms": max(step.predicted_seconds()) * 1e3,
        "peak": max(first_peak, account["device"]["peak"]), "pinned": account["pinned"]["peak"], "line": lines[0] if lines else "",
    }))  # fmt: skip


def epoch_seconds(model, x, y, rows):
    """Of each epoch: nobody reads a loss while its steps run."""
    import keras

    times = []

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            times.append(-time.perf_counter())

        def on_epoch_end(self, epoch, logs=None):
            float(logs["loss"])
            times[-1] += time.perf_counter()

    model.fit(x, y, batch_size=rows, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Clock()])
    return times


# --- all of them --------------------------------------------------------------------------------------------------------------------------


def run(work, steps, limit=None, means=None):
    """What the worker found, or the error's text."""
    environment = {**os.environ, "TANDEM_DEVICE": "gpu:0", "TANDEM_EMULATE_GPU": "1x4GiB@12GB/s"}
    if limit:
        environment["TANDEM_GPU_MEMORY"] = f"{limit}B"
    if means:
        environment["TANDEM_PLAN_MEANS"] = means
    done = subprocess.run([sys.executable, __file__, "--worker", work, "--steps", str(steps)], env=environment, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr


def row(work, steps, mode, free, found, limit, is_least=False):
    """Of one run, with one without a limit right after it for the ratio."""
    again = run(work, steps)
    made = {
        "work": work, "mode": mode, "limit": limit, "share": round(100 * limit / free["peak"]), "unlimited": free["peak"], "peak": found["peak"],
        "pinned": found["pinned"], "same": found["losses"] == free["losses"], "is_least": is_least, "line": found["line"],
        "predicted": percent(found["predicted_ms"], free["predicted_ms"]), "measured": percent(found["ms"], again["ms"]),
        "predicted_ms": found["predicted_ms"], "ms": found["ms"], "error": percent(found["predicted_ms"], found["ms"]),
    }  # fmt: skip
    print(made, flush=True)
    assert made["same"], "other losses than without a limit"
    return made


def table(works, shares, steps):
    rows = []
    for work in works:
        free = run(work, steps)
        if isinstance(free, str):
            raise SystemExit(f"{work}: {free}")
        for share in shares:
            for mode, means in MODES.items():
                if share == 100 and mode != "all":
                    continue
                limit = free["peak"] * share // 100
                found = run(work, steps, limit, means)
                least = re.search(r"hint: a limit of (\d+) bytes", found) if isinstance(found, str) else None
                if least:  # less than is possible: what the error says does
                    limit = int(least[1])
                    found = run(work, steps, limit, means)
                if isinstance(found, str):
                    raise SystemExit(f"{work}, {share} %, {mode}: {found}")
                rows.append(row(work, steps, mode, free, found, limit, bool(least)) | {"share": share})
                assert found["peak"] <= limit, "more than the limit"
        for mode, means in BASELINES.items():
            found = run(work, steps, means=means)
            if isinstance(found, str):
                raise SystemExit(f"{work}, {mode}: {found}")
            rows.append(row(work, steps, mode, free, found, found["peak"]))
    return rows


def percent(a, b):
    return round((a / b - 1) * 100)


def mib(n):
    return f"{n / 2**20:.1f}"


def markdown(rows, steps):
    text = (
        "# What a memory limit costs\n\n"
        f"Made by `tools/budget_table.py --write`: {steps} steps of each network on the emulated GPU (one core of the CPU, a link of 12 GB/s), at parts of the\n"
        "memory that it takes without a limit. Losses are the same, bit for bit, in every row, and no peak is above its limit; the tool stops otherwise.\n"
        "Measured is a step of `fit`'s fastest epoch; the slowdown is that beside a run without a limit right after it. Predicted is what `tandem.explain` says, and error how\n"
        "far that is from the measured time; the machine had other work, so a few percent mean nothing.\n"
        "Where less than the least was asked for, the row is for the least (marked *).\n\n"
        "`computed again only` has nothing but recomputation, `host only` nothing but results and state on the host. The last two of each network are what others do, on the\n"
        "same engine and without a limit: of the values that the backward pass reads every sqrt(n)-th is kept, or all of them go to the host and come back.\n\n"
        "![slowdown against memory](budget.svg)\n\n"
        "| network | limit | MiB | peak MiB | on the host MiB | means | predicted | measured | predicted ms | measured ms | error | what was done |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    for r in rows:
        done = r["line"].split(": ", 2)[-1].rsplit(", predicted", 1)[0] if r["line"] else "fits" if r["mode"] in MODES else ""
        text += (
            f"| {r['work']} | {r['share']} %{'*' if r['is_least'] else ''} | {mib(r['limit'])} | {mib(r['peak'])} | {mib(r['pinned'])} | {r['mode']} "
            f"| {r['predicted']:+} % | {r['measured']:+} % | {r['predicted_ms']:.2f} | {r['ms']:.2f} | {r['error']:+} % | {done} |\n"
        )
    return text


def svg(rows):
    width, height, left, bottom = 720, 360, 60, 40
    most = max(20, *(r["measured"] for r in rows))
    colors = dict(zip(WORKS, ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")))
    dashes = dict(zip(MODES, ("", "6 3", "2 3")))

    def place(share, slowdown):
        return left + (width - left - 20) * share / 100, 20 + (height - bottom - 20) * (1 - max(slowdown, 0) / most)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for share in range(0, 101, 20):
        x, y = place(share, 0)
        parts.append(f'<line x1="{x}" y1="20" x2="{x}" y2="{y}" stroke="#ddd"/><text x="{x}" y="{y + 16}" text-anchor="middle">{share} %</text>')
    for i in range(5):
        x, y = place(0, most * i / 4)
        parts.append(f'<line x1="{x}" y1="{y}" x2="{width - 20}" y2="{y}" stroke="#ddd"/><text x="{x - 6}" y="{y + 4}" text-anchor="end">+{most * i // 4} %</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">memory, of what it takes without a limit</text>')
    for w, work in enumerate(dict.fromkeys(r["work"] for r in rows)):
        for mode in MODES:
            points = sorted({(100 * r["limit"] / r["unlimited"], r["measured"]) for r in rows if r["work"] == work and r["mode"] == mode})
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*p) for p in points))
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colors[work]}" stroke-width="2" stroke-dasharray="{dashes[mode]}"/>')
        for mode, shape in zip(BASELINES, ("sqrt", "all")):
            for r in rows:
                if r["work"] == work and r["mode"] == mode:
                    x, y = place(100 * r["peak"] / r["unlimited"], r["measured"])
                    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colors[work]}"/><text x="{x + 5:.1f}" y="{y:.1f}" font-size="9">{shape}</text>')
        parts.append(f'<text x="{width - 120}" y="{34 + 16 * w}" fill="{colors[work]}">{work}</text>')
    for m, mode in enumerate(MODES):
        y = 100 + 16 * m
        parts.append(f'<line x1="{width - 200}" y1="{y}" x2="{width - 170}" y2="{y}" stroke="#333" stroke-width="2" stroke-dasharray="{dashes[mode]}"/>')
        parts.append(f'<text x="{width - 164}" y="{y + 4}">{mode}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--worker")
    args = parser.parse_args()
    if args.worker:
        return worker(args.worker, args.steps)
    rows = table(args.works.split(","), [int(s) for s in args.shares.split(",")], args.steps)
    text = markdown(rows, args.steps)
    print(text)
    if args.write:
        (ROOT / "docs/performance/budget.md").write_text(text)
        (ROOT / "docs/performance/budget.svg").write_text(svg(rows))


if __name__ == "__main__":
    main()
