"""What the families of functions share: types by Keras's rule, axes, and values that only exist outside of a trace."""
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.config import floatx

from keras_tandem.src.ops.core import Tensor, cast, convert_to_tensor, ops
from tandem import _core
from tandem._complex import ComplexTensor
from tandem._convert import NotOneTensor
from tandem._sparse import SparseTensor

__all__ = [
    "Dim", "SparseTensor", "Tensor", "axis_of", "cast", "convert_to_tensor", "dtype_of", "extent", "floating", "floatx", "function", "is_number",
    "ops", "product", "promoted", "promoted_floats", "ravel", "real_tensor", "result_type", "resulting", "values",
]  # fmt: skip

Dim = _core.Dim


def function(name, body):
    """A function that is made, not written, under the name that Keras knows."""
    body.__name__ = body.__qualname__ = name
    return body


def is_number(x):
    return isinstance(x, (bool, int, float))


def dtype_of(x):
    """What Keras's promotion sees: the type of a tensor or array, the class of a Python number."""
    if isinstance(x, Dim):
        return int
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return dtype
    return type(x) if is_number(x) else convert_to_tensor(x).dtype


def resulting(*xs):
    """The type that Keras says these values have together; classes such as float may be among them."""
    return result_type(*[x if isinstance(x, (str, type)) else dtype_of(x) for x in xs])


def floating(x):
    """A tensor of floats. Integers become Keras's own float type."""
    x = real_tensor(x)
    return x if x.dtype.is_floating else cast(x, floatx())


def real_tensor(x):
    """A tensor of real numbers; complex ones are another class, which complex_numbers.py looks after."""
    x = convert_to_tensor(x)
    if isinstance(x, ComplexTensor):
        raise NotOneTensor(x)
    return x


def _shared_type(xs):
    """The type of all tensors among xs, when they have one that a Python number beside them does not change; else None."""
    for x in xs:
        if isinstance(x, (ComplexTensor, complex)):
            raise NotOneTensor(x)
    dtypes = {x.dtype.name: x.dtype for x in xs if isinstance(x, Tensor)}
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes.values()
    others = [x for x in xs if not isinstance(x, Tensor)]
    return dtype if not others or (dtype.is_floating and all(is_number(x) for x in others)) else None


def promoted(*xs):
    """Tensors of one type, by Keras's rule. Those of one type, also a wide one, keep it."""
    dtype = _shared_type(xs) or resulting(*xs)
    return [convert_to_tensor(x, dtype) for x in xs]


def promoted_floats(*xs):
    """promoted, with integers as Keras's float type."""
    dtype = _shared_type(xs)
    if dtype is None or not dtype.is_floating:
        dtype = resulting(*xs, float)
    return [convert_to_tensor(x, dtype) for x in xs]


def ravel(x):
    x = convert_to_tensor(x)
    return x if x.ndim == 1 else ops.reshape(x, shape=[-1])


def axis_of(axis, ndim):
    """An axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for a tensor with {ndim} axes")
    return axis + ndim if axis < 0 else axis


def product(extents):
    """The product of numbers and symbols."""
    result = 1
    for e in extents:
        result = result * e
    return result


def extent(d, dtype="int32"):
    """An extent as a tensor, known or not."""
    return convert_to_tensor(d, dtype)


def values(x, name):
    """x as a NumPy array, for a result whose shape depends on them."""
    x = convert_to_tensor(x)
    if x.is_traced:
        raise NotImplementedError(f"{name}: the shape of the result depends on values, which are not known while tracing")
    return x.numpy()
