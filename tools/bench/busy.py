"""Tandem while another program keeps one core busy: how much of the machine that takes, and how much of the throughput is left."""
import os
import signal
import statistics
import subprocess
import sys
import time

import engines


class Neighbour:
    """A program that computes without end on the last core that this process may use, while it is let."""

    def __init__(self):
        core = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"])
        self._seconds = self._used = 0
        time.sleep(0.5)  # until it has begun
        self.process.send_signal(signal.SIGSTOP)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def beside(self, work):
        """Calls work() while the neighbour computes."""
        start, used = time.monotonic(), self._cpu_seconds()
        self.process.send_signal(signal.SIGCONT)
        try:
            work()
        finally:
            self.process.send_signal(signal.SIGSTOP)
            self._seconds += time.monotonic() - start
            self._used += self._cpu_seconds() - used

    def share(self):
        """What it used of all cores while it was let."""
        return self._used / self._seconds / len(os.sched_getaffinity(0))

    def _cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(works, rounds, progress):
    """For each work: milliseconds a step alone and beside the neighbour, in turn, and the neighbour's share of the machine."""
    rows = []
    for work in works:
        progress.show(f"{work} alone and beside another program")
        with engines.Session("tandem", work) as session, Neighbour() as neighbour:
            for _ in range(rounds):
                session.run_pass()
                neighbour.beside(session.run_pass)
            passes = session.end()["passes_ms"]
            alone, busy = passes[::2], passes[1::2]
            rows.append({"work": work, "alone_ms": statistics.median(alone), "busy_ms": statistics.median(busy),
                         "left": statistics.median(a / b for a, b in zip(alone, busy, strict=True)), "share": neighbour.share()})
    return rows
