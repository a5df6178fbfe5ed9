"""Ops that take one element at a time: arithmetic, comparisons, functions, activations, conversions."""
import math

import numpy as np
import scipy.special as sp

EXACT = {"cast", "bitcast", "identity", "stop_gradient", "nextafter"}


def whole(f):
    """f(x, y) on Python's unbounded integers, wrapped to the type."""

    def wrapped(x, y):
        x, y = np.broadcast_arrays(x, y)
        mask = (1 << 8 * x.dtype.itemsize) - 1
        values = [f(int(a), int(b)) & mask for a, b in zip(x.ravel(), y.ravel())]
        return np.array(values, dtype=f"u{x.dtype.itemsize}").view(x.dtype).reshape(x.shape)

    return wrapped


def integer_power(x, y):
    if y >= 0:
        return pow(x, y, 1 << 64)
    return 0 if abs(x) != 1 else x ** (y % 2)  # the exact quotient, truncated


def truncated_quotient(x, y):
    if y == 0:
        return 0
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def by_kind(of_float, of_integer):
    return lambda x, y: of_float(x, y) if x.dtype.kind == "f" else of_integer(x, y)


def rounded(x, decimals):
    if x.dtype.kind != "f":
        unit = 10 ** max(-decimals, 0)

        def nearest(v, _):
            low = v // unit
            twice = 2 * (v - low * unit)
            return (low + (twice > unit or (twice == unit and low % 2 == 1))) * unit

        return whole(nearest)(x, x)
    # A number too large to be scaled has no such decimals; NumPy makes it infinite.
    return np.where(np.isfinite(x * 10.0 ** max(decimals, 0)), np.round(x, decimals), x)


# --- functions ---


def polygamma(x, order):
    """SciPy's knows positive numbers only; the reflection formula's derivatives of the cotangent are written out up to the second."""
    right = sp.polygamma(order, x)
    if order == 0:
        return right
    if order > 2:
        return np.where(x > 0, right, np.where(x == 0, right, np.nan))
    cot, csc2 = 1 / np.tan(np.pi * x), 1 / np.sin(np.pi * x) ** 2
    derivative = [None, -np.pi * csc2, 2 * np.pi**2 * cot * csc2][order]
    reflected = (-1) ** order * sp.polygamma(order, 1 - x) - np.pi * derivative
    poles = np.where(x == np.floor(x), np.inf if order % 2 else np.nan, reflected)
    return np.where(x < 0, poles, np.where(x == 0, np.where(order % 2 == 1, np.inf, -np.inf), right))


def entr(x):
    return np.where(x == 0, 0.0, sp.entr(x))


def nan_to_num(x, nan, posinf, neginf):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf) if x.dtype.kind == "f" else x


# --- activations, from the formulas in Keras 3's documentation ---

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def softplus(x):
    return np.logaddexp(x, 0.0)


def gelu(x, approximate):
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * sp.ndtr(x)


def gelu_left(x, approximate):
    """The sum 1 + tanh loses all digits far left, where tanh(u) = -1 + 2/(1 + exp(-2u)) keeps them."""
    if not approximate:
        return gelu(x, False)
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return np.where(x < -1, x * sp.expit(2 * u), gelu(x, True))


def hard_sigmoid(x):
    return np.clip(x / 6 + 0.5, 0, 1)


def squareplus(x, b):
    root = np.sqrt(x**2 + b)
    return np.where(x < 0, b / (root - x) / 2, (x + root) / 2)  # the sum cancels on the left


# --- conversions ---


def cast(x, dtype):
    if dtype == np.bool_:
        return x != 0
    if dtype.kind in "iu" and x.dtype.kind not in "iub":
        limits = np.iinfo(dtype)
        values = []
        for v in x.astype(np.float64).ravel():
            values.append(0 if math.isnan(v) else limits.max if v == math.inf else limits.min if v == -math.inf
                          else min(max(int(v), limits.min), limits.max))
        return np.array(values, dtype=dtype).reshape(x.shape)
    return x.astype(dtype)


def bitcast(x, dtype):
    if x.ndim == 0:
        return x.reshape(1).view(dtype)[0]
    if x.size == 0:
        return np.empty(x.shape[:-1] + (x.shape[-1] * x.dtype.itemsize // dtype.itemsize,), dtype)
    return np.ascontiguousarray(x).view(dtype)


REFERENCE = {
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
    # arithmetic
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "absolute": np.absolute,
    "sign": np.sign,
    "square": np.square,
    "reciprocal": lambda x: 1 / x,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "clip": np.clip,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "truncate_divide": by_kind(lambda x, y: np.trunc(x / y), whole(truncated_quotient)),
    "divide_no_nan": lambda x, y: np.where(y == 0, 0.0, x / y),
    "gcd": np.gcd,
    "lcm": np.lcm,
    "power": by_kind(np.power, whole(integer_power)),
    "ldexp": np.ldexp,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "heaviside": np.heaviside,
    "nextafter": np.nextafter,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    # comparisons, logic, bits
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
    "is_posinf": lambda x: np.isinf(x) & (x > 0),
    "is_neginf": lambda x: np.isinf(x) & (x < 0),
    "signbit": lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    "is_close": np.isclose,
    "where": np.where,
    # functions
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "xlogy": sp.xlogy,
    "xlog1py": sp.xlog1py,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "sinc": np.sinc,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": rounded,
    "nan_to_num": nan_to_num,
    "erf": sp.erf,
    "erfc": sp.erfc,
    "erfcx": sp.erfcx,
    "erfinv": sp.erfinv,
    "ndtr": sp.ndtr,
    "log_ndtr": sp.log_ndtr,
    "ndtri": sp.ndtri,
    "logit": sp.logit,
    "entr": entr,
    "expit": sp.expit,
    "lgamma": sp.gammaln,
    "gammaln": sp.gammaln,
    "digamma": sp.digamma,
    "polygamma": polygamma,
    "i0": lambda x: np.where(np.isinf(x), np.inf, sp.i0(x)),  # where SciPy gives NaN
    "i0e": sp.i0e,
    "i1": lambda x: np.where(np.isinf(x), x, sp.i1(x)),
    "i1e": sp.i1e,
    # activations
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "relu6": lambda x: np.clip(x, x.dtype.type(0), x.dtype.type(6)),
    "leaky_relu": lambda x, negative_slope: np.where(x >= 0, x, negative_slope * x),
    "prelu": lambda x, alpha: np.where(x >= 0, x, alpha * x),
    "elu": elu,
    "celu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
    "selu": lambda x: SELU_SCALE * elu(x, SELU_ALPHA),
    "threshold": lambda x, threshold, default_value: np.where(x > threshold, x, default_value),
    "hard_sigmoid": hard_sigmoid,
    "hard_silu": lambda x: x * hard_sigmoid(x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_shrink": lambda x, threshold: np.where(np.abs(x) > threshold, x, 0.0),
    "soft_shrink": lambda x, threshold: np.where(x > threshold, x - threshold, np.where(x < -threshold, x + threshold, 0.0)),
    "sparse_plus": lambda x: np.where(x <= -1, 0.0, np.where(x < 1, (x + 1) ** 2 / 4, x)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "sigmoid": sp.expit,
    "log_sigmoid": lambda x: -softplus(-x),
    "softplus": softplus,
    "silu": lambda x: x * sp.expit(x),
    "gelu": gelu_left,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "squareplus": squareplus,
    "tanh_shrink": lambda x: x - np.tanh(x),
    # conversions
    "cast": cast,
    "bitcast": bitcast,
}
