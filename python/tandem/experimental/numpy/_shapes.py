"""tf.experimental.numpy: shapes, picking elements, products."""

import builtins

import numpy as np

from tandem import _arrays, _gather, linalg, math
from tandem._face import convert, ints, ops
from tandem._tensor_class import Tensor as ndarray
from tandem.experimental.numpy._basics import _as, _max, _same, _sizes, asarray


# --- shapes ---------------------------------------------------------------------------------------------------------------------


def shape(a):
    return tuple(asarray(a).shape)


def ndim(a):
    return asarray(a).ndim


def size(x, axis=None):
    x = asarray(x)
    return convert(x.shape.num_elements() if axis is None else x.shape[axis], "int32")


def reshape(a, newshape, order="C"):
    a = asarray(a)
    sizes = newshape if isinstance(newshape, ndarray) else _sizes(newshape)
    if order == "F":
        return transpose(_arrays.reshape(transpose(a), sizes[::-1]))
    if order not in ("C", "A"):
        raise ValueError(f"tnp.reshape: order is 'C', 'F' or 'A', not {order!r}")
    return _arrays.reshape(a, sizes)


def ravel(a):
    return _arrays.reshape(asarray(a), [-1])


flatten = ravel


def transpose(a, axes=None):
    return _arrays.transpose(asarray(a), None if axes is None else ints(axes))


def swapaxes(a, axis1, axis2):
    a = asarray(a)
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _arrays.transpose(a, order)


def moveaxis(a, source, destination):
    a = asarray(a)
    return _arrays.transpose(a, _moved(a.ndim, source, destination))


def _moved(rank, source, destination):
    source = [s % rank for s in np.atleast_1d(source)]
    destination = [d % rank for d in np.atleast_1d(destination)]
    order = [k for k in range(rank) if k not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return [builtins.int(k) for k in order]


def expand_dims(a, axis):
    a = asarray(a)
    rank = a.ndim + np.size(axis)
    for k in sorted(k % rank for k in np.atleast_1d(axis).tolist()):
        a = _arrays.expand_dims(a, k)
    return a


def squeeze(a, axis=None):
    return _arrays.squeeze(asarray(a), None if axis is None else ints(axis))


def broadcast_to(array, shape):
    return _arrays.broadcast_to(asarray(array), _sizes(shape))


def broadcast_arrays(*args, **kwargs):
    args = [asarray(a) for a in args]
    wanted = np.broadcast_shapes(*[tuple(a.shape) for a in args])
    return [_arrays.broadcast_to(a, wanted) for a in args]


def atleast_1d(*arys):
    return _at_least(arys, lambda a: _arrays.reshape(a, [1]) if a.ndim == 0 else a)


def atleast_2d(*arys):
    return _at_least(arys, lambda a: _arrays.reshape(a, [1, -1]) if a.ndim < 2 else a)


def atleast_3d(*arys):
    return _at_least(
        arys, lambda a: _arrays.reshape(a, [1, -1, 1]) if a.ndim < 2 else _arrays.expand_dims(a, -1) if a.ndim == 2 else a
    )


def _at_least(arys, grow):
    found = [grow(asarray(a)) for a in arys]
    return found[0] if len(found) == 1 else found


def concatenate(arys, axis=0):
    arys = _same(*arys)
    if axis is None:
        return _arrays.concat([ravel(a) for a in arys], 0)
    return _arrays.concat(arys, axis)


def append(arr, values, axis=None):
    return concatenate([arr, values], axis)


def stack(arrays, axis=0):
    if isinstance(arrays, ndarray):
        return swapaxes(arrays, 0, axis)
    return _arrays.stack(_same(*arrays), axis)


def vstack(tup):
    return concatenate([atleast_2d(a) for a in tup], 0)


def hstack(tup):
    parts = [atleast_1d(a) for a in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup):
    return concatenate([atleast_3d(a) for a in tup], 2)


def split(ary, indices_or_sections, axis=0):
    ary = asarray(ary)
    if isinstance(indices_or_sections, builtins.int):
        return _arrays.split(ary, indices_or_sections, axis)
    edges = [0, *ints(indices_or_sections), ary.shape[axis]]
    return _arrays.split(ary, [b - a for a, b in zip(edges, edges[1:])], axis)


def vsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0 if asarray(ary).ndim == 1 else 1)


def dsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 2)


def tile(a, reps):
    a, reps = asarray(a), list(np.atleast_1d(reps))
    rank = _max(a.ndim, len(reps))
    a = _arrays.reshape(a, [1] * (rank - a.ndim) + list(a.shape))
    return _arrays.tile(a, [1] * (rank - len(reps)) + [builtins.int(r) for r in reps])


def repeat(a, repeats, axis=None):
    a = asarray(a)
    return _arrays.repeat(ravel(a) if axis is None else a, repeats, 0 if axis is None else axis)


def flip(m, axis=None):
    m = asarray(m)
    return _arrays.reverse(m, list(range(m.ndim)) if axis is None else ints(axis))


def flipud(m):
    return flip(m, 0)


def fliplr(m):
    return flip(m, 1)


def roll(a, shift, axis=None):
    a = asarray(a)
    if axis is None:
        return _arrays.reshape(_arrays.roll(ravel(a), shift, 0), list(a.shape))
    return _arrays.roll(a, shift, axis)


def rot90(m, k=1, axes=(0, 1)):
    m, (first, second) = asarray(m), axes
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (first, second))
    turned = swapaxes(m, first, second)
    return flip(turned, first) if k == 1 else flip(turned, second)


def pad(array, pad_width, mode, **kwargs):
    array = asarray(array)
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    mode = mode.upper()
    if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"tnp.pad: mode is constant, reflect or symmetric, not {mode.lower()!r}")
    return _arrays.pad(array, widths, mode, kwargs.get("constant_values", 0))


# --- picking --------------------------------------------------------------------------------------------------------------------


def take(a, indices, axis=None, out=None, mode="clip"):
    a, indices = asarray(a), asarray(indices)
    if axis is None:
        a, axis = ravel(a), 0
    extent = a.shape[axis]
    if mode == "wrap":
        indices = math.floormod(indices, _as(extent, indices.dtype))
    elif mode == "clip":
        indices = math.maximum(math.minimum(indices, _as(extent - 1, indices.dtype)), _arrays.zeros_like(indices))
    elif mode != "raise":
        raise ValueError(f"tnp.take: mode is raise, clip or wrap, not {mode!r}")
    return _gather.gather(a, indices, axis=axis)


def take_along_axis(arr, indices, axis):
    arr, indices = asarray(arr), asarray(indices)
    if axis is None:
        arr, indices, axis = ravel(arr), ravel(indices), 0
    return ops.take_along_axis(arr, indices, axis=axis)


def compress(condition, a, axis=None):
    a, condition = asarray(a), _arrays.cast(asarray(condition), "bool")
    if axis is None:
        a, axis = ravel(a), 0
    return _gather.boolean_mask(
        a if a.shape[axis] == condition.shape[0] else split(a, [condition.shape[0]], axis)[0], condition, axis=axis
    )


def nonzero(a):
    a = asarray(a)
    places = _arrays.where(_arrays.cast(a, "bool"))
    return [places[:, k] for k in range(a.ndim)]


def sort(a, axis=-1, kind="quicksort", order=None):
    a = asarray(a)
    return _gather.sort(ravel(a) if axis is None else a, -1 if axis is None else axis)


def argsort(a, axis=-1, kind="quicksort", order=None):
    a = asarray(a)
    return _arrays.cast(_gather.argsort(ravel(a) if axis is None else a, -1 if axis is None else axis, stable=True), "int64")


def diag(v, k=0):
    v = asarray(v)
    return linalg.diag(v, k=k) if v.ndim == 1 else diagonal(v, k)


def diagflat(v, k=0):
    return diag(ravel(v), k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    a = asarray(a)
    a = _arrays.transpose(a, _moved(a.ndim, [axis1, axis2], [a.ndim - 2, a.ndim - 1]))
    return linalg.diag_part(a, k=offset)


def tril(m, k=0):
    return _triangle(m, lambda rows, columns: columns - rows <= k)


def triu(m, k=0):
    return _triangle(m, lambda rows, columns: columns - rows >= k)


def _triangle(m, is_kept):
    m = asarray(m)
    rows, columns = np.indices(tuple(m.shape[-2:]))
    return _arrays.where(convert(is_kept(rows, columns)), m, _arrays.zeros_like(m))


# --- products -------------------------------------------------------------------------------------------------------------------


def _matmul(x, y):
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"tnp.matmul: operands must have axes, got {tuple(x.shape)} and {tuple(y.shape)}")
    wide = [_arrays.expand_dims(x, 0) if x.ndim == 1 else x, _arrays.expand_dims(y, -1) if y.ndim == 1 else y]
    found = linalg.matmul(*wide)
    found = _arrays.squeeze(found, -1) if y.ndim == 1 else found
    return _arrays.squeeze(found, -2 if y.ndim > 1 else -1) if x.ndim == 1 else found


def _dot(x, y):
    if x.ndim == 0 or y.ndim == 0:
        return math.multiply(x, y)
    return linalg.tensordot(x, y, [[x.ndim - 1], [y.ndim - 1 if y.ndim == 1 else y.ndim - 2]])


def inner(a, b):
    a, b = _same(a, b)
    return math.multiply(a, b) if a.ndim == 0 or b.ndim == 0 else linalg.tensordot(a, b, [[a.ndim - 1], [b.ndim - 1]])


def outer(a, b):
    a, b = _same(a, b)
    return math.multiply(_arrays.reshape(a, [-1, 1]), _arrays.reshape(b, [1, -1]))


def vdot(a, b):
    a, b = _same(a, b)
    return _dot(math.conj(ravel(a)), ravel(b))


def tensordot(a, b, axes=2):
    return linalg.tensordot(*_same(a, b), axes)


def einsum(subscripts, *operands, **kwargs):
    return linalg.einsum(subscripts, *_same(*operands))


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _same(moveaxis(a, axisa, -1), moveaxis(b, axisb, -1))
    for x in (a, b):
        if x.shape[-1] not in (2, 3):
            raise ValueError(f"tnp.cross: vectors have 2 or 3 elements, got {x.shape[-1]}")
    flat = a.shape[-1] == b.shape[-1] == 2
    a, b = [_arrays.concat([x, _arrays.zeros_like(x[..., :1])], -1) if x.shape[-1] == 2 else x for x in (a, b)]
    a, b = broadcast_arrays(a, b)
    found = linalg.cross(a, b)
    return found[..., 2] if flat else moveaxis(found, -1, axisc)


def kron(a, b):
    a, b = _same(a, b)
    rank = _max(a.ndim, b.ndim)
    a, b = [_arrays.reshape(x, [1] * (rank - x.ndim) + list(x.shape)) for x in (a, b)]
    wide = _arrays.reshape(a, [n for d in a.shape for n in (d, 1)]) * _arrays.reshape(b, [n for d in b.shape for n in (1, d)])
    return _arrays.reshape(wide, [m * n for m, n in zip(a.shape, b.shape)])
