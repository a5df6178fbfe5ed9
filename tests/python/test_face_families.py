"""tf.nn, tf.image, tf.linalg, tf.signal and the rest against formulas."""
import os

import numpy as np
import pytest

import tandem as tf


def test_convolutions_and_pools():
    x = np.random.default_rng(0).normal(size=(1, 5, 5, 2)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(3, 3, 2, 4)).astype(np.float32)
    made = tf.nn.conv2d(x, w, 1, "VALID").numpy()
    np.testing.assert_allclose(made[0, 1, 2], np.einsum("hwi,hwio->o", x[0, 1:4, 2:5], w), rtol=1e-4)
    first = tf.nn.conv2d(np.moveaxis(x, -1, 1), w, 1, "VALID", data_format="NCHW").numpy()
    np.testing.assert_allclose(np.moveaxis(first, 1, -1), made, rtol=1e-5)
    assert tf.nn.max_pool2d(x, 2, 2, "SAME").shape == (1, 3, 3, 2)
    up = tf.nn.conv2d_transpose(made, w, [1, 5, 5, 2], 1, "VALID")
    with tf.GradientTape() as tape:
        v = tf.Variable(x)
        y = tf.nn.conv2d(v, w, 1, "VALID")
    np.testing.assert_allclose(up.numpy(), tape.gradient(y, v, output_gradients=tf.constant(made)).numpy(), rtol=1e-4, atol=1e-4)


def test_losses():
    logits, labels = np.array([[1.0, 2.0, 3.0]], np.float32), np.array([2])
    p = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits).numpy(), [-np.log(p[0, 2])], rtol=1e-5
    )
    np.testing.assert_allclose(
        tf.nn.softmax_cross_entropy_with_logits([[0.0, 0.5, 0.5]], logits).numpy(), [-(np.log(p[0, 1:]) * 0.5).sum()], rtol=1e-5
    )


def test_ctc_loss_sums_all_alignments():
    import itertools

    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 1, 3)).astype(np.float32)
    p = np.exp(logits[:, 0]) / np.exp(logits[:, 0]).sum(-1, keepdims=True)

    def collapse(path):
        return [c for i, c in enumerate(path) if c != 0 and (i == 0 or c != path[i - 1])]

    total = sum(
        np.prod(
            [p[t, c] for t, c in enumerate(path)]
        ) for path in itertools.product(range(3), repeat=4) if collapse(path) == [1, 2]
    )
    loss = tf.nn.ctc_loss(np.array([[1, 2]]), logits, [2], [4], blank_index=0)
    np.testing.assert_allclose(loss.numpy(), [-np.log(total)], rtol=1e-5)


def test_linalg():
    a = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    np.testing.assert_allclose(tf.linalg.expm(np.zeros((2, 2), np.float32)).numpy(), np.eye(2), atol=1e-6)
    w, v = np.linalg.eigh(a)
    np.testing.assert_allclose(tf.linalg.expm(a).numpy(), v @ np.diag(np.exp(w)) @ v.T, rtol=1e-4)
    root = tf.linalg.sqrtm(a).numpy()
    np.testing.assert_allclose(root @ root, a, rtol=1e-5)
    s, u, vv = tf.linalg.svd(a)
    np.testing.assert_allclose(u.numpy() @ np.diag(s.numpy()) @ vv.numpy().T, a, rtol=1e-5)
    np.testing.assert_allclose(tf.linalg.det(a).numpy(), 11, rtol=1e-6)
    assert tf.linalg.diag([1, 2], k=1).numpy().tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert tf.linalg.band_part(tf.ones([3, 3]), 0, 1).numpy().sum() == 5
    operator = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    np.testing.assert_allclose(operator.solve([[2.0], [2.0]]).numpy(), [[2], [1]])


def test_signal():
    x = np.random.default_rng(0).normal(size=256).astype(np.float32)
    np.testing.assert_allclose(tf.signal.rfft(x).numpy(), np.fft.rfft(x), atol=1e-3)
    frames = tf.signal.stft(x, 64, 16)
    assert frames.shape == (13, 33)
    back = tf.signal.inverse_stft(frames, 64, 16, window_fn=tf.signal.inverse_stft_window_fn(16)).numpy()
    np.testing.assert_allclose(back[64:192], x[64:192], atol=1e-4)
    np.testing.assert_allclose(tf.signal.idct(tf.signal.dct(x, norm="ortho"), norm="ortho").numpy(), x, atol=1e-4)


def test_images():
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    np.testing.assert_allclose(tf.image.resize(x, [2, 2]).numpy()[0, :, :, 0], [[2.5, 4.5], [10.5, 12.5]])
    assert tf.image.resize(x, [8, 8], method="nearest").numpy()[0, 7, 7, 0] == 15
    rgb = np.random.default_rng(0).uniform(size=(3, 3, 3)).astype(np.float32)
    np.testing.assert_allclose(tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(rgb)).numpy(), rgb, atol=1e-5)
    np.testing.assert_allclose(tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(rgb)).numpy(), rgb, atol=1e-5)
    assert tf.image.ssim(x, x, 15.0, filter_size=3).numpy()[0] == pytest.approx(1.0)
    boxes, scores = [[0.0, 0, 1, 1], [0, 0, 0.9, 1], [0, 2, 1, 3]], [0.9, 0.8, 0.7]
    assert tf.image.non_max_suppression(boxes, scores, 5, 0.5).numpy().tolist() == [0, 2]


def test_special_functions():
    np.testing.assert_allclose(tf.math.igamma(2.0, 3.0).numpy(), 1 - np.exp(-3) * 4, rtol=1e-5)
    np.testing.assert_allclose(tf.math.betainc(2.0, 3.0, 0.4).numpy(), 0.5248, rtol=1e-4)
    np.testing.assert_allclose(tf.math.zeta(2.0, 1.0).numpy(), np.pi**2 / 6, rtol=1e-5)
    np.testing.assert_allclose(tf.math.special.bessel_j0(1.0).numpy(), 0.76519769, rtol=1e-5)
    np.testing.assert_allclose(tf.math.cumulative_logsumexp([0.0, 0.0, 0.0]).numpy(), np.log([1, 2, 3]), atol=1e-6)


def test_segments_and_scatter():
    assert tf.math.segment_sum([1, 2, 3, 4], [0, 0, 2, 2]).numpy().tolist() == [3, 0, 7]
    assert tf.math.unsorted_segment_max([1, 5, 3], [1, 1, -1], 2).numpy().tolist()[1] == 5
    assert tf.tensor_scatter_nd_update([1, 2, 3], [[1]], [9]).numpy().tolist() == [1, 9, 3]
    assert tf.gather([[1, 2], [3, 4]], [[1], [0]], batch_dims=1, axis=1).numpy().tolist() == [[2], [3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] = 7"):
        tf.gather([1, 2], [7])


def test_checkpoints(tmp_path):
    class M(tf.Module):
        def __init__(self, x):
            super().__init__()
            self.w, self.parts = tf.Variable([x, x]), [tf.Variable(x), {"k": tf.Variable(int(x))}]

    m = M(3.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=m), tmp_path, max_to_keep=2)
    for _ in range(3):
        manager.save()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-2", "ckpt-3"] and len(list(tmp_path.glob("*.index"))) == 2
    other = M(0.0)
    tf.train.Checkpoint(model=other).restore(tf.train.latest_checkpoint(tmp_path)).assert_consumed()
    assert other.w.numpy().tolist() == [3, 3] and other.parts[1]["k"].numpy() == 3
    assert ("model/w/.ATTRIBUTES/VARIABLE_VALUE", [2]) in tf.train.list_variables(tmp_path)
    data = next(tmp_path.glob("ckpt-3.data*"))
    raw = bytearray(data.read_bytes())
    at = raw.find(np.float32([3, 3]).tobytes())
    raw[at] ^= 1
    data.write_bytes(raw)
    with pytest.raises(tf.errors.DataLossError):
        tf.train.load_variable(tmp_path, "model/w/.ATTRIBUTES/VARIABLE_VALUE")


def test_crc32c():
    from tandem._crc32c import crc32c

    assert crc32c(b"123456789") == 0xE3069283
    data = np.random.default_rng(0).integers(0, 256, 200003).astype(np.uint8).tobytes()
    assert crc32c(data) == crc32c(data[70001:], crc32c(data[:70001]))


def test_summaries(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=4):
        tf.summary.scalar("loss", 0.5)
        tf.summary.histogram("h", [1.0, 2.0])
        tf.summary.text("t", "words")
        tf.summary.image("i", np.zeros([1, 2, 2, 3], np.float32))
    writer.close()
    found = EventAccumulator(str(tmp_path)).Reload()
    assert set(found.Tags()["tensors"]) == {"loss", "h", "t", "i"} and found.Tensors("loss")[0].step == 4


def test_debugging_and_queues():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x == y"):
        tf.debugging.assert_equal([1, 2], [1, 3])
    tf.debugging.assert_shapes([(tf.ones([2, 3]), ("N", 3)), (tf.ones([2]), ("N",))])
    q = tf.queue.FIFOQueue(10, tf.int32)
    q.enqueue_many(tf.constant([1, 2, 3]))
    assert q.dequeue().numpy() == 1 and q.dequeue_many(2).numpy().tolist() == [2, 3]


def test_shapes_of_ragged_tensors():
    rows = tf.ragged.constant([[1], [2, 3, 4], [], [5, 6]])
    shape = tf.shape(rows)
    assert str(shape) == "<DynamicRaggedShape lengths=[4, (1, 3, 0, 2)] num_row_partitions=1>"
    assert str(shape[:1]) == "<DynamicRaggedShape lengths=[4] num_row_partitions=0>" and shape[0].numpy() == 4
    with pytest.raises(ValueError, match="Index 1 is not uniform"):
        shape[1]
    letters = tf.reshape(tf.constant([["a", "b"], ["c", "d"], ["e", "f"]]), shape)
    assert letters.to_list() == [[b"a"], [b"b", b"c", b"d"], [], [b"e", b"f"]]
    assert tf.zeros(shape).to_list() == [[0.0], [0.0] * 3, [], [0.0] * 2] and tf.ones(shape, tf.int32).dtype == tf.int32
    assert tf.fill(shape, 9).to_list() == [[9], [9] * 3, [], [9] * 2]
    with pytest.raises(ValueError, match="5 elements do not fit"):
        tf.reshape(tf.range(5), shape)
    made = tf.experimental.DynamicRaggedShape([tf.experimental.RowPartition.from_row_lengths([5, 3, 2])], [10, 8])
    assert str(made) == "<DynamicRaggedShape lengths=[3, (5, 3, 2), 8] num_row_partitions=1>"
    assert str(tf.experimental.DynamicRaggedShape.from_lengths([4, (2, 1, 0, 8), 12])) == "<DynamicRaggedShape lengths=[4, (2, 1, 0, 8), 12] num_row_partitions=1>"
    with pytest.raises(ValueError, match="10 values, the inner shape 9 rows"):
        tf.experimental.DynamicRaggedShape([tf.experimental.RowPartition.from_row_lengths([5, 3, 2])], [9])


def test_ragged_rows_stay_ragged():
    assert tf.map_fn(tf.math.square, tf.ragged.constant([[3, 1], [], [5]])).to_list() == [[9, 1], [], [25]]
    words = tf.ragged.constant([["#", "Who", "is"], ["#", "Pause"]])
    assert tf.strings.join([words[:, :-1], words[:, 1:]], separator="+").to_list() == [[b"#+Who", b"Who+is"], [b"#+Pause"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="parted differently"):
        tf.strings.join([words, words[:, 1:]])


def test_a_tensor_beside_ragged_rows_must_fit_every_row():
    rows = tf.ragged.constant([[1, 2], [3, 4, 5, 6], [7]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="dimension 1: a row has 2 values, the tensor 4"):
        rows + tf.ones([3, 4], tf.int32)
    assert (rows + tf.constant([[10], [20], [30]])).to_list() == [[11, 12], [23, 24, 25, 26], [37]]
    assert (tf.constant([[10, 20]]) + tf.ragged.constant([[1, 2], [3, 4]])).to_list() == [[11, 22], [13, 24]]
    assert tf.shape(rows)[0].dtype == tf.int32


def test_a_generator_gives_the_same_numbers_in_a_function():
    eager, traced = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    f = tf.function(lambda: traced.normal([3]))
    for _ in range(2):
        np.testing.assert_array_equal(eager.normal([3]), f())
    np.testing.assert_array_equal(eager.state, traced.state)
