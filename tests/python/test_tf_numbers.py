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
