"""tf.experimental.numpy against NumPy itself, and the rules by which types meet."""
import subprocess
import sys

import numpy as np
import pytest

import tandem as tf
import tandem.experimental.numpy as tnp

X = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
Y = np.array([[1.0, 2.0, -0.5], [0.5, 4.0, 3.0]])
N = np.array([[3, -1, 4], [1, -5, 9]])

# name, arguments: what tnp gives for them is what NumPy gives, in value, shape and type.
CASES = [
    *[(f, (X,)) for f in "abs exp expm1 sin cos tan tanh arctan sinh cosh arcsinh floor ceil sign square negative isnan isinf isfinite deg2rad rad2deg cbrt exp2 sinc fix".split()],
    *[(f, (Y,)) for f in "exp cosh square reciprocal".split()],
    *[(f, (np.abs(X) + 1,)) for f in "log log2 log10 log1p sqrt arccosh".split()],
    *[(f, (X / 4,)) for f in "arcsin arccos arctanh".split()],
    *[(f, (N,)) for f in "exp sqrt sum mean std var max min prod abs floor cumsum cumprod argmax argmin ptp all any sort argsort transpose ravel".split() if f not in ("sqrt", "floor")],
    *[(f, (X, Y)) for f in "add subtract multiply divide true_divide maximum minimum arctan2 hypot logaddexp logaddexp2 less greater_equal equal heaviside isclose array_equal kron outer vdot inner cross".split()],
    *[(f, (N, Y)) for f in "add multiply power".split() if f != "power"],
    *[(f, (N, np.int32(2))) for f in "add floor_divide mod power".split()],
    *[(f, (N, 2.5)) for f in "add multiply true_divide".split()],
    ("gcd", (np.array([12, 18, 0]), np.array([8, 27, 5]))), ("lcm", (np.array([12, 18, 0]), np.array([8, 27, 5]))),
    ("matmul", (X, Y.T)), ("dot", (X, Y.T)), ("dot", (X[0], Y[0])), ("matmul", (X, Y[0])), ("tensordot", (X, Y, 2)), ("einsum", ("ij,kj->ik", X, Y)),
    ("where", (X > 0, X, N)), ("clip", (X, -1, 1)), ("select", ([X > 1, X < 0], [X, Y], 7.0)),
    ("linspace", (0, 1, 5)), ("linspace", (2.0, 3.0, 4, False)), ("logspace", (0, 2, 3)), ("geomspace", (1, 100, 3)), ("arange", (5,)), ("arange", (1.0, 2.0, 0.25)),
    ("eye", (2, 3, 1)), ("identity", (3,)), ("tri", (3, 4, 1)), ("ones", ([2, 3],)), ("zeros", (4,)), ("full", ((2, 2), 7)), ("vander", (Y[0], 4)),
    ("concatenate", ((X, N),)), ("stack", ((X, Y), 1)), ("vstack", ((X, Y),)), ("hstack", ((X, Y),)), ("dstack", ((X, Y),)), ("append", (X, N)),
    ("tile", (N, (2, 1, 2))), ("repeat", (N, 2)), ("repeat", (N, 2, 1)), ("flip", (N,)), ("flipud", (N,)), ("fliplr", (N,)), ("roll", (N, 2)), ("roll", (N, 1, 1)),
    ("rot90", (N,)), ("rot90", (N, 2)), ("rot90", (N, 3)), ("pad", (N, ((1, 0), (0, 2)), "constant")), ("pad", (X, 1, "reflect")),
    ("take", (N, [0, 2], 1)), ("take", (N, [5, 0])), ("take_along_axis", (N, np.array([[2, 0], [1, 1]]), 1)), ("compress", ([True, False, True], N, 1)), ("diag", (N[:, :2],)),
    ("diag", (N[0],)), ("diagonal", (N, 1)), ("trace", (N,)), ("tril", (N,)), ("triu", (N, 1)), ("moveaxis", (np.ones((2, 3, 4)), 0, 2)),
    ("swapaxes", (np.ones((2, 3, 4)), 0, 2)), ("expand_dims", (N, (0, 2))), ("squeeze", (N[None],)), ("reshape", (N, (3, 2))), ("diff", (N,)), ("diff", (N, 2, 0)),
    ("average", (X,)), ("average", (X, 1, Y)), ("nansum", (np.array([1.0, np.nan, 3.0]),)), ("nanmean", (np.array([1.0, np.nan, 3.0]),)), ("nanprod", (np.array([2.0, np.nan]),)),
    ("count_nonzero", (N > 1,)), ("polyval", ([3.0, 0.0, 1.0], 5.0)), ("around", (X, 1)), ("logical_and", (N > 0, X > 0)), ("bitwise_and", (N, 3)), ("atleast_2d", (N[0],)),
    ("broadcast_to", (N[0], (4, 3))), ("sum", (np.array([100, 100], np.int8),)), ("sum", (N, 0)), ("max", (N, 1)), ("mean", (X, 1)), ("var", (X, 1)),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments", CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_gives_what_numpy_gives(name, arguments):
    mode = {"mode": "clip"} if name == "take" else {}
    want, got = getattr(np, name)(*arguments, **mode), getattr(tnp, name)(*arguments)
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    assert got.dtype.as_numpy_dtype == want.dtype.type
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12 if want.dtype == np.float64 else 1e-6, atol=1e-12)


def test_python_numbers_have_64_bits_unless_32_are_preferred():
    code = """
import numpy as np, tandem as tf, tandem.experimental.numpy as tnp
assert tnp.asarray(1).dtype == tf.int64 and tnp.asarray(1.0).dtype == tf.float64
assert (tf.constant([1.0]) + tf.constant([1.0])).dtype == tf.float32
tnp.experimental_enable_numpy_behavior(prefer_float32=True)
assert tnp.asarray(1.0).dtype == tf.float32 and tnp.add(1.0, 2.0).dtype == tf.float32
tnp.experimental_enable_numpy_behavior()
assert (tf.constant(1) + tf.constant(2.0)).dtype == tf.float64 and (tf.constant(2.0) + 1.0).dtype == tf.float32
x = tnp.ones([5, 3], dtype=tnp.float32)
assert x.T.shape == [3, 5] and x.reshape(-1).shape == [15] and x.astype(tnp.int32).dtype == tf.int32 and x.size == 15
assert tnp.arange(24).reshape(2, 3, 4)[:, (True, False, True)].shape == [2, 2, 4]
y = 2.0 / (1.0 + tnp.exp(-tf.constant([0.0, 0.0])))
assert y.dtype == tf.float32 and y.numpy().tolist() == [1.0, 1.0]
assert (tnp.sqrt(16) / 2).numpy() == 2.0 and (tf.constant(7) // tf.constant(2)).numpy() == 3
assert float(np.sum(tnp.ones([2, 3]))) == 6.0
tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="off")
assert not hasattr(x, "T")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# TensorFlow 2.21's own table for the mode "all": * is weak, ! is not safe.
STRONG = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128".split()
KINDS = [*STRONG, "int32*", "int64*", "float32*", "float64*", "complex128*"]
TABLE = """
bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128 int32* int64* float32* float64* complex128*
uint8 uint8 uint16 uint32 uint64 int16! int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128 uint8 uint8 float64*! float64* complex128*
uint16 uint16 uint16 uint32 uint64 int32! int32! int32 int64 bfloat16! float16! float32 float64 complex64 complex128 uint16 uint16 float64*! float64* complex128*
uint32 uint32 uint32 uint32 uint64 int64! int64! int64! int64 bfloat16! float16! float32! float64 complex64! complex128 uint32 uint32 float64*! float64* complex128*
uint64 uint64 uint64 uint64 uint64 float64*! float64*! float64*! float64*! bfloat16! float16! float32! float64! complex64! complex128! uint64 uint64 float64*! float64*! complex128*!
int8 int16! int32! int64! float64*! int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128 int8 int8 float64*! float64* complex128*
int16 int16 int32! int64! float64*! int16 int16 int32 int64 bfloat16! float16! float32 float64 complex64 complex128 int16 int16 float64*! float64* complex128*
int32 int32 int32 int64! float64*! int32 int32 int32 int64 bfloat16! float16! float32! float64 complex64! complex128 int32 int32 float64*! float64* complex128*
int64 int64 int64 int64 float64*! int64 int64 int64 int64 bfloat16! float16! float32! float64! complex64! complex128! int64 int64 float64*! float64*! complex128*!
bfloat16 bfloat16 bfloat16! bfloat16! bfloat16! bfloat16 bfloat16! bfloat16! bfloat16! bfloat16 float32! float32 float64 complex64 complex128 bfloat16 bfloat16 bfloat16 bfloat16 complex64!
float16 float16 float16! float16! float16! float16 float16! float16! float16! float32! float16 float32 float64 complex64 complex128 float16 float16 float16 float16 complex64!
float32 float32 float32 float32! float32! float32 float32 float32! float32! float32 float32 float32 float64 complex64 complex128 float32 float32 float32 float32 complex64!
float64 float64 float64 float64 float64! float64 float64 float64 float64! float64 float64 float64 float64 complex128! complex128 float64 float64 float64 float64 complex128
""".strip().splitlines()  # fmt: skip


def test_types_meet_as_in_tensorflow():
    from tandem.experimental.numpy._promotion import meet

    def kind(text):
        return tf.as_dtype(text.rstrip("*!")), text.rstrip("!").endswith("*")

    for a, row in zip(KINDS, TABLE):
        for b, want in zip(KINDS, row.split()):
            for x, y in ((a, b), (b, a)):
                dtype, weak, safe = meet(*kind(x), *kind(y))
                assert (dtype, weak, safe) == (*kind(want), not want.endswith("!")), (x, y)


def test_modes_with_weak_types():
    code = """
import numpy as np, tandem as tf, tandem.experimental.numpy as tnp
tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
assert repr(tf.constant(5)) == "<tf.Tensor: shape=(), dtype=int32, numpy=5, weak=True>"
assert repr(tf.constant(5, tf.int32)) == "<tf.Tensor: shape=(), dtype=int32, numpy=5>"
assert repr(-tf.constant(5)).endswith("weak=True>")
assert (tf.constant(1, tf.int64) + tf.constant(3.2, tf.float16)).dtype == tf.float16
a, b, c = np.array(1, np.int8), tf.constant(1), np.array(1, np.float16)
for x in (tf.add(tf.add(a, b), c), tf.add(tf.add(b, a), c)):
    assert x.dtype == tf.float16 and x.numpy() == 3.0
assert tnp.array(1).dtype == tf.int32
v = tf.Variable(10, tf.int32)
v.assign_add(tf.constant(5, tf.int16))
assert v.numpy() == 15 and v.dtype == tf.int32
tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="safe")
try:
    tf.constant(10, tf.int32) + tf.constant(5.0, tf.float32)
except TypeError as e:
    assert "PromoMode.SAFE" in str(e)
else:
    raise AssertionError("int32 and float32 met in the safe mode")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
