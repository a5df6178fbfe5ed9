"""tf.ragged."""
import numpy as np

from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._face import any_tensor, number
from tandem._ragged import RaggedTensor
from tandem._ragged_ops import boolean_mask as _boolean_mask
from tandem._ragged_ops import stack as _stack

int64 = as_dtype("int64")


def _depth(x):
    """How deep lists are nested; numbers, texts and empty lists end it."""
    if isinstance(x, np.ndarray):
        return x.ndim
    if not isinstance(x, (list, tuple)):
        return 0
    return 1 + max((_depth(i) for i in x), default=0)


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=int64):
    """A ragged tensor of nested lists."""
    kind = as_dtype(row_splits_dtype).as_numpy_dtype
    depth = _depth(pylist)
    if depth == 0:
        if ragged_rank or inner_shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        return any_tensor(pylist, dtype)
    if inner_shape is not None:
        inner_rank = len(tuple(inner_shape)) if not isinstance(inner_shape, int) else 1
        rank = depth - 1 - inner_rank if ragged_rank is None else ragged_rank
    else:
        rank = depth - 1 if ragged_rank is None else ragged_rank
    if rank >= depth or rank < 0:
        raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")

    def build(rows, left):
        if left == 0:
            array = any_tensor(list(rows), dtype) if len(rows) or dtype is not None else convert(np.zeros(0, np.float32))
            if not len(rows) and inner_shape is not None:
                from tandem import _arrays

                array = _arrays.zeros([0, *([inner_shape] if isinstance(inner_shape, int) else inner_shape)], dtype or "float32")
            return array
        for row in rows:
            if not isinstance(row, (list, tuple, np.ndarray)):
                raise ValueError("all scalar values must have the same nesting depth")
        lengths = [len(r) for r in rows]
        flat = [item for row in rows for item in row]
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(kind) if lengths else np.zeros(1, kind)
        return RaggedTensor(build(flat, left - 1), splits, internal=True)

    if _uneven(pylist, depth):
        raise ValueError("all scalar values must have the same nesting depth")
    return build(list(pylist), rank)


def _uneven(x, depth):
    if not isinstance(x, (list, tuple)):
        return depth != 0 and not isinstance(x, np.ndarray)
    return any(_uneven(i, depth - 1) for i in x)


def stack(values, axis=0, name=None):
    values = list(values)
    made = _stack(values, axis)
    if not isinstance(made, RaggedTensor) and made.ndim > 1:
        made = RaggedTensor.from_tensor(made)
    return made


def range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=int64):
    if limits is None:
        starts, limits = 0, starts
    starts, limits, deltas = any_tensor(starts), any_tensor(limits), any_tensor(deltas)
    kind = as_dtype(dtype) if dtype is not None else max(
        (starts.dtype, limits.dtype, deltas.dtype), key=lambda t: (t.is_floating, t.size)
    )
    a, b, d = np.broadcast_arrays(np.atleast_1d(starts.numpy()), np.atleast_1d(limits.numpy()), np.atleast_1d(deltas.numpy()))
    rows = [np.arange(x, y, z).astype(kind.as_numpy_dtype) for x, y, z in zip(a, b, d)]
    values = np.concatenate(rows) if rows else np.zeros(0, kind.as_numpy_dtype)
    return RaggedTensor.from_row_lengths(
        convert(values), convert(np.array([len(r) for r in rows], as_dtype(row_splits_dtype).as_numpy_dtype))
    )


def boolean_mask(data, mask, name=None):
    from tandem._ragged import RaggedTensor as R

    data = data if isinstance(data, R) else any_tensor(data) if not isinstance(data, list) or not _is_ragged_list(data) else constant(data)
    mask = mask if isinstance(mask, R) else constant(mask) if isinstance(mask, list) and _is_ragged_list(mask) else mask
    return _boolean_mask(data, mask)


def _is_ragged_list(x):
    try:
        any_tensor(x)
        return False
    except ValueError:
        return True


def map_flat_values(op, *args, **kwargs):
    found = [x for x in [*args, *kwargs.values()] if isinstance(x, RaggedTensor)]
    if not found:
        return op(*args, **kwargs)

    def flat(x):
        return x.flat_values if isinstance(x, RaggedTensor) else x

    made = op(*[flat(a) for a in args], **{k: flat(v) for k, v in kwargs.items()})
    made = any_tensor(made)
    if made.shape[0] != found[0].flat_values.shape[0]:
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as flat_values of "
            "any ragged inputs."
        )
    return found[0].with_flat_values(made)


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    array = any_tensor(splits).numpy()
    kind = (array.dtype if hasattr(splits, "dtype") else np.int64) if out_type is None else as_dtype(out_type).as_numpy_dtype
    return convert(np.repeat(np.arange(len(array) - 1), np.diff(array)).astype(kind))


def segment_ids_to_row_splits(segment_ids, num_segments=None, out_type=None, name=None):
    ids = any_tensor(segment_ids)
    array = ids.numpy()
    count = (int(array[-1]) + 1 if len(array) else 0) if num_segments is None else int(number(num_segments))
    kind = (
        np.int64 if not hasattr(segment_ids, "dtype") else array.dtype
    ) if out_type is None else as_dtype(out_type).as_numpy_dtype
    return convert(np.concatenate([[0], np.cumsum(np.bincount(array, minlength=count)[:count])]).astype(kind))


def stack_dynamic_partitions(data, partitions, num_partitions, name=None):
    from tandem._ragged import _merged, _pick

    data = data if isinstance(data, RaggedTensor) else any_tensor(data)
    parts, count = any_tensor(partitions).numpy() if not isinstance(
        partitions, RaggedTensor
    ) else partitions.flat_values.numpy(), int(number(num_partitions))
    if isinstance(partitions, RaggedTensor):
        data = data.flat_values
    elif parts.ndim > 1:
        data = _merged(data, 0, parts.ndim - 1)
    flat = parts.reshape(-1)
    order = np.argsort(flat, kind="stable")
    return RaggedTensor.from_row_lengths(
        _pick(data, order.astype(np.int64)), convert(np.bincount(flat, minlength=count).astype(np.int64))
    )


def cross(inputs, name=None):
    """All combinations of a row's features, joined by _X_."""
    import itertools

    rows = []
    for i in np.arange(len(inputs[0]) if isinstance(inputs[0], RaggedTensor) else any_tensor(inputs[0]).shape[0]):
        columns = []
        for x in inputs:
            values = (x.to_list() if isinstance(x, RaggedTensor) else np.asarray(any_tensor(x).numpy()).tolist())[int(i)]
            columns.append([v if isinstance(v, bytes) else str(v).encode() for v in values])
        rows.append([b"_X_".join(c) for c in itertools.product(*columns)])
    return constant(rows, dtype="string")


def cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    from tandem.sparse import _hashed_rows

    rows = _hashed_rows(inputs, num_buckets, hash_key)
    flat = convert(np.array([v for row in rows for v in row], np.int64))
    return RaggedTensor.from_row_lengths(flat, convert(np.array([len(row) for row in rows], np.int64)))
