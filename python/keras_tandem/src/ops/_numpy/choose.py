"""Elements by place, order and value: taking, sorting, searching, counting."""
import builtins

import numpy as np
from keras.src.backend.common.backend_utils import vectorize_impl

from keras_tandem.src.ops._numpy.common import (
    cast, convert_to_tensor, dtype_of, extent, is_number, ops, product, promoted, ravel, result_type, values,
)  # fmt: skip
from keras_tandem.src.ops._numpy.elementwise import _truth
from keras_tandem.src.ops.core import vectorized_map
from tandem._algorithms import counting


def _places(indices):
    indices = convert_to_tensor(indices)
    return indices if indices.dtype.is_integer else cast(indices, "int32")


def take(x, indices, axis=None):
    x, indices = convert_to_tensor(x), _places(indices)
    if axis is None:
        x, axis = ravel(x), 0
    return ops.take(x, indices, axis=axis)


def take_along_axis(x, indices, axis=None):
    x, indices = convert_to_tensor(x), _places(indices)
    if axis is None:
        x, indices, axis = ravel(x), ravel(indices), 0
    return ops.take_along_axis(x, indices, axis=axis)


def where(condition, x1=None, x2=None):
    condition = _truth(condition)
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("`x1` and `x2` either both should be `None` or both should have non-None value.")
    dtype = result_type(dtype_of(x1), dtype_of(x2)) if is_number(x1) and is_number(x2) else None
    x1, x2 = (convert_to_tensor(x, dtype) if dtype or not is_number(x) else x for x in (x1, x2))
    return ops.where(condition, x1, x2)


def nonzero(x):
    places = np.nonzero(np.atleast_1d(values(x, "nonzero")))
    return tuple(convert_to_tensor(p, "int32") for p in places)


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    result = []
    rest = ops.where(ops.less(indices, 0), ops.add(indices, extent(product(shape), indices.dtype)), indices)
    for d in reversed(shape):
        d = extent(d, indices.dtype)
        result.append(ops.remainder(rest, d))
        rest = ops.floor_divide(rest, d)
    return tuple(reversed(result))


# --- order ----------------------------------------------------------------------------------------------------------------------


def sort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    return ops.sort(x, axis=axis)


def argsort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None or x.ndim == 0:
        x, axis = ravel(x), 0
    return ops.argsort(x, axis=axis)


def argpartition(x, kth, axis=-1):
    """Sorted is partitioned at every place."""
    x = convert_to_tensor(x)
    count = product(x.dims) if axis is None else x.dims[axis]
    if isinstance(count, int) and not -count <= kth < count:
        raise ValueError(f"kth(={kth}) out of bounds ({count})")
    return argsort(x, axis)


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
    if sorted_sequence.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. "
            "You can use `keras.ops.vectorized_map` to extend it to N-D sequences. "
            f"Received: sorted_sequence.shape={sorted_sequence.shape}"
        )
    return _found(sorted_sequence, values, side == "right")


def _found(ordered, x, right):
    ordered, x = promoted(ordered, x)
    return ops.reshape(ops.searchsorted(ordered, ravel(x), right=right), shape=x.dims)


def digitize(x, bins):
    x, bins = convert_to_tensor(x), convert_to_tensor(bins)
    return _found(bins, x, True)


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = promoted(convert_to_tensor(x1), convert_to_tensor(x2))
    if 0 in x2.shape:
        return ops.full(bool(invert), shape=x1.dims)
    ordered = ops.sort(ravel(x2))
    last = ops.subtract(extent(ordered.dims[0]), 1)
    nearest = ops.take(ordered, ops.minimum(_found(ordered, x1, False), last))
    return (ops.not_equal if invert else ops.equal)(nearest, x1)


# --- counts ---------------------------------------------------------------------------------------------------------------------


def bincount(x, weights=None, minlength=0, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with the tandem backend")
    x = convert_to_tensor(x)
    minlength = int(minlength or 0)
    largest = values(x, "bincount")
    length = builtins.max(minlength, int(largest.max()) + 1 if largest.size else 0)
    places = x if x.dtype.is_integer else cast(x, "int32")
    if weights is None:
        return ops.bincount(places, None, length=length)
    weights = convert_to_tensor(weights)
    dtype = result_type(x.dtype, weights.dtype)
    return cast(ops.bincount(places, cast(weights, dtype), length=length), dtype)


def histogram(x, bins=10, range=None):
    x = convert_to_tensor(x)
    dtype = x.dtype.name if x.dtype.is_floating else result_type(x.dtype, float)
    x = ravel(cast(x, dtype))
    if range is None:
        low, high = (ops.min(x), ops.max(x)) if x.shape[0] != 0 else (cast(0, dtype), cast(1, dtype))
    else:
        low, high = cast(range[0], dtype), cast(range[1], dtype)
    return counting.histogram(x, low, high, bins)


def unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False, axis=None, size=None, fill_value=None):
    x = convert_to_tensor(x)
    parts = _unique_of_size(x, size, fill_value) if axis is None and size is not None else _unique(x, axis, size, fill_value)
    results = [part for part, wanted in zip(parts, (True, return_index, return_inverse, return_counts)) if wanted]
    return results[0] if len(results) == 1 else tuple(results)


def _unique(x, axis, size, fill_value):
    """Values, places, inverse and counts. How many there are is only known from the values."""
    array = values(x, "unique without size" if axis is None else "unique along an axis")
    found, index, inverse, counts = np.unique(array, True, True, True, axis, equal_nan=False)
    inverse = inverse.reshape(array.shape if axis is None else array.shape[axis])
    if size is not None:
        found, index, counts = _resized(found, size, axis, fill_value), _resized(index, size, 0), _resized(counts, size, 0, 0)
    return convert_to_tensor(found, x.dtype), *(convert_to_tensor(part, "int32") for part in (index, inverse, counts))


def _resized(array, size, axis, fill=None):
    """Cut or filled up to a size; by default with the first slice."""
    have = array.shape[axis]
    array = np.take(array, np.arange(builtins.min(size, have)), axis)
    if have >= size:
        return array
    shape = list(array.shape)
    shape[axis] = size - have
    filling = np.broadcast_to(np.take(array, [0], axis), shape) if fill is None else np.full(shape, fill, array.dtype)
    return np.concatenate([array, filling], axis)


def _unique_of_size(x, size, fill_value):
    """The same of all elements, as a shape that does not depend on them."""
    fill = None if fill_value is None else convert_to_tensor(fill_value, x.dtype)
    found, index, inverse, counts = counting.unique_of_size(ravel(x), size, fill)
    return found, index, ops.reshape(inverse, shape=x.dims), counts


def vectorize(pyfunc, *, excluded=None, signature=None):
    def mapped(function, in_axes):
        """function over the first axis of those operands whose entry of in_axes is 0."""

        def wrapped(*args):
            moving = [convert_to_tensor(a) for a, axis in zip(args, in_axes) if axis == 0]

            def one(slices):
                given = iter(slices)
                return function(*[next(given) if axis == 0 else a for a, axis in zip(args, in_axes)])

            return vectorized_map(one, moving)

        return wrapped

    return vectorize_impl(pyfunc, mapped, excluded=excluded, signature=signature)
