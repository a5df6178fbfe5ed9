"""tf.profiler.experimental: records what ran where and writes it below `logdir`.

`stop` writes into `logdir/plugins/profile/<time>/` what `tandem run --profile` writes: `<host>.html`, a page that needs nothing else, and
`<host>.trace.json.gz`, the trace that ui.perfetto.dev opens. TensorBoard's own file (`.xplane.pb`) is not written.
"""
import collections
import gzip
import os
import shutil
import socket
import tempfile
import threading
import time

from tandem import _core, errors

_lock = threading.Lock()
_running = None  # (logdir, folder of the files as the engine writes them)


class ProfilerOptions(
    collections.namedtuple("ProfilerOptions", ["host_tracer_level", "python_tracer_level", "device_tracer_level", "delay_ms"])
):
    """Options of `start`. Streams, the host's threads and callbacks are always recorded; levels and the delay change nothing."""

    def __new__(cls, host_tracer_level=2, python_tracer_level=0, device_tracer_level=1, delay_ms=None):
        return super().__new__(cls, host_tracer_level, python_tracer_level, device_tracer_level, delay_ms)


def start(logdir, options=None):
    """Records from now on, until `stop`."""
    global _running
    with _lock:
        if _running is not None or _core.profile_is_on():
            raise errors.AlreadyExistsError(None, None, "Another profiler is running.")
        folder = tempfile.mkdtemp(prefix="tandem_profile_")
        try:
            _core.profile_start(os.path.join(folder, "profile"), f"Profile of {time.strftime('%Y-%m-%d %H:%M:%S')}")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        _running = os.fspath(logdir), folder


def stop(save=True):
    """Ends it, and writes what was recorded unless `save` is false."""
    global _running
    with _lock:
        if _running is None:
            raise errors.UnavailableError(None, None, "Cannot export profiling results. No profiler is running.")
        (logdir, folder), _running = _running, None
        try:
            if not save:
                return _core.profile_abandon()
            _save(_core.profile_stop(), logdir)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _save(files, logdir):
    base = os.path.join(logdir, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
    target, n = base, 1
    while os.path.exists(target):  # two within a second
        target, n = f"{base}_{n}", n + 1
    os.makedirs(target)
    host = socket.gethostname()
    for file in files:
        if file.endswith(".json"):
            with open(file, "rb") as source, gzip.open(os.path.join(target, f"{host}.trace.json.gz"), "wb") as packed:
                shutil.copyfileobj(source, packed)
        else:
            shutil.move(file, os.path.join(target, f"{host}.html"))


class Profile:
    """`with Profile(logdir):` records what is inside."""

    def __init__(self, logdir, options=None):
        self._logdir, self._options = logdir, options

    def __enter__(self):
        start(self._logdir, self._options)

    def __exit__(self, kind, error, trace):
        stop()


class Trace:
    """`with Trace("train", step_num=step, _r=1):` a part of the program, by name; with `step_num` the profile counts it as a step."""

    def __init__(self, name, **kwargs):
        self._name, self._kwargs, self._block = name, kwargs, None

    def __enter__(self):
        if _core.profile_is_on():
            step = self._kwargs.get("step_num")
            others = {k: v for k, v in self._kwargs.items() if k not in ("step_num", "_r")}
            name = self._name + (f"#{','.join(f'{k}={v}' for k, v in others.items())}#" if others else "")
            self._block = _core.ProfileBlock(name, None if step is None else int(step))
            self._block.__enter__()
        return self

    def set_metadata(self, **kwargs):
        """Is kept for a block that has not begun; one that has keeps its name."""
        self._kwargs.update(kwargs)

    def __exit__(self, kind, error, trace):
        if self._block is not None:
            self._block.__exit__(None, None, None)
            self._block = None


class _NotServed:
    """TensorFlow's remote profiler: here a process writes its own profile."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"tf.profiler.experimental.{self._name}.{name}: profiles are not served; start() and stop() write files")


server, client = _NotServed("server"), _NotServed("client")
