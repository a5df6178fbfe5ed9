"""Small models that together have all layers that Tandem has: NAME -> function that gives (model, inputs, targets)."""
import keras
import numpy as np
from keras import Input, Model, Sequential, layers, ops, optimizers

MODELS = {}
# What Keras is set to while such a model is made and while it is loaded: it takes a model's own policy, which decides about the loss scale,
# from there and not from the file. For all others float32.
POLICIES = {"mixed": "mixed_float16", "mixed_bfloat16": "mixed_bfloat16"}


def model(make):
    MODELS[make.__name__] = make
    return make


def floats(*shape):
    return np.random.RandomState(1).uniform(-1, 1, shape).astype(np.float32)


def classes(count, rows=4):
    return np.random.RandomState(2).randint(0, count, rows).astype(np.int32)


def compiled(made, x, y, optimizer="adam", loss="mse", **options):
    made.compile(optimizer, loss, **options)
    return made, x, y


@model
def mlp():
    made = Sequential([Input((8,)), layers.Dense(6, "relu", kernel_regularizer="l2"), layers.BatchNormalization(), layers.Dropout(0.0, seed=1),
                       layers.Dense(3, "softmax", name="out")], name="mlp")
    return compiled(made, floats(4, 8), classes(3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])


@model
def images():
    made = Sequential([
        Input((8, 8, 3)), layers.Conv2D(4, 3, padding="same", activation="relu"), layers.BatchNormalization(momentum=0.9),
        layers.DepthwiseConv2D(3, depth_multiplier=2), layers.SeparableConv2D(6, 3, padding="same", use_bias=False),
        layers.GroupNormalization(2), layers.Conv2DTranspose(4, 3, strides=2, padding="same"), layers.MaxPooling2D(2),
        layers.AveragePooling2D(2, padding="same"), layers.SpatialDropout2D(0.0), layers.ZeroPadding2D(1), layers.UpSampling2D(2),
        layers.Cropping2D(1), layers.Conv2D(4, 3, strides=2, dilation_rate=1, groups=2), layers.GlobalAveragePooling2D(), layers.Dense(2)])
    return compiled(made, floats(4, 8, 8, 3), floats(4, 2), optimizers.SGD(0.01, momentum=0.9, nesterov=True), metrics=["mae"])


@model
def lines_and_volumes():
    a, b = Input((12, 3), name="line"), Input((4, 4, 4, 2), name="volume")
    x = layers.Conv1D(4, 3, padding="causal", dilation_rate=2)(a)
    x = layers.SeparableConv1D(4, 3)(x)
    x = layers.DepthwiseConv1D(2)(x)
    x = layers.Conv1DTranspose(3, 2, strides=2)(x)
    x = layers.AveragePooling1D(2)(layers.MaxPooling1D(2, padding="same")(x))
    x = layers.GlobalMaxPooling1D()(x)
    y = layers.Conv3D(3, 2, activation="tanh")(b)
    y = layers.Conv3DTranspose(2, 2)(y)
    y = layers.AveragePooling3D(2, strides=1)(layers.MaxPooling3D(2, strides=1)(y))
    y = layers.GlobalAveragePooling3D()(y)
    out = layers.Dense(1)(layers.Concatenate()([x, y]))
    return compiled(Model([a, b], out), [floats(4, 12, 3), floats(4, 4, 4, 4, 2)], floats(4, 1), "rmsprop")


@model
def recurrent():
    made = Sequential([Input((6,), dtype="int32"), layers.Embedding(10, 4, mask_zero=True),
                       layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
                       layers.GRU(4, return_sequences=True), layers.SimpleRNN(3, return_sequences=True),
                       layers.TimeDistributed(layers.Dense(3)), layers.LSTM(2, unit_forget_bias=False, go_backwards=True), layers.Dense(2)])
    return compiled(made, np.random.RandomState(3).randint(0, 10, (4, 6)).astype(np.int32), floats(4, 2), optimizers.Adam(0.01, amsgrad=True))


@model
def reset_before():
    return Sequential([Input((6, 3)), layers.GRU(4, reset_after=False), layers.Dense(2)]), floats(4, 6, 3), []


@model
def transformer():
    tokens = Input((6,), dtype="int32", name="tokens")
    x = layers.Embedding(12, 8)(tokens)
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        y = layers.MultiHeadAttention(2, 4, dropout=0.0)(y, y, use_causal_mask=True)
        x = layers.Add()([x, y])
        y = layers.EinsumDense("abc,cd->abd", (None, 16), bias_axes="d", activation="gelu")(x)
        x = layers.Add()([x, layers.Dense(8)(y)])
    out = layers.Dense(12)(x)
    ids = np.random.RandomState(3).randint(0, 12, (4, 6)).astype(np.int32)
    return compiled(Model(tokens, out), ids, ids, optimizers.AdamW(0.001),
                    keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["sparse_categorical_accuracy"])


@model
def cross_attention():
    query, value = Input((5, 8), name="query"), Input((7, 6), name="value")
    y = layers.MultiHeadAttention(2, 3, output_shape=5)(query, value)
    return compiled(Model([query, value], layers.GlobalAveragePooling1D()(y)), [floats(4, 5, 8), floats(4, 7, 6)], floats(4, 5), "nadam")


@model
def graph():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    shared = layers.Dense(4, "tanh", name="shared")
    inner_in = Input((4,))
    inner = Model(inner_in, [layers.Dense(4)(inner_in), layers.Dense(4, "sigmoid")(inner_in)], name="inner")
    pair = Sequential([layers.Dense(4, "relu"), layers.Dense(4)], name="pair")
    x, y = shared(a), shared(b)
    z = shared(x)  # a second time, after itself
    u, v = inner(z)
    w, _ = inner(pair(y))
    merged = [layers.Add()([x, y, z]), layers.Subtract()([x, y]), layers.Multiply()([u, v]), layers.Average()([w, x]),
              layers.Maximum()([x, y]), layers.Minimum()([u, w]), layers.Dot(axes=1)([x, y])]
    first = layers.Dense(2, name="first")(layers.Concatenate()(merged))
    second = layers.Dense(1, name="second")(pair(u))
    made = Model([a, b], [first, second, v], name="graph")
    return compiled(made, [floats(4, 4), floats(4, 4) * 0.5], [floats(4, 2), floats(4, 1), floats(4, 4)], "adamax", ["mse", "mae", None],
                    loss_weights=[1.0, 0.5, 0.0], metrics=[["mae"], ["mse", "mae"], []])


@model
def arithmetic():
    """Operations instead of layers, between layers that are trained."""
    a, b = Input((4, 6), name="a"), Input((4, 6), name="b")
    x = layers.Dense(6, "tanh")(a) * 2.0 + b
    x = 1.5 - x / (abs(b) + 0.5)
    x = ops.tanh(x[:, 1:3]) + ops.mean(x, axis=1, keepdims=True) - x[:, -1:] ** 2
    x = ops.concatenate([x, ops.relu(-x), ops.sigmoid(x)], axis=-1)
    x = ops.where(x > 0.1, x, 0.1 * x)
    x = ops.clip(layers.Dense(4)(x), -3, 3)
    scores = ops.matmul(x, ops.transpose(x, (0, 2, 1)))
    x = ops.einsum("abc,acd->abd", ops.softmax(scores / 2, axis=-1), x)
    out = layers.Dense(2)(ops.reshape(x, (-1, 8)))
    return compiled(Model([a, b], out, name="arithmetic"), [floats(4, 4, 6), floats(4, 4, 6) * 0.5], floats(4, 2), "adam")


@model
def operations():
    """One output for each: movement, reductions, activations, constants, indexing, several results."""
    x = Input((4, 6), name="x")
    positive = ops.square(x) + 0.1
    table = np.arange(12, dtype="float32").reshape(6, 2) / 7
    results = [
        ops.stack([x, -x], axis=1), ops.squeeze(x[..., None], -1), ops.expand_dims(x, 1), ops.swapaxes(x, 1, 2), ops.flip(x, axis=1),
        ops.moveaxis(x, 1, 2), ops.repeat(x, 2, axis=1), ops.tile(x, (1, 1, 2)), ops.roll(x, 1, axis=2), ops.ravel(x), ops.tril(x), x @ table,
        ops.sum(x, axis=(1, 2)), ops.max(x, axis=1), ops.min(x, axis=-1, keepdims=True), ops.prod(x, axis=1), ops.var(x, axis=1),
        ops.std(x, axis=2), ops.logsumexp(x, axis=1), ops.argmax(x, axis=-1), ops.any(x > 0.5, axis=1), ops.all(x > -0.9, axis=2),
        ops.count_nonzero(x > 0, axis=1), ops.cumsum(x, axis=1), ops.sort(x, axis=1), ops.argsort(x, axis=2), *ops.top_k(x, 2),
        *ops.moments(x, axes=[1]), ops.one_hot(ops.argmax(x, axis=-1), 6), ops.take(x, np.array([2, 0]), axis=1),
        ops.gelu(x), ops.gelu(x, approximate=False), ops.elu(x, alpha=0.5), ops.leaky_relu(x, negative_slope=0.3), ops.silu(x), ops.softplus(x),
        ops.softsign(x), ops.selu(x), ops.hard_sigmoid(x), ops.log_softmax(x, axis=1), ops.relu6(x * 8), ops.normalize(x, axis=2, order=2),
        ops.exp(x), ops.expm1(x), ops.log(positive), ops.log1p(positive), ops.sqrt(positive), ops.rsqrt(positive), ops.erf(x), ops.sin(x),
        ops.cos(x), ops.arctan2(x, positive), ops.floor(x * 4), ops.round(x * 4), ops.sign(x), ops.reciprocal(positive),
        ops.maximum(x, 0.25), ops.minimum(x, positive), ops.power(positive, 1.5), ops.floor_divide(x, 0.25), ops.mod(x, 0.3),
        ops.logical_not(x > 0), ops.logical_and(x > 0, x < 0.5), ops.logical_or(x > 0.5, x < -0.5), ops.not_equal(ops.sign(x), 1.0),
        ops.cast(x * 10, "int32"), ops.isfinite(x), x[:, 0], x[:, :, 2:5], x[:, ::-1, ::2], x[0], ops.einsum("abc,adc->abd", x, x),
        ops.tensordot(x, table, axes=1), ops.dot(x, table), ops.outer(x[0, 0], x[0, 1]), ops.diagonal(x, axis1=1, axis2=2),
        ops.stop_gradient(x), ops.nan_to_num(x), ops.broadcast_to(x[0, :1], (4, 6)), ops.median(x, axis=1)]
    results += ops.unstack(x, axis=1)[:1] + ops.split(x, 2, axis=1)[:1] + ops.split(x, [1, 4], axis=2)[1:]
    made = Model(x, [ops.cast(r, "float32") for r in results], name="operations")
    return made, floats(4, 4, 6), []


@model
def shapes_and_activations():
    x = inputs = Input((6, 4))
    x = layers.Permute((2, 1))(x)
    x = layers.Reshape((2, -1))(x)
    x = layers.PReLU(shared_axes=[1])(layers.Dense(6)(x))
    x = layers.Flatten()(x)
    x = layers.RepeatVector(3)(x)
    for layer in (layers.ReLU(max_value=6.0, negative_slope=0.1), layers.LeakyReLU(0.2), layers.ELU(0.5), layers.Activation("swish"),
                  layers.Softmax(axis=-1), layers.Activation("hard_sigmoid"), layers.UnitNormalization()):
        x = layer(x)
    x = layers.ZeroPadding1D(1)(x)
    x = layers.Cropping1D((1, 0))(layers.UpSampling1D(2)(x))
    x = layers.GaussianNoise(0.1)(layers.GaussianDropout(0.0)(x))
    x = layers.ActivityRegularization(l2=0.0)(x)
    return Model(inputs, layers.Masking(0.0)(x)), floats(4, 6, 4), []


@model
def augmented():
    normalization = layers.Normalization()
    normalization.adapt(np.random.RandomState(4).uniform(0, 255, (20, 6, 6, 3)).astype(np.float32))
    made = Sequential([Input((6, 6, 3)), normalization, layers.Rescaling(0.5, offset=0.1), layers.RandomFlip("horizontal", seed=1),
                       layers.RandomRotation(0.1), layers.RandomZoom(0.1), layers.RandomTranslation(0.1, 0.1), layers.RandomContrast(0.1),
                       layers.RandomBrightness(0.1), layers.Resizing(4, 4), layers.CenterCrop(3, 3), layers.Flatten(), layers.Dense(2)])
    return made, floats(4, 6, 6, 3) * 255, []


@model
def precisions():
    made = Sequential([Input((4,)), layers.Dense(5, dtype="float16"), layers.Dense(5, dtype="bfloat16"), layers.Dense(3, dtype="float32")])
    return made, floats(4, 4), []


def mixed_by_policy(name):
    def make():
        made = Sequential([Input((8,)), layers.Dense(16, "relu"), layers.BatchNormalization(), layers.Dense(8, "tanh"),
                           layers.Dense(3, "softmax", dtype="float32")], name=name)
        return compiled(made, floats(4, 8), classes(3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])

    make.__name__ = name
    model(make)


mixed_by_policy("mixed")
mixed_by_policy("mixed_bfloat16")


@model
def mixed_layers():
    """Layers with policies of their own, and a loss scale that was asked for; it grows while the model is trained."""
    x = inputs = Input((8,))
    x = layers.Dense(6, "tanh", dtype="mixed_float16")(x)
    x = layers.Dense(6, "tanh", dtype=keras.DTypePolicy("mixed_float16"))(x)
    scaled = optimizers.LossScaleOptimizer(optimizers.SGD(0.1, momentum=0.5), initial_scale=1024.0, dynamic_growth_steps=2)
    return compiled(Model(inputs, layers.Dense(2, dtype="float32")(x)), floats(4, 8), floats(4, 2), scaled)


def trained_by(name, optimizer, **options):
    def make():
        made = Sequential([Input((4,)), layers.Dense(3, "tanh"), layers.Dense(2)])
        return compiled(made, floats(4, 4), floats(4, 2), optimizer(), **options)

    make.__name__ = name
    model(make)


trained_by("sgd", lambda: optimizers.SGD(0.1))
trained_by("rmsprop_centered", lambda: optimizers.RMSprop(0.01, centered=True, momentum=0.5), loss=keras.losses.LogCosh())
trained_by("adagrad", lambda: optimizers.Adagrad(0.1), metrics=[keras.metrics.MeanAbsoluteError(name="mine")])
trained_by("lion", lambda: optimizers.Lion(0.01, weight_decay=0.01))
trained_by("adafactor", lambda: optimizers.Adafactor(0.1))
trained_by("averaged", lambda: optimizers.Adam(optimizers.schedules.CosineDecay(0.1, 20, warmup_steps=2, warmup_target=0.2), use_ema=True,
                                               ema_momentum=0.9, gradient_accumulation_steps=2, clipnorm=1.0))
