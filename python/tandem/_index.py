"""Indexing by tensors, arrays and masks; what is simpler is done by the engine itself."""
import numpy as np

from tandem import _core
from tandem._convert import convert

ops = _core.ops


def _number(k):
    """A tensor or NumPy scalar that stands for one Python number, or None."""
    if isinstance(k, (np.integer,)):
        return int(k)
    if isinstance(k, _core.Tensor) and k.ndim == 0 and k.dtype.is_integer and not k.is_traced:
        return k.item()
    return None


def index(x, key):
    keys = list(key) if isinstance(key, tuple) else [key]
    for i, k in enumerate(keys):
        if isinstance(k, _core.Variable):
            keys[i] = k = k.read()
        number = _number(k)
        if number is not None:
            keys[i] = number
        elif isinstance(k, slice):
            keys[i] = slice(*[_bound(b) for b in (k.start, k.stop, k.step)])
        elif isinstance(k, (list, tuple, np.ndarray)):
            keys[i] = convert(k)
        elif isinstance(k, (str, bytes, float, np.floating)) or (isinstance(k, _core.Tensor) and k.dtype.is_floating):
            raise TypeError(
                "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices, "
                f"got {k!r}"
            )
    if not any(isinstance(k, (_core.Tensor, bool)) for k in keys) and not any(_is_dynamic(k) for k in keys):
        return x[tuple(keys)]
    if len(keys) == 1 and isinstance(keys[0], _core.Tensor) and keys[0].dtype.is_bool:
        return masked(x, keys[0])
    return gathered(x, [_places(k) if isinstance(k, _core.Tensor) and k.dtype.is_bool and k.ndim == 1 else k for k in keys])


def _places(mask):
    """Where a mask along one axis is true."""
    return convert(np.nonzero(mask.numpy())[0])


def _bound(b):
    number = None if b is None else _number(b)
    return b if number is None else number


def _is_dynamic(k):
    return isinstance(k, slice) and any(isinstance(b, _core.Tensor) for b in (k.start, k.stop, k.step))


def masked(x, mask):
    """The elements where the mask is true; how many there are is only known from the numbers."""
    where = np.nonzero(mask.numpy())
    axes = mask.ndim
    flat = ops.reshape(x, shape=[-1, *x.dims[axes:]])
    at = np.ravel_multi_index(where, tuple(mask.shape)) if axes else where
    return ops.take(flat, convert(np.asarray(at, np.int64)), axis=0)


def gathered(x, keys):
    """NumPy's advanced indexing, one key after the other where they are apart, together where several are tensors."""
    # An ellipsis as the whole slices that it stands for.
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if Ellipsis in [k for k in keys if not isinstance(k, _core.Tensor)]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (x.ndim - used)
    tensors = [i for i, k in enumerate(keys) if isinstance(k, _core.Tensor)]
    # Everything but the tensors first.
    axis, places, basic = 0, [], []
    for k in keys:
        if isinstance(k, _core.Tensor):
            places.append(axis)
            basic.append(slice(None))
            axis += 1
        elif k is None:
            basic.append(None)
            axis += 1
        elif isinstance(k, slice):
            if _is_dynamic(k):
                raise NotImplementedError("a slice whose bounds depend on data has a shape that a compiled function cannot know")
            basic.append(k)
            axis += 1
        else:
            basic.append(k)
    x = x[tuple(basic)]
    if len(tensors) == 1:
        return ops.take(x, _wrapped(keys[tensors[0]], x.dims[places[0]]), axis=places[0])
    # Several: their axes to the front, then rows of indices.
    rest = [a for a in range(x.ndim) if a not in places]
    moved = ops.transpose(x, perm=[*places, *rest])
    indices = [_wrapped(keys[i], x.dims[p]) for i, p in zip(tensors, places)]
    shape = indices[0]
    for other in indices[1:]:
        shape = ops.add(shape, other)
    indices = [ops.broadcast_to(ops.cast(i, dtype="int32"), shape=shape.dims) for i in indices]
    taken = ops.gather_nd(moved, ops.stack(indices, axis=-1))
    adjacent = places == list(range(places[0], places[0] + len(places)))
    if adjacent and places[0] > 0:  # their axes stand where the first key stood
        count, before = len(shape.shape), places[0]
        perm = [*range(count, count + before), *range(count), *range(count + before, taken.ndim)]
        taken = ops.transpose(taken, perm=perm)
    return taken


def _wrapped(indices, extent):
    """Negative indices count from the end."""
    if indices.dtype.is_unsigned:
        return indices
    if not indices.is_traced and indices.numpy().size and indices.numpy().min() >= 0:
        return indices
    size = convert(extent, indices.dtype) if isinstance(extent, _core.Dim) else extent
    return ops.where(ops.less(indices, 0), ops.add(indices, size), indices)
