"""Input pipelines of Tandem beside tf.data, in turns on the same machine: `python3 tools/bench/data_peers.py [--quick] [--plot FILE]`.

Elements a second of map+batch+prefetch and shuffle+batch+prefetch over [200000, 100] float32 with batches of 128, of reading TFRecords and
of decoding JPEG files, the last also against the number of threads. Builds nothing: `cmake --build build/release --target bench_data` comes
first. tf.data is measured with the Python of $TANDEM_BENCH_ENVS/tensorflow (default ~/.cache/tandem/bench).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build/release/bench/data"
ENVIRONMENTS = pathlib.Path(os.environ.get("TANDEM_BENCH_ENVS", "~/.cache/tandem/bench")).expanduser()
RECORDS, RECORD_BYTES, IMAGES = 200_000, 400, 64

# What runs in the other engine's Python. argv: work, threads with commas between (-1: AUTOTUNE), files. Prints one number for each.
PEER = r'''
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf
work, files = sys.argv[1], sys.argv[3:]
auto, D = tf.data.AUTOTUNE, tf.data.Dataset
if work == "prepare":
    folder = files[0]
    rng = np.random.default_rng(0)
    with tf.io.TFRecordWriter(f"{folder}/records") as w:
        for _ in range(int(files[1])): w.write(rng.bytes(int(files[2])))
    y, x = np.mgrid[0:224, 0:224]
    for i in range(int(files[3])):
        picture = np.stack([x + i, y + 2 * i, x + y], -1) + rng.integers(0, 40, (224, 224, 3))
        tf.io.write_file(f"{folder}/{i:03}.jpg", tf.io.encode_jpeg(np.clip(picture, 0, 255).astype(np.uint8), quality=90))
    sys.exit()
def pipeline(calls):
    if work == "tfrecord": return tf.data.TFRecordDataset(files).batch(128)
    if work == "jpeg": return D.list_files(files[0], shuffle=False).repeat(8).map(lambda p: tf.io.decode_jpeg(tf.io.read_file(p), 3), num_parallel_calls=calls).batch(32)
    rows = D.from_tensor_slices(np.random.rand(200000, 100).astype(np.float32))
    return rows.shuffle(10000).batch(128) if work == "shuffle_batch" else rows.map(lambda r: (r - 0.5) * 2.0, num_parallel_calls=calls).batch(128)
for parallel in map(int, sys.argv[2].split(",")):  # -1 is AUTOTUNE
    d, best = pipeline(parallel).prefetch(auto), 0
    for _ in range(2 if work == "map_batch" else 3):
        t = time.perf_counter(); n = 0
        for b in d: n += int(b.shape[0])
        best = max(best, n / (time.perf_counter() - t))
    print(best)
'''


def tandem(work, parallel, *files):
    out = subprocess.run([PROGRAM, work, str(parallel), *files], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["per_second"]


def tf_data(work, threads, *files):
    python = ENVIRONMENTS / "tensorflow/bin/python"
    run = subprocess.run([python, "-c", PEER, work, ",".join(map(str, threads)), *map(str, files)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"tf.data could not be measured:\n{run.stderr[-2000:]}")
    return [float(line) for line in run.stdout.split()]


def plot(series, title, file):
    """Lines over numbers of threads as SVG, written by hand: no library is needed to draw four of them."""
    width, height, left, bottom = 640, 360, 80, 50
    threads = sorted({t for points in series.values() for t in points})
    most = max(v for points in series.values() for v in points.values()) * 1.1
    x = lambda t: left + (width - left - 150) * (threads.index(t) / max(1, len(threads) - 1))
    y = lambda v: height - bottom - (height - bottom - 40) * v / most
    colours = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/><text x="{left}" y="22" font-size="14">{title}</text>']
    for i in range(5):
        v = most * i / 4
        out.append(f'<line x1="{left}" x2="{width - 150}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:,.0f}</text>')
    for t in threads:
        out.append(f'<text x="{x(t):.1f}" y="{height - bottom + 18}" text-anchor="middle">{t}</text>')
    out.append(f'<text x="{(left + width - 150) / 2}" y="{height - 10}" text-anchor="middle">parallel calls</text>')
    for (name, points), colour in zip(series.items(), colours):
        line = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in sorted(points.items()))
        last = sorted(points.items())[-1]
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(t):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for t, v in points.items()]
        out.append(f'<text x="{x(last[0]) + 8:.1f}" y="{y(last[1]) + 4:.1f}" fill="{colour}">{name}</text>')
    file.write_text("\n".join(out) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round and no plot")
    parser.add_argument("--only-plot", action="store_true", help="no table")
    parser.add_argument("--plot", type=pathlib.Path, default=ROOT / "docs/data_throughput.svg")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else 2
    with tempfile.TemporaryDirectory() as folder:
        tf_data("prepare", [0], folder, RECORDS, RECORD_BYTES, IMAGES)
        files = {"tfrecord": [f"{folder}/records"], "jpeg": [f"{folder}/*.jpg"]}
        print(f"{'work':15} {'tandem /s':>12} {'tf.data /s':>12} {'ratio':>7}")
        for work in () if arguments.only_plot else ("map_batch", "shuffle_batch", "tfrecord", "jpeg"):
            ours = max(tandem(work, -1, *files.get(work, [])) for _ in range(rounds))
            theirs = max(tf_data(work, [-1], *files.get(work, []))[0] for _ in range(rounds))
            print(f"{work:15} {ours:12,.0f} {theirs:12,.0f} {ours / theirs:7.2f}", flush=True)
        if arguments.quick:
            return
        threads = (1, 2, 3, 4)
        series = {"Tandem": {t: tandem("jpeg", t, *files["jpeg"]) for t in threads},
                  "tf.data": dict(zip(threads, tf_data("jpeg", threads, *files["jpeg"])))}
        plot(series, "JPEG files of 224 x 224 decoded a second", arguments.plot)
        for name, points in series.items():
            print(f"jpeg, {name}: " + ", ".join(f"{t} threads {v:,.0f}" for t, v in points.items()))


main()
