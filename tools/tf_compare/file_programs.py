"""Saves or loads checkpoints and models on one engine: file_programs.py ENGINE save|load FOLDER.

What is saved lies beside `expected.pickle`: variables, predictions and the loss of one more step. Loading begins with other numbers and
prints a line for each file, `ok` or what is wrong.
"""
import os
import pickle
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402

engine, action, folder = sys.argv[1:4]
if engine == "tensorflow":
    import tensorflow as tf
else:
    import tandem as tf
keras = tf.keras

NEAR = 2e-5


class Part(tf.Module):
    def __init__(self, number):
        super().__init__()
        self.w = tf.Variable(np.full((2, 3), number, np.float32))


class Whole(tf.Module):
    """Variables in attributes, lists, dicts and modules inside."""

    def __init__(self, number):
        super().__init__()
        self.parts = [Part(number + i) for i in range(2)]
        self.named = {"a": tf.Variable(number, dtype=tf.int64), "b": Part(number + 5)}
        self.half = tf.Variable(np.full(3, number), dtype=tf.bfloat16)
        self.double = tf.Variable(np.arange(4.0) * number)
        self.flag = tf.Variable(number > 3)
        self.empty = tf.Variable(np.zeros((0, 2), np.float32))
        self.frozen = tf.Variable(float(number), trainable=False)


def whole_values(m):
    return [np.asarray(v.numpy()).astype(object if v.dtype == tf.string else np.float64)
            for v in [m.parts[0].w, m.parts[1].w, m.named["a"], m.named["b"].w, m.half, m.double, m.flag, m.empty, m.frozen]]  # fmt: skip


def dense():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Dense(3)])


def images():
    x = keras.Input((8, 8, 2))
    y = keras.layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    y = keras.layers.Add()([y, keras.layers.SeparableConv2D(4, 3, padding="same")(y)])
    y = keras.layers.GlobalAveragePooling2D()(keras.layers.MaxPooling2D()(keras.layers.LayerNormalization()(y)))
    return keras.Model(x, keras.layers.Dense(3)(y))


def words():
    x = keras.Input((6,), dtype="int32")
    y = keras.layers.Embedding(11, 5)(x)
    y = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))(y)
    y = keras.layers.MultiHeadAttention(2, 4)(y, y)
    return keras.Model(x, keras.layers.Dense(3)(keras.layers.GRU(4)(y)))


MODELS = {
    "dense": (dense, lambda: keras.optimizers.Adam(0.01), (4,)), "images": (images, lambda: keras.optimizers.RMSprop(0.01, momentum=0.5), (8, 8, 2)),
    # Not an optimizer that squares gradients: Keras on TensorFlow squares those of an embedding row that occurs twice before it adds them up.
    "words": (words, lambda: keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True), None), "adamw": (dense, lambda: keras.optimizers.AdamW(0.01, use_ema=True), (4,)),
}  # fmt: skip


def data(shape):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 11, (8, 6)).astype(np.int32) if shape is None else rng.normal(size=(8, *shape)).astype(np.float32)
    return x, rng.normal(size=(8, 3)).astype(np.float32)


def built(name, seed):
    make, optimizer, shape = MODELS[name]
    keras.utils.set_random_seed(seed)
    model = make()
    model.compile(optimizer(), keras.losses.MeanSquaredError())
    x, y = data(shape)
    model.train_on_batch(x, y)
    return model, x, y


def state(model, x):
    return {"predicted": np.asarray(model.predict(x, verbose=0)), "weights": [np.asarray(w) for w in model.get_weights()],
            "optimizer": [np.asarray(tf.convert_to_tensor(v)) for v in model.optimizer.variables]}  # fmt: skip


def near(a, b, what):
    if len(a) != len(b):
        raise ValueError(f"{what}: {len(a)} numbers saved, {len(b)} loaded")
    for i, (p, q) in enumerate(zip(a, b)):
        p, q = np.asarray(p), np.asarray(q)
        if p.shape != q.shape:
            raise ValueError(f"{what} {i}: shape {p.shape} saved, {q.shape} loaded")
        if p.dtype == object:
            same = p.tolist() == q.tolist()
        else:
            same = np.allclose(p.astype(np.float64), q.astype(np.float64), rtol=NEAR, atol=NEAR)
        if not same:
            raise ValueError(f"{what} {i}: {p.reshape(-1)[:3]} saved, {q.reshape(-1)[:3]} loaded")


def path(name):
    return os.path.join(folder, name)


def save():
    os.makedirs(folder, exist_ok=True)
    expected = {}
    m = Whole(7)
    tf.train.Checkpoint(module=m, step=tf.Variable(12, dtype=tf.int64)).write(path("module_checkpoint"))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(module=m), path("managed"), max_to_keep=2)
    for _ in range(3):
        manager.save()
    expected["module"] = whole_values(m)
    for name in MODELS:
        model, x, y = built(name, 1)
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(path(f"{name}_checkpoint"))
        model.save(path(f"{name}.keras"))
        model.save(path(f"{name}.h5"))
        model.save_weights(path(f"{name}.weights.h5"))
        expected[name] = {**state(model, x), "loss": float(model.train_on_batch(x, y))}
        expected[name]["after"] = [np.asarray(w) for w in model.get_weights()]
    with open(path("expected.pickle"), "wb") as f:
        pickle.dump(expected, f)


def load():
    with open(path("expected.pickle"), "rb") as f:
        expected = pickle.load(f)

    def check(what, act):
        try:
            act()
            print(f"{what}: ok")
        except Exception as e:
            print(f"{what}: {type(e).__name__}: {' '.join(str(e).split())[:300]}")

    def module():
        m, step = Whole(1), tf.Variable(0, dtype=tf.int64)
        tf.train.Checkpoint(module=m, step=step).read(path("module_checkpoint")).assert_consumed()
        near(expected["module"], whole_values(m), "variable")
        near([12], [step.numpy()], "step")

    def managed():
        m = Whole(1)
        latest = tf.train.latest_checkpoint(path("managed"))
        if latest is None or not latest.endswith("ckpt-3"):
            raise ValueError(f"the latest checkpoint is ckpt-3, found {latest}")
        tf.train.Checkpoint(module=m).restore(latest).expect_partial()
        near(expected["module"], whole_values(m), "variable")
        names = dict(tf.train.list_variables(latest))
        if names.get("module/parts/1/w/.ATTRIBUTES/VARIABLE_VALUE") != [2, 3]:
            raise ValueError(f"list_variables gives {names}")

    def same(model, x, y, wanted, optimizer=True):
        found = state(model, x)
        near(wanted["weights"], found["weights"], "weight")
        near([wanted["predicted"]], [found["predicted"]], "prediction")
        if optimizer:
            near(wanted["optimizer"], found["optimizer"], "optimizer variable")
            near([wanted["loss"]], [float(model.train_on_batch(x, y))], "loss of the next step")
            near(wanted["after"], [np.asarray(w) for w in model.get_weights()], "weight after the next step")

    check("module, Checkpoint", module)
    check("module, CheckpointManager", managed)
    for name, (_, _, shape) in MODELS.items():
        wanted, (x, y) = expected[name], data(shape)

        def checkpoint():
            model, *_ = built(name, 2)
            tf.train.Checkpoint(model=model, optimizer=model.optimizer).read(path(f"{name}_checkpoint")).assert_existing_objects_matched()
            same(model, x, y, wanted)

        def weights():
            model, *_ = built(name, 2)
            model.load_weights(path(f"{name}.weights.h5"))
            same(model, x, y, wanted)

        check(f"{name}, Checkpoint", checkpoint)
        check(f"{name}, .keras", lambda: same(keras.models.load_model(path(f"{name}.keras")), x, y, wanted))
        check(f"{name}, .h5", lambda: same(keras.models.load_model(path(f"{name}.h5")), x, y, wanted, optimizer=False))  # Keras leaves slots out
        check(f"{name}, .weights.h5", weights)


{"save": save, "load": load}[action]()
