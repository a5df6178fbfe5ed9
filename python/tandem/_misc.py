"""Small functions of tf itself that have no family."""
import contextlib
import time

import numpy as np

from tandem._convert import register_tensor_conversion_function  # noqa: F401
from tandem._face import convert
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


# --- the rest ---------------------------------------------------------------------------------------------------------------------


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
    """FarmHash's fingerprint of each row's bytes, as eight of them."""
    from tandem import _core, strings
    from tandem._convert import convert
    from tandem._strings import one

    if one(method) != b"farmhash64":
        raise ValueError(f"Unsupported fingerprint method: {one(method).decode()}")
    x = convert(data)
    if not x.ndim:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    rows = x.shape[0]
    if x.dtype.name == "string":  # of one string its own; of several that of theirs
        flat = strings._s.fingerprint(_core.ops.reshape(x, shape=[-1])).numpy().view(np.uint64)
        width = max(flat.size // max(rows, 1), 1)
        parts = [flat[i * width : (i + 1) * width] for i in range(rows)]
        if width == 1:
            return convert(np.array(parts, "<u8").reshape(rows, 1).view(np.uint8))
        words = [p.astype("<u8").tobytes() for p in parts]
    else:
        array = np.ascontiguousarray(x.numpy()).reshape(rows, -1)
        words = [row.tobytes() for row in array]
    made = strings._s.fingerprint(_core.strings_from(words, [rows])).numpy().view(np.uint64)
    return convert(made.astype("<u8").reshape(rows, 1).view(np.uint8))


class CriticalSection:
    """Runs one function at a time."""

    def __init__(self, name=None, shared_name=None, critical_section_def=None, import_scope=None):
        import threading

        self._lock, self.name = threading.RLock(), name or "critical_section"

    def execute(self, fn, exclusive_resource_access=True, name=None):
        with self._lock:
            return fn()


_KINDS = ("CPU", "GPU", "TPU", "CUSTOM")


def _kind(name):
    return name.upper() if name.upper() in _KINDS else name


class DeviceSpec:
    """A device's name in parts."""

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self.job, self.replica, self.task, self.device_type, self.device_index = job, replica, task, device_type, device_index

    @classmethod
    def from_string(cls, spec):
        parts = {}
        for piece in filter(None, spec.split("/")):
            key, *rest = piece.split(":")
            if key == "device" and rest:
                parts["device_type"], *more = rest
                parts["device_type"] = _kind(parts["device_type"])
                if more and more[0] != "*":
                    parts["device_index"] = int(more[0])
            elif key.upper() in _KINDS:
                parts["device_type"] = key.upper()
                if rest and rest[0] != "*":
                    parts["device_index"] = int(rest[0])
            elif key in ("job", "replica", "task") and rest:
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
