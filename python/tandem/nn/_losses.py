"""Losses of tf.nn."""
import numpy as np

from tandem._algorithms import ctc
from tandem._arrays import _needs_data, cast, concat, expand_dims, reshape
from tandem._face import api, convert, float_tensor, ints, ops, tensor

__all__ = [
    "collapse_repeated", "compute_accidental_hits", "compute_average_loss", "ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss", "ctc_unique_labels",
    "l2_loss", "log_poisson_loss", "nce_loss", "sampled_softmax_loss", "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits", "weighted_cross_entropy_with_logits",
]  # fmt: skip


def _same_shape(labels, logits):
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(f"`logits` and `labels` must have the same shape, received ({logits.shape} vs {labels.shape}).")


@api
def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    logits = float_tensor(logits, "softmax_cross_entropy_with_logits")
    labels = cast(tensor(labels), logits.dtype)
    if labels.shape != logits.shape:
        dims = ops.add(labels, logits).dims
        labels, logits = ops.broadcast_to(labels, shape=dims), ops.broadcast_to(logits, shape=dims)
    made = ops.softmax_crossentropy(labels, logits, axis=axis)
    if 0 in logits.dims:
        return made
    # TensorFlow's gradient is softmax - labels also for labels that do not sum to 1, where it is not that of the value.
    free = ops.stop_gradient(ops.subtract(ops.sum(labels, axis=[axis]), 1.0))
    size = ops.logsumexp(logits, axis=[axis])
    return ops.add(made, ops.multiply(free, ops.subtract(ops.stop_gradient(size), size)))


@api
def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    logits, labels = float_tensor(logits, "sparse_softmax_cross_entropy_with_logits"), tensor(labels)
    if logits.ndim != labels.ndim + 1:
        raise ValueError(
            f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape={labels.shape} of rank "
            f"{labels.ndim} and logits.shape={logits.shape} of rank {logits.ndim}"
        )
    return ops.sparse_softmax_crossentropy(labels, logits)


@api
def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    logits = float_tensor(logits, "sigmoid_cross_entropy_with_logits")
    labels = tensor(labels, logits.dtype)
    _same_shape(labels, logits)
    return ops.sigmoid_crossentropy(labels, logits)


@api
def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None):
    logits = float_tensor(logits, "weighted_cross_entropy_with_logits")
    labels, weight = tensor(labels, logits.dtype), tensor(pos_weight, None, logits.dtype)
    _same_shape(labels, logits)
    factor = (weight - 1.0) * labels + 1.0
    return (1.0 - labels) * logits + factor * (ops.log1p(ops.exp(-ops.absolute(logits))) + ops.relu(-logits))


@api
def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None):
    log_input = float_tensor(log_input, "log_poisson_loss")
    targets = tensor(targets, log_input.dtype)
    loss = ops.exp(log_input) - log_input * targets
    if compute_full_loss:
        stirling = targets * ops.log(targets) - targets + ops.log(targets * float(2 * np.pi)) * 0.5
        inside = ops.logical_and(ops.greater_equal(targets, 0.0), ops.less_equal(targets, 1.0))
        loss = loss + ops.where(inside, 0.0, stirling)
    return loss


@api
def l2_loss(t, name=None):
    return ops.multiply(ops.sum(ops.square(tensor(t))), 0.5)


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    from tandem import distribute

    loss = tensor(per_example_loss)
    loss = loss if loss.dtype.is_floating else cast(loss, "float32")
    if sample_weight is not None:
        weight = cast(tensor(sample_weight), loss.dtype)
        loss = loss * (reshape(weight, [*weight.dims] + [1] * (loss.ndim - weight.ndim)) if weight.ndim < loss.ndim else weight)
    if global_batch_size is None:
        global_batch_size = loss.shape[0] * distribute.get_strategy().num_replicas_in_sync
    return ops.divide(ops.sum(loss), cast(tensor(global_batch_size), loss.dtype))


# --- many classes ---------------------------------------------------------------------------------------------------------------


def _sampled_logits(weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, subtract, hits):
    from tandem import random

    weights = ops.concatenate([tensor(w) for w in weights], axis=0) if isinstance(weights, (list, tuple)) else tensor(weights)
    biases, inputs, labels = tensor(biases), tensor(inputs), cast(tensor(labels), "int64")
    labels = labels if labels.ndim == 2 else expand_dims(labels, -1)
    if sampled_values is None:
        sampled_values = random.log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes)
    sampled, true_expected, sampled_expected = [ops.stop_gradient(tensor(x)) for x in sampled_values]
    true_logits = ops.sum(
        ops.multiply(expand_dims(inputs, 1), ops.take(weights, labels, axis=0)), axis=[-1]
    ) + ops.take(biases, labels, axis=0)
    logits = ops.matmul(inputs, ops.take(weights, sampled, axis=0), transpose_y=True) + ops.take(biases, sampled, axis=0)
    if hits:  # a sample that is the label itself does not count
        same = ops.any(ops.equal(expand_dims(labels, -1), reshape(cast(sampled, "int64"), [1, 1, -1])), axis=[1])
        logits = ops.where(same, convert(np.float32(np.finfo(np.float32).min)), logits)
    if subtract:
        true_logits, logits = true_logits - ops.log(true_expected), logits - ops.log(sampled_expected)
    made = concat([true_logits, logits], 1)
    goals = concat([ops.full(convert(1.0 / num_true), shape=true_logits.dims), ops.full(convert(0.0), shape=logits.dims)], 1)
    return made, goals


def nce_loss(
    weights,
    biases,
    labels,
    inputs,
    num_sampled,
    num_classes,
    num_true=1,
    sampled_values=None,
    remove_accidental_hits=False,
    name="nce_loss",
):
    logits, goals = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True, remove_accidental_hits
    )
    return ops.sum(ops.sigmoid_crossentropy(goals, logits), axis=[1])


def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None, remove_accidental_hits=True, seed=None,
                         name="sampled_softmax_loss"):  # fmt: skip
    logits, goals = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True, remove_accidental_hits
    )
    return ops.softmax_crossentropy(ops.stop_gradient(goals), logits)


def compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None):
    true, sampled = tensor(true_classes).numpy(), tensor(sampled_candidates).numpy()
    found = [(i, j) for i, row in enumerate(true) for j, s in enumerate(sampled) if s in row]
    rows, places = [i for i, _ in found], [j for _, j in found]
    weights = np.full(len(found), np.finfo(np.float32).min, np.float32)
    return convert(np.array(rows, np.int32)), convert(np.array(places, np.int64)), convert(weights)


# --- connectionist temporal classification --------------------------------------------------------------------------------------


@api
def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """-log p(labels | logits) by the forward recursion over the labels with blanks between them, in logarithms (Graves et al. 2006)."""
    from tandem._sparse import SparseTensor

    logits = float_tensor(logits, "ctc_loss")
    kind = logits.dtype
    logits = logits if logits_time_major else ops.swapaxes(logits, axis1=0, axis2=1)
    steps, batch, classes = logits.dims
    blank = (classes - 1 if isinstance(labels, SparseTensor) else 0) if blank_index is None else int(blank_index)
    blank = blank + classes if blank < 0 else blank
    if isinstance(labels, SparseTensor):
        from tandem import sparse

        at = labels.indices.numpy()
        label_length = np.bincount(at[:, 0], minlength=batch).astype(np.int32)
        labels = sparse.to_dense(labels, default_value=0)
    labels, label_length, logit_length = (cast(tensor(x), "int32") for x in (labels, label_length, logit_length))
    logits = logits if logits.dtype.size > 2 else cast(logits, "float32")
    return cast(ctc.loss(labels, ops.swapaxes(logits, axis1=0, axis2=1), label_length, logit_length, blank), kind)


def _decoded(paths):
    """[batch] lists of labels as a sparse tensor."""
    from tandem._sparse import SparseTensor

    places = [[i, j] for i, p in enumerate(paths) for j in range(len(p))]
    values = [v for p in paths for v in p]
    return SparseTensor(
        np.array(places, np.int64).reshape(-1, 2),
        convert(np.array(values, np.int64)),
        [len(paths), max(map(len, paths), default=0)],
    )


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    x, lengths = tensor(inputs), ints(sequence_length)
    if x.is_traced:
        raise _needs_data("tf.nn.ctc_greedy_decoder")
    array = x.numpy()
    blank = array.shape[2] - 1 if blank_index is None else blank_index % array.shape[2]
    paths, scores = [], []
    for b, n in enumerate(lengths):
        best = array[:n, b].argmax(-1)
        kept = [int(c) for t, c in enumerate(best) if not (merge_repeated and t and c == best[t - 1]) and c != blank]
        paths.append(kept)
        scores.append([-float(array[:n, b].max(-1).sum())])
    return (_decoded(paths),), convert(np.array(scores, np.float32))


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    x, lengths = tensor(inputs), ints(sequence_length)
    if x.is_traced:
        raise _needs_data("tf.nn.ctc_beam_search_decoder")
    logs = ops.log_softmax(cast(x, "float64")).numpy()
    blank = logs.shape[2] - 1
    all_paths, all_scores = [], []
    for b, n in enumerate(lengths):
        beams = {(): (0.0, -np.inf)}  # prefix -> (ends in a blank, ends in its last label)
        for t in range(n):
            found = {}

            def put(prefix, with_blank, with_label):
                old = found.get(prefix, (-np.inf, -np.inf))
                found[prefix] = (np.logaddexp(old[0], with_blank), np.logaddexp(old[1], with_label))

            for prefix, (pb, pl) in beams.items():
                total = np.logaddexp(pb, pl)
                put(prefix, total + logs[t, b, blank], -np.inf)
                for c in range(logs.shape[2] - 1):
                    score = logs[t, b, c]
                    if prefix and prefix[-1] == c:
                        put(prefix, -np.inf, pl + score)
                        put(prefix + (c,), -np.inf, pb + score)
                    else:
                        put(prefix + (c,), -np.inf, total + score)
            beams = dict(sorted(found.items(), key=lambda kv: -np.logaddexp(*kv[1]))[:beam_width])
        best = sorted(beams.items(), key=lambda kv: -np.logaddexp(*kv[1]))[:top_paths]
        all_paths.append([list(p) for p, _ in best])
        all_scores.append([float(np.logaddexp(*s)) for _, s in best])
    return [_decoded([p[k] for p in all_paths]) for k in range(top_paths)], convert(np.array(all_scores, np.float32))


def ctc_unique_labels(labels, name=None):
    array = tensor(labels).numpy()
    rows, index = [], np.zeros(array.shape, np.int32)
    for i, row in enumerate(array):
        order = {}
        for j, v in enumerate(row):
            index[i, j] = order.setdefault(int(v), len(order))
        rows.append(list(order) + [0] * (len(row) - len(order)))
    return convert(np.array(rows, array.dtype)), convert(index)


def collapse_repeated(labels, seq_length, name=None):
    array, lengths, kind = tensor(labels).numpy(), ints(seq_length), tensor(seq_length).dtype.as_numpy_dtype
    rows = [[v for j, v in enumerate(row[:n]) if j == 0 or v != row[j - 1]] for row, n in zip(array, lengths)]
    width = max(map(len, rows), default=0)
    made = np.array([r + [0] * (width - len(r)) for r in rows], array.dtype)
    return convert(made), convert(np.array([len(r) for r in rows], kind))
