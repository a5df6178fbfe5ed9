"""tf.sets: operations on the last axis of dense or sparse tensors."""
import numpy as np

from tandem import errors
from tandem._convert import convert
from tandem._face import any_tensor
from tandem._sparse import SparseTensor


def _rows(x):
    """(shape of the rows, {place: set})"""
    if isinstance(x, SparseTensor):
        shape = [int(n) for n in x.dense_shape.numpy()]
        found = {at: [] for at in np.ndindex(*shape[:-1])}
        for place, v in zip(x.indices.numpy(), x.values.numpy()):
            found[tuple(int(i) for i in place[:-1])].append(v)
        return shape[:-1], found, x.dtype
    x = any_tensor(x)
    array = x.numpy()
    return list(array.shape[:-1]), {at: list(array[at]) for at in np.ndindex(*array.shape[:-1])}, x.dtype


def _combined(a, b, how):
    shape, ours, dtype = _rows(a)
    other_shape, theirs, other = _rows(b)
    if dtype is not other:
        raise TypeError(f"Types don't match: {dtype.name} vs {other.name}")
    if shape != other_shape:
        raise errors.InvalidArgumentError(None, None, f"Shapes {shape} and {other_shape} differ")
    places, values, widest = [], [], 0
    for at in np.ndindex(*shape):
        row = sorted(how(set(ours[at]), set(theirs[at])))
        widest = max(widest, len(row))
        places += [[*at, i] for i in range(len(row))]
        values += row
    kept = any_tensor(values, dtype) if dtype.name == "string" else convert(np.array(values, dtype.as_numpy_dtype))
    return SparseTensor(np.array(places, np.int64).reshape(-1, len(shape) + 1), kept, [*shape, widest])


def intersection(a, b, validate_indices=True):
    return _combined(a, b, lambda x, y: x & y)


def union(a, b, validate_indices=True):
    return _combined(a, b, lambda x, y: x | y)


def difference(a, b, aminusb=True, validate_indices=True):
    return _combined(a, b, lambda x, y: x - y if aminusb else y - x)


def size(a, validate_indices=True):
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    shape, rows, _ = _rows(a)
    made = np.zeros(shape, np.int32)
    for at, row in rows.items():
        made[at] = len(set(row))
    return convert(made)
