"""tf.IndexedSlices: some rows of a larger tensor."""
from tandem._convert import Composite
from tandem._face import any_tensor, ints, ops, tensor
from tandem._specs import TypeSpec
from tandem._shape import TensorShape


class IndexedSlicesSpec(TypeSpec):
    def __init__(self, shape=None, dtype="float32", indices_dtype="int64", dense_shape_dtype=None, indices_shape=None):
        self._parts = (TensorShape(shape), dtype, indices_dtype, dense_shape_dtype, TensorShape(indices_shape))

    def _key(self):
        return self._parts


class IndexedSlices(Composite):
    """Rows `values` that stand at `indices` of a tensor of `dense_shape`. Where one tensor is wanted, the others are zeros."""

    def __init__(self, values, indices, dense_shape=None):
        self._values, self._indices, self._dense_shape = any_tensor(values), tensor(indices), None if dense_shape is None else tensor(dense_shape)

    values = property(lambda self: self._values)
    indices = property(lambda self: self._indices)
    dense_shape = property(lambda self: self._dense_shape)
    dtype = property(lambda self: self._values.dtype)
    name = property(lambda self: None)
    device = property(lambda self: "/job:localhost/replica:0/task:0/device:CPU:0")

    @property
    def shape(self):
        return TensorShape([None, *self._values.shape[1:]] if self._dense_shape is None else ints(self._dense_shape))

    def dense(self):
        if self._dense_shape is None:
            raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape")
        zeros = ops.full(ops.cast(0, dtype=self.dtype), shape=ints(self._dense_shape))
        return ops.scatter(zeros, ops.expand_dims(self._indices, axis=[-1]), self._values, mode="add")

    def __neg__(self):
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __repr__(self):
        return f"IndexedSlices(indices={self._indices}, values={self._values})"

    def _components(self):
        return [self._values, self._indices] + ([] if self._dense_shape is None else [self._dense_shape])

    def _from_components(self, parts):
        return IndexedSlices(*parts)

    def __dispatch__(self, function, args, kwargs):
        def one(x):
            if isinstance(x, IndexedSlices):
                return x.dense()
            return type(x)(one(i) for i in x) if isinstance(x, (list, tuple)) else x

        return function(*[one(a) for a in args], **{k: one(v) for k, v in kwargs.items()})
