"""Over axes: sums, extremes, means, running sums."""
import builtins

from keras.src.backend.common import standardize_dtype

from keras_tandem.src.ops._numpy.common import axis_of, cast, convert_to_tensor, floating, function, ops, ravel, resulting

# A row takes an axis, several, or none for all.


def _of_any(name, row=None):
    row = getattr(ops, row or name)

    def body(x, axis=None, keepdims=False):
        return row(convert_to_tensor(x), axis=axis, keepdims=keepdims)

    return function(name, body)


def _of_floats(name):
    row = getattr(ops, name)

    def body(x, axis=None, keepdims=False):
        return row(floating(x), axis=axis, keepdims=keepdims)

    return function(name, body)


all = _of_any("all")
any = _of_any("any")
sum = _of_any("sum")
amax = _of_any("amax", "max")
amin = _of_any("amin", "min")
nansum = _of_any("nansum")
nanprod = _of_any("nanprod")
nanmax = _of_any("nanmax")
nanmin = _of_any("nanmin")
mean = _of_floats("mean")
std = _of_floats("std")
var = _of_floats("var")
median = _of_floats("median")
nanmean = _of_floats("nanmean")
nanmedian = _of_floats("nanmedian")
nanstd = _of_floats("nanstd")
nanvar = _of_floats("nanvar")
argmax = _of_any("argmax")
argmin = _of_any("argmin")
nanargmax = _of_any("nanargmax")
nanargmin = _of_any("nanargmin")


def _extreme(name, combine):
    row, combine = getattr(ops, name), getattr(ops, combine)

    def body(x, axis=None, keepdims=False, initial=None):
        x = convert_to_tensor(x)
        if initial is None:
            return row(x, axis=axis, keepdims=keepdims)
        initial = convert_to_tensor(initial, x.dtype)
        if 0 in x.shape:  # an axis without elements has only the initial value
            return ops.full(initial, shape=ops.sum(x, axis=axis, keepdims=keepdims).dims)
        return combine(row(x, axis=axis, keepdims=keepdims), initial)

    return function(name, body)


max = _extreme("max", "maximum")
min = _extreme("min", "minimum")


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x, dtype)
    result = ops.prod(x, axis=axis, keepdims=keepdims)
    return result if dtype is None else cast(result, standardize_dtype(dtype))


def ptp(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    return ops.subtract(ops.max(x, axis=axis, keepdims=keepdims), ops.min(x, axis=axis, keepdims=keepdims))


def count_nonzero(x, axis=None):
    return ops.count_nonzero(convert_to_tensor(x), axis=axis)


def average(x, axis=None, weights=None):
    x = convert_to_tensor(x)
    if weights is None:
        return ops.mean(cast(x, resulting(x, float)), axis=axis)
    weights = convert_to_tensor(weights)
    dtype = resulting(x, weights, float)
    x, weights = cast(x, dtype), cast(weights, dtype)
    if axis is not None and weights.ndim == 1 and x.ndim > 1:
        shape = [1] * x.ndim
        shape[axis if isinstance(axis, int) else axis[0]] = -1
        weights = ops.reshape(weights, shape=shape)
    weights = ops.broadcast_to(weights, shape=x.dims)
    return ops.divide(ops.sum(ops.multiply(x, weights), axis=axis), ops.sum(weights, axis=axis))


# --- quantiles ------------------------------------------------------------------------------------------------------------------


def _quantile(name):
    row = getattr(ops, name)

    def body(x, q, axis=None, method="linear", keepdims=False):
        x = floating(x)
        q = convert_to_tensor(q)
        q = q if q.dtype.is_floating else cast(q, x.dtype)
        return row(x, q, axis=axis, method=method, keepdims=keepdims)

    return function(name, body)


quantile = _quantile("quantile")
nanquantile = _quantile("nanquantile")


def _hundredth(q):
    return ops.divide(floating(q), 100.0)


def percentile(x, q, axis=None, method="linear", keepdims=False):
    return quantile(x, _hundredth(q), axis, method, keepdims)


def nanpercentile(x, q, axis=None, method="linear", keepdims=False):
    return nanquantile(x, _hundredth(q), axis, method, keepdims)


# --- running --------------------------------------------------------------------------------------------------------------------


def _running(name, empty=None):
    """cumsum or cumprod; `empty` stands for a NaN."""
    row = getattr(ops, name.removeprefix("nan"))

    def body(x, axis=None, dtype=None):
        x = convert_to_tensor(x, dtype)
        wanted = x.dtype.name if not x.dtype.is_bool or dtype is not None else "int32"
        if axis is None:
            x, axis = ravel(x), 0
        if empty is not None and x.dtype.is_floating:
            x = ops.where(ops.is_nan(x), cast(empty, x.dtype), x)
        return cast(row(x, axis=axis), wanted)

    return function(name, body)


cumsum = _running("cumsum")
cumprod = _running("cumprod")
nancumsum = _running("nancumsum", 0)
nancumprod = _running("nancumprod", 1)


def _without(x, axis, first, last):
    """x without so many slices at the ends of an axis. The bounds are subtracted here, so that the unknown extents of two parts
    are seen to be equal."""
    axis = axis_of(axis, x.ndim)
    count = x.dims[axis]
    if isinstance(count, int):
        first, last = builtins.min(first, count), builtins.min(last, count)
    start, limit = [0] * x.ndim, list(x.dims)
    start[axis], limit[axis] = first, count - last
    return ops.slice(x, start=start, limit=limit, step=[1] * x.ndim)


def diff(a, n=1, axis=-1):
    a = convert_to_tensor(a)
    for _ in builtins.range(n):
        after, before = _without(a, axis, 1, 0), _without(a, axis, 0, 1)
        a = ops.not_equal(after, before) if a.dtype.is_bool else ops.subtract(after, before)
    return a


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = convert_to_tensor(y)
    dtype = resulting(y, float) if x is None else resulting(y, convert_to_tensor(x), float)
    y = cast(y, dtype)
    heights = ops.multiply(ops.add(_without(y, axis, 1, 0), _without(y, axis, 0, 1)), cast(0.5, dtype))
    if x is None:
        widths = convert_to_tensor(dx, dtype)
    else:
        widths = diff(cast(x, dtype), axis=0 if convert_to_tensor(x).ndim == 1 else axis)
        if widths.ndim == 1 and y.ndim > 1:
            shape = [1] * y.ndim
            shape[axis] = -1
            widths = ops.reshape(widths, shape=shape)
    return ops.sum(ops.multiply(heights, widths), axis=axis)
