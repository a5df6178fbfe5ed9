"""The training benchmark: the same models on Tandem, TensorFlow, JAX and PyTorch, in one run that alternates between them."""
import argparse
import json
import pathlib
import shlex
import sys
import tempfile
import time

import busy
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
    parser.add_argument("--busy", action="store_true", help="then also time Tandem while another program keeps one core busy")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("--check", action="store_true", help="time nothing; compare the losses of the first steps with Keras's")
    arguments = parser.parse_args()
    for name, known, what in [*((w, engines.WORKS, "work") for w in arguments.works),
                              *((e, engines.ENGINES, "engine") for e in arguments.engines.split(","))]:
        if name not in known:
            parser.error(f"there is no {what} '{name}'; there are: {', '.join(known)}")
    if arguments.rounds < 1:
        parser.error(f"--rounds needs a positive number, not {arguments.rounds}")
    if arguments.json and not pathlib.Path(arguments.json).absolute().parent.is_dir():  # now, not after half an hour
        parser.error(f"there is no folder for {arguments.json}")
    arguments.works = arguments.works or list(engines.WORKS)
    arguments.engines = [e for e in engines.ENGINES if e in arguments.engines.split(",")]
    return arguments


class Measurement:
    """What the runs printed, by (work, engine), and the machine's best speeds."""

    def __init__(self):
        self.runs, self.machine = {}, {}

    def take(self, works, names, rounds, quick, progress, keep):
        """Runs everything, `rounds` times, and calls keep() after each run."""
        failed, start, done, total = set(), time.monotonic(), 0, rounds * len(works) * len(names)
        with tempfile.TemporaryDirectory(prefix="tandem_bench_") as cache:
            for _ in range(rounds):
                speeds = engines.output([engines.PROGRAMS / "machine"], progress, "measuring the machine")
                self.machine = {name: max(value, self.machine.get(name, 0)) for name, value in speeds.items()}
                for work, engine in ((w, e) for w in works for e in names):
                    left = f", about {(time.monotonic() - start) / done * (total - done) / 60:.0f} min left" if done else ""
                    done += 1
                    if (work, engine) in failed:
                        continue
                    options = ["--steps", QUICK_STEPS[work], "--passes", 2] if quick else []
                    try:  # a cache of its own for each work, so that its first run starts without kernels
                        run = engines.run(engine, work, options, progress, f"[{done}/{total}{left}] {work} on {engine}", f"{cache}/{work}")
                        self.runs.setdefault((work, engine), []).append(run)
                        keep()
                    except engines.Failure as failure:
                        failed.add((work, engine))
                        self.runs.pop((work, engine), None)
                        progress.say(f"{work} does not run on {engine}: {failure}")


def main():
    arguments = parse()
    progress = Progress()
    if arguments.check:
        sys.exit(1 if check.check(arguments.works, progress) else 0)
    names = engines.available(arguments.engines, progress)
    found = Measurement()

    def keep():  # after each run: half an hour's numbers must not be lost with the process
        if arguments.json:
            rows = report.summary(found.runs, found.machine)
            pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")

    try:
        found.take(arguments.works, names, 1 if arguments.quick else arguments.rounds, arguments.quick, progress, keep)
    except KeyboardInterrupt:
        progress.say("interrupted; this is what there is so far")
    rows = report.summary(found.runs, found.machine)
    if not rows:
        sys.exit("nothing was measured")
    print(report.text(rows, found.machine))
    busy_rows = busy.measure(arguments.works, progress) if arguments.busy else []
    if busy_rows:
        print("", *report.busy_text(busy_rows), sep="\n")
    if arguments.write:
        command = shlex.join(["./dev", "bench", *sys.argv[1:]])
        (engines.ROOT / "docs" / "performance.md").write_text(report.markdown(rows, found.machine, command, busy_rows))


if __name__ == "__main__":
    try:
        main()
    except engines.Failure as error:
        sys.exit(f"bench: {error}")
