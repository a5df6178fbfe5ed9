"""The same elements in other shapes, together or apart."""
import numpy as np

from keras_tandem.src.ops._numpy.common import (
    Dim, Tensor, axis_of, cast, convert_to_tensor, extent, ops, product, promoted, ravel, values,
)  # fmt: skip
from keras_tandem.src.ops._numpy.creation import _shape

__all__ = [
    "append", "array_split", "broadcast_to", "concatenate", "diag", "diagflat", "diagonal", "dsplit", "dstack", "expand_dims",
    "flip", "fliplr", "flipud", "hsplit", "hstack", "moveaxis", "ndim", "pad", "ravel", "repeat", "reshape", "roll", "rot90",
    "size", "split", "squeeze", "stack", "swapaxes", "tile", "trace", "transpose", "tril", "triu", "vsplit", "vstack",
]  # fmt: skip


def _list(x):
    return [int(x)] if isinstance(x, (int, np.integer)) else [int(i) for i in x]


def ndim(x):
    return convert_to_tensor(x).ndim


def size(x):
    count = product(convert_to_tensor(x).dims)
    return extent(count) if isinstance(count, Dim) else count


def reshape(x, newshape):
    return ops.reshape(convert_to_tensor(x), shape=_shape(newshape))


def broadcast_to(x, shape):
    return ops.broadcast_to(convert_to_tensor(x), shape=_shape(shape))


def transpose(x, axes=None):
    return ops.transpose(convert_to_tensor(x), perm=None if axes is None else list(axes))


def expand_dims(x, axis):
    return ops.expand_dims(convert_to_tensor(x), axis=_list(axis))


def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    return ops.squeeze(x, axis=None if axis is None else _list(axis))


def moveaxis(x, source, destination):
    return ops.moveaxis(convert_to_tensor(x), source=_list(source), destination=_list(destination))


def swapaxes(x, axis1, axis2):
    return ops.swapaxes(convert_to_tensor(x), axis1=axis1, axis2=axis2)


def flip(x, axis=None):
    return ops.flip(convert_to_tensor(x), axis=None if axis is None else _list(axis))


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def roll(x, shift, axis=None):
    x = convert_to_tensor(x)
    shifts = shift if isinstance(shift, (list, tuple)) else [shift]
    if any(isinstance(s, Dim) or (isinstance(s, Tensor) and s.is_traced) for s in shifts):
        return _rolled_by_tensor(x, shift, axis)
    shift = np.asarray(convert_to_tensor(shift)).tolist()
    if axis is None:
        return ops.reshape(ops.roll(ravel(x), shift=_list(shift), axis=[0]), shape=x.dims)
    shifts, axes = np.broadcast_arrays(_list(shift), _list(axis))
    total = {}  # an axis may be named twice
    for s, a in zip(shifts.tolist(), axes.tolist()):
        a = axis_of(a, x.ndim)
        total[a] = total.get(a, 0) + s
    return ops.roll(x, shift=list(total.values()), axis=list(total))


def _rolled_by_tensor(x, shift, axis):
    """A shift that is only known when the function runs."""
    if axis is None:
        return ops.reshape(_rolled_by_tensor(ravel(x), shift, 0), shape=x.dims)
    axes = _list(axis)
    shift = ops.broadcast_to(convert_to_tensor(shift, "int32"), shape=[len(axes)])
    for i, a in enumerate(axes):
        count = extent(x.dims[a])
        places = ops.remainder(ops.subtract(ops.iota(shape=[x.dims[a]], axis=0), shift[i]), count)
        x = ops.take(x, places, axis=a)
    return x


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if array.ndim < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={array.ndim}")
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return ops.rot90(array, k=k, axes=[axis_of(a, array.ndim) for a in axes])


# --- together and apart ---------------------------------------------------------------------------------------------------------


def concatenate(xs, axis=0):
    return ops.concatenate(promoted(*[convert_to_tensor(x) for x in xs]), axis=axis)


def stack(x, axis=0):
    return ops.stack(promoted(*[convert_to_tensor(t) for t in x]), axis=axis)


def _at_least(x, rank):
    """NumPy's atleast_1d, 2d and 3d."""
    x = convert_to_tensor(x)
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim == 2:
        return ops.expand_dims(x, axis=[2])
    return ops.reshape(x, shape={1: [1], 2: [1, -1], 3: [1, -1, 1]}[rank])


def hstack(xs):
    xs = [_at_least(x, 1) for x in xs]
    return concatenate(xs, axis=0 if xs[0].ndim == 1 else 1)


def vstack(xs):
    return concatenate([_at_least(x, 2) for x in xs], axis=0)


def dstack(xs):
    return concatenate([_at_least(x, 3) for x in xs], axis=2)


def append(x1, x2, axis=None):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    return concatenate([ravel(x1), ravel(x2)]) if axis is None else concatenate([x1, x2], axis=axis)


def split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    axis = axis_of(axis, x.ndim)
    count = x.dims[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if isinstance(count, int) and count % sections:
            raise ValueError(
                "array split does not result in an equal division: "
                f"axis {axis} has {count} elements, {sections} parts are wanted"
            )
        sizes = [count // sections] * sections
    else:
        bounds = [0, *_bounds(indices_or_sections, count), count]
        sizes = [after - before for before, after in zip(bounds, bounds[1:])]
        if isinstance(count, int) and min(sizes) < 0:  # bounds that go back: parts that overlap
            return [_part(x, axis, before, after) for before, after in zip(bounds, bounds[1:])]
    return list(ops.split(x, sizes=sizes, axis=axis))


def _bounds(indices, count):
    """Places to cut at, inside of the axis where its extent is known."""
    indices = indices.tolist() if isinstance(indices, (np.ndarray, Tensor)) else list(indices)
    if not isinstance(count, int):
        return [count + i if isinstance(i, int) and i < 0 else i for i in indices]
    return [min(max(i + count if i < 0 else i, 0), count) for i in indices]


def _part(x, axis, first, last):
    return x[(slice(None),) * axis + (slice(first, max(first, last)),)]


def array_split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return split(x, indices_or_sections, axis)
    axis, sections = axis_of(axis, x.ndim), int(indices_or_sections)
    count = x.dims[axis]
    if isinstance(count, Dim):
        raise NotImplementedError("array_split: the extent of the axis is not known while a function is traced")
    each, more = divmod(count, sections)
    return list(ops.split(x, sizes=[each + 1] * more + [each] * (sections - more), axis=axis))


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, axis=0 if x.ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, axis=0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, axis=2)


# --- more of the same -----------------------------------------------------------------------------------------------------------


def tile(x, repeats):
    x = convert_to_tensor(x)
    if isinstance(repeats, (Tensor, np.ndarray)):
        repeats = list(repeats)
    repeats = list(repeats) if isinstance(repeats, (list, tuple)) else [repeats]
    repeats = [r.item() if isinstance(r, Tensor) and not r.is_traced else r for r in repeats]
    if all(isinstance(r, (int, np.integer)) for r in repeats):
        return ops.tile(x, repeats=[int(r) for r in repeats])
    # Some are extents: an axis of copies before each axis, then both as one.
    rank = max(x.ndim, len(repeats))
    dims = [1] * (rank - x.ndim) + list(x.dims)
    repeats = [1] * (rank - len(repeats)) + repeats
    apart = ops.reshape(x, shape=[e for d in dims for e in (1, d)])
    copies = ops.broadcast_to(apart, shape=[e for r, d in zip(repeats, dims) for e in (r, d)])
    return ops.reshape(copies, shape=[r * d for r, d in zip(repeats, dims)])


def repeat(x, repeats, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    if isinstance(repeats, Dim):
        copies = ops.expand_dims(x, axis=[axis + 1])
        copies = ops.broadcast_to(copies, shape=[*x.dims[: axis + 1], repeats, *x.dims[axis + 1 :]])
        return ops.reshape(copies, shape=[*x.dims[:axis], x.dims[axis] * repeats, *x.dims[axis + 1 :]])
    counts = values(repeats, "repeat")
    if counts.size == 1:
        return ops.repeat(x, repeats=int(counts.reshape(-1)[0]), axis=axis)
    if isinstance(x.dims[axis], Dim):
        raise NotImplementedError("repeat: each place has its own number, and how many there are is not known while tracing")
    return ops.take(x, convert_to_tensor(np.repeat(np.arange(x.dims[axis], dtype="int32"), counts)), axis=axis)


_MODES = ("reflect", "symmetric", "edge", "wrap")


def pad(x, pad_width, mode="constant", constant_values=None):
    x = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(f"Argument `constant_values` can only be provided when `mode == 'constant'`. Received: mode={mode}")
    low, high = zip(*_widths(pad_width, x.ndim)) if x.ndim else ((), ())
    if mode == "constant":
        value = convert_to_tensor(0 if constant_values is None else constant_values, x.dtype)
        return ops.pad(x, value, low=list(low), high=list(high))
    if mode not in _MODES:
        raise NotImplementedError(f"pad: the mode '{mode}' is not there; there are constant, {', '.join(_MODES)}")
    return ops.pad_mode(x, low=list(low), high=list(high), mode=mode)


def _widths(pad_width, rank):
    """A pair for each axis, of a number, a pair, or pairs."""
    if isinstance(pad_width, Tensor):
        pad_width = pad_width.tolist()
    if isinstance(pad_width, np.ndarray):
        pad_width = pad_width.tolist()
    if not isinstance(pad_width, (list, tuple)):
        return [(pad_width, pad_width)] * rank
    pairs = [tuple(p) if isinstance(p, (list, tuple)) else p for p in pad_width]
    if not isinstance(pairs[0], tuple):
        pairs = [tuple(pairs)]
    pairs = [p if len(p) == 2 else p * 2 for p in pairs]
    if len(pairs) not in (1, rank):
        raise ValueError(f"`pad_width` must have a pair for each of the {rank} axes. Received: pad_width={pad_width}")
    return pairs * rank if len(pairs) == 1 else pairs


# --- diagonals ------------------------------------------------------------------------------------------------------------------


def diag(x, k=0):
    x = convert_to_tensor(x)
    if x.ndim not in (1, 2):
        raise ValueError(f"`x` must be 1-D or 2-D. Received: shape {x.shape}")
    return ops.diag(x, k=k)


def diagflat(x, k=0):
    return ops.diag(ravel(x), k=k)


def diagonal(x, offset=0, axis1=0, axis2=1):
    return ops.diagonal(convert_to_tensor(x), offset=offset, axis1=axis1, axis2=axis2)


def trace(x, offset=0, axis1=0, axis2=1):
    x = convert_to_tensor(x)
    return ops.trace(cast(x, "int32") if x.dtype.is_bool else x, offset=offset, axis1=axis1, axis2=axis2)


def tril(x, k=0):
    return ops.tril(convert_to_tensor(x), k=k)


def triu(x, k=0):
    return ops.triu(convert_to_tensor(x), k=k)
