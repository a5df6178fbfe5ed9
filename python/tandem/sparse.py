"""tf.sparse. Where elements are decides shapes, so that part is computed on the host; the values stay tensors."""
import builtins

import numpy as np

from tandem import errors
from tandem._convert import convert
from tandem._face import CoreVariable, Tensor, any_tensor, ints, number, ops, tensor
from tandem._sparse import SparseTensor

_py_slice = builtins.slice


def _parts(s):
    if not isinstance(s, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor, got {type(s).__name__}")
    if s.indices.is_traced:
        from tandem._trace import NeedsData

        raise NeedsData("a sparse tensor whose places are computed")
    return s.indices.numpy(), s.values, [int(n) for n in s.dense_shape.numpy()]


def _take(values, at):
    from tandem import _gather

    return _gather.gather(values, convert(np.asarray(at, np.int64)))


def from_dense(tensor, name=None):
    from tandem import _gather

    x = any_tensor(tensor)
    array = np.asarray(x.numpy())
    at = np.argwhere(array != (b"" if x.dtype.name == "string" else 0))
    return SparseTensor(at, _gather.gather_nd(x, convert(at.astype(np.int64))), list(x.shape))


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    from tandem import _arrays, _gather

    at, values, shape = _parts(sp_input)
    if validate_indices and len(at) > 1:
        order = [tuple(r) for r in at]
        for a, b in zip(order, order[1:]):
            if a >= b:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"indices {list(b)} is out of order or repeated" if a != b else f"indices[1] = {list(b)} is repeated",
                )
    if default_value is None:
        default_value = b"" if values.dtype.name == "string" else False if values.dtype.is_bool else 0
    base = _arrays.fill(shape, any_tensor(default_value, values.dtype))
    if not len(at):
        return base
    if values.dtype.name == "string":
        array = base.numpy()
        array[tuple(at.T)] = values.numpy()
        return any_tensor(array, "string")
    return _gather.tensor_scatter_nd_update(base, sp_input.indices, values)


def to_indicator(sp_input, vocab_size, name=None):
    at, values, shape = _parts(sp_input)
    numbers, size = values.numpy(), int(number(vocab_size))
    made = np.zeros([*shape[:-1], size], bool)
    made[tuple([*at[:, :-1].T, numbers])] = True
    return convert(made)


def reorder(sp_input, name=None):
    at, values, shape = _parts(sp_input)
    order = np.lexsort(at.T[::-1]) if len(at) else np.zeros(0, np.int64)
    return SparseTensor(at[order], _take(values, order), shape)


def reshape(sp_input, shape, name=None):
    at, values, old = _parts(sp_input)
    new = ints(shape)
    total = int(np.prod(old))
    if -1 in new:
        known = int(np.prod([d for d in new if d != -1]))
        new[new.index(-1)] = total // known if known else 0
    if int(np.prod(new)) != total:
        raise ValueError(f"Cannot reshape a tensor with {total} elements to shape {new} ({int(np.prod(new))} elements)")
    flat = np.ravel_multi_index(tuple(at.T), old) if len(at) else np.zeros(0, np.int64)
    made = np.stack(np.unravel_index(flat, new), axis=-1) if new else np.zeros((len(flat), 0), np.int64)
    return SparseTensor(made.reshape(-1, len(new)), values, new)


def transpose(sp_input, perm=None, name=None):
    at, values, shape = _parts(sp_input)
    perm = list(range(len(shape)))[::-1] if perm is None else ints(perm)
    return reorder(SparseTensor(at[:, perm], values, [shape[p] for p in perm]))


def expand_dims(sp_input, axis=None, name=None):
    at, values, shape = _parts(sp_input)
    axis = -1 if axis is None else int(number(axis))
    if not -len(shape) - 1 <= axis <= len(shape):
        raise ValueError(f"axis {axis} is not in [{-len(shape) - 1}, {len(shape)}]")
    axis = axis + len(shape) + 1 if axis < 0 else axis
    return SparseTensor(np.insert(at, axis, 0, axis=1), values, shape[:axis] + [1] + shape[axis:])


def concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None):
    from tandem import _arrays

    parts = [_parts(s) for s in sp_inputs]
    rank = len(parts[0][2])
    axis = int(number(axis)) % rank
    shape = [max(p[2][i] for p in parts) for i in range(rank)]
    if not expand_nonconcat_dims and any(p[2][i] != shape[i] for p in parts for i in range(rank) if i != axis):
        raise errors.InvalidArgumentError(None, None, f"Input shapes differ: {[p[2] for p in parts]}")
    places, at = [], 0
    for indices, _, extents in parts:
        moved = indices.copy()
        moved[:, axis] += at
        at += extents[axis]
        places.append(moved)
    shape[axis] = at
    return reorder(SparseTensor(np.concatenate(places), _arrays.concat([p[1] for p in parts], 0), shape))


def slice(sp_input, start, size, name=None):
    at, values, shape = _parts(sp_input)
    start, size = np.array(ints(start)), np.array(ints(size))
    size = np.minimum(np.where(size < 0, np.array(shape) - start, size), np.array(shape) - start)
    keep = np.all((at >= start) & (at < start + size), axis=1)
    return SparseTensor(at[keep] - start, _take(values, np.flatnonzero(keep)), np.maximum(size, 0).tolist())


def split(sp_input=None, num_split=None, axis=None, name=None):
    _, _, shape = _parts(sp_input)
    axis, count = int(number(axis)) % len(shape), int(number(num_split))
    base, extra = divmod(shape[axis], count)
    made, at = [], 0
    for i in range(count):
        width = base + (i < extra)
        start, size = [0] * len(shape), list(shape)
        start[axis], size[axis] = at, width
        made.append(slice(sp_input, start, size))
        at += width
    return made


def retain(sp_input, to_retain):
    at, values, shape = _parts(sp_input)
    keep = np.flatnonzero(any_tensor(to_retain).numpy())
    return SparseTensor(at[keep], _take(values, keep), shape)


def reset_shape(sp_input, new_shape=None):
    at, values, shape = _parts(sp_input)
    if new_shape is None:
        new_shape = (at.max(axis=0) + 1).tolist() if len(at) else [0] * len(shape)
    new_shape = ints(new_shape)
    if len(new_shape) != len(shape):
        raise ValueError(f"Shapes {tuple(shape)} and {tuple(new_shape)} must have the same rank")
    if any(n < o for n, o in zip(new_shape, shape)) and len(at) and np.any(at.max(axis=0) >= new_shape):
        raise errors.InvalidArgumentError(None, None, "the new shape does not hold all elements")
    return SparseTensor(at, values, new_shape)


def fill_empty_rows(sp_input, default_value, name=None):
    from tandem import _arrays

    at, values, shape = _parts(sp_input)
    empty = np.ones(shape[0], bool)
    if len(at):
        empty[at[:, 0]] = False
    rows = np.flatnonzero(empty)
    more = np.zeros((len(rows), len(shape)), np.int64)
    more[:, 0] = rows
    filler = _arrays.fill([len(rows)], any_tensor(default_value, values.dtype))
    made = reorder(SparseTensor(np.concatenate([at, more]), _arrays.concat([values, filler], 0), shape))
    return made, convert(empty)


def eye(num_rows, num_columns=None, dtype="float32", name=None):
    rows, columns = int(number(num_rows)), int(number(num_rows if num_columns is None else num_columns))
    n = min(rows, columns)
    return SparseTensor(np.repeat(np.arange(n), 2).reshape(-1, 2), convert(np.ones(n), dtype), [rows, columns])


def mask(a, mask_indices, name=None):
    from tandem._indexed_slices import IndexedSlices

    at = a.indices.numpy()
    keep = np.flatnonzero(~np.isin(at, any_tensor(mask_indices).numpy()))
    return IndexedSlices(_take(a.values, keep), convert(at[keep]), a.dense_shape)


def map_values(op, *args, **kwargs):
    found = [x for x in [*args, *kwargs.values()] if isinstance(x, SparseTensor)]
    if not found:
        raise ValueError("No SparseTensor in argument list of map_values")
    for other in found[1:]:
        if not np.array_equal(other.indices.numpy(), found[0].indices.numpy()):
            raise errors.InvalidArgumentError(None, None, "the sparse tensors have different indices")

    def flat(x):
        return x.values if isinstance(x, SparseTensor) else x

    return found[0].with_values(op(*[flat(a) for a in args], **{k: flat(v) for k, v in kwargs.items()}))


# --- arithmetic -----------------------------------------------------------------------------------------------------------------


def _merged(a, b):
    """(places of both, sorted; for each side the number of its value there or -1)"""
    pa, _, shape = _parts(a)
    pb, _, other = _parts(b)
    if shape != other:
        raise errors.InvalidArgumentError(None, None, f"Operands do not have the same shape: {shape} and {other}")
    table = {}
    for i, place in enumerate(map(tuple, pa)):
        table.setdefault(place, [-1, -1])[0] = i
    for i, place in enumerate(map(tuple, pb)):
        table.setdefault(place, [-1, -1])[1] = i
    places = sorted(table)
    return np.array(places, np.int64).reshape(-1, len(shape)), np.array(
        [table[p] for p in places], np.int64
    ).reshape(-1, 2), shape


def _both(a, b):
    from tandem import _arrays

    places, which, shape = _merged(a, b)
    columns = []
    for s, at in zip((a, b), which.T):
        zero = convert(np.zeros(1, s.dtype.as_numpy_dtype))
        padded = _arrays.concat([s.values, zero], 0)
        columns.append(_take(padded, np.where(at < 0, s.values.shape[0], at)))
    return places, columns, shape


def add(a, b, threshold=0):
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        s, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
        from tandem import _gather

        return _gather.tensor_scatter_nd_add(any_tensor(dense), s.indices, s.values)
    places, (x, y), shape = _both(a, b)
    total = x + y
    made = SparseTensor(places, total, shape)
    limit = number(threshold)
    if limit > 0:
        made = retain(made, ops.greater_equal(ops.absolute(total), limit))
    return made


def maximum(sp_a, sp_b, name=None):
    places, (x, y), shape = _both(sp_a, sp_b)
    return SparseTensor(places, ops.maximum(x, y), shape)


def minimum(sp_a, sp_b, name=None):
    places, (x, y), shape = _both(sp_a, sp_b)
    return SparseTensor(places, ops.minimum(x, y), shape)


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    from tandem import linalg

    if isinstance(b, SparseTensor):
        return linalg.matrix_transpose(sparse_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a)) if not isinstance(sp_a, SparseTensor) else (
            sparse_dense_matmul(sp_a, to_dense(b), adjoint_a, adjoint_b)
        )
    b = tensor(b, sp_a.dtype) if not isinstance(b, (Tensor, CoreVariable)) else tensor(b)
    b = linalg.matrix_transpose(b) if adjoint_b else b
    rows, columns = sp_a.indices[:, 0], sp_a.indices[:, 1]
    shape = ints(sp_a.dense_shape)
    if adjoint_a:
        rows, columns, shape = columns, rows, shape[::-1]
    picked = ops.multiply(ops.take(b, columns, axis=0), ops.expand_dims(sp_a.values, axis=[-1]))
    return ops.segment_sum(picked, ops.cast(rows, dtype="int32"), segments=shape[0])


def _reduced(sp_input, axis, keepdims, sparse_result, how):
    at, values, shape = _parts(sp_input)
    every = list(range(len(shape))) if axis is None else [a % len(shape) for a in ints(axis)]
    kept = [i for i in range(len(shape)) if i not in every]
    sizes = [shape[i] for i in kept]
    flat = np.ravel_multi_index(tuple(at[:, kept].T), sizes) if kept and len(at) else np.zeros(len(at), np.int64)
    total = int(np.prod(sizes)) if kept else 1
    found, group = np.unique(flat, return_inverse=True)
    from tandem import _arrays, _segments

    some = getattr(_segments, f"unsorted_segment_{how}")(
        values, convert(group.astype(np.int32)), max(len(found), 1)
    ) if len(at) else values
    final = [1 if i in every else n for i, n in enumerate(shape)] if keepdims else sizes
    if sparse_result:
        places = np.stack(np.unravel_index(found, final), axis=-1) if final else np.zeros((len(found), 0), np.int64)
        return SparseTensor(places, some, final)
    base = _arrays.zeros([total], values.dtype)
    made = ops.scatter(base, convert(found.reshape(-1, 1).astype(np.int32)), some, mode="set") if len(at) else base
    return _arrays.reshape(made, final)


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    return _reduced(sp_input, axis, bool(keepdims), output_is_sparse, "sum")


def reduce_max(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    return _reduced(sp_input, axis, bool(keepdims), output_is_sparse, "max")


def softmax(sp_input, name=None):
    at, values, shape = _parts(sp_input)
    rows = np.ravel_multi_index(tuple(at[:, :-1].T), shape[:-1]) if len(shape) > 1 else np.zeros(len(at), np.int64)
    _, group = np.unique(rows, return_inverse=True)
    ids, count = convert(group.astype(np.int32)), int(group.max(initial=-1)) + 1
    peak = ops.segment_max(values, ids, segments=count)
    size = ops.exp(ops.subtract(values, ops.take(peak, ids, axis=0)))
    return sp_input.with_values(ops.divide(size, ops.take(ops.segment_sum(size, ids, segments=count), ids, axis=0)))


def _by_segment(how):
    def reduce(data, indices, segment_ids, num_segments=None, name=None, sparse_gradient=False):
        from tandem import _segments

        rows, ids = ops.take(tensor(data), tensor(indices), axis=0), tensor(segment_ids)
        count = (int(ids.numpy()[-1]) + 1 if ids.shape[0] else 0) if num_segments is None else int(number(num_segments))
        return _segments._reduced(how, rows, ids, count)

    return reduce


segment_sum, segment_mean, segment_sqrt_n = _by_segment("sum"), _by_segment("mean"), _by_segment("sqrt_n")


def bincount(values, weights=None, axis=0, minlength=None, maxlength=None, binary_output=False, name=None):
    """Counts of whole numbers as a sparse tensor: by rows, or of all."""
    from tandem._ragged import RaggedTensor

    if isinstance(values, SparseTensor):
        rows = [[] for _ in range(int(values.dense_shape.numpy()[0]))]
        shares = [[] for _ in rows]
        given = None if weights is None else (
            weights.values if isinstance(weights, SparseTensor) else any_tensor(weights)
        ).numpy()
        for i, (place, value) in enumerate(zip(values.indices.numpy(), values.values.numpy())):
            rows[place[0]].append(value)
            shares[place[0]].append(1 if given is None else given[i])
    elif isinstance(values, RaggedTensor):
        rows = values.to_list()
        shares = weights.to_list() if weights is not None else [[1] * len(r) for r in rows]
    else:
        array = any_tensor(values).numpy()
        rows = [array] if array.ndim == 1 else list(array)
        given = None if weights is None else any_tensor(weights).numpy()
        shares = [np.ones(len(r), np.int64) for r in rows] if given is None else ([given] if array.ndim == 1 else list(given))
        if array.ndim == 1 or axis == 0:
            rows, shares = [np.concatenate(rows)], [np.concatenate(shares)]
    if isinstance(values, (SparseTensor, RaggedTensor)) and axis == 0:
        rows, shares = [sum(map(list, rows), [])], [sum(map(list, shares), [])]
    single = axis == 0 or (not isinstance(values, (SparseTensor, RaggedTensor)) and any_tensor(values).ndim == 1)
    places, counts, largest = [], [], 0
    for i, (row, share) in enumerate(zip(rows, shares)):
        table = {}
        for v, w in zip(row, share):
            if maxlength is None or v < maxlength:
                table[int(v)] = 1 if binary_output else table.get(int(v), 0) + w
        for v in sorted(table):
            places.append([v] if single else [i, v])
            counts.append(table[v])
            largest = max(largest, v + 1)
    width = max(largest, int(number(minlength or 0)))
    width = width if maxlength is None else min(
        max(width, 0), int(number(maxlength))
    ) if minlength is None else max(width, int(number(minlength)))
    kind = np.int64 if weights is None else (
        weights.dtype if hasattr(weights, "dtype") and not isinstance(weights, np.ndarray) else any_tensor(weights).dtype
    ).as_numpy_dtype
    return SparseTensor(
        np.array(places, np.int64).reshape(-1, 1 if single else 2),
        convert(np.array(counts, kind)),
        [width] if single else [len(rows), width],
    )


def sampled_addmm(indices, values, dense_shape, mat1, mat2, beta=1.0, alpha=1.0, output_type="float32"):
    at = any_tensor(indices)
    product = ops.matmul(tensor(mat1), tensor(mat2))
    from tandem import _gather

    return at, _gather.gather_nd(product, at) * alpha + tensor(values) * beta, any_tensor(dense_shape)


def cross(inputs, name=None, separator=None):
    import itertools

    joint = b"_X_" if separator is None else separator.encode() if isinstance(separator, str) else separator
    rows = None
    for x in inputs:
        if isinstance(x, SparseTensor):
            at, values, shape = _parts(x)
            found = [[] for _ in range(shape[0])]
            for place, v in zip(at, values.numpy()):
                found[place[0]].append(v if isinstance(v, bytes) else str(v).encode())
        else:
            found = [
                [
                    v if isinstance(v, bytes) else str(v).encode() for v in row
                ] for row in np.asarray(any_tensor(x).numpy()).tolist()
            ]
        rows = [[f] for f in found] if rows is None else [r + [f] for r, f in zip(rows, found)]
    made = [[joint.join(c) for c in itertools.product(*r)] for r in rows]
    places = [[i, j] for i, r in enumerate(made) for j in range(len(r))]
    return SparseTensor(
        np.array(places, np.int64).reshape(-1, 2),
        any_tensor([w for r in made for w in r], "string"),
        [len(made), max(map(len, made), default=0)],
    )


def cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """A column for each choice of one element of every input: a hash of all of them."""
    from tandem._ragged import RaggedTensor

    rows = _hashed_rows(inputs, num_buckets, hash_key)
    if any(isinstance(x, RaggedTensor) for x in inputs):
        raise TypeError("Only SparseTensor and Tensor are taken; tf.ragged.cross_hashed takes ragged ones")
    at = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = convert(np.array([v for row in rows for v in row], np.int64))
    return SparseTensor(np.array(at, np.int64).reshape(-1, 2), values, [len(rows), max(map(len, rows), default=0)])


def _joined_hashes(first, second):
    """TensorFlow's way to make one fingerprint of two."""
    factor, limit = 0xC6A4A7935BD1E995, 2**64
    mixed = lambda v: v ^ (v >> 47)  # noqa: E731
    made = (first ^ factor ^ (mixed(second * factor % limit) * factor % limit)) * factor % limit
    return mixed(mixed(made) * factor % limit)


def _hashed_rows(inputs, num_buckets, hash_key):
    import itertools

    from tandem import _core
    from tandem._ragged import RaggedTensor

    def numbers(flat):
        if flat.dtype.name == "string":
            return _core.strings.fingerprint(flat).numpy().view(np.uint64).tolist()
        return [int(v) % 2**64 for v in flat.numpy().tolist()]

    columns = []
    for x in inputs:
        if isinstance(x, SparseTensor):
            rows = [[] for _ in builtins.range(int(x.dense_shape.numpy()[0]))]
            for (row, *_), value in zip(x.indices.numpy().tolist(), numbers(x.values)):
                rows[row].append(value)
        elif isinstance(x, RaggedTensor):
            flat, ends = numbers(x.values), x.row_splits.numpy().tolist()
            rows = [flat[a:b] for a, b in zip(ends, ends[1:])]
        else:
            x = any_tensor(x)
            flat, width = numbers(ops.reshape(x, shape=[-1])), x.shape[1]
            rows = [flat[i * width : (i + 1) * width] for i in builtins.range(x.shape[0])]
        columns.append(rows)
    made, buckets = [], int(number(num_buckets)) or 2**63 - 1
    for row in zip(*columns):
        line = []
        for choice in itertools.product(*row):
            total = 0xDECAFCAFFE if hash_key is None else int(hash_key) % 2**64
            for value in choice:
                total = _joined_hashes(total, value)
            line.append(total % buckets)
        made.append(line)
    return made
