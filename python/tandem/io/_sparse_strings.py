"""Sparse tensors as three strings: their places, their values and their shape, each a serialized tensor."""

import numpy as np

from tandem import _core, errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._face import any_tensor
from tandem._sparse import SparseTensor
from tandem.io._tensors import parse_tensor, serialize_tensor


def _is_string(out_type):
    if as_dtype(out_type).name != "string":
        raise NotImplementedError(f"a serialized sparse tensor of type {as_dtype(out_type).name}; string is there")


def _words(parts, shape):
    return _core.strings_from([p.numpy() for p in parts], shape)


def serialize_sparse(sp_input, name=None, out_type="string"):
    _is_string(out_type)
    s = SparseTensor.from_value(sp_input)
    return _words([serialize_tensor(p) for p in (s.indices, s.values, s.dense_shape)], [3])


def serialize_many_sparse(sp_input, name=None, out_type="string"):
    """A row of three strings for each element of the first axis."""
    _is_string(out_type)
    s = SparseTensor.from_value(sp_input)
    at, shape = s.indices.numpy(), s.dense_shape.numpy()
    parts = []
    for row in range(int(shape[0])):
        mine = np.flatnonzero(at[:, 0] == row)
        values = _core.ops.take(s.values, convert(mine.astype(np.int64)), axis=0)
        parts += [serialize_tensor(np.ascontiguousarray(at[mine, 1:])), serialize_tensor(values), serialize_tensor(shape[1:])]
    return _words(parts, [int(shape[0]), 3])


def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    words = any_tensor(serialized_sparse)
    if words.ndim != 2 or words.shape[1] != 3:
        raise errors.InvalidArgumentError(None, None, f"Serialized sparse should have 3 columns but has the shape {words.shape}")
    rows = np.asarray(_core.strings_to_list(words), object).reshape(-1, 3)
    places, values, extents = [], [], []
    for i, (at, value, shape) in enumerate(rows):
        at, shape = parse_tensor(at, "int64").numpy(), parse_tensor(shape, "int64").numpy()
        if extents and len(shape) != len(extents[0]) or rank is not None and len(shape) != rank:
            raise errors.InvalidArgumentError(None, None, f"Inconsistent rank across SparseTensors: row {i} has {len(shape)}")
        places.append(np.insert(at.reshape(-1, len(shape)), 0, i, axis=1))
        values.append(parse_tensor(value, dtype))
        extents.append(shape)
    rank = len(extents[0]) if extents else rank or 0
    flat = _core.ops.concatenate(values) if values else convert(np.zeros(0), dtype)
    shape = [len(rows), *(np.max(extents, axis=0) if extents else [0] * rank)]
    return SparseTensor(np.concatenate(places) if places else np.zeros((0, rank + 1), np.int64), flat, [int(n) for n in shape])
