"""tf.math: elementwise functions and reductions. Special functions are in _special.py, segments in _segments.py."""
import builtins

import numpy as np

from tandem import errors
from tandem._arrays import _full_like, cast, expand_dims, reshape, where
from tandem._dtypes import as_dtype
from tandem._face import Composite, Tensor, any_tensor, api, axes, axis_in, convert, float_tensor, has_promotion, ints, number, of_literal, ops, pair, strict, tensor
from tandem._face import count as extent_of
from tandem._gather import searchsorted, top_k  # noqa: F401

int32, int64, float32 = as_dtype("int32"), as_dtype("int64"), as_dtype("float32")


# --- one operand ----------------------------------------------------------------------------------------------------------------


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _floating(name, row=None):
    """A function of floating numbers; integers are an error."""
    row = getattr(ops, row or name)

    def call(x, name=None):
        return row(float_tensor(x, public))

    public = name
    return api(_named(call, name, row.__doc__))


def _of_any(name, row=None):
    row = getattr(ops, row or name)

    def call(x, name=None):
        made = row(tensor(x))
        return made if type(x) is Tensor or hasattr(x, "dtype") else of_literal(made)

    return api(_named(call, name, row.__doc__))


acos, acosh, asin, asinh = _floating("acos", "arccos"), _floating("acosh", "arccosh"), _floating("asin", "arcsin"), _floating("asinh", "arcsinh")
atan, atanh, cos, cosh = _floating("atan", "arctan"), _floating("atanh", "arctanh"), _floating("cos"), _floating("cosh")
sin, sinh, tan, tanh = _floating("sin"), _floating("sinh"), _floating("tan"), _floating("tanh")
exp, expm1, log, log1p = _floating("exp"), _floating("expm1"), _floating("log"), _floating("log1p")
sqrt, rsqrt, sigmoid, log_sigmoid = _floating("sqrt"), _floating("rsqrt"), _floating("sigmoid"), _floating("log_sigmoid")
erf, erfc, erfinv, ndtri = _floating("erf"), _floating("erfc"), _floating("erfinv"), _floating("ndtri")
lgamma, digamma = _floating("lgamma"), _floating("digamma")
bessel_i0, bessel_i0e, bessel_i1, bessel_i1e = _floating("bessel_i0", "i0"), _floating("bessel_i0e", "i0e"), _floating("bessel_i1", "i1"), _floating("bessel_i1e", "i1e")
reciprocal = _floating("reciprocal")
softsign, softplus = _floating("softsign"), _floating("softplus")
negative, square, abs, sign = _of_any("negative"), _of_any("square"), _of_any("abs", "absolute"), _of_any("sign")
ceil, floor, is_finite, is_inf, is_nan = _of_any("ceil"), _of_any("floor"), _of_any("is_finite"), _of_any("is_inf"), _of_any("is_nan")
_round_row = _of_any("round")


@api
def round(x, name=None):
    x = tensor(x)
    return x if x.dtype.is_integer else ops.round(x)


@api
def rint(x, name=None):
    return ops.round(float_tensor(x, "rint"))


@api
def erfcinv(x, name=None):
    x = float_tensor(x, "erfcinv")
    made = -ops.ndtri(x * 0.5) * float(np.sqrt(0.5))
    infinity = convert(np.array(np.inf, x.dtype.as_numpy_dtype))
    return ops.where(ops.equal(x, 0), infinity, ops.where(ops.equal(x, 2), -infinity, made))


@api
def logical_not(x, name=None):
    return ops.logical_not(tensor(x, "bool"))


@api
def reciprocal_no_nan(x, name=None):
    x = tensor(x)
    return ops.divide_no_nan(_ones_like(x), x)


_ones_like = _full_like(1)


@api
def real(input, name=None):
    return any_tensor(input) if not isinstance(input, Composite) else tensor(input)


@api
def imag(input, name=None):
    return _full_like(0)(tensor(input))


@api
def conj(x, name=None):
    return tensor(x)


@api
def angle(input, name=None):
    x = tensor(input)
    return ops.where(ops.less(x, 0), float(np.pi), _full_like(0)(x))


# --- two operands ---------------------------------------------------------------------------------------------------------------


def _binary(name, row=None, floats=False):
    op = getattr(strict, row or name)

    def call(x, y, name=None):
        x, y = pair(x, y)
        return op(x, y)

    def floating(x, y, name=None):
        x, y = pair(x, y)
        return op(float_tensor(x, public), float_tensor(y, public))

    public = name
    slow = api(_named(floating if floats else call, name, op.__doc__))
    if floats:
        return slow

    def fast(x, y, name=None):
        if type(x) is Tensor and type(y) is Tensor:  # the common case, without looking further
            try:
                return op(x, y)
            except ValueError:
                if not has_promotion():
                    raise
        return slow(x, y)

    fast.python_function = slow.python_function
    return _named(fast, public, op.__doc__)


add, subtract, multiply = _binary("add"), _binary("subtract"), _binary("multiply")
maximum, minimum = _binary("maximum"), _binary("minimum")


@api
def floordiv(x, y, name=None):
    """The quotient, rounded down. Of floating numbers it is floor(x / y), which Python's // is not where x / y is rounded up to a whole number."""
    x, y = pair(x, y)
    x, y = tensor(x), tensor(y)
    if x.dtype.is_floating and x.dtype is y.dtype:
        return ops.floor(strict.divide(x, y))
    return strict.floor_divide(x, _divisor(y, "floordiv"))


def _divisor(y, what):
    """Whole numbers to divide by. What a compiled function divides by is not looked at."""
    if y.dtype.is_integer and not y.is_traced and not np.all(y.numpy()):
        raise errors.InvalidArgumentError(None, None, f"{what}: Integer division by zero")
    return y


def _whole_division(name, row):
    op = getattr(strict, row)

    def call(x, y, name=None):
        x, y = pair(x, y)
        return op(tensor(x), _divisor(tensor(y), public))

    public = name
    return api(_named(call, name, op.__doc__))


floormod, truncatediv, truncatemod = (
    _whole_division("floormod", "remainder"), _whole_division("truncatediv", "truncate_divide"), _whole_division("truncatemod", "fmod")
)
mod = floormod
_equal, _not_equal = _binary("equal"), _binary("not_equal")
less, less_equal, greater, greater_equal = _binary("less"), _binary("less_equal"), _binary("greater"), _binary("greater_equal")


def _logical(name):
    row = getattr(strict, name)

    def call(x, y, name=None):
        x, y = pair(x, y)
        x, y = tensor(x), tensor(y)
        for v in (x, y):
            if not v.dtype.is_bool:
                raise errors.InvalidArgumentError(None, None, f"{public}: takes bools, got a tensor of {v.dtype.name}\n  hint: tf.cast(x, tf.bool)")
        return row(x, y)

    public = name
    return api(_named(call, name, row.__doc__))


logical_and, logical_or, logical_xor = _logical("logical_and"), _logical("logical_or"), _logical("logical_xor")
atan2 = _binary("atan2", "arctan2", floats=True)
nextafter = _binary("nextafter", floats=True)
realdiv = _binary("realdiv", "divide", floats=True)


def _comparison(name, inner):
    """Shapes that do not fit are an error; None is equal to nothing."""

    def call(x, y, name=None):
        if x is None or y is None:
            return (x is y) == (public == "equal")
        return inner.python_function(x, y)

    public = name
    return api(_named(call, name, inner.__doc__))


equal, not_equal = _comparison("equal", _equal), _comparison("not_equal", _not_equal)


@api
def truediv(x, y, name=None):
    x, y = pair(x, y)
    return tensor(x) / y


divide = _named(api(lambda x, y, name=None: truediv.python_function(x, y)), "divide", "x / y, as Python divides.")


@api
def pow(x, y, name=None):
    x, y = pair(x, y)
    x, y = tensor(x), tensor(y)
    if x.dtype.is_integer and not y.is_traced and np.any(y.numpy() < 0):
        raise errors.InvalidArgumentError(None, None, "Integers to negative integer powers are not allowed")
    return strict.power(x, y)


@api
def divide_no_nan(x, y, name=None):
    x, y = pair(x, y)
    x, y = tensor(x), tensor(y)
    if x.dtype is y.dtype and x.dtype.is_integer:  # as truediv does
        x, y = [cast(v, "float32" if v.dtype.size <= 2 else "float64") for v in (x, y)]
    return strict.divide_no_nan(x, y)


@api
def multiply_no_nan(x, y, name=None):
    x, y = pair(x, y)
    y = tensor(y)
    return where(strict.equal(y, 0), _full_like(0)(y), strict.multiply(x, y))


@api
def squared_difference(x, y, name=None):
    x, y = pair(x, y)
    return ops.square(strict.subtract(x, y))


def _times_logarithm(name):
    """0 where x is 0, whatever y is: a NaN is made a number that has a logarithm there."""
    row = getattr(strict, name)

    def call(x, y, name=None):
        x, y = pair(x, y)
        x, y = float_tensor(x, public), float_tensor(y, public)
        free = ops.logical_and(ops.equal(x, 0), ops.is_nan(y))
        return row(x, ops.where(free, convert(np.array(1, y.dtype.as_numpy_dtype)), y))

    public = name
    return api(_named(call, name, row.__doc__))


xlogy, xlog1py = _times_logarithm("xlogy"), _times_logarithm("xlog1py")


@api
def xdivy(x, y, name=None):
    x, y = pair(x, y)
    x = tensor(x)
    return where(strict.equal(x, 0), _full_like(0)(x), strict.divide(x, y))


@api
def scalar_mul(scalar, x, name=None):
    x = any_tensor(x)
    scalar = tensor(scalar, None, x.dtype) if not isinstance(x, Composite) else scalar
    return x * scalar


def add_n(inputs, name=None):
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError("Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape.")
    inputs = [any_tensor(x) for x in inputs]
    total = inputs[0]
    for x in inputs[1:]:
        if x.shape != total.shape:
            raise ValueError(f"Shapes must be equal rank, but are {total.shape} and {x.shape}")
        total = total + x
    return total


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    return add_n(inputs)


@api
def lerp(start, end, weight, name=None):
    return start + (end - start) * weight


# --- limits ---------------------------------------------------------------------------------------------------------------------


@api
def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    from tandem._indexed_slices import IndexedSlices

    if isinstance(t, IndexedSlices):
        return IndexedSlices(clip_by_value(t.values, clip_value_min, clip_value_max), t.indices, t.dense_shape)
    t = tensor(t)
    low, high = [
        tensor(v, t.dtype) if not isinstance(v, (np.ndarray, np.generic)) else convert(v, t.dtype) for v in (
            clip_value_min, clip_value_max
        )
    ]
    made = strict.maximum(strict.minimum(t, high), low)
    if made.shape != t.shape:
        raise errors.InvalidArgumentError(
            None, None, f"clip_by_value: limits of shapes {low.shape} and {high.shape} do not fit the tensor's {t.shape}"
        )
    return made


def _limit(x, dtype):
    return convert(x, dtype) if isinstance(x, (int, float, np.ndarray, np.generic)) else tensor(x, dtype)


@api
def clip_by_norm(t, clip_norm, axes=None, name=None):
    from tandem._indexed_slices import IndexedSlices

    if isinstance(t, IndexedSlices):
        return IndexedSlices(clip_by_norm(t.values, clip_norm, axes), t.indices, t.dense_shape)
    t = tensor(t)
    clip = _limit(clip_norm, t.dtype)
    total = ops.sum(t * t, axis=ints(axes), keepdims=True)
    length = ops.where(ops.greater(total, 0), ops.sqrt(ops.where(ops.greater(total, 0), total, _ones_like(total))), total)
    return t * clip / strict.maximum(length, clip)


def global_norm(t_list, name=None):
    squares = [ops.sum(ops.square(_values(t))) for t in t_list if t is not None]
    if not squares:
        return convert(0.0)
    total = squares[0]
    for s in squares[1:]:
        total = total + s
    return ops.sqrt(total)


def _values(t):
    from tandem._indexed_slices import IndexedSlices

    return t.values if isinstance(t, IndexedSlices) else tensor(t)


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    from tandem._indexed_slices import IndexedSlices

    norm = global_norm(t_list) if use_norm is None else tensor(use_norm)
    clip = _limit(clip_norm, norm.dtype)
    scale = clip * ops.minimum(ops.divide(1.0, norm), ops.divide(1.0, clip))
    scale = scale + (norm - norm)  # a norm that is no number makes all of them none

    def scaled(t):
        if t is None:
            return None
        if isinstance(t, IndexedSlices):
            return IndexedSlices(t.values * cast(scale, t.values.dtype), t.indices, t.dense_shape)
        return tensor(t) * cast(scale, tensor(t).dtype)

    return [scaled(t) for t in t_list], norm


# --- reductions -----------------------------------------------------------------------------------------------------------------


def _with_neutral(x, axis, row):
    """Nothing has a largest element: there the neutral number of the reduction is the only one."""
    if x.dtype.is_floating:
        value = -np.inf if row == "max" else np.inf
    else:
        value = x.dtype.min if row == "max" else x.dtype.max
    reduced = builtins.range(x.ndim) if axis is None else [axis_in(a, x.ndim) for a in axis]
    if not builtins.any(x.shape[a] == 0 for a in reduced):
        return x
    dims = [1 if a in reduced else d for a, d in enumerate(x.dims)]
    return ops.full(convert(np.array(value, x.dtype.as_numpy_dtype)), shape=dims)


def _reduction(name, row, kinds=None):
    op = getattr(ops, row)

    def call(input_tensor, axis=None, keepdims=False, name=None):
        x = tensor(input_tensor) if kinds != "bool" else tensor(input_tensor, "bool")
        if row in ("max", "min") and 0 in x.shape.as_list():
            x = _with_neutral(x, axes(axis), row)
        made = op(x, axis=axes(axis), keepdims=bool(keepdims))
        return made if made.dtype is x.dtype else ops.cast(made, dtype=x.dtype)

    return api(_named(call, name, op.__doc__))


reduce_sum, reduce_prod = _reduction("reduce_sum", "sum"), _reduction("reduce_prod", "prod")
reduce_max, reduce_min = _reduction("reduce_max", "max"), _reduction("reduce_min", "min")
reduce_all, reduce_any = _reduction("reduce_all", "all", "bool"), _reduction("reduce_any", "any", "bool")


@api
def reduce_mean(input_tensor, axis=None, keepdims=False, name=None):
    x = tensor(input_tensor)
    if x.dtype.is_integer:  # TensorFlow divides whole numbers
        wide = as_dtype("uint64" if x.dtype.is_unsigned else "int64")
        total = reduce_sum(ops.cast(x, dtype=wide), axis, keepdims)
        count = x.shape.num_elements() // builtins.max(total.shape.num_elements(), 1)
        return ops.cast(ops.truncate_divide(total, convert(count, wide)), dtype=x.dtype)
    return ops.mean(x, axis=axes(axis), keepdims=bool(keepdims))


@api
def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    x = tensor(input_tensor)
    if x.dtype.is_integer:
        raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
    return ops.var(x, axis=axes(axis), keepdims=bool(keepdims))


@api
def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    return ops.sqrt(reduce_variance(input_tensor, axis, keepdims))


@api
def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None):
    x = tensor(input_tensor)
    total = reduce_sum(ops.square(x), axis, keepdims)
    return ops.sqrt(total) if x.dtype.is_floating else cast(ops.sqrt(cast(total, "float64")), x.dtype)


@api
def reduce_logsumexp(input_tensor, axis=None, keepdims=False, name=None):
    return ops.logsumexp(float_tensor(input_tensor, "reduce_logsumexp"), axis=axes(axis), keepdims=bool(keepdims))


@api
def count_nonzero(input, axis=None, keepdims=None, dtype=int64, name=None):
    x = any_tensor(input)
    if x.dtype.name == "string":
        x = x != ""
    return cast(ops.count_nonzero(x, axis=axes(axis), keepdims=bool(keepdims)), dtype)


def _arg(name, row):
    op = getattr(ops, row)

    def call(input, axis=None, output_type=int64, name=None):
        x = tensor(input)
        axis = 0 if axis is None else number(axis)
        if x.dtype.is_floating:  # a NaN is never the one, where the row takes it for the first
            x = ops.where(ops.is_nan(x), convert(np.array(-np.inf if row == "argmax" else np.inf, x.dtype.as_numpy_dtype)), x)
        return ops.cast(op(x, axis=axis_in(axis, x.ndim)), dtype=as_dtype(output_type))

    return api(_named(call, name, op.__doc__))


argmax, argmin = _arg("argmax", "argmax"), _arg("argmin", "argmin")


def _running(name):
    op = getattr(ops, name)

    def call(x, axis=0, exclusive=False, reverse=False, name=None):
        x = tensor(x)
        made = op(x, axis=axis_in(axis, x.ndim), reverse=bool(reverse), exclusive=bool(exclusive))
        return made if made.dtype is x.dtype else ops.cast(made, dtype=x.dtype)

    return api(_named(call, name, op.__doc__))


cumsum, cumprod = _running("cumsum"), _running("cumprod")


@api
def cumulative_logsumexp(x, axis=0, exclusive=False, reverse=False, name=None):
    x = float_tensor(x, "cumulative_logsumexp")
    axis = axis_in(axis, x.ndim)
    x = ops.flip(x, axis=[axis]) if reverse else x
    length = x.dims[axis]
    lowest = convert(np.array(-np.inf, x.dtype.as_numpy_dtype))
    if 0 in x.shape.as_list():
        return x
    # All prefixes at once: row i of a lower triangle.
    spread = expand_dims(ops.moveaxis(x, source=[axis], destination=[-1]), -2)
    kept = ops.tri(rows=[length], columns=[length], k=-1 if exclusive else 0, dtype="bool")
    masked = ops.where(kept, spread, lowest)
    peak = ops.stop_gradient(ops.max(masked, axis=[-1], keepdims=True))
    peak = ops.where(ops.is_finite(peak), peak, _full_like(0)(peak))
    total = ops.sum(ops.where(kept, ops.exp(ops.subtract(spread, peak)), 0.0), axis=[-1])
    made = ops.add(ops.log(total), ops.squeeze(peak, axis=[-1]))
    made = ops.moveaxis(cast(made, x.dtype), source=[-1], destination=[axis])
    if exclusive:
        made = ops.maximum(made, convert(np.array(x.dtype.min, x.dtype.as_numpy_dtype)))
    return ops.flip(made, axis=[axis]) if reverse else made


# --- the rest -------------------------------------------------------------------------------------------------------------------


@api
def softmax(logits, axis=None, name=None):
    return ops.softmax(float_tensor(logits, "softmax"), axis=-1 if axis is None else number(axis))


@api
def log_softmax(logits, axis=None, name=None):
    return ops.log_softmax(float_tensor(logits, "log_softmax"), axis=-1 if axis is None else number(axis))


@api
def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    x = tensor(x)
    axis = dim if axis is None else axis
    total = ops.sum(ops.square(x), axis=axes(axis), keepdims=True)
    return x * ops.rsqrt(ops.maximum(total, convert(epsilon, x.dtype)))


@api
def polyval(coeffs, x, name=None):
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = tensor(x)
    if not coeffs:
        return _full_like(0)(x)
    total = tensor(coeffs[0], None, x.dtype)
    for c in coeffs[1:]:
        total = tensor(c, None, x.dtype) + total * x
    return total


@api
def in_top_k(targets, predictions, k, name=None):
    return ops.in_top_k(tensor(targets), tensor(predictions), k=int(number(k)))


@api
def invert_permutation(x, name=None):
    x = tensor(x)
    if not x.is_traced and sorted(x.numpy().tolist()) != list(builtins.range(x.shape[0])):
        raise errors.InvalidArgumentError(None, None, f"invert_permutation: {x.numpy().tolist()} is no permutation")
    return cast(ops.argsort(x), x.dtype)


def _steps(x):
    flat = reshape(tensor(x), [-1])
    return flat[1:], flat[:-1]


@api
def is_non_decreasing(x, name=None):
    later, earlier = _steps(x)
    return ops.all(ops.greater_equal(later, earlier))


@api
def is_strictly_increasing(x, name=None):
    later, earlier = _steps(x)
    return ops.all(ops.greater(later, earlier))


@api
def zero_fraction(value, name=None):
    return ops.mean(ops.cast(ops.equal(tensor(value), 0), dtype="float32"))


@api
def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=int32, name=None, axis=None, binary_output=False):
    from tandem import _segments

    return _segments.bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output)


@api
def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype=int32, name=None):
    labels, predictions, dtype = cast(tensor(labels), "int64"), cast(tensor(predictions), "int64"), as_dtype(dtype)
    if num_classes is None:
        largest = ops.maximum(ops.max(labels), ops.max(predictions))
        if largest.is_traced:
            from tandem._arrays import _needs_data

            raise _needs_data("tf.math.confusion_matrix without num_classes")
        num_classes = largest.item() + 1
    count = extent_of(num_classes)
    for what, x in (("labels", labels), ("predictions", predictions)):
        if not x.is_traced and x.shape.num_elements() and x.numpy().min() < 0:
            raise errors.InvalidArgumentError(None, None, f"`{what}` contains negative values")
        if not x.is_traced and isinstance(count, int) and x.shape.num_elements() and x.numpy().max() >= count:
            raise errors.InvalidArgumentError(None, None, f"`{what}` out of bound: {x.numpy().max()} with num_classes {count}")
    values = _ones_like(labels, dtype) if weights is None else cast(tensor(weights), dtype)
    base = ops.full(convert(np.array(0, dtype.as_numpy_dtype)), shape=[count, count])
    return ops.scatter(base, ops.stack([labels, predictions], axis=1), values, mode="add")


def approx_max_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True, name=None
):
    x = tensor(operand)
    values, at = ops.top_k(ops.moveaxis(x, source=[reduction_dimension], destination=[-1]), k=k)
    return tuple(ops.moveaxis(t, source=[-1], destination=[reduction_dimension]) for t in (values, at))


def approx_min_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True, name=None
):
    values, at = approx_max_k(ops.negative(tensor(operand)), k, reduction_dimension)
    return ops.negative(values), at


def __getattr__(name):
    """Special functions and segments load when they are first asked for."""
    from tandem import _segments, _special

    if name == "special":
        from tandem import _math_special as special

        return special
    for module in (_segments, _special):
        if not name.startswith("_") and hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"tf.math has no '{name}': see docs/coverage.md")
