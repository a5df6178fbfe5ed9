"""One line on the terminal that says what is being done and for how long."""
import subprocess
import sys
import tempfile
import time


class Progress:
    def __init__(self):
        self.live = sys.stderr.isatty()
        self.shown = ""

    def say(self, text):
        self._clear()
        print(text, file=sys.stderr, flush=True)

    def show(self, what, detail=""):
        """What is being done; where lines stay, each only once and without the detail."""
        if self.live:
            print(f"\r\x1b[K{what}{detail}", end="", file=sys.stderr, flush=True)
        elif what != self.shown:
            print(what, file=sys.stderr, flush=True)
        self.shown = what

    def run(self, what, command, env=None):
        """Runs a command to its end while the line counts the seconds; gives a CompletedProcess with its output as text."""
        start = time.monotonic()
        self.show(what)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            with subprocess.Popen([str(word) for word in command], stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=env) as process:
                while True:
                    try:
                        process.wait(timeout=0.5)
                        break
                    except subprocess.TimeoutExpired:
                        self.show(what, f": {time.monotonic() - start:.0f} s")
            out.seek(0)
            err.seek(0)
            self._clear()
            return subprocess.CompletedProcess(command, process.returncode, out.read(), err.read())

    def _clear(self):
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
