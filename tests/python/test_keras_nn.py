"""keras.ops.nn and keras.ops.image, and the recurrent loops: values against NumPy, batches of any size, masks."""
import itertools
import os

os.environ["KERAS_BACKEND"] = "tandem"

import keras_tandem  # noqa: F401  the hook comes before keras
import keras
import numpy as np
import pytest
from keras import ops as k
from keras.src import activations, backend

from tandem import _core

rng = np.random.default_rng(3)
BOTH_TWICE = list(itertools.product([False, True], repeat=2))


def floats(*shape):
    return rng.standard_normal(shape).astype("float32")


def compiled(f, *arrays):
    """f over tensors, compiled once for a first extent that is a symbol, and called with these."""
    batch = _core.symbol("b")
    specs = [(a.dtype.name, [batch, *a.shape[1:]]) for a in arrays]
    return np.asarray(_core.Function(lambda xs: [f(*xs)], "f", specs)(list(arrays))[0].numpy())


def check(f, expected, *arrays, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(f(*arrays)), expected, rtol=rtol, atol=1e-5)
    np.testing.assert_allclose(compiled(f, *arrays), expected, rtol=rtol, atol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# --- activations and losses -------------------------------------------------------------------------------------------------------------

X = floats(5, 4, 6)
ACTIVATIONS = {
    "relu": (k.relu, np.maximum(X, 0)),
    "silu": (k.silu, X * sigmoid(X)),
    "glu": (k.glu, X[..., :3] * sigmoid(X[..., 3:])),
    "softmax": (lambda x: k.softmax(x, axis=1), softmax(X, 1)),
    "log_softmax": (k.log_softmax, np.log(softmax(X))),
    "hard_shrink": (lambda x: k.hard_shrink(x, threshold=0.3), np.where(np.abs(X) > 0.3, X, 0)),
    "squareplus": (k.squareplus, (X + np.sqrt(X * X + 4)) / 2),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    check(*ACTIVATIONS[name], X)


def test_softmax_without_axis_is_over_all():
    np.testing.assert_allclose(np.asarray(backend.nn.softmax(X, axis=None)), softmax(X.reshape(-1)).reshape(X.shape), rtol=1e-5)


def test_crossentropies():
    p, y = softmax(X), rng.integers(0, 6, (5, 4)).astype("int32")
    hot = np.eye(6, dtype="float32")[y]
    expected = -np.log((p * hot).sum(-1))
    check(k.sparse_categorical_crossentropy, expected, y, p)
    check(lambda t, o: k.sparse_categorical_crossentropy(t, o, from_logits=True), expected, y, X)
    check(k.categorical_crossentropy, expected, hot, p)
    q = sigmoid(X)
    check(k.binary_crossentropy, -(hot * np.log(q) + (1 - hot) * np.log(1 - q)), hot, q)
    with pytest.raises(ValueError, match="must have the same shape"):
        k.categorical_crossentropy(hot[:, :3], p)


def test_crossentropy_keeps_keras_epsilon():
    before = keras.config.epsilon()
    keras.config.set_epsilon(1e-2)
    try:
        zeros, ones = np.zeros((1, 3), "float32"), np.ones((1, 3), "float32")
        np.testing.assert_allclose(np.asarray(k.binary_crossentropy(ones, zeros)), -np.log(1e-2), rtol=1e-5)
    finally:
        keras.config.set_epsilon(before)


def test_one_hot_of_no_class_is_zero():
    np.testing.assert_array_equal(np.asarray(k.one_hot(np.array([1, -1, 3]), 3)), [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(np.asarray(k.multi_hot(np.array([[0, 2], [1, 1]]), 3)), [[1, 0, 1], [0, 1, 0]])


# --- CTC: against all paths -------------------------------------------------------------------------------------------------------------


def collapsed(path, blank=0):
    return tuple(c for i, c in enumerate(path) if c != blank and (i == 0 or path[i - 1] != c))


def label_probabilities(logits):
    """Of one example: the probability of each sequence of labels, by looking at every path."""
    p, found = softmax(logits.astype("float64")), {}
    for path in itertools.product(range(p.shape[1]), repeat=p.shape[0]):
        labels = collapsed(path)
        found[labels] = found.get(labels, 0) + np.prod([p[t, c] for t, c in enumerate(path)])
    return found


def test_ctc_loss():
    logits, labels = floats(3, 5, 4), np.array([[1, 2, 0], [3, 3, 0], [2, 0, 0]])
    lengths, steps = np.array([2, 2, 1]), np.array([5, 4, 3])
    expected = [-np.log(label_probabilities(logits[i, : steps[i]])[tuple(labels[i, : lengths[i]])]) for i in range(3)]
    np.testing.assert_allclose(np.asarray(k.ctc_loss(labels, logits, lengths, steps)), expected, rtol=1e-5)


def test_ctc_beam_search_finds_the_likeliest():
    logits, steps = 2 * floats(3, 5, 4), np.array([5, 4, 2])
    paths, scores = k.ctc_decode(logits, steps, strategy="beam_search", beam_width=60, top_paths=3)
    for i in range(3):
        best = sorted(label_probabilities(logits[i, : steps[i]]).items(), key=lambda item: -item[1])[:3]
        for rank, (labels, probability) in enumerate(best):
            assert tuple(c for c in np.asarray(paths)[rank, i] if c >= 0) == labels
            np.testing.assert_allclose(np.asarray(scores)[i, rank], np.log(probability), rtol=1e-4)


def test_ctc_greedy():
    logits = np.eye(3, dtype="float32")[[[1, 1, 0, 1, 2], [2, 2, 2, 2, 0]]]
    (labels,), scores = k.ctc_decode(logits, np.array([5, 3]))
    np.testing.assert_array_equal(np.asarray(labels), [[1, 1, 2, -1, -1], [2, -1, -1, -1, -1]])
    np.testing.assert_array_equal(np.asarray(scores), [[-5], [-3]])


# --- windows ----------------------------------------------------------------------------------------------------------------------------


def convolved(x, w, stride=1):
    """Channels last, no padding."""
    kh, kw = w.shape[:2]
    h, v = (x.shape[1] - kh) // stride + 1, (x.shape[2] - kw) // stride + 1
    y = np.zeros((x.shape[0], h, v, w.shape[3]))
    for i, j in itertools.product(range(h), range(v)):
        y[:, i, j] = np.tensordot(x[:, i * stride : i * stride + kh, j * stride : j * stride + kw], w, 3)
    return y


def test_conv_in_both_formats():
    x, w = floats(2, 7, 6, 3), floats(3, 2, 3, 4)
    expected = convolved(x, w, 2)
    check(lambda x: k.conv(x, w, strides=2, data_format="channels_last"), expected, x)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    check(lambda x: k.conv(x, w, strides=2, data_format="channels_first"), expected.transpose(0, 3, 1, 2), first)
    with pytest.raises(ValueError, match="does not fit"):
        k.conv(x[:, :2], w)
    with pytest.raises(ValueError, match="divisible"):
        k.conv(x, floats(3, 2, 2, 4))


def test_pooling():
    x = floats(2, 6, 4, 3)
    blocks = x.reshape(2, 3, 2, 2, 2, 3)
    check(lambda x: k.max_pool(x, 2), blocks.max((2, 4)), x)
    check(lambda x: k.average_pool(x, 2), blocks.mean((2, 4)), x)


@pytest.mark.parametrize("reduce", ["average", "max"])
def test_adaptive_pooling(reduce):
    x, f = floats(2, 7, 5, 3), {"average": np.mean, "max": np.max}[reduce]
    op = {"average": k.adaptive_average_pool, "max": k.adaptive_max_pool}[reduce]
    rows = [(i * 7 // 3, -(-(i + 1) * 7 // 3)) for i in range(3)]
    columns = [(i * 5 // 2, -(-(i + 1) * 5 // 2)) for i in range(2)]
    expected = np.stack([np.stack([f(x[:, a:b, c:d], axis=(1, 2)) for c, d in columns], 1) for a, b in rows], 1)
    check(lambda x: op(x, (3, 2)), expected, x)


def test_fold_sums_what_unfold_took():
    x = floats(2, 3, 6, 5)
    how = dict(kernel_size=(3, 2), padding=1, stride=(2, 1))
    columns = k.unfold(x, **how)
    assert columns.shape == (2, 18, 18)
    assert np.asarray(columns)[0, 0, 6 + 1] == x[0, 0, 1, 0]  # the second row of patches, the first tap of the kernel
    counts = np.asarray(k.fold(k.unfold(np.ones_like(x), **how), (6, 5), **how))
    np.testing.assert_allclose(np.asarray(k.fold(columns, (6, 5), **how)), x * counts, rtol=1e-5)


def test_depth_and_space():
    x = floats(2, 4, 6, 3)
    y = k.space_to_depth(x, 2)
    assert y.shape == (2, 2, 3, 12)
    np.testing.assert_array_equal(np.asarray(k.depth_to_space(y, 2)), x)


# --- normalization and attention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("center,scale", BOTH_TWICE)
def test_batch_normalization(center, scale):
    x, m, v = floats(4, 5), floats(5), np.abs(floats(5))
    g, b = floats(5), floats(5)
    expected = (x - m) / np.sqrt(v + 1e-3) * (g if scale else 1) + (b if center else 0)
    check(lambda x: k.batch_normalization(x, m, v, -1, offset=b if center else None, scale=g if scale else None), expected, x)


@pytest.mark.parametrize("center,scale", BOTH_TWICE)
def test_layer_normalization_is_the_engines(center, scale):
    x, g, b = floats(4, 3, 5), floats(3, 5), floats(3, 5)
    c = x - x.mean((1, 2), keepdims=True)
    expected = c / np.sqrt((c * c).mean((1, 2), keepdims=True) + 1e-5) * (g if scale else 1) + (b if center else 0)
    f = lambda x: k.layer_normalization(x, g if scale else None, b if center else None, axis=(1, 2), epsilon=1e-5)  # noqa: E731
    check(f, expected, x)
    graph = _core.Function(lambda xs: [f(xs[0])], "f")
    graph([x])
    assert "layer_normalization" in graph.graph()


def test_moments_of_halves_do_not_overflow():
    mean, variance = k.moments(np.full((4, 4), 300, "float16") * np.array([1, -1, 1, -1], "float16"), axes=[0, 1])
    assert backend.standardize_dtype(variance.dtype) == "float16"
    np.testing.assert_allclose([float(mean), float(variance)], [0, 65504], atol=1)


@pytest.mark.parametrize("causal,masked,heads", list(itertools.product([False, True], [False, True], [4, 2])))
def test_attention(causal, masked, heads):
    q, key, v = floats(2, 3, 4, 8), floats(2, 5, heads, 8), floats(2, 5, heads, 8)
    mask = rng.random((2, 1, 3, 5)) > 0.3 if masked else None
    if masked:
        mask[..., 0] = True
    wide_k, wide_v = (np.repeat(x, 4 // heads, axis=2) for x in (key, v))
    scores = np.einsum("btnh,bsnh->bnts", q, wide_k) / np.sqrt(8)
    seen = np.ones((2, 1, 3, 5), bool) if mask is None else mask
    if causal:
        seen = seen & np.tril(np.ones((3, 5), bool))
    expected = np.einsum("bnts,bsnh->btnh", softmax(np.where(seen, scores, -1e30)), wide_v)
    y = k.dot_product_attention(q, key, v, mask=mask, is_causal=causal)
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-4, atol=1e-5)


# --- recurrent loops --------------------------------------------------------------------------------------------------------------------


def lstm_steps(x, layer, mask=None):
    """Outputs [batch, time, units] and the last states, step by step."""
    w, r, b = layer.get_weights()
    h = c = np.zeros((x.shape[0], r.shape[0]), "float32")
    outputs = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ w + h @ r + b, 4, axis=-1)
        new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        new_h = sigmoid(o) * np.tanh(new_c)
        seen = np.ones((len(x), 1), bool) if mask is None else mask[:, t : t + 1]
        h, c = np.where(seen, new_h, h), np.where(seen, new_c, c)
        outputs.append(h)
    return np.stack(outputs, 1), h, c


LX = floats(3, 6, 4)
MASK = np.array([[1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]], bool)


@pytest.mark.parametrize("backwards,masked,unroll", list(itertools.product([False, True], repeat=3)))
def test_lstm(backwards, masked, unroll):
    how = dict(go_backwards=backwards, unroll=unroll, bias_initializer="normal")
    layer = keras.layers.LSTM(5, return_sequences=True, return_state=True, **how)
    outputs = layer(LX, mask=MASK if masked else None)
    turn = slice(None, None, -1) if backwards else slice(None)
    expected = lstm_steps(LX[:, turn], layer, MASK[:, turn] if masked else None)
    for y, e in zip(outputs, expected):
        np.testing.assert_allclose(np.asarray(y), e, rtol=1e-4, atol=1e-5)


def test_lstm_uses_the_engines():
    layer = keras.layers.LSTM(5)
    layer(LX)
    function = _core.Function(lambda xs: [layer(xs[0])], "f")
    function([LX])
    assert "lstm" in function.graph() and "scan" not in function.graph()


@pytest.mark.parametrize("reset_after", [True, False])
def test_gru_row_is_the_cell(reset_after):
    layer = keras.layers.GRU(5, return_sequences=True, reset_after=reset_after, bias_initializer="normal")
    layer.build(LX.shape)
    whole = np.asarray(layer(LX))
    plain = keras.layers.RNN(layer.cell, return_sequences=True)
    np.testing.assert_allclose(whole, np.asarray(plain(LX)), rtol=1e-4, atol=1e-5)


def test_masked_outputs_can_be_zero():
    layer = keras.layers.LSTM(5, return_sequences=True, zero_output_for_mask=True)
    y = np.asarray(layer(LX, mask=MASK))
    assert (y[~MASK] == 0).all() and (y[MASK] != 0).any(-1).all()


def test_rnn_of_nested_states_and_any_batch():
    cells = [keras.layers.LSTMCell(4), keras.layers.GRUCell(5)]
    inputs = keras.Input((6, 4))
    outputs = keras.layers.RNN(cells, return_sequences=True)(inputs)
    assert outputs.shape == (None, 6, 5)
    model = keras.Model(inputs, outputs)
    np.testing.assert_allclose(model.predict(LX, verbose=0)[:1], np.asarray(model(LX[:1])), rtol=1e-4, atol=1e-5)


def test_bidirectional_merges_in_time_order():
    layer = keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True))
    y = np.asarray(layer(LX))
    back = lstm_steps(LX[:, ::-1], layer.backward_layer)[0][:, ::-1]
    np.testing.assert_allclose(y, np.concatenate([lstm_steps(LX, layer.forward_layer)[0], back], -1), rtol=1e-4, atol=1e-5)


def test_gradients_through_a_masked_loop():
    layer = keras.layers.SimpleRNN(3)
    layer.build(LX.shape)
    x = k.convert_to_tensor(LX)
    tape = _core.Tape()
    tape.watch(x)
    (g,) = tape.gradients([k.sum(layer(x, mask=MASK))], [x])
    g = np.asarray(g)
    assert (g[~MASK] == 0).all() and (g[MASK] != 0).any(-1).all()


def test_other_activations_fall_back():
    assert not backend.cudnn_ok(activations.relu, activations.sigmoid, False)
    layer = keras.layers.LSTM(5, activation="relu")
    assert np.isfinite(np.asarray(layer(LX))).all()


# --- images -----------------------------------------------------------------------------------------------------------------------------


def test_resize():
    x = floats(2, 3, 4, 2)
    np.testing.assert_array_equal(np.asarray(k.image.resize(x, (6, 8), "nearest")), x.repeat(2, 1).repeat(2, 2))
    half = k.image.resize(x[:, :, :, :1], (3, 2), "bilinear", antialias=False)
    np.testing.assert_allclose(np.asarray(half)[..., 0], (x[:, :, ::2, 0] + x[:, :, 1::2, 0]) / 2, rtol=1e-5, atol=1e-6)
    for method in ("bilinear", "bicubic", "lanczos3", "lanczos5"):  # weights sum to 1
        ones = k.image.resize(np.ones((5, 7, 1), "float32"), (3, 11), method, antialias=True)
        np.testing.assert_allclose(np.asarray(ones), 1, rtol=1e-5)
    y = keras.layers.Resizing(6, 5)(keras.Input((None, None, 3)))
    assert y.shape == (None, 6, 5, 3)


def test_map_coordinates_and_borders():
    x = np.arange(4, dtype="float32")
    places = np.array([[-3, -2, -1, 0, 3, 4, 5, 6]], "float32")
    borders = {"nearest": "00003333", "wrap": "12303012", "mirror": "32103210", "reflect": "21003321"}
    for mode, digits in borders.items():
        expected = [int(d) for d in digits]
        y = k.image.map_coordinates(x, places, order=0, fill_mode=mode)
        np.testing.assert_array_equal(np.asarray(y), expected, err_msg=mode)
    y = k.image.map_coordinates(x, np.array([[0.25, 2.5, -0.5]], "float32"), order=1, fill_mode="constant", fill_value=8.0)
    np.testing.assert_allclose(np.asarray(y), [0.25, 2.5, 4.0], rtol=1e-6)


def test_affine_and_perspective_shift():
    x = floats(2, 5, 6, 3)
    shift = np.array([1, 0, 2, 0, 1, 1, 0, 0], "float32")  # reads two columns to the right and one row below
    expected = np.zeros_like(x)
    expected[:, :4, :4] = x[:, 1:, 2:]
    check(lambda x: k.image.affine_transform(x, shift, data_format="channels_last"), expected, x)
    corners = np.array([[0, 0], [5, 0], [0, 4], [5, 4]], "float32")
    moved = k.image.perspective_transform(x, corners + np.array([2, 1], "float32"), corners)
    np.testing.assert_allclose(np.asarray(moved)[:, :4, :4], expected[:, :4, :4], atol=1e-4)


def test_colours_come_back():
    x = rng.random((3, 4, 3)).astype("float32")
    np.testing.assert_allclose(np.asarray(k.image.hsv_to_rgb(k.image.rgb_to_hsv(x))), x, atol=1e-5)
    np.testing.assert_allclose(np.asarray(k.image.rgb_to_grayscale(x))[..., 0], x @ np.array([0.2989, 0.587, 0.114]), rtol=1e-5)


def test_filters():
    ramp = np.broadcast_to(np.arange(6, dtype="float32")[None, None, :, None], (1, 5, 6, 2))
    edges = np.asarray(k.image.sobel_edges(ramp))
    np.testing.assert_array_equal(edges[..., 0], 0)
    np.testing.assert_array_equal(edges[:, :, 1:-1, :, 1], 8)
    blurred = np.asarray(k.image.gaussian_blur(np.ones((7, 7, 1), "float32"), (3, 5), (1.0, 2.0)))
    np.testing.assert_allclose(blurred[2:5, 1:6], 1, rtol=1e-5)
    assert k.image.elastic_transform(ramp, seed=1).shape == ramp.shape


def test_complex_tensors():
    from keras import ops

    z = ops.view_as_complex(np.array([[1.0, 2.0], [3.0, 4.0]]))
    expected = np.array([1 + 2j, 3 + 4j])
    assert z.dtype.name == "complex64"
    np.testing.assert_allclose(ops.convert_to_numpy(ops.view_as_real(z * z)), np.stack([(expected**2).real, (expected**2).imag], -1))
    np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(z)), np.exp(expected), rtol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(ops.conj(z)), expected.conj())
    np.testing.assert_allclose(ops.convert_to_numpy(ops.polar([1.0, 2.0], [2.0, 3.0])), [np.exp(2j), 2 * np.exp(3j)], rtol=1e-5)
    assert ops.isreal(np.array([1 + 1j, 2])).numpy().tolist() == [False, True] and ops.imag(np.ones(2)).numpy().tolist() == [0, 0]
    a = np.array([[1 + 2j, 2 + 3j], [3 + 4j, 4 + 5j]])
    np.testing.assert_allclose(ops.convert_to_numpy(ops.matmul(a, a)), a @ a)
    np.testing.assert_allclose(ops.convert_to_numpy(ops.sum(ops.concatenate([a, ops.ones((2, 1))], 1), 0)), [4 + 6j, 6 + 8j, 2], rtol=1e-6)
    assert ops.zeros((2, 3), dtype="complex64").shape == (2, 3)
    np.testing.assert_allclose(ops.convert_to_numpy(ops.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))[0]), [-1j, 1j], atol=1e-6)
    with pytest.raises(NotImplementedError, match="sort"):
        ops.sort(z)
