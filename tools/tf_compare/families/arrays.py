"""tf's own functions on arrays: shapes, movement, indexing, making."""
import numpy as np

from cases import Raw
from inputs import FLOATS, INTEGERS, TYPES, array, distinct, ragged, special, text


def fill(cases):
    movement(cases)
    indexing(cases)
    making(cases)
    casts(cases)
    clips(cases)


def each(cases, function, calls, types=TYPES):
    """calls: functions of rng and dtype that give the arguments and the options."""
    rng = cases.rng(function)
    for dtype in types:
        for make in calls:
            made = make(rng, dtype)
            args, options = made if isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], dict) else (made, {})
            cases.call(function, *args, **options)


def movement(cases):
    a = array
    table = {
        "tf.reshape": [lambda r, t: (a(r, (2, 6), t), [3, -1]), lambda r, t: (a(r, (0, 3), t), [0, -1]), lambda r, t: (a(r, (0, 3), t), [-1]), lambda r, t: (a(r, (), t), [1, 1]),
                       lambda r, t: (a(r, (1,), t), []), lambda r, t: (a(r, (2, 3), t), [4, -1]), lambda r, t: (a(r, (2, 3), t), [-1, -1]), lambda r, t: (a(r, (2, 3), t), [7])],
        "tf.transpose": [lambda r, t: (a(r, (2, 3, 4), t),), lambda r, t: (a(r, (2, 3, 4), t), [1, 2, 0]), lambda r, t: (a(r, (2, 3), t), [0, 0]), lambda r, t: (a(r, (), t),), lambda r, t: (a(r, (0, 3), t), [1, 0]), lambda r, t: (a(r, (2, 3), t), [-1, 0])],
        "tf.expand_dims": [lambda r, t: (a(r, (2, 3), t), 0), lambda r, t: (a(r, (2, 3), t), -1), lambda r, t: (a(r, (), t), 0), lambda r, t: (a(r, (2,), t), 3)],
        "tf.squeeze": [lambda r, t: (a(r, (1, 3, 1), t),), lambda r, t: (a(r, (1, 3, 1), t), [0]), lambda r, t: (a(r, (1, 3, 1), t), -1), lambda r, t: (a(r, (1, 3), t), 1)],
        "tf.tile": [lambda r, t: (a(r, (2, 3), t), [2, 1]), lambda r, t: (a(r, (2, 3), t), [0, 2]), lambda r, t: (a(r, (), t), []), lambda r, t: (a(r, (2,), t), [2, 2]), lambda r, t: (a(r, (2,), t), [-1])],
        "tf.repeat": [lambda r, t: (a(r, (2, 3), t), 2), lambda r, t: ((a(r, (2, 3), t), [1, 3]), {"axis": 0}), lambda r, t: ((a(r, (2, 3), t), [0, 1, 2]), {"axis": 1}), lambda r, t: ((a(r, (2, 3), t), [1, 2]), {"axis": 1})],
        "tf.broadcast_to": [lambda r, t: (a(r, (3, 1), t), [2, 3, 4]), lambda r, t: (a(r, (), t), [0, 2]), lambda r, t: (a(r, (2,), t), [3]), lambda r, t: (a(r, (1,), t), [0])],
        "tf.reverse": [lambda r, t: (a(r, (2, 3, 4), t), [0, -1]), lambda r, t: (a(r, (2, 3), t), []), lambda r, t: (a(r, (2, 3), t), [2]), lambda r, t: (a(r, (0, 3), t), [0])],
        "tf.roll": [lambda r, t: (a(r, (5,), t), 2, 0), lambda r, t: (a(r, (3, 4), t), [1, -2], [0, 1]), lambda r, t: (a(r, (3, 4), t), [1, 2], [0, 0]), lambda r, t: (a(r, (0, 3), t), 1, 0), lambda r, t: (a(r, (3,), t), 1, 1)],
        "tf.pad": [lambda r, t: (a(r, (2, 3), t), [[1, 0], [2, 1]]), lambda r, t: (a(r, (3, 4), t), [[1, 1], [2, 2]], "REFLECT"), lambda r, t: (a(r, (3, 4), t), [[1, 3], [0, 4]], "SYMMETRIC"), lambda r, t: (a(r, (2, 3), t), [[2, 0], [0, 0]], "REFLECT"),
                   lambda r, t: ((a(r, (2, 3), t), [[1, 0], [2, 1]]), {"constant_values": Raw(f"tf.constant(1, tf.{t})") if t != "bool" else True}), lambda r, t: (a(r, (0, 3), t), [[1, 1], [0, 0]]), lambda r, t: (a(r, (2,), t), [[-1, 0]]), lambda r, t: (a(r, (2, 2), t), [[1, 1]])],
        "tf.concat": [lambda r, t: ([a(r, (2, 3), t), a(r, (2, 2), t)], 1), lambda r, t: ([a(r, (0, 3), t), a(r, (2, 3), t)], 0), lambda r, t: ([a(r, (2, 3), t), a(r, (2, 3), t)], -1), lambda r, t: ([a(r, (2, 3), t)], 0), lambda r, t: ([a(r, (2, 3), t), a(r, (3, 2), t)], 0), lambda r, t: ([a(r, (), t), a(r, (), t)], 0)],
        "tf.stack": [lambda r, t: ([a(r, (2, 3), t), a(r, (2, 3), t)],), lambda r, t: (([a(r, (2,), t), a(r, (2,), t)],), {"axis": -1}), lambda r, t: ([a(r, (), t), a(r, (), t)],), lambda r, t: ([a(r, (2,), t), a(r, (3,), t)],), lambda r, t: (([a(r, (2,), t)],), {"axis": 3})],
        "tf.parallel_stack": [lambda r, t: ([a(r, (2, 3), t), a(r, (2, 3), t)],)],
        "tf.unstack": [lambda r, t: (a(r, (2, 3), t),), lambda r, t: ((a(r, (2, 3), t),), {"axis": -1}), lambda r, t: (a(r, (0, 3), t),), lambda r, t: (a(r, (2, 3), t), 3), lambda r, t: (a(r, (), t),)],
        "tf.split": [lambda r, t: (a(r, (6, 2), t), 3), lambda r, t: (a(r, (2, 6), t), [1, 2, -1], 1), lambda r, t: (a(r, (5,), t), 2), lambda r, t: (a(r, (5,), t), [2, 2]), lambda r, t: (a(r, (4,), t), [4, 0])],
        "tf.slice": [lambda r, t: (a(r, (4, 5), t), [1, 2], [2, -1]), lambda r, t: (a(r, (4, 5), t), [4, 0], [0, 5]), lambda r, t: (a(r, (4,), t), [3], [2]), lambda r, t: (a(r, (4,), t), [-1], [1])],
        "tf.strided_slice": [lambda r, t: (a(r, (5, 6), t), [4, 1], [0, 6], [-2, 2]), lambda r, t: ((a(r, (5, 6), t), [0, 1], [0, 4]), {"begin_mask": 1, "end_mask": 1}), lambda r, t: ((a(r, (5, 6), t), [2, 0], [3, 2]), {"shrink_axis_mask": 1}),
                             lambda r, t: ((a(r, (5, 6), t), [0, 0], [2, 1]), {"new_axis_mask": 1}), lambda r, t: ((a(r, (3, 4, 5), t), [0, 1], [0, 3]), {"ellipsis_mask": 1})],
        "tf.identity": [lambda r, t: (a(r, (2, 3), t),)],
        "tf.stop_gradient": [lambda r, t: (a(r, (2, 3), t),)],
        "tf.meshgrid": [lambda r, t: (a(r, (2,), t), a(r, (3,), t)), lambda r, t: ((a(r, (2,), t), a(r, (3,), t), a(r, (1,), t)), {"indexing": "ij"})],
        "tf.space_to_batch": [lambda r, t: (a(r, (1, 4, 4, 2), t), [2, 2], [[0, 0], [0, 0]]), lambda r, t: (a(r, (2, 3, 4, 1), t), [2, 2], [[1, 0], [2, 0]]), lambda r, t: (a(r, (1, 3, 3, 1), t), [2, 2], [[0, 0], [0, 0]])],
        "tf.space_to_batch_nd": [lambda r, t: (a(r, (1, 4, 6), t), [2, 3], [[0, 0], [0, 0]])],
        "tf.batch_to_space": [lambda r, t: (a(r, (4, 2, 2, 1), t), [2, 2], [[0, 0], [0, 0]]), lambda r, t: (a(r, (8, 1, 3, 1), t), [2, 2], [[0, 0], [2, 0]])],
        "tf.nn.space_to_depth": [lambda r, t: (a(r, (1, 4, 6, 2), t), 2), lambda r, t: (a(r, (1, 3, 4, 2), t), 2), lambda r, t: ((a(r, (1, 4, 2, 4), t), 2), {"data_format": "NHWC"})],
        "tf.nn.depth_to_space": [lambda r, t: (a(r, (1, 2, 3, 8), t), 2), lambda r, t: (a(r, (1, 2, 3, 6), t), 2)],
        "tf.nn.space_to_batch": [lambda r, t: (a(r, (1, 4, 4, 2), t), [2, 2], [[0, 0], [0, 0]])],
        "tf.ensure_shape": [lambda r, t: (a(r, (2, 3), t), [None, 3]), lambda r, t: (a(r, (2, 3), t), [3, 2])],
        "tf.linalg.matrix_transpose": [lambda r, t: (a(r, (2, 3, 4), t),), lambda r, t: (a(r, (3,), t),)],
        "tf.linalg.adjoint": [lambda r, t: (a(r, (2, 3, 4), t),)],
        "tf.signal.fftshift": [lambda r, t: (a(r, (3, 4), t),), lambda r, t: (a(r, (5,), t), 0)],
        "tf.signal.ifftshift": [lambda r, t: (a(r, (3, 4), t),), lambda r, t: (a(r, (5,), t), 0)],
        "tf.shape": [lambda r, t: (a(r, (2, 0, 3), t),), lambda r, t: ((a(r, (), t),), {"out_type": Raw("tf.int64")})],
        "tf.size": [lambda r, t: (a(r, (2, 0, 3), t),), lambda r, t: ((a(r, (2, 3), t),), {"out_type": Raw("tf.int64")})],
        "tf.rank": [lambda r, t: (a(r, (2, 0, 3), t),)],
        "tf.shape_n": [lambda r, t: ([a(r, (2, 3), t), a(r, (), t)],)],
        "tf.identity_n": [lambda r, t: ([a(r, (2, 3), t), a(r, (), t)],)],
        "tf.add_n": [lambda r, t: ([a(r, (2, 3), t), a(r, (2, 3), t), a(r, (2, 3), t)],), lambda r, t: ([a(r, (2, 3), t), a(r, (3,), t)],)],
        "tf.math.accumulate_n": [lambda r, t: ([a(r, (2, 3), t), a(r, (2, 3), t)],)],
        "tf.scalar_mul": [lambda r, t: (2, a(r, (2, 3), t)), lambda r, t: (a(r, (), t), a(r, (3,), t))],
        "tf.required_space_to_batch_paddings": [],
        "tf.linalg.diag": [lambda r, t: (a(r, (3,), t),), lambda r, t: ((a(r, (2, 3), t),), {"k": 1}), lambda r, t: ((a(r, (2, 3), t),), {"k": (-1, 0), "align": "LEFT_RIGHT"}), lambda r, t: ((a(r, (3,), t),), {"k": -1, "num_rows": 5, "num_cols": 3})],
        "tf.linalg.diag_part": [lambda r, t: (a(r, (3, 4), t),), lambda r, t: ((a(r, (2, 3, 4), t),), {"k": 1}), lambda r, t: ((a(r, (3, 4), t),), {"k": (-1, 2)}), lambda r, t: ((a(r, (3, 4), t),), {"k": (-2, 1), "align": "LEFT_LEFT"}), lambda r, t: ((a(r, (2, 2), t),), {"k": 5})],
        "tf.linalg.set_diag": [lambda r, t: (a(r, (3, 4), t), a(r, (3,), t)), lambda r, t: ((a(r, (2, 3, 4), t), a(r, (2, 3), t)), {"k": 1}), lambda r, t: ((a(r, (3, 4), t), a(r, (2, 3), t)), {"k": (-1, 0)}), lambda r, t: (a(r, (3, 4), t), a(r, (2,), t))],
        "tf.linalg.band_part": [lambda r, t: (a(r, (3, 4), t), 1, 0), lambda r, t: (a(r, (2, 4, 4), t), -1, 1), lambda r, t: (a(r, (4, 4), t), 0, -1)],
        "tf.linalg.trace": [lambda r, t: (a(r, (3, 4), t),), lambda r, t: (a(r, (2, 3, 3), t),)],
        "tf.linalg.tensor_diag": [lambda r, t: (a(r, (3,), t),), lambda r, t: (a(r, (2, 3), t),)],
        "tf.linalg.tensor_diag_part": [lambda r, t: (a(r, (3, 3), t),), lambda r, t: (a(r, (2, 3, 2, 3), t),), lambda r, t: (a(r, (2, 3), t),)],
        "tf.reverse_sequence": [lambda r, t: ((a(r, (3, 5), t), [2, 5, 0]), {"seq_axis": 1, "batch_axis": 0}), lambda r, t: ((a(r, (5, 2), t), [2, 6]), {"seq_axis": 0, "batch_axis": 1})],
        "tf.extract_volume_patches": [lambda r, t: (a(r, (1, 4, 4, 4, 1), t), [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "VALID")],
    }  # fmt: skip
    for function, calls in table.items():
        each(cases, function, calls)
    rng = cases.rng("tf.required_space_to_batch_paddings")
    cases.call("tf.required_space_to_batch_paddings", np.array([5, 7]), np.array([2, 3]))
    cases.call("tf.required_space_to_batch_paddings", np.array([5, 7]), np.array([2, 3]), np.array([[1, 0], [0, 2]]), np.array([[0, 0], [1, 0]]))
    for name in ("broadcast_dynamic_shape", "broadcast_static_shape"):
        for a, b in (([2, 1], [3]), ([], [2, 0]), ([2], [3])):
            cases.rng(f"tf.{name}")
            cases.code(f"tf.{name}", f"tf.{name}({'tf.constant(%s, tf.int32)' % a if 'dynamic' in name else 'tf.TensorShape(%s)' % a}, {'tf.constant(%s, tf.int32)' % b if 'dynamic' in name else 'tf.TensorShape(%s)' % b})")
    function = "tf.Tensor[]"
    rng = cases.rng(function)
    keys = ["0", "-1", "1:3", "::2", "::-1", "..., 0", "..., tf.newaxis", "1, 2", "1:, :2", "3:1", "tf.newaxis, 1", "2:100", "-3:", "tf.constant(1)", "tf.constant(1):", "9", "4:0:-2, ..., -1", "1.0", "[0, 1]", "True"]
    for key in keys:
        for dtype in ("float32", "int64", "complex64", "bfloat16"):
            cases.code(function, f"x[0][{key}]", array(rng, (5, 4, 3), dtype), grad=[0] if dtype == "float32" else [])


def indexing(cases):
    a = array
    table = {
        "tf.gather": [lambda r, t: (a(r, (5, 3), t), r.integers(0, 5, (2, 2))), lambda r, t: ((a(r, (2, 5, 3), t), r.integers(0, 5, (2, 4))), {"axis": 1, "batch_dims": 1}), lambda r, t: ((a(r, (2, 5), t), r.integers(0, 5, ())), {"axis": -1}),
                      lambda r, t: (a(r, (5,), t), np.array([5])), lambda r, t: (a(r, (5,), t), np.array([-1])), lambda r, t: (a(r, (5,), t), np.array([], np.int32)), lambda r, t: ((a(r, (3, 5), t), [1, 0]), {"axis": 2})],
        "tf.gather_nd": [lambda r, t: (a(r, (4, 3), t), r.integers(0, 3, (5, 2))), lambda r, t: (a(r, (4, 3), t), r.integers(0, 4, (2, 1))), lambda r, t: ((a(r, (2, 4, 3), t), r.integers(0, 3, (2, 2, 1))), {"batch_dims": 1}), lambda r, t: (a(r, (4,), t), np.array([[4]])), lambda r, t: (a(r, (2, 3), t), np.zeros((4, 0), np.int32))],
        "tf.scatter_nd": [lambda r, t: (r.integers(0, 5, (4, 1)), a(r, (4,), t), [5]), lambda r, t: (r.integers(0, 3, (4, 1)), a(r, (4, 2), t), [3, 2]), lambda r, t: (np.array([[7]]), a(r, (1,), t), [3])],
        "tf.tensor_scatter_nd_add": [lambda r, t: (a(r, (5,), t), r.integers(0, 5, (4, 1)), a(r, (4,), t)), lambda r, t: (a(r, (2,), t), np.array([[3]]), a(r, (1,), t))],
        "tf.tensor_scatter_nd_sub": [lambda r, t: (a(r, (5, 2), t), r.integers(0, 5, (4, 1)), a(r, (4, 2), t))],
        "tf.tensor_scatter_nd_max": [lambda r, t: (a(r, (5,), t), r.permutation(5)[:4, None], a(r, (4,), t))],
        "tf.tensor_scatter_nd_min": [lambda r, t: (a(r, (5,), t), r.permutation(5)[:4, None], a(r, (4,), t))],
        "tf.tensor_scatter_nd_update": [lambda r, t: (a(r, (5,), t), r.permutation(5)[:4, None], a(r, (4,), t)), lambda r, t: (a(r, (5, 2), t), np.array([[1, 1]]), a(r, (1,), t)), lambda r, t: (a(r, (5,), t), np.array([[-1]]), a(r, (1,), t))],
        "tf.boolean_mask": [lambda r, t: (a(r, (5,), t), a(r, (5,), "bool")), lambda r, t: (a(r, (2, 3, 2), t), a(r, (2, 3), "bool")), lambda r, t: ((a(r, (2, 3), t), a(r, (3,), "bool")), {"axis": 1}), lambda r, t: (a(r, (3,), t), a(r, (2,), "bool"))],
        "tf.dynamic_partition": [lambda r, t: (a(r, (6,), t), r.integers(0, 3, 6).astype(np.int32), 3), lambda r, t: (a(r, (3, 2), t), r.integers(0, 2, 3).astype(np.int32), 2), lambda r, t: (a(r, (3,), t), np.array([0, 1, 2], np.int32), 2)],
        "tf.dynamic_stitch": [lambda r, t: ([np.array([0, 2], np.int32), np.array([1, 3, 4], np.int32)], [a(r, (2, 2), t), a(r, (3, 2), t)]), lambda r, t: ([np.array([0, 3], np.int32)], [a(r, (2,), t)])],
        "tf.nn.embedding_lookup": [lambda r, t: (a(r, (5, 3), t), r.integers(0, 5, (2, 2))), lambda r, t: ((a(r, (5, 3), t), r.integers(0, 5, (2,))), {"max_norm": 1.0})],
    }  # fmt: skip
    for function, calls in table.items():
        each(cases, function, calls)
    function = "tf.one_hot"
    rng = cases.rng(function)
    for dtype in ("uint8", "int8", "int32", "int64", "float32"):
        cases.call(function, array(rng, (5,), dtype, -1, 4), 4)
        cases.call(function, array(rng, (2, 3), dtype, -1, 4), 3, axis=int(rng.integers(-1, 2)))
        cases.call(function, array(rng, (3,), dtype, 0, 3), 3, on_value=2, off_value=-1, dtype="int8")
        cases.call(function, array(rng, (), dtype, 0, 3), 0)
    cases.call(function, np.array([1]), 2, on_value=True, off_value=False)
    function = "tf.sequence_mask"
    rng = cases.rng(function)
    for dtype in INTEGERS + ["float32"]:
        cases.call(function, array(rng, (4,), dtype, 0, 5), grad=[])
        cases.call(function, array(rng, (2, 2), dtype, 0, 5), 4, dtype="float32", grad=[])
    cases.rng("tf.unravel_index")
    cases.call("tf.unravel_index", np.array([3, 5, 0]), [2, 3])
    cases.call("tf.unravel_index", np.array(4, np.int32), np.array([2, 3], np.int32))
    cases.call("tf.unravel_index", np.array([9]), [2, 3])
    rng = cases.rng("tf.edit_distance")
    for s in (0, 1):
        cases.code("tf.edit_distance", f"tf.edit_distance(tf.sparse.from_dense(x[0]), tf.sparse.from_dense(x[1]), normalize={bool(s)})", array(rng, (3, 4), "int64", 0, 3), array(rng, (3, 4), "int64", 0, 3))


def making(cases):
    dtypes = ", ".join(TYPES)
    for name in ("zeros", "ones", "eye"):
        cases.rng(f"tf.{name}")
        for dtype in dtypes.split(", "):
            cases.call(f"tf.{name}", 3 if name == "eye" else [2, 3], dtype=dtype)
        cases.call(f"tf.{name}", 0 if name == "eye" else [0, 2])
        cases.call(f"tf.{name}", -1 if name == "eye" else [-1])
    cases.call("tf.eye", 2, 3, batch_shape=[2])
    for name in ("zeros_like", "ones_like"):
        rng = cases.rng(f"tf.{name}")
        for dtype in TYPES:
            cases.call(f"tf.{name}", array(rng, (2, 3), dtype))
            cases.call(f"tf.{name}", array(rng, (0, 3), dtype), dtype="float32", grad=[])
    rng = cases.rng("tf.fill")
    for dtype in TYPES:
        cases.call("tf.fill", [2, 3], array(rng, (), dtype))
    cases.call("tf.fill", [2, -1], 1.0)
    cases.call("tf.fill", [2], [1.0])
    for t in INTEGERS + FLOATS:
        cases.rng("tf.range")
        for a in ("5", "2, 9, 3", "9, 2, -2", "3, 3", "0, 5, 0"):
            cases.code("tf.range", f"tf.range({a}, dtype=tf.{t})")
        cases.rng("tf.linspace")
        for a in ("0, 9, 4", "1, 1, 1", "0, 1, 0", "-1, 3, 7"):
            start, stop, count = a.split(", ")
            cases.code("tf.linspace", f"tf.linspace(tf.constant({start}, tf.{t}), tf.constant({stop}, tf.{t}), {count})")
    cases.code("tf.range", "tf.range(2.0, 5.0, 0.7)")
    cases.code("tf.range", "tf.range(5, delta=2.5)")
    cases.code("tf.linspace", "tf.linspace([0.0, 1.0], [5.0, 6.0], 4, axis=-1)")
    cases.rng("tf.constant")
    for code in ("1", "1.5", "True", "'a'", "1j", "[1, 2.5]", "[1, True]", "[[1], [2, 3]]", "[]", "2**40", "2**70", "-1, dtype=tf.uint8", "300, dtype=tf.int8", "1.5, dtype=tf.int32", "1, dtype=tf.float16", "1, shape=[2, 3]", "[1, 2, 3], shape=[3, 2]",
                 "None", "np.float64(1.5)", "np.int8(3)", "np.arange(3)", "np.arange(3), dtype=tf.float32", "[np.float64(1), 2]", "float('nan')", "b'a\\0'", "[['a'], ['b']]", "True, dtype=tf.int32", "1, dtype=tf.bool", "[1, 'a']", "np.array([1.5, 2.5]), dtype=tf.int32",
                 "1, dtype=tf.complex64", "tf.constant(1.5), dtype=tf.int32", "tf.constant(1), dtype=tf.float32", "[tf.constant(1), 2]", "[tf.constant(1), 2.5]", "(1, 2)", "range(3)", "np.datetime64('2020-01-01')", "{1}", "1e300", "1e300, dtype=tf.float16", "[2**40, 1]"):  # fmt: skip
        cases.code("tf.constant", f"tf.constant({code})")
        cases.code("tf.convert_to_tensor", f"tf.convert_to_tensor({code})")


def casts(cases):
    for function in ("tf.cast", "tf.saturate_cast", "tf.bitcast"):
        rng = cases.rng(function)
        for dtype in TYPES:
            for other in TYPES:
                x = array(rng, (2, 4), dtype, 0 if other.startswith("u") else -9, 100)
                cases.call(function, x, Raw(f"tf.{other}"))
                if function == "tf.saturate_cast" or dtype in INTEGERS and other in INTEGERS:
                    cases.call(function, special(dtype), Raw(f"tf.{other}"), grad=[])


def clips(cases):
    for function in ("tf.clip_by_norm", "tf.clip_by_global_norm", "tf.linalg.global_norm", "tf.linalg.norm", "tf.linalg.normalize"):
        rng = cases.rng(function)
        for dtype in FLOATS + ["int32", "complex64"]:
            for shape in [(5,), (2, 3), (0, 3), ()]:
                x = array(rng, shape, dtype)
                if "global" in function:
                    args = [[x, array(rng, (3,), dtype)]] + ([1.5] if "clip" in function else [])
                    cases.call(function, *args)
                elif "clip" in function:
                    cases.call(function, x, 1.5)
                    cases.call(function, x, 100.0, axes=[0]) if shape else None
                else:
                    for order in ("euclidean", 1, 2, "np.inf", 3, "fro"):
                        cases.call(function, x, Raw(order) if order == "np.inf" else order, **({"axis": 0} if shape and order != "fro" else {}))
    rng = cases.rng("tf.linalg.norm")
    for order in (1, 2, "np.inf", "fro", "euclidean"):
        cases.call("tf.linalg.norm", array(rng, (2, 3, 4), "float32"), Raw(order) if order == "np.inf" else order, axis=[-2, -1], keepdims=True)
    _ = distinct, ragged, text
