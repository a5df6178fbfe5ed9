"""keras.ops.numpy, math and linalg on the backend: values against NumPy, at once and compiled; types; symbolic shapes."""
import os

os.environ["KERAS_BACKEND"] = "tandem"

import keras_tandem  # noqa: F401  the hook comes before keras
import numpy as np
import pytest
from keras import backend
from keras import ops as k

from tandem import _core

rng = np.random.default_rng(7)
A = rng.standard_normal((4, 3)).astype("float32")
B = rng.standard_normal((4, 3)).astype("float32")
P = np.abs(A) + 0.5  # positive
U = np.clip(A, -0.9, 0.9)
C = rng.standard_normal((4, 3, 2)).astype("float32")
I = rng.integers(0, 3, (4, 3)).astype("int32")
J = rng.integers(1, 4, (4, 3)).astype("int32")
M = A > 0
N = A.copy()
N[1, 2] = N[3, 0] = np.nan
S = rng.standard_normal((4, 3, 3)).astype("float32")
D = S @ S.transpose(0, 2, 1) + 3 * np.eye(3, dtype="float32")  # positive definite
V = rng.standard_normal(6).astype("float32")

# name: (arguments, attributes, NumPy's function); the first extent of the arguments is a symbol in the compiled case.
CASES = {}


def case(name, *args, ref=None, **attributes):
    label = name if name not in CASES else f"{name}{sum(n.startswith(name) for n in CASES)}"
    CASES[label] = (name, args, attributes, ref or getattr(np, name))


for name in "cos cosh sin sinh tan tanh sinc exp exp2 expm1 cbrt floor ceil trunc round".split():
    case(name, A)
for name in "sign signbit absolute fabs square negative deg2rad".split():
    case(name, A)
for name in "rad2deg arcsinh arctan i0 isnan isfinite isinf isneginf isposinf nan_to_num real imag conj isreal angle".split():
    case(name, N if name.startswith(("is", "nan")) else A)
for name in "log log2 log10 log1p sqrt reciprocal".split():
    case(name, P)
for name in "arccos arcsin arctanh".split():
    case(name, U)
case("arccosh", P + 1)
for name in "add subtract multiply divide maximum minimum fmax fmin".split():
    case(name, A, B)
for name in "arctan2 hypot logaddexp logaddexp2 heaviside nextafter mod fmod".split():
    case(name, A, B)
for name in "floor_divide true_divide".split():
    case(name, A, P)
for name in "equal not_equal greater greater_equal less less_equal".split():
    case(name, I, J)
for name in "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm".split():
    case(name, I, J)
for name in "logical_and logical_or logical_xor".split():
    case(name, I, M)
case("logical_not", M)
case("bitwise_not", I)
case("power", P, B)
case("power", I, 2)
case("ldexp", A, I)
case("isclose", A, B)
case("allclose", A, A)
case("clip", A, -0.5, 0.5)
case("divide_no_nan", A, M.astype("float32"), ref=lambda x, y: np.where(y != 0, x, 0))
case("where", M, A, 0.0)
case("select", [M, I > 1], [A, B], 5.0)
for name in "sum prod mean std var max min amax amin any all median ptp count_nonzero argmax argmin cumsum cumprod".split():
    case(name, A)
    case(name, A, axis=0)
    case(name, A, axis=-1)
for name in "nansum nanprod nanmean nanstd nanvar nanmax nanmin nanmedian nancumsum nancumprod nanargmax nanargmin".split():
    case(name, N, axis=1)
case("average", A, 1, B)
for name in "quantile nanquantile".split():
    case(name, A, 0.3, axis=1)
    case(name, A, 0.3, axis=0, keepdims=True)
case("percentile", A, np.array([20.0, 60.0], "float32"), axis=1)
case("nanpercentile", N, 50.0, axis=1)
case("diff", A, n=2, axis=0)
case("trapezoid", A, axis=0)
case("reshape", C, (-1, 3))
case("transpose", C, (1, 2, 0))
case("expand_dims", A, 1)
case("squeeze", A[:, :1], 1)
case("moveaxis", C, 0, -1)
case("swapaxes", C, 0, 1)
case("flip", A, axis=0)
case("fliplr", A)
case("flipud", A)
case("roll", A, 2, axis=0)
case("roll", A, 5)
case("roll", A, (1, 2), axis=(0, 1))
case("rot90", C, k=3)
case("ravel", A)
case("broadcast_to", A[:1], (5, 3))
case("concatenate", [A, B], axis=0)
case("stack", [A, B], axis=1)
case("hstack", [A, B])
case("vstack", [A, B])
case("dstack", [A, B])
case("append", A, B)
case("split", C, [1, 2], axis=1)
case("split", A, [1, 3], axis=0)
case("array_split", A, 2, axis=1)
case("hsplit", A, 3)
case("vsplit", A, [2])
case("dsplit", C, 2)
case("tile", A, (2, 3))
case("repeat", A, 2, axis=0)
case("repeat", A, [1, 0, 2], axis=1)
case("pad", A, ((1, 2), (0, 1)))
case("pad", A, 1, mode="edge")
case("diag", V[:4])
case("diagflat", V)
case("diagonal", C, offset=1, axis1=1, axis2=2)
case("trace", S, axis1=1, axis2=2)
case("tril", S)
case("triu", S, k=1)
case("take", A, np.array([2, 0, -1]), axis=0)
case("take", A, np.array([5, 1]))
case("take_along_axis", A, I[:, :1], axis=1)
case("sort", A, axis=0)
case("argsort", A, axis=1)
case("searchsorted", np.sort(V), A)
case("digitize", A, np.array([-1.0, 0.0, 1.0], "float32"))
case("isin", I, np.array([0, 2]))
case("unravel_index", np.array([3, 7, 11]), (4, 3))
case("meshgrid", V, A[:, 0])
case("vander", V, 4)
case("zeros_like", A)
case("ones_like", A)
case("full_like", A, 3.0)
case("matmul", A, B.T)
case("matmul", S, C[:, :, :1])
case("dot", A, B.T)
case("inner", A, B)
case("outer", V, A)
case("vdot", A, B)
case("kron", A, B)
case("tensordot", C, A, axes=[[0, 1], [0, 1]], ref=np.tensordot)
case("cross", A, B)
case("correlate", V, V[:3], mode="full")
case("correlate", V, V[:3], mode="same")
case("corrcoef", A)
case("histogram", V, bins=4)
case("slogdet", D, ref=np.linalg.slogdet)
case("logsumexp", A, axis=1, ref=lambda x, axis: np.log(np.exp(x).sum(axis)))
case("rsqrt", P, ref=lambda x: 1 / np.sqrt(x))
case("top_k", A, 2, ref=lambda x, k: (np.sort(x, -1)[:, ::-1][:, :k], np.argsort(-x, -1)[:, :k]))
IDS = np.array([0, 2, 0, 1], "int32")
case("segment_sum", A, IDS, 3, ref=lambda x, i, n: np.stack([x[i == s].sum(0) for s in range(n)]))
case("segment_max", A, IDS, 3, ref=lambda x, i, n: np.stack([x[i == s].max(0) for s in range(n)]))
case("rfft", A, ref=lambda x: (np.fft.rfft(x).real, np.fft.rfft(x).imag))
case("extract_sequences", A, 2, 1, ref=lambda x, n, s: np.lib.stride_tricks.sliding_window_view(x, n, -1))
case("det", D, ref=np.linalg.det)
case("inv", D, ref=np.linalg.inv)
case("cholesky", D, ref=np.linalg.cholesky)
case("solve", D, C, ref=np.linalg.solve)
case("norm", A, ord=1, axis=1, ref=np.linalg.norm)
case("norm", D, ord="nuc", axis=(1, 2), ref=np.linalg.norm)
case("pinv", C, ref=np.linalg.pinv)


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (list, tuple)) else [np.asarray(x)]


def same(results, expected):
    expected = flat(expected)
    assert len(results) == len(expected)
    for r, e in zip(results, expected):
        r = np.asarray(r)
        assert r.shape == e.shape
        np.testing.assert_allclose(r.astype("float64"), e.astype("float64"), rtol=2e-4, atol=2e-5)


def expected_of(label):
    name, args, attributes, ref = CASES[label]
    if name in ("imag", "isreal"):
        return ref(np.asarray(args[0]))
    with np.errstate(all="ignore"):
        return ref(*args, **attributes)


@pytest.mark.parametrize("label", CASES)
def test_value(label):
    name, args, attributes, _ = CASES[label]
    same(flat(getattr(k, name)(*args, **attributes)), expected_of(label))


NEED_NUMBERS = ("correlate",)  # which operand is longer decides


@pytest.mark.parametrize("label", CASES)
def test_compiled_for_any_batch(label):
    """The same values from a function that was traced with a symbol for the first extent of its arrays."""
    name, args, attributes, _ = CASES[label]
    if name in ("broadcast_to", "array_split", "split") and label != "split":
        pytest.skip("a number of the case stands for the extent")
    flat_args = [a for part in args for a in (part if isinstance(part, list) else [part])]
    arrays = [a for a in flat_args if isinstance(a, np.ndarray) and a.dtype != np.int64]
    if not arrays:
        pytest.skip("no operands that change")

    def body(tensors):
        given = iter(tensors)

        def replaced(a):
            if isinstance(a, list):
                return [replaced(x) for x in a]
            return next(given) if isinstance(a, np.ndarray) and a.dtype != np.int64 else a

        return [k.convert_to_tensor(x) for x in tensors_of(getattr(k, name)(*[replaced(a) for a in args], **attributes))]

    symbols = {}

    def spec(a):
        first = symbols.setdefault(a.shape[0], _core.symbol(f"n{a.shape[0]}")) if a.shape[0] > 3 else a.shape[0]
        return a.dtype.name, [first, *a.shape[1:]]

    function = _core.Function(body, name, [spec(a) for a in arrays])
    if name in NEED_NUMBERS:
        with pytest.raises(NotImplementedError, match=name):
            function([k.convert_to_tensor(a) for a in arrays])
        return
    same([r.numpy() for r in function([k.convert_to_tensor(a) for a in arrays])], expected_of(label))


def tensors_of(x):
    return [y for part in x for y in tensors_of(part)] if isinstance(x, (list, tuple)) else [x]


# --- types ----------------------------------------------------------------------------------------------------------------------

DTYPES = ["bool", "uint8", "int8", "int32", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_types_meet_by_the_rule_of_keras(first, second):
    x, y = k.ones((2,), first), k.ones((2,), second)
    wanted = backend.result_type(first, second)
    for function in (k.add, k.multiply, k.maximum, k.dot, k.append):
        assert backend.standardize_dtype(function(x, y).dtype) == wanted
    assert backend.standardize_dtype(k.where(x > 0, x, y).dtype) == wanted
    assert backend.standardize_dtype(k.stack([x, y]).dtype) == wanted
    for function in (k.divide, k.arctan2, k.logaddexp):
        assert backend.standardize_dtype(function(x, y).dtype) == backend.result_type(first, second, float)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_take_the_type_of_a_tensor(dtype):
    x = k.ones((2,), dtype)
    assert backend.standardize_dtype(k.add(x, 1).dtype) == backend.result_type(dtype, int)
    assert backend.standardize_dtype(k.add(x, 1.5).dtype) == backend.result_type(dtype, float)
    assert backend.standardize_dtype(k.mean(x).dtype) == backend.result_type(dtype, float)
    assert backend.standardize_dtype(k.exp(x).dtype) == backend.result_type(dtype, float)


def test_products_of_int8_are_summed_in_int32():
    x = k.full((3, 200), 100, "int8")
    for product in (k.matmul(x, k.transpose(x)), k.einsum("ik,jk->ij", x, x)):
        assert backend.standardize_dtype(product.dtype) == "int32"
        assert np.asarray(product)[0, 0] == 2_000_000


# --- shapes that depend on values -----------------------------------------------------------------------------------------------


def test_shapes_that_depend_on_values_are_there_at_once():
    assert [np.asarray(p).tolist() for p in k.nonzero(np.array([[0, 1], [2, 0]]))] == [[0, 1], [1, 0]]
    assert [np.asarray(p).tolist() for p in k.where(np.array([False, True]))] == [[1]]
    assert np.asarray(k.unique(np.array([3, 1, 3]))).tolist() == [1, 3]
    assert np.asarray(k.bincount(np.array([0, 2, 2]), minlength=5)).tolist() == [1, 0, 2, 0, 0]
    assert np.asarray(k.repeat(np.array([1, 2]), k.array([2, 1]))).tolist() == [1, 1, 2]
    assert np.asarray(k.segment_sum(np.array([1.0, 2.0]), np.array([2, 0]))).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "name, body",
    [
        ("nonzero", lambda x: k.nonzero(x)),
        ("unique", lambda x: k.unique(x)),
        ("bincount", lambda x: k.bincount(x)),
        ("repeat", lambda x: k.repeat(x, x)),
        ("segment_sum", lambda x: k.segment_sum(x, x)),
    ],
)
def test_shapes_that_depend_on_values_are_refused_while_tracing(name, body):
    function = _core.Function(lambda v: tensors_of(body(v[0])), name)
    with pytest.raises(NotImplementedError, match=name):
        function([k.array([2, 1, 2])])


def test_unique_of_a_given_size_compiles():
    def body(tensors):
        return list(k.unique(tensors[0], return_index=True, return_inverse=True, return_counts=True, size=4, fill_value=-1))

    values, index, inverse, counts = _core.Function(body, "unique")([k.array([[3, 1], [3, 8]])])
    assert values.tolist() == [1, 3, 8, -1]
    assert index.tolist() == [1, 0, 3, 1]
    assert inverse.tolist() == [[1, 0], [1, 2]]
    assert counts.tolist() == [1, 2, 1, 0]


def test_numbers_from_unknown_extents():
    def body(tensors):
        n = k.shape(tensors[0])[0]
        ranges = [k.arange(n), k.arange(1, n, 2), k.arange(n - 1, -1, -1), k.arange(n, dtype="float32")]
        return [*ranges, k.linspace(0, 1, n), k.zeros((n, 2)), k.eye(n)]

    function = _core.Function(body, "extents", [("float32", [_core.symbol("n")])])
    for n in (3, 6):
        ranges = [np.arange(n), np.arange(1, n, 2), np.arange(n)[::-1], np.arange(n)]
        same([r.numpy() for r in function([k.ones((n,))])], [*ranges, np.linspace(0, 1, n), np.zeros((n, 2)), np.eye(n)])


def test_copies_by_unknown_extents():
    def body(tensors):
        x = tensors[0]
        n = k.shape(x)[0]
        largest = k.broadcast_to(k.max(x, axis=0, keepdims=True), (n, 3))
        return [k.tile(x, (n, 1)), k.repeat(x, n, axis=1), largest, k.reshape(x, (n * 3,)), k.roll(x, n - 1, axis=0)]

    function = _core.Function(body, "copies", [("float32", [_core.symbol("n"), 3])])
    largest = np.broadcast_to(A.max(0), (4, 3))
    expected = [np.tile(A, (4, 1)), np.repeat(A, 4, axis=1), largest, A.reshape(-1), np.roll(A, 3, axis=0)]
    same([r.numpy() for r in function([k.convert_to_tensor(A)])], expected)


# --- through Keras --------------------------------------------------------------------------------------------------------------


def test_shapes_of_a_layer_s_functions():
    """What Keras infers by calling a layer with an unknown batch."""
    from keras import Input, Layer

    class Many(Layer):
        def call(self, x):
            norm = k.norm(x, axis=-1, keepdims=True)
            parts = k.split(x, 3, axis=1)
            pairs = k.einsum("bi,bj->bij", x, x)
            frames = k.extract_sequences(x, 2, 2)
            twice = k.concatenate([x, x], axis=0)
            return norm, parts[0], pairs, frames, k.mean(x), twice, k.cumsum(x, axis=0), k.argmax(x, axis=1)

    shapes = [y.shape for y in Many()(Input((6,)))]
    assert shapes == [(None, 1), (None, 2), (None, 6, 6), (None, 3, 2), (), (None, 6), (None, 6), (None,)]


def test_stft_and_back():
    x = rng.standard_normal((2, 64)).astype("float32")
    real, imag = k.stft(x, 16, 4, 16)
    assert tuple(real.shape) == (2, 17, 9)
    back = np.asarray(k.istft((real, imag), 16, 4, 16))
    np.testing.assert_allclose(back[:, 8:-8], x[:, 8:-8], atol=1e-5)  # at the ends fewer frames overlap
    window = np.hanning(17)[:16].astype("float32")
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (8, 8)], mode="reflect"), 16, -1)[:, ::4]
    np.testing.assert_allclose(np.asarray(real), np.fft.rfft(frames * window).real, atol=1e-4)


def test_derivative_along_tangents():
    from keras.src.backend import linalg

    x, t = k.array([0.5, 2.0]), k.array([1.0, -3.0])
    value, change = linalg.jvp(lambda a: (a * k.sin(a), k.sum(a**2)), (x,), (t,))
    np.testing.assert_allclose(np.asarray(change[0]), (np.sin(x) + np.asarray(x) * np.cos(x)) * np.asarray(t), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(change[1]), (2 * np.asarray(x) * np.asarray(t)).sum(), rtol=1e-5)


def test_eigenvalues_are_complex_where_they_are_not_real():
    values, _ = k.eig(np.array([[0.0, 1.0], [-1.0, 0.0]], "float32"))
    np.testing.assert_allclose(sorted(k.convert_to_numpy(values).imag), [-1, 1], atol=1e-6)
    values, _ = k.eig(np.array([[2.0, 1.0], [0.0, 3.0]], "float32"))
    np.testing.assert_allclose(np.asarray(values), [2, 3], rtol=1e-6)


def test_every_function_of_keras_is_there():
    """The names and the arguments that Keras's own backends share."""
    import ast
    import inspect
    from importlib.util import find_spec

    from keras_tandem.src import ops

    folder = os.path.join(os.path.dirname(find_spec("keras").origin), "src", "backend", "jax")
    for module in ("numpy", "math", "linalg"):
        with open(os.path.join(folder, f"{module}.py")) as file:
            functions = [f for f in ast.parse(file.read()).body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")]
        for f in functions:
            ours = getattr(getattr(ops, module), f.name)
            names = [a.arg for a in f.args.args] + [a.arg for a in f.args.kwonlyargs]
            kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            assert [p.name for p in inspect.signature(ours).parameters.values() if p.kind in kinds] == names, f.name
