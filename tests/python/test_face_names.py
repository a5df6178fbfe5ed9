"""Functions of tf that few programs use: each once, with TensorFlow's numbers where it has any."""

import sqlite3

import numpy as np
import pytest

import tandem as tf

extra = tf.data.experimental


def values(x):
    return x.numpy().tolist()


def test_ops_of_graphs():
    found = tf.ragged_fill_empty_rows([0, 0, 2, 2, 6], [5, 6, 7, 8, 9], 7, -1)
    assert [values(x) for x in found] == [
        [0, 0, 1, 2, 2, 3, 4, 5, 6],
        [5, 6, -1, 7, 8, -1, -1, -1, 9],
        [False, True, False, True, True, True, False],
        [0, 1, 3, 4, 8],
    ]
    back = tf.ragged_fill_empty_rows_grad(found.reverse_index_map, tf.range(9.0))
    assert values(back.d_values) == [0, 1, 3, 4, 8] and values(back.d_default_value) == 20
    ones = lambda *shape: tf.ones(shape)  # noqa: E731
    assert tf.conv(ones(1, 4, 4, 1), ones(2, 2, 1, 1), [1, 1, 1, 1], "VALID").shape == [1, 3, 3, 1]
    steps = ([1, 1, 1, 1], "VALID")
    assert values(tf.conv2d_backprop_filter_v2(ones(1, 4, 4, 1), ones(2, 2, 1, 1), ones(1, 3, 3, 1), *steps))[0][0] == [[9]]
    assert values(tf.conv2d_backprop_input_v2(ones(1, 4, 4, 1), ones(2, 2, 1, 1), ones(1, 3, 3, 1), *steps))[0][1] == [[2], [4], [4], [2]]
    assert values(tf.nn.depthwise_conv2d_backprop_input([1, 4, 4, 1], ones(2, 2, 1, 1), ones(1, 3, 3, 1), *steps))[0][0] == [[1], [2], [2], [1]]
    assert values(tf.approx_top_k(tf.constant([1.0, 3.0, 2.0]), 2)[1]) == [1, 2]
    assert values(tf.fftnd(tf.ones([2, 4], tf.complex64), [2, 4], [0, 1]))[0][0] == 8
    twice = tf.nondifferentiable_batch_function(1, 8, 0)(lambda x: x * 2)
    assert values(twice(tf.constant([1, 2]))) == [2, 4] and values(tf.xla.experimental.compile(lambda x: x + 1, [tf.constant(1)])[0]) == 2


def test_circulant_operators():
    linalg = tf.linalg
    operator = linalg.LinearOperatorCirculant([1.0, 2.0, 3.0])
    kernel = np.fft.ifft([1, 2, 3])
    dense = np.stack([np.roll(kernel, i) for i in range(3)], 1)
    np.testing.assert_allclose(operator.to_dense(), dense, atol=1e-6)
    x = np.array([1, 2j, -1], np.complex64)
    np.testing.assert_allclose(operator.matvec(x), dense @ x, atol=1e-5)
    np.testing.assert_allclose(operator.solvevec(operator.matvec(x)), x, atol=1e-5)
    np.testing.assert_allclose(operator.matvec(x, adjoint=True), dense.conj().T @ x, atol=1e-5)
    assert operator.determinant().numpy() == 6 and operator.trace().numpy() == 6 and operator.shape == [3, 3]
    flat = linalg.LinearOperatorCirculant2D(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), input_output_dtype=tf.float32)
    assert values(flat.to_dense())[0] == [2.5, -0.5, -1, 0] and flat.dtype is tf.float32
    matrix = linalg.LinearOperatorFullMatrix([[4.0, 1.0], [1.0, 3.0]], is_self_adjoint=True, is_positive_definite=True)
    solved = linalg.experimental.conjugate_gradient(matrix, [1.0, 2.0])
    np.testing.assert_allclose(solved.x, [1 / 11, 7 / 11], rtol=1e-5)


def test_sparse_tensors_as_strings():
    matrix = tf.sparse.from_dense([[1, 0, 2], [0, 0, 3]])
    words = tf.io.serialize_many_sparse(matrix)
    assert words.shape == [2, 3] and values(tf.sparse.to_dense(tf.io.deserialize_many_sparse(words, tf.int32))) == [[1, 0, 2], [0, 0, 3]]
    assert values(tf.io.parse_tensor(tf.io.serialize_sparse(matrix)[1], tf.int32)) == [1, 2, 3]


def test_messages_of_a_type():
    from google.protobuf import timestamp_pb2

    messages = [timestamp_pb2.Timestamp(seconds=5, nanos=7).SerializeToString(), timestamp_pb2.Timestamp(seconds=9).SerializeToString()]
    kind, fields = "google.protobuf.Timestamp", ["seconds", "nanos"]
    sizes, found = tf.io.decode_proto(messages, kind, fields, [tf.int64, tf.int32])
    assert [values(x) for x in found] == [[[5], [9]], [[7], [0]]]
    assert values(tf.io.encode_proto(sizes, found, fields, kind)) == messages
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown field"):
        tf.io.decode_proto(messages, kind, ["hours"], [tf.int64])
    with pytest.raises(tf.errors.DataLossError):
        tf.io.decode_proto([b"\xff\xff"], kind, fields, [tf.int64, tf.int32])


def test_sequence_examples():
    def example(number, steps):
        feature = lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))  # noqa: E731
        lists = {"x": tf.train.FeatureList(feature=[feature(s) for s in steps])}
        context = {"id": tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))}
        return tf.train.SequenceExample(
            context=tf.train.Features(feature=context), feature_lists=tf.train.FeatureLists(feature_list=lists)
        ).SerializeToString()

    both = [example(7, [[0.0, 1.0], [2.0, 3.0]]), example(8, [[9.0, 9.0]])]
    context, sequences, lengths = tf.io.parse_sequence_example(
        both, {"id": tf.io.FixedLenFeature([], tf.int64)}, {"x": tf.io.FixedLenSequenceFeature([2], tf.float32)}
    )
    assert values(context["id"]) == [7, 8] and values(lengths["x"]) == [2, 1]
    assert values(sequences["x"]) == [[[0, 1], [2, 3]], [[9, 9], [0, 0]]]


def test_datasets(tmp_path):
    numbers = tf.data.Dataset.range(6)
    assert extra.at(numbers, 3).numpy() == 3
    with pytest.raises(tf.errors.OutOfRangeError):
        extra.at(numbers, 6)
    sums = extra.Reducer(lambda key: tf.constant(0, tf.int64), lambda state, x: state + x, lambda state: state)
    assert [int(x) for x in numbers.apply(extra.group_by_reducer(lambda x: x % 2, sums))] == [6, 9]
    padded = tf.data.Dataset.from_tensor_slices({"a": [1, 2]}).apply(extra.pad_to_cardinality(3))
    assert [(int(e["a"]), bool(e["valid"])) for e in padded] == [(1, True), (2, True), (0, False)]
    seen = []
    extra.enable_debug_mode()
    try:
        assert [int(x) for x in numbers.map(lambda x: seen.append(int(x)) or x + 1)] == [1, 2, 3, 4, 5, 6] and seen == [0, 1, 2, 3, 4, 5]
    finally:
        tf.data._functions.set_debug_mode(False)
    path = str(tmp_path / "rows.db")
    with sqlite3.connect(path) as connection:
        connection.execute("create table t(a int, b text)")
        connection.executemany("insert into t values(?,?)", [(1, "x"), (2, "y")])
    rows = extra.SqlDataset("sqlite", path, "select a, b from t order by a", (tf.int32, tf.string))
    assert [(int(a), b.numpy()) for a, b in rows] == [(1, b"x"), (2, b"y")]


def test_jpeg_quality():
    ramp = np.linspace(0, 255, 16)
    image = np.stack([np.add.outer(ramp, ramp) / 2] * 3, -1).astype(np.uint8)
    coarse, fine = (np.abs(tf.image.adjust_jpeg_quality(image, q).numpy().astype(int) - image).mean() for q in (10, 95))
    assert coarse > 2 * fine
    assert tf.image.stateless_random_jpeg_quality(image, 10, 90, (1, 2)).dtype is tf.uint8
    with pytest.raises(ValueError, match="less than"):
        tf.image.random_jpeg_quality(image, 90, 10)


def test_clusters():
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:2"], "ps": {3: "c:3"}})
    assert spec.num_tasks("worker") == 2 and spec.task_address("ps", 3) == "c:3" and spec.job_tasks("ps") == [None, None, None, "c:3"]
    assert tf.train.ClusterSpec(spec.as_cluster_def()) == spec and spec.as_dict() == {"worker": ["a:1", "b:2"], "ps": {3: "c:3"}}
    with pytest.raises(ValueError, match="No such job"):
        spec.num_tasks("chief")


def test_floats_of_8_bits():
    import ml_dtypes

    random = np.random.default_rng(0)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        kind = getattr(ml_dtypes, name)
        exact = np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
        middles = (exact[:-1] + exact[1:]) / 2
        x = np.concatenate([exact, middles, *(random.normal(size=500).astype("f") * s for s in (1e-7, 1e-3, 1, 1e3, 1e5))])
        made = tf.cast(x, name)
        assert made.dtype.name == name
        np.testing.assert_array_equal(tf.cast(made, tf.float32), x.astype(kind).astype(np.float32))
    with tf.GradientTape() as tape:
        x = tf.constant([0.1, 1.3])
        tape.watch(x)
        y = tf.cast(tf.cast(x, tf.float8_e4m3fn), tf.float32) ** 2
    assert values(tape.gradient(y, x)) == [0.203125, 2.5]
    with pytest.raises(TypeError, match="Float8Tensor"):
        tf.add(tf.cast(1.0, tf.float8_e5m2), 1.0)


def test_feature_columns_say_how_examples_are_parsed():
    columns = tf.feature_column
    age = columns.numeric_column("age", default_value=1)
    buckets = columns.bucketized_column(age, [18, 30])
    city = columns.categorical_column_with_vocabulary_list("city", ["a", "b"], num_oov_buckets=2)
    crossed = columns.crossed_column([buckets, "street"], 100)
    parts = [age, columns.indicator_column(city), columns.embedding_column(crossed, 4), columns.weighted_categorical_column(city, "share")]
    assert [c.name for c in parts] == ["age", "city_indicator", "age_bucketized_X_street_embedding", "city_weighted_by_share"]
    assert city.num_buckets == 4 and buckets.num_buckets == 3
    spec = columns.make_parse_example_spec(parts)
    assert spec == {
        "age": tf.io.FixedLenFeature((1,), tf.float32, (1.0,)),
        "city": tf.io.VarLenFeature(tf.string),
        "street": tf.io.VarLenFeature(tf.string),
        "share": tf.io.VarLenFeature(tf.float32),
    }
    city_of = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"b"]))
    example = tf.train.Example(features=tf.train.Features(feature={"city": city_of})).SerializeToString()
    parsed = tf.io.parse_example([example], spec)
    assert values(parsed["age"]) == [[1]] and values(parsed["city"].values) == [b"b"]
    with pytest.raises(ValueError, match="sorted"):
        columns.bucketized_column(age, [30, 18])
    with pytest.raises(ValueError, match="different parse_spec"):
        columns.make_parse_example_spec([age, columns.numeric_column("age", 2)])
