"""tf.RaggedTensor: rows of different lengths, as flat values and where rows begin."""
import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem import errors
from tandem._convert import Composite, convert
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, ints, number, ops, tensor
from tandem._shape import TensorShape
from tandem._specs import TypeSpec

int64 = as_dtype("int64")


class RaggedTensorSpec(TypeSpec):
    """The type of a ragged tensor."""

    def __init__(self, shape=None, dtype=dtypes.float32, ragged_rank=None, row_splits_dtype=int64, flat_values_spec=None):
        self._shape, self._dtype, self._row_splits_dtype = TensorShape(shape), as_dtype(dtype), as_dtype(row_splits_dtype)
        rank = self._shape.rank
        self._ragged_rank = (rank - 1 if rank is not None else None) if ragged_rank is None else ragged_rank
        self._flat_values_spec = flat_values_spec

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    ragged_rank = property(lambda self: self._ragged_rank)
    row_splits_dtype = property(lambda self: self._row_splits_dtype)
    flat_values_spec = property(lambda self: self._flat_values_spec)
    value_type = property(lambda self: RaggedTensor if self._ragged_rank else Tensor)

    def _key(self):
        return (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)

    def is_compatible_with(self, spec_or_value):
        s = spec_or_value._type_spec if isinstance(spec_or_value, RaggedTensor) else spec_or_value
        return isinstance(s, RaggedTensorSpec) and self._dtype is s._dtype and self._ragged_rank == s._ragged_rank and self._shape.is_compatible_with(s._shape)

    @classmethod
    def from_value(cls, value):
        return value._type_spec

    def __repr__(self):
        return f"RaggedTensorSpec({self._shape!r}, {self._dtype!r}, {self._ragged_rank}, {self._row_splits_dtype!r})"


def _whole(x):
    """Row partitions are NumPy's on the host: their numbers decide shapes."""
    if isinstance(x, (Tensor, CoreVariable)):
        t = tensor(x)
        if t.is_traced:
            from tandem._trace import NeedsData

            raise NeedsData("a ragged tensor whose rows are computed")
        return np.asarray(t.numpy())
    return np.asarray(x)


def _lists(x):
    return isinstance(x, (list, tuple))


class RaggedTensor(Composite):
    """Rows of different lengths. `values` may be ragged itself."""

    __array_priority__ = 100
    _makes_eager = "an argument is ragged, and where its rows begin decides shapes"

    def __init__(self, values, row_splits, internal=False):
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods instead (e.g., "
                "RaggedTensor.from_row_lengths())"
            )
        self._values, self._splits = values, row_splits

    # --- making

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        splits = _splits_array(row_splits)
        if not isinstance(row_splits, (Tensor, CoreVariable)) and splits.dtype == np.int32:
            splits = splits.astype(np.int64)
        values = values if isinstance(values, RaggedTensor) else any_tensor(values)
        if isinstance(values, RaggedTensor) and values._splits.dtype != splits.dtype:
            splits = splits.astype(np.int64)
            values = values.with_row_splits_dtype(int64)
        if splits.ndim != 1 or not len(splits):
            raise ValueError(
                "Arguments to from_row_splits do not form a valid RaggedTensor: row_splits must be a vector with at least one "
                f"element, got shape {splits.shape}"
            )
        if validate:
            if splits[0] != 0:
                raise errors.InvalidArgumentError(
                    None, None, "Arguments to from_row_splits do not form a valid RaggedTensor:zero"
                )
            if np.any(np.diff(splits) < 0):
                raise errors.InvalidArgumentError(
                    None, None, "Arguments to from_row_splits do not form a valid RaggedTensor:monotonic"
                )
            if splits[-1] != values.shape[0] and not isinstance(values, RaggedTensor):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Arguments to from_row_splits do not form a valid RaggedTensor: row_splits end at {splits[-1]}, values "
                    f"have {values.shape[0]} rows",
                )
        return cls(values, splits, internal=True)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        lengths = _splits_array(row_lengths)
        return cls.from_row_splits(
            values, convert(np.concatenate([[0], np.cumsum(lengths)]).astype(lengths.dtype)), validate=validate
        )

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        ids = _splits_array(value_rowids)
        if validate and np.any(np.diff(ids) < 0):
            raise errors.InvalidArgumentError(
                None, None, "Arguments to from_value_rowids do not form a valid RaggedTensor:not sorted"
            )
        count = (int(ids[-1]) + 1 if len(ids) else 0) if nrows is None else int(number(nrows))
        if count < 0:
            raise ValueError(f"Argument `nrows` must be non-negative. Received {count}.")
        lengths = np.bincount(ids, minlength=count)[: max(count, 0)] if len(ids) else np.zeros(count, np.int64)
        return cls.from_row_lengths(values, convert(lengths.astype(ids.dtype)), validate=validate)

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        starts, values = _splits_array(row_starts), values if isinstance(values, RaggedTensor) else any_tensor(values)
        return cls.from_row_splits(
            values, convert(np.concatenate([starts, [_rows(values)]]).astype(starts.dtype)), validate=validate
        )

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        limits = _splits_array(row_limits)
        return cls.from_row_splits(values, convert(np.concatenate([[0], limits]).astype(limits.dtype)), validate=validate)

    @classmethod
    def from_uniform_row_length(cls, values, uniform_row_length, nrows=None, name=None, validate=True):
        values = values if isinstance(values, RaggedTensor) else any_tensor(values)
        length = int(number(uniform_row_length))
        count = (_rows(values) // length if length else 0) if nrows is None else int(number(nrows))
        if length * count != _rows(values):
            raise ValueError(
                f"Arguments to from_uniform_row_length do not form a valid RaggedTensor: {_rows(values)} rows are not a "
                f"multiple of {length}"
            )
        made = cls(values, np.arange(count + 1, dtype=np.int64) * length, internal=True)
        made._uniform = length
        return made

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        for splits in reversed(list(nested_row_splits)):
            flat_values = cls.from_row_splits(flat_values, splits, validate=validate)
        return flat_values

    @classmethod
    def from_nested_row_lengths(cls, flat_values, nested_row_lengths, name=None, validate=True):
        for lengths in reversed(list(nested_row_lengths)):
            flat_values = cls.from_row_lengths(flat_values, lengths, validate=validate)
        return flat_values

    @classmethod
    def from_nested_value_rowids(cls, flat_values, nested_value_rowids, nested_nrows=None, name=None, validate=True):
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        for ids, count in reversed(list(zip(nested_value_rowids, counts))):
            flat_values = cls.from_value_rowids(flat_values, ids, count, validate=validate)
        return flat_values

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype=int64):
        from tandem import _arrays, _gather

        x = any_tensor(tensor)
        kind = as_dtype(row_splits_dtype).as_numpy_dtype
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        if isinstance(lengths, (list, tuple)) and lengths and isinstance(lengths[0], (list, tuple, Tensor)):
            inner = cls.from_tensor(
                _arrays.reshape(x, [-1, *x.dims[2:]]),
                lengths[1] if len(lengths) == 2 else list(lengths[1:]),
                row_splits_dtype=row_splits_dtype,
            )
            return cls.from_row_lengths(inner, convert(_whole(lengths[0]).astype(kind)))
        if ragged_rank > 1 and lengths is None and padding is None:
            inner = cls.from_tensor(
                _arrays.reshape(x, [-1, *x.dims[2:]]), ragged_rank=ragged_rank - 1, row_splits_dtype=row_splits_dtype
            )
            return cls.from_uniform_row_length(inner, x.shape[1])
        if ragged_rank > 1 and padding is not None:
            inner = cls.from_tensor(
                _arrays.reshape(x, [-1, *x.dims[2:]]),
                padding=padding,
                ragged_rank=ragged_rank - 1,
                row_splits_dtype=row_splits_dtype,
            )
            return cls.from_row_lengths(inner, convert(np.full(x.shape[0], x.shape[1], kind)))
        array = np.asarray(x.numpy())
        if padding is not None:
            pad = np.asarray(any_tensor(padding, x.dtype).numpy())
            hit = array == pad
            hit = hit.reshape(*array.shape[:2], -1).all(-1)
            real = np.where(hit, 0, np.arange(array.shape[1]) + 1)
            sizes = real.max(axis=1, initial=0)
        elif lengths is not None:
            sizes = np.clip(_whole(lengths), 0, array.shape[1])
        else:
            sizes = np.full(array.shape[0], array.shape[1])
        mask = np.arange(array.shape[1]) < np.asarray(sizes)[:, None]
        return cls.from_row_lengths(_gather.boolean_mask(x, convert(mask)), convert(np.asarray(sizes).astype(kind)))

    @classmethod
    def from_sparse(cls, st_input, name=None, row_splits_dtype=int64):
        rows = st_input.indices.numpy()[:, 0] if st_input.indices.shape[0] else np.zeros(0, np.int64)
        return cls.from_value_rowids(
            st_input.values, convert(rows.astype(as_dtype(row_splits_dtype).as_numpy_dtype)), int(st_input.dense_shape.numpy()[0])
        )

    # --- what it is

    values = property(lambda self: self._values)
    dtype = property(lambda self: self._values.dtype)
    row_splits = property(lambda self: convert(self._splits))
    is_traced = False

    @property
    def flat_values(self):
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def nested_row_splits(self):
        return (self.row_splits, *(self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()))

    @property
    def ragged_rank(self):
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def uniform_row_length(self):
        n = getattr(self, "_uniform", None)
        return None if n is None else convert(np.int64(n))

    @property
    def shape(self):
        inner = self._values.shape[1:]
        return TensorShape([len(self._splits) - 1, getattr(self, "_uniform", None), *inner])

    def get_shape(self):
        return self.shape

    @property
    def ndim(self):
        return 1 + len(self._values.shape)

    @property
    def _type_spec(self):
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, as_dtype(self._splits.dtype))

    def _components(self):
        return [self.flat_values, *self.nested_row_splits]

    def _from_components(self, parts):
        return RaggedTensor.from_nested_row_splits(parts[0], parts[1:], validate=False)

    def with_values(self, new_values):
        made = RaggedTensor(
            new_values if isinstance(new_values, RaggedTensor) else any_tensor(new_values), self._splits, internal=True
        )
        if hasattr(self, "_uniform"):
            made._uniform = self._uniform
        return made

    def with_flat_values(self, new_values):
        return self.with_values(
            self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        )

    def with_row_splits_dtype(self, dtype):
        values = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedTensor) else self._values
        made = RaggedTensor(values, self._splits.astype(as_dtype(dtype).as_numpy_dtype), internal=True)
        if hasattr(self, "_uniform"):
            made._uniform = self._uniform
        return made

    def value_rowids(self, name=None):
        return convert(np.repeat(np.arange(len(self._splits) - 1, dtype=self._splits.dtype), np.diff(self._splits)))

    def nested_value_rowids(self, name=None):
        return (self.value_rowids(), *(self._values.nested_value_rowids() if isinstance(self._values, RaggedTensor) else ()))

    def nrows(self, out_type=None, name=None):
        return convert(
            np.array(len(self._splits) - 1, self._splits.dtype if out_type is None else as_dtype(out_type).as_numpy_dtype)
        )

    def row_starts(self, name=None):
        return convert(self._splits[:-1].copy())

    def row_limits(self, name=None):
        return convert(self._splits[1:].copy())

    def row_lengths(self, axis=1, name=None):
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return convert(np.diff(self._splits))
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        return self.with_values(convert(np.full(self._values.shape[0], self._values.shape[axis - 1], self._splits.dtype)))

    def nested_row_lengths(self, name=None):
        return (self.row_lengths(), *(self._values.nested_row_lengths() if isinstance(self._values, RaggedTensor) else ()))

    def bounding_shape(self, axis=None, name=None, out_type=None):
        kind = self._splits.dtype if out_type is None else as_dtype(out_type).as_numpy_dtype
        sizes = [len(self._splits) - 1, int(np.diff(self._splits).max(initial=0))]
        if isinstance(self._values, RaggedTensor):
            sizes += self._values.bounding_shape().numpy().tolist()[1:]
        else:
            sizes += list(self._values.shape[1:])
        made = np.array(sizes, kind)
        return convert(made if axis is None else made[ints(axis)] if not isinstance(axis, int) else np.array(made[axis], kind))

    # --- as something else

    def to_list(self):
        if isinstance(self._values, RaggedTensor):
            rows = self._values.to_list()
        else:
            rows = np.asarray(self._values.numpy()).tolist()
        return [rows[a:b] for a, b in zip(self._splits[:-1], self._splits[1:])]

    def numpy(self):
        rows = [row.numpy() for row in self]
        if len({np.shape(r) for r in rows}) <= 1:
            return np.array(rows, dtype=self.dtype.as_numpy_dtype if self.dtype._code >= 0 else object)
        made = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            made[i] = row
        return made

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def to_tensor(self, default_value=None, name=None, shape=None):
        from tandem import _arrays

        sizes = self.bounding_shape().numpy().tolist()
        if shape is not None:
            wanted = list(TensorShape(shape)) if not isinstance(shape, (Tensor, np.ndarray)) else [
                None if d == -1 else d for d in ints(shape)
            ]
            if TensorShape(wanted if not (isinstance(shape, TensorShape) and shape.rank is None) else None).rank is not None:
                if len(wanted) != len(sizes):
                    raise ValueError(f"Shapes {tuple(wanted)} and {self.shape} are incompatible")
                sizes = [n if w is None or w == -1 else w for n, w in zip(sizes, wanted)]
        kind = self.dtype.as_numpy_dtype if self.dtype._code >= 0 else object
        if default_value is None:
            fill = b"" if self.dtype.name == "string" else np.zeros((), kind)[()]
        else:
            fill = any_tensor(default_value, self.dtype).numpy()
        # Where each flat value goes; what is cut off by `shape` goes nowhere.
        places, keep = self._places(sizes)
        depth = self.ragged_rank + 1
        inner = sizes[depth:]
        flat = self.flat_values
        if flat.dtype.name == "string":
            made = np.empty(sizes, object)
            made[...] = fill
            made[tuple(places[:, keep])] = np.asarray(flat.numpy())[keep]
            return any_tensor(made, self.dtype)
        base = _arrays.broadcast_to(
            any_tensor(fill, self.dtype) if not isinstance(fill, np.ndarray) else convert(fill, self.dtype), sizes
        )
        if not keep.any():
            return base
        at = convert(np.ascontiguousarray(places[:, keep].T).astype(np.int32))
        rows = ops.take(flat, convert(np.flatnonzero(keep).astype(np.int32)), axis=0) if not keep.all() else flat
        if inner and list(rows.dims[1:]) != inner:
            rows = rows[tuple([slice(None), *[slice(n) for n in inner]])]
        return _core.strict_ops.scatter(base, at, rows, mode="set")

    def _places(self, sizes):
        """[depth, values] indices of flat values, and which of them lie inside of `sizes`."""
        starts, rows = self._splits[:-1], np.repeat(np.arange(len(self._splits) - 1), np.diff(self._splits))
        column = np.arange(self._splits[-1] if len(self._splits) else 0) - np.repeat(starts, np.diff(self._splits))
        at = np.stack([rows, column]) if len(rows) else np.zeros((2, 0), np.int64)
        if isinstance(self._values, RaggedTensor):
            inner, _ = self._values._places(sizes[1:])
            at = np.concatenate([at[:, inner[0]], inner[1:]]) if inner.size or True else at
        limits = np.array(sizes[: len(at)])[:, None]
        return at.astype(np.int64), (at < limits).all(0) if at.size else np.zeros(at.shape[1], bool)

    def to_sparse(self, name=None):
        from tandem._sparse import SparseTensor

        sizes = self.bounding_shape().numpy().tolist()
        places, _ = self._places(sizes)
        return SparseTensor(np.ascontiguousarray(places.T), self.flat_values, sizes)

    def consumers(self):
        return []

    def merge_dims(self, outer_axis, inner_axis):
        rank = self.ndim
        outer, inner = outer_axis % rank, inner_axis % rank
        return _merged(self, outer, inner)

    # --- Python's operators

    def __len__(self):
        return len(self._splits) - 1

    def __iter__(self):
        return iter([self[i] for i in range(len(self._splits) - 1)])

    def __getitem__(self, key):
        return _get(self, list(key) if isinstance(key, tuple) else [key])

    def __repr__(self):
        return f"<tf.RaggedTensor {_list_text(self)}>"

    def __str__(self):
        return repr(self)

    def __bool__(self):
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __hash__(self):
        raise TypeError("RaggedTensor is unhashable")

    def __dispatch__(self, function, args, kwargs):
        from tandem import _ragged_ops

        return _ragged_ops.dispatch(function, args, kwargs)


def _elementwise(name, reflected=False):
    def operator(self, other):
        from tandem import _ragged_ops

        return _ragged_ops.binary(name, *((other, self) if reflected else (self, other)))

    return operator


for _method, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "truediv", "floordiv": "floordiv", "mod": "floormod", "pow": "pow", "and": "logical_and",
    "or": "logical_or", "xor": "logical_xor",
}.items():  # fmt: skip
    setattr(RaggedTensor, f"__{_method}__", _elementwise(_name))
    setattr(RaggedTensor, f"__r{_method}__", _elementwise(_name, True))
for _method, _name in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"
}.items():
    setattr(RaggedTensor, f"__{_method}__", _elementwise(_name))
RaggedTensor.__hash__ = None
RaggedTensor.__neg__ = lambda self: self.with_flat_values(-self.flat_values)
RaggedTensor.__abs__ = lambda self: self.with_flat_values(abs(self.flat_values))
RaggedTensor.__invert__ = lambda self: self.with_flat_values(ops.logical_not(self.flat_values))


def _splits_array(x):
    array = _whole(x)
    if array.dtype.kind == "f" and not array.size:
        array = array.astype(np.int64)
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    if not isinstance(x, (Tensor, CoreVariable, np.ndarray)):
        array = array.astype(np.int64)
    return array


def _rows(values):
    return len(values._splits) - 1 if isinstance(values, RaggedTensor) else values.shape[0]


def _list_text(x):
    """Lists as TensorFlow prints them: long ones on lines of their own."""
    def one(v):
        if isinstance(v, list):
            return "[" + ", ".join(one(i) for i in v) + "]"
        return repr(v)

    kind = x.dtype.as_numpy_dtype if x.dtype._code >= 0 else None

    def numbers(v):
        if isinstance(v, list):
            return [numbers(i) for i in v]
        return v if kind is None or x.dtype.is_integer or x.dtype.is_bool else _Float(np.dtype(kind).type(v))

    rows = [one(numbers(r)) for r in x.to_list()]
    flat = "[" + ", ".join(rows) + "]"
    return flat if len(flat) <= 70 else "[" + ",\n ".join(rows) + "]"


class _Float:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return str(self.x)


def _merged(x, outer, inner):
    """Axes outer..inner as one."""
    from tandem import _arrays

    if outer >= inner:
        return x
    if not isinstance(x, RaggedTensor):
        dims = x.dims
        size = 1
        for d in dims[outer : inner + 1]:
            size = size * d
        return _arrays.reshape(x, [*dims[:outer], size, *dims[inner + 1 :]])
    if outer == 0:
        return _merged(x._values, 0, inner - 1)
    if outer == 1:
        values = x._values
        if isinstance(values, RaggedTensor):
            made = RaggedTensor(values._values, values._splits[x._splits], internal=True)
            return _merged(made, 1, inner - 1)
        width = values.shape[1] if values.ndim > 1 else 1
        merged = _arrays.reshape(values, [-1, *values.dims[2:]])
        made = RaggedTensor(merged, x._splits * width, internal=True)
        return _merged(made, 1, inner - 1)
    return x.with_values(_merged(x._values, outer - 1, inner - 1))


def _get(x, keys):
    """x[keys], one axis after the other."""
    from tandem import _arrays

    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    if Ellipsis in [k for k in keys if not isinstance(k, Tensor)]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        used = sum(k is not None and k is not Ellipsis for k in keys)
        keys = keys[:at] + [slice(None)] * (x.ndim - used) + keys[at + 1 :]
    first, rest = keys[0], keys[1:]
    if first is None:
        made = _get(x, rest)
        return _expanded(made)
    if isinstance(first, slice):
        start, stop, step = first.indices(len(x)) if not (first.step or 1) < 0 else first.indices(len(x))
        picked = _pick(x, np.arange(start, stop, step))
        return _inner(picked, rest)
    if isinstance(first, (Tensor, CoreVariable, np.integer, int)):
        i = int(number(first))
        count = len(x)
        if not -count <= i < count:
            raise errors.InvalidArgumentError(None, None, f"slice index {i} of dimension 0 out of bounds")
        i = i + count if i < 0 else i
        row = x._values[int(x._splits[i]) : int(x._splits[i + 1])]
        return _get(row, rest)
    raise TypeError(f"no index of a ragged tensor: {first!r}")
    return _arrays


def _expanded(x):
    if isinstance(x, RaggedTensor):
        return RaggedTensor(x, np.array([0, len(x)], x._splits.dtype), internal=True)
    from tandem import _arrays

    return _arrays.expand_dims(x, 0)


def _pick(x, rows):
    """Rows by number."""
    if not isinstance(x, RaggedTensor):
        from tandem import _gather

        return _gather.gather(x, convert(rows.astype(np.int32)))
    starts, stops = x._splits[:-1][rows], x._splits[1:][rows]
    at = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops)]) if len(rows) else np.zeros(0, np.int64)
    splits = np.concatenate([[0], np.cumsum(stops - starts)]).astype(x._splits.dtype)
    made = RaggedTensor(_pick(x._values, at.astype(np.int64)), splits, internal=True)
    if hasattr(x, "_uniform"):
        made._uniform = x._uniform
    return made


def _inner(x, keys):
    """x[:, keys...]"""
    if not keys or not isinstance(x, RaggedTensor):
        return x if not keys else x[tuple([slice(None), *keys])]
    first, rest = keys[0], keys[1:]
    if first is Ellipsis or isinstance(first, slice) and first == slice(None):
        return x.with_values(_inner(x._values, rest)) if rest else x
    if first is None:
        made = RaggedTensor(_inner(x, rest), np.arange(len(x) + 1, dtype=x._splits.dtype), internal=True)
        made._uniform = 1
        return made
    lengths = np.diff(x._splits)
    if isinstance(first, slice):
        picked, sizes = [], []
        for start, n in zip(x._splits[:-1], lengths):
            a, b, step = first.indices(int(n))
            row = np.arange(a, b, step)
            picked.append(row + start)
            sizes.append(len(row))
        at = np.concatenate(picked) if picked else np.zeros(0, np.int64)
        splits = np.concatenate([[0], np.cumsum(sizes)]).astype(x._splits.dtype)
        return RaggedTensor(_inner(_pick(x._values, at.astype(np.int64)), rest), splits, internal=True)
    if isinstance(first, (int, np.integer, Tensor, CoreVariable)):
        i = int(number(first))
        if getattr(x, "_uniform", None) is None:
            raise ValueError("Cannot index into an inner ragged dimension.")
        return _get(_pick(x._values, (x._splits[:-1] + i).astype(np.int64)), [slice(None), *rest] if rest else [])
    raise TypeError(f"no index of a ragged tensor: {first!r}")
