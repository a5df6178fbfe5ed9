"""tf.SparseTensor: the elements that are there, and where."""
import numpy as np

from tandem import _dtypes as dtypes
from tandem._convert import Composite, convert
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, ints, ops, tensor
from tandem._shape import TensorShape
from tandem._specs import TypeSpec


class SparseTensorSpec(TypeSpec):
    def __init__(self, shape=None, dtype=dtypes.float32):
        self._shape, self._dtype = TensorShape(shape), as_dtype(dtype)

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    rank = property(lambda self: self._shape.rank)
    value_type = property(lambda self: SparseTensor)

    def _key(self):
        return (self._shape, self._dtype)

    def is_compatible_with(self, spec_or_value):
        s = spec_or_value._type_spec if isinstance(spec_or_value, SparseTensor) else spec_or_value
        return isinstance(s, SparseTensorSpec) and self._dtype is s._dtype and self._shape.is_compatible_with(s._shape)

    @classmethod
    def from_value(cls, value):
        return value._type_spec

    def __repr__(self):
        return f"SparseTensorSpec({self._shape!r}, {self._dtype!r})"


def _whole(x, shape):
    if isinstance(x, (Tensor, CoreVariable)):
        return ops.cast(tensor(x), dtype="int64")
    return convert(np.asarray(x, np.int64).reshape(shape if not np.size(x) else np.shape(x)))


class SparseTensor(Composite):
    """values[i] stands at indices[i] of a tensor of dense_shape; everything else is zero."""

    __array_priority__ = 100

    def __init__(self, indices, values, dense_shape):
        self._dense_shape = _whole(dense_shape, [-1])
        rank = self._dense_shape.shape[0]
        self._indices = _whole(indices, [0, rank])
        self._values = any_tensor(values) if not (
            isinstance(values, (list, tuple)) and not values
        ) else convert(np.zeros(0, np.float32))
        if self._indices.ndim != 2:
            raise ValueError(f"Shape {self._indices.shape} must have rank 2")
        if self._indices.shape[0] != self._values.shape[0]:
            raise ValueError(f"Dimensions {self._indices.shape[0]} and {self._values.shape[0]} are not compatible")

    @classmethod
    def from_value(cls, sparse_tensor_value):
        s = sparse_tensor_value
        return s if isinstance(s, cls) else cls(s.indices, s.values, s.dense_shape)

    indices = property(lambda self: self._indices)
    values = property(lambda self: self._values)
    dense_shape = property(lambda self: self._dense_shape)
    dtype = property(lambda self: self._values.dtype)
    ndim = property(lambda self: self._dense_shape.shape[0])
    op = property(lambda self: None)
    is_traced = property(lambda self: any(getattr(p, "is_traced", False) for p in self._components()))

    @property
    def shape(self):
        if self._dense_shape.is_traced:
            return TensorShape([None] * self._dense_shape.shape[0])
        return TensorShape([int(n) for n in self._dense_shape.numpy()])

    def get_shape(self):
        return self.shape

    @property
    def _type_spec(self):
        return SparseTensorSpec(self.shape, self.dtype)

    def _components(self):
        return [self._indices, self._values, self._dense_shape]

    def _from_components(self, parts):
        made = SparseTensor.__new__(SparseTensor)
        made._indices, made._values, made._dense_shape = parts
        return made

    def with_values(self, new_values):
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def consumers(self):
        return []

    def eval(self, feed_dict=None, session=None):
        return self

    def set_shape(self, shape):
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Shapes {self.shape} and {shape} are incompatible")

    def __repr__(self):
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self._dense_shape!s})"

    def __getitem__(self, key):
        from tandem import sparse

        keys = list(key) if isinstance(key, tuple) else [key]
        start, size, dropped = [], [], []
        for axis, n in enumerate(self.shape):
            k = keys[axis] if axis < len(keys) else slice(None)
            if isinstance(k, slice):
                a, b, step = k.indices(n)
                if step != 1:
                    raise NotImplementedError("a slice of a SparseTensor with a step")
                start.append(a)
                size.append(max(b - a, 0))
            else:
                start.append(int(k) % n)
                size.append(1)
                dropped.append(axis)
        made = sparse.slice(self, start, size)
        kept = [s for i, s in enumerate(size) if i not in dropped]
        return sparse.reshape(made, kept) if dropped else made

    def __dispatch__(self, function, args, kwargs):
        handler = _handlers().get(function.__name__)
        return handler(*args, **kwargs) if handler else NotImplemented

    def __neg__(self):
        return self.with_values(-self._values)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b)

    def __add__(self, other):
        from tandem import sparse

        return sparse.add(self, other)

    __radd__ = __add__

    def __sub__(self, other):
        from tandem import sparse

        return sparse.add(self, -other)

    def _with(self, other, f):
        """The other's numbers at our places."""
        from tandem import _arrays, _gather

        other = any_tensor(other, None, self.dtype)
        spread = _arrays.broadcast_to(other, list(self.shape))
        return self.with_values(f(self._values, _gather.gather_nd(spread, self._indices)))


def _handlers():
    from tandem import sparse

    def by_values(name):
        from tandem import _arrays, math

        function = getattr(math, name, None) or getattr(_arrays, name)
        return lambda x=None, *args, **kwargs: x.with_values(function(x.values, *args, **kwargs))

    found = {
        name: by_values(name) for name in (
            "cast", "abs", "negative", "square", "sqrt", "sin", "tanh", "identity", "sign", "ceil", "floor", "round", "zeros_like"
        )
    }
    found.update(
        shape=lambda input, out_type=None, name=None: ops.cast(input.dense_shape, dtype=out_type or "int32"),
        size=lambda input, out_type=None, name=None: convert(
            np.array(int(np.prod(ints(input.dense_shape))), as_dtype(out_type or "int32").as_numpy_dtype)
        ),
        rank=lambda input, name=None: convert(np.int32(input.ndim)),
        reshape=lambda tensor_, shape, name=None: sparse.reshape(tensor_, shape), transpose=lambda a, perm=None, **k: sparse.transpose(a, perm),
        matmul=lambda a, b, **k: sparse.sparse_dense_matmul(a, b) if isinstance(a, SparseTensor) else NotImplemented,
        reduce_sum=lambda input_tensor, axis=None, keepdims=False, name=None: sparse.reduce_sum(input_tensor, axis, keepdims),
        multiply=lambda x, y, name=None: x * y if isinstance(x, SparseTensor) else y * x, expand_dims=lambda input, axis, name=None: sparse.expand_dims(input, axis),
        concat=lambda values, axis, name=None: sparse.concat(axis, values), add=lambda x, y, name=None: sparse.add(x, y),
        bincount=_bincount,
    )  # fmt: skip
    return found


def _bincount(arr, weights=None, minlength=None, maxlength=None, dtype="int32", name=None, axis=None, binary_output=False):
    from tandem import _segments

    return _segments.bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output)
