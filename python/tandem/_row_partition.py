"""Shapes of ragged tensors: tf.experimental.RowPartition and DynamicRaggedShape."""

import math

import numpy as np

from tandem import _arrays
from tandem._dtypes import as_dtype
from tandem._face import convert, ints
from tandem._ragged import RaggedTensor


class RowPartition:
    """Where the rows of a list of values begin and end."""

    def __init__(self, row_splits, uniform=None):
        self._splits, self._uniform = np.asarray(row_splits), uniform

    @classmethod
    def from_row_splits(cls, row_splits, validate=True, dtype=None):
        splits = np.asarray(ints(row_splits), np.int64)
        if not len(splits) or splits[0] != 0 or (np.diff(splits) < 0).any():
            raise ValueError(f"row_splits begin with 0 and never fall, got {splits.tolist()}")
        return cls(splits)

    @classmethod
    def from_row_lengths(cls, row_lengths, validate=True, dtype=None):
        return cls.from_row_splits(np.concatenate([[0], np.cumsum(ints(row_lengths), dtype=np.int64)]))

    @classmethod
    def from_value_rowids(cls, value_rowids, nrows=None, validate=True, dtype=None):
        rows = np.asarray(ints(value_rowids), np.int64)
        count = int(nrows) if nrows is not None else int(rows[-1]) + 1 if len(rows) else 0
        return cls.from_row_lengths(np.bincount(rows, minlength=count))

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length, nvals=None, nrows=None, validate=True, dtype=None):
        length = int(uniform_row_length)
        count = int(nrows) if nrows is not None else int(nvals) // length
        return cls(np.arange(count + 1, dtype=np.int64) * length, length)

    def row_splits(self):
        return convert(self._splits)

    def row_lengths(self):
        return convert(np.diff(self._splits))

    def nrows(self):
        return convert(np.int64(len(self._splits) - 1))

    def nvals(self):
        return convert(self._splits[-1])

    def is_uniform(self):
        return self._uniform is not None

    def _extent(self):
        return self._uniform if self._uniform is not None else tuple(int(n) for n in np.diff(self._splits))

    def __repr__(self):
        return f"tf.RowPartition(row_splits={self._splits.tolist()})"


class DynamicRaggedShape:
    """Extents, with a list of lengths where rows differ: some row partitions, and the shape of what they part."""

    def __init__(self, row_partitions, inner_shape, dtype=None, validate=False, static_inner_shape=None):
        self._dtype = as_dtype(dtype or "int64")
        self._partitions, self._inner = list(row_partitions), ints(inner_shape)
        for outer, inner in zip(self._partitions, self._partitions[1:]):
            if outer._splits[-1] != len(inner._splits) - 1:
                raise ValueError(f"a row partition has {outer._splits[-1]} values, the next one {len(inner._splits) - 1} rows")
        if self._partitions and self._partitions[-1]._splits[-1] != self._inner[0]:
            raise ValueError(
                f"the last row partition has {self._partitions[-1]._splits[-1]} values, the inner shape {self._inner[0]} rows"
            )

    @classmethod
    def from_tensor(cls, t, dtype=None):
        partitions = []
        while isinstance(t, RaggedTensor):
            partitions.append(RowPartition(t._splits, getattr(t, "_uniform", None)))
            t = t._values
        return cls(partitions, [int(n) for n in t.shape], dtype)

    @classmethod
    def from_lengths(cls, lengths, num_row_partitions=None, dtype=None):
        """Of extents, and tuples of lengths where rows differ; the axes up to the last of these are parted."""
        lengths = [tuple(ints(n)) if isinstance(n, (list, tuple)) else int(n) for n in lengths]
        last = max([i for i, n in enumerate(lengths) if isinstance(n, tuple)], default=0)
        last = last if num_row_partitions is None else num_row_partitions
        count, partitions = lengths[0], []
        for n in lengths[1 : last + 1]:
            made = (
                RowPartition.from_row_lengths(n) if isinstance(n, tuple) else RowPartition.from_uniform_row_length(n, nrows=count)
            )
            if len(made._splits) - 1 != count:
                raise ValueError(f"lengths {lengths}: {len(made._splits) - 1} rows where the axis before has {count} values")
            partitions.append(made)
            count = int(made._splits[-1])
        return cls(partitions, [count, *lengths[last + 1 :]])

    @classmethod
    def from_row_partitions(cls, row_partitions, dtype=None):
        return cls(row_partitions, [row_partitions[-1]._splits[-1]])

    def _extents(self):
        first = len(self._partitions[0]._splits) - 1 if self._partitions else self._inner[0]
        return [first, *[p._extent() for p in self._partitions], *self._inner[1:]] if self._inner else []

    row_partitions = property(lambda self: tuple(self._partitions))
    num_row_partitions = property(lambda self: len(self._partitions))
    inner_shape = property(lambda self: convert(np.asarray(self._inner, np.int64)))
    inner_rank = property(lambda self: len(self._inner))
    rank = property(lambda self: len(self._extents()))

    def static_lengths(self, ragged_lengths=True):
        return [n if ragged_lengths or isinstance(n, int) else None for n in self._extents()]

    def __getitem__(self, i):
        if isinstance(i, slice):
            start, stop, step = i.indices(self.rank)
            if start or step != 1:
                raise NotImplementedError("a slice of a DynamicRaggedShape begins at 0 and has no step")
            return DynamicRaggedShape.from_lengths(self._extents()[:stop])
        n = self._extents()[i]
        if not isinstance(n, int):
            raise ValueError(f"Index {i} is not uniform")
        return convert(n, self._dtype)

    def is_uniform(self, axis):
        return isinstance(self._extents()[axis], int)

    def __eq__(self, other):
        return (
            isinstance(other, DynamicRaggedShape)
            and self._extents() == other._extents()
            and self.num_row_partitions == other.num_row_partitions
        )

    __hash__ = None

    def __repr__(self):
        return f"<DynamicRaggedShape lengths={_lengths_text(self._extents())} num_row_partitions={self.num_row_partitions}>"

    # --- making tensors of this shape

    dtype = property(lambda self: self._dtype)

    def __dispatch__(self, function, args, kwargs):
        """What tf.zeros and its like do with this as the shape."""
        if function.__name__ == "reshape":
            return self.reshaped(args[0] if args else kwargs["tensor"])
        if function.__name__ not in ("fill", "zeros", "ones"):
            return NotImplemented
        rest = {k: v for k, v in kwargs.items() if k not in ("shape", "dims")}
        return self.filled(lambda shape: function(shape, *args[1:], **rest))

    def filled(self, make):
        """A tensor of this shape of what `make` gives for the shape of its flat values."""
        values = make(list(self._inner))
        for partition in reversed(self._partitions):
            values = RaggedTensor(values, partition._splits, internal=True)
            if partition._uniform is not None:
                values._uniform = partition._uniform
        return values

    def reshaped(self, x):
        flat = x.flat_values if isinstance(x, RaggedTensor) else x
        wanted = math.prod(self._inner)
        if flat.shape.num_elements() != wanted:
            raise ValueError(f"reshape: {flat.shape.num_elements()} elements do not fit into {self}, which has {wanted}")
        return self.filled(lambda shape: _arrays.reshape(flat, shape))


def _lengths_text(extents):
    return (
        "["
        + ", ".join(
            f"({', '.join(map(str, n))}{',' if len(n) == 1 else ''})" if isinstance(n, tuple) else str(n) for n in extents
        )
        + "]"
    )
