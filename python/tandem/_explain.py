"""tandem.explain: where a compiled function's ops run, why, how long they are expected to take, and what is copied."""
from collections import namedtuple

from tandem import _core
from tandem._device_list import full_name
from tandem._function import Function
from tandem._function.concrete import ConcreteFunction

Row = namedtuple("Row", ["op", "device", "why", "seconds", "bytes_moved"])


def _compiled(function):
    """[(title, the engine's function)] of anything that is compiled."""
    if isinstance(function, _core.Function):
        return [("function", function)]
    if isinstance(function, ConcreteFunction):
        return [(function._owner._name, function.compiled)]
    if isinstance(function, Function):
        found = [(function._name, c.compiled) for c in function._concrete.values() if isinstance(c, ConcreteFunction)]
        return found + [pair for f in function._by_scope.values() for pair in _compiled(f)]
    steps = [getattr(f, "step", None) for f in (getattr(function, f"{kind}_function", None) for kind in ("train", "test", "predict"))]
    return [(step.name, c.function) for step in steps if hasattr(step, "_compiled") for c in step._compiled.values()]


def _time(seconds):
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _bytes(count):
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B" if count else ""


def _table(rows):
    titles = ("op", "device", "why", "predicted", "moved")
    cells = [(r.op, r.device.rsplit("device:", 1)[-1], r.why, _time(r.seconds), _bytes(r.bytes_moved)) for r in rows]
    widths = [max(len(c[i]) for c in [titles, *cells]) for i in range(len(titles))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in [titles, *cells]]
    return "\n".join(["  " + line for line in lines])


def explain(function, *args, **kwargs):
    """Prints, for each op of a compiled function, its device and why, the predicted time, and the bytes that are copied for it; gives the same as rows.
    The first line of each says how long a call takes with copies beside computing, and with everything that a memory limit asks for.

    `function` is what tf.function made, or a Keras model: then it is about the steps that it has run. With arguments the function is called
    with them first."""
    if args or kwargs:
        if not isinstance(function, (Function, ConcreteFunction)):
            function = Function(function)
        function(*args, **kwargs)
    compiled = _compiled(function)
    if not compiled:
        raise ValueError(f"explain: {function!r} has not run as a compiled function yet\n  hint: call it first, or tandem.explain(function, *arguments)")
    rows = []
    for title, engine_function in compiled:
        found = [Row(op, full_name(device), why, seconds, moved) for op, device, why, seconds, moved, *_ in engine_function.explain()]
        whole, moved = sum(r.seconds for r in found), sum(r.bytes_moved for r in found)
        print(f"{title}: predicted {_time(engine_function.predicted_seconds())} a call; {len(found)} ops, {_time(whole)} if one comes after the other, "
              f"{_bytes(moved) or 'nothing'} moved\n{_table(found)}")  # fmt: skip
        rows += found
    return rows
