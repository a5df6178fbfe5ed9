"""Functions along axes: reductions, running sums, order, segments."""
import numpy as np

from inputs import COMMON, FLOATS, NUMBERS, TYPES, array, distinct, special

REDUCE = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean", "reduce_std", "reduce_variance", "reduce_euclidean_norm", "reduce_logsumexp", "count_nonzero"]


def axis_of(rng, rank):
    pick = rng.integers(0, 4)
    if not rank or pick == 0:
        return None
    if pick == 1:
        return [int(a) for a in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
    return int(rng.integers(-rank, rank))


def fill(cases):
    for name in [*REDUCE, "reduce_all", "reduce_any"]:
        function = f"tf.math.{name}"
        rng = cases.rng(function)
        for dtype in ["bool", "int32"] if name in ("reduce_all", "reduce_any") else TYPES:
            for shape in [(), (5,), (2, 3), (0, 3), (2, 1, 4), (3, 0), (40, 30)]:
                x = array(rng, shape, dtype, 0.5, 1.5) if name == "reduce_prod" else array(rng, shape, dtype)
                cases.call(function, x, axis=axis_of(rng, len(shape)), keepdims=bool(rng.integers(0, 2)))
            cases.call(function, special(dtype), grad=[], note="special")
        cases.call(function, array(rng, (2, 3), "float32"), axis=2, note="no such axis")
        cases.call(function, array(rng, (2, 3), "float32"), axis=[0, 0], note="the same axis twice")
        cases.call(function, [[1.0, 2.0], [3.0, 4.0]] if "all" not in name and "any" not in name else [[True], [False]], axis=np.int64(1))
    for name in ("argmax", "argmin"):
        function = f"tf.math.{name}"
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape in [(5,), (2, 3), (2, 3, 4), (0, 3)]:
                cases.call(function, array(rng, shape, dtype, -2, 2), axis=int(rng.integers(-len(shape), len(shape))), grad=[])
            cases.call(function, array(rng, (4, 3), dtype), grad=[])
            cases.call(function, special(dtype), output_type=np.dtype("int32") and "int32", grad=[])
        cases.call(function, array(rng, (), "float32"), grad=[])
        cases.call(function, array(rng, (0,), "float32"), grad=[])
    for name in ("cumsum", "cumprod", "cumulative_logsumexp"):
        function = f"tf.math.{name}"
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape in [(5,), (2, 3), (0, 3), (2, 3, 4)]:
                axis = int(rng.integers(-len(shape), len(shape)))
                cases.call(function, array(rng, shape, dtype, -2, 2), axis, bool(rng.integers(0, 2)), bool(rng.integers(0, 2)))
        cases.call(function, array(rng, (), "float32"))
        cases.call(function, array(rng, (2,), "float32"), axis=1)
    order(cases)
    segments(cases)
    for function in ("tf.math.softmax", "tf.math.log_softmax", "tf.math.l2_normalize", "tf.nn.softmax", "tf.nn.log_softmax", "tf.nn.l2_normalize"):
        rng = cases.rng(function)
        for dtype in FLOATS + ["int32", "complex64"]:
            for shape in [(5,), (2, 3), (0, 3), (3, 0), (2, 3, 4)]:
                cases.call(function, array(rng, shape, dtype), axis=int(rng.integers(-len(shape), len(shape))))
        cases.call(function, special("float32"), axis=-1, grad=[])
        cases.call(function, array(rng, (2, 3), "float32"))
    for function in ("tf.math.zero_fraction", "tf.nn.zero_fraction"):
        rng = cases.rng(function)
        for dtype in TYPES:
            cases.call(function, array(rng, (3, 4), dtype, -1, 1), grad=[])
        cases.call(function, array(rng, (0,), "float32"), grad=[])
    for name in ("is_non_decreasing", "is_strictly_increasing"):
        function = f"tf.math.{name}"
        rng = cases.rng(function)
        for dtype in TYPES:
            for x in (array(rng, (4,), dtype), np.sort(array(rng, (2, 3), dtype).reshape(-1).astype("float64")).astype(dtype) if dtype in COMMON[:2] + ["float32"] else array(rng, (1,), dtype)):
                cases.call(function, x, grad=[])
        cases.call(function, array(rng, (0,), "float32"), grad=[])
    counting(cases)


def order(cases):
    rng = cases.rng("tf.sort")
    for function in ("tf.sort", "tf.argsort"):
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape in [(5,), (2, 3), (0, 3), (3, 0), (2, 3, 4)]:
                x = distinct(rng, shape, dtype) if dtype not in ("bool",) else array(rng, shape, dtype)
                cases.call(function, x, axis=int(rng.integers(-len(shape), len(shape))), direction=str(rng.choice(["ASCENDING", "DESCENDING"])), grad=[])
        cases.call(function, array(rng, (20,), "int32", 0, 3), stable=True)
        cases.call(function, np.array([2.0, np.nan, -np.inf, 1.0, np.inf], np.float32), grad=[])
        cases.call(function, array(rng, (), "float32"), grad=[])
        cases.call(function, array(rng, (3,), "float32"), direction="UP")
    for function in ("tf.math.top_k", "tf.nn.top_k"):
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape, k in [((5,), 3), ((2, 4), 2), ((0, 3), 2), ((2, 3), 0), ((2, 3), 4), ((2, 3, 4), 4)]:
                cases.call(function, array(rng, shape, dtype, -2, 2) if dtype == "bool" else distinct(rng, shape, dtype), k)
            cases.call(function, array(rng, (12,), dtype, 0, 2), 5, grad=[])
        cases.call(function, distinct(rng, (3,)))
        cases.call(function, distinct(rng, ()), 1)
    for function in ("tf.math.in_top_k", "tf.nn.in_top_k"):
        rng = cases.rng(function)
        for dtype in ("int32", "int64"):
            for k in (1, 2, 9):
                cases.call(function, array(rng, (5,), dtype, 0, 3), array(rng, (5, 4), "float32"), k, grad=[])
        cases.call(function, np.array([5, -1, 0]), np.array([[1, 2], [np.nan, 1], [np.inf, 0]], np.float32), 1, grad=[])
    for name in ("approx_max_k", "approx_min_k"):
        for function in (f"tf.math.{name}", f"tf.nn.{name}"):
            rng = cases.rng(function)
            for dtype in ("float16", "bfloat16", "float32", "int32"):
                cases.call(function, distinct(rng, (3, 8), dtype), 3)
                cases.call(function, distinct(rng, (8, 3), dtype), 2, reduction_dimension=0)
    function = "tf.math.invert_permutation"
    rng = cases.rng(function)
    for dtype in ("int32", "int64", "float32"):
        cases.call(function, rng.permutation(6).astype(dtype), grad=[])
    cases.call(function, np.array([0, 0, 2]))
    cases.call(function, np.array([], np.int32))
    function = "tf.searchsorted"
    rng = cases.rng(function)
    for dtype in NUMBERS[:12]:
        for side in ("left", "right"):
            cases.call(function, np.sort(array(rng, (6,), dtype).astype("float64")).astype(dtype) if dtype != "bfloat16" else distinct(rng, (6,), dtype)[np.argsort(distinct(rng, (6,), "int32"))], array(rng, (4,), dtype), side=side, grad=[])
    cases.call(function, np.sort(array(rng, (2, 5), "float32")), array(rng, (2, 3), "float32"), grad=[])
    cases.call(function, np.sort(array(rng, (2, 5), "float32")), array(rng, (3, 3), "float32"), grad=[])
    cases.call(function, np.zeros((0,), np.float32), array(rng, (3,), "float32"), grad=[])


def segments(cases):
    for name in ("segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"):
        function = f"tf.math.{name}"
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape in [(5,), (5, 3), (0, 2)]:
                ids = np.sort(rng.integers(0, 4, shape[0])).astype(str(rng.choice(["int32", "int64"])))
                cases.call(function, distinct(rng, shape, dtype) if dtype != "bool" else array(rng, shape, dtype), ids)
        cases.call(function, array(rng, (3,), "float32"), np.array([1, 0, 2]), note="not sorted")
        cases.call(function, array(rng, (3,), "float32"), np.array([0, 1]), note="lengths that differ")
    for name in ("max", "mean", "min", "prod", "sqrt_n", "sum"):
        function = f"tf.math.unsorted_segment_{name}"
        rng = cases.rng(function)
        for dtype in TYPES:
            for shape in [(5,), (5, 3), (0, 2)]:
                cases.call(function, distinct(rng, shape, dtype) if dtype != "bool" else array(rng, shape, dtype), rng.integers(-1, 4, shape[0]).astype(str(rng.choice(["int32", "int64"]))), 4)
        cases.call(function, array(rng, (2, 3, 2), "float32"), rng.integers(0, 3, (2, 3)), 3)
        cases.call(function, array(rng, (3,), "float32"), np.array([0, 5, 1]), 3, note="beyond the end")


def counting(cases):
    function = "tf.math.bincount"
    rng = cases.rng(function)
    for dtype in ("int32", "int64", "uint8"):
        cases.call(function, array(rng, (9,), dtype, 0, 5))
        cases.call(function, array(rng, (9,), dtype, 0, 5), minlength=8)
        cases.call(function, array(rng, (9,), dtype, 0, 5), maxlength=3)
        cases.call(function, array(rng, (2, 9), dtype, 0, 5), axis=-1)
        cases.call(function, array(rng, (2, 9), dtype, 0, 5), axis=-1, binary_output=True)
        cases.call(function, array(rng, (9,), dtype, 0, 5), weights=array(rng, (9,), "float32"), grad=[])
    cases.call(function, np.array([], np.int32))
    cases.call(function, np.array([-1, 2], np.int32))
    function = "tf.math.confusion_matrix"
    rng = cases.rng(function)
    for dtype in ("int32", "int64"):
        cases.call(function, array(rng, (9,), dtype, 0, 3), array(rng, (9,), dtype, 0, 3))
        cases.call(function, array(rng, (9,), dtype, 0, 3), array(rng, (9,), dtype, 0, 3), num_classes=5, weights=array(rng, (9,), "float32"), dtype="float32", grad=[])
        cases.call(function, array(rng, (9,), dtype, 0, 3), array(rng, (9,), dtype, 0, 3), num_classes=2)
    for function in ("tf.histogram_fixed_width", "tf.histogram_fixed_width_bins"):
        rng = cases.rng(function)
        for dtype in ("int32", "float32", "float64"):
            cases.call(function, array(rng, (9,), dtype, -3, 7), np.array([0, 5], dtype), nbins=5, grad=[])
        cases.call(function, array(rng, (0,), "float32"), np.array([0, 5], "float32"), grad=[])
        cases.call(function, array(rng, (3,), "float32"), np.array([5, 0], "float32"), grad=[])
    for name, code in {"unique": "tf.unique(x[0])", "unique_with_counts": "tf.unique_with_counts(x[0])"}.items():
        rng = cases.rng(f"tf.{name}")
        for dtype in TYPES:
            cases.code(f"tf.{name}", code, array(rng, (9,), dtype, 0, 3))
        cases.code(f"tf.{name}", code, array(rng, (0,), "int32"))
        cases.code(f"tf.{name}", code, array(rng, (2, 2), "int32"))
