"""Keras's own tests on our backend: keras_tests.py [AREA...] [--quick] [--write] [--device NAME].

The tests are those inside the installed wheel. They run one process for each area, without TensorFlow, JAX or PyTorch. A test that needs another
package is counted by itself. One that fails must stand in python/keras_tandem/excluded_tests.txt, with its reason; anything else is an error. On a device
that is not the CPU the same list counts: what passes on the CPU has to pass there, and what ran is compared with what docs/keras_tests.md says of the CPU.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCLUDED = ROOT / "python" / "keras_tandem" / "excluded_tests.txt"
KERAS = Path(importlib.util.find_spec("keras").origin).parent / "src"
# What another package would be needed for, as the tests and Keras itself say it.
NEEDS = re.compile(
    r"No module named '(\w+)|requires (?:the )?['`]?(tensorflow|orbax|jax|torch|grain)|(?:install|installing) (TensorFlow)|Unable to import (\w+)", re.IGNORECASE
)
# What `./dev test` runs: every area that is small.
QUICK = [
    "activations", "callbacks", "constraints", "datasets", "distillation", "dtype_policies", "initializers", "losses", "metrics", "models", "optimizers",
    "random", "regularizers", "saving", "trainers", "tree", "layers/activations", "layers/core", "layers/merging", "layers/normalization", "layers/pooling",
    "layers/regularization", "layers/reshaping", "layers/rnn",
]  # fmt: skip
DOCUMENT = ROOT / "docs" / "keras_tests.md"
ON_DEVICE = "\n## On an emulated GPU\n"  # a part of the document that only a run there writes
LEFT_OUT = {"applications", "wrappers"}  # downloads; another library's interface


def areas():
    found = set()
    for file in KERAS.rglob("*_test.py"):
        parts = file.relative_to(KERAS).parts
        if len(parts) > 1:
            found.add("/".join(parts[:2]) if parts[0] == "layers" and len(parts) > 2 else parts[0])
    found = {a for a in found if a not in LEFT_OUT}
    return sorted(found)


def excluded():
    """Parts of test names, with the reason behind a #."""
    reasons = {}
    for line in EXCLUDED.read_text().splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            if not reason.strip():
                sys.exit(f"{EXCLUDED.name}: {name.strip()} has no reason")
            reasons[name.strip()] = reason.strip()
    return reasons


def run(area, seconds, device):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        environment = {
            **os.environ, "KERAS_BACKEND": "tandem", "KERAS_HOME": folder, "TANDEM_KERAS_REPORT": str(report), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        if device:
            environment["TANDEM_DEVICE"] = device
        # layers/*_test.py is an area of its own, without the folders below.
        targets = [str(KERAS / area)] if area != "layers" else [str(f) for f in (KERAS / "layers").glob("*_test.py")]
        command = [
            sys.executable, "-m", "pytest", "-p", "keras_tests_plugin", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--tb=line", "-r", "",
            "--continue-on-collection-errors", f"--timeout={seconds}", "-W", "ignore", *targets,
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{area}: the tests did not run to their end\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return json.loads(report.read_text())


def judged(results, reasons):
    """Counts, and the failures that nobody has explained."""
    count = dict.fromkeys(("passed", "failed", "excluded", "needs", "skipped"), 0)
    unexplained, needs = [], {}
    for test in results:
        if test["outcome"] in ("passed", "skipped"):
            count[test["outcome"]] += 1
            continue
        found = NEEDS.search(test["text"])
        name = test["name"]
        if found:
            count["needs"] += 1
            package = next(g for g in found.groups() if g).lower()
            needs[package] = needs.get(package, 0) + 1
        elif any(part in name for part in reasons):
            count["excluded"] += 1
            count["failed"] += 1
        else:
            count["failed"] += 1
            unexplained.append((name, test["text"].strip().splitlines()[-1][:150] if test["text"].strip() else ""))
    return count, unexplained, needs


def rate(count):
    run_ = count["passed"] + count["failed"]
    return 100.0 * count["passed"] / run_ if run_ else 100.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"one of {', '.join(areas())}")
    parser.add_argument("--quick", action="store_true", help="only the small areas, as ./dev test does")
    parser.add_argument("--write", action="store_true", help="write docs/keras_tests.md (also done when all areas run)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test (default 120)")
    parser.add_argument("--device", metavar="NAME", help="where everything runs that names no device, such as gpu:0 (default: as a program's)")
    options = parser.parse_args()
    chosen = options.areas or ([a for a in areas() if a in QUICK] if options.quick else areas())
    unknown = sorted(set(chosen) - set(areas()))
    if unknown:
        sys.exit(f"there is no area {', '.join(unknown)}; there are {', '.join(areas())}")
    reasons = excluded()
    rows, unexplained, total, packages = [], [], {}, {}
    began = time.monotonic()
    for i, area in enumerate(chosen):
        print(f"[{i + 1}/{len(chosen)}] {area} ...", end=" ", flush=True)
        count, unknown_failures, needs = judged(run(area, options.timeout, options.device), reasons)
        print(f"{count['passed']} passed, {count['failed']} failed, {count['needs']} need another package, {count['skipped']} skipped by Keras")
        for name, text in unknown_failures:
            print(f"    {name}: {text}")
        rows.append((area, count))
        unexplained += unknown_failures
        for key, n in count.items():
            total[key] = total.get(key, 0) + n
        for key, n in needs.items():
            packages[key] = packages.get(key, 0) + n
    lines = ["| area | passed | failed | rate | need another package | skipped by Keras |", "|---|---|---|---|---|---|"]
    for area, c in [*rows, ("**all**", total)]:
        lines.append(f"| {area} | {c['passed']} | {c['failed']} | {rate(c):.1f} % | {c['needs']} | {c['skipped']} |")
    print("\n".join(lines))
    print(f"{time.monotonic() - began:.0f} s")
    if options.device:
        lines = compared(rows, total)
        print("\n".join(lines))
    if options.write or chosen == areas():
        if options.device:
            write_device(lines, options.device)
        else:
            write(lines, packages, reasons)
    if unexplained:
        sys.exit(f"{len(unexplained)} failures that {EXCLUDED.name} does not explain")


def write(lines, packages, reasons):
    text = ["# Keras's own tests", ""]
    text.append(f"The tests of Keras {importlib.metadata.version('keras')} on the backend `tandem`, without TensorFlow, JAX or PyTorch installed. Written by `./dev keras-tests`.")
    text += ["", *lines, "", "Tests that need another package, by package: " + ", ".join(f"{p} {n}" for p, n in sorted(packages.items(), key=lambda x: -x[1])) + "."]
    text += ["", "## Tests that fail, and why", "", "| test | reason |", "|---|---|"]
    text += [f"| `{name}` | {reason} |" for name, reason in reasons.items()]
    DOCUMENT.write_text("\n".join(text) + "\n" + part_of_device())


def part_of_device():
    _, mark, rest = DOCUMENT.read_text().partition(ON_DEVICE) if DOCUMENT.exists() else ("", "", "")
    return mark + rest


def passed_on_cpu():
    """By area, as the document has it."""
    before = DOCUMENT.read_text().partition(ON_DEVICE)[0] if DOCUMENT.exists() else ""
    return {area.strip("*"): int(n) for area, n in re.findall(r"^\| (\S+) \| (\d+) \|", before, re.MULTILINE)}


def compared(rows, total):
    cpu = passed_on_cpu()
    lines = ["| area | passed | failed | passed on the CPU |", "|---|---|---|---|"]
    for area, c in [*rows, ("**all**", total)]:
        lines.append(f"| {area} | {c['passed']} | {c['failed']} | {cpu.get(area.strip('*'), '-')} |")
    return lines


def write_device(lines, device):
    before = DOCUMENT.read_text().partition(ON_DEVICE)[0]
    text = f"\nThe same with `TANDEM_DEVICE={device}` and `TANDEM_EMULATE_GPU={os.environ.get('TANDEM_EMULATE_GPU', '')}`. Written by `./dev test --gpu`.\n\n"
    DOCUMENT.write_text(before + ON_DEVICE + text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
