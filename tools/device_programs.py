"""Whole TensorFlow programs on no GPU, one and two emulated ones: device_programs.py [--gpus SPEC]... [PROGRAM...].

The programs lie beside this repository (../shared/programs) and check their results themselves. Where a program prints where something was computed,
or how many replicas it had, the line is shown. Needs `./dev setup`. Exits with 1 if a program failed."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT.parent / "shared" / "programs"
SETTINGS = ["none", "1x2GiB", "2x2GiB@12GB/s"]
TELLING = re.compile(r"device|replicas|Physical GPUs|No GPUs| on /job")


def run(program, spec, folder, timeout):
    environment = {**os.environ}
    environment.pop("TANDEM_EMULATE_GPU", None)
    if spec != "none":
        environment["TANDEM_EMULATE_GPU"] = spec
    start = time.time()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tandem", "run", str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
        )
        failed, out, err = done.returncode != 0, done.stdout, done.stderr
    except subprocess.TimeoutExpired as e:
        failed, out, err = True, (e.stdout or b"").decode(), f"{(e.stderr or b'').decode()}\nno end after {timeout} s"
    return failed, time.time() - start, out, err


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", help="parts of names (default: all)")
    parser.add_argument("--gpus", action="append", metavar="SPEC", help=f"'none', or as TANDEM_EMULATE_GPU (default: {', '.join(SETTINGS)})")
    parser.add_argument("--folder", type=Path, default=PROGRAMS)
    parser.add_argument("--timeout", type=int, default=900, help="seconds a program may take")
    options = parser.parse_args()
    programs = [p for p in sorted(options.folder.glob("s0*.py")) if not options.programs or any(n in p.stem for n in options.programs)]
    if not programs:
        sys.exit(f"device_programs: there is no such program in {options.folder}")
    failures = 0
    for spec in options.gpus or SETTINGS:
        with tempfile.TemporaryDirectory() as folder:  # one for all of them: some programs load what the one before saved
            for program in programs:
                failed, seconds, out, err = run(program, spec, folder, options.timeout)
                failures += failed
                print(f"{spec:14} {program.stem:28} {'FAILED' if failed else 'passed'} {seconds:6.1f} s", flush=True)
                for line in out.splitlines():
                    if TELLING.search(line) and "step" not in line:
                        print(f"    {line.strip()}")
                if failed:
                    print("\n".join("    " + line for line in (out[-500:] + err[-2000:]).splitlines()[-25:]), flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
