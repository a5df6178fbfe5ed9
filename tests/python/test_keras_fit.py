"""Keras's fit, evaluate and predict on the native loop."""
import gc
import os
import signal
import threading
import weakref

import tandem as tf  # first: it chooses the backend

import keras
import numpy as np
import pytest
from keras import layers

rng = np.random.default_rng(0)
X = rng.random((100, 6), dtype=np.float32)
Y = (X.sum(axis=1) > 3).astype("int64")


def model(**compiled):
    keras.utils.set_random_seed(1)
    m = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(2)])
    options = {"optimizer": "adam", "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"]}
    m.compile(**{**options, **compiled})
    return m


def losses(m, **how):
    return m.fit(X, Y, **{"batch_size": 32, "epochs": 3, "shuffle": False, "verbose": 0, **how}).history["loss"]


def test_one_trace_serves_the_smaller_last_batch():
    m = model()
    losses(m)
    (compiled,) = m.train_function.step._compiled.values()
    assert compiled.function.trace_count == 1


def test_eager_and_compiled_agree():
    np.testing.assert_allclose(losses(model(run_eagerly=True)), losses(model()), rtol=1e-5)


def test_arrays_datasets_and_generators_agree():
    wanted = losses(model())
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32)
    np.testing.assert_allclose(model().fit(data, epochs=3, verbose=0).history["loss"], wanted, rtol=1e-6)

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return X[i * 32 : (i + 1) * 32], Y[i * 32 : (i + 1) * 32]

    np.testing.assert_allclose(model().fit(Batches(), epochs=3, shuffle=False, verbose=0).history["loss"], wanted, rtol=1e-6)


def test_a_callback_for_each_batch_sees_each_batch():
    seen = []

    class Each(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append((batch, logs["loss"]))

    losses(model(), epochs=1, callbacks=[Each()])
    assert [b for b, _ in seen] == [0, 1, 2, 3] and all(np.isfinite(loss) for _, loss in seen)


def test_a_step_of_ones_own():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, self(x, training=True), from_logits=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"mine": loss}

    m = Own()
    m.compile(optimizer=keras.optimizers.SGD(0.5))
    history = m.fit(X, Y, batch_size=20, epochs=5, verbose=0).history
    assert list(history) == ["mine"] and history["mine"][-1] < history["mine"][0]


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(gradient_accumulation_steps=2),
        lambda: keras.optimizers.Adam(use_ema=True, ema_overwrite_frequency=2),
        lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
        lambda: keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 20), momentum=0.9, clipnorm=1.0),
    ],
)
def test_optimizers_as_eager(optimizer):
    np.testing.assert_allclose(losses(model(optimizer=optimizer())), losses(model(optimizer=optimizer(), run_eagerly=True)), rtol=2e-5)


def test_weights_of_samples_and_classes():
    weights = np.where(Y == 1, 3.0, 1.0).astype("float32")
    np.testing.assert_allclose(losses(model(), sample_weight=weights), losses(model(), class_weight={0: 1.0, 1: 3.0}), rtol=1e-6)


def test_mixed_precision_trains():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        history = losses(model(), epochs=10)
    finally:
        keras.config.set_dtype_policy("float32")
    assert history[-1] < history[0]


def test_evaluate_and_predict():
    m = model()
    losses(m)
    loss, accuracy = m.evaluate(X, Y, verbose=0)
    logits = m.predict(X, batch_size=32, verbose=0)
    assert logits.shape == (100, 2)
    assert accuracy == pytest.approx((logits.argmax(axis=1) == Y).mean(), abs=1e-6)
    np.testing.assert_allclose(logits, m(X).numpy(), rtol=1e-5, atol=1e-6)
    assert np.isfinite(loss)


def test_models_are_collected():
    m = model()
    losses(m, epochs=1)
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None


def test_ctrl_c_ends_a_fit():
    m = model()
    losses(m, epochs=1)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        losses(m, epochs=10_000_000)
    timer.join()


def test_text_layers_need_no_tensorflow():
    lookup = layers.StringLookup(vocabulary=["a", "b", "c"])
    np.testing.assert_array_equal(lookup(tf.constant(["a", "x", "c"])), [1, 0, 3])
    vectors = layers.TextVectorization(vocabulary=["the", "cat"], output_sequence_length=4)
    np.testing.assert_array_equal(vectors(tf.constant(["the cat sat", "a cat"])), [[2, 3, 1, 0], [1, 3, 0, 0]])
    np.testing.assert_array_equal(layers.IntegerLookup(vocabulary=[3, 5, 7])(tf.constant([3, 9, 7])), [1, 0, 3])


def test_quantized_models_run_on_integers():
    m = model()
    before = m.predict(X, verbose=0)
    m.quantize("int8")
    after = m.predict(X, verbose=0)
    np.testing.assert_allclose(after, before, atol=0.05)
    assert m.layers[0].kernel.dtype == "int8"


def test_shuffling_follows_the_seed():
    first, second = losses(model(), shuffle=True), losses(model(), shuffle=True)
    np.testing.assert_array_equal(first, second)
    assert losses(model(), shuffle=False) != first
