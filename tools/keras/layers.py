"""Stores what Keras's layers give (configs, outputs, gradients, masks) for small inputs in tests/data/keras_layers.json.

Run with an environment that has Keras 3.15 on JAX, for example one that ./dev bench made:
  ~/.cache/tandem/bench/jax/bin/python tools/keras/layers.py
"""
import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # hundreds of tiny programs, each compiled once
import jax
import keras
import numpy as np
from keras import layers as L

OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "keras_layers.json"
random = np.random.RandomState(3)


def numbers(x):
    """A tensor as {"shape", "dtype", "values"} with seven digits."""
    x = np.asarray(x)
    kind = {"f": "float32", "b": "bool"}.get(x.dtype.kind, "int32")
    values = [float(f"{v:.7g}") for v in x.astype(np.float64).ravel()]
    return {"shape": list(x.shape), "dtype": kind, "values": values if kind == "float32" else [int(v) for v in values]}


def floats(*shape, low=-1.0, high=1.0):
    return random.uniform(low, high, shape).astype(np.float32)


def coefficients(shape):
    """Factors that make one number of an output, for gradients: cos(0), cos(1), …"""
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float32)).reshape(shape)


def flat(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def call(layer, inputs, kwargs):
    if isinstance(layer, (L.MultiHeadAttention,)):
        names = ["query", "value", "key", "attention_mask"]
        return layer(**dict(zip(names, inputs)), **kwargs)
    if isinstance(layer, (L.RNN, L.Bidirectional)):
        return layer(inputs[0], **({"initial_state": list(inputs[1:])} if len(inputs) > 1 else {}), **kwargs)
    return layer(inputs[0] if len(inputs) == 1 else list(inputs), **kwargs)


def case(layer, *inputs, gradient=True, mask=None, training=None, flags=None):
    kwargs = dict(flags or {})
    if training is not None:
        kwargs["training"] = training
    if mask is not None:
        kwargs["mask"] = mask
    config = layer.get_config()
    call(layer, inputs, {k: v for k, v in kwargs.items() if k != "training"})  # builds
    for w in layer.weights:  # anything but the tidy initial values
        if w.dtype.startswith("float"):
            w.assign(floats(*w.shape, low=0.3 if "variance" in w.path or "gamma" in w.path else -1.0))
    before = [np.asarray(w) for w in layer.weights]
    outputs = flat(call(layer, inputs, kwargs))
    stored = {
        "class_name": type(layer).__name__, "config": config, "inputs": [numbers(x) for x in inputs],
        "weights": [numbers(w) for w in before], "outputs": [numbers(y) for y in outputs],
    }
    if mask is not None:
        stored["mask"] = numbers(mask)
    if training:
        stored["training"] = True
        stored["weights_after"] = [numbers(w) for w in layer.weights]
    if flags:
        stored["flags"] = flags
    for w, value in zip(layer.weights, before):
        w.assign(value)
    if gradient:
        floating = [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]
        trainable = [v.value for v in layer.trainable_variables]
        rest = [v.value for v in layer.non_trainable_variables]

        def loss(weights, parts):
            all_inputs = list(inputs)
            for i, part in zip(floating, parts):
                all_inputs[i] = part
            with keras.StatelessScope(state_mapping=list(zip(layer.trainable_variables, weights)) + list(zip(layer.non_trainable_variables, rest))):
                ys = flat(call(layer, all_inputs, kwargs))
            return sum((y * coefficients(y.shape)).sum() for y in ys)

        by_weights, by_inputs = jax.grad(loss, argnums=(0, 1))(trainable, [jax.numpy.asarray(inputs[i]) for i in floating])
        stored["weight_gradients"] = [numbers(g) for g in by_weights]
        stored["input_gradients"] = [numbers(g) for g in by_inputs]
    return stored


def cases():
    x2, x3, x4, x5 = floats(3, 4), floats(2, 5, 3), floats(2, 5, 6, 2), floats(1, 4, 3, 4, 2)
    steps = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], bool)
    yield case(L.Dense(3), x2)
    yield case(L.Dense(2, activation="tanh", use_bias=False, kernel_regularizer="l2", kernel_constraint="max_norm"), x3)
    yield case(L.EinsumDense("ab,bc->ac", output_shape=5, bias_axes="c"), x2)
    yield case(L.EinsumDense("abc,cde->abde", output_shape=(None, 2, 4), bias_axes="de", activation="relu"), x3)
    yield case(L.EinsumDense("...x,xy->...y", output_shape=4, bias_axes="y"), x3)
    yield case(L.Embedding(7, 3), np.array([[1, 2, 0], [6, 6, 3]], np.int32))
    yield case(L.Embedding(7, 3, mask_zero=True), np.array([[1, 2, 0], [6, 6, 3]], np.int32))
    yield case(L.Masking(mask_value=0.5), np.where(steps[..., None], x3, 0.5).astype(np.float32), gradient=False)
    yield case(L.Identity(), x2)
    # convolutions
    yield case(L.Conv1D(4, 3), x3)
    yield case(L.Conv1D(4, 2, padding="causal", dilation_rate=2, activation="relu"), x3)
    yield case(L.Conv1D(2, 3, strides=2, padding="same", use_bias=False), x3)
    yield case(L.Conv2D(3, 3), x4)
    yield case(L.Conv2D(4, (3, 2), strides=(2, 1), padding="same", groups=2, activation="gelu"), x4)
    yield case(L.Conv2D(3, 2, dilation_rate=(2, 1)), x4)
    yield case(L.Conv2D(3, 2, data_format="channels_first"), x4)
    yield case(L.Conv3D(3, 2), x5)
    yield case(L.Conv3D(2, (2, 1, 2), strides=2, padding="same"), x5)
    yield case(L.Conv1DTranspose(2, 3, strides=2), x3)
    yield case(L.Conv2DTranspose(3, 3, strides=2, padding="same"), x4)
    yield case(L.Conv2DTranspose(2, (2, 3), strides=(1, 2), output_padding=(0, 1), activation="sigmoid"), x4)
    yield case(L.Conv3DTranspose(2, 2, strides=2), x5)
    yield case(L.DepthwiseConv1D(2, depth_multiplier=2), x3)
    yield case(L.DepthwiseConv2D(3, padding="same"), x4)
    yield case(L.DepthwiseConv2D((2, 3), strides=2, depth_multiplier=2, activation="relu"), x4)
    yield case(L.SeparableConv1D(4, 3, padding="same"), x3)
    yield case(L.SeparableConv2D(3, 2, depth_multiplier=2), x4)
    # pooling
    for rank, x in ((1, x3), (2, x4), (3, x5)):
        for kind in ("Max", "Average"):
            yield case(getattr(L, f"{kind}Pooling{rank}D")(2), x)
            yield case(getattr(L, f"{kind}Pooling{rank}D")(3, strides=2, padding="same"), x)
            yield case(getattr(L, f"Global{kind}Pooling{rank}D")(), x)
            yield case(getattr(L, f"Global{kind}Pooling{rank}D")(keepdims=True, data_format="channels_first"), x)
    yield case(L.MaxPooling2D((2, 3), strides=(1, 2), data_format="channels_first"), x4)
    yield case(L.GlobalAveragePooling1D(), x3, mask=steps)
    # normalization
    yield case(L.BatchNormalization(), x4)
    yield case(L.BatchNormalization(momentum=0.8, epsilon=0.01), x4, training=True)
    yield case(L.BatchNormalization(axis=1, center=False, scale=False), x4, training=True)
    yield case(L.BatchNormalization(), x3, training=True, mask=steps)
    yield case(L.LayerNormalization(), x3)
    yield case(L.LayerNormalization(axis=[1, 2], epsilon=0.01), x3)
    yield case(L.LayerNormalization(center=False, scale=False), x4)
    yield case(L.GroupNormalization(2), floats(2, 3, 3, 4))
    yield case(L.GroupNormalization(-1, axis=1, center=False), floats(2, 4, 3))
    yield case(L.RMSNormalization(), x3)
    yield case(L.UnitNormalization(), x3)
    yield case(L.UnitNormalization(axis=[1, 2]), x3)
    # what changes nothing without training
    for layer in (L.Dropout(0.4, noise_shape=(None, 1, 3)), L.SpatialDropout1D(0.4), L.GaussianNoise(0.4), L.GaussianDropout(0.4),
                  L.ActivityRegularization(0.1, 0.2)):
        yield case(layer, x3, training=False)
    yield case(L.SpatialDropout2D(0.4, data_format="channels_first"), x4, training=False)
    yield case(L.SpatialDropout3D(0.4), x5, training=False)
    # activations
    for name in ("linear", "relu", "relu6", "leaky_relu", "softmax", "log_softmax", "elu", "celu", "selu", "gelu", "silu", "mish", "sigmoid",
                 "log_sigmoid", "sparse_sigmoid", "tanh", "tanh_shrink", "softplus", "softsign", "soft_shrink", "sparse_plus", "squareplus",
                 "sparsemax", "hard_sigmoid", "hard_silu", "hard_tanh", "hard_shrink", "exponential", "glu"):
        yield case(L.Activation(name), floats(2, 6, low=-4, high=4))
    yield case(L.ReLU(), x2)
    yield case(L.ReLU(max_value=0.5, negative_slope=0.1, threshold=0.2), x2)
    yield case(L.ReLU(negative_slope=0.3), x2)
    yield case(L.LeakyReLU(0.1), x2)
    yield case(L.PReLU(), x3)
    yield case(L.PReLU(shared_axes=[1, 2]), x4)
    yield case(L.ELU(0.5), x2)
    yield case(L.Softmax(), x3)
    yield case(L.Softmax(axis=[1, 2]), x3)
    # shapes
    yield case(L.Flatten(), x4)
    yield case(L.Flatten(data_format="channels_first"), x4)
    yield case(L.Reshape((2, -1)), x2)
    yield case(L.Permute((2, 1)), x3)
    yield case(L.RepeatVector(3), x2)
    yield case(L.Cropping1D((1, 2)), x3)
    yield case(L.Cropping2D(((1, 0), (2, 1))), x4)
    yield case(L.Cropping2D(1, data_format="channels_first"), floats(1, 2, 4, 5))
    yield case(L.Cropping3D(((1, 1), (0, 1), (1, 0))), x5)
    yield case(L.ZeroPadding1D((0, 2)), x3)
    yield case(L.ZeroPadding2D(((1, 0), (2, 1))), x4)
    yield case(L.ZeroPadding3D(1), x5)
    yield case(L.UpSampling1D(3), x3)
    yield case(L.UpSampling2D((2, 3)), x4)
    yield case(L.UpSampling2D(2, interpolation="bilinear"), x4)
    yield case(L.UpSampling2D((2, 1), interpolation="bicubic"), x4)
    yield case(L.UpSampling2D(2, interpolation="lanczos3"), x4)
    yield case(L.UpSampling3D((1, 2, 2)), x5)
    # merging
    for kind in ("Add", "Multiply", "Average", "Maximum", "Minimum"):
        yield case(getattr(L, kind)(), x2, floats(3, 4), floats(3, 4))
    yield case(L.Subtract(), x2, floats(3, 4))
    yield case(L.Add(), x3, floats(2, 3))
    yield case(L.Concatenate(), x3, floats(2, 5, 2))
    yield case(L.Concatenate(axis=1), x3, floats(2, 2, 3))
    yield case(L.Dot(axes=1), x2, floats(3, 4))
    yield case(L.Dot(axes=(2, 1), normalize=True), x3, floats(2, 3, 2))
    yield case(L.Dot(axes=-1), x3, floats(2, 4, 3))
    # sequences
    for kind in (L.LSTM, L.GRU, L.SimpleRNN):
        yield case(kind(4), x3)
        yield case(kind(3, return_sequences=True, return_state=True), x3)
        yield case(kind(3, go_backwards=True, return_sequences=True, use_bias=False), x3, mask=steps)
        yield case(kind(3, activation="relu", return_sequences=True, zero_output_for_mask=True), x3, mask=steps)
        yield case(kind(3), x3, mask=steps)
        yield case(L.Bidirectional(kind(2, return_sequences=True)), x3, mask=steps)
    yield case(L.LSTM(3, recurrent_activation="hard_sigmoid", unit_forget_bias=False, return_state=True), x3, floats(2, 3), floats(2, 3))
    yield case(L.GRU(3, reset_after=False, return_sequences=True), x3, floats(2, 3))
    yield case(L.Bidirectional(L.LSTM(3), merge_mode="sum"), x3)
    yield case(L.Bidirectional(L.GRU(3, return_sequences=True, return_state=True), merge_mode="ave"), x3)
    yield case(L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode=None), x3)
    yield case(L.Bidirectional(L.SimpleRNN(3, return_sequences=True), merge_mode="mul"), x3)
    yield case(L.TimeDistributed(L.Dense(2, activation="tanh")), x3)
    yield case(L.TimeDistributed(L.Conv2D(2, 2)), floats(2, 3, 4, 4, 2))
    # attention
    yield case(L.MultiHeadAttention(2, 3), x3, x3)
    yield case(L.MultiHeadAttention(2, 3, value_dim=4, output_shape=5, use_bias=False, dropout=0.1), x3, floats(2, 4, 3), floats(2, 4, 2), training=False)
    yield case(L.MultiHeadAttention(2, 3), x3, x3, flags={"use_causal_mask": True})
    yield case(L.MultiHeadAttention(1, 3, use_gate=True), x3, floats(2, 4, 3), floats(2, 4, 3), random.uniform(size=(2, 5, 4)) < 0.7)
    yield case(L.MultiHeadAttention(2, 3, sliding_window=2), x3, x3, flags={"use_causal_mask": True})
    yield case(L.MultiHeadAttention(2, 3, dropout=0.3), x3, x3, training=False)
    yield case(L.MultiHeadAttention(2, 3, attention_axes=(2,)), x4, x4)
    yield case(L.MultiHeadAttention(2, 3, output_shape=(2, 4)), x4, x4)
    # preprocessing
    image = floats(2, 6, 8, 3, low=0, high=255)
    yield case(L.Rescaling(1 / 127.5, offset=-1), image)
    yield case(L.Rescaling([0.5, 2.0, 1.0], offset=[0.0, 1.0, 2.0]), image, gradient=False)
    yield case(L.Normalization(), x3)
    yield case(L.Normalization(axis=(1, 2), invert=True), x3)
    yield case(L.Normalization(axis=None, mean=0.3, variance=2.0), x3)
    yield case(L.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0]), x3)
    yield case(L.Resizing(4, 5), image)
    yield case(L.Resizing(9, 10, interpolation="nearest"), image)
    yield case(L.Resizing(9, 12, interpolation="bicubic"), image)
    yield case(L.Resizing(3, 3, interpolation="bilinear", antialias=True, crop_to_aspect_ratio=True), image)
    yield case(L.Resizing(5, 4, pad_to_aspect_ratio=True, fill_value=7.0), image)
    yield case(L.Resizing(8, 8, interpolation="lanczos5", data_format="channels_first"), floats(1, 2, 6, 5))
    yield case(L.CenterCrop(3, 5), image)
    yield case(L.CenterCrop(8, 4), image)
    for layer in (L.RandomFlip("vertical"), L.RandomRotation(0.1), L.RandomZoom(0.2, (-0.1, 0.3)), L.RandomTranslation(0.1, (-0.2, 0.3)),
                  L.RandomContrast(0.3), L.RandomBrightness((-0.1, 0.3))):
        yield case(layer, image, training=False)
    # A range of one point is not random: what the transforms do.
    for mode in ("reflect", "wrap", "constant", "nearest"):
        yield case(L.RandomRotation((0.06, 0.06), fill_mode=mode, fill_value=9.0), image, training=True)
        yield case(L.RandomTranslation((0.3, 0.3), (-0.4, -0.4), fill_mode=mode, interpolation="nearest"), image, training=True)
        yield case(L.RandomZoom((0.3, 0.3), (-0.2, -0.2), fill_mode=mode), image, training=True)
    yield case(L.RandomContrast((0.0, 0.0)), image, training=True)
    yield case(L.RandomBrightness((0.2, 0.2)), image, training=True)


def others():
    w = keras.ops.convert_to_tensor(floats(4, 3))
    R, C = keras.regularizers, keras.constraints
    return {
        "weight": numbers(w),
        "regularizers": [{"config": R.serialize(r), "value": float(r(w))} for r in
                         (R.L1(0.1), R.L2(0.3), R.L1L2(0.1, 0.2), R.OrthogonalRegularizer(0.5), R.OrthogonalRegularizer(0.5, mode="columns"))],
        "constraints": [{"config": C.serialize(c), "value": numbers(c(w))} for c in
                        (C.MaxNorm(0.7), C.NonNeg(), C.UnitNorm(axis=1), C.MinMaxNorm(0.5, 0.8, 0.6, axis=[0, 1]))],
        "initializers": [keras.initializers.serialize(i) for i in
                         (keras.initializers.Zeros(), keras.initializers.Constant(2.0), keras.initializers.RandomNormal(seed=3),
                          keras.initializers.RandomUniform(), keras.initializers.TruncatedNormal(), keras.initializers.VarianceScaling(2.0, "fan_avg"),
                          keras.initializers.GlorotUniform(), keras.initializers.HeNormal(), keras.initializers.LecunUniform(),
                          keras.initializers.Orthogonal(2.0), keras.initializers.Identity())],
    }


def networks():
    """A graph with two inputs and outputs, a shared layer and a model inside; and a sequence with masks."""
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = L.Dense(3, activation="tanh", name="shared")
    inner = keras.Sequential([keras.Input((6,)), L.Dense(5, activation="relu", name="inner_dense")], name="inner")
    joined = L.Concatenate(name="joined")([shared(a), shared(b)])
    graph = keras.Model([a, b], [L.Dense(2, name="first")(inner(joined)), L.Subtract(name="second")([shared(b), shared(a)])], name="graph")
    words = keras.Sequential([keras.Input((5,), dtype="int32"), L.Embedding(9, 4, mask_zero=True, name="embedding"),
                              L.Bidirectional(L.LSTM(3, return_sequences=True, name="walk"), name="both"), L.GRU(2, name="last"),
                              L.Dense(1, name="output")], name="words")
    query = keras.Input((5, 4), name="query")
    attended = L.MultiHeadAttention(2, 3, name="attention")(query, query, use_causal_mask=True)
    h, *state = L.LSTM(3, return_state=True, name="encoder")(attended)
    decoded = L.LSTM(3, name="decoder")(query, initial_state=state)
    sequence = keras.Model(query, L.Add(name="sum")([h, decoded]), name="sequence")
    for model, inputs in ((graph, [floats(3, 4), floats(3, 4)]), (words, [np.array([[1, 2, 3, 0, 0], [4, 0, 8, 8, 1]], np.int32)]),
                          (sequence, [floats(2, 5, 4)])):
        for w in model.weights:
            w.assign(floats(*w.shape))
        yield {"class_name": type(model).__name__, "config": model.get_config(), "inputs": [numbers(x) for x in inputs],
               "layers": [layer.name for layer in model.layers], "weights": [numbers(w) for w in model.weights],
               "outputs": [numbers(y) for y in flat(model(inputs if len(inputs) > 1 else inputs[0]))]}


if __name__ == "__main__":
    stored = {"layers": [print(i, c["class_name"], flush=True) or c for i, c in enumerate(cases())], "networks": list(networks()), **others()}
    text = json.dumps(stored, separators=(",", ":")).replace('{"class_name"', '\n{"class_name"')
    OUT.write_text(text + "\n")
    print(f"{OUT}: {len(stored['layers'])} cases, {len(text) / 1e6:.2f} MB")
