#!/usr/bin/env python3
"""Computes what every op should give for its samples, without Tandem: by NumPy, SciPy, or a formula written out.

usage: numpy_values.py [DUMP_SAMPLES] [--output FILE] [--only OP...]

DUMP_SAMPLES is the program tests/dump_samples of a build; without it the calls are read from stdin, one JSON object a line.
The results go to tests/data/numpy_values.txt, which tests/rows/values_test.cpp compares with; its format is in tests/rows/values.hpp.
Needs numpy, scipy and ml_dtypes (for bfloat16). References are in tools/numpy_reference/, one module a family.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np

from numpy_reference import array_ops, elementwise, linear, network, random_numbers

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = (elementwise, array_ops, network, linear, random_numbers)
REFERENCE = {name: function for family in FAMILIES for name, function in family.REFERENCE.items()}
# Those that must see the very types of the call; the others get floats as float64 and their results are rounded to the call's type.
EXACT = {name for family in FAMILIES for name in family.EXACT}


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def is_float(dtype):
    return dtype.kind == "f" or dtype == dtype_of("bfloat16")


def read_input(operand):
    dtype = dtype_of(operand["dtype"])
    # 64-bit integers must not pass through float64.
    values = np.array(operand["values"], dtype=np.float64 if is_float(dtype) else None if operand["values"] else dtype)
    return values.astype(dtype).reshape(operand["shape"])


def compute(call):
    """The results of one call, as arrays of the types that Tandem gives."""
    inputs = [read_input(operand) for operand in call["inputs"]]
    attrs = {name: dtype_of(value) if name == "dtype" and value else value for name, value in call["attrs"].items()}
    reference = REFERENCE[call["op"]]
    exact = call["op"] in EXACT
    floats = [x.dtype for x in inputs if is_float(x.dtype)]
    if not exact:
        inputs = [x.astype(np.float64) if is_float(x.dtype) else x for x in inputs]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        results = reference(*inputs, **attrs)
        results = [np.asarray(r) for r in (results if isinstance(results, (tuple, list)) else [results])]
        if not exact and floats:
            results = [r.astype(floats[0]) if r.dtype == np.float64 else r for r in results]
    return results


def number_text(x):
    if isinstance(x, (bool, np.bool_)):
        return "1" if x else "0"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    if x == 0:
        return "-0" if np.signbit(x) else "0"
    text = repr(x.item()) if isinstance(x, np.float64) else str(x)
    return text.removesuffix(".0")


def result_text(result):
    shape = "[" + ",".join(map(str, result.shape)) + "]"
    return " ".join(["result", result.dtype.name, shape] + [number_text(x) for x in result.ravel()])


def read_calls(program):
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout if program else sys.stdin.read()
    return [json.loads(line) for line in text.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests" / "data" / "numpy_values.txt")
    parser.add_argument("--only", nargs="+", help="keep what the file has for all other ops")
    options = parser.parse_args()

    calls = read_calls(options.program)
    unknown = sorted({call["op"] for call in calls} - REFERENCE.keys())
    if unknown:
        sys.exit(f"no reference for: {' '.join(unknown)}")
    blocks = {}
    if options.only:
        for block in options.output.read_text().split("call ")[1:]:
            key = block.split("\n", 1)[0]
            if key.split("\t")[0] not in options.only:
                blocks[key] = "call " + block
    for call in calls:
        if options.only and call["op"] not in options.only:
            continue
        try:
            blocks[call["key"]] = "\n".join(["call " + call["key"], *map(result_text, compute(call))]) + "\n"
        except Exception as error:  # the call itself is the news here
            sys.exit(f"{call['key']}: {type(error).__name__}: {error}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("".join(blocks[key] for key in sorted(blocks)))
    print(f"{len(blocks)} calls, {options.output.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
