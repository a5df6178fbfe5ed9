"""tf.Tensor: one class for what programs ask about, whatever of ours holds the numbers."""
from tandem import _core
from tandem._complex import ComplexTensor

_kinds = (_core.Tensor, ComplexTensor)


class _Meta(type):
    def __instancecheck__(cls, x):
        return isinstance(x, _kinds)

    def __subclasscheck__(cls, other):
        return other is cls or issubclass(other, _kinds)

    def __getattr__(cls, name):
        return getattr(_core.Tensor, name)


class Tensor(metaclass=_Meta):
    """The class of all tensors: of numbers, of complex numbers, of strings."""
