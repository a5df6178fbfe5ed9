"""Functions of one, two or three tensors, element by element: derived from their arity, the types they take and where they are defined."""
from inputs import COMPLEX, FLOATS, INTEGERS, SHAPES, TYPES, array, denormal, shapes_that_broadcast, special

# name: where its argument lies
ONE = {
    "abs": (-3, 3), "acos": (-1, 1), "acosh": (1, 9), "angle": (-3, 3), "asin": (-1, 1), "asinh": (-9, 9), "atan": (-9, 9), "atanh": (-0.99, 0.99),
    "bessel_i0": (-6, 6), "bessel_i0e": (-6, 6), "bessel_i1": (-6, 6), "bessel_i1e": (-6, 6), "ceil": (-9, 9), "conj": (-3, 3), "cos": (-9, 9), "cosh": (-4, 4),
    "digamma": (-4, 9), "erf": (-3, 3), "erfc": (-3, 3), "erfcinv": (0.05, 1.95), "erfinv": (-0.98, 0.98), "exp": (-8, 8), "expm1": (-3, 3), "floor": (-9, 9),
    "imag": (-3, 3), "is_finite": (-3, 3), "is_inf": (-3, 3), "is_nan": (-3, 3), "lgamma": (-4, 9), "log": (0.01, 20), "log1p": (-0.9, 9), "log_sigmoid": (-9, 9),
    "logical_not": (0, 1), "ndtri": (0.02, 0.98), "negative": (-9, 9), "real": (-3, 3), "reciprocal": (-4, 4), "reciprocal_no_nan": (-4, 4), "rint": (-9, 9),
    "round": (-9, 9), "rsqrt": (0.1, 9), "sigmoid": (-9, 9), "sign": (-3, 3), "sin": (-9, 9), "sinh": (-4, 4), "softplus": (-9, 9), "softsign": (-9, 9),
    "sqrt": (0, 9), "square": (-9, 9), "tan": (-1.4, 1.4), "tanh": (-4, 4),
}  # fmt: skip
SPECIAL = {
    "bessel_i0": (-6, 6), "bessel_i0e": (-6, 6), "bessel_i1": (-6, 6), "bessel_i1e": (-6, 6), "bessel_j0": (-9, 9), "bessel_j1": (-9, 9), "bessel_k0": (0.1, 6), "bessel_k0e": (0.1, 6),
    "bessel_k1": (0.1, 6), "bessel_k1e": (0.1, 6), "bessel_y0": (0.1, 9), "bessel_y1": (0.1, 9), "dawsn": (-6, 6), "expint": (0.1, 6), "fresnel_cos": (-6, 6),
    "fresnel_sin": (-6, 6), "spence": (0.1, 9),
}  # fmt: skip
NN = {
    "crelu": (-3, 3), "elu": (-3, 3), "gelu": (-4, 4), "leaky_relu": (-3, 3), "relu": (-3, 3), "relu6": (-3, 9), "selu": (-3, 3), "silu": (-5, 5), "softplus": (-9, 9),
    "softsign": (-9, 9), "swish": (-5, 5), "tanh": (-4, 4), "sigmoid": (-9, 9),
}  # fmt: skip
TWO = {
    "add": (-9, 9), "atan2": (-4, 4), "divide": (-9, 9), "divide_no_nan": (-3, 3), "equal": (-2, 2), "floordiv": (-9, 9), "floormod": (-9, 9), "greater": (-2, 2),
    "greater_equal": (-2, 2), "igamma": (0.1, 6), "igammac": (0.1, 6), "less": (-2, 2), "less_equal": (-2, 2), "logical_and": (0, 1), "logical_or": (0, 1), "logical_xor": (0, 1),
    "maximum": (-9, 9), "minimum": (-9, 9), "mod": (-9, 9), "multiply": (-9, 9), "multiply_no_nan": (-3, 3), "nextafter": (-3, 3), "not_equal": (-2, 2), "pow": (0.1, 3),
    "squared_difference": (-9, 9), "subtract": (-9, 9), "truediv": (-9, 9), "xdivy": (-3, 3), "xlog1py": (0, 5), "xlogy": (0, 5), "zeta": (1.2, 6), "polygamma": (1, 6),
}  # fmt: skip
BITS = {"bitwise_and": (-9, 9), "bitwise_or": (-9, 9), "bitwise_xor": (-9, 9), "left_shift": (0, 6), "right_shift": (0, 6)}
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^"]


def one(cases, function, low, high, types=TYPES):
    rng = cases.rng(function)
    for dtype in types:
        for shape in rng.permutation(len(SHAPES))[: 1 + cases.rounds]:
            cases.call(function, array(rng, SHAPES[shape], dtype, low, high))
        # The derivative at a pole or a kink is a convention; values are compared there.
        cases.call(function, special(dtype), grad=[], note="special")
        if dtype in FLOATS:
            cases.call(function, denormal(dtype), grad=[], note="denormal")


def two(cases, function, low, high, types=TYPES, other=None):
    rng = cases.rng(function)
    for dtype in types:
        for _ in range(1 + cases.rounds):
            first, second = shapes_that_broadcast(rng)
            cases.call(function, array(rng, first, dtype, low, high), array(rng, second, other or dtype, low, high))
        if other is None:
            values = special(dtype)
            cases.call(function, values[:, None], values[None, :], grad=[], note="special")
    cases.call(function, array(rng, (2, 3), "float32", low, high), array(rng, (4,), "float32", low, high), note="shapes that do not fit")
    cases.call(function, array(rng, (2,), "float32", low, high), array(rng, (2,), "int32", low, high), note="types that differ")
    cases.call(function, array(rng, (2,), "float32", low, high), 2, grad=[0])
    cases.call(function, array(rng, (2,), "int32", low, high), 2)
    cases.call(function, array(rng, (2,), "int32", low, high), 1.5)
    cases.call(function, [1, 2], [2, 3])
    cases.call(function, [1.0, 2.0], 2)


def fill(cases):
    for name, (low, high) in ONE.items():
        one(cases, f"tf.math.{name}", low, high)
    for name, (low, high) in SPECIAL.items():
        one(cases, f"tf.math.special.{name}", low, high, FLOATS + ["int32"])
    for name, (low, high) in NN.items():
        one(cases, f"tf.nn.{name}", low, high)
    one(cases, "tf.bitwise.invert", -100, 100)
    for name, (low, high) in TWO.items():
        two(cases, f"tf.math.{name}", low, high)
    for name, (low, high) in BITS.items():
        two(cases, f"tf.bitwise.{name}", low, high, INTEGERS + ["float32", "bool"])
    two(cases, "tf.realdiv", -9, 9)
    two(cases, "tf.truncatediv", -9, 9)
    two(cases, "tf.truncatemod", -9, 9)
    for operator in OPERATORS:
        function = f"tf.Tensor {operator}"
        rng = cases.rng(function)
        for dtype in TYPES:
            a, b = shapes_that_broadcast(rng)
            x, y = array(rng, a, dtype, 0.1, 4), array(rng, b, dtype, 0.1, 4)
            cases.code(function, f"x[0] {operator} x[1]", x, y, grad=[0, 1] if dtype in FLOATS + COMPLEX else [])
            cases.code(function, f"x[0] {operator} 2", x)
            cases.code(function, f"3 {operator} x[0]", x)
            cases.code(function, f"x[0] {operator} 1.5", x)
    for name in ("-", "+", "~", "abs"):
        rng = cases.rng(f"tf.Tensor {name}")
        for dtype in TYPES:
            cases.code(f"tf.Tensor {name}", f"{name}(x[0])", array(rng, (2, 3), dtype))
    three(cases)


def three(cases):
    rng = cases.rng("tf.math.betainc")
    for dtype in FLOATS + ["int32"]:
        for shape in [(), (5,), (0, 3), (2, 3)]:
            cases.call("tf.math.betainc", array(rng, shape, dtype, 0.3, 5), array(rng, shape, dtype, 0.3, 5), array(rng, shape, dtype, 0.01, 0.99))
    for function, limits in (("tf.clip_by_value", (-1, 1)),):
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape in [(), (5,), (0, 3), (2, 3)]:
                cases.call(function, array(rng, shape, dtype, -4, 4), array(rng, (), dtype, -2, -1), array(rng, (), dtype, 1, 2))
            cases.call(function, array(rng, (2, 3), dtype, -4, 4), *limits)
            cases.call(function, array(rng, (2, 3), dtype, -4, 4), array(rng, (3,), dtype, -2, -1), array(rng, (2, 1), dtype, 1, 2))
    rng = cases.rng("tf.where")
    for dtype in TYPES:
        for _ in range(1 + cases.rounds):
            a, b = shapes_that_broadcast(rng)
            cases.call("tf.where", array(rng, a, "bool"), array(rng, b, dtype), array(rng, b, dtype))
        cases.call("tf.where", array(rng, (3, 4), dtype, -1, 1))
