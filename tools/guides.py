"""The cells of TensorFlow's and Keras's guides, run on us: guides.py [--mirrors DIR] [NAME...].

The texts are read out of snapshots of the two public repositories (git directories `tensorflow+docs/repo` and `keras-team+keras-io/repo` in the
folder of snapshots), by a runner beside this repository (../shared/tools/guides.py), which also has the list of cells that TensorFlow passes
without a network: only these count. Nothing of the texts is kept: what is written here, docs/guides.md, has numbers and kinds of errors.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
# Cells import these; Tandem needs none of them.
EXTRA = ("matplotlib", "pandas", "PIL", "requests", "seaborn")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="regular expressions of guides to run, such as tf/guide/function (default: all)"
    )
    parser.add_argument(
        "--mirrors",
        default=os.environ.get("MIRRORS", ROOT.parent / ".mirror"),
        type=Path,
        metavar="DIR",
        help="the folder of snapshots",
    )
    parser.add_argument(
        "--runner",
        default=SHARED / "tools" / "guides.py",
        type=Path,
        metavar="FILE",
        help="what takes the cells out of the texts",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="the cells that TensorFlow passes (default: the runner's list)"
    )
    options = parser.parse_args()
    if not options.runner.exists():
        sys.exit(f"{options.runner} is not there: it runs the cells of the guides\n  hint: --runner FILE")
    for repository in ("tensorflow+docs", "keras-team+keras-io"):
        if not (options.mirrors / repository / "repo").exists():
            sys.exit(
                f"{options.mirrors / repository / 'repo'} is not there: the snapshot of a repository, as a git directory\n  hint: --mirrors DIR"
            )
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        print(f"cells that import {', '.join(missing)} will fail: install them into {Path(sys.prefix).name} for this", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [
            sys.executable,
            str(options.runner),
            "--launcher",
            f"{sys.executable} -m tandem run",
            "--out",
            str(out),
            "--only",
            "|".join(options.names),
        ]
        command += ["--baseline", str(options.baseline)] if options.baseline else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "release" / "python"), "MIRRORS": str(options.mirrors)}
        subprocess.run(command, check=True, env=environment)
        results = json.loads(out.read_text()) if out.exists() else sys.exit(f"no guide is called {' or '.join(options.names)}")
    if not options.names:
        write(results, counted_cells(options))


def counted_cells(options):
    """{guide: numbers of the cells that count}."""
    path = options.baseline or options.runner.parent.parent / "yardsticks" / "guides_open.json"
    return {name: set(entry["ok"]) for name, entry in json.loads(path.read_text()).items()}


def write(results, counted):
    """docs/guides.md: for each guide how many cells count, how many pass, and of what kind the others' errors are."""
    passed, total = (sum(r[key] for r in results.values()) for key in ("passed", "counted"))
    lines = [
        "# The guides of TensorFlow and Keras",
        "",
        f"{passed} of {total} cells pass ({100 * passed / total:.1f} %). Written by `./dev guides`.",
        "",
    ]
    lines += [
        "Only cells that TensorFlow 2.21 itself passes without a network count. Cells are numbered from 0. What needs names of a cell that failed is a consequence.",
        "",
    ]
    lines += ["| guide | cells | pass | what fails |", "|---|---|---|---|"]
    for name, r in sorted(results.items()):
        failed = {int(cell): error for cell, error in r["errors"].items() if int(cell) in counted[name]}
        lines.append(
            f"| {name} | {r['counted']} | {r['passed']} | {'; '.join(f'{cell}: {cause(error)}' for cell, error in sorted(failed.items()))} |"
        )
    (ROOT / "docs" / "guides.md").write_text("\n".join(lines) + "\n")


def cause(error):
    """A few words of ours: the guides' own text may stand in a message, so only messages that we write are quoted."""
    kind, _, text = error.partition(": ")
    if kind == "NameError":
        return "a consequence"
    module = re.match(r"module 'tandem(?:\.\w+)*' has no '?(?:attribute ')?(\w+)", text)
    if module:
        return f"`{module.group(1)}` is not there"
    if kind == "NotImplementedError":
        return text[:100].replace("|", "\\|")
    return {"AssertionError": "another value than in TensorFlow", "Exception": "no error where TensorFlow has one"}.get(
        kind, kind
    )


if __name__ == "__main__":
    main()
