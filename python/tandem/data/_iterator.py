"""Iterators over a Dataset."""

import atexit
import collections

import numpy as np

from tandem import _core
from tandem import errors
from tandem._convert import Composite, convert
from tandem._dtypes import string
from tandem._specs import TypeSpec
from tandem._trace import NeedsData, element_is_taken
from tandem.data._nest import map_leaves

atexit.register(_core.stop_iterators)  # their threads must not wait for an interpreter that is gone


def not_while_tracing(what):
    """Python's own loop would take the elements while the function is traced, or never end."""
    if _core.is_tracing():
        raise NeedsData(what)


def _fixed_types(dataset):
    """(dtype, dims) of the parts of all elements; NeedsData where a compiled function cannot hold them."""
    nest, specs = dataset._nest, dataset._flat_specs()
    if not nest.is_plain:
        raise NeedsData(f"the elements of a dataset are more than tensors: {dataset.element_spec}")
    for spec in specs:
        if spec.dtype._code < 0:
            raise NeedsData(f"the elements of a dataset have {spec.dtype.name}s: {dataset.element_spec}")
        if not spec.shape.is_fully_defined():
            hint = "batch(..., drop_remainder=True) makes batches of one size"
            raise NeedsData(f"the elements of a dataset may differ in shape: {spec}; {hint}")
    return [(spec.dtype, tuple(spec.shape)) for spec in specs]


class TracedIterator(Composite):
    """A walk inside of a compiled function: its number is a tensor, and the next element is taken when the function comes there."""

    def __init__(self, number, dataset, keeps=None):
        self._number, self._dataset, self._keeps = number, dataset, keeps

    element_spec = property(lambda self: self._dataset.element_spec)

    def _components(self):
        return [self._number]

    def _from_components(self, parts):
        return TracedIterator(parts[0], self._dataset, self._keeps)

    def _static_key(self):
        return repr(self.element_spec)

    def taken(self, must_exist):
        """Whether there is a next element, a traced bool, and its tensors."""
        element_is_taken()
        has, *flat = _core.next_of_walk(self._number, _fixed_types(self._dataset), must_exist, self._keeps)
        return has, flat

    def packed(self, flat):
        return self._dataset._nest.pack(flat)

    def nothing(self):
        """What `taken` gives behind the end."""
        types = _fixed_types(self._dataset)
        return convert(False), [_core.ops.full(_core.ops.cast(0, dtype=dtype), shape=dims) for dtype, dims in types]

    def get_next(self):
        return self.packed(self.taken(True)[1])

    __next__ = get_next

    def get_next_as_optional(self):
        from tandem.data.optional import Optional

        has, flat = self.taken(False)
        return Optional(has, self.packed(flat), self.element_spec)

    def __iter__(self):
        raise NeedsData("a Python loop over an iterator, which AutoGraph did not convert")


class Iterator(Composite):
    """One walk over a Dataset. Other Python threads run while it works; a forked process must make its own."""

    def __init__(self, dataset):
        self._dataset = dataset  # its functions are in use
        self._core = dataset._pipe.iterate()
        self._next, self._pack = self._core.next, None

    # As an argument of a compiled function, it is its number.

    def _components(self):
        return [convert(self._core.number, "int64")]

    def _from_components(self, parts):
        return TracedIterator(parts[0], self._dataset)

    def _static_key(self):
        return repr(self.element_spec)

    def traced(self):
        """The same walk inside of the function that is being traced."""
        return TracedIterator(self._components()[0], self._dataset, self._core)

    def __iter__(self):
        not_while_tracing("a Python loop over an iterator, which AutoGraph did not convert")
        return self

    def __next__(self):
        if _core.is_tracing():
            return next(self.traced())
        flat = self._next()
        if flat is None:
            raise StopIteration
        if self._pack is None:  # a function that is called tells its nest with its first result
            self._pack = self._dataset._nest.pack
        return self._pack(flat)

    def next(self):
        return self.__next__()

    def get_next(self):
        try:
            return next(self)
        except StopIteration:
            raise errors.OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self):
        from tandem.data.experimental import Optional

        if _core.is_tracing():
            return self.traced().get_next_as_optional()
        try:
            return Optional.from_value(next(self))
        except StopIteration:
            return Optional.empty(self.element_spec)

    @property
    def element_spec(self):
        return self._dataset.element_spec

    @property
    def _type_spec(self):
        return IteratorSpec(self.element_spec)

    def explain(self):
        """Each stage with its time, parallelism, queue and bytes, and which one holds the others up."""
        return self._core.explain()

    def save(self):
        """The position as bytes: a later iterator of an equal Dataset goes on from there with restore()."""
        return self._core.save()

    def restore(self, state):
        self._core.restore(state)

    # --- in a checkpoint

    def _saveable_state(self):
        word = np.empty((), object)
        word[()] = self.save()
        return word

    def _restore_state(self, value):
        self.restore(bytes(value))


class DeviceIterator(Iterator):
    """A walk whose elements are on a device; so many of the next ones are on their way there."""

    def __init__(self, dataset, device, ahead):
        super().__init__(dataset)
        self._device, self._ahead = device, ahead
        self._under_way, self._at_end, self._next = collections.deque(), False, self._next_there

    def _next_there(self):
        while not self._at_end and len(self._under_way) <= self._ahead:
            flat = self._core.next()
            if flat is None:
                self._at_end = True
            else:
                self._under_way.append([t if t.dtype is string else _core.to_device(t, self._device) for t in flat])
        return self._under_way.popleft() if self._under_way else None

    def save(self):
        if self._under_way:
            raise errors.FailedPreconditionError(
                None, None, f"the iterator's position: {len(self._under_way)} elements are on their way to a device and would be lost\n"
                "  hint: save the iterator of the dataset in front of prefetch_to_device",
            )  # fmt: skip
        return super().save()


class IteratorSpec(TypeSpec):
    """The type of an iterator."""

    def __init__(self, element_spec):
        self._element_spec = element_spec

    element_spec = property(lambda self: self._element_spec)

    @staticmethod
    def from_value(value):
        return IteratorSpec(value.element_spec)

    def _key(self):
        return (self._element_spec,)

    def __repr__(self):
        return f"IteratorSpec({self._element_spec!r}, TensorShape([]))"


class NumpyIterator:
    """The same with NumPy's arrays."""

    def __init__(self, dataset):
        self._iterator = Iterator(dataset)

    def __iter__(self):
        return self

    def __next__(self):
        return map_leaves(as_numpy, next(self._iterator))


def as_numpy(x):
    if x is None:
        return None
    if hasattr(x, "as_numpy_iterator"):
        return x.as_numpy_iterator()
    value = x.numpy() if hasattr(x, "numpy") else np.asarray(x)
    return value
