"""Numbers of TensorFlow 2.21 that once differed here; `./dev tf-compare` found them and compares everything else."""
import os

import numpy as np
import pytest

import tandem as tf


def check(made, expected, dtype=None):
    made = made.numpy()
    np.testing.assert_allclose(made, expected, rtol=2e-6, atol=1e-12)
    assert dtype is None or made.dtype == dtype


def test_a_gradient_of_complex_numbers_is_complex():
    z = tf.constant([3 + 4j], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        length, product, imaginary = tf.abs(z), z * tf.constant([1 - 2j], tf.complex64), tf.math.imag(z)
    check(tape.gradient(length, z), [0.6 + 0.8j], np.complex64)
    check(tape.gradient(product, z), [1 + 2j], np.complex64)
    check(tape.gradient(product, z, output_gradients=tf.constant([1j], tf.complex64)), [-2 + 1j])
    check(tape.gradient(imaginary, z), [1j])
    assert tape.gradient(tf.constant(1.0), z) is None


def test_functions_of_complex_numbers():
    z = tf.constant([0.5 + 0.3j, -2 + 1e-3j], tf.complex128)
    for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"):
        check(getattr(tf.math, name.replace("arc", "a"))(z), getattr(np, name)(z.numpy()))
    tiny = tf.constant([1e-9 + 1e-9j], tf.complex128)
    check(tf.math.expm1(tiny), [1e-9 + 1e-9j])
    check(tf.math.log1p(tiny), [1e-9 + 1e-9j])
    check(tf.math.tanh(tf.constant([800 + 1j], tf.complex128)), [1 + 0j])
    check(tf.sqrt(tf.constant([-4 + 1e-9j], tf.complex128)), np.sqrt([-4 + 1e-9j]))
    check(tf.math.divide_no_nan(z, tf.zeros_like(z)), [0, 0])
    assert tf.math.count_nonzero(z).numpy() == 2


def test_products_and_inverses_of_complex_matrices():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3))
    check(tf.einsum("ij,jk->ik", a, b), a @ b)
    check(tf.einsum("ij,jk,kl->il", a, b, a), a @ b @ a)
    check(tf.tensordot(a, b, 1), a @ b)
    check(tf.linalg.inv(a), np.linalg.inv(a))
    check(tf.linalg.solve(a, b), np.linalg.solve(a, b))
    check(tf.linalg.solve(a, b, adjoint=True), np.linalg.solve(a.conj().T, b))


def test_bits_keep_their_shape():
    made = tf.bitcast(tf.constant([[1, 256]], tf.int32), tf.uint8)
    assert made.shape == (1, 2, 4) and made.numpy().tolist() == [[[1, 0, 0, 0], [0, 1, 0, 0]]]
    assert tf.bitcast(made, tf.int32).numpy().tolist() == [[1, 256]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="last axis must have 4"):
        tf.bitcast(tf.zeros([3], tf.uint8), tf.int32)


def test_shifts_by_too_much():
    x = tf.constant([5, -5], tf.int8)
    assert tf.bitwise.left_shift(x, tf.constant([100, -1], tf.int8)).numpy().tolist() == [-128, -5]
    assert tf.bitwise.right_shift(x, tf.constant([-3, 100], tf.int8)).numpy().tolist() == [5, -1]


def test_mirrored_edges_have_limits():
    x = tf.reshape(tf.range(6), [2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="REFLECT takes at most 1 elements of axis 0"):
        tf.pad(x, [[2, 0], [0, 0]], "REFLECT")
    assert tf.pad(x, [[2, 0], [0, 0]], "SYMMETRIC").shape == (4, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not be negative"):
        tf.pad(x, [[-1, 0], [0, 0]])


def test_reductions_of_nothing_and_of_unsigned_numbers():
    assert tf.reduce_max(tf.zeros([0, 2])).numpy() == -np.inf
    assert tf.reduce_min(tf.zeros([2, 0], tf.int8), axis=1, keepdims=True).numpy().tolist() == [[127], [127]]
    assert tf.reduce_mean(tf.constant([255, 1, 2], tf.uint8)).numpy() == 86
    assert tf.argmax([1.0, np.nan, 3.0]).numpy() == 2 and tf.argmin([np.nan, 1.0]).numpy() == 1
    check(tf.math.unsorted_segment_mean(tf.constant([1, 2]), [0, 0], 1), [1.5], np.float64)


def test_quotients():
    check(tf.math.divide_no_nan(tf.constant([1, 1]), tf.constant([2, 0])), [0.5, 0], np.float64)
    assert tf.math.floordiv(0.9, 0.1).numpy() == 9 and tf.math.floordiv(-7, 2).numpy() == -4
    assert tf.math.xlogy([0.0], [np.nan]).numpy() == 0 and np.isnan(tf.math.xlogy([1.0], [np.nan]).numpy())
    check(tf.nn.leaky_relu(tf.constant(-1.0, tf.float64)), -float(np.float32(0.2)))


def test_whole_numbers_are_not_divided_by_zero_and_logic_takes_bools():
    for f in (tf.math.floordiv, tf.math.floormod, tf.truncatemod, tf.truncatediv):
        with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
            f([1, 2], [1, 0])
    assert tf.math.floormod([-7], [2]).numpy().tolist() == [1] and np.isnan(tf.math.floormod([1.0], [0.0]).numpy()[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="logical_xor: takes bools, got a tensor of int32"):
        tf.math.logical_xor([1], [0])
    assert tf.logical_and([True, True], [True, False]).numpy().tolist() == [True, False]


def test_counts_that_do_not_fit():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"partition 2 is not in \[0, 2\)"):
        tf.dynamic_partition([1, 2, 3], [0, 2, 1], 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has 2 elements, num is 3"):
        tf.unstack([1, 2], 3)
    assert [p.numpy().tolist() for p in tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2)] == [[1, 3], [2]]


def test_types_of_what_is_made():
    assert tf.constant(np.float64(1.5)).dtype == tf.float64 and tf.constant(range(3)).dtype == tf.int32
    assert tf.constant(300, tf.int8).numpy() == 44 and tf.constant(-1, tf.uint8).numpy() == 255
    assert tf.constant([], tf.string, shape=[0, 2]).shape == (0, 2)
    assert tf.linspace(tf.constant(0, tf.int8), tf.constant(9, tf.int8), 4).dtype == tf.float32
    assert tf.linspace(0.0, 1.0, 0).shape == (0,)
    assert tf.ones_like(tf.constant([1j]), dtype="float32").dtype == tf.float32
    assert tf.saturate_cast(tf.constant([1e6, -np.inf]), tf.float16).numpy().tolist() == [65504, -65504]
    assert tf.sequence_mask([1.5, 2.5]).numpy().tolist() == [[True, True, False], [True, True, True]]


def test_images_become_floats_of_32_bits():
    x = tf.random.uniform([1, 6, 7, 1], dtype=tf.float64)
    assert tf.image.resize(x, [3, 3]).dtype == tf.float32 and tf.image.per_image_standardization(x).dtype == tf.float32
    brighter = tf.image.adjust_brightness(x, 0.2)
    assert brighter.dtype == tf.float64 and np.array_equal(brighter.numpy(), np.float32(x.numpy()) + np.float32(0.2))
    wide = tf.image.resize_with_pad(tf.ones([1, 6, 7, 1]), 9, 9).numpy()[0, :, :, 0]
    assert wide.sum() == 63 and wide[:7].all()
    nearest = tf.image.crop_and_resize(tf.reshape(tf.range(4.0), [1, 4, 1, 1]), [[0.0, 0.0, 1 / 3, 0.0]], [0], [3, 1], "nearest")
    assert nearest.numpy().reshape(-1).tolist() == [0, 1, 1]


def test_joined_in_the_order_of_the_axes():
    x = [["a", "b"], ["c", "d"]]
    assert [tf.strings.reduce_join(x, a).numpy() for a in ([0, 1], [1, 0], None)] == [b"acbd", b"abcd", b"abcd"]


def test_labels_for_all_rows_and_least_squares():
    logits = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    check(tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], logits), [np.log1p(np.exp(-1.0)), np.log1p(np.exp(-2.0))])
    a, b = np.array([[2.0], [0.0]]), np.array([[2.0], [1.0]])
    check(tf.linalg.lstsq(a, b, l2_regularizer=4.0, fast=False), [[1.0]])
    check(tf.linalg.lstsq(a, b, l2_regularizer=4.0), [[0.5]])
    assert tf.norm(tf.zeros([0, 3]), ord=np.inf, axis=0).numpy().tolist() == [-np.inf] * 3


def test_a_checkpoint_of_keras_that_tensorflow_wrote(tmp_path):
    """Variables and the slots of Adam; tests/data/tf_checkpoint is what tf.train.Checkpoint(model=, optimizer=).write left after one step."""
    keras = tf.keras
    stored = os.path.join(os.path.dirname(__file__), "..", "data", "tf_checkpoint", "keras")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.1), keras.losses.MeanSquaredError())
    x, y = np.array([[1, 2], [3, -1]], np.float32), np.array([[1], [0]], np.float32)
    model.train_on_batch(x, y)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.read(stored).assert_existing_objects_matched()
    np.testing.assert_allclose(model.predict(x, verbose=0), [[-0.023737602], [0.24482244]], rtol=1e-5)
    assert int(model.optimizer.iterations) == 1

    # What we write has the same names, types and numbers.
    made, theirs = tf.train.load_checkpoint(checkpoint.write(str(tmp_path / "ours"))), tf.train.load_checkpoint(stored)
    names = theirs.get_variable_to_shape_map()
    assert len(names) == 23 and names == made.get_variable_to_shape_map()
    for name in set(names) - {"_CHECKPOINTABLE_OBJECT_GRAPH"}:
        assert made.get_tensor(name).dtype == theirs.get_tensor(name).dtype and np.array_equal(made.get_tensor(name), theirs.get_tensor(name)), name

    assert abs(float(model.train_on_batch(x, y)) - 0.20782924) < 1e-5
    np.testing.assert_allclose(model.predict(x, verbose=0), [[0.46916288], [-1.1050838]], rtol=1e-3)

    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    with pytest.raises(AssertionError, match="not assigned a value"):
        tf.train.Checkpoint(model=other, more=keras.layers.Dense(1), v=tf.Variable(1.0)).read(stored).assert_existing_objects_matched()


# --- complex matrices, hashes, gradients: TensorFlow's numbers, or what the factors must give ------------------------------------------


def test_complex_matrices():
    random = np.random.default_rng(0)
    draw = lambda *shape: (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)  # noqa: E731
    a, b = draw(2, 3, 3), draw(2, 3, 2)
    h = a @ a.conj().swapaxes(-1, -2) + np.eye(3)
    near = lambda x, y: np.testing.assert_allclose(np.asarray(x), y, atol=2e-4)  # noqa: E731
    linalg = tf.linalg
    c = linalg.cholesky(h)
    near(c @ linalg.adjoint(c), h)
    near(linalg.cholesky_solve(c, b.astype(np.complex128)), np.linalg.solve(h, b))
    near(linalg.solve(a, b, adjoint=True), np.linalg.solve(a.conj().swapaxes(-1, -2), b))
    near(linalg.triangular_solve(a, b, lower=False), np.linalg.solve(np.triu(a), b))
    packed, order = linalg.lu(a)
    near(linalg.lu_reconstruct(packed, order), a)
    near(linalg.lu_solve(packed, order, b), np.linalg.solve(a, b))
    s, u, v = linalg.svd(a)
    assert s.dtype is tf.float32
    near(u @ linalg.diag(tf.cast(s, tf.complex64)) @ linalg.adjoint(v), a)
    q, r = linalg.qr(a)
    near(q @ r, a)
    e, v = linalg.eigh(h)
    near(v @ linalg.diag(e) @ linalg.adjoint(v), h)
    near(linalg.expm(linalg.logm(h)), h)
    near(linalg.sqrtm(a) @ linalg.sqrtm(a), a)
    near(linalg.lstsq(a, b), np.linalg.solve(a, b))
    near(tf.exp(linalg.slogdet(a).log_abs_determinant) * linalg.slogdet(a).sign, np.linalg.det(a))
    near(tf.math.cumprod(a[0, 0], reverse=True), np.cumprod(a[0, 0, ::-1])[::-1])
    assert linalg.norm(a).dtype is tf.complex64 and linalg.norm(a, 1).dtype is tf.float32
    with tf.GradientTape() as tape:
        x = tf.constant([1 + 2j, 3 - 1j], tf.complex64)
        tape.watch(x)
        y = tf.reduce_prod(x)
    near(tape.gradient(y, x), [3 + 1j, 1 - 2j])


def test_hashes_of_crossings():
    a, b = tf.sparse.from_dense([["a"], ["b"]]), tf.sparse.from_dense([["c"], ["d"]])
    assert tf.sparse.cross_hashed([a, b], num_buckets=1000).values.numpy().tolist() == [566, 454]
    numbers = [tf.constant([[1], [2]], tf.int64), tf.constant([[3], [4]], tf.int64)]
    assert tf.sparse.cross_hashed(numbers, num_buckets=1000).values.numpy().tolist() == [651, 547]
    rows = [tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([["d"], ["e"]])]
    assert tf.ragged.cross_hashed(rows, num_buckets=100).to_list() == [[82], [61, 41]]
    assert tf.fingerprint([[1, 2], [3, 4]]).numpy().tolist() == [[76, 18, 253, 133, 168, 204, 240, 10], [254, 162, 60, 240, 103, 244, 53, 255]]
    assert tf.fingerprint(["a", "b"]).numpy().tolist() == [[227, 117, 223, 182, 101, 66, 69, 179], [22, 241, 200, 94, 33, 96, 178, 163]]


def gradients(function, *xs):
    xs = [tf.constant(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs)
    return [g.numpy().tolist() for g in tape.gradient(y, xs)]


def test_gradients_of_rounding_and_of_products():
    x = [[1.0, -7.0, 3.0], [0.2, 5.0, -4.0]]
    quantize = tf.quantization
    assert gradients(lambda x: quantize.quantize_and_dequantize(x, -5.0, 4.0), x) == [[[1, 1, 1], [1, 1, 1]]]
    assert gradients(lambda x: quantize.quantize_and_dequantize_v2(x, -5.0, 4.0, range_given=True), x) == [[[1, 0, 1], [1, 0, 1]]]
    found = gradients(quantize.fake_quant_with_min_max_vars_per_channel, x, [-1.0, -2.0, -0.5], [1.0, 3.0, 6.0])
    assert found == [[[1, 0, 1], [1, 0, 0]], [0, 1, 1], [0, 1, 0]]
    groups = lambda x: tf.math.unsorted_segment_prod(x, [0, 0, 1, 1, 2, 2], 3)  # noqa: E731
    assert gradients(groups, [2.0, 3.0, 0.0, 4.0, 0.0, 0.0]) == [[3, 2, 4, 0, 0, 0]]
    loss = lambda z: tf.nn.softmax_cross_entropy_with_logits([[1.0, 1.0, 0.0]], z)  # noqa: E731 (labels that sum to 2)
    np.testing.assert_allclose(gradients(loss, [[1.0, 2.0, 0.0]])[0], [[-0.75527155, -0.33475906, 0.09003057]], rtol=1e-5)


def test_edges():
    empty = tf.zeros([0, 3])
    assert [tf.reshape(empty, s).shape.as_list() for s in ([0, -1], [-1, 0], [2, 0, -1])] == [[0, 3], [3, 0], [2, 0, 1]]
    assert tf.constant(True, tf.int32).numpy() == 1 and tf.fill([2], [1.0]).numpy().tolist() == [1, 1]
    x = tf.constant([0.0, np.inf])
    assert tf.math.special.bessel_k0(x).numpy().tolist() == [np.inf, 0] and tf.math.special.fresnel_sin(x).numpy().tolist() == [0, 0.5]
    assert tf.math.erfcinv([0.0, 2.0]).numpy().tolist() == [np.inf, -np.inf] and np.isnan(tf.math.igamma(-1.0, 1.0).numpy())
    assert tf.math.cumulative_logsumexp([-np.inf, 1.0]).numpy().tolist() == [-np.inf, 1]
    assert tf.signal.vorbis_window(0).shape == [0] and tf.signal.fft3d(tf.zeros([0, 2, 4], tf.complex64)).shape == [0, 2, 4]
    pooled = tf.nn.pool(tf.reshape(tf.range(16.0), [1, 4, 4, 1]), [2, 2], "MAX", dilations=[2, 2])
    assert pooled[0, :, :, 0].numpy().tolist() == [[10, 11], [14, 15]]
    image = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    assert tf.image.resize(image, [4, 4], "mitchellcubic").numpy()[0, 0, 0, 0] != 0  # it smooths at the image's own size, too
    assert tf.image.resize(tf.cast(image, tf.float64), [4, 4]).dtype is tf.float32
