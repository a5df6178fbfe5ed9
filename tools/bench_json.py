#!/usr/bin/env python3
"""Turns the JSON files that Google Benchmark wrote into the one list that `./dev bench --json` promises.

usage: bench_json.py FOLDER OUTPUT

Each object has work, engine, ms_per_step, peak_mib, first_step_s and loss. The last three are a benchmark's own counters of
these names; null says that it did not measure them.
"""
import json
import pathlib
import sys

MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
COUNTERS = ("peak_mib", "first_step_s", "loss")


def rows(report):
    runs = [run for run in report["benchmarks"] if "error_message" not in run]
    # With repetitions the median stands for all of them.
    medians = [run for run in runs if run.get("aggregate_name") == "median"]
    for run in medians or [run for run in runs if run.get("run_type") != "aggregate"]:
        row = {"work": run.get("run_name", run["name"]), "engine": "tandem",
               "ms_per_step": run["real_time"] * MILLISECONDS[run["time_unit"]]}
        row.update({name: run.get(name) for name in COUNTERS})
        yield row


def main(folder, output):
    files = sorted(pathlib.Path(folder).glob("*.json"))
    result = [row for file in files for row in rows(json.loads(file.read_text()))]
    pathlib.Path(output).write_text(json.dumps(result, indent=1) + "\n")
    print(f"{output}: {len(result)} results")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
