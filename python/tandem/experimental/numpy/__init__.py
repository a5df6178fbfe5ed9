"""tf.experimental.numpy: NumPy's names and NumPy's types over the engine's tensors."""

import builtins
import math as _python_math

import numpy as np

from tandem import _arrays, bitwise, math
from tandem._face import convert, ints
from tandem._tensor_class import Tensor as ndarray  # noqa: F401
from tandem.experimental.numpy import _promotion, random  # noqa: F401
from tandem.experimental.numpy._basics import *  # noqa: F403
from tandem.experimental.numpy._basics import _any, _as, _float, _floating, _given, _max, _same, _sizes, asarray
from tandem.experimental.numpy._promotion import experimental_enable_numpy_behavior  # noqa: F401
from tandem.experimental.numpy._shapes import *  # noqa: F403
from tandem.experimental.numpy._shapes import _dot, _matmul, diagonal, moveaxis, nonzero


# --- element by element ---------------------------------------------------------------------------------------------------------


def _unary(name, inner, prepare=asarray):
    def call(x):
        return inner(prepare(x))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"numpy.{name}, element by element."
    globals()[name] = call


for _name, _inner in {
    "abs": math.abs, "absolute": math.abs, "negative": math.negative, "sign": math.sign, "square": math.square, "conj": math.conj, "conjugate": math.conj,
    "positive": _arrays.identity, "real": math.real, "imag": math.imag,
}.items():  # fmt: skip
    _unary(_name, _inner)

for _name, _inner in {
    "exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "reciprocal": math.reciprocal,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "arcsin": math.asin, "arccos": math.acos, "arctan": math.atan, "sinh": math.sinh, "cosh": math.cosh,
    "tanh": math.tanh, "arcsinh": math.asinh, "arccosh": math.acosh, "arctanh": math.atanh, "floor": math.floor, "ceil": math.ceil, "fabs": math.abs,
    "isnan": math.is_nan, "isinf": math.is_inf, "isfinite": math.is_finite, "angle": math.angle,
    "log2": lambda x: math.log(x) / _as(np.log(2.0), x.dtype), "log10": lambda x: math.log(x) / _as(np.log(10.0), x.dtype),
    "exp2": lambda x: math.exp(x * _as(np.log(2.0), x.dtype)), "cbrt": lambda x: math.sign(x) * math.pow(math.abs(x), _as(1 / 3, x.dtype)),
    "deg2rad": lambda x: x * _as(np.pi / 180, x.dtype), "rad2deg": lambda x: x * _as(180 / np.pi, x.dtype),
    "fix": lambda x: _arrays.where(math.less(x, _arrays.zeros_like(x)), math.ceil(x), math.floor(x)),
    "isposinf": lambda x: math.logical_and(math.is_inf(x), math.greater(x, _arrays.zeros_like(x))),
    "isneginf": lambda x: math.logical_and(math.is_inf(x), math.less(x, _arrays.zeros_like(x))),
    "sinc": lambda x: _arrays.where(math.equal(x, _arrays.zeros_like(x)), _arrays.ones_like(x), math.divide_no_nan(math.sin(x * np.pi), x * np.pi)),
}.items():  # fmt: skip
    _unary(_name, _inner, _floating)
_unary("logical_not", math.logical_not, lambda x: _arrays.cast(asarray(x), "bool"))


def bitwise_not(x):
    x = asarray(x)
    return math.logical_not(x) if x.dtype.is_bool else bitwise.invert(x)


def signbit(x):
    return math.less(asarray(x), _arrays.zeros_like(asarray(x)))


def around(a, decimals=0):
    a = asarray(a)
    if decimals == 0:
        return math.round(a)
    factor = 10.0**decimals
    kind = a.dtype
    wide = _floating(a)
    return _arrays.cast(math.round(wide * _as(factor, wide.dtype)) / _as(factor, wide.dtype), kind)


round = around


def _binary(name, inner, prepare=_same):
    def call(x1, x2):
        return inner(*prepare(x1, x2))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"numpy.{name}, element by element."
    globals()[name] = call


def _same_floats(x, y):
    x, y = _same(x, y)
    return _floating(x), _floating(y)


def _bools(x, y):
    return _arrays.cast(asarray(x), "bool"), _arrays.cast(asarray(y), "bool")


def _or_logical(numbers, logical):
    """NumPy adds and multiplies truth values as or and and."""
    return lambda x, y: logical(x, y) if x.dtype.is_bool else numbers(x, y)


def _power(x, y):
    return math.pow(x, y)


for _name, _inner in {
    "add": _or_logical(math.add, math.logical_or), "multiply": _or_logical(math.multiply, math.logical_and), "subtract": math.subtract,
    "maximum": _or_logical(math.maximum, math.logical_or), "minimum": _or_logical(math.minimum, math.logical_and), "power": _power,
    "floor_divide": math.floordiv, "mod": math.floormod, "remainder": math.floormod, "equal": math.equal, "not_equal": math.not_equal,
    "less": math.less, "less_equal": math.less_equal, "greater": math.greater, "greater_equal": math.greater_equal,
    "matmul": lambda x, y: _matmul(x, y), "dot": lambda x, y: _dot(x, y),
}.items():  # fmt: skip
    _binary(_name, _inner)
for _name, _inner in {
    "true_divide": math.truediv, "divide": math.truediv, "arctan2": math.atan2, "float_power": math.pow, "nextafter": math.nextafter,
    "hypot": lambda x, y: math.sqrt(math.square(x) + math.square(y)),
    "logaddexp": lambda x, y: math.maximum(x, y) + math.log1p(math.exp(-math.abs(x - y))),
    "logaddexp2": lambda x, y: math.maximum(x, y) + math.log1p(exp2(-math.abs(x - y))) / _as(np.log(2.0), x.dtype),  # noqa: F405
    "heaviside": lambda x, y: _arrays.where(math.equal(x, _arrays.zeros_like(x)), _arrays.broadcast_to(y, (x + y).shape),
                                            _as(math.greater(x, _arrays.zeros_like(x)), x.dtype)),
}.items():  # fmt: skip
    _binary(_name, _inner, _same_floats)
for _name, _inner in {"logical_and": math.logical_and, "logical_or": math.logical_or, "logical_xor": math.logical_xor}.items():
    _binary(_name, _inner, _bools)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _binary(_name, lambda x, y, _name=_name: getattr(bitwise, _name)(x, y))
del _name, _inner


def divmod(x1, x2):
    return floor_divide(x1, x2), mod(x1, x2)  # noqa: F405


def gcd(x1, x2):
    x, y = _same(x1, x2)
    x, y = _arrays.broadcast_to(math.abs(x), (x + y).shape), _arrays.broadcast_to(math.abs(y), (x + y).shape)
    from tandem._control import while_loop

    def step(a, b):
        some = math.not_equal(b, _arrays.zeros_like(b))
        rest = math.floormod(a, _arrays.where(some, b, _arrays.ones_like(b)))
        return _arrays.where(some, b, a), _arrays.where(some, rest, b)

    return while_loop(lambda a, b: math.reduce_any(math.not_equal(b, _arrays.zeros_like(b))), step, (x, y))[0]


def lcm(x1, x2):
    x, y = _same(x1, x2)
    divisor = gcd(x, y)
    some = math.not_equal(divisor, _arrays.zeros_like(divisor))
    return _arrays.where(
        some, math.abs(x * y) // _arrays.where(some, divisor, _arrays.ones_like(divisor)), _arrays.zeros_like(divisor)
    )


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = _same_floats(a, b)
    near = math.less_equal(math.abs(a - b), _as(atol, a.dtype) + _as(rtol, a.dtype) * math.abs(b))
    near = math.logical_or(math.logical_and(near, math.is_finite(b)), math.equal(a, b))
    return math.logical_or(near, math.logical_and(math.is_nan(a), math.is_nan(b))) if equal_nan else near


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return math.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2):
    a, b = _same(a1, a2)
    return math.reduce_all(math.equal(a, b)) if a.shape == b.shape else convert(False)


def where(condition, x=None, y=None):
    condition = _arrays.cast(asarray(condition), "bool")
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("tnp.where: x and y are given both or not at all")
    x, y = _same(x, y)
    return _arrays.where(condition, x, y)


def select(condlist, choicelist, default=0):
    if len(condlist) != len(choicelist):
        raise ValueError(f"tnp.select: {len(condlist)} conditions and {len(choicelist)} choices")
    found = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        found = where(condition, choice, found)
    return found


def clip(a, a_min, a_max):
    found = asarray(a)
    if a_min is not None:
        found = maximum(found, a_min)  # noqa: F405
    return found if a_max is None else minimum(found, a_max)  # noqa: F405


def isscalar(num):
    return np.isscalar(num) or getattr(num, "ndim", None) == 0


def iscomplexobj(x):
    return asarray(x).dtype.is_complex


def isrealobj(x):
    return not iscomplexobj(x)


def iscomplex(x):
    x = asarray(x)
    return math.not_equal(math.imag(x), _arrays.zeros_like(math.imag(x))) if x.dtype.is_complex else _arrays.zeros_like(x, "bool")


def isreal(x):
    return math.logical_not(iscomplex(x))


# --- making ---------------------------------------------------------------------------------------------------------------------


def empty(shape, dtype=builtins.float):
    return zeros(shape, dtype)


def zeros(shape, dtype=builtins.float):
    return _arrays.zeros(_sizes(shape), _given(dtype))


def ones(shape, dtype=builtins.float):
    return _arrays.ones(_sizes(shape), _given(dtype))


def full(shape, fill_value, dtype=None):
    return _arrays.broadcast_to(asarray(fill_value, dtype), _sizes(shape))


def zeros_like(a, dtype=None):
    return _arrays.zeros_like(asarray(a), None if dtype is None else _given(dtype))


def ones_like(a, dtype=None):
    return _arrays.ones_like(asarray(a), None if dtype is None else _given(dtype))


empty_like = zeros_like


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None):
    a = asarray(a)
    return full(a.shape if shape is None else shape, asarray(fill_value, a.dtype if dtype is None else dtype))


def _made(array, dtype=None):
    """Of a NumPy array that is small or made of numbers alone."""
    array = np.asarray(array)
    if dtype is not None:
        return convert(array.astype(_given(dtype).as_numpy_dtype))
    return convert(array.astype(_promotion.default_float()) if array.dtype == np.float64 else array)


def eye(N, M=None, k=0, dtype=builtins.float):
    return _made(np.eye(N, M, k), dtype)


def identity(n, dtype=builtins.float):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    return _made(np.tri(N, M, k), dtype)


def diag_indices(n, ndim=2):
    return (convert(np.arange(n)),) * ndim


def arange(start, stop=None, step=1, dtype=None):
    if stop is None:
        start, stop = 0, start
    if not step:
        raise ValueError(f"tnp.arange: step must be non-zero, got {step}")
    if dtype is None:
        dtype = _promotion.result_type(start, stop, step)
    dtype = _given(dtype)
    if _any(isinstance(v, ndarray) for v in (start, stop, step)):
        return _arrays.range(*[_arrays.cast(asarray(v), dtype) for v in (start, stop, step)])
    return convert(np.arange(start, stop, step).astype(dtype.as_numpy_dtype))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=builtins.float, axis=0):
    start, stop = _same_floats(asarray(start, _float()), asarray(stop, _float()))
    dtype = None if dtype is None else _given(dtype)
    parts = num - 1 if endpoint else num
    step = (stop - start) / _as(_max(parts, 1), start.dtype)
    places = _as(_arrays.range(num), start.dtype)
    places = _arrays.reshape(places, [num] + [1] * (start + stop).ndim)
    found = start + places * step
    if endpoint and num > 1:  # the last one is exactly the end
        last = _arrays.broadcast_to(stop, found.shape[1:])
        found = _arrays.concat([found[:-1], _arrays.expand_dims(last, 0)], 0)
    found = found if axis == 0 else moveaxis(found, 0, axis)
    found = found if dtype is None else _arrays.cast(found, dtype)
    return (found, step) if retstep else found


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    found = power(base, linspace(start, stop, num, endpoint, axis=axis))  # noqa: F405
    return found if dtype is None else _arrays.cast(found, _given(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    found = exp(linspace(log(start), log(stop), num, endpoint, axis=axis))  # noqa: F405
    return found if dtype is None else _arrays.cast(found, _given(dtype))


def vander(x, N=None, increasing=False):
    x = asarray(x)
    N = x.shape[0] if N is None else N
    order = range(N) if increasing else range(N - 1, -1, -1)
    return _arrays.stack([math.pow(x, _as(k, x.dtype)) for k in order], axis=-1)


def meshgrid(*xi, **kwargs):
    sparse, copy = kwargs.pop("sparse", False), kwargs.pop("copy", True)
    indexing = kwargs.pop("indexing", "xy")
    if sparse or not copy or kwargs:
        raise ValueError("tnp.meshgrid: only full grids that are copies are made; `indexing` may be given")
    return _arrays.meshgrid(*[asarray(x) for x in xi], indexing=indexing)


def ix_(*args):
    found = []
    for i, x in enumerate(args):
        x = asarray(x)
        if x.dtype.is_bool:
            x = nonzero(x)[0]
        found.append(_arrays.reshape(x, [-1 if j == i else 1 for j in range(len(args))]))
    return found


# --- reductions -----------------------------------------------------------------------------------------------------------------


def _axes(axis):
    return None if axis is None else ints(axis) if isinstance(axis, (tuple, list)) else builtins.int(axis)


def _whole(x):
    """What a sum of whole numbers is: at least of the platform's size."""
    if x.dtype.is_bool or x.dtype.is_integer and x.dtype.size < 8:
        return _arrays.cast(x, "uint64" if x.dtype.is_unsigned else "int64")
    return x


def _reduction(name, inner, prepare):
    def call(a, axis=None, dtype=None, keepdims=None):
        x = prepare(asarray(a)) if dtype is None else asarray(a, dtype)
        return inner(x, _axes(axis), bool(keepdims))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"numpy.{name} along axes."
    return call


sum = _reduction("sum", math.reduce_sum, _whole)
prod = _reduction("prod", math.reduce_prod, _whole)
mean = _reduction("mean", math.reduce_mean, _floating)


def _cleared(value):
    def prepare(x):
        x = _floating(x) if x.dtype.is_floating else x
        return _whole(_arrays.where(math.is_nan(x), _as(value, x.dtype), x) if x.dtype.is_floating else x)

    return prepare


nansum = _reduction("nansum", math.reduce_sum, _cleared(0))
nanprod = _reduction("nanprod", math.reduce_prod, _cleared(1))


def nanmean(a, axis=None, dtype=None, keepdims=None):
    x = _floating(a)
    count = math.reduce_sum(_as(math.logical_not(math.is_nan(x)), x.dtype), _axes(axis), bool(keepdims))
    return nansum(x, axis, dtype, keepdims) / count


def max(a, axis=None, keepdims=None):
    a = asarray(a)
    return (math.reduce_any if a.dtype.is_bool else math.reduce_max)(a, _axes(axis), bool(keepdims))


def min(a, axis=None, keepdims=None):
    a = asarray(a)
    return (math.reduce_all if a.dtype.is_bool else math.reduce_min)(a, _axes(axis), bool(keepdims))


amax, amin = max, min


def ptp(a, axis=None, keepdims=None):
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=None):
    if out is not None:
        raise ValueError("tnp.var: out is not supported, tensors do not change")
    x = _floating(a) if dtype is None else asarray(a, dtype)
    axes = range(x.ndim) if axis is None else [_axes(axis)] if isinstance(axis, builtins.int) else _axes(axis)
    count = _python_math.prod(x.shape[k] for k in axes)
    return (
        math.reduce_variance(x, _axes(axis), bool(keepdims)) * _as(count / (count - ddof), x.dtype)
        if ddof
        else math.reduce_variance(x, _axes(axis), bool(keepdims))
    )


def std(a, axis=None, keepdims=None):
    return math.reduce_std(_floating(a), _axes(axis), bool(keepdims))


def average(a, axis=None, weights=None, returned=False):
    x = _floating(a)
    if weights is None:
        found, total = mean(x, axis), _as(x.shape.num_elements() if axis is None else x.shape[axis], x.dtype)
    else:
        x, weights = _same_floats(x, weights)
        if weights.ndim != x.ndim:
            weights = _arrays.reshape(weights, [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
        weights = _arrays.broadcast_to(weights, x.shape)
        total = math.reduce_sum(weights, _axes(axis))
        found = math.reduce_sum(x * weights, _axes(axis)) / total
    return (found, _arrays.broadcast_to(total, found.shape)) if returned else found


def all(a, axis=None, keepdims=None):
    return math.reduce_all(_arrays.cast(asarray(a), "bool"), _axes(axis), bool(keepdims))


def any(a, axis=None, keepdims=None):
    return math.reduce_any(_arrays.cast(asarray(a), "bool"), _axes(axis), bool(keepdims))


def count_nonzero(a, axis=None):
    return math.count_nonzero(asarray(a), axis=_axes(axis), dtype="int64")


def argmax(a, axis=None):
    a = asarray(a)
    return math.argmax(_arrays.reshape(a, [-1]) if axis is None else a, 0 if axis is None else axis)


def argmin(a, axis=None):
    a = asarray(a)
    return math.argmin(_arrays.reshape(a, [-1]) if axis is None else a, 0 if axis is None else axis)


def _running(inner):
    def call(a, axis=None, dtype=None):
        a = _whole(asarray(a)) if dtype is None else asarray(a, dtype)
        return inner(_arrays.reshape(a, [-1]) if axis is None else a, 0 if axis is None else axis)

    return call


cumsum, cumprod = _running(math.cumsum), _running(math.cumprod)


def diff(a, n=1, axis=-1):
    a = asarray(a)
    if n < 0:
        raise ValueError(f"tnp.diff: the order must be at least 0, got {n}")
    for _ in range(n):
        first = [slice(None)] * a.ndim
        last = list(first)
        first[axis], last[axis] = slice(None, -1), slice(1, None)
        a = (not_equal if a.dtype.is_bool else subtract)(a[tuple(last)], a[tuple(first)])  # noqa: F405
    return a


def polyval(p, x):
    p, x = _same(p, x)
    found = _arrays.zeros_like(x)
    for k in range(p.shape[0]):
        found = found * x + p[k]
    return found


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)
