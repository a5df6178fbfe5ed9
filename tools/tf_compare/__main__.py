"""Tandem's numbers beside TensorFlow's: tf_compare [MODULE...] [--seed N] [--rounds N].

The same seeded arguments go to the same functions of both, each engine in a process of its own. Values, types, shapes, gradients and whether
there is an error are compared; docs/tf_differences.md lists what differs. MODULE is a name such as tf.math or tf.math.add, or `files`:
checkpoints and model files that one writes and the other reads.
"""
import argparse
import os
import pickle
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import families  # noqa: E402
import processes  # noqa: E402
import report  # noqa: E402
from cases import Cases  # noqa: E402
from compare import compare  # noqa: E402
from tf_examples import CACHE, tensorflow  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="./dev tf-compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as tf.math or tf.math.add, or files (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2, help="how many random arguments each function gets of each sort (default: 2)")
    parser.add_argument("--python", help="an interpreter with TensorFlow (default: one that is installed at first)")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="how many differences to print (default: 20)")
    parser.add_argument("--write", action="store_true", help="write docs/tf_differences.md (always, when no MODULE is given)")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    python = options.python or tensorflow()
    modules = [m for m in options.modules if m != "files"]
    failed = 0
    if modules or not options.modules:
        failed += functions(options, python, modules)
    if "files" in options.modules or not options.modules:
        import files

        failed += files.check(python, options.write or not options.modules)
    sys.exit(1 if failed else 0)


def functions(options, python, modules):
    cases = Cases(options.seed, options.rounds, modules or None)
    families.fill(cases)
    if not cases.all:
        sys.exit(f"no function is called {' or '.join(modules)}")
    folder = CACHE / "compare" / (modules[0] if modules else "all")
    theirs = processes.run("tensorflow", python, cases.all, folder)
    ours = processes.run("tandem", sys.executable, cases.all, folder)
    found = [compare(*each) for each in zip(cases.all, theirs, ours)]
    (folder / "found.pickle").write_bytes(pickle.dumps((cases.all, theirs, ours, found)))
    return report.report(cases.all, theirs, found, options, python, whole=not modules)


if __name__ == "__main__":
    main()
