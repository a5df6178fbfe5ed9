"""The examples of TensorFlow's docstrings, run on us: tf_examples.py [--only REGEX] [--python PY].

The examples are taken out of an installed TensorFlow, which lives in an environment of its own outside this folder, by a tool beside this
repository (../shared/tools/tf_doctests.py). Only examples that TensorFlow itself passes count. Their text stays outside, too; what is
written here, docs/tf_examples.md, has numbers and names.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT.parent / "shared" / "tools" / "tf_doctests.py"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tandem" / "oracles"


def tensorflow():
    """An interpreter with TensorFlow."""
    python = CACHE / "tensorflow" / "bin" / "python"
    if not python.exists():
        print(f"installing TensorFlow into {CACHE / 'tensorflow'}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(CACHE / "tensorflow")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "tensorflow-cpu==2.21.*"], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="names to run, such as '^tf.math'")
    parser.add_argument("--python", help="an interpreter with TensorFlow (default: one that is installed at first)")
    options = parser.parse_args()
    if not TOOL.exists():
        sys.exit(f"{TOOL} is not there: it takes the examples out of TensorFlow")
    CACHE.mkdir(parents=True, exist_ok=True)
    examples, results = CACHE / "examples.json", CACHE / "results.json"
    if not examples.exists():
        subprocess.run([sys.executable, str(TOOL), "extract", "--python", str(options.python or tensorflow()), "--out", str(examples)], check=True)
    command = [sys.executable, str(TOOL), "run", "--launcher", f"{sys.executable} -m tandem run", "--examples", str(examples), "--out", str(results)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "release" / "python")}
    subprocess.run([*command, "--only", options.only], check=True, env=environment)
    if not options.only:
        write(json.loads(results.read_text()))


def write(results):
    """docs/tf_examples.md: how many pass in each module, and which names do not, with the kind of the first failure."""
    failures = collections.defaultdict(list)
    for name, failed in sorted(results["failures"].items()):
        parts = name.split(".")
        failures[".".join(parts[:2]) if len(parts) > 2 else "tf"].append(f"`{name}` ({kind(next(iter(failed.values())))})")
    rows = dict(results["modules"])
    passed, total = rows.pop("total")[2:]
    lines = ["# The examples of TensorFlow's docstrings", "", f"{passed} of {total} pass ({100 * passed / total:.1f} %). Written by `./dev tf-examples`.", ""]
    lines += ["| module | examples that pass | of |", "|---|---|---|"]
    lines += [f"| `{module}` | {row[2]} | {row[3]} |" for module, row in sorted(rows.items())]
    lines += ["", "Names with an example that fails, and how. Another output is mostly another random number: the same seed gives other ones here.", ""]
    lines += [f"- {module}: {', '.join(names)}" for module, names in sorted(failures.items())]
    (ROOT / "docs" / "tf_examples.md").write_text("\n".join(lines) + "\n")


def kind(reason):
    found = re.search(r"\b(\w+(?:Error|Exception))\b", str(reason))
    return found.group(1) if found else "another output"


if __name__ == "__main__":
    main()
