"""Which type two operands meet in: NumPy's rules, and the lattice with weak types that TensorFlow calls the modes "all" and "safe"."""

import numbers

import numpy as np

from tandem import _dtypes, _face
from tandem._dtypes import as_dtype
from tandem._face import Tensor, any_tensor

MODES = ("off", "legacy", "safe", "all")
_state = {"mode": "off", "prefer_float32": False}


def default_float():
    return np.dtype(np.float32 if _state["prefer_float32"] else np.float64)


def numpy_type(x):
    return np.dtype(x.as_numpy_dtype if isinstance(x, _dtypes.DType) else x)


def _part(x):
    """What NumPy's rules look at: Python's numbers as they are, of all else the type."""
    if isinstance(x, bool):
        return np.dtype(bool)
    if isinstance(x, numbers.Real) and not isinstance(x, np.generic):
        return np.float32(x).dtype if _state["prefer_float32"] and isinstance(x, float) else x
    if isinstance(x, complex) and not isinstance(x, np.generic):
        return np.dtype(np.complex64) if _state["prefer_float32"] else x
    if hasattr(x, "dtype"):
        return numpy_type(x.dtype)
    if isinstance(x, (list, tuple)):
        return numpy_type(literal(x).dtype)
    return numpy_type(x)


def result_type(*values):
    return np.result_type(*[_part(v) for v in values])


def literal(x):
    """A tensor of a value of Python's or NumPy's, in NumPy's types: 64 bits for Python's numbers."""
    if isinstance(x, (list, tuple)) and _has_tensor(x):
        parts = [literal(item) for item in x]
        kind = result_type(*parts)
        from tandem import _arrays

        return _arrays.stack([_arrays.cast(p, kind) for p in parts])
    if isinstance(x, Tensor):
        return x
    if _state["mode"] in ("safe", "all") and not isinstance(x, (np.ndarray, np.generic)):
        return as_weak(any_tensor(x))
    array = np.asarray(x)
    if array.dtype == np.float64 and _state["prefer_float32"] and not isinstance(x, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    return any_tensor(array)


def _has_tensor(x):
    return any(_has_tensor(item) for item in x) if isinstance(x, (list, tuple)) else isinstance(x, Tensor)


# --- the lattice ----------------------------------------------------------------------------------------------------------------


def as_weak(x):
    """Marks a tensor made of Python's own numbers: its type yields to others."""
    if isinstance(x, Tensor) and not x.dtype.is_bool:
        x._weak = True
    return x


def is_weak(x):
    return isinstance(x, Tensor) and "_weak" in x.__dict__


def _bits(t):
    return 8 * t.size


def _exact_bits(t):
    """How wide a whole number a float (or a complex number of such) holds."""
    return {"bfloat16": 8, "float16": 8, "float32": 16, "complex64": 16, "float64": 32, "complex128": 32}[t.name]


def _rank(t):
    return 0 if t.is_bool else 1 if t.is_integer else 2 if t.is_floating else 3


def meet(a, a_weak, b, b_weak):
    """(dtype, is weak, is safe) of two operands' types."""
    if (_rank(a), a_weak and _rank(a) > 0) == (_rank(b), b_weak and _rank(b) > 0) and a is b:
        return a, a_weak, True
    if _rank(a) > _rank(b) or _rank(a) == _rank(b) and a_weak and not b_weak:
        a, a_weak, b, b_weak = b, b_weak, a, a_weak
    # Now b is of the higher kind, or the weak one of the same kind.
    if a.is_bool:
        return b, b_weak, True
    if a_weak and b_weak:
        wide = max((a, b), key=lambda t: (_rank(t), _bits(t)))
        return wide, True, True
    if a_weak:
        return b, False, True  # a is of a lower kind
    if b_weak:
        return _with_weak(a, b)
    return _strong(a, b)


def _with_weak(a, b):
    """A type of the program's and a weak one that is not of a lower kind."""
    if _rank(a) == _rank(b):
        return a, False, True
    if b.is_floating:  # beside whole numbers
        return as_dtype("float64"), True, b.name == "float64" and _bits(a) <= 32
    if a.is_floating:  # a weak complex number
        return as_dtype("complex128" if a.name == "float64" else "complex64"), False, a.name == "float64"
    return b, True, _bits(a) <= 32


def _strong(a, b):
    if a.is_integer and b.is_integer:
        if a.is_unsigned == b.is_unsigned:
            return max(a, b, key=_bits), False, True
        unsigned, signed = (a, b) if a.is_unsigned else (b, a)
        if _bits(signed) > _bits(unsigned):
            return signed, False, True
        if _bits(unsigned) == 64:
            return as_dtype("float64"), True, False
        return as_dtype(f"int{2 * _bits(unsigned)}"), False, False
    if a.is_integer:
        return b, False, _bits(a) <= _exact_bits(b)
    if a.is_floating and b.is_floating:
        if _bits(a) == _bits(b) == 16:
            return as_dtype("float32"), False, False
        return max(a, b, key=_bits), False, True
    if a.name == "float64" and b.name == "complex64":
        return as_dtype("complex128"), False, False
    return max(a, b, key=_bits), False, True


def _describe(t, weak):
    return f"(<dtype: '{t.name}'>, weak={weak})"


def pair(x, y):
    """Two operands in the type that they meet in."""
    x, y = [
        (
            v
            if isinstance(v, Tensor)
            else any_tensor(v) if isinstance(v, (np.ndarray, np.generic)) or hasattr(v, "dtype") else as_weak(any_tensor(v))
        )
        for v in (x, y)
    ]
    kind, weak, safe = meet(x.dtype, is_weak(x), y.dtype, is_weak(y))
    if not safe and _state["mode"] == "safe":
        raise TypeError(
            f"In promotion mode PromoMode.SAFE, implicit dtype promotion between {_describe(x.dtype, is_weak(x))} and "
            f"{_describe(y.dtype, is_weak(y))} is disallowed. You need to explicitly specify the dtype in your op, or relax your dtype "
            "promotion rules (such as from SAFE mode to ALL mode)."
        )
    from tandem import _arrays

    return _arrays.cast(x, kind), _arrays.cast(y, kind), weak


# --- operators ------------------------------------------------------------------------------------------------------------------

_ROWS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "truediv", "floordiv": "floordiv", "mod": "floormod", "pow": "pow", "matmul": "matmul",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_MEMBERS = """T astype ravel transpose reshape clip size data itemsize nbytes""".split()
_before = {}


def _operator(name, row, reflected):
    from tandem import linalg, math
    from tandem.experimental import numpy as tnp

    inner, same = getattr(math, row, None) or getattr(linalg, row), _before.get(name) or Tensor.__dict__[name]
    theirs = {"truediv": "true_divide", "floordiv": "floor_divide", "floormod": "mod", "pow": "power"}.get(row, row)

    def call(self, other):
        if other is None and row in ("equal", "not_equal"):
            return row == "not_equal"
        x, y = (other, self) if reflected else (self, other)
        if type(other) is Tensor and self.dtype is other.dtype and not self.dtype.is_bool and not is_weak(self):
            return same(self, other)
        if _state["mode"] == "legacy":
            return getattr(tnp, theirs)(x, y)
        x, y, weak = pair(x, y)
        made = inner(x, y)
        return as_weak(made) if weak else made

    return call


def _weak_unary(before):
    def call(self):
        made = before(self)
        return as_weak(made) if is_weak(self) else made

    return call


def _printed(before):
    def call(self):
        text = before(self)
        return text[:-1] + ", weak=True>" if is_weak(self) else text

    return call


def _put(name, value):
    if name not in _before:
        _before[name] = Tensor.__dict__.get(name)
    setattr(Tensor, name, value)


def _install():
    """Tensor's operators and members as NumPy has them."""
    from tandem.experimental import numpy as tnp

    for name, row in _ROWS.items():
        _put(f"__{name}__", _operator(f"__{name}__", row, False))
        if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
            _put(f"__r{name}__", _operator(f"__r{name}__", row, True))
    for name in ("__neg__", "__abs__", "__pos__"):
        if name in Tensor.__dict__:
            _put(name, _weak_unary(Tensor.__dict__[name]))
    _put("__repr__", _printed(Tensor.__repr__))
    members = {
        "T": property(tnp.transpose), "astype": lambda self, dtype: tnp.asarray(self, dtype), "ravel": tnp.ravel, "data": property(lambda self: self),
        "transpose": lambda self, *axes: tnp.transpose(self, None if not axes else axes[0] if isinstance(axes[0], (tuple, list)) else axes),
        "reshape": lambda self, *shape: tnp.reshape(self, shape[0] if len(shape) == 1 else shape), "clip": tnp.clip,
        "size": property(lambda self: self.shape.num_elements()), "itemsize": property(lambda self: self.dtype.size),
        "nbytes": property(lambda self: self.dtype.size * self.shape.num_elements()),
    }  # fmt: skip
    for name in _MEMBERS:
        _put(name, members[name])


def _pair_of_functions(x, y):
    """What tf.add and its like do with operands of two types."""
    x, y, _ = pair(x, y)
    return x, y


def experimental_enable_numpy_behavior(prefer_float32=False, dtype_conversion_mode="legacy"):
    """Tensors get NumPy's members, and operators its promotion. The modes "safe" and "all" promote in functions such as tf.add too."""
    if dtype_conversion_mode not in MODES:
        raise ValueError(f"The provided promotion mode {dtype_conversion_mode} does not exist: it is one of {list(MODES)}")
    is_first = _state["mode"] == "off"
    _state.update(mode=dtype_conversion_mode, prefer_float32=bool(prefer_float32))
    if dtype_conversion_mode == "off":
        _remove()
    elif is_first:
        _install()
    strict = dtype_conversion_mode in ("off", "legacy")
    _face.set_promotion(None if strict else _pair_of_functions, None if strict else as_weak)


def _remove():
    for name, value in _before.items():
        if value is None:
            delattr(Tensor, name)
        else:
            setattr(Tensor, name, value)
    _before.clear()
