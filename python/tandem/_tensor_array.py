"""tf.TensorArray: a list of tensors that is written once a place."""
import numpy as np

from tandem import _dtypes as dtypes
from tandem import errors
from tandem._convert import Composite, convert
from tandem._dtypes import as_dtype
from tandem._face import any_tensor, ints, number, ops, tensor
from tandem._shape import TensorShape
from tandem._specs import TypeSpec


class TensorArraySpec(TypeSpec):
    def __init__(self, element_shape=None, dtype=dtypes.float32, dynamic_size=False, infer_shape=True):
        self._parts = (TensorShape(element_shape), as_dtype(dtype), dynamic_size, infer_shape)

    def _key(self):
        return self._parts


class TensorArray(Composite):
    """Writing gives the array back: use what it gives. In a loop of a compiled function all places are one tensor."""

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None, flow=None, infer_shape=True,
                 element_shape=None, colocate_with_first_write_call=True, name=None):  # fmt: skip
        self._dtype, self._dynamic = as_dtype(dtype), bool(dynamic_size)
        self._items, self._all = [None] * (0 if size is None else int(number(size))), None
        self._element_shape, self._clear = TensorShape(element_shape), clear_after_read is not False

    dtype = property(lambda self: self._dtype)
    dynamic_size = property(lambda self: self._dynamic)
    element_shape = property(lambda self: self._element_shape)
    flow = property(lambda self: convert(0.0))
    handle = property(lambda self: self)
    shape = property(
        lambda self: TensorShape([None, *self._element_shape]) if self._element_shape.rank is not None else TensorShape(None)
    )

    # As a part of a structure: one tensor, once something was written or the shape is known.

    def _components(self):
        if self._all is not None:
            return [self._all]
        if self._items and all(i is not None for i in self._items):
            return [ops.stack(self._items)]
        known = next((i for i in self._items if i is not None), None)
        dims = known.dims if known is not None else self._element_shape if self._element_shape.is_fully_defined() else None
        if dims is None or not self._items:
            from tandem._trace import NeedsData

            what = "a TensorArray that grows" if not self._items else "a TensorArray whose elements' shape nothing tells"
            raise NeedsData(f"{what} in a loop over tensors; a size and an element_shape make one that is compiled")
        zero = ops.full(ops.cast(0, dtype=self._dtype), shape=dims)
        return [ops.stack([zero if i is None else i for i in self._items])]

    @property
    def needs_element_shape(self):
        """Whether it cannot go through a loop yet, for want of a first element."""
        return self._all is None and not self._element_shape.is_fully_defined() and all(i is None for i in self._items)

    def _from_components(self, parts):
        made = TensorArray(self._dtype, len(self._items) or self._all.shape[0], self._dynamic, element_shape=self._element_shape)
        made._all = parts[0]
        return made

    def _copy(self):
        made = TensorArray(self._dtype, 0, self._dynamic, element_shape=self._element_shape)
        made._items, made._all = list(self._items), self._all
        return made

    def size(self, name=None):
        count = self._all.dims[0] if self._all is not None else len(self._items)
        return convert(np.int32(count)) if isinstance(count, int) else ops.reshape(ops.extent(dims=[count], dtype="int32"), shape=[])

    def write(self, index, value, name=None):
        value = any_tensor(value, self._dtype) if not hasattr(value, "dtype") else any_tensor(value)
        if value.dtype is not self._dtype:
            raise errors.InvalidArgumentError(
                None, None, f"TensorArray dtype is {self._dtype.name} but op is trying to write dtype {value.dtype.name}"
            )
        if not self._element_shape.is_compatible_with(value.shape):
            raise ValueError(f"Incompatible shape for value ({value.shape}), expected ({self._element_shape})")
        index = tensor(index) if not isinstance(index, int) else index
        if self._all is not None or (not isinstance(index, int) and index.is_traced):
            return self._write_in_loop(index, value)
        at = int(number(index))
        if at >= len(self._items):
            if not self._dynamic:
                raise errors.OutOfRangeError(
                    None, None, f"Tried to write to index {at} but array is not resizeable and size is: {len(self._items)}"
                )
            self._items += [None] * (at + 1 - len(self._items))
        if at < 0:
            raise errors.OutOfRangeError(None, None, f"Writing to negative indices (index {at}) is not allowed.")
        self._items[at] = value
        return self

    def _write_in_loop(self, index, value):
        if self._all is None and not self._element_shape.is_fully_defined():
            self._element_shape = TensorShape(value.shape)  # this array's own: a loop learns it from a step that is thrown away
        before, made = self._components()[0], self._copy()
        at = ops.reshape(ops.cast(tensor(index), dtype="int32"), shape=[1, 1])
        made._all = ops.scatter(before, at, ops.expand_dims(value, axis=[0]), mode="set")
        return made

    def read(self, index, name=None):
        index = tensor(index) if not isinstance(index, int) else index
        if self._all is not None or (not isinstance(index, int) and index.is_traced):
            return ops.take(self._components()[0], tensor(index), axis=0)
        at = int(number(index))
        if not 0 <= at < len(self._items):
            raise errors.OutOfRangeError(None, None, f"Tried to read from index {at} but array size is: {len(self._items)}")
        if self._items[at] is None:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Could not read index {at} twice because it was cleared after a previous read, or it was never written",
            )
        found = self._items[at]
        if self._clear and not self._dynamic:
            self._items[at] = None
        return found

    def stack(self, name=None):
        from tandem import _arrays

        if self._all is not None:
            return self._all
        if not self._items:
            return _arrays.zeros(
                [0, *[d or 0 for d in (self._element_shape if self._element_shape.rank is not None else [])]], self._dtype
            )
        known = next((i for i in self._items if i is not None), None)
        if known is None and not self._element_shape.is_fully_defined():
            raise errors.InvalidArgumentError(
                None, None, "TensorArray: stack of an array that was never written and has no element_shape"
            )
        zero = None if all(i is not None for i in self._items) else _arrays.zeros(
            known.dims if known is not None else self._element_shape, self._dtype
        )
        return _arrays.stack([zero if i is None else i for i in self._items])

    def gather(self, indices, name=None):
        if self._all is not None:
            return ops.take(self._all, tensor(indices), axis=0)
        from tandem import _arrays

        return _arrays.stack([self._items[i] for i in ints(indices)])

    def concat(self, name=None):
        from tandem import _arrays

        return _arrays.concat(self._items if self._all is None else _arrays.unstack(self._all), 0)

    def unstack(self, value, name=None):
        from tandem import _arrays

        value = any_tensor(value)
        if value.is_traced:
            self._items, self._all = [], value
        else:
            self._items, self._all = _arrays.unstack(value), None
        return self

    def scatter(self, indices, value, name=None):
        from tandem import _arrays

        for i, row in zip(ints(indices), _arrays.unstack(any_tensor(value))):
            self.write(i, row)
        return self

    def split(self, value, lengths, name=None):
        from tandem import _arrays

        self._items, self._all = _arrays.split(any_tensor(value), ints(lengths)), None
        return self

    def identity(self):
        return self

    def grad(self, source, flow=None, name=None):
        raise NotImplementedError("TensorArray.grad")

    def close(self, name=None):
        return None

    def set_shape(self, shape):
        self._element_shape = self._element_shape.merge_with(shape)
