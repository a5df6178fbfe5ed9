"""keras.ops.numpy on the engine: 219 functions, written by kind in _numpy."""
from keras_tandem.src.ops._numpy.choose import (
    argpartition, argsort, bincount, digitize, histogram, isin, nonzero, searchsorted, sort, take, take_along_axis, unique,
    unravel_index, vectorize, where,
)  # fmt: skip
from keras_tandem.src.ops._numpy.creation import (
    arange, array, bartlett, blackman, copy, empty, empty_like, eye, full, full_like, geomspace, hamming, hanning, identity,
    kaiser, linspace, logspace, meshgrid, ones, ones_like, tri, vander, view, zeros, zeros_like,
)  # fmt: skip
from keras_tandem.src.ops._numpy.elementwise import (
    abs, absolute, add, allclose, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, bitwise_and, bitwise_invert,
    bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, cbrt, ceil, clip, conj, conjugate, cos, cosh,
    deg2rad, divide, divide_no_nan, equal, exp, exp2, expm1, fabs, floor, floor_divide, fmax, fmin, fmod, gcd, greater,
    greater_equal, heaviside, hypot, i0, imag, isclose, isfinite, isinf, isnan, isneginf, isposinf, isreal, lcm, ldexp,
    left_shift, less, less_equal, log, log10, log1p, log2, logaddexp, logaddexp2, logical_and, logical_not, logical_or,
    logical_xor, maximum, minimum, mod, multiply, nan_to_num, negative, nextafter, not_equal, power, rad2deg, real, reciprocal,
    right_shift, round, select, sign, signbit, sin, sinc, sinh, sqrt, square, subtract, tan, tanh, true_divide, trunc,
)  # fmt: skip
from keras_tandem.src.ops._numpy.products import (
    corrcoef, correlate, cross, dot, einsum, inner, kron, matmul, outer, slogdet, tensordot, vdot,
)  # fmt: skip
from keras_tandem.src.ops._numpy.reduce import (
    all, amax, amin, any, argmax, argmin, average, count_nonzero, cumprod, cumsum, diff, max, mean, median, min, nanargmax,
    nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmedian, nanmin, nanpercentile, nanprod, nanquantile, nanstd, nansum,
    nanvar, percentile, prod, ptp, quantile, std, sum, trapezoid, var,
)  # fmt: skip
from keras_tandem.src.ops._numpy.shape import (
    append, array_split, broadcast_to, concatenate, diag, diagflat, diagonal, dsplit, dstack, expand_dims, flip, fliplr, flipud,
    hsplit, hstack, moveaxis, ndim, pad, ravel, repeat, reshape, roll, rot90, size, split, squeeze, stack, swapaxes, tile, trace,
    transpose, tril, triu, vsplit, vstack,
)  # fmt: skip

from keras_tandem.src.ops.complex_numbers import taking_complex as _taking_complex  # noqa: E402

for _name, _function in list(globals().items()):
    if callable(_function) and not _name.startswith("_"):
        globals()[_name] = _taking_complex(_function)
