"""tf.experimental.Optional: an element that may not be there."""

from tandem import errors
from tandem._face import Tensor
from tandem._host_calls import check_when_run
from tandem._specs import TypeSpec
from tandem.data._nest import flatten


class Optional:
    def __init__(self, has, value, spec):
        self._has, self._value, self._spec = has, value, spec

    @staticmethod
    def empty(element_spec):
        return Optional(False, None, element_spec)

    @staticmethod
    def from_value(value):
        nest, flat = flatten(value)
        return Optional(True, nest.pack(flat), None)

    def has_value(self, name=None):
        from tandem._convert import convert

        return convert(self._has)

    def get_value(self, name=None):
        if isinstance(self._has, Tensor):  # in a compiled function
            text = "The given optional does not have a value."
            check_when_run(self._has, lambda _: text, [])
        elif not self._has:
            raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
        return self._value

    @property
    def element_spec(self):
        from tandem._specs import TensorSpec
        from tandem.data._nest import map_leaves

        return map_leaves(lambda t: TensorSpec(t.shape, t.dtype), self._value) if self._has is True else self._spec

    def __repr__(self):
        return f"tf.experimental.Optional(element_spec={self.element_spec})"


class OptionalSpec(TypeSpec):
    """The type of an Optional."""

    def __init__(self, element_spec):
        self._element_spec = element_spec

    element_spec = property(lambda self: self._element_spec)

    def _key(self):
        return (self._element_spec,)

    def __repr__(self):
        return f"OptionalSpec({self._element_spec!r})"
