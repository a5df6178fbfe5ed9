"""tf.math.special: what the engine has rows for; the rest by quadrature or series in float64."""
import numpy as np

from tandem._arrays import cast
from tandem._face import api, convert, float_tensor, ops
from tandem.math import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e  # noqa: F401


def _integral(f, low, high, count=200):
    """Gauss and Legendre's quadrature of f(x, t) over t, for every x."""
    points, weights = np.polynomial.legendre.leggauss(count)
    middle, half = (high + low) / 2, (high - low) / 2

    def call(x):
        x = ops.expand_dims(ops.cast(x, dtype="float64"), axis=[-1])
        t = convert(points * half + middle)
        return ops.sum(ops.multiply(f(x, t), convert(weights * half)), axis=[-1])

    return call


def _like(value, x):
    return convert(np.array(value, x.dtype.as_numpy_dtype))


def _function(name, compute, at_zero=None, below=None, at_infinity=None):
    """`at_zero` is the value at a pole there, `below` that of numbers below 0, `at_infinity` that of infinity, for an odd function with its sign."""

    @api
    def call(x, name=None):
        x = float_tensor(x, public)
        made = compute(x)
        if at_infinity is not None:
            wide = ops.cast(x, dtype="float64")
            made = ops.where(ops.is_inf(x), ops.copysign(_like(at_infinity, made), wide), made)
        if at_zero is not None:
            made = ops.where(ops.equal(x, 0), _like(at_zero, made), made)
        if below is not None:
            made = ops.where(ops.less(x, 0), _like(below, made), made)
        return cast(made, x.dtype)

    public = name
    call.__name__ = call.__qualname__ = name
    return call


bessel_j0 = _function("bessel_j0", lambda x: _integral(lambda x, t: ops.cos(x * ops.sin(t)), 0, np.pi)(x) / np.pi)
bessel_j1 = _function("bessel_j1", lambda x: _integral(lambda x, t: ops.cos(t - x * ops.sin(t)), 0, np.pi)(x) / np.pi)
def _near_zero(order, x):
    """K of order 0 or 1 below 1e-3, by the first terms of its series (Abramowitz and Stegun, 9.6.11)."""
    x = ops.cast(x, dtype="float64")
    log = ops.log(ops.maximum(x, 1e-300) * 0.5)
    square = x * x * 0.25
    if order == 0:
        return square - (log + float(np.euler_gamma)) * (1.0 + square)
    return 1.0 / ops.maximum(x, 1e-300) + x * 0.5 * (log + float(np.euler_gamma) - 0.5)


def _k(order, scaled):
    def compute(x):
        weight = ops.cosh if order else lambda t: t * 0.0 + 1.0  # noqa: E731
        far = _integral(lambda x, t: ops.exp(-x * (ops.cosh(t) - (1.0 if scaled else 0.0))) * weight(t), 0, 12, 400)(x)
        near = _near_zero(order, x)
        wide = ops.cast(x, dtype="float64")
        return ops.where(ops.less(wide, 1e-3), near * ops.exp(wide) if scaled else near, far)

    return compute


bessel_k0, bessel_k1 = _function("bessel_k0", _k(0, False), np.inf, np.inf), _function("bessel_k1", _k(1, False), np.inf, np.inf)
bessel_k0e, bessel_k1e = _function("bessel_k0e", _k(0, True), np.inf, np.inf), _function("bessel_k1e", _k(1, True), np.inf, np.inf)
dawsn = _function("dawsn", lambda x: _integral(lambda x, t: x * ops.exp(x * x * (t * t - 1.0)), 0, 1)(x))
fresnel_cos = _function("fresnel_cos", lambda x: _integral(lambda x, t: x * ops.cos(x * x * t * t * (np.pi / 2)), 0, 1)(x), at_infinity=0.5)
fresnel_sin = _function("fresnel_sin", lambda x: _integral(lambda x, t: x * ops.sin(x * x * t * t * (np.pi / 2)), 0, 1)(x), at_infinity=0.5)
spence = _function("spence", lambda x: _integral(lambda x, t: -ops.log(1.0 - t * (1.0 - x)) / t, 0, 1, 400)(x), np.pi**2 / 6, np.nan)


def _y(order):
    def compute(x):
        first = _integral(lambda x, t: ops.sin(x * ops.sin(t) - float(order) * t), 0, np.pi, 300)(x) / np.pi
        sign = 1.0 if order == 0 else -1.0
        second = _integral(
            lambda x, t: (ops.exp(t * float(order)) + ops.exp(-t * float(order)) * sign) * ops.exp(-x * ops.sinh(t)), 0, 12, 600
        )(x) / np.pi
        # Near 0 what the integrals leave out counts: there Y = -2/pi K but for terms that vanish (Abramowitz and Stegun, 9.1.8 and 9.1.9).
        wide = ops.cast(x, dtype="float64")
        log = ops.log(ops.maximum(wide, 1e-300) * 0.5) + float(np.euler_gamma)
        square = wide * wide * 0.25
        near = log * (1.0 - square) + square if order == 0 else wide * 0.5 * (log - 0.5) - 1.0 / ops.maximum(wide, 1e-300)
        return ops.where(ops.less(wide, 1e-3), near * (2 / np.pi), first - second)

    return compute


bessel_y0, bessel_y1 = _function("bessel_y0", _y(0), -np.inf, -np.inf), _function("bessel_y1", _y(1), -np.inf, -np.inf)


def _expint(x):
    """Ei(x) = gamma + log|x| + integral of (e^(xt) - 1) / t over 0..1."""
    part = _integral(lambda x, t: ops.expm1(x * t) / t, 0, 1)(x)
    return part + ops.log(ops.absolute(ops.cast(x, dtype="float64"))) + float(np.euler_gamma)


expint = _function("expint", _expint)
