"""Tandem while another program keeps one core busy: how much of the machine that takes, and how much of the throughput is left."""
import os
import subprocess
import sys
import time

import engines


class Neighbour:
    """A program that computes without end on the last core that this process may use."""

    def __enter__(self):
        core = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"])
        time.sleep(0.5)  # until it has begun
        self.start, self.used = time.monotonic(), self._cpu_seconds()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def share(self):
        """Of all cores, since it was entered."""
        return (self._cpu_seconds() - self.used) / (time.monotonic() - self.start) / len(os.sched_getaffinity(0))

    def _cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(works, progress):
    """For each work: milliseconds a step alone and beside the neighbour, on the average, and the neighbour's share of the machine."""
    rows = []
    for work in works:
        def step_ms(what):
            passes = engines.run("tandem", work, ["--passes", 4], progress, f"{work} {what}")["passes_ms"]
            return sum(passes) / len(passes)

        alone = [step_ms("alone")]
        with Neighbour() as neighbour:
            busy = step_ms("beside another program")
            share = neighbour.share()
        alone.append(step_ms("alone"))  # before and after, because a machine changes
        rows.append({"work": work, "alone_ms": min(alone), "busy_ms": busy, "share": share})
    return rows
