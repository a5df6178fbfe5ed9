"""Element by element. The rows of the engine do the work; here are Keras's names and types."""
import math

from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.dtypes import INT_TYPES

from keras_tandem.src.ops._numpy.common import (
    cast, convert_to_tensor, floating, floatx, function, is_number, ops, promoted, promoted_floats, real_tensor,
)  # fmt: skip


def _of_floats(name, row=None):
    row = getattr(ops, row or name)
    return function(name, lambda x: row(floating(x)))


def _of_any(name, row=None):
    row = getattr(ops, row or name)
    return function(name, lambda x: row(convert_to_tensor(x)))


def _of_two(name, row=None):
    """The row's own promotion is Keras's."""
    row = getattr(ops, row or name)
    return function(name, lambda x1, x2: row(_operand(x1), _operand(x2)))


def _of_bits(name, row=None):
    row = getattr(ops, row or name)
    return function(name, lambda x, y: row(_operand(x), _operand(y)))


def _of_two_floats(name, row=None):
    row = getattr(ops, row or name)
    return function(name, lambda x1, x2: row(*promoted_floats(_operand(x1), _operand(x2))))


def _of_two_bools(name):
    row = getattr(ops, name)
    return function(name, lambda x1, x2: row(_truth(x1), _truth(x2)))


def _operand(x):
    """Python's numbers stay as they are, since they take the type of the other operand."""
    return x if is_number(x) else convert_to_tensor(x)


def _truth(x):
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool else ops.not_equal(x, 0)


# --- one operand ----------------------------------------------------------------------------------------------------------------

arccos = _of_floats("arccos")
arccosh = _of_floats("arccosh")
arcsin = _of_floats("arcsin")
arcsinh = _of_floats("arcsinh")
arctan = _of_floats("arctan")
arctanh = _of_floats("arctanh")
cbrt = _of_floats("cbrt")
ceil = _of_floats("ceil")
cos = _of_floats("cos")
cosh = _of_floats("cosh")
deg2rad = _of_floats("deg2rad")
exp = _of_floats("exp")
exp2 = _of_floats("exp2")
expm1 = _of_floats("expm1")
fabs = _of_floats("fabs", "absolute")
floor = _of_floats("floor")
i0 = _of_floats("i0")
log = _of_floats("log")
log10 = _of_floats("log10")
log1p = _of_floats("log1p")
log2 = _of_floats("log2")
rad2deg = _of_floats("rad2deg")
reciprocal = _of_floats("reciprocal")
sin = _of_floats("sin")
sinc = _of_floats("sinc")
sinh = _of_floats("sinh")
sqrt = _of_floats("sqrt")
tan = _of_floats("tan")
tanh = _of_floats("tanh")

absolute = _of_any("absolute")
abs = absolute
isfinite = _of_any("isfinite", "is_finite")
isinf = _of_any("isinf", "is_inf")
isnan = _of_any("isnan", "is_nan")
isneginf = _of_any("isneginf", "is_neginf")
isposinf = _of_any("isposinf", "is_posinf")
negative = _of_any("negative")
sign = _of_any("sign")
signbit = _of_any("signbit")
bitwise_invert = _of_any("bitwise_invert", "bitwise_not")
bitwise_not = bitwise_invert


def square(x):
    x = convert_to_tensor(x)
    return ops.square(cast(x, "int32") if x.dtype.is_bool else x)


def trunc(x):
    x = convert_to_tensor(x)
    return ops.trunc(x) if x.dtype.is_floating else x


def round(x, decimals=0):
    x = convert_to_tensor(x)
    if decimals < 0 and x.dtype.is_integer:
        return cast(ops.round(cast(x, floatx()), decimals=decimals), x.dtype)
    return x if x.dtype.is_bool else ops.round(x, decimals=decimals)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        return x
    return ops.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def logical_not(x):
    return ops.logical_not(_truth(x))


# Of real numbers; complex ones are in complex_numbers.py.


def conjugate(x):
    return real_tensor(x)


def conj(x):
    return real_tensor(x)


def real(x):
    return real_tensor(x)


def imag(x):
    x = real_tensor(x)
    return ops.full(cast(0, x.dtype), shape=x.dims)


def isreal(x):
    return ops.full(True, shape=real_tensor(x).dims)


def angle(x):
    x = floating(x)
    turned = ops.where(ops.signbit(x), cast(math.pi, x.dtype), cast(0, x.dtype))
    return ops.where(ops.is_nan(x), x, turned)


# --- two operands ---------------------------------------------------------------------------------------------------------------

add = _of_two("add")
subtract = _of_two("subtract")
multiply = _of_two("multiply")
maximum = _of_two("maximum")
minimum = _of_two("minimum")
fmax = _of_two("fmax")
fmin = _of_two("fmin")
floor_divide = _of_two("floor_divide")
mod = _of_two("mod", "remainder")
fmod = _of_two("fmod")
power = _of_two("power")
equal = _of_two("equal")
not_equal = _of_two("not_equal")
greater = _of_two("greater")
greater_equal = _of_two("greater_equal")
less = _of_two("less")
less_equal = _of_two("less_equal")
gcd = _of_two("gcd")
lcm = _of_two("lcm")
bitwise_and = _of_bits("bitwise_and")
bitwise_or = _of_bits("bitwise_or")
bitwise_xor = _of_bits("bitwise_xor")
bitwise_left_shift = _of_bits("bitwise_left_shift", "left_shift")
bitwise_right_shift = _of_bits("bitwise_right_shift", "right_shift")
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift

arctan2 = _of_two_floats("arctan2")
divide = _of_two_floats("divide")
true_divide = divide
divide_no_nan = _of_two_floats("divide_no_nan")
heaviside = _of_two_floats("heaviside")
hypot = _of_two_floats("hypot")
logaddexp = _of_two_floats("logaddexp")
logaddexp2 = _of_two_floats("logaddexp2")
nextafter = _of_two_floats("nextafter")

logical_and = _of_two_bools("logical_and")
logical_or = _of_two_bools("logical_or")
logical_xor = _of_two_bools("logical_xor")


def ldexp(x1, x2):
    x2 = convert_to_tensor(x2)
    if standardize_dtype(x2.dtype) not in INT_TYPES:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype.name}")
    return ops.ldexp(floating(x1), x2)


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return ops.is_close(*promoted_floats(_operand(x1), _operand(x2)), rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return ops.all(isclose(x1, x2, rtol, atol, equal_nan))


def clip(x, x_min, x_max):
    x = convert_to_tensor(x)
    if x.dtype.is_bool:
        x = cast(x, "int32")
    if x_min is not None:
        x = ops.maximum(x, _operand(x_min))
    return x if x_max is None else ops.minimum(x, _operand(x_max))


def select(condlist, choicelist, default=0):
    """The first choice whose condition is true."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist and choicelist must have the same length. Received: {len(condlist)} and {len(choicelist)}")
    *choices, result = promoted(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        result = ops.where(_truth(condition), choice, result)
    return result
