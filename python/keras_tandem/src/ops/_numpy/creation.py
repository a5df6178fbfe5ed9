"""Tensors from shapes and numbers, and windows."""
import math

import numpy as np
from keras.src.backend.common import standardize_dtype

from keras_tandem.src.ops._numpy.common import (
    Dim, Tensor, axis_of, cast, convert_to_tensor, extent, floatx, is_number, ops, resulting,
)  # fmt: skip


def _shape(shape):
    """Extents, of several or of one alone; a tensor may stand for them."""
    if isinstance(shape, (list, tuple)):
        return list(shape)
    return shape if isinstance(shape, Tensor) and shape.ndim == 1 else [shape]


def full(shape, fill_value, dtype=None):
    value = convert_to_tensor(fill_value, standardize_dtype(dtype))
    return ops.full(value, shape=_shape(shape)) if value.ndim == 0 else ops.broadcast_to(value, shape=_shape(shape))


def zeros(shape, dtype=None):
    return full(shape, 0, dtype)


def ones(shape, dtype=None):
    return full(shape, 1, dtype)


def empty(shape, dtype=None):
    return full(shape, 0, dtype)


def full_like(x, fill_value, dtype=None):
    x = convert_to_tensor(x)
    return full(x.dims, fill_value, dtype or x.dtype)


def zeros_like(x, dtype=None):
    return full_like(x, 0, dtype)


def ones_like(x, dtype=None):
    return full_like(x, 1, dtype)


def empty_like(x, dtype=None):
    return full_like(x, 0, dtype)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype=dtype)


def copy(x):
    return ops.identity(convert_to_tensor(x))


def view(x, dtype=None):
    x = convert_to_tensor(x)
    return x if dtype is None else ops.bitcast(x, dtype=standardize_dtype(dtype))


def eye(N, M=None, k=0, dtype=None):
    return ops.eye(rows=[N], columns=None if M is None else [M], k=k, dtype=standardize_dtype(dtype))


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    return ops.tri(rows=[N], columns=None if M is None else [M], k=k, dtype=standardize_dtype(dtype))


def vander(x, N=None, increasing=False):
    x = convert_to_tensor(x)
    count = x.dims[0] if N is None else N
    exponents = ops.iota(shape=[count], axis=0, dtype="int32")
    if not increasing:
        exponents = ops.subtract(extent(count) - 1, exponents)
    return ops.power(ops.expand_dims(x, axis=[1]), cast(exponents, x.dtype))


def meshgrid(*x, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij'. Received: indexing={indexing}")
    vectors = [ops.reshape(convert_to_tensor(v), shape=[-1]) for v in x]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = [vectors[i].dims[0] for i in order]
    grids = []
    for i, v in enumerate(vectors):
        along = [1] * len(order)
        along[order.index(i)] = v.dims[0]
        grids.append(ops.broadcast_to(ops.reshape(v, shape=along), shape=shape))
    return grids


# --- sequences ------------------------------------------------------------------------------------------------------------------


def _plain(x):
    """A Python number where x stands for one, a symbol as it is."""
    if isinstance(x, (np.generic, np.ndarray)) or (isinstance(x, Tensor) and not x.is_traced):
        return x.item()
    return x


def arange(start, stop=None, step=None, dtype=None):
    dtype = resulting(*[x for x in (start, stop, step) if x is not None]) if dtype is None else standardize_dtype(dtype)
    start, stop, step = _plain(start), _plain(stop), _plain(step)
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if all(is_number(x) for x in (start, stop, step)):
        if dtype == "bool":
            return convert_to_tensor(np.arange(start, stop, step, dtype="bool"))
        return ops.arange(start=start, stop=stop, step=step, dtype=dtype)
    if not isinstance(step, int):
        raise NotImplementedError("arange: a step that is no whole number, while an end is not known yet")
    # (stop - start) / step, rounded up; the ends stand for extents.
    length = stop - start if step == 1 else (start - stop - step - 1) // -step if step < 0 else (stop - start + step - 1) // step
    numbers = ops.iota(shape=[length], axis=0, dtype="int32")
    return cast(ops.add(ops.multiply(numbers, step), start if is_number(start) else extent(start)), dtype)


def _space(row, start, stop, num, dtype, axis, **attributes):
    """Numbers from start to stop along a new axis."""
    dtype = resulting(start, stop, float) if dtype is None else standardize_dtype(dtype)
    compute = dtype if "float" in dtype else floatx()
    start, stop = convert_to_tensor(start, compute), convert_to_tensor(stop, compute)
    num = _plain(num)
    if isinstance(num, (Dim, Tensor)):
        result = _unknown_many(start, stop, num, **attributes)
    else:
        result = getattr(ops, row)(start, stop, num=int(num), **attributes)
    axis = axis_of(axis, result.ndim)
    if axis:
        result = ops.moveaxis(result, source=[0], destination=[axis])
    if compute != dtype:  # whole numbers below, as NumPy has it
        result = cast(ops.floor(result), dtype)
    return result


def _unknown_many(start, stop, num, endpoint, base=None):
    """linspace, or logspace with a base, of a number of elements that is an extent."""
    start, stop = ops.expand_dims(start, axis=[0]), ops.expand_dims(stop, axis=[0])
    places = ops.iota(shape=[num] + [1] * (start.ndim - 1), axis=0, dtype=start.dtype)
    parts = ops.maximum(ops.subtract(extent(num, start.dtype), 1 if endpoint else 0), 1)
    result = ops.add(start, ops.multiply(places, ops.divide(ops.subtract(stop, start), parts)))
    return result if base is None else ops.power(cast(base, start.dtype), result)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    result = _space("linspace", start, stop, num, dtype, axis, endpoint=endpoint)
    if not retstep:
        return result
    parts = num - 1 if endpoint else num
    compute = resulting(start, stop, float)
    distance = ops.subtract(convert_to_tensor(stop, compute), convert_to_tensor(start, compute))
    step = ops.divide(distance, parts) if parts > 0 else ops.multiply(distance, math.nan)
    return result, step


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    return _space("logspace", start, stop, num, dtype, axis, endpoint=endpoint, base=float(_plain(base)))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Equal ratios instead of equal distances. Both ends have the same sign."""
    compute = resulting(start, stop, float)
    first, last = convert_to_tensor(start, compute), convert_to_tensor(stop, compute)
    exponents = _space("linspace", ops.log(ops.absolute(first)), ops.log(ops.absolute(last)), num, None, 0, endpoint=endpoint)
    result = ops.multiply(ops.exp(exponents), ops.sign(first))
    # The ends themselves, without the rounding of a logarithm.
    place = ops.reshape(ops.iota(shape=[num], axis=0), shape=[num] + [1] * (result.ndim - 1))
    result = ops.where(ops.equal(place, 0), first, result)
    if endpoint and num > 1:
        result = ops.where(ops.equal(place, num - 1), last, result)
    axis = axis_of(axis, result.ndim)
    result = ops.moveaxis(result, source=[0], destination=[axis]) if axis else result
    return result if dtype is None else cast(result, standardize_dtype(dtype))


# --- windows --------------------------------------------------------------------------------------------------------------------


def _window(x, formula):
    """formula(angle) for angles from 0 to 2 pi at x places."""
    count = int(_plain(convert_to_tensor(x)))
    if count <= 1:
        return ones([max(count, 0)])
    places = np.arange(count, dtype="float64") * (2 * math.pi / (count - 1))
    return convert_to_tensor(formula(places), floatx())


def bartlett(x):
    return _window(x, lambda a: 1 - np.abs(a / math.pi - 1))


def hanning(x):
    return _window(x, lambda a: 0.5 - 0.5 * np.cos(a))


def hamming(x):
    return _window(x, lambda a: 0.54 - 0.46 * np.cos(a))


def blackman(x):
    return _window(x, lambda a: 0.42 - 0.5 * np.cos(a) + 0.08 * np.cos(2 * a))


def kaiser(x, beta):
    beta = float(_plain(convert_to_tensor(beta)))
    return _window(x, lambda a: np.i0(beta * np.sqrt(np.maximum(1 - (a / math.pi - 1) ** 2, 0))) / np.i0(beta))
