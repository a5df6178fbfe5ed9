"""Iterators over a Dataset."""

import atexit

import numpy as np

from tandem import _core
from tandem import errors
from tandem._specs import TypeSpec
from tandem.data._nest import map_leaves

atexit.register(_core.stop_iterators)  # their threads must not wait for an interpreter that is gone


class Iterator:
    """One walk over a Dataset. Other Python threads run while it works; a forked process must make its own."""

    def __init__(self, dataset):
        self._dataset = dataset  # its functions are in use
        self._core = dataset._pipe.iterate()
        self._next, self._pack = self._core.next, None

    def __iter__(self):
        return self

    def __next__(self):
        flat = self._next()
        if flat is None:
            raise StopIteration
        if self._pack is None:  # a function that is called tells its nest with its first result
            self._pack = self._dataset._nest.pack
        return self._pack(flat)

    def get_next(self):
        try:
            return next(self)
        except StopIteration:
            raise errors.OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self):
        from tandem.data.experimental import Optional

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
