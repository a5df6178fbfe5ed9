"""Memory of devices: what a training step takes before it runs, limits, and what is in use."""
import contextlib
import json
import re

from tandem import _core

_UNITS = {"": 1, "b": 1, "bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}

# What `tandem run --plan-only` asks of the first training step: arguments of planning.plan_step; None when programs run as usual.
_plan_only = None


def parse_size(size):
    """Bytes of a number, or of a text such as "4GiB" or "512 MiB"."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
        if not found or found[2].lower() not in _UNITS:
            raise ValueError(f'a size of memory is a number of bytes or a text such as "4GiB" or "512MiB", got "{size}"')
        size = float(found[1]) * _UNITS[found[2].lower()]
    if isinstance(size, bool) or size < 1:
        raise ValueError(f"a size of memory is at least 1 byte, got {size}")
    return int(size)


class Plan:
    """What a training step would take. Its text is a table; `as_dict()` has every number, `save(file)` writes a page."""

    def __init__(self, forecast):
        self._forecast = forecast
        self._all = json.loads(forecast.json())

    fits = property(lambda self: self._all["fits"], doc="whether there is a plan within the limit")
    limit_bytes = property(lambda self: self._all["limit_bytes"])
    least_bytes = property(lambda self: self._all["least_bytes"], doc="the smallest limit for which a plan was made")
    unlimited_bytes = property(lambda self: self._all["unlimited"]["peak_bytes"], doc="the peak without a limit")
    unlimited_seconds = property(lambda self: self._all["unlimited"]["seconds"])
    largest_batch = property(lambda self: self._all["largest_batch"]["planned"], doc="the largest that was found to fit; 0: none, or not looked for")
    curve = property(lambda self: [(c["limit_bytes"], c["seconds"]) for c in self._all["curve"]], doc="limits, and the seconds of a step within each")
    why = property(lambda self: self._all["refusal"], doc="why it does not fit; None when it does")

    @property
    def _shown(self):
        return self._all["planned"] or self._all["unlimited"]

    peak_bytes = property(lambda self: self._shown["peak_bytes"], doc="of the plan, or without a limit when none fits")
    seconds = property(lambda self: self._shown["seconds"], doc="of a step, by the cost model")
    parts = property(lambda self: dict(self._shown["parts"]), doc="what the peak is made of, in bytes")
    moves = property(lambda self: list(self._shown["moves"]), doc="what is computed again or kept on the host, and why")

    def as_dict(self):
        return self._all

    def save(self, file):
        """Writes one HTML page with the memory over the time of a step, the curve and the tables."""
        with open(file, "w", encoding="utf-8") as f:
            f.write(self._forecast.html())

    def __repr__(self):
        return self._forecast.text()


def _target_like(output, loss):
    """Targets for an output that nobody gave any: classes where the loss is sparse, numbers otherwise."""
    import numpy as np

    name = getattr(loss, "name", loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__))
    shape = (2, *output.shape[1:])
    if "sparse" in str(name).lower():
        return np.zeros(shape[:-1], "int32")
    return np.zeros(shape, "float32")


def _examples(model):
    """Two rows of data of the types that a model with known inputs takes."""
    import numpy as np
    from keras import tree

    try:
        inputs, outputs = model.inputs, model.outputs
    except (AttributeError, ValueError):
        inputs = None
    if not inputs or any(d is None for i in inputs for d in i.shape[1:]):
        raise ValueError("tandem.memory.plan: the model does not say the shapes of its inputs: give a batch of data instead of its size, plan(model, (x, y))")
    x = [np.zeros((2, *i.shape[1:]), i.dtype) for i in inputs]
    loss = model.loss
    losses = tree.flatten(loss) if isinstance(loss, (list, tuple, dict)) else [loss] * len(outputs)
    y = [_target_like(o, one) for o, one in zip(outputs, losses)]
    return (x if len(x) > 1 else x[0], y if len(y) > 1 else y[0])


def plan(model, batch, *, gpu_memory=None, card=None, device=None, curve_points=5, effort=1.0):
    """Plans one step of `model.fit` for a card of the catalogue (`cards()`), a device of this machine, or just so much memory.

    `batch` is a number of examples, or the batch itself: (x, y) or (x, y, sample_weight). Nothing runs. `effort` is about the seconds that the
    plan within the limit is searched for.
    """
    from keras_tandem.src import planning

    if isinstance(batch, int):
        data, rows = _examples(model), batch
    else:
        data, rows = batch, None
    return planning.plan_step(
        model, data, rows, limit_bytes=parse_size(gpu_memory) if gpu_memory else 0, card=card or "", device=device or "",
        curve_points=curve_points, effort=int(effort * 100_000_000),
    )  # fmt: skip


def cards():
    """Names of the cards that can be planned for."""
    return _core.cards()


def _devices_with_memory():
    return [name for name in _core.engine_devices() if not name.startswith(("cpu", "ref", "null"))]


@contextlib.contextmanager
def budget(size, device=None):
    """Inside of it, what is planned for the GPUs, or for one, stays within so much memory: `with tandem.memory.budget("512MiB"):`."""
    limit = parse_size(size)
    names = [device] if device else _devices_with_memory()
    if not names:
        raise ValueError("tandem.memory.budget: there is no GPU whose memory could be limited")
    before = {name: _core.memory_info(name)[2] for name in names}
    try:
        for name in names:
            _core.set_memory_limit(name, limit)
        yield
    finally:
        for name, bytes_before in before.items():
            _core.set_memory_limit(name, bytes_before)


def info(device=None):
    """{"current", "peak", "limit"} in bytes of a device, or of each one with memory of its own by name. A limit of 0 is none."""
    if device is None:
        return {name: info(name) for name in _devices_with_memory()}
    return dict(zip(("current", "peak", "limit"), _core.memory_info(device)))
