"""Small functions of tf itself that have no family."""
import contextlib
import sys
import time

import numpy as np

from tandem import _core
from tandem import errors
from tandem import nest
from tandem._convert import Composite, register_tensor_conversion_function  # noqa: F401
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, convert, tensor
from tandem._variable import eagerly

newaxis = None


def no_op(name=None):
    return None


def group(*inputs, **kwargs):
    return None


def tuple(tensors, control_inputs=None, name=None):
    from tandem._arrays import identity

    return [t if t is None else identity(t) for t in tensors]


def guarantee_const(input, name=None):
    from tandem._arrays import identity

    return identity(input)


def timestamp(name=None):
    return convert(np.float64(time.time()))


@contextlib.contextmanager
def control_dependencies(control_inputs):
    """What has an effect happens in the order of the program; there is nothing to do."""
    if callable(control_inputs):
        control_inputs()
    yield


@contextlib.contextmanager
def init_scope():
    with eagerly():
        yield


def get_logger():
    import logging

    return logging.getLogger("tensorflow")


# --- printing -------------------------------------------------------------------------------------------------------------------


def _text(x, summarize):
    """A tensor as tf.print shows it: no commas, the middle of long axes left out."""
    from tandem._sparse import SparseTensor

    if isinstance(x, SparseTensor):
        return f"'SparseTensor(indices={_text(x.indices, summarize)}, values={_text(x.values, summarize)}, shape={_text(x.dense_shape, summarize)})'"
    if isinstance(x, CoreVariable):
        x = x.read()
    if hasattr(x, "to_list") and not isinstance(x, Tensor):
        return str(x)
    array = x.numpy()
    return _array_text(np.asarray(array, object) if x.dtype.name == "string" else np.asarray(array), summarize, 0)


def _item_text(x):
    if isinstance(x, bytes):
        return x.decode("utf-8", "replace")
    if isinstance(x, (bool, np.bool_)):
        return "1" if x else "0"
    if isinstance(x, (complex, np.complexfloating)):
        return f"({_item_text(x.real)},{_item_text(x.imag)})"
    if isinstance(x, (float, np.floating)):
        return _float_text(x)
    return str(x)


def _float_text(x):
    x = np.float32(x) if not isinstance(x, np.floating) else x
    if np.isnan(x):
        return "nan"
    if np.isinf(x):
        return "inf" if x > 0 else "-inf"
    text = np.format_float_positional(x, trim="-") if 1e-4 <= abs(x) < 1e6 or x == 0 else np.format_float_scientific(x, trim="-")
    return text.replace(".e", "e") if "e" in text else text


def _array_text(array, summarize, depth):
    if array.ndim == 0:
        return _item_text(array[()])
    edge = len(array) if summarize is None or summarize < 0 else summarize
    cut = len(array) > 2 * edge
    rows = list(array[:edge]) + list(array[len(array) - edge :] if cut else array[edge:])
    texts = [_array_text(np.asarray(r, array.dtype), summarize, depth + 1) for r in rows]
    if cut:
        texts.insert(edge, "...")
    joint = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (depth + 1)
    return "[" + joint.join(texts) + "]"


def print_(*inputs, **kwargs):
    """tf.print: to standard error unless told otherwise. In a compiled function the line appears when the function runs."""
    stream, summarize = kwargs.pop("output_stream", sys.stderr), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    if any(isinstance(x, Tensor) and x.is_traced for x in nest.flatten(inputs)):
        return _print_when_run(inputs, stream, summarize, sep, end)
    parts = []
    for x in inputs:
        parts.append(_structure_text(x, summarize))
    line = sep.join(parts) + end
    _write(line, stream)
    return None


def _structure_text(x, summarize):
    if isinstance(x, (Tensor, CoreVariable, Composite)):
        return _text(x, summarize)
    if isinstance(x, str):
        return x
    if nest.is_nested(x):
        return _nested_text(x, summarize)
    return str(x)


def _nested_text(x, summarize):
    def one(v):
        if isinstance(v, (Tensor, CoreVariable, Composite)):
            return _text(v, summarize)
        if nest.is_nested(v):
            return _nested_text(v, summarize)
        return repr(v)

    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {one(v)}" for k, v in x.items()) + "}"
    if hasattr(x, "_fields"):
        return f"{type(x).__name__}({', '.join(f'{k}={one(v)}' for k, v in zip(x._fields, x))})"
    inner = ", ".join(one(v) for v in x)
    return f"[{inner}]" if isinstance(x, list) else f"({inner}{',' if len(x) == 1 else ''})"


def _write(line, stream):
    if isinstance(stream, str):
        if stream.startswith("file://"):
            with open(stream[7:], "a") as f:
                f.write(line)
            return
        import logging

        getattr(logging.getLogger("tensorflow"), stream.split(".")[-1], logging.info)(line)
        return
    stream.write(line)
    stream.flush()


def _print_when_run(inputs, stream, summarize, sep, end):
    flat = nest.flatten(inputs)
    tensors = [x for x in flat if isinstance(x, (Tensor, CoreVariable))]

    def write(*values):
        source = iter(values)
        filled = [next(source) if isinstance(x, (Tensor, CoreVariable)) else x for x in flat]
        print_(*nest.pack_sequence_as(inputs, filled), output_stream=stream, summarize=summarize, sep=sep, end=end)
        return []

    host_call(write, tensors, [])


def host_call(function, tensors, results):
    """Calls back into Python when the graph runs; without the engine's part for it the function runs eagerly."""
    call = getattr(_core, "host_call", None)
    if call is None:
        from tandem._trace import NeedsData

        raise NeedsData("a call back into Python")
    return call(lambda values: list(function(*values)), [tensor(t) for t in tensors], results)


# --- Python inside of functions -------------------------------------------------------------------------------------------------


def _results_as(result, Tout):
    if Tout is None or (isinstance(Tout, (list, __builtins_tuple)) and not Tout):
        return None if Tout is None else []
    many = isinstance(Tout, (list, __builtins_tuple))
    kinds = list(Tout) if many else [Tout]
    values = list(result) if many or isinstance(result, (list, __builtins_tuple)) else [result]
    made = []
    for value, kind in zip(values, kinds):
        kind = getattr(kind, "dtype", kind)
        made.append(_result_as(value, as_dtype(kind)))
    return made if many else made[0]


def _result_as(value, dtype):
    if isinstance(value, (Tensor, CoreVariable, Composite)):
        value = any_tensor(value)
        if value.dtype is not dtype:
            raise errors.InvalidArgumentError(
                None, None, f"py_function: the {dtype.name} that Tout names is a {value.dtype.name}"
            )
        return value
    return any_tensor(np.asarray(value).astype(dtype.as_numpy_dtype) if dtype._code >= 0 else value, dtype)


__builtins_tuple = ().__class__


def _on_host(func, inp, Tout, unpack):
    inp = [] if inp is None else inp
    single = not isinstance(inp, (list, __builtins_tuple))
    tensors = [any_tensor(x) for x in ([inp] if single else inp)]
    if any(isinstance(t, Tensor) and t.is_traced for t in tensors) or _core.is_tracing():
        from tandem._trace import NeedsData

        raise NeedsData("a call of a Python function whose result has a shape that is not known")
    return _results_as(func(*[unpack(t) for t in tensors]), Tout)


def py_function(func=None, inp=None, Tout=None, name=None):
    if func is None:
        return lambda f: lambda *args: py_function(f, args, Tout, name)
    return _on_host(func, inp, Tout, lambda t: t)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    if func is None:
        return lambda f: lambda *args: numpy_function(f, args, Tout, stateful, name)
    return _on_host(func, inp, Tout, lambda t: t.numpy())


def make_ndarray(tensor):
    """The array of a TensorProto."""
    from tandem._protos import tensor_to_array

    return tensor_to_array(tensor)


def make_tensor_proto(values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False):
    from tandem._protos import array_to_tensor

    return array_to_tensor(values, dtype, shape)


def load_library(library_location):
    raise NotImplementedError(f"tf.load_library: ops of TensorFlow's own libraries cannot be loaded ({library_location})")


load_op_library = load_library


def fingerprint(data, method="farmhash64", name=None):
    raise NotImplementedError("tf.fingerprint")


class CriticalSection:
    """Runs one function at a time."""

    def __init__(self, name=None, shared_name=None, critical_section_def=None, import_scope=None):
        import threading

        self._lock, self.name = threading.RLock(), name or "critical_section"

    def execute(self, fn, exclusive_resource_access=True, name=None):
        with self._lock:
            return fn()


class DeviceSpec:
    """A device's name in parts."""

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self.job, self.replica, self.task, self.device_type, self.device_index = job, replica, task, device_type, device_index

    @classmethod
    def from_string(cls, spec):
        parts = {}
        for piece in filter(None, spec.split("/")):
            key, *rest = piece.split(":")
            if key == "device":
                parts["device_type"], *more = rest
                if more and more[0] != "*":
                    parts["device_index"] = int(more[0])
            elif key.upper() in ("CPU", "GPU"):
                parts["device_type"] = key.upper()
                if rest:
                    parts["device_index"] = int(rest[0])
            elif key in ("job", "replica", "task"):
                parts[key] = rest[0] if key == "job" else int(rest[0])
            else:
                raise ValueError(f"Unknown attribute '{key}' is encountered while parsing the device spec: '{spec}'.")
        return cls(**parts)

    def parse_from_string(self, spec):
        return DeviceSpec.from_string(spec)

    def make_merged_spec(self, dev):
        mine = vars(self)
        return DeviceSpec(**{k: v if v is not None else mine[k] for k, v in vars(dev).items()})

    def replace(self, **kwargs):
        return DeviceSpec(**{**vars(self), **kwargs})

    def to_string(self):
        text = "".join(
            f"/{k}:{v}" for k, v in (("job", self.job), ("replica", self.replica), ("task", self.task)) if v is not None
        )
        if self.device_type is not None:
            text += f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
        return text

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and vars(self) == vars(other)

    def __hash__(self):
        return hash(self.to_string())

    def __repr__(self):
        return f"<DeviceSpec {self.to_string()}>"


class Graph:
    """A graph of TensorFlow 1. Functions are traced by tf.function here; only the context exists."""

    @contextlib.contextmanager
    def as_default(self):
        raise NotImplementedError("tf.Graph: graphs are made by tf.function")
        yield


class Operation:
    """A node of TensorFlow's graphs; only its name exists, for isinstance."""


class AggregationMethod:
    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2
