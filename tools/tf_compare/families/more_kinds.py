"""Ragged and sparse tensors."""
import numpy as np

from inputs import array, ragged, sparse, text

ROWS = [[1, 2, 3], [], [4], [5, 6]]
DEEP = [[[1, 2], [3]], [], [[4], [], [5, 6]]]


def fill(cases):
    raggeds(cases)
    sparses(cases)


def raggeds(cases):
    r, f, d = ragged(ROWS, "int32"), ragged(ROWS, "float32"), ragged(DEEP, "float32")
    functions = ["tf.ragged.", "tf."]
    for name, codes in {
        "tf.ragged.constant": ["tf.ragged.constant([[1, 2], [3]])", "tf.ragged.constant([])", "tf.ragged.constant([[], [[1]]])", "tf.ragged.constant([['a'], []])", "tf.ragged.constant([[1.0], [2, 3]], dtype=tf.float64)", "tf.ragged.constant([[[1, 2]], []], inner_shape=(2,))", "tf.ragged.constant([1, [2]])",
                               "tf.ragged.constant([[1]], row_splits_dtype=tf.int32)", "tf.ragged.constant(3)", "tf.ragged.constant([[[1, 2], [3, 4]]], ragged_rank=1)"],
        "tf.ragged.range": ["tf.ragged.range([3, 0, 2])", "tf.ragged.range([0, 5], [4, 2], [1, -1])", "tf.ragged.range([1.0, 2.0], 4.0, 0.5)", "tf.ragged.range([1], [3], [0])"],
        "tf.ragged.stack": ["tf.ragged.stack([x[0], x[0]])", "tf.ragged.stack([x[0], x[0]], axis=1)", "tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])])"],
        "tf.ragged.boolean_mask": ["tf.ragged.boolean_mask(x[0], tf.ragged.constant([[True, False, True], [], [False], [True, True]]))", "tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])", "tf.ragged.boolean_mask(x[0], [True, False, True, True])"],
        "tf.ragged.map_flat_values": ["tf.ragged.map_flat_values(tf.square, x[0])", "tf.ragged.map_flat_values(tf.add, x[0], 3)", "tf.ragged.map_flat_values(tf.multiply, x[0], x[0])"],
        "tf.ragged.cross": ["tf.ragged.cross([tf.ragged.constant([['a'], ['b', 'c']]), tf.ragged.constant([['d'], ['e']])])"],
        "tf.ragged.cross_hashed": ["tf.ragged.cross_hashed([tf.ragged.constant([['a'], ['b', 'c']]), tf.ragged.constant([['d'], ['e']])], num_buckets=100)"],
        "tf.ragged.row_splits_to_segment_ids": ["tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5])", "tf.ragged.row_splits_to_segment_ids([0, 3], out_type=tf.int32)", "tf.ragged.row_splits_to_segment_ids([1, 3])"],
        "tf.ragged.segment_ids_to_row_splits": ["tf.ragged.segment_ids_to_row_splits([0, 0, 2])", "tf.ragged.segment_ids_to_row_splits([0, 0, 2], num_segments=5)", "tf.ragged.segment_ids_to_row_splits([], num_segments=2)"],
        "tf.ragged.stack_dynamic_partitions": ["tf.ragged.stack_dynamic_partitions([1, 2, 3], [0, 2, 0], 3)", "tf.ragged.stack_dynamic_partitions(x[0], [0, 2, 0, 1], 3)"],
    }.items():  # fmt: skip
        cases.rng(name)
        for code in codes:
            cases.code(name, code, r)
    function = "tf.RaggedTensor"
    cases.rng(function)
    for code in (
        "x[0].to_tensor()", "x[0].to_tensor(7)", "x[0].to_tensor(shape=[None, 2])", "x[0].to_sparse()", "x[0].to_list()", "x[0].row_lengths()", "x[0].row_starts()", "x[0].row_limits()", "x[0].value_rowids()", "x[0].nrows()", "x[0].bounding_shape()", "x[0].bounding_shape(axis=1)", "x[0].shape",
        "x[0].flat_values", "x[0].nested_row_lengths()", "x[0].ragged_rank", "x[0].merge_dims(0, 1)", "x[0].with_values(tf.range(6))", "x[0] + 1", "x[0] * x[0]", "x[0] + tf.constant([[1], [2], [3], [4]], x[0].dtype)", "-x[0]", "x[0] == 2", "x[0][0]", "x[0][:, :2]", "x[0][1:]", "x[0][-1]", "x[0][:, 0]", "x[0][..., ::2]", "x[0][2, 0]", "x[0][::-1]",
        "tf.reduce_sum(x[0], axis=1)", "tf.reduce_sum(x[0], axis=0)", "tf.reduce_sum(x[0])", "tf.reduce_max(x[0], axis=1)", "tf.reduce_mean(x[0], axis=1)", "tf.reduce_mean(x[0], axis=0)", "tf.reduce_any(x[0] > 2, axis=1)", "tf.reduce_sum(x[0], axis=1, keepdims=True)", "tf.reduce_prod(x[0], axis=1)", "tf.reduce_min(x[0], axis=0)", "tf.math.reduce_std(x[0], axis=1)", "tf.math.reduce_variance(x[0], axis=1)",
        "tf.concat([x[0], x[0]], axis=0)", "tf.concat([x[0], x[0]], axis=1)", "tf.stack([x[0], x[0]])", "tf.gather(x[0], [2, 0])", "tf.gather(x[0], [[0], [3]])", "tf.gather_nd(x[0], [[0, 1], [3, 0]])", "tf.expand_dims(x[0], 0)", "tf.expand_dims(x[0], 2)", "tf.expand_dims(x[0], 1)", "tf.squeeze(tf.expand_dims(x[0], 0), 0)", "tf.tile(x[0], [1, 2])", "tf.tile(x[0], [2, 1])",
        "tf.reverse(x[0], [1])", "tf.reverse(x[0], [0])", "tf.cast(x[0], tf.float64)", "tf.size(x[0])", "tf.rank(x[0])", "tf.shape(x[0])", "tf.zeros_like(x[0])", "tf.ones_like(x[0])", "tf.where(x[0] > 2, x[0], -x[0])", "tf.where(x[0] > 2)", "tf.one_hot(tf.cast(x[0], tf.int32), 3)", "tf.boolean_mask(x[0], [True, False, True, True])", "tf.strings.as_string(x[0])", "tf.bitcast(x[0], tf.int32)", "tf.split(x[0], 2)", "tf.clip_by_value(x[0], 2, 4)", "tf.argmax(x[0], axis=1)",
        "tf.RaggedTensor.from_tensor([[1, 2, 0], [3, 0, 0]], padding=0)", "tf.RaggedTensor.from_tensor([[1, 2], [3, 4]], lengths=[1, 2])", "tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])", "tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 3])", "tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=4)", "tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 1])", "tf.RaggedTensor.from_row_limits([1, 2, 3], [2, 3])",
        "tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)", "tf.RaggedTensor.from_sparse(tf.sparse.from_dense([[1, 2], [3, 0]]))", "tf.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 1, 3]])", "tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0])", "tf.RaggedTensor.from_row_splits([1, 2, 3], [1, 3])", "x[0] + tf.ragged.constant([[1]], dtype=x[0].dtype)", "tf.nn.relu(x[0])", "tf.math.softplus(tf.cast(x[0], tf.float32))", "tf.dynamic_partition(x[0], [0, 1, 0, 1], 2)", "tf.map_fn(tf.reduce_sum, x[0], fn_output_signature=x[0].dtype)", "tf.sort(x[0])", "tf.nn.softmax(tf.cast(x[0], tf.float32))", "tf.nn.dropout(tf.cast(x[0], tf.float32), 0.0)", "tf.matmul(tf.cast(x[0], tf.float32)[:, :, None], tf.constant([[2.0]]))",
    ):  # fmt: skip
        cases.code(function, code, r)
        cases.code(function, code, f)
        if "from_" not in code:
            cases.code(function, code, d)
    _ = functions, text


def sparses(cases):
    s = sparse([[0, 1], [1, 0], [1, 3], [2, 2]], np.array([1, 2, 3, 4], np.float32), [3, 4])
    t = sparse([[0, 1], [1, 1], [2, 2]], np.array([5, 6, -4], np.float32), [3, 4])
    for name, codes in {
        "add": ["tf.sparse.add(x[0], x[1])", "tf.sparse.add(x[0], tf.ones([3, 4]))", "tf.sparse.add(x[0], x[1], threshold=0.5)"], "concat": ["tf.sparse.concat(0, [x[0], x[1]])", "tf.sparse.concat(1, [x[0], x[1]])", "tf.sparse.concat(-1, [x[0], tf.sparse.eye(2)])"],
        "bincount": ["tf.sparse.bincount(tf.cast(x[0], tf.int64))", "tf.sparse.bincount([1, 1, 3])", "tf.sparse.bincount([[1, 1], [0, 3]], axis=-1)", "tf.sparse.bincount([[1, 1], [0, 3]], axis=-1, binary_output=True)"],
        "cross": ["tf.sparse.cross([tf.sparse.from_dense([['a'], ['b']]), tf.sparse.from_dense([['c'], ['d']])])"], "cross_hashed": ["tf.sparse.cross_hashed([tf.sparse.from_dense([['a'], ['b']]), tf.sparse.from_dense([['c'], ['d']])], num_buckets=1000)", "tf.sparse.cross_hashed([tf.constant([[1], [2]], tf.int64), tf.constant([[3], [4]], tf.int64)], num_buckets=1000)"],
        "expand_dims": ["tf.sparse.expand_dims(x[0], 0)", "tf.sparse.expand_dims(x[0])", "tf.sparse.expand_dims(x[0], 1)"], "eye": ["tf.sparse.eye(3)", "tf.sparse.eye(2, 4, dtype=tf.int32)"], "fill_empty_rows": ["tf.sparse.fill_empty_rows(tf.SparseTensor([[0, 1], [2, 0]], [1, 2], [4, 3]), 9)"],
        "from_dense": ["tf.sparse.from_dense([[0, 1], [2, 0]])", "tf.sparse.from_dense(['', 'a'])", "tf.sparse.from_dense([[0.0, -0.0, 1.5]])", "tf.sparse.from_dense(tf.zeros([0, 2]))", "tf.sparse.from_dense(3)"], "map_values": ["tf.sparse.map_values(tf.square, x[0])", "tf.sparse.map_values(tf.add, x[0], 3.0)"], "mask": ["tf.sparse.mask(tf.IndexedSlices(tf.ones([2, 2]), [1, 5]), [5])"],
        "maximum": ["tf.sparse.maximum(x[0], x[1])"], "minimum": ["tf.sparse.minimum(x[0], x[1])"], "reduce_max": ["tf.sparse.reduce_max(x[0], 1)", "tf.sparse.reduce_max(x[0])", "tf.sparse.reduce_max(x[0], 0, keepdims=True)", "tf.sparse.reduce_max(x[0], 1, output_is_sparse=True)"], "reduce_sum": ["tf.sparse.reduce_sum(x[0], 1)", "tf.sparse.reduce_sum(x[0])", "tf.sparse.reduce_sum(x[0], [0], keepdims=True)", "tf.sparse.reduce_sum(x[0], 1, output_is_sparse=True)"],
        "reorder": ["tf.sparse.reorder(tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2]))"], "reset_shape": ["tf.sparse.reset_shape(x[0], [5, 6])", "tf.sparse.reset_shape(x[0])", "tf.sparse.reset_shape(x[0], [2, 2])"], "reshape": ["tf.sparse.reshape(x[0], [2, 6])", "tf.sparse.reshape(x[0], [-1])", "tf.sparse.reshape(x[0], [5, -1])"], "retain": ["tf.sparse.retain(x[0], [True, False, True, False])"],
        "segment_sum": ["tf.sparse.segment_sum(tf.constant([[1.0, 2], [3, 4], [5, 6]]), [0, 2, 1], [0, 0, 1])", "tf.sparse.segment_sum(tf.constant([[1.0, 2], [3, 4]]), [0, 1], [0, 2], num_segments=4)"], "segment_mean": ["tf.sparse.segment_mean(tf.constant([[1.0, 2], [3, 4], [5, 6]]), [0, 2, 1], [0, 0, 1])"], "segment_sqrt_n": ["tf.sparse.segment_sqrt_n(tf.constant([[1.0, 2], [3, 4], [5, 6]]), [0, 2, 1], [0, 0, 1])"],
        "slice": ["tf.sparse.slice(x[0], [1, 0], [2, 3])", "tf.sparse.slice(x[0], [0, 0], [9, 9])"], "softmax": ["tf.sparse.softmax(x[0])"], "sparse_dense_matmul": ["tf.sparse.sparse_dense_matmul(x[0], tf.ones([4, 2]))", "tf.sparse.sparse_dense_matmul(x[0], tf.ones([3, 2]), adjoint_a=True)", "tf.sparse.sparse_dense_matmul(tf.ones([2, 3]), x[0])", "tf.sparse.sparse_dense_matmul(x[0], tf.ones([3, 2]))"], "split": ["tf.sparse.split(x[0], 2, axis=1)", "tf.sparse.split(x[0], 3, axis=0)"],
        "to_dense": ["tf.sparse.to_dense(x[0])", "tf.sparse.to_dense(x[0], 7.0)", "tf.sparse.to_dense(tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2]))", "tf.sparse.to_dense(tf.SparseTensor([[0, 0], [0, 0]], [1, 2], [2, 2]))", "tf.sparse.to_dense(tf.SparseTensor([[0, 3]], [1], [2, 2]))"], "to_indicator": ["tf.sparse.to_indicator(tf.cast(x[0], tf.int64), 6)"], "transpose": ["tf.sparse.transpose(x[0])", "tf.sparse.transpose(x[0], [1, 0])"],
    }.items():  # fmt: skip
        cases.rng(f"tf.sparse.{name}")
        for code in codes:
            cases.code(f"tf.sparse.{name}", code, s, t)
    cases.rng("tf.SparseTensor")
    for code in ("x[0] * 2.0", "x[0] / 2.0", "x[0] * tf.ones([3, 4])", "-x[0]", "x[0].shape", "x[0].dense_shape", "tf.cast(x[0], tf.int32)", "tf.abs(x[0])", "tf.reduce_sum(x[0])", "x[0].with_values([9.0, 8, 7, 6])", "tf.SparseTensor([[0]], [1, 2], [3])", "tf.SparseTensor([[0, 0]], [1], [3])", "tf.math.sin(x[0])", "x[0] + x[1]"):
        cases.code("tf.SparseTensor", code, s, t)
    _ = array
