"""Elements picked and placed: gather, scatter, masks, segments of a tensor, unique, sorting."""
import builtins
from collections import namedtuple

import numpy as np

from tandem import errors
from tandem._arrays import _needs_data, _py_range, _renamed, cast, concat, expand_dims, reshape
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, api, axis_in, convert, ints, number, ops, pair, shape as _shape_argument, strict, tensor

int32, int64 = as_dtype("int32"), as_dtype("int64")
Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])
TopKV2 = namedtuple("TopKV2", ["values", "indices"])


def _check_indices(indices, extent, what):
    """An eager index outside of the axis is an error that names it."""
    if indices.is_traced or not isinstance(extent, int):
        return
    values = indices.numpy()
    if values.size and (values.min() < 0 or values.max() >= extent):
        at = np.argwhere((values < 0) | (values >= extent))[0]
        place = ",".join(map(str, at))
        raise errors.InvalidArgumentError(
            None, None, f"{what}: indices[{place}] = {values[builtins.tuple(at)]} is not in [0, {extent})"
        )


@api
def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    batch_dims = number(batch_dims)
    if hasattr(params, "sparse_read") and not isinstance(params, CoreVariable):
        return params.sparse_read(indices)
    x, at = tensor(params), tensor(indices)
    if not at.dtype.is_integer:
        raise TypeError(f"gather: indices must be whole numbers, got {at.dtype.name}")
    if batch_dims < 0:
        batch_dims += at.ndim
    axis = batch_dims if axis is None else axis_in(axis, x.ndim)
    if batch_dims == 0:
        _check_indices(at, x.dims[axis], "gather")
        return ops.take(x, at, axis=axis)
    if axis < batch_dims:
        raise ValueError(f"batch_dims ({batch_dims}) must be less than or equal to axis ({axis})")
    # Batches and what lies between them and the axis become rows; each row takes from its own piece of a flat axis.
    batch, between, rest = x.dims[:batch_dims], x.dims[batch_dims:axis], x.dims[axis + 1 :]
    order = [*_py_range(batch_dims), axis, *_py_range(batch_dims, axis), *_py_range(axis + 1, x.ndim)]
    extent = x.dims[axis]
    flat = reshape(ops.transpose(x, perm=order), [-1, *between, *rest])
    row = reshape(ops.iota(shape=[_product(batch)], dtype="int32"), [*batch] + [1] * (at.ndim - batch_dims))
    taken = ops.take(flat, ops.add(cast(at, "int32"), ops.multiply(row, extent)), axis=0)
    # Now: batch, the rest of the indices, between, rest.
    inner = at.ndim - batch_dims
    first = batch_dims + inner
    perm = [
        *_py_range(batch_dims),
        *_py_range(first, first + len(between)),
        *_py_range(batch_dims, first),
        *_py_range(first + len(between), taken.ndim),
    ]
    return ops.transpose(taken, perm=perm)


def _product(dims):
    total = 1
    for d in dims:
        total = total * d
    return total


@api
def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    x, at = tensor(params), tensor(indices)
    batch_dims = number(batch_dims)
    if batch_dims == 0:
        if at.dims[-1] == 0:
            return ops.broadcast_to(x, shape=[*at.dims[:-1], *x.dims])
        if not at.is_traced and bad_indices_policy in ("", "ERROR", "DEFAULT"):
            _check_rows(at, x, "gather_nd")
        return ops.gather_nd(x, at)
    batch = at.dims[:batch_dims]
    extra = [
        reshape(
            ops.iota(shape=batch, axis=i, dtype="int32"), [*batch] + [1] * (at.ndim - batch_dims)
        ) for i in _py_range(batch_dims)
    ]
    extra = [ops.broadcast_to(e, shape=[*at.dims[:-1], 1]) for e in extra]
    return ops.gather_nd(x, concat([*extra, cast(at, "int32")], -1))


def _check_rows(at, x, what):
    values, limits = at.numpy(), np.array(x.shape[: at.shape[-1]])
    bad = (values < 0) | (values >= limits)
    if bad.any():
        place = np.argwhere(bad)[0][:-1]
        row = values[builtins.tuple(place)].tolist()
        raise errors.InvalidArgumentError(
            None, None, f"{what}: indices{place.tolist()} = {row} does not index into param shape {list(x.shape)}"
        )


@api
def scatter_nd(indices, updates, shape, bad_indices_policy="", name=None):
    updates = tensor(updates)
    if updates.dtype.name == "string":  # nothing is added: places are empty before
        return tensor_scatter_nd_update(ops.full(convert(""), shape=_shape_argument(shape)), indices, updates)
    base = ops.full(convert(np.array(0, updates.dtype.as_numpy_dtype)), shape=_shape_argument(shape))
    return tensor_scatter_nd_add(base, indices, updates)


def _tensor_scatter(mode):
    @api
    def scatter(tensor_, indices, updates, bad_indices_policy="", name=None):
        x, at = tensor(tensor_), tensor(indices)
        updates = tensor(updates, x.dtype)
        if at.ndim == 0:
            raise errors.InvalidArgumentError(
                None, None, f"Shapes of indices and updates must be at least 1-D, got {at.shape} and {updates.shape}"
            )
        if not at.is_traced:
            _check_rows(at, x, "scatter")
        depth = at.shape[-1]
        wanted = [*at.dims[:-1], *x.dims[depth:]]
        if list(updates.dims) != wanted:
            updates = ops.broadcast_to(updates, shape=wanted)
        if mode == "sub":
            return strict.scatter(x, at, ops.negative(updates), mode="add")
        return strict.scatter(x, at, updates, mode=mode)

    scatter.__name__ = scatter.__qualname__ = "tensor_scatter_nd_" + {"set": "update"}.get(mode, mode)
    return _renamed(scatter, tensor="tensor_")


tensor_scatter_nd_update, tensor_scatter_nd_add, tensor_scatter_nd_sub = _tensor_scatter("set"), _tensor_scatter("add"), _tensor_scatter("sub")
tensor_scatter_nd_min, tensor_scatter_nd_max = _tensor_scatter("min"), _tensor_scatter("max")


@api
def boolean_mask(tensor_, mask, axis=None, name="boolean_mask"):
    x, mask = tensor(tensor_), tensor(mask)
    axis = 0 if axis is None else axis_in(axis, x.ndim)
    if mask.ndim == 0:
        raise ValueError("mask cannot be scalar.")
    if not x.shape[axis : axis + mask.ndim].is_compatible_with(mask.shape):
        raise ValueError(f"Shapes {x.shape[axis : axis + mask.ndim]} and {mask.shape} are incompatible")
    if mask.is_traced:
        raise _needs_data("tf.boolean_mask")
    flat = reshape(x, [*x.dims[:axis], -1, *x.dims[axis + mask.ndim :]])
    at = np.flatnonzero(mask.numpy().reshape(-1)).astype(np.int32)
    return ops.take(flat, convert(at), axis=axis)


boolean_mask = _renamed(boolean_mask, tensor="tensor_")


def _eager(x, what):
    x = tensor(x)
    if x.is_traced:
        raise _needs_data(what)
    return x


def _unique(x, out_idx, what):
    x = _eager(x, what)
    if x.ndim != 1:
        raise errors.InvalidArgumentError(None, None, f"{what} expects a 1D vector, got shape {x.shape}")
    values, first, inverse, counts = np.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")  # by the first place, as TensorFlow has it
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    out = as_dtype(out_idx)
    return convert(values[order]), convert(rank[inverse.reshape(-1)], out), convert(counts[order], out)


@api
def unique(x, out_idx=int32, name=None):
    return Unique(*_unique(x, out_idx, "tf.unique")[:2])


@api
def unique_with_counts(x, out_idx=int32, name=None):
    return UniqueWithCounts(*_unique(x, out_idx, "tf.unique_with_counts"))


@api
def unravel_index(indices, dims, name=None):
    at, dims = tensor(indices), ints(dims)
    parts, rest = [], at
    for d in reversed(dims):
        parts.append(ops.remainder(rest, d))
        rest = ops.floor_divide(rest, d)
    if not at.is_traced and np.any(at.numpy() >= np.prod(dims)):
        raise errors.InvalidArgumentError(None, None, "index is out of bound as with dims")
    return cast(ops.stack(parts[::-1]), at.dtype)


@api
def sequence_mask(lengths, maxlen=None, dtype=as_dtype("bool"), name=None):
    lengths = tensor(lengths)
    if maxlen is not None and lengths.dtype.is_floating:
        lengths = cast(lengths, "int32")
    if maxlen is None:
        if lengths.is_traced:
            raise _needs_data("tf.sequence_mask without maxlen")
        maxlen = int(np.ceil(max(lengths.numpy().max(initial=0), 0)))
    row = ops.iota(shape=[maxlen], dtype=lengths.dtype)
    return cast(ops.less(row, expand_dims(lengths, -1)), dtype)


@api
def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None):
    x, lengths = tensor(input), tensor(seq_lengths)
    seq, batch = axis_in(seq_axis, x.ndim), axis_in(0 if batch_axis is None else batch_axis, x.ndim)
    place = reshape(ops.iota(shape=[x.dims[seq]], dtype="int32"), [x.dims[seq] if i == seq else 1 for i in _py_range(x.ndim)])
    length = cast(reshape(lengths, [x.dims[batch] if i == batch else 1 for i in _py_range(x.ndim)]), "int32")
    at = ops.where(ops.less(place, length), ops.subtract(ops.subtract(length, 1), place), place)
    return ops.take_along_axis(x, ops.broadcast_to(at, shape=x.dims), axis=seq)


@api
def dynamic_partition(data, partitions, num_partitions, name=None):
    data, parts = tensor(data), _eager(partitions, "tf.dynamic_partition")
    numbers, count = parts.numpy(), int(number(num_partitions))
    if numbers.size and not (0 <= numbers.min() and numbers.max() < count):
        wrong = int(numbers[(numbers < 0) | (numbers >= count)][0])
        raise errors.InvalidArgumentError(None, None, f"dynamic_partition: partition {wrong} is not in [0, {count})")
    flat = reshape(data, [-1, *data.dims[parts.ndim :]])
    return [
        ops.take(
            flat, convert(np.flatnonzero(numbers.reshape(-1) == i).astype(np.int32)), axis=0
        ) for i in _py_range(count)
    ]


@api
def dynamic_stitch(indices, data, name=None):
    indices, data = [_eager(i, "tf.dynamic_stitch") for i in indices], [tensor(d) for d in data]
    rest = data[0].dims[indices[0].ndim :]
    places = np.concatenate([i.numpy().reshape(-1) for i in indices])
    rows = concat([reshape(d, [-1, *rest]) for d in data], 0)
    count = int(places.max()) + 1 if places.size else 0
    last = np.zeros(count, np.int32)
    last[places] = np.arange(len(places), dtype=np.int32)  # the last one wins
    found = np.zeros(count, bool)
    found[places] = True
    made = ops.take(rows, convert(last), axis=0)
    if found.all():
        return made
    keep = convert(found.reshape([-1] + [1] * len(rest)))
    return ops.where(keep, made, ops.full(convert(np.array(0, made.dtype.as_numpy_dtype)), shape=[]))


# --- order ----------------------------------------------------------------------------------------------------------------------


def _descending(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: direction={direction}")
    return direction == "DESCENDING"


@api
def sort(values, axis=-1, direction="ASCENDING", name=None):
    return ops.sort(tensor(values), axis=axis, descending=_descending(direction))


@api
def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    return ops.argsort(tensor(values), axis=axis, descending=_descending(direction))


@api
def top_k(input, k=1, sorted=True, index_type=int32, name=None):
    x, k = tensor(input), int(number(k))
    if x.ndim == 0 or isinstance(x.dims[-1], int) and x.dims[-1] < k:
        raise errors.InvalidArgumentError(
            None, None, f"input must have at least k columns. Had {x.dims[-1] if x.ndim else 0}, needed {k}"
        )
    values, at = ops.top_k(x, k=k, sorted=sorted)
    return TopKV2(values, cast(at, index_type))


@api
def searchsorted(sorted_sequence, values, side="left", out_type=int32, name=None):
    line, values = pair(sorted_sequence, values)
    line, values = tensor(line), tensor(values)
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    if line.ndim == 1:
        return cast(ops.searchsorted(line, values, right=side == "right"), out_type)
    # Rows of their own: counting what is smaller.
    before = ops.less_equal if side == "right" else ops.less
    smaller = before(expand_dims(line, -2), expand_dims(values, -1))
    return cast(ops.sum(ops.cast(smaller, dtype="int32"), axis=[-1]), out_type)


@api
def histogram_fixed_width_bins(values, value_range, nbins=100, dtype=int32, name=None):
    values, limits = tensor(values), tensor(value_range)
    scaled = (values - cast(limits[0], values.dtype)) / (cast(limits[1], values.dtype) - cast(limits[0], values.dtype))
    bins = ops.floor(ops.multiply(cast(scaled, "float64"), float(nbins)))
    return cast(ops.clip(bins, 0.0, float(nbins - 1)), dtype)


@api
def histogram_fixed_width(values, value_range, nbins=100, dtype=int32, name=None):
    bins = histogram_fixed_width_bins(reshape(values, [-1]), value_range, nbins)
    return cast(ops.bincount(bins, None, length=int(nbins)), dtype)


# --- blocks between space, batch and depth --------------------------------------------------------------------------------------


@api
def space_to_batch_nd(input, block_shape, paddings, name=None):
    from tandem._arrays import pad

    x, block, pads = tensor(input), ints(block_shape), [builtins.tuple(int(n) for n in p) for p in np.asarray(paddings)]
    n = len(block)
    x = pad(x, [(0, 0), *pads, *[(0, 0)] * (x.ndim - 1 - n)])
    dims, rest = x.dims, x.dims[1 + n :]
    split = [dims[0]]
    for d, b in zip(dims[1 : 1 + n], block):
        if isinstance(d, int) and d % b:
            raise errors.InvalidArgumentError(None, None, f"padded extent {d} is not divisible by block_shape {b}")
        split += [d // b, b]
    x = reshape(x, [*split, *rest])
    perm = [*(2 + 2 * i for i in _py_range(n)), 0, *(1 + 2 * i for i in _py_range(n)), *_py_range(1 + 2 * n, x.ndim)]
    x = ops.transpose(x, perm=perm)
    return reshape(x, [_product(block) * dims[0], *(d // b for d, b in zip(dims[1 : 1 + n], block)), *rest])


def space_to_batch(input, block_shape, paddings, name=None):
    x = tensor(input)
    block = [number(block_shape)] * 2 if not isinstance(block_shape, (list, builtins.tuple, np.ndarray, Tensor)) else block_shape
    return space_to_batch_nd(x, block, paddings)


@api
def batch_to_space(input, block_shape, crops, name=None):
    x, crops = tensor(input), [builtins.tuple(int(n) for n in c) for c in np.asarray(crops)]
    block = ints(block_shape) if isinstance(
        block_shape, (list, builtins.tuple, np.ndarray, Tensor)
    ) else [number(block_shape)] * len(crops)
    n, dims, rest = len(block), x.dims, x.dims[1 + len(block) :]
    batch = dims[0] // _product(block)
    x = reshape(x, [*block, batch, *dims[1 : 1 + n], *rest])
    perm = [n]
    for i in _py_range(n):
        perm += [n + 1 + i, i]
    x = ops.transpose(x, perm=[*perm, *_py_range(2 * n + 1, x.ndim)])
    x = reshape(x, [batch, *(d * b for d, b in zip(dims[1 : 1 + n], block)), *rest])
    key = [builtins.slice(None)] + [builtins.slice(low, x.dims[1 + i] - high) for i, (low, high) in enumerate(crops)]
    return x[builtins.tuple(key)]


def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    extents, block = np.array(ints(input_shape)), np.array(ints(block_shape))
    base = np.zeros((len(block), 2), np.int64) if base_paddings is None else np.asarray(base_paddings)
    full = extents + base.sum(axis=1)
    extra = (block - full % block) % block
    paddings = np.stack([base[:, 0], base[:, 1] + extra], axis=1)
    crops = np.stack([np.zeros_like(extra), extra], axis=1)
    return convert(paddings.astype(np.int32)), convert(crops.astype(np.int32))


@api
def extract_volume_patches(input, ksizes, strides, padding, name=None):
    x = tensor(input)
    _, kd, kh, kw, _ = ksizes
    channels = x.dims[-1]
    taps = kd * kh * kw * channels
    kernel = reshape(ops.eye(rows=[taps], columns=[taps], dtype=x.dtype), [kd, kh, kw, channels, taps])
    return ops.conv(x, kernel, strides=list(strides[1:4]), padding=padding.lower())


@api
def edit_distance(hypothesis, truth, normalize=True, name="edit_distance"):
    """Levenshtein's distance of rows of two sparse tensors."""
    from tandem._sparse import SparseTensor

    if not isinstance(hypothesis, SparseTensor) or not isinstance(truth, SparseTensor):
        raise TypeError("Hypothesis and truth must be SparseTensors.")
    lead = [max(a, b) for a, b in zip(ints(hypothesis.dense_shape)[:-1], ints(truth.dense_shape)[:-1])]

    def rows(s):
        found = {}
        values = s.values.numpy() if hasattr(s.values, "numpy") else s.values
        for at, value in zip(s.indices.numpy().tolist(), values):
            found.setdefault(builtins.tuple(at[:-1]), []).append(value)
        return found

    ours, theirs = rows(hypothesis), rows(truth)
    made = np.zeros(lead, np.float32)
    for at in np.ndindex(*lead):
        a, b = ours.get(at, []), theirs.get(at, [])
        line = list(_py_range(len(b) + 1))
        for i, x in enumerate(a, 1):
            before, line[0] = line[0], i
            for j, y in enumerate(b, 1):
                before, line[j] = line[j], min(line[j] + 1, line[j - 1] + 1, before + (x != y))
        made[at] = line[-1] / len(b) if normalize and b else (np.inf if a else 0) if normalize else line[-1]
    return convert(made)
