"""A training step that computes its gradients in parts of the batch, one after the other, and updates once: less memory, other rounding.

Used when it is asked for (TANDEM_MICRO_BATCHES), or when a step fits into a device's memory in no other way. The loss has to be a mean over the batch, and nothing
in the model may look at the whole batch, as batch normalisation does. What is known about both comes from the model: of Keras's own layers and losses it is known
which do, and what is somebody's own is believed not to only when parts are asked for.
"""
import os

from keras.src import layers, losses, tree
from keras.src.backend.common.masking import get_keras_mask
from keras.src.trainers.data_adapters import data_adapter_utils

from keras_tandem.src.ops.core import shape
from keras_tandem.src.ops.numpy import concatenate, reshape, zeros
from keras_tandem.src.tape import GradientTape
from tandem import _core

PARTS = (2, 4, 8, 16, 32, 64)  # tried when nothing else fits
_LOOKS_AT_THE_BATCH = (layers.BatchNormalization, layers.SpectralNormalization)
_MEANS = ("sum_over_batch_size", "mean")
_LOSSES_OVER_THE_BATCH = ("dice", "tversky", "circle")  # functions that compare rows with each other, or divide sums over all of them
# Functions in a functional model that compute each row from the same row of their operands.
_BY_ROW = frozenset(
    "Absolute Add Cast Ceil Clip Cos Divide DivideNoNan Elu Exp Expm1 Floor Gelu HardSigmoid HardSilu LeakyRelu Log Log1p LogSigmoid Maximum Minimum Multiply "
    "Negative Power Reciprocal Relu Relu6 Rsqrt Selu Sigmoid Sign Silu Sin Softplus Softsign Sqrt Square Subtract Tanh TrueDivide Where".split()
)


class CannotBeCut(ValueError):
    """Parts of the batches would not add up to the whole."""

    def __init__(self, trainer, reason):
        super().__init__(f"the batches of {trainer.name} cannot be cut: {reason}")

    def explain(self, refused):
        """Says so where a step was refused that might have fitted in parts."""
        if hasattr(refused, "add_note"):  # since Python 3.11
            refused.add_note(str(self))


def asked():
    """Into how many parts, by the environment; 0: not asked for, and only when nothing else fits; 1: never."""
    text = os.environ.get("TANDEM_MICRO_BATCHES", "") or "0"
    if not text.isdecimal():
        raise ValueError(f'TANDEM_MICRO_BATCHES: "{text}" is not a whole number')
    return int(text)


def _is_keras(kind):
    return kind.__module__.partition(".")[0] == "keras"


def _why_not_layer(layer, is_asked):
    axis = getattr(layer, "axis", None)
    if isinstance(layer, _LOOKS_AT_THE_BATCH) or 0 in (axis if isinstance(axis, (list, tuple)) else [axis]):
        return f"the layer {layer.name} computes with the whole batch"
    if getattr(layer, "stateful", False):
        return f"the layer {layer.name} keeps a state for each row of the batch"
    if is_asked:
        return None
    if not _is_keras(type(layer)) or isinstance(layer, layers.Lambda):
        return f"{layer.name} is not one of Keras's own layers, and may compute with the whole batch; TANDEM_MICRO_BATCHES=N says that it does not"
    for operation in getattr(layer, "operations", ()):  # of a functional model
        if not isinstance(operation, layers.Layer) and type(operation).__name__ not in _BY_ROW:
            return f"the function {operation.name} may compute with the whole batch; TANDEM_MICRO_BATCHES=N says that it does not"
    return None


def _why_not_loss(loss, is_asked):
    reduction = getattr(loss, "reduction", "sum_over_batch_size")
    if reduction not in _MEANS:
        return f"a loss with reduction='{reduction}' is no mean over the batch"
    made = losses.get(loss)
    computes = getattr(made, "fn", made)
    if _is_keras(type(made) if computes is made and isinstance(made, losses.Loss) else computes):
        name = getattr(computes, "__name__", "")
        return f"the loss {name} is no mean over the batch" if name in _LOSSES_OVER_THE_BATCH else None
    return None if is_asked else "the loss is not one of Keras's own, and may be no mean over the batch; TANDEM_MICRO_BATCHES=N says that it is"


def why_not(trainer, is_asked):
    """Why the batches of this model cannot be cut; None when they can. Masks are only known where the step is traced."""
    compiled = getattr(trainer, "_compile_loss", None)
    if compiled is None:
        return "there is no loss"
    reasons = [_why_not_layer(layer, is_asked) for layer in trainer._flatten_layers()]
    reasons += [_why_not_loss(loss, is_asked) for loss in tree.flatten(compiled._user_loss) if loss is not None]
    return next((reason for reason in reasons if reason), None)


class _Parts:
    """Slices of `rows` rows: so many of the same size, at most `most`, and one with the rows that are left."""

    def __init__(self, rows, most):
        if not isinstance(rows, int):
            raise ValueError("micro-batches: the number of rows has to be known when the step is traced")
        self.rows, self.each = rows, -(-rows // most)
        self.count = rows // self.each
        self.rest = rows - self.count * self.each

    def slices(self, leaf):
        return reshape(leaf[: self.count * self.each] if self.rest else leaf, (self.count, self.each, *shape(leaf)[1:]))

    def last(self, leaf):
        return leaf[self.count * self.each :]

    def mean(self, total, last):
        """Of all rows, from the sum of the slices' means and the mean of the rows that are left."""
        return total * (self.each / self.rows) + last * (self.rest / self.rows) if self.rest else total / self.count

    def joined(self, stacked, last):
        whole = reshape(stacked, (self.count * self.each, *shape(stacked)[2:]))
        return concatenate([whole, last]) if self.rest else whole


def train_step(trainer, data, most):
    """What Trainer.train_step does, with the gradients of at most `most` slices of the batch summed up by a loop."""
    x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
    leaves = [leaf for leaf in tree.flatten((x, y, sample_weight)) if leaf is not None]
    parts = _Parts(shape(leaves[0])[0], most)
    weights = trainer.trainable_weights
    known = {}  # the same for each slice

    def gradients_of(values):
        given = iter(values)
        part = tree.map_structure(lambda leaf: None if leaf is None else next(given), (x, y, sample_weight))
        with GradientTape() as tape:
            y_pred = trainer._predicted(part[0], training=True)
            if any(get_keras_mask(p) is not None for p in tree.flatten(y_pred)):
                raise CannotBeCut(trainer, "its output has a mask, and a loss is a mean over what the masks of the whole batch leave")
            loss = trainer._compute_loss(x=part[0], y=part[1], y_pred=y_pred, sample_weight=part[2], training=True)
            scaled = trainer.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, weights)
        known.update(has_gradient=[g is not None for g in gradients], predicted=y_pred)
        return loss, [zeros(w.shape, w.dtype) if g is None else g for g, w in zip(gradients, weights)], tree.flatten(y_pred)

    def body(sums, values):
        loss, gradients, predicted = gradients_of(values)
        has_gradient = [True, *known["has_gradient"]]
        return [s + g if has else s for s, g, has in zip(sums, [loss, *gradients], has_gradient)], predicted

    start = [zeros((), "float32"), *[zeros(w.shape, w.dtype) for w in weights]]
    sums, predicted = _core.scan(body, start, [parts.slices(leaf) for leaf in leaves], None, False)
    last, last_predicted = [0] * len(sums), [None] * len(predicted)
    if parts.rest:
        loss, gradients, last_predicted = gradients_of([parts.last(leaf) for leaf in leaves])
        last = [loss, *gradients]
    loss, *gradients = [parts.mean(s, l) for s, l in zip(sums, last)]
    y_pred = tree.pack_sequence_as(known["predicted"], [parts.joined(p, l) for p, l in zip(predicted, last_predicted)])
    trainer._track_loss(loss, x)
    trainer.optimizer.apply_gradients((g if has else None, w) for g, has, w in zip(gradients, known["has_gradient"], weights))
    return trainer.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
