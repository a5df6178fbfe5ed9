"""Sums and the like over groups of rows, and counting."""
import numpy as np

from tandem import errors
from tandem._arrays import _needs_data, cast, reshape
from tandem._dtypes import as_dtype
from tandem._face import Composite, api, convert, number, ops, tensor
from tandem._face import count as extent_of


def _segments_of(ids, what):
    if ids.is_traced:
        raise _needs_data(what)
    values = ids.numpy()
    if values.size and np.any(np.diff(values) < 0):
        raise errors.InvalidArgumentError(None, None, f"{what}: segment ids are not increasing")
    if values.size and values.min() < 0:
        raise errors.InvalidArgumentError(None, None, f"{what}: segment ids must be >= 0")
    return int(values[-1]) + 1 if values.size else 0


def _reduced(how, data, ids, count):
    """Groups without rows: 0, or the neutral number of the reduction."""
    if ids.ndim > 1:
        data, ids = reshape(data, [-1, *data.dims[ids.ndim :]]), reshape(ids, [-1])
    ids = cast(ids, "int32")
    if how == "mean":
        total = _reduced("sum", data, ids, count)
        sizes = ops.maximum(_sizes(ids, count, total), 1)
        return ops.cast(
            ops.truncate_divide(total, sizes) if data.dtype.is_integer else ops.divide(total, ops.cast(sizes, dtype=total.dtype)),
            dtype=data.dtype,
        )
    if how == "sqrt_n":
        total = _reduced("sum", data, ids, count)
        return ops.divide(total, ops.sqrt(ops.cast(ops.maximum(_sizes(ids, count, total), 1), dtype=total.dtype)))
    if how == "prod" and isinstance(count, int) and data.dtype.is_floating:
        return _product(data, ids, count)
    if not isinstance(count, int):  # an extent of the trace
        limits = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf} if data.dtype.is_floating else {"sum": 0, "prod": 1, "max": data.dtype.min, "min": data.dtype.max}
        base = ops.full(convert(np.array(limits[how], data.dtype.as_numpy_dtype)), shape=[count, *data.dims[1:]])
        mode = {"sum": "add", "prod": "mul"}.get(how, how)
        return ops.scatter(base, ops.expand_dims(ids, axis=[1]), data, mode=mode)
    made = getattr(ops, "segment_" + how)(data, ids, segments=count)
    return made if made.dtype is data.dtype else ops.cast(made, dtype=data.dtype)


def _product(data, ids, count):
    """A product's gradient is what the others of its group give: the product by the factor, or where that is the only 0 that of the others."""
    from tandem._gradient import custom_gradient

    @custom_gradient
    def product(data):
        made = ops.segment_prod(data, ids, segments=count)

        def backward(g):
            none = ops.equal(data, 0)
            filled = ops.where(none, ops.cast(1, dtype=data.dtype), data)
            zeros = ops.take(ops.segment_sum(ops.cast(none, dtype="int32"), ids, segments=count), ids, axis=0)
            others = ops.take(ops.segment_prod(filled, ids, segments=count), ids, axis=0)
            share = ops.where(ops.equal(zeros, ops.cast(none, dtype="int32")), ops.divide(others, filled), ops.cast(0, dtype=data.dtype))
            return ops.multiply(ops.take(g, ids, axis=0), share)

        return made, backward

    return product(data)


def _sizes(ids, count, like):
    sizes = _reduced("sum", ops.full(convert(1), shape=ids.dims), ids, count)
    return reshape(sizes, [count] + [1] * (like.ndim - 1))


def _sorted(how):
    @api
    def segment(data, segment_ids, name=None):
        data, ids = tensor(data), tensor(segment_ids)
        count = _segments_of(ids, f"segment_{how}")
        made = _reduced(how, data, ids, count)
        if how in ("max", "min", "prod") and count:
            empty = np.setdiff1d(np.arange(count), ids.numpy())
            if len(empty):  # a group without rows gives 0, for prod 1
                hole = np.isin(np.arange(count), empty).reshape([-1] + [1] * (made.ndim - 1))
                made = ops.where(convert(hole), convert(np.array(how == "prod", made.dtype.as_numpy_dtype)), made)
        return made

    segment.__name__ = "segment_" + how
    return segment


def _unsorted(how):
    @api
    def segment(data, segment_ids, num_segments, name=None):
        data, ids, count = tensor(data), tensor(segment_ids), extent_of(num_segments)
        if not ids.is_traced and isinstance(count, int) and ids.shape.num_elements() and ids.numpy().max() >= count:
            raise errors.InvalidArgumentError(None, None, f"segment_ids = {ids.numpy().max()} is out of range [0, {count})")
        flat_ids = reshape(ids, [-1])
        rows = reshape(data, [-1, *data.dims[ids.ndim :]])
        # Negative numbers are left out: they go to one more group, which is cut off.
        flat_ids = ops.where(ops.less(flat_ids, 0), count, flat_ids)
        if data.dtype.is_integer and how == "mean":  # TensorFlow divides as Python does here, and not in segment_mean
            total = _reduced("sum", rows, flat_ids, count + 1)[:count]
            return total / cast(ops.maximum(_sizes(cast(flat_ids, "int32"), count + 1, total)[:count], 1), data.dtype)
        made = _reduced(how, rows, flat_ids, count + 1)[:count]
        if how in ("max", "min"):
            sizes = _sizes(cast(flat_ids, "int32"), count + 1, made)[:count]
            limit = data.dtype.min if how == "max" else data.dtype.max
            made = ops.where(ops.greater(sizes, 0), made, convert(np.array(limit, data.dtype.as_numpy_dtype)))
        return made

    segment.__name__ = "unsorted_segment_" + how
    return segment


segment_sum, segment_mean, segment_max, segment_min, segment_prod = [
    _sorted(how) for how in ("sum", "mean", "max", "min", "prod")
]
unsorted_segment_sum, unsorted_segment_mean, unsorted_segment_max = [_unsorted(how) for how in ("sum", "mean", "max")]
unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sqrt_n = [_unsorted(how) for how in ("min", "prod", "sqrt_n")]


def bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output):
    from tandem._ragged import RaggedTensor
    from tandem._sparse import SparseTensor

    out = as_dtype(dtype)
    if isinstance(arr, (RaggedTensor, SparseTensor)) and axis is None:
        if weights is not None:
            weights = weights.values if isinstance(weights, Composite) else weights
        arr = arr.flat_values if isinstance(arr, RaggedTensor) else arr.values
    if isinstance(arr, (RaggedTensor, SparseTensor)):
        rows = [r for r in (arr.to_list() if isinstance(arr, RaggedTensor) else _sparse_rows(arr))]
        given = None if weights is None else [
            r for r in (weights.to_list() if isinstance(weights, RaggedTensor) else _sparse_rows(weights))
        ]
        return _rows_counted(rows, given, minlength, maxlength, out if given is None else weights.dtype, binary_output)
    x = tensor(arr)
    if x.is_traced:
        raise _needs_data("tf.math.bincount")
    values = x.numpy()
    if values.size and values.min() < 0:
        raise errors.InvalidArgumentError(None, None, "Input must be non-negative")
    if axis in (-1, 1) and values.ndim == 2:
        given = None if weights is None else tensor(weights).numpy().tolist()
        return _rows_counted(
            values.tolist(), given, minlength, maxlength, out if given is None else tensor(weights).dtype, binary_output
        )
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    flat = values.reshape(-1)
    shares = None if weights is None else tensor(weights).numpy().reshape(-1)
    made = _counts(flat, shares, _length(flat, minlength, maxlength), binary_output)
    return convert(made, out if weights is None else tensor(weights).dtype)


def _sparse_rows(s):
    rows = [[] for _ in range(int(s.dense_shape.numpy()[0]))]
    for (row, *_), value in zip(s.indices.numpy().tolist(), s.values.numpy().tolist()):
        rows[row].append(value)
    return rows


def _length(flat, minlength, maxlength):
    length = int(flat.max()) + 1 if len(flat) else 0
    length = max(length, int(number(minlength))) if minlength is not None else length
    return min(length, int(number(maxlength))) if maxlength is not None else length


def _counts(flat, shares, length, binary):
    keep = flat < length
    flat = flat[keep].astype(np.int64)
    if binary:
        return (np.bincount(flat, minlength=length) > 0).astype(np.int64)
    return np.bincount(flat, None if shares is None else shares[keep], minlength=length)


def _rows_counted(rows, shares, minlength, maxlength, dtype, binary):
    flat = np.array([v for r in rows for v in r], np.int64)
    length = _length(flat, minlength, maxlength)
    made = [_counts(np.array(r, np.int64), None if shares is None else np.array(shares[i]), length, binary) for i, r in enumerate(rows)]
    return convert(np.array(made).reshape(len(rows), length), dtype)
