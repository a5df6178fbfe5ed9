"""Rows of tables by number."""
import numpy as np

from tandem._arrays import cast, reshape
from tandem._convert import convert
from tandem._face import api, ops, tensor

__all__ = ["embedding_lookup", "embedding_lookup_sparse", "safe_embedding_lookup_sparse"]


def _table(params):
    if isinstance(params, (list, tuple)):
        if len(params) == 1:
            return tensor(params[0])
        # Rows are dealt out in turn.
        parts = [tensor(p) for p in params]
        rows = sum(p.shape[0] for p in parts)
        order = np.concatenate([np.arange(i, rows, len(parts))[: p.shape[0]] for i, p in enumerate(parts)])
        return ops.take(ops.concatenate(parts, axis=0), convert(np.argsort(order).astype(np.int32)), axis=0)
    return tensor(params)


def _limited(rows, max_norm):
    if max_norm is None:
        return rows
    length = ops.sqrt(ops.sum(ops.square(rows), axis=[-1], keepdims=True))
    return rows * ops.minimum(ops.divide(float(max_norm), ops.maximum(length, 1e-12)), 1.0)


@api
def embedding_lookup(params, ids, max_norm=None, name=None):
    from tandem._gather import gather

    if isinstance(params, (list, tuple)) and not params:
        raise ValueError("params should not be empty")
    return _limited(gather(_table(params), ids), max_norm)


def embedding_lookup_sparse(params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None, allow_fast_lookup=False):
    from tandem._ragged import RaggedTensor

    combiner = combiner or "mean"
    if combiner not in ("mean", "sum", "sqrtn"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    if isinstance(sp_ids, RaggedTensor):
        segments, count, ids = sp_ids.value_rowids(), len(sp_ids), sp_ids.values
        weights = None if sp_weights is None else sp_weights.values
    else:
        segments = sp_ids.indices[:, 0]
        count = int(segments.numpy().max(initial=-1)) + 1
        ids, weights = sp_ids.values, None if sp_weights is None else sp_weights.values
    rows = _limited(ops.take(_table(params), tensor(ids), axis=0), max_norm)
    segments = cast(segments, "int32")
    shares = ops.full(ops.cast(1, dtype=rows.dtype), shape=[rows.dims[0]]) if weights is None else cast(weights, rows.dtype)
    total = ops.segment_sum(rows * reshape(shares, [-1] + [1] * (rows.ndim - 1)), segments, segments=count)
    if combiner == "sum":
        return total
    size = ops.segment_sum(shares if combiner == "mean" else ops.square(shares), segments, segments=count)
    size = size if combiner == "mean" else ops.sqrt(size)
    return ops.divide_no_nan(total, reshape(size, [-1] + [1] * (total.ndim - 1)))


def safe_embedding_lookup_sparse(
    embedding_weights,
    sparse_ids,
    sparse_weights=None,
    combiner="mean",
    default_id=None,
    max_norm=None,
    name=None,
    allow_fast_lookup=False,
):
    """As embedding_lookup_sparse; numbers below zero and weights that are not positive are left out, rows without any give zeros."""
    from tandem import sparse
    from tandem._ragged import RaggedTensor

    if isinstance(sparse_ids, RaggedTensor):
        sparse_ids = sparse_ids.to_sparse()
        sparse_weights = None if sparse_weights is None else sparse_weights.to_sparse()
    keep = sparse_ids.values.numpy() >= 0
    if sparse_weights is not None and combiner != "sum":
        keep &= sparse_weights.values.numpy() > 0
    ids = sparse.retain(sparse_ids, convert(keep))
    weights = None if sparse_weights is None else sparse.retain(sparse_weights, convert(keep))
    ids, empty = sparse.fill_empty_rows(ids, default_id or 0)
    if weights is not None:
        weights, _ = sparse.fill_empty_rows(weights, 1.0)
    made = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    if default_id is None:
        made = ops.where(reshape(empty, [-1] + [1] * (made.ndim - 1)), ops.cast(0, dtype=made.dtype), made)
    return made
