"""Element types: tf.float32 and its like. The first ones are the engine's own; the others exist on the host only."""
import numpy as np

from tandem import _core

try:
    import ml_dtypes
except ImportError:  # only bfloat16 and the 8-bit floats need it
    ml_dtypes = None


class DType:
    """The type of a tensor's elements."""

    __slots__ = ("_name", "_numpy", "_code", "__weakref__")

    def __init__(self, name, numpy, code):
        self._name, self._numpy, self._code = name, numpy, code

    @property
    def name(self):
        return self._name

    @property
    def as_numpy_dtype(self):
        return self._numpy

    @property
    def as_datatype_enum(self):
        return _ENUM[self._name]

    @property
    def base_dtype(self):
        return self

    @property
    def real_dtype(self):
        return {"complex64": float32, "complex128": float64}.get(self._name, self)

    @property
    def size(self):
        return 1 if self._name in ("string", "variant", "resource") else np.dtype(self._numpy).itemsize

    @property
    def is_floating(self):
        return self._name.startswith(("float", "bfloat"))

    @property
    def is_integer(self):
        return self._name.startswith(("int", "uint"))

    @property
    def is_complex(self):
        return self._name.startswith("complex")

    @property
    def is_bool(self):
        return self._name == "bool"

    @property
    def is_unsigned(self):
        return self._name.startswith("uint")

    @property
    def is_quantized(self):
        return self._name.startswith(("qint", "quint"))

    @property
    def is_numeric(self):
        return self.is_floating or self.is_integer or self.is_complex

    @property
    def is_numpy_compatible(self):
        return self._name not in ("resource", "variant")

    def _limits(self):
        if self.is_floating:
            return (ml_dtypes.finfo if ml_dtypes else np.finfo)(self._numpy)
        if self.is_integer:
            return np.iinfo(self._numpy)
        raise TypeError(f"Cannot find minimum value of {self}.")

    @property
    def min(self):
        return False if self.is_bool else self._limits().min

    @property
    def max(self):
        return True if self.is_bool else self._limits().max

    @property
    def limits(self):
        return (0, self.max) if self.is_unsigned else (self.min, self.max)

    def is_compatible_with(self, other):
        return self == as_dtype(other)

    def __eq__(self, other):
        if self is other:
            return True
        if other is None:
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self._name)

    def __repr__(self):
        return f"tf.{self._name}"

    def __str__(self):
        return f"<dtype: {self._name!r}>"

    def __int__(self):
        return self.as_datatype_enum

    def __reduce__(self):
        return as_dtype, (self._name,)


def _special(name):
    return getattr(ml_dtypes, name) if ml_dtypes else np.float32


_core_types = [
    DType(name, {"bool": np.bool_, "bfloat16": _special("bfloat16")}.get(name) or getattr(np, name), code)
    for code, name in enumerate(_core.dtype_names)
]
_host_types = [
    DType("complex64", np.complex64, -1),
    DType("complex128", np.complex128, -1),
    DType("string", np.object_, -1),
    DType("resource", np.object_, -1),
    DType("variant", np.object_, -1),
    DType("qint8", np.int8, -1),
    DType("qint16", np.int16, -1),
    DType("qint32", np.int32, -1),
    DType("quint8", np.uint8, -1),
    DType("quint16", np.uint16, -1),
    DType("float8_e4m3fn", _special("float8_e4m3fn"), -1),
    DType("float8_e5m2", _special("float8_e5m2"), -1),
    DType("int4", _special("int4"), -1),
    DType("uint4", _special("uint4"), -1),
    *(DType(n, _special(n), -1) for n in ("float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float4_e2m1fn", "int2", "uint2")),
]
_by_name = {t.name: t for t in _core_types + _host_types}
float32, float64, string = _by_name["float32"], _by_name["float64"], _by_name["string"]

_ENUM = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9, "bool": 10,
    "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17, "complex128": 18, "float16": 19,
    "resource": 20, "variant": 21, "uint32": 22, "uint64": 23, "float8_e5m2": 24, "float8_e4m3fn": 25, "int4": 29, "uint4": 30,
    "float8_e4m3fnuz": 26, "float8_e4m3b11fnuz": 27, "float8_e5m2fnuz": 28, "int2": 31, "uint2": 32, "float4_e2m1fn": 33,
}  # fmt: skip
_by_enum = {number: name for name, number in _ENUM.items()}
_aliases = {
    bool: "bool", int: "int32", float: "float32", complex: "complex128", str: "string", bytes: "string", "half": "float16", "float": "float32",
    "double": "float64", "int": "int32", "bool_": "bool", "str": "string", "object": "string",
}  # fmt: skip
_known = dict(_by_name)
for _alias, _name in _aliases.items():
    _known[_alias] = _by_name[_name]
for _t in _core_types + _host_types[:2]:
    _known[_t.as_numpy_dtype] = _t


def as_dtype(x):
    """The DType that a name, a NumPy type, a Python type or an enum number stands for."""
    if type(x) is DType:
        return x
    try:
        return _known[x]
    except (KeyError, TypeError):
        pass
    if isinstance(x, int):
        if x in _by_enum:
            return _by_name[_by_enum[x]]
        raise TypeError(f"Cannot convert the argument `type_value`: {x} to a TensorFlow DType.")
    name = getattr(x, "name", None)  # NumPy's dtype objects, other libraries' types
    if isinstance(name, str):
        if name in _known:
            return _known[name]
        if name.startswith(("str", "bytes")):
            return string
    try:
        return as_dtype_of_numpy(np.dtype(x))
    except TypeError:
        raise TypeError(f"Cannot convert the argument `type_value`: {x!r} to a TensorFlow DType.") from None


def as_dtype_of_numpy(t):
    if t.kind in "SUO":
        return string
    if t.name in _by_name:
        return _by_name[t.name]
    raise TypeError(f"no tensor has elements of NumPy's type {t}")


# tf.float32 and so on; last, since one of them is called bool.
globals().update(_by_name)
half, double = _by_name["float16"], _by_name["float64"]
