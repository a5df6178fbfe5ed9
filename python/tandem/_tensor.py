"""What a Tensor can do beyond the engine's own: NumPy, printing, TensorFlow's members."""
import types

import numpy as np

from tandem import _core, _devices, _strings
from tandem._convert import convert
from tandem._dtypes import string
from tandem._shape import TensorShape

Tensor = _core.Tensor
ops = _core.ops


def _as_numpy(t):
    """A copy that the caller may write."""
    dtype = t.dtype
    if dtype is string:
        return np.asarray(_strings.as_numpy(t), object)
    if dtype.name == "bfloat16":
        raw = np.empty(t.shape, np.uint16)
        t.copy_into(raw)
        return raw.view(dtype.as_numpy_dtype)
    array = np.empty(t.shape, dtype.as_numpy_dtype)
    t.copy_into(array)
    return array


class NoValue(AttributeError, NotImplementedError):
    """A traced tensor has no `numpy`, as hasattr says too; a function that needs it runs eagerly."""


def numpy(self):
    array = _as_numpy(self)
    return array if array.ndim else array[()]


def _numpy(self):
    if self.is_traced:
        raise NoValue(
            "'SymbolicTensor' object has no attribute 'numpy': numpy() is only available when eager execution is enabled, and this tensor has "
            "no value while a function is traced."
        )
    return types.MethodType(numpy, self)


def _array(self, dtype=None, copy=None):
    if self.is_traced:
        raise NotImplementedError(f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array.")
    if self.dtype.name == "bfloat16":
        array = _as_numpy(self)
    else:
        array = np.asarray(memoryview(self)) if copy is False else _as_numpy(self)
    return array if dtype is None else array.astype(dtype, copy=False)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if dl_device not in (None, (1, 0)):
        raise BufferError(f"__dlpack__: device {dl_device} is not here, the tensor is on (1, 0)")
    return self.dlpack_capsule(max_version is not None and max_version[0] >= 1)


def scalar_text(x):
    """One number as TensorFlow prints it: with all digits of a Python number."""
    return repr(float(x)) if "float" in x.dtype.name else repr(x.item())


def _repr(self):
    if self.is_traced:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
    array = self.numpy()
    text = repr(array) if self.ndim or self.dtype is string else scalar_text(array)
    newline = "\n" if "\n" in text else ""
    return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={newline}{text}>"


def _str(self):
    if self.is_traced:
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'
    text = str(self.numpy())
    return f"tf.Tensor({text}, shape={self.shape}, dtype={self.dtype.name})" if self.ndim == 0 else (
        f"tf.Tensor(\n{text}, shape={self.shape}, dtype={self.dtype.name})" if "\n" in text else
        f"tf.Tensor({text}, shape={self.shape}, dtype={self.dtype.name})"
    )


def _iterate(self):
    if self.ndim == 0:
        raise TypeError("Cannot iterate over a scalar tensor.")
    if self.shape[0] is None:
        raise TypeError("Cannot iterate over a tensor with unknown first dimension.")
    return iter([self[i] for i in range(self.shape[0])])


class Reference:
    """A tensor or variable as a key: equal to another one of the same object."""

    __slots__ = ("_wrapped", "__weakref__")

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def deref(self):
        return self._wrapped

    def __eq__(self, other):
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __hash__(self):
        return id(self._wrapped)

    def __repr__(self):
        return f"<Reference wrapping {self._wrapped!r}>"


def _hash(self):
    raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")


def _set_shape(self, shape):
    """Says more about a traced tensor's shape; for one with numbers, only checks."""
    shape = TensorShape(shape)
    if not self.shape.is_compatible_with(shape):
        raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")


def _name(self):
    if not self.is_traced:
        raise AttributeError("Tensor.name is undefined when eager execution is enabled.")
    return self.__dict__.get("_graph_name") or f"Tensor_{self.identity() & 0xFFFFFF:x}:0"


def _op(self):
    raise AttributeError("Tensor.op is undefined when eager execution is enabled.")


def setup():
    """Adds the members to the class, once."""
    add = {
        "numpy": property(_numpy), "__array__": _array, "__dlpack__": _dlpack, "__repr__": _repr, "__str__": _str, "__iter__": _iterate,
        "__hash__": _hash, "ref": lambda self: Reference(self), "experimental_ref": lambda self: Reference(self),
        "get_shape": lambda self: self.shape, "set_shape": _set_shape, "rank": property(lambda self: self.ndim),
        "name": property(_name), "__array_priority__": 100, "device": property(_devices.device_of),
        "backing_device": property(_devices.device_of), "cpu": _devices.on_cpu, "gpu": _devices.on_gpu, "op": property(_op), "graph": property(_op),
        "__format__": lambda self, spec: str(self) if self.is_traced else format(self.numpy(), spec),
        "__round__": lambda self, n=None: ops.round(self),
        "__complex__": lambda self: complex(self.item()),
        "__copy__": lambda self: self, "__deepcopy__": lambda self, memo: self,
        "__reduce__": lambda self: (convert, (self.numpy(),)),
        "tolist": lambda self: self.numpy().tolist(),
    }  # fmt: skip
    for name, value in add.items():
        setattr(Tensor, name, value)


def index(x, key):
    """x[key] for keys with tensors, arrays or lists in them."""
    from tandem import _index

    return _index.index(x, key)
