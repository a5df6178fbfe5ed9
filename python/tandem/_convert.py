"""Any object as a tensor."""
import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem._dtypes import as_dtype
from tandem._shape import TensorShape

Tensor, Variable = _core.Tensor, _core.Variable


class Composite:
    """The base of what acts as a tensor but is more than one, or none of numbers: complex, string, ragged and sparse tensors."""

    def __dispatch__(self, function, args, kwargs):
        """What a function of the face gives for arguments with this one among them; NotImplemented if it takes none."""
        return NotImplemented


class NotOneTensor(TypeError):
    """Raised where one tensor of numbers is wanted and `value` is something else."""

    def __init__(self, value):
        super().__init__(f"{type(value).__name__} is not one tensor of numbers")
        self.value = value


_converters = []  # (class, function(value, dtype))


def register_tensor_conversion_function(base_type, conversion_func, priority=100):
    _converters.append((base_type, lambda value, dtype: conversion_func(value, dtype=dtype, name=None, as_ref=False)))


def _has_tensor(x):
    if isinstance(x, (Tensor, Variable)) or hasattr(x, "__tandem_tensor__"):
        return True
    return isinstance(x, (list, tuple)) and any(_has_tensor(item) for item in x)


def _packed(x, dtype):
    """A list with tensors in it: stacked."""
    if not isinstance(x, (list, tuple)):
        return convert(x, dtype)
    if dtype is None:
        dtype = _type_in(x)
    return _core.ops.stack([_packed(item, dtype) for item in x])


def _type_in(x):
    for item in x:
        if isinstance(item, (list, tuple)):
            found = _type_in(item)
            if found is not None:
                return found
        elif hasattr(item, "dtype") and not isinstance(item, np.generic):
            return as_dtype(item.dtype)
    return None


def from_array(array, dtype=None):
    """A copy of a NumPy array."""
    if not array.flags.aligned or array.dtype.byteorder == ">":
        array = np.array(array, array.dtype.newbyteorder("="))
    wanted = dtypes.as_dtype_of_numpy(array.dtype)
    if dtype is not None and dtype is not wanted:
        array, wanted = array.astype(dtype.as_numpy_dtype), dtype
    if wanted.name == "bfloat16":
        return _core.from_buffer(array.view(np.uint16), dtype=wanted)
    return _core.from_buffer(array)


def _python_dtype(array):
    """What Python's numbers become: 32 bits where they fit."""
    if array.dtype == np.float64:
        return dtypes.float32
    if array.dtype == np.int64:
        fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return _dtype_of("int32" if fits else "int64")
    if array.dtype == np.uint64:
        return _dtype_of("uint64")
    return None


def _dtype_of(name):
    return as_dtype(name)


def _has_composite(x):
    return isinstance(x, Composite) or isinstance(x, (list, tuple)) and any(_has_composite(item) for item in x)


def _pack_composites(x):
    """A list of strings or complex numbers with such tensors among them."""
    while isinstance(x, (list, tuple)) and x:
        kind = next((type(item) for item in x if isinstance(item, Composite)), None)
        if kind:
            raise NotOneTensor(kind.make(x))
        x = x[0]
    raise NotOneTensor(x)


def _refuse_complex(x, array):
    """Complex numbers are tensors of another class."""
    if array.dtype.kind == "c":
        from tandem._complex import ComplexTensor

        raise NotOneTensor(ComplexTensor.make(x))


def _is_pure_python(x):
    if isinstance(x, (list, tuple)):
        return all(_is_pure_python(item) for item in x)
    return isinstance(x, (bool, int, float, range))


def _first(x):
    while isinstance(x, (list, tuple)) and x:
        x = x[0]
    return x


def _begins_with_text(x):
    return isinstance(_first(x), (str, bytes))


def _strings(x, dtype):
    from tandem import _strings

    if dtype is not None and dtype is not dtypes.string:
        raise TypeError(f"no tensor of {dtype.name} can be made of {x!r}")
    try:
        return _strings.as_strings(x)
    except TypeError:
        raise ValueError(f"Attempt to convert a value ({x!r}) with an unsupported type ({type(x)}) to a Tensor.") from None


def convert(x, dtype=None):
    """A tensor of `x`; of `dtype`, if given, without changing what numbers mean."""
    if dtype is not None:
        dtype = as_dtype(dtype)
    if isinstance(x, Tensor):
        if dtype is None or x.dtype is dtype:
            return x
        if dtypes.string in (dtype, x.dtype):
            raise TypeError(
                f"Cast {x.dtype.name} to {dtype.name} is not supported; tf.strings.as_string and to_number are between numbers "
                "and text"
            )
        return _core.ops.cast(x, dtype=dtype)
    if isinstance(x, Variable):
        return convert(x.read(), dtype)
    if isinstance(x, Composite):
        raise NotOneTensor(x)
    special = getattr(x, "__tandem_tensor__", None)
    if special is not None:
        return convert(special(), dtype)
    if isinstance(x, np.ndarray):
        if x.dtype.kind in "SUO":
            return _strings(x, dtype)
        _refuse_complex(x, x)
        return from_array(x, dtype)
    for kind, function in _converters:
        if isinstance(x, kind):
            return function(x, dtype)
    if isinstance(x, TensorShape):
        x = x.as_list()
    if isinstance(x, (list, tuple)) and _has_tensor(x):
        return _packed(x, dtype)
    if isinstance(x, (list, tuple)) and _has_composite(x):
        _pack_composites(x)
    if isinstance(x, _core.Dim):
        return _core.ops.extent(dims=[x], dtype=dtype or as_dtype("int32"))
    if isinstance(x, (list, tuple)) and any(isinstance(item, _core.Dim) for item in x):
        return _core.ops.stack([convert(item, dtype or as_dtype("int32")) for item in x])
    if hasattr(x, "__dlpack__") and not isinstance(x, np.generic) and not hasattr(x, "__array__"):
        return convert(_core.from_dlpack(x.__dlpack__()), dtype)
    if dtype is dtypes.string or _begins_with_text(x):  # NumPy would cut zeros off its end
        return _strings(x, dtype)
    try:
        array = np.asarray(x)
    except ValueError as e:
        raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor. ({e})") from None
    if array.dtype.kind in "SUO":
        return _strings(x, dtype)
    _refuse_complex(x, array)
    if dtype is None:
        first = _first(x)
        if isinstance(x, (list, tuple)) and isinstance(first, np.floating):  # it says the type of a list, whatever follows
            dtype = as_dtype(first.dtype)
        elif _is_pure_python(x) and not isinstance(x, np.generic):  # NumPy's float64 is a float, too
            dtype = _python_dtype(array)
    return from_array(array, dtype)
