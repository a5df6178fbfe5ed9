"""What the rest of tf.experimental.numpy stands on: its types, and making tensors of what is given."""

import builtins

import numpy as np

from tandem import _arrays
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, convert, ints
from tandem._tensor_class import Tensor as ndarray  # noqa: F401
from tandem.experimental.numpy import _promotion, random  # noqa: F401
from tandem.experimental.numpy._promotion import experimental_enable_numpy_behavior  # noqa: F401

newaxis, pi, e, inf = None, np.pi, np.e, np.inf
bool_, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64, float16, float32, float64 = (
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
)
complex64, complex128, complex_, float_, int_ = np.complex64, np.complex128, np.complex128, np.float64, np.int64
inexact, object_, string_, unicode_ = np.inexact, np.object_, np.bytes_, np.str_
finfo, iinfo, issubdtype = np.finfo, np.iinfo, np.issubdtype

_all, _any, _max, _min, _sum, _abs, _round = (
    builtins.all,
    builtins.any,
    builtins.max,
    builtins.min,
    builtins.sum,
    builtins.abs,
    builtins.round,
)


# --- types ----------------------------------------------------------------------------------------------------------------------


def result_type(*arrays_and_dtypes):
    return _promotion.result_type(*arrays_and_dtypes)


def promote_types(type1, type2):
    return np.promote_types(_promotion.numpy_type(type1), _promotion.numpy_type(type2))


def _float():
    return as_dtype(_promotion.default_float())


def _given(dtype):
    """What a function was told: Python's float and int are NumPy's default types."""
    if dtype is builtins.float:
        return _float()
    if dtype is builtins.int:
        return as_dtype("int64")
    return as_dtype(dtype)


def array(val, dtype=None, copy=True, ndmin=0):
    found = asarray(val, dtype)
    while found.ndim < ndmin:
        found = _arrays.expand_dims(found, 0)
    return found


def asarray(a, dtype=None):
    if isinstance(a, CoreVariable):
        a = a.read()
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype is _given(dtype) else _arrays.cast(a, _given(dtype))
    if dtype is None:
        return _promotion.literal(a)
    return _arrays.cast(_promotion.literal(a), _given(dtype))


asanyarray = ascontiguousarray = asarray


def copy(a):
    return _arrays.identity(asarray(a))


def _same(*values):
    """All of them as tensors of their common type."""
    kind = _promotion.result_type(*values)
    return [_arrays.cast(asarray(v), kind) for v in values]


def _as(value, kind):
    """A number of Python's in a type, without going through 32 bits; a tensor is cast."""
    return convert(value, kind) if isinstance(value, (builtins.int, builtins.float)) else _arrays.cast(value, kind)


def _floating(x):
    """Whole numbers become floats."""
    x = asarray(x)
    return x if x.dtype.is_floating or x.dtype.is_complex else _arrays.cast(x, _float())


def _sizes(shape):
    return ints(shape) if not isinstance(shape, builtins.int) else [shape]
