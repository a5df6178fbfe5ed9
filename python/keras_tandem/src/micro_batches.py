"""A training step that computes its gradients in parts of the batch, one after the other, and updates once: less memory, other rounding.

Used when it is asked for (TANDEM_MICRO_BATCHES), or when a step fits into a device's memory in no other way. The loss has to be a mean over the batch, and nothing
in the model may look at the whole batch, as batch normalisation does; what is known about both comes from the model, never from the graph.
"""
import os

from keras.src import layers, tree
from keras.src.trainers.data_adapters import data_adapter_utils

from keras_tandem.src.ops.core import convert_to_tensor, shape
from keras_tandem.src.ops.numpy import reshape, zeros
from keras_tandem.src.tape import GradientTape
from tandem import _core

_PARTS = (2, 4, 8, 16, 32, 64)  # tried when nothing else fits
_LOOKS_AT_THE_BATCH = (layers.BatchNormalization, layers.SpectralNormalization)
_MEANS = ("sum_over_batch_size", "mean")


def asked():
    """Into how many parts, by the environment; 0: not asked for, and only when nothing else fits; 1: never."""
    text = os.environ.get("TANDEM_MICRO_BATCHES", "") or "0"
    if not text.isdecimal():
        raise ValueError(f'TANDEM_MICRO_BATCHES: "{text}" is not a whole number')
    return int(text)


def is_too_large(error):
    """Whether a step was refused before it began, because no plan fits."""
    return "it does not fit into" in str(error)


def why_not(trainer):
    """Why the batches of this model cannot be cut; None when they can."""
    for layer in trainer._flatten_layers():
        if isinstance(layer, _LOOKS_AT_THE_BATCH):
            return f"the layer {layer.name} computes with the whole batch"
    compiled = getattr(trainer, "_compile_loss", None)
    if compiled is None:
        return "there is no loss"
    for loss in tree.flatten(compiled._user_loss):
        reduction = getattr(loss, "reduction", "sum_over_batch_size")
        if reduction not in _MEANS:
            return f"a loss with reduction='{reduction}' is no mean over the batch"
    return None


def parts_for(rows, most):
    """The most parts of the same size, not more than asked for."""
    if not isinstance(rows, int):
        raise ValueError("micro-batches: the number of rows has to be known when the step is traced")
    return max(d for d in range(1, min(most, rows) + 1) if rows % d == 0)


def to_try(rows):
    return [n for n in _PARTS if n <= rows and rows % n == 0]


def train_step(trainer, data, parts):
    """What Trainer.train_step does, with the gradients of `parts` slices summed up by a loop."""
    x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
    leaves = [leaf for leaf in tree.flatten((x, y, sample_weight)) if leaf is not None]
    rows = shape(leaves[0])[0]
    parts = parts_for(rows, parts)
    slices = [reshape(leaf, (parts, rows // parts, *shape(leaf)[1:])) for leaf in leaves]
    weights = trainer.trainable_weights
    packed = []

    def body(sums, values):
        given = iter(values)
        part = tree.map_structure(lambda leaf: None if leaf is None else next(given), (x, y, sample_weight))
        with GradientTape() as tape:
            y_pred = trainer._predicted(part[0], training=True)
            loss = trainer._compute_loss(x=part[0], y=part[1], y_pred=y_pred, sample_weight=part[2], training=True)
            scaled = trainer.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, weights)
        packed.append([g is not None for g in gradients])
        new = [s if g is None else s + g for s, g in zip(sums, [None, *gradients])]
        new[0] = sums[0] + loss
        packed.append(y_pred)
        return new, tree.flatten(y_pred)

    start = [zeros((), "float32"), *[zeros(w.shape, w.dtype) for w in weights]]
    sums, predicted = _core.scan(body, start, slices, None, False)
    has_gradient, y_pred = packed[-2], packed[-1]
    y_pred = tree.pack_sequence_as(y_pred, [reshape(p, (rows, *shape(p)[2:])) for p in predicted])
    trainer._track_loss(sums[0] / parts, x)
    gradients = [s / parts if has else None for s, has in zip(sums[1:], has_gradient)]
    trainer.optimizer.apply_gradients(zip(gradients, weights))
    return trainer.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

