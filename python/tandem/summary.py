"""tf.summary: event files, written by tensorboard's own writer."""
import contextlib
import functools
import os
import threading
import time

import numpy as np

from tandem import _core
from tandem._face import any_tensor, convert
from tandem._host_calls import when_run

_local = threading.local()


def _state():
    if not hasattr(_local, "writers"):
        _local.writers, _local.step, _local.record, _local.prefix = [], None, True, None
    return _local


class SummaryWriter:
    """Writes the summaries that are made while it is the default."""

    def __init__(self, logdir, suffix=""):
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        os.makedirs(logdir, exist_ok=True)
        self._writer, self._event, self._open = EventFileWriter(logdir, filename_suffix=suffix), event_pb2.Event, True

    def add(self, summary, step):
        if self._open:
            self._writer.add_event(self._event(wall_time=time.time(), step=int(step), summary=summary))

    @contextlib.contextmanager
    def as_default(self, step=None):
        state = _state()
        before = state.step
        state.writers.append(self)
        if step is not None:
            state.step = step
        try:
            yield self
        finally:
            state.writers.pop()
            state.step = before if step is not None else state.step
            self.flush()

    def set_as_default(self, step=None):
        _state().writers.append(self)
        if step is not None:
            _state().step = step

    def init(self):
        return None

    def flush(self):
        if self._open:
            self._writer.flush()

    def close(self):
        if self._open:
            self._writer.flush()
            self._writer.close()
            self._open = False


class _NoWriter(SummaryWriter):
    def __init__(self):
        self._open = False


def create_file_writer(
    logdir,
    max_queue=None,
    flush_millis=None,
    filename_suffix=None,
    name=None,
    experimental_trackable=False,
    experimental_mesh=None,
):
    return SummaryWriter(os.fspath(logdir) if not hasattr(logdir, "numpy") else logdir.numpy().decode(), filename_suffix or ".v2")


def create_noop_writer():
    return _NoWriter()


def _is_on():
    state = _state()
    record = state.record() if callable(state.record) else state.record
    return bool(state.writers) and bool(record)


def should_record_summaries():
    return convert(_is_on())


@contextlib.contextmanager
def record_if(condition):
    state = _state()
    before, state.record = state.record, condition
    try:
        yield
    finally:
        state.record = before


def _step(step):
    step = _state().step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through tf.summary.experimental.set_step()"
        )
    return int(step.numpy() if hasattr(step, "numpy") else step)


def _write(summary, step):
    if not _is_on():
        return convert(False)
    _state().writers[-1].add(summary, _step(step))
    return convert(True)


def _tagged(name):
    from tandem import _names

    prefix = _state().prefix
    return (_names.current_prefix() if prefix is None else prefix) + name


def _recorded(function):
    """A function that writes a summary: inside of a compiled function it does so when that runs, with the writer and the names of now."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        state = _state()
        if not _core.is_tracing():
            return function(*args, **kwargs)
        if not state.writers:
            return convert(False)
        writer, prefix, record = state.writers[-1], _tagged(""), state.record() if callable(state.record) else state.record

        def write_now(values):
            given, named, step, is_on = values
            now = _state()
            before = now.writers, now.step, now.record, now.prefix
            now.writers, now.step, now.record, now.prefix = [writer], step, is_on, prefix
            try:
                function(*given, **named)
            finally:
                now.writers, now.step, now.record, now.prefix = before

        when_run(write_now, (args, kwargs, state.step, record), "summary")
        return convert(True)

    return call


@_recorded
def write(tag, tensor, step=None, metadata=None, name=None):
    from tensorboard.compat.proto.summary_pb2 import Summary

    from tandem._protos import array_to_tensor

    if not _is_on():
        return convert(False)
    value = Summary.Value(tag=_tagged(tag), tensor=array_to_tensor(any_tensor(tensor() if callable(tensor) else tensor).numpy()))
    if metadata is not None:
        value.metadata.CopyFrom(metadata)
    return _write(Summary(value=[value]), step)


@_recorded
def scalar(name, data, step=None, description=None):
    from tensorboard.plugins.scalar import metadata

    if not _is_on():
        return convert(False)
    value = np.float32(any_tensor(data).numpy())
    if np.ndim(value):
        raise ValueError(f"tf.summary.scalar: '{name}' is no single number, its shape is {np.shape(value)}")
    return write(name, value, step, metadata.create_summary_metadata(display_name="", description=description))


@_recorded
def histogram(name, data, step=None, buckets=None, description=None):
    from tensorboard.plugins.histogram import summary_v2

    if not _is_on():
        return convert(False)
    pb = summary_v2.histogram_pb(name, np.asarray(any_tensor(data).numpy()), buckets, description)
    pb.value[0].tag = _tagged(name)
    return _write(pb, step)


@_recorded
def text(name, data, step=None, description=None):
    from tensorboard.plugins.text import summary_v2

    if not _is_on():
        return convert(False)
    value = any_tensor(data).numpy()
    pb = summary_v2.text_pb(
        _tagged(name), value.decode() if isinstance(value, bytes) else np.vectorize(lambda w: w.decode())(value), description
    )
    return _write(pb, step)


@_recorded
def image(name, data, step=None, max_outputs=3, description=None):
    """[k, h, w, c] in 0..1 or as bytes; stored as PNG."""
    from tensorboard.plugins.image import metadata

    if not _is_on():
        return convert(False)
    array = np.asarray(any_tensor(data).numpy())
    if array.ndim != 4:
        raise ValueError(f"tf.summary.image: [k, h, w, c] is wanted, got {array.shape}")
    if array.dtype.kind == "f":
        array = (np.clip(array, 0, 1) * 255.999).astype(np.uint8)
    words = [str(array.shape[2]).encode(), str(array.shape[1]).encode()] + [_png(a) for a in array[:max_outputs]]
    return write(
        name, any_tensor(words, "string"), step, metadata.create_summary_metadata(display_name="", description=description)
    )


def _png(array):
    import struct
    import zlib

    array = np.ascontiguousarray(array.astype(np.uint8))
    height, width, channels = array.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + array[i].tobytes() for i in range(height))

    def chunk(tag, body):
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))

    return b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    ) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@_recorded
def audio(name, data, sample_rate, step=None, max_outputs=3, encoding=None, description=None):
    """[k, frames, channels] in -1..1; stored as WAV."""
    import io
    import wave

    from tensorboard.plugins.audio import metadata

    if not _is_on():
        return convert(False)
    array = np.asarray(any_tensor(data).numpy())[:max_outputs]
    words = []
    for clip in array:
        out = io.BytesIO()
        with wave.open(out, "wb") as f:
            f.setnchannels(clip.shape[1])
            f.setsampwidth(2)
            f.setframerate(int(sample_rate))
            f.writeframes((np.clip(clip, -1, 1) * 32767).astype("<i2").tobytes())
        words.append([out.getvalue(), b""])
    kind = metadata.create_summary_metadata(display_name="", description=description, encoding=metadata.Encoding.Value("WAV"))
    return write(name, any_tensor(words, "string"), step, kind)


def flush(writer=None, name=None):
    for w in [writer] if writer is not None else _state().writers[-1:]:
        w.flush()


def graph(graph_data):
    raise NotImplementedError("tf.summary.graph")


_trace = None  # whether the trace that is on has a profile


def trace_on(graph=True, profiler=False, profiler_outdir=None):
    """Graphs of the engine are not TensorFlow's, and are not recorded; with `profiler`, what tf.profiler.experimental.start records is."""
    global _trace
    if profiler and not _trace:
        if profiler_outdir is None:
            raise ValueError("Argument `profiler_outdir` is not specified.")
        from tandem.profiler import experimental as profiles

        profiles.start(profiler_outdir)
    _trace = bool(profiler)


def trace_export(name, step=None, profiler_outdir=None):
    """Ends the trace, and writes its profile. No graph is written."""
    global _trace
    if _trace is None:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    had, _trace = _trace, None
    if had:
        from tandem.profiler import experimental as profiles

        profiles.stop()


def trace_off():
    """Ends the trace and writes nothing."""
    global _trace
    had, _trace = _trace, None
    if had:
        from tandem.profiler import experimental as profiles

        profiles.stop(save=False)


class experimental:
    @staticmethod
    def get_step():
        return _state().step

    @staticmethod
    def set_step(step):
        _state().step = step

    @staticmethod
    @contextlib.contextmanager
    def summary_scope(name, default_name="summary", values=None):
        from tandem._names import name_scope

        with name_scope(name or default_name) as scope:
            yield scope.rstrip("/"), scope

    @staticmethod
    @_recorded
    def write_raw_pb(tensor, step=None, name=None):
        from tensorboard.compat.proto.summary_pb2 import Summary

        return _write(Summary.FromString(any_tensor(tensor).numpy()), step)
