"""What the functions of the face share: arguments as tensors by TensorFlow's rules, and tensors that are made of several."""
import functools

import numpy as np

from tandem import _core
from tandem import errors
from tandem._convert import Composite, NotOneTensor, convert
from tandem._dtypes import as_dtype
from tandem._shape import TensorShape

Tensor, CoreVariable, Dim = _core.Tensor, _core.Variable, _core.Dim
strict = _core.strict_ops
ops = _core.ops


def api(function):
    """A public function: what cannot be one tensor (complex, string, ragged, sparse) says itself what the function does to it."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except NotOneTensor as e:
            value, place = e.value, e
        result = value.__dispatch__(call, args, kwargs)
        if result is NotImplemented:
            raise TypeError(f"{function.__name__} does not take a {type(value).__name__} ({value.dtype.name}): {place}") from None
        return result

    call.python_function = function
    return call


def is_tensor_like(x):
    return isinstance(x, (Tensor, CoreVariable, Composite)) or hasattr(x, "__tandem_tensor__")


def tensor(x, dtype=None, hint=None):
    """A tensor of x. Only Python's own numbers take the type that is asked for; a tensor of another type is an error."""
    if type(x) is Tensor:
        if dtype is not None and x.dtype is not as_dtype(dtype):
            _type_differs(x, as_dtype(dtype))
        return x
    if isinstance(x, CoreVariable):
        return tensor(x.read(), dtype)
    if dtype is not None:
        dtype = as_dtype(dtype)
        if dtype.name == "string" or dtype.is_complex:
            return _other_kind(x, dtype)
        if isinstance(x, Tensor):
            _type_differs(x, dtype) if x.dtype is not dtype else None
            return x
        _check_fits(x, dtype)
    elif hint is not None and not isinstance(x, (np.ndarray, np.generic, Tensor)):
        hint = as_dtype(hint)
        try:
            return tensor(x, hint)
        except (TypeError, ValueError):
            pass
    return convert(x, dtype)


def any_tensor(x, dtype=None, hint=None):
    """As `tensor`, and also the kinds that are not one tensor of numbers: they are given back as they are."""
    try:
        return tensor(x, dtype, hint)
    except NotOneTensor as e:
        value = e.value
        if dtype is not None and value.dtype is not as_dtype(dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype {value.dtype.name}: {value!r}"
            ) from None
        return value


def _other_kind(x, dtype):
    if dtype.name == "string":
        return convert(x, dtype)
    from tandem._complex import ComplexTensor

    raise NotOneTensor(ComplexTensor.make(x, dtype))


def _type_differs(x, dtype):
    raise ValueError(f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {x.dtype.name}: {x!r}")


def _check_fits(x, dtype):
    """Python's numbers are not cut: 1.5 is no int32, and 'a' is no number."""
    if isinstance(x, (bool, np.bool_)):
        if not dtype.is_bool and dtype.size < 4:  # wider ones take True for 1
            raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype {dtype.name}")
    elif isinstance(x, float):
        if not dtype.is_floating:
            raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype {dtype.name}")
    elif isinstance(x, int):
        if dtype.is_bool:
            raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype bool")
        small = dtype.size < 4  # TensorFlow reads these as int32 and keeps the lower bits
        if dtype.is_integer and not (-(2**31) if small else dtype.min) <= x <= (2**31 - 1 if small else dtype.max):
            raise ValueError(f"Can't convert Python sequence with out-of-range integer to Tensor: {x} is no {dtype.name}.")
    elif isinstance(x, (str, bytes)):
        raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype {dtype.name}")
    elif isinstance(x, (list, tuple)):
        for item in x:
            _check_fits(item, dtype)


_promotion = _mark_weak = None  # what tf.experimental.numpy puts here while its rules hold


def set_promotion(promotion, mark_weak):
    """Rules for operands of two types, and what happens to a tensor made of Python's own numbers. None: types must be the same."""
    global _promotion, _mark_weak
    _promotion, _mark_weak = promotion, mark_weak


def has_promotion():
    return _promotion is not None


def of_literal(made):
    """A tensor made of Python's own numbers, without a type that was asked for."""
    return made if _mark_weak is None else _mark_weak(made)


def pair(x, y):
    """Two operands: one that is no tensor takes the type of the other."""
    if _promotion is not None:
        return _promotion(x, y)
    x_known, y_known = isinstance(x, (Tensor, CoreVariable)), isinstance(y, (Tensor, CoreVariable))
    if x_known and y_known:
        return x, y
    if x_known:
        return x, operand(y, x.dtype)
    if y_known:
        return operand(x, y.dtype), y
    if isinstance(x, float) and isinstance(y, (list, tuple)):  # Python's numbers on both sides: the first says the type
        x = tensor(x)
        return x, operand(y, x.dtype)
    if isinstance(x, (int, float)) and not isinstance(y, (int, float)):
        y = tensor(y)
        return operand(x, y.dtype), y
    x = tensor(x)
    return x, operand(y, x.dtype)


def operand(x, dtype):
    if isinstance(x, (np.ndarray, np.generic)):
        return convert(x, dtype)
    return tensor(x, dtype)


def float_tensor(x, what):
    """A tensor of floating numbers; integers are an error, as in TensorFlow."""
    x = tensor(x)
    if not x.dtype.is_floating:
        raise errors.InvalidArgumentError(
            None, None, f"{what}: takes floating or complex numbers, got a tensor of {x.dtype.name}\n  hint: tf.cast(x, tf.float32)"
        )
    return x


def number(x):
    """A Python number of a number, an array or a tensor of one element."""
    if x is None or isinstance(x, (int, float, Dim)):
        return x
    if isinstance(x, CoreVariable):
        x = x.read()
    if isinstance(x, Tensor):
        if x.is_traced:
            return x.__index__() if x.dtype.is_integer else x.item()
        return x.item()
    return x.item() if hasattr(x, "item") else x


def count(x):
    """A whole number, or the extent of the trace that a traced one was computed from."""
    if isinstance(x, CoreVariable):
        x = x.read()
    if not (isinstance(x, Tensor) and x.is_traced):
        return x if isinstance(x, Dim) else int(number(x))
    return ops.iota(shape=[x]).dims[0]  # an error says that a shape cannot depend on numbers


def ints(x):
    """Whole numbers for an attribute, as a list: of a number, a sequence, an array or a tensor."""
    if x is None:
        return None
    if isinstance(x, CoreVariable):
        x = x.read()
    if isinstance(x, Tensor):
        if x.is_traced:
            return [int(n) for n in _core_dims(x)]
        x = x.numpy()
    if isinstance(x, np.ndarray):
        return [int(n) for n in x.reshape(-1)]
    if isinstance(x, (list, tuple)):
        return [int(number(n)) for n in x]
    return [int(number(x))]


def _core_dims(x):
    """The extents that a traced tensor of whole numbers was computed from, as numbers."""
    return [n.__index__() for n in (x[i] for i in range(x.shape[0]))] if x.ndim else [x.__index__()]


def axes(x):
    """An axis argument: None for all, else a list."""
    return None if x is None else ints(x)


def shape(x):
    """A shape argument as the engine takes it: extents may be symbols and traced tensors."""
    if isinstance(x, CoreVariable):
        x = x.read()
    if isinstance(x, Tensor) and x.ndim == 0:
        return [x]
    if isinstance(x, TensorShape):
        return list(x)
    if hasattr(x, "filled"):  # of a ragged tensor
        raise NotOneTensor(x)
    if isinstance(x, Composite):
        raise TypeError(f"a shape is made of whole numbers, not of {x.dtype.name}")
    if isinstance(x, (list, tuple)):
        return [d.read() if isinstance(d, CoreVariable) else d for d in x]
    return x


def axis_in(axis, rank, what="axis"):
    """The axis as a number from 0; an error when there is no such axis."""
    axis = int(number(axis))
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(None, None, f"{what} {axis} is not in [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis
