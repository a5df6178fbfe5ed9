"""Reductions, running totals, order, movement, creation, slices, indexing and scatters."""
import itertools

import numpy as np

EXACT = {
    "reshape", "expand_dims", "squeeze", "transpose", "swapaxes", "moveaxis", "broadcast_to", "flip", "roll", "tile", "repeat", "rot90",
    "concatenate", "concatenate_few", "stack", "split", "unstack", "pad", "pad_mode", "diagonal", "embed_diagonal", "diag", "iota", "extent",
    "full", "eye", "tri", "tril", "triu", "arange", "slice", "place", "dynamic_slice", "dynamic_update_slice", "take", "take_clipped",
    "take_along_axis", "take_along_axis_clipped", "gather_nd", "gather_nd_clipped", "one_hot", "sort", "argsort", "top_k", "unique",
    "searchsorted", "nonzero", "check_range", "check_classes",
}

# --- reductions ---


def axes_of(axis):
    return None if axis is None else tuple(axis)


def sum_type(x):
    """Keras: small integers and bool are summed in 32 bits."""
    if x.dtype.kind in "bi" and x.dtype.itemsize < 4:
        return np.dtype("int32")
    if x.dtype.kind == "u" and x.dtype.itemsize < 4:
        return np.dtype("uint32")
    return x.dtype


def reduction(f, **fixed):
    return lambda x, axis, keepdims, **more: f(x, axis=axes_of(axis), keepdims=keepdims, **fixed, **more)


def total(f):
    return lambda x, axis, keepdims: f(x, axis=axes_of(axis), keepdims=keepdims, dtype=sum_type(x))


def position(f):
    return lambda x, axis, keepdims: np.asarray(f(x, axis=axis, keepdims=keepdims)).astype("int32")


def valid_position(f):
    """NumPy refuses where all are NaN; -1 here."""

    def found(x, axis, keepdims):
        if x.dtype.kind != "f":
            return position(getattr(np, f))(x, axis, keepdims)
        nan = np.isnan(x)
        worst = -np.inf if f == "argmax" else np.inf
        at = position(getattr(np, f))(np.where(nan, worst, x), axis, keepdims)
        return np.where(nan.all(axis=axis, keepdims=keepdims), -1, at).astype("int32")

    return found


def logsumexp(x, axis, keepdims):
    axes = range(x.ndim) if axis is None else sorted(a % x.ndim for a in axis)
    for a in axes:
        x = np.logaddexp.reduce(x, axis=a, keepdims=True)
    return x if keepdims else np.squeeze(x, axis=tuple(axes))


def quantile(f):
    return lambda x, q, axis, method, keepdims: f(x, np.clip(q, 0, 1), axis=axes_of(axis), method=method, keepdims=keepdims)


def moments(x, axis, keepdims):
    return reduction(np.mean)(x, axis, keepdims), reduction(np.var)(x, axis, keepdims)


# --- running totals ---

FOLDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
FOLDS_OF_BOOL = {"sum": np.logical_or, "prod": np.logical_and, "max": np.logical_or, "min": np.logical_and}


def nothing(fold, dtype):
    """What the empty combination is."""
    if fold in ("sum", "prod"):
        return fold == "prod"
    if dtype.kind == "b":
        return fold == "min"
    if dtype.kind == "f":
        return -np.inf if fold == "max" else np.inf
    return np.iinfo(dtype).min if fold == "max" else np.iinfo(dtype).max


def accumulate(x, fold, axis, exclusive=False, reverse=False):
    if reverse:
        return np.flip(accumulate(np.flip(x, axis), fold, axis, exclusive), axis)
    function = (FOLDS_OF_BOOL if x.dtype.kind == "b" else FOLDS)[fold]
    if not exclusive:
        return function.accumulate(x, axis=axis, dtype=x.dtype)
    first = np.full_like(np.take(x, [0] if x.shape[axis] else [], axis=axis), nothing(fold, x.dtype))
    rest = np.take(x, range(x.shape[axis] - 1), axis=axis) if x.shape[axis] else x
    return function.accumulate(np.concatenate([first, rest], axis=axis), axis=axis, dtype=x.dtype)


def cumulative(fold):
    def run(x, axis, reverse, exclusive):
        if fold in ("sum", "prod") and x.dtype.kind == "b":
            x = x.astype("int32")
        return accumulate(x, fold, axis, exclusive, reverse)

    return run


def linear_recurrence(a, b, axis):
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    h, out = np.zeros(a.shape[1:]), []
    for i in range(a.shape[0]):
        h = a[i] * h + b[i]
        out.append(h)
    return np.moveaxis(np.array(out).reshape(a.shape), 0, axis)


# --- order ---


def argsort(x, axis, descending):
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype("int32")
    # Equal elements keep their order also downwards: sort the ranks, which can be negated.
    ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-ranks, axis=axis, kind="stable").astype("int32")


def sort(x, axis, descending):
    return np.take_along_axis(x, argsort(x, axis, descending), axis=axis)


def top_k(x, k, sorted):
    at = argsort(x, -1, True)[..., :k]
    return np.take_along_axis(x, at, axis=-1), at


def padded(values, length):
    out = np.zeros((length,) + values.shape[1:], values.dtype)
    out[: len(values)] = values
    return out


def unique(x):
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (padded(values, x.size), inverse.reshape(x.shape).astype("int32"), padded(counts.astype("int32"), x.size),
            np.array(len(values), "int32"))


def searchsorted(ordered, values, right):
    side = "right" if right else "left"
    if ordered.ndim == 1:
        return np.asarray(np.searchsorted(ordered, values, side)).astype("int32")
    out = np.empty(values.shape, "int32")
    for i in np.ndindex(ordered.shape[:-1]):
        out[i] = np.searchsorted(ordered[i], values[i], side)
    return out


def bincount(x, weights=None, length=0):
    if x.ndim == 2:
        rows = [bincount(x[i], None if weights is None else weights[i], length) for i in range(x.shape[0])]
        return np.stack(rows) if rows else np.zeros((0, length), "int32" if weights is None else weights.dtype)
    dtype = np.dtype("int32") if weights is None else weights.dtype
    out = np.zeros(length, dtype)
    for i, v in enumerate(x):
        if v < length:
            out[v] += dtype.type(1) if weights is None else weights[i]
    return out


def in_top_k(targets, predictions, k):
    out = np.zeros(targets.shape, bool)
    for i in np.ndindex(targets.shape):
        row, t = predictions[i], targets[i]
        if 0 <= t < len(row) and np.isfinite(row[t]):
            out[i] = np.sum(row > row[t]) < k
    return out


def nonzero(x):
    at = np.argwhere(x).astype("int32")
    return padded(at, x.size), np.array(len(at), "int32")


# --- movement ---


def split(x, sizes, axis):
    sizes = [x.shape[axis] - sum(s for s in sizes if s >= 0) if s < 0 else s for s in sizes]
    ends = np.cumsum(sizes)[:-1]
    return np.split(x, ends, axis=axis)


def pad(x, value, low, high):
    for axis, (before, after) in enumerate(zip(low, high)):
        x = np.take(x, range(max(-before, 0), x.shape[axis] - max(-after, 0)), axis=axis)
        width = [(0, 0)] * x.ndim
        width[axis] = (max(before, 0), max(after, 0))
        x = np.pad(x, width, constant_values=value)
    return x


def embed_diagonal(x, shape, offset):
    out = np.zeros(x.shape[:-1] + tuple(shape), x.dtype)
    for i in range(x.shape[-1]):
        row, column = i + max(-offset, 0), i + max(offset, 0)
        if row < shape[0] and column < shape[1]:
            out[..., row, column] = x[..., i]
    return out


def trace(x, offset, axis1, axis2):
    return np.trace(x, offset, axis1, axis2, dtype=sum_type(x))


# --- creation ---


def iota(shape, axis, dtype):
    column = [1] * len(shape)
    column[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).reshape(column), shape).astype(dtype)


def matrix(f):
    return lambda rows, columns, k, dtype: f(rows[0], (columns or rows)[0], k, dtype=dtype)


# --- slices ---


def slices(start, limit, step):
    return tuple(slice(a, None if s < 0 and b < 0 else b, s) for a, b, s in zip(start, limit, step))


def place(x, shape, start, step):
    out = np.zeros(shape, x.dtype)
    index = np.ix_(*[a + s * np.arange(n) for a, s, n in zip(start, step, x.shape)])
    out[index] = x
    return out


def box(shape, sizes, starts):
    return tuple(slice(min(max(int(s), 0), n - m), min(max(int(s), 0), n - m) + m) for n, m, s in zip(shape, sizes, starts))


def dynamic_update_slice(x, update, starts):
    out = x.copy()
    out[box(x.shape, update.shape, starts)] = update
    return out


# --- indexing ---


def check_range(indices, limit, op, axis):
    limit = limit[0] if len(limit) == 1 else np.array(limit)
    return np.where(indices < 0, indices + limit, indices).astype(indices.dtype)


def check_classes(labels, classes, op, ignored):
    return labels


def take_along_axis(x, indices, axis, clip=False):
    axis %= x.ndim
    if clip:
        indices = np.clip(indices, 0, x.shape[axis] - 1)
    x_shape, index_shape = list(x.shape), list(indices.shape)
    for k in range(x.ndim):
        if k != axis:
            x_shape[k] = index_shape[k] = max(x_shape[k], index_shape[k]) if 0 not in (x_shape[k], index_shape[k]) else 0
    return np.take_along_axis(np.broadcast_to(x, x_shape), np.broadcast_to(indices, index_shape), axis)


def gather_nd(x, indices, clip=False):
    depth = indices.shape[-1]
    out = np.empty(indices.shape[:-1] + x.shape[depth:], x.dtype)
    for i in np.ndindex(indices.shape[:-1]):
        at = tuple(min(max(int(v), 0), n - 1) if clip else int(v) for v, n in zip(indices[i], x.shape))
        out[i] = x[at]
    return out


def one_hot(indices, classes, axis, dtype):
    hits = np.arange(classes) == indices[..., None]
    return np.moveaxis(hits, -1, axis).astype(dtype)


COMBINE = {"set": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter(x, indices, updates, mode):
    out = x.copy()
    for i in np.ndindex(indices.shape[:-1]):
        at = tuple(int(v) for v in indices[i])
        out[at] = COMBINE[mode](out[at], updates[i])
    return out


def put_along_axis(x, indices, updates, axis, mode):
    out = x.copy()
    for i in itertools.product(*map(range, indices.shape)):
        at = list(i)
        at[axis] = int(indices[i])
        out[tuple(at)] = COMBINE[mode](out[tuple(at)], updates[i])
    return out


def segment(fold):
    def run(x, ids, segments):
        out = np.full((segments,) + x.shape[ids.ndim:], nothing(fold, x.dtype), x.dtype)
        for i in np.ndindex(ids.shape):
            if 0 <= ids[i] < segments:
                out[ids[i]] = FOLDS[fold](out[ids[i]], x[i])
        return out

    return run


def segment_mean(x, ids, segments):
    count = np.array([max(np.sum(ids == k), 1) for k in range(segments)], float)
    return segment("sum")(x, ids, segments) / count.reshape((segments,) + (1,) * (x.ndim - ids.ndim))


REFERENCE = {
    "sum": total(np.sum),
    "prod": total(np.prod),
    "max": reduction(np.max),
    "min": reduction(np.min),
    "mean": reduction(np.mean),
    "var": reduction(np.var),
    "std": reduction(np.std),
    "moments": moments,
    "any": reduction(np.any),
    "all": reduction(np.all),
    "count_nonzero": lambda x, axis, keepdims: np.sum(x != 0, axis=axes_of(axis), keepdims=keepdims).astype("int32"),
    "argmax": position(np.argmax),
    "argmin": position(np.argmin),
    "logsumexp": logsumexp,
    "norm2": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axes_of(axis), keepdims=keepdims)),
    "nansum": total(np.nansum),
    "nanprod": total(np.nanprod),
    "nanmax": reduction(np.nanmax),
    "nanmin": reduction(np.nanmin),
    "nanargmax": valid_position("argmax"),
    "nanargmin": valid_position("argmin"),
    "nanmean": reduction(np.nanmean),
    "nanvar": reduction(np.nanvar),
    "nanstd": reduction(np.nanstd),
    "quantile": quantile(np.quantile),
    "nanquantile": quantile(np.nanquantile),
    "median": reduction(np.median),
    "nanmedian": reduction(np.nanmedian),
    "accumulate": accumulate,
    "cumsum": cumulative("sum"),
    "cumprod": cumulative("prod"),
    "cummax": cumulative("max"),
    "cummin": cumulative("min"),
    "linear_recurrence": linear_recurrence,
    "sort": sort,
    "argsort": argsort,
    "top_k": top_k,
    "unique": unique,
    "searchsorted": searchsorted,
    "bincount": bincount,
    "in_top_k": in_top_k,
    "nonzero": nonzero,
    "reshape": lambda x, shape: x.reshape(shape),
    "expand_dims": lambda x, axis: np.expand_dims(x, tuple(axis)),
    "squeeze": lambda x, axis: np.squeeze(x, axes_of(axis)),
    "transpose": lambda x, perm: np.transpose(x, perm),
    "swapaxes": lambda x, axis1, axis2: np.swapaxes(x, axis1, axis2),
    "moveaxis": lambda x, source, destination: np.moveaxis(x, source, destination),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "flip": lambda x, axis: np.flip(x, axes_of(axis)),
    "roll": lambda x, shift, axis: np.roll(x, shift, axis) if shift else x,
    "tile": lambda x, repeats: np.tile(x, repeats),
    "repeat": lambda x, repeats, axis: np.repeat(x, repeats, axis),
    "rot90": lambda x, k, axes: np.rot90(x, k, axes),
    "concatenate": lambda *xs, axis: np.concatenate(xs, axis),
    "concatenate_few": lambda *xs, axis: np.concatenate(xs, axis),
    "stack": lambda *xs, axis: np.stack(xs, axis),
    "split": split,
    "unstack": lambda x, axis: [np.take(x, i, axis) for i in range(x.shape[axis])],
    "pad": pad,
    "pad_mode": lambda x, low, high, mode: np.pad(x, list(zip(low, high)), mode=mode) if x.ndim else x,
    "diagonal": lambda x, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2),
    "embed_diagonal": embed_diagonal,
    "diag": lambda x, k: np.diag(x, k),
    "trace": trace,
    "iota": iota,
    "extent": lambda dims, dtype: np.array(np.prod(dims), dtype=dtype),
    "full": lambda value, shape: np.full(shape, value),
    "eye": matrix(np.eye),
    "tri": matrix(np.tri),
    "tril": lambda x, k: np.tril(x, k),
    "triu": lambda x, k: np.triu(x, k),
    "arange": lambda start, stop, step, dtype: np.arange(start, stop, step).astype(dtype),
    "linspace": lambda start, stop, num, endpoint: np.linspace(start, stop, num, endpoint),
    "logspace": lambda start, stop, num, endpoint, base: np.logspace(start, stop, num, endpoint, base),
    "slice": lambda x, start, limit, step: x[slices(start, limit, step)],
    "place": place,
    "dynamic_slice": lambda x, starts, sizes: x[box(x.shape, sizes, starts)],
    "dynamic_update_slice": dynamic_update_slice,
    "check_range": check_range,
    "check_classes": check_classes,
    "take": lambda x, indices, axis: np.take(x, indices, axis),
    "take_clipped": lambda x, indices, axis: np.take(x, indices, axis, mode="clip"),
    "take_along_axis": take_along_axis,
    "take_along_axis_clipped": lambda x, indices, axis: take_along_axis(x, indices, axis, clip=True),
    "gather_nd": gather_nd,
    "gather_nd_clipped": lambda x, indices: gather_nd(x, indices, clip=True),
    "one_hot": one_hot,
    "scatter": scatter,
    "put_along_axis": put_along_axis,
    "segment_sum": segment("sum"),
    "segment_prod": segment("prod"),
    "segment_max": segment("max"),
    "segment_min": segment("min"),
    "segment_mean": segment_mean,
}
