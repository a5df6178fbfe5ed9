"""Whole TensorFlow programs on no GPU, one and two emulated ones: device_programs.py [--gpus SPEC]... [PROGRAM...].

The programs lie beside this repository (../shared/programs) and check their results themselves. What TensorFlow would say of devices and replicas there, and
where it would run what a program pins, is looked for in what they print and in the log of placements. SPEC is `none`, or as TANDEM_EMULATE_GPU, with the rule
that places the rest behind a comma: `1x64MiB,tensorflow`. Needs `./dev setup`. Exits with 1 if a program failed, or something was elsewhere."""

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
SETTINGS = ["none", "1x2GiB", "2x2GiB@12GB/s", "1x64MiB,tensorflow"]
LOCAL = "/job:localhost/replica:0/task:0/device:"
# As `tandem run`, with the log of placements.
LOGGED = "import sys, tandem; tandem.debugging.set_log_device_placement(True); from tandem import _run; _run.main(sys.argv[1:])"

# By program: lines that it prints, and ops with the device that they have to be on. {first} is the first GPU, or the CPU where there is none.
PRINTED = {
    "s000_2_model_parallelism": ["cpu part ran on {local}CPU:0"],
    "s002_1_device_placement": ["product on {local}{first} - result on {local}CPU:0"],
    "s002_2_batched_transfer": ["rows 10000"],
    "s004_3_mirrored_strategy": ["{replicas} replicas, test accuracy"],
}
PRINTED_WITHOUT_GPU = {"s004_1_list_devices": ["No GPUs detected. Proceeding with CPU only."]}
PRINTED_WITH_GPU = {
    "s004_1_list_devices": [
        "{gpus} Physical GPUs, {gpus} Logical GPUs", "refused as it should be: Physical devices cannot be modified after being initialized",
    ],
}  # fmt: skip
PLACED = {
    "s000_2_model_parallelism": [("matmul: (float32[512,256])", "{first}"), ("matmul: (float32[512,32])", "CPU:0"), ("matmul: (float32[512,10])", "{first}")],
    "s002_1_device_placement": [("matmul: (float32[1024,1024])", "{first}"), ("sum: (float32[])", "CPU:0")],
    "s002_2_batched_transfer": [("matmul: (float32[1024,64])", "{first}"), ("matmul: (float32[784,10])", "{first}"), ("sum: (float32[])", "CPU:0")],
    "s004_2_explicit_placement": [("multiply: (float32[8000,784])", "CPU:0"), ("fused: (float32[784,128])", "{first}")],
    "s004_3_mirrored_strategy": [("fused: (float32[784,128])", "{first}")],
}
# Where both are on one device, they are one kernel.
PLACED_WITH_GPU = {"s002_3_function_graph": [("square: (float32[1000,1000])", "{first}"), ("mean: (float32[])", "CPU:0")]}
# Each replica has its rows of the batch of 32.
PLACED_ON_TWO = {"s004_3_mirrored_strategy": [("fused: (float32[16,128])", "GPU:0"), ("fused: (float32[16,128])", "GPU:1")]}
# By TensorFlow's rule what nobody pinned is on the first GPU.
PLACED_BY_RULE = {
    "s001_1_data_bound_fit": [("fused: (float32[1000,128])", "{first}")],
    "s004_1_list_devices": [("fused: (float32[784,10])", "{first}")],
}


def missing(program, setting, out, err):
    """What TensorFlow would have printed, or placed, and was not."""
    gpus, rule = setting
    words = {"gpus": gpus, "replicas": max(1, gpus), "first": "GPU:0" if gpus else "CPU:0", "local": LOCAL}
    printed = [*PRINTED.get(program, []), *(PRINTED_WITH_GPU if gpus else PRINTED_WITHOUT_GPU).get(program, [])]
    placed = [*PLACED.get(program, []), *(PLACED_WITH_GPU.get(program, []) if gpus else [])]
    if gpus == 2:
        placed += PLACED_ON_TWO.get(program, [])
    if rule == "tensorflow":
        placed += PLACED_BY_RULE.get(program, [])
    there = {}
    for op, device in re.findall(rf"^(\S+: \(.*\)): {re.escape(LOCAL)}(\S+)$", err, re.MULTILINE):
        there.setdefault(op, set()).add(device)
    lacking = [f"it did not print: {line}" for line in (p.format(**words) for p in printed) if line not in out]
    for op, device in placed:
        device = device.format(**words)
        if device not in there.get(op, ()):
            lacking.append(f"{op} was not on {device}, but on {', '.join(sorted(there.get(op, ()))) or 'none'}")
    return lacking


def parsed(spec):
    """(number of GPUs, rule), and the environment for it."""
    card, _, rule = spec.partition(",")
    environment = {k: v for k, v in os.environ.items() if k not in ("TANDEM_EMULATE_GPU", "TANDEM_PLACEMENT", "TANDEM_DEVICE")}
    if card != "none":
        environment["TANDEM_EMULATE_GPU"] = card
    if rule:
        environment["TANDEM_PLACEMENT"] = rule
    return (0 if card == "none" else int(card.partition("x")[0]), rule or "cost"), environment


def run(program, environment, folder, timeout):
    start = time.time()
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOGGED, str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
        )
        failed, out, err = done.returncode != 0, done.stdout, done.stderr
    except subprocess.TimeoutExpired as e:
        failed, out, err = True, (e.stdout or b"").decode(), f"{(e.stderr or b'').decode()}\nno end after {timeout} s"
    return failed, time.time() - start, out, err


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", help="parts of names (default: all)")
    parser.add_argument("--gpus", action="append", metavar="SPEC", help=f"'none', or as TANDEM_EMULATE_GPU (default: {'; '.join(SETTINGS)})")
    parser.add_argument("--folder", type=Path, default=PROGRAMS)
    parser.add_argument("--timeout", type=int, default=900, help="seconds a program may take")
    options = parser.parse_args()
    programs = [p for p in sorted(options.folder.glob("s0*.py")) if not options.programs or any(n in p.stem for n in options.programs)]
    if not programs:
        sys.exit(f"device_programs: there is no such program in {options.folder}")
    failures = 0
    for spec in options.gpus or SETTINGS:
        setting, environment = parsed(spec)
        with tempfile.TemporaryDirectory() as folder:  # one for all of them: some programs load what the one before saved
            for program in programs:
                failed, seconds, out, err = run(program, environment, folder, options.timeout)
                lacking = [] if failed else missing(program.stem, setting, out, err)
                failures += failed or bool(lacking)
                print(f"{spec:18} {program.stem:28} {'FAILED' if failed else 'ELSEWHERE' if lacking else 'passed'} {seconds:6.1f} s", flush=True)
                for line in lacking:
                    print(f"    {line}")
                if failed:
                    print("\n".join("    " + line for line in (out[-500:] + err[-2000:]).splitlines()[-25:]), flush=True)
    print(f"{failures} failed" if failures else "all passed, with each device and replica where TensorFlow has it")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
