"""The training benchmark: the same models on Tandem, TensorFlow, JAX and PyTorch, in one run that alternates between them."""
import argparse
import contextlib
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

# Under --quick; else a pass has each program's own number of steps.
QUICK_ROUNDS = 2
QUICK_STEPS = {"mlp": 400, "mlp_big": 8, "cnn": 12, "resnet": 4, "transformer": 5, "lstm": 6}


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("works", metavar="WORK", nargs="*", help="of " + ", ".join(engines.WORKS) + " (default: all)")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE, as a list of objects")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="how often each engine passes over each work's data (default: 9)")
    parser.add_argument("--quick", action="store_true", help="two rounds of fewer steps: a first impression")
    parser.add_argument("--engines", default=",".join(engines.ENGINES), metavar="LIST", help="with commas between: " + ", ".join(engines.ENGINES))
    parser.add_argument("--busy", action="store_true", help="then also time Tandem while another program keeps one core busy")
    parser.add_argument("--write", action="store_true", help="write docs/performance/training.md")
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
    """What the programs printed, by (work, engine), the time of Tandem's first step with kernels on disk, and the machine's best speeds."""

    def __init__(self):
        self.runs, self.warm_s, self.machine = {}, {}, {}

    def take(self, works, names, rounds, quick, progress, keep):
        """All engines take turns at each work, `rounds` times, each in one process that stays; keep() is called after each work."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="tandem_bench_") as cache:
            for number, work in enumerate(works):
                def left(done):  # of this work
                    elapsed, done = time.monotonic() - start, (number + done) / len(works)
                    return f", about {elapsed / done * (1 - done) / 60:.0f} min left" if done else ""

                options = ["--steps", QUICK_STEPS[work]] if quick else []
                speeds = engines.output([engines.PROGRAMS / "machine"], progress, "measuring the machine")
                self.machine = {name: max(value, self.machine.get(name, 0)) for name, value in speeds.items()}
                self._take_turns(work, names, rounds, options, f"{cache}/{work}", progress, left)
                if (work, "tandem") in self.runs:
                    warm = engines.run("tandem", work, ["--steps", 1, "--passes", 1], progress, f"{work} with kernels on disk", f"{cache}/{work}")
                    self.warm_s[work] = warm["first_step_s"]
                keep()

    def _take_turns(self, work, names, rounds, options, cache, progress, left):
        sessions = {}
        with contextlib.ExitStack() as stack:
            def attempt(engine, what):
                try:
                    return what()
                except engines.Failure as failure:
                    sessions.pop(engine, None)
                    progress.say(f"{work} does not run on {engine}: {failure}")

            what = f"{work}: the first step of each engine{left(0)}"
            for engine in names:
                progress.show(what, f" ({engine})")
                session = attempt(engine, lambda e=engine: engines.Session(e, work, options, cache))
                if session:
                    sessions[engine] = stack.enter_context(session)
            try:
                for turn in range(rounds):
                    what = f"{work}: round {turn + 1} of {rounds}{left(turn / rounds)}"
                    for engine, session in list(sessions.items()):
                        progress.show(what, f" ({engine})")
                        attempt(engine, session.run_pass)
            finally:  # an interrupted run still says what it found
                for engine, session in list(sessions.items()):
                    found = attempt(engine, session.end)
                    if found and found["passes_ms"]:
                        self.runs[work, engine] = found


def main():
    arguments = parse()
    progress = Progress()
    if arguments.check:
        sys.exit(1 if check.check(arguments.works, progress) else 0)
    names = engines.available(arguments.engines, progress)
    found = Measurement()

    def keep():  # after each work: half an hour's numbers must not be lost with the process
        if arguments.json:
            rows = report.summary(found.runs, found.warm_s, found.machine)
            pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")

    rounds = QUICK_ROUNDS if arguments.quick else arguments.rounds
    try:
        found.take(arguments.works, names, rounds, arguments.quick, progress, keep)
    except KeyboardInterrupt:
        progress.say("interrupted; this is what there is so far")
    rows = report.summary(found.runs, found.warm_s, found.machine)
    if not rows:
        sys.exit("nothing was measured")
    print(report.text(rows, found.machine))
    busy_rows = busy.measure(arguments.works, rounds, progress) if arguments.busy else []
    if busy_rows:
        print("", *report.busy_text(busy_rows), sep="\n")
    if arguments.write:
        command = shlex.join(["./dev", "bench", *sys.argv[1:]])
        (engines.ROOT / "docs" / "performance" / "training.md").write_text(report.markdown(rows, found.machine, command, busy_rows))


if __name__ == "__main__":
    try:
        main()
    except engines.Failure as error:
        sys.exit(f"bench: {error}")
