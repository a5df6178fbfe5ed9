"""Images at another size: each axis is a product with a matrix of weights, or a choice of the nearest elements. Where sizes are known the weights are
computed on the host, in 64 bits; else by ops."""
import math

import numpy as np

from tandem import _core

ops = _core.ops


# --- how much an element weighs at a distance: m is NumPy, or the engine's ops, which have the same names -------------------------------


def _triangle(m, x):
    return m.maximum(m.subtract(1.0, x), 0.0)


def _cubic(m, x):
    """Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -1/2."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return m.where(m.less(x, 1.0), near, m.where(m.less(x, 2.0), far, 0.0))


def _lanczos(radius):
    def weight(m, x):
        is_zero = m.less(x, 1e-3)
        safe = m.where(is_zero, 1.0, x)
        value = radius * m.sin(math.pi * safe) * m.sin(math.pi / radius * safe) / (math.pi**2 * safe * safe)
        return m.where(is_zero, 1.0, m.where(m.greater(x, radius), 0.0, value))

    return weight


def _gaussian(m, x):
    return m.where(m.less(x, 1.5), m.exp(-2.0 * x * x), 0.0)


def _mitchell(m, x):
    """Mitchell and Netravali, "Reconstruction filters in computer graphics", 1988, with B = C = 1/3."""
    near = (7.0 * x - 12.0) * x * x / 6.0 + 16.0 / 18.0
    far = ((-7.0 / 18.0 * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
    return m.where(m.less(x, 1.0), near, m.where(m.less(x, 2.0), far, 0.0))


KERNELS = {
    "linear": _triangle, "cubic": _cubic, "lanczos3": _lanczos(3.0), "lanczos5": _lanczos(5.0), "gaussian": _gaussian, "mitchellcubic": _mitchell,
}  # fmt: skip
for _name, _kind in (("bilinear", "linear"), ("trilinear", "linear"), ("bicubic", "cubic"), ("tricubic", "cubic")):
    KERNELS[_name] = KERNELS[_kind]
_SMOOTHING = ("gaussian", "mitchellcubic")  # these change an image at its own size, too


# --- axes -------------------------------------------------------------------------------------------------------------------------------


def _as_float(x):
    return x if x.dtype.name in ("float32", "float64") else ops.cast(x, dtype="float32")


def _range(count, axis, shape, dtype):
    return ops.cast(ops.iota(shape=[count if i == axis else s for i, s in enumerate(shape)], axis=axis), dtype=dtype)


def _weighed(m, place, old, inverse, kernel, antialias):
    """What the elements at `old`, a column, give to new ones at `place`, a row; and which of those see any."""
    distance = m.absolute(place - old)
    if antialias:  # when the image becomes smaller, each new element sees all that it stands for
        distance = distance / m.maximum(inverse, 1.0)
    return kernel(m, distance)


_LEAST = 1000.0 * 1.1920929e-07  # a sum of weights below is that of none


def _weights(count, new_count, scale, translation, kernel, antialias):
    """[count, new_count]: what each element gives to each new one. Scale and translation are scalar tensors of one type."""
    dtype = scale.dtype
    inverse = ops.divide(ops.cast(1, dtype=dtype), scale)
    place = (_range(new_count, 1, (1, 1), dtype) + 0.5) * inverse - translation * inverse - 0.5
    weights = _weighed(ops, place, _range(count, 0, (1, 1), dtype), inverse, kernel, antialias)
    total = ops.sum(weights, axis=[0], keepdims=True)
    is_seen = ops.greater(ops.absolute(total), _LEAST)
    weights = ops.where(is_seen, weights / ops.where(is_seen, total, 1.0), 0.0)
    last = ops.cast(ops.extent(dims=[count]), dtype=dtype) - 0.5
    is_inside = ops.logical_and(ops.greater_equal(place, -0.5), ops.less_equal(place, last))
    return ops.cast(ops.where(is_inside, weights, 0.0), dtype=dtype)


def _known_weights(count, new_count, method, antialias):
    """The same for an axis whose sizes are numbers."""
    if method == "area":
        edges = np.arange(new_count + 1) * (count / new_count)
        low, high, place = edges[None, :-1], edges[None, 1:], np.arange(count)[:, None]
        return np.clip(np.minimum(high, place + 1) - np.maximum(low, place), 0, None) * (new_count / count)
    inverse = count / new_count
    place = (np.arange(new_count)[None] + 0.5) * inverse - 0.5
    weights = _weighed(np, place, np.arange(count, dtype=np.float64)[:, None], inverse, KERNELS[method], antialias)
    total = weights.sum(0, keepdims=True)
    return np.where(np.abs(total) > _LEAST, weights / np.where(total == 0, 1, total), 0)


def _product(dims):
    result = 1
    for d in dims:
        result = result * d
    return result


def _apply(x, axis, weights):
    """x along an axis times a matrix [extent, new extent]; the axis is in the middle of three, so nothing moves."""
    before, after = list(x.dims[:axis]), list(x.dims[axis + 1 :])
    rows = ops.reshape(x, shape=[_product(before), x.dims[axis], _product(after)])
    result = ops.matmul(ops.transpose(ops.cast(weights, dtype=x.dtype)), rows)
    return ops.reshape(result, shape=[*before, weights.dims[1], *after])


def scale_and_translate(x, shape, axes, scales, translations, method, antialias):
    """The image whose element p is that of x at (p + 0.5 - translation) / scale - 0.5, interpolated; both have a number an axis."""
    x = _as_float(x)
    for i, axis in enumerate(axes):
        axis %= x.ndim
        weights = _weights(x.dims[axis], shape[axis], scales[i], translations[i], KERNELS[method], antialias)
        x = _apply(x, axis, weights)
    return x


def _resized(x, axis, size, method, antialias):
    count = x.dims[axis]
    if isinstance(count, int) and isinstance(size, int):
        made = _known_weights(count, size, method, antialias).astype(x.dtype.as_numpy_dtype)
        return _apply(x, axis, _core.from_buffer(np.ascontiguousarray(made)))
    scale = ops.divide(ops.cast(ops.extent(dims=[size]), dtype="float32"), ops.cast(ops.extent(dims=[count]), dtype="float32"))
    return _apply(x, axis, _weights(count, size, scale, ops.cast(0, dtype="float32"), KERNELS[method], antialias))


def _nearest(x, axis, new_count):
    # floor((i + 1/2) * count / new_count), in whole numbers
    doubled = ops.add(ops.multiply(ops.iota(shape=[new_count]), 2), 1)
    index = ops.floor_divide(ops.multiply(doubled, ops.extent(dims=[x.dims[axis]])), 2 * new_count)
    return ops.take(x, index, axis=axis)


def resize(x, axes, sizes, method, antialias=False):
    """x with these axes at these sizes. Whole numbers become floats, but for the nearest."""
    changed = [(axis % x.ndim, size) for axis, size in zip(axes, sizes) if x.shape[axis] != size or method in _SMOOTHING]
    if method == "nearest":
        for axis, size in changed:
            x = _nearest(x, axis, size)
        return x
    dtype = x.dtype
    x = _as_float(x)
    for axis, size in changed:
        x = _resized(x, axis, size, method, antialias)
    return ops.cast(x, dtype=dtype) if dtype.name in ("float16", "bfloat16") else x
