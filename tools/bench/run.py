"""The training benchmark: the same models on Tandem, TensorFlow, JAX and PyTorch, in one run that alternates between them."""
import argparse
import json
import shlex
import sys
import tempfile
import time

import check
import engines
import report
from progress import Progress

# Steps of a pass under --quick; else each program's own number.
QUICK_STEPS = {"mlp": 400, "mlp_big": 8, "cnn": 12, "resnet": 4, "transformer": 5, "lstm": 6}


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("works", metavar="WORK", nargs="*", help="of " + ", ".join(engines.WORKS) + " (default: all)")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE, as a list of objects")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each engine runs each work (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one round of fewer steps: a first impression")
    parser.add_argument("--engines", default=",".join(engines.ENGINES), metavar="LIST", help="with commas between: " + ", ".join(engines.ENGINES))
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("--check", action="store_true", help="time nothing; compare the losses of the first steps with Keras's")
    arguments = parser.parse_args()
    for name, known, what in [*((w, engines.WORKS, "work") for w in arguments.works),
                              *((e, engines.ENGINES, "engine") for e in arguments.engines.split(","))]:
        if name not in known:
            parser.error(f"there is no {what} '{name}'; there are: {', '.join(known)}")
    arguments.works = arguments.works or list(engines.WORKS)
    arguments.engines = [e for e in engines.ENGINES if e in arguments.engines.split(",")]
    return arguments


def measure(works, names, rounds, quick, progress):
    """Runs everything, `rounds` times; gives what each run printed by (work, engine), and the machine's best speeds."""
    runs, failed, machine = {}, set(), {}
    start, done, total = time.monotonic(), 0, rounds * len(works) * len(names)
    with tempfile.TemporaryDirectory(prefix="tandem_bench_") as cache:
        for number in range(1, rounds + 1):
            speeds = engines.output([engines.PROGRAMS / "machine"], progress, "measuring the machine")
            machine = {name: max(value, machine.get(name, 0)) for name, value in speeds.items()}
            for work in works:
                for engine in names:
                    done += 1
                    if (work, engine) in failed:
                        continue
                    options = ["--steps", QUICK_STEPS[work], "--passes", 2] if quick else []
                    left = f", about {(time.monotonic() - start) / (done - 1) * (total - done + 1) / 60:.0f} min left" if done > 1 else ""
                    what = f"[{done}/{total}{left}] {work} on {engine}"
                    try:  # a cache of its own for each work, so that its first run starts without kernels
                        runs.setdefault((work, engine), []).append(engines.run(engine, work, options, progress, what, f"{cache}/{work}"))
                    except engines.Failure as failure:
                        failed.add((work, engine))
                        runs.pop((work, engine), None)
                        progress.say(f"{work} does not run on {engine}: {failure}")
    return runs, machine


def main():
    arguments = parse()
    progress = Progress()
    if arguments.check:
        sys.exit(1 if check.check(arguments.works, progress) else 0)
    names = engines.available(arguments.engines, progress)
    runs, machine = measure(arguments.works, names, 1 if arguments.quick else arguments.rounds, arguments.quick, progress)
    rows = report.summary(runs, machine)
    print(report.text(rows, machine))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
    if arguments.write:
        command = shlex.join(["./dev", "bench", *sys.argv[1:]])
        (engines.ROOT / "docs" / "performance.md").write_text(report.markdown(rows, machine, command))


if __name__ == "__main__":
    main()
