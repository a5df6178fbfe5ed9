"""Batches in parts: what the whole batch gives up to rounding, or an error before the first step."""
import numpy as np
import pytest

import tandem as tf  # isort: skip
import keras
from keras import layers, ops

ROWS, EPOCHS = 50, 2


def trained(make, parts, monkeypatch, batch_size=20, data=None, loss="mse", metrics=("mae",), dataset=False, **fit):
    """Losses of the epochs, and the weights."""
    monkeypatch.setenv("TANDEM_MICRO_BATCHES", str(parts))
    keras.utils.set_random_seed(3)
    model = make()
    model.compile(keras.optimizers.SGD(0.05), loss, weighted_metrics=list(metrics))
    x, y = data or numbers()
    if dataset:
        x, y = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size), None
    history = model.fit(x, y, batch_size=None if dataset else batch_size, epochs=EPOCHS, shuffle=False, verbose=0, **fit).history
    return history, model.get_weights()


def numbers(rows=ROWS):
    random = np.random.RandomState(0)
    return random.rand(rows, 6).astype("float32"), random.rand(rows, 3).astype("float32")


def mlp():
    return keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="tanh", kernel_regularizer="l2", activity_regularizer="l2"), layers.Dense(3)])


def assert_close(one, other):
    for name in one[0]:
        np.testing.assert_allclose(one[0][name], other[0][name], rtol=1e-5, err_msg=name)
    for a, b in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


# 50 rows in batches of 20: 20 in 3 parts are 7, 7 and 6; the last 10 in 3 are 4, 4 and 2; in 7 they are 2 five times; 23 and 4 rows have one row left, or none.
@pytest.mark.parametrize("parts", [2, 3, 7, 64])
@pytest.mark.parametrize("batch_size", [20, 23])
def test_any_number_of_rows(parts, batch_size, monkeypatch):
    assert_close(trained(mlp, parts, monkeypatch, batch_size), trained(mlp, 1, monkeypatch, batch_size))


@pytest.mark.parametrize("rows, most, found", [(20, 3, (7, 2, 6)), (31, 4, (8, 3, 7)), (4, 8, (1, 4, 0)), (64, 4, (16, 4, 0)), (10, 4, (3, 3, 1)), (1, 2, (1, 1, 0))])
def test_every_row_is_in_one_part(rows, most, found):
    from keras_tandem.src.micro_batches import _Parts

    parts = _Parts(rows, most)
    assert (parts.each, parts.count, parts.rest) == found
    x = np.arange(rows, dtype="float32").reshape(rows, 1)
    assert np.array_equal(np.asarray(parts.joined(parts.slices(tf.constant(x)), parts.last(tf.constant(x)))), x)


def test_weights_of_samples_and_classes(monkeypatch):
    weights = np.linspace(0, 3, ROWS).astype("float32")  # parts weigh differently
    assert_close(trained(mlp, 3, monkeypatch, sample_weight=weights), trained(mlp, 1, monkeypatch, sample_weight=weights))

    def classes():
        return keras.Sequential([layers.Input((6,)), layers.Dense(4)])

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    data = numbers()[0], np.arange(ROWS) // 13
    how = {"data": data, "loss": loss, "metrics": ["accuracy"], "class_weight": {0: 0.1, 1: 5.0, 2: 1.0, 3: 2.0}}
    assert_close(trained(classes, 4, monkeypatch, **how), trained(classes, 1, monkeypatch, **how))


def test_batches_of_a_dataset(monkeypatch):
    assert_close(trained(mlp, 3, monkeypatch, dataset=True), trained(mlp, 1, monkeypatch))


def test_dropout_trains_and_is_the_same_each_time(monkeypatch):
    def dropped():
        return keras.Sequential([layers.Input((6,)), layers.Dense(16, activation="relu"), layers.Dropout(0.4, seed=7), layers.Dense(3)])

    one, other = (trained(dropped, 3, monkeypatch) for _ in range(2))
    assert one[0] == other[0]
    assert all(np.array_equal(a, b) for a, b in zip(one[1], other[1], strict=True))
    assert one[0]["loss"][1] < one[0]["loss"][0]
    # Each part drops something else: it takes a seed of its own.
    taken = []
    for parts in (1, 2):
        monkeypatch.setenv("TANDEM_MICRO_BATCHES", str(parts))
        dropout = layers.Dropout(0.5, seed=1)
        model = keras.Sequential([layers.Input((6,)), dropout, layers.Dense(3)])
        model.compile("sgd", "mse")
        before = dropout.seed_generator.state.numpy()
        model.fit(*numbers(8), batch_size=8, verbose=0)
        taken.append(int((dropout.seed_generator.state.numpy() - before).sum()))
    assert taken[0] > 0 and taken[1] == 2 * taken[0]


def masked(returns_sequences):
    def make():
        return keras.Sequential([layers.Input((5,)), layers.Embedding(9, 4, mask_zero=True), layers.LSTM(3, return_sequences=returns_sequences)])

    return make


def words():
    random = np.random.RandomState(1)
    return random.randint(1, 9, (ROWS, 5)) * (np.arange(5) < random.randint(1, 6, (ROWS, 1)))


def test_a_masked_loss_is_no_mean_of_the_parts(monkeypatch):
    data = words(), np.random.RandomState(2).rand(ROWS, 5, 3).astype("float32")
    with pytest.raises(ValueError, match="cannot be cut: its output has a mask, and a loss is a mean over what the masks of the whole batch leave"):
        trained(masked(True), 2, monkeypatch, data=data)
    # A mask that ends inside of the model is no matter of the loss.
    data = words(), np.random.RandomState(2).rand(ROWS, 3).astype("float32")
    assert_close(trained(masked(False), 3, monkeypatch, data=data), trained(masked(False), 1, monkeypatch, data=data))


@keras.saving.register_keras_serializable("test_micro_batches")
class Centred(layers.Layer):
    def call(self, x):
        return x - ops.mean(x, axis=0)


def whole_batch(y, p):
    return ops.sqrt(ops.mean(ops.square(y - p)))


def refusal(made, loss="mse", is_asked=False):
    from keras_tandem.src import micro_batches

    model = keras.Sequential(made) if isinstance(made, list) else made
    model.compile("sgd", loss)
    return micro_batches.why_not(model, is_asked)


def test_what_may_look_at_the_whole_batch_is_not_cut_unless_asked():
    i = layers.Input((6,))
    assert refusal(mlp()) is None
    assert refusal(keras.Model(i, layers.Dense(6)(i) + ops.relu(i))) is None
    assert "centred is not one of Keras's own layers" in refusal([i, Centred(name="centred")])
    assert refusal([i, Centred()], is_asked=True) is None
    assert "anything is not one of Keras's own layers" in refusal([i, layers.Lambda(lambda x: x - ops.mean(x), name="anything")])
    assert "may compute with the whole batch" in refusal(keras.Model(i, i - ops.mean(i, axis=0)))
    assert "the loss is not one of Keras's own" in refusal(mlp(), whole_batch)
    assert refusal(mlp(), whole_batch, is_asked=True) is None
    for is_asked in (False, True):
        assert refusal([i, layers.BatchNormalization(name="bn")], is_asked=is_asked) == "the layer bn computes with the whole batch"
        assert refusal([i, layers.Softmax(axis=0, name="s")], is_asked=is_asked) == "the layer s computes with the whole batch"
        assert refusal(mlp(), keras.losses.Dice(), is_asked) == "the loss dice is no mean over the batch"
        assert refusal(mlp(), keras.losses.MeanSquaredError(reduction="sum"), is_asked) == "a loss with reduction='sum' is no mean over the batch"
