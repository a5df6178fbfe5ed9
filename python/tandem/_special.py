"""Special functions that the engine has no row for, by series, continued fractions and quadrature over its ops."""
import numpy as np

from tandem import _dtypes as dtypes
from tandem._arrays import _full_like, cast, where
from tandem._face import api, convert, float_tensor, number, ops, pair, tensor

_zeros_like, _ones_like = _full_like(0), _full_like(1)


@api
def lbeta(x, name=None):
    x = float_tensor(x, "lbeta")
    if x.shape[-1] == 0:
        return ops.full(convert(np.array(-np.inf, x.dtype.as_numpy_dtype)), shape=x.dims[:-1])
    return ops.sum(ops.lgamma(x), axis=[-1]) - ops.lgamma(ops.sum(x, axis=[-1]))


@api
def polygamma(a, x, name=None):
    a, x = pair(a, x)
    a, x = float_tensor(a, "polygamma"), float_tensor(x, "polygamma")
    if not a.is_traced and len(set(a.numpy().reshape(-1).tolist())) == 1:
        made = ops.polygamma(x, order=int(a.numpy().reshape(-1)[0]))
        return made if a.ndim <= x.ndim else ops.add(made, _zeros_like(a))
    # (-1)^(a+1) a! zeta(a+1, x); the digamma function for a = 0
    n = a + 1.0
    sign = ops.subtract(ops.multiply(ops.remainder(a, 2.0), 2.0), 1.0)
    made = sign * ops.exp(ops.lgamma(n)) * zeta(n, x)
    return where(ops.equal(a, 0), ops.digamma(ops.add(x, _zeros_like(a))), made)


@api
def zeta(x, q, name=None):
    """Hurwitz's zeta function by Euler and Maclaurin's sum."""
    x, q = pair(x, q)
    x, q = float_tensor(x, "zeta"), float_tensor(q, "zeta")
    s, a = ops.cast(x, dtype="float64"), ops.cast(q, dtype="float64")
    terms = 12
    total = ops.add(_zeros_like(s), _zeros_like(a))
    for k in range(terms):
        total = total + ops.power(a + float(k), -s)
    w = a + float(terms)
    total = total + ops.power(w, 1.0 - s) / (s - 1.0) + 0.5 * ops.power(w, -s)
    bernoulli = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
    factor, power, factorial = s, ops.power(w, -s - 1.0), 1.0
    for j, b in enumerate(bernoulli, 1):
        factorial = factorial * (2 * j) * (2 * j - 1) if j > 1 else 2.0
        total = total + factor * power * (b / factorial)
        factor = factor * (s + float(2 * j - 1)) * (s + float(2 * j))
        power = power / (w * w)
    total = where(ops.less(s, 1.0), float("nan"), where(ops.equal(s, 1.0), float("inf"), total))
    return cast(total, x.dtype)


def _gamma_parts(a, x):
    """(lower series, upper fraction) of the regularised incomplete gamma function, in float64, with a fixed number of terms."""
    a, x = ops.cast(a, dtype="float64"), ops.cast(x, dtype="float64")
    a, x = ops.add(a, _zeros_like(x)), ops.add(x, _zeros_like(a))
    safe = ops.maximum(x, 1e-300)
    front = ops.exp(a * ops.log(safe) - x - ops.lgamma(a))
    term = total = ops.divide(1.0, a)
    for n in range(1, 400):
        term = term * x / (a + float(n))
        total = total + term
    lower = front * total
    # Lentz's continued fraction, from the back.
    depth = 400
    tail = x + float(2 * depth + 1) - a
    for n in range(depth, 0, -1):
        tail = x + float(2 * n - 1) - a - (float(n) * (float(n) - a)) / tail
    upper = front / tail
    use_series = ops.less(x, a + 1.0)
    outside = ops.logical_or(ops.less(x, 0), ops.less_equal(a, 0))
    lower, upper = where(use_series, lower, 1.0 - upper), where(use_series, 1.0 - lower, upper)
    none = float("nan")
    return where(outside, none, lower), where(outside, none, upper)


def _at_zero(a, x, value, made):
    return where(ops.logical_and(ops.equal(x, 0), ops.greater(a, 0)), value, made)


@api
def igamma(a, x, name=None):
    a, x = pair(a, x)
    a, x = float_tensor(a, "igamma"), float_tensor(x, "igamma")
    return cast(_at_zero(a, x, 0.0, _gamma_parts(a, x)[0]), a.dtype)


@api
def igammac(a, x, name=None):
    a, x = pair(a, x)
    a, x = float_tensor(a, "igammac"), float_tensor(x, "igammac")
    return cast(_at_zero(a, x, 1.0, _gamma_parts(a, x)[1]), a.dtype)


@api
def betainc(a, b, x, name=None):
    """Regularised, by the continued fraction of Numerical Recipes, mirrored where it converges slowly."""
    a, b = pair(a, b)
    a, x = pair(a, x)
    dtype = float_tensor(a, "betainc").dtype
    a, b, x = [ops.cast(tensor(t), dtype="float64") for t in (a, b, x)]
    a, b, x = [ops.add(t, _zeros_like(a + b + x)) for t in (a, b, x)]
    mirrored = ops.greater(x, (a + 1.0) / (a + b + 2.0))
    a, b, x = where(mirrored, b, a), where(mirrored, a, b), where(mirrored, 1.0 - x, x)
    safe = ops.clip(x, 1e-300, 1.0)
    front = ops.exp(
        ops.lgamma(a + b) - ops.lgamma(a) - ops.lgamma(b) + a * ops.log(safe) + b * ops.log1p(-ops.minimum(x, 1.0 - 1e-16))
    ) / a
    tail = _ones_like(x)
    for m in range(200, 0, -1):
        odd = -((a + float(m)) * (a + b + float(m)) * x) / ((a + float(2 * m)) * (a + float(2 * m + 1)))
        even = (float(m) * (b - float(m)) * x) / ((a + float(2 * m - 1)) * (a + float(2 * m)))
        tail = 1.0 + even / (1.0 + odd / tail)
    first = -(a + b) * x / (a + 1.0)
    value = front / (1.0 + first / tail)
    value = where(ops.less_equal(x, 0), _zeros_like(x), value)
    return cast(where(mirrored, 1.0 - value, value), dtype)


@api
def sobol_sample(dim, num_results, skip=0, dtype=dtypes.float32, name=None):
    """Sobol's low-discrepancy points, by Gray code and the direction numbers of Joe and Kuo for up to ten dimensions."""
    dim, count, skip = int(number(dim)), int(number(num_results)), int(number(skip))
    table = [(1, 0, [1]), (2, 1, [1, 3]), (3, 1, [1, 3, 1]), (3, 2, [1, 1, 1]), (4, 1, [1, 1, 3, 3]), (4, 4, [1, 3, 5, 13]), (5, 2, [1, 1, 5, 5, 17]),
             (5, 4, [1, 1, 5, 5, 5]), (5, 7, [1, 1, 7, 11, 19])]  # fmt: skip
    if dim > len(table) + 1:
        raise NotImplementedError(f"sobol_sample with {dim} dimensions; {len(table) + 1} are there")
    bits = 32
    directions = np.zeros((dim, bits), np.uint64)
    directions[0] = [1 << (bits - 1 - i) for i in range(bits)]
    for d in range(1, dim):
        s, a, m = table[d - 1]
        v = [m[i] << (bits - 1 - i) for i in range(s)]
        for i in range(s, bits):
            value = v[i - s] ^ (v[i - s] >> s)
            for k in range(1, s):
                if (a >> (s - 1 - k)) & 1:
                    value ^= v[i - k]
            v.append(value)
        directions[d] = v
    made, x = np.zeros((count, dim), np.float64), np.zeros(dim, np.uint64)
    for n in range(skip + count):
        zero = (~n & (n + 1)).bit_length() - 1
        x = x ^ directions[:, zero]
        if n >= skip:
            made[n - skip] = x / 2.0**bits
    return convert(made, dtype)
