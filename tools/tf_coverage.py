#!/usr/bin/env python3
"""docs/coverage.md: TensorFlow's public names beside ours.

    tools/tf_coverage.py names --python PY --out NAMES.txt      PY has TensorFlow: its public names, one a line
    tools/tf_coverage.py write --names NAMES.txt                compares with ours (in the Python that has tandem), writes docs/coverage.md
"""
import argparse
import collections
import os
import subprocess
import sys

SKIP = ("tf.compat", "tf.raw_ops", "tf.tpu", "tf.keras", "tf.experimental.dtensor", "tf.lite", "tf.mlir")
REASONS = {
    "tf.graph_util": "graphs of TensorFlow's own format are not read", "tf.profiler": "profiles are not served: start and stop write files",
    "tf.tools": "not a part of programs", "tf.xla": "every function is compiled anyway",
}  # fmt: skip

WALK = """
import types, tensorflow as tf
seen = set()
def walk(module, path):
    seen.add(id(module))
    for name in sorted(dir(module)):
        full = f"{path}.{name}"
        if name.startswith("_") or full in SKIP:
            continue
        try:
            found = getattr(module, name)
        except Exception:
            continue
        if isinstance(found, types.ModuleType):
            if id(found) not in seen and found.__name__.startswith("tensorflow._api"):
                walk(found, full)
        else:
            print(full)
walk(tf, "tf")
"""


def names(args):
    made = subprocess.run([args.python, "-c", f"SKIP = {SKIP!r}\n{WALK}"], capture_output=True, text=True, check=True).stdout
    with open(args.out, "w") as f:
        f.write(made)


def has(tf, full):
    found = tf
    for part in full.split(".")[1:]:
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError, NotImplementedError):
            return False
    return True


def write(args):
    import tandem as tf

    groups = collections.defaultdict(lambda: ([], []))
    for full in filter(None, map(str.strip, open(args.names))):
        groups[".".join(full.split(".")[:-1])][0 if has(tf, full) else 1].append(full.split(".")[-1])
    lines = ["# What there is of TensorFlow", "", "Made by `tools/tf_coverage.py` from the public names of TensorFlow 2.21. A name that is there may raise `NotImplementedError` for an argument; it",
             "says so then. `tf.keras` is real Keras and is not listed here; `tf.compat.v1`, `tf.raw_ops`, `tf.tpu`, `tf.lite`, `tf.mlir` and `tf.experimental` are left out.", ""]  # fmt: skip
    total = [sum(len(g[i]) for g in groups.values()) for i in (0, 1)]
    lines += [f"{total[0]} of {sum(total)} names are there.", "", "| module | there | missing |", "|---|---|---|"]
    for module in sorted(groups):
        there, missing = groups[module]
        reason = next((r for m, r in REASONS.items() if module == m or module.startswith(m + ".")), "")
        text = ", ".join(f"`{n}`" for n in missing) + (f" ({reason})" if missing and reason else "")
        lines.append(f"| `{module}` | {len(there)} of {len(there) + len(missing)} | {text} |")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "coverage.md")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    print(f"{total[0]} of {sum(total)}")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = p.add_subparsers(dest="command", required=True)
    n, w = commands.add_parser("names"), commands.add_parser("write")
    n.add_argument("--python", required=True)
    n.add_argument("--out", required=True)
    w.add_argument("--names", required=True)
    args = p.parse_args()
    (names if args.command == "names" else write)(args)


if __name__ == "__main__":
    sys.exit(main())
