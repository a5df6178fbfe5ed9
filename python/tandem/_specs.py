"""TensorSpec and the like: types of values, for signatures and datasets."""
from tandem import _core
from tandem import _dtypes as dtypes
from tandem._convert import Composite
from tandem._dtypes import as_dtype
from tandem._shape import TensorShape


class TypeSpec:
    """The type of a value."""

    value_type = None

    def is_compatible_with(self, spec_or_value):
        spec = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        return type(spec) is type(self) and self.most_specific_common_supertype([spec]) == self

    def is_subtype_of(self, other):
        return type(other) is type(self) and other.is_compatible_with(self)

    def most_specific_common_supertype(self, others):
        return self if all(o == self for o in others) else None

    def most_specific_compatible_type(self, other):
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def _key(self):
        return ()

    def __eq__(self, other):
        return type(other) is type(self) and self._key() == other._key()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((type(self), self._key()))

    def __reduce__(self):
        return type(self), self._key()


class TensorSpec(TypeSpec):
    """A tensor's shape and dtype."""

    def __init__(self, shape, dtype=dtypes.float32, name=None):
        self._shape, self._dtype, self._name = TensorShape(shape), as_dtype(dtype), name

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    name = property(lambda self: self._name)
    rank = property(lambda self: self._shape.rank)

    @property
    def value_type(self):
        return _core.Tensor

    @classmethod
    def from_tensor(cls, tensor, name=None):
        return cls(
            tensor.shape, tensor.dtype, name or (tensor.name.split(":")[0] if getattr(tensor, "is_traced", False) else None)
        )

    @classmethod
    def from_spec(cls, spec, name=None):
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor):
        other = spec_or_tensor if hasattr(
            spec_or_tensor, "dtype"
        ) and hasattr(spec_or_tensor, "shape") else type_spec_from_value(spec_or_tensor)
        return self._dtype is as_dtype(other.dtype) and self._shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other):
        return isinstance(other, TensorSpec) and self._dtype is other._dtype and self._shape.is_subtype_of(other._shape)

    def most_specific_common_supertype(self, others):
        shape = self._shape
        for o in others:
            if not isinstance(o, TensorSpec) or o._dtype is not self._dtype:
                return None
            shape = shape.most_specific_compatible_shape(o._shape)
        return TensorSpec(shape, self._dtype, self._name)

    def _key(self):
        return (self._shape, self._dtype, self._name)

    def __eq__(self, other):
        return isinstance(other, TensorSpec) and self._shape == other._shape and self._dtype is other._dtype and self._name == other._name

    __hash__ = TypeSpec.__hash__

    def __repr__(self):
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


class NoneTensorSpec(TypeSpec):
    def __repr__(self):
        return "NoneTensorSpec()"


def type_spec_from_value(value):
    """The spec of a tensor, of a composite, or of what a tensor can be made of."""
    if isinstance(value, TypeSpec):
        return value
    if hasattr(value, "_type_spec"):
        return value._type_spec
    if isinstance(value, (_core.Tensor, _core.Variable, Composite)):
        return TensorSpec(value.shape, value.dtype)
    if value is None:
        return NoneTensorSpec()
    if hasattr(value, "element_spec") and hasattr(value, "_spec"):
        return value._spec
    from tandem._face import any_tensor

    try:
        made = any_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}") from None
    return TensorSpec(made.shape, made.dtype)
