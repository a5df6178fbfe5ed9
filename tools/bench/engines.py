"""How each engine is run: one piece of work in a process of its own, which prints a line of JSON."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

import environments

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build" / "release" / "bench"
WORKS = ("mlp", "mlp_big", "cnn", "resnet", "transformer", "lstm")
# engine -> its environment and what it is started with. Everybody computes on the CPU.
PEERS = {
    "tensorflow": ("tensorflow", {"TF_ENABLE_ONEDNN_OPTS": "0"}),
    "tensorflow-onednn": ("tensorflow", {"TF_ENABLE_ONEDNN_OPTS": "1"}),
    "jax": ("jax", {"JAX_PLATFORMS": "cpu"}),
    "torch": ("torch", {}),
}
ENGINES = ("tandem", *PEERS)


class Failure(Exception):
    pass


def available(names, progress):
    """Those of the engines that can run. One that cannot is named, with the reason, and left out."""
    reasons = {name: environments.ensure(name, progress) for name in dict.fromkeys(PEERS[n][0] for n in names if n in PEERS)}
    for name, reason in reasons.items():
        if reason:
            progress.say(f"no environment for {name}, which is left out: {reason}")
    return [n for n in names if n not in PEERS or reasons[PEERS[n][0]] is None]


class Session:
    """An engine's program that has taken its first steps and waits: each pass is asked for."""

    def __init__(self, engine, work, options=(), cache_dir=None):
        command, environment = program(engine, work, [*options, "--wait"], cache_dir)
        self._errors = tempfile.TemporaryFile("w+")
        # In a group of its own: it is to end as a whole when this program is interrupted, and say what it found.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
                                         env=environment, start_new_session=True)
        try:
            self._read_until("ready")
        except BaseException:
            self.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def run_pass(self):
        with contextlib.suppress(BrokenPipeError):  # of one that has ended, which its output tells
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        self._read_until("ready")

    def end(self):
        """What it found in all its passes."""
        self._process.stdin.close()
        return json.loads(self._read_until("{"))

    def kill(self):
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def _read_until(self, beginning):
        for line in self._process.stdout:
            if line.startswith(beginning):
                return line
        self._errors.seek(0)
        raise Failure(environments.last_line(self._errors.read()) or f"ended with {self._process.wait()}")


def run(engine, work, options, progress, what, cache_dir=None):
    """The object that the engine's program printed. Raises Failure with its last words when it did not end well."""
    command, environment = program(engine, work, options, cache_dir)
    return output(command, progress, what, environment)


def program(engine, work, options, cache_dir=None):
    """The words of its command, and its environment."""
    environment = dict(os.environ)
    if engine in PEERS:
        name, extra = PEERS[engine]
        command = [environments.python(name), ROOT / "tools" / "bench" / "keras_train.py", work, *options]
        environment.pop("PYTHONPATH", None)
        environment.update(extra, KERAS_BACKEND=name, KERAS_HOME=str(environments.folder() / name), CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
    else:
        command = [PROGRAMS / "train", work, *options]
        if cache_dir:
            environment["TANDEM_CACHE_DIR"] = str(cache_dir)
    return [str(word) for word in command], environment


def output(command, progress, what, environment=None):
    result = progress.run(what, command, environment)
    if result.returncode:
        raise Failure(environments.last_line(result.stderr) or f"ended with {result.returncode}")
    return json.loads(result.stdout.splitlines()[-1])
