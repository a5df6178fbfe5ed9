"""Tensors of bytes: a NumPy array on the host, with TensorFlow's members. They do not go into compiled programs."""
import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem._convert import Composite, NotOneTensor, convert
from tandem._shape import TensorShape


def _to_bytes(x):
    if isinstance(x, bytes):
        return x
    if isinstance(x, str):
        return x.encode("utf-8")
    if isinstance(x, np.bytes_):
        return bytes(x)
    if isinstance(x, StringTensor) and x.ndim == 0:
        return x.array[()]
    raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype string")


def _rectangular(x):
    """Nested lists (with string tensors among them) as one array of objects."""
    if isinstance(x, StringTensor):
        return x.array
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (list, tuple)):
        items = [_rectangular(item) for item in x]
        shapes = {item.shape for item in items}
        if len(shapes) > 1:
            raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
        made = np.empty((len(items), *(shapes.pop() if shapes else ())), object)
        for i, item in enumerate(items):
            made[i] = item[()] if item.ndim == 0 else item
        return made
    made = np.empty((), object)
    made[()] = x
    return made


class StringTensor(Composite):
    """A tensor whose elements are strings of bytes."""

    dtype = dtypes.string
    is_traced = False
    __array_priority__ = 100

    def __init__(self, array):
        self.array = array

    @classmethod
    def make(cls, x, dtype=None):
        if isinstance(x, StringTensor):
            return x
        array = _rectangular(x)
        flat = np.empty(array.size, object)
        for i, item in enumerate(array.reshape(-1)):
            flat[i] = _to_bytes(item)
        return cls(flat.reshape(array.shape))

    @property
    def shape(self):
        return TensorShape(self.array.shape)

    dims = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    rank = ndim
    device = "/job:localhost/replica:0/task:0/device:CPU:0"

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")

    def numpy(self):
        return self.array.copy() if self.array.ndim else self.array[()]

    def item(self):
        return self.array.item()

    def tolist(self):
        return self.array.tolist()

    def ref(self):
        from tandem._tensor import Reference

        return Reference(self)

    def __array__(self, dtype=None, copy=None):
        return self.array.copy() if dtype is None else self.array.astype(dtype)

    def __len__(self):
        if not self.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self.array)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return iter([self[i] for i in range(len(self.array))])

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        keys = tuple(k.numpy() if isinstance(k, (_core.Tensor, _core.Variable)) else k for k in keys)
        return StringTensor(_array(self.array[keys]))

    def __bool__(self):
        return bool(self.array.item())

    def __eq__(self, other):
        return _compare(self, other, np.equal)

    def __ne__(self, other):
        return _compare(self, other, np.not_equal)

    def __add__(self, other):
        return StringTensor(_array(self.array + StringTensor.make(other).array))

    def __radd__(self, other):
        return StringTensor(_array(StringTensor.make(other).array + self.array))

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __repr__(self):
        text = repr(self.array) if self.ndim else repr(self.array[()])
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={chr(10) if chr(10) in text else ''}{text}>"

    def __str__(self):
        text = str(self.array) if self.ndim else repr(self.array[()])
        return f"tf.Tensor({chr(10) if chr(10) in text else ''}{text}, shape={self.shape}, dtype=string)"

    def __format__(self, spec):
        return format(str(self), spec)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return StringTensor, (self.array,)

    def __dispatch__(self, function, args, kwargs):
        handler = _handlers.get(function.__name__)
        return handler(*args, **kwargs) if handler else NotImplemented


def _array(x):
    if isinstance(x, np.ndarray):
        return x
    made = np.empty((), object)
    made[()] = x
    return made


def _compare(a, b, how):
    if b is None:
        return how is np.not_equal
    try:
        other = StringTensor.make(b)
    except TypeError:
        return NotImplemented
    return convert(np.asarray(how(a.array, other.array), bool))


_handlers = {}


def _over_numbers(function):
    """Movement of strings is movement of their numbers in a list, by the function itself."""

    def moved(*args, **kwargs):
        words = []

        def numbered(x):
            if isinstance(x, StringTensor):
                start = len(words)
                words.extend(x.array.reshape(-1))
                return convert(np.arange(start, len(words)).reshape(x.array.shape).astype(np.int32))
            if isinstance(x, (list, tuple)) and any(_is_text(item) for item in x):
                return type(x)(numbered(StringTensor.make(item)) if _is_text(item) else item for item in x)
            if isinstance(x, (str, bytes)):
                return numbered(StringTensor.make(x))
            return x

        def named(x):
            if isinstance(x, (list, tuple)):
                return type(x)(named(item) for item in x) if type(x) in (list, tuple) else type(x)(*map(named, x))
            return StringTensor(_array(table[x.numpy()])) if isinstance(x, _core.Tensor) else x

        skip = {"name", "mode"}
        args = [numbered(a) for a in args]
        kwargs = {k: v if k in skip else numbered(v) for k, v in kwargs.items()}
        table = np.empty(len(words) + 1, object)
        table[: len(words)] = words
        table[-1] = b""
        return named(function(*args, **kwargs))

    return moved


def _is_text(x):
    if isinstance(x, (list, tuple)):
        return any(_is_text(item) for item in x)
    return isinstance(x, (StringTensor, str, bytes)) or (isinstance(x, np.ndarray) and x.dtype.kind in "SUO")


def setup(module):
    """Makes the handlers out of the functions of the face that only move elements, or look at shapes."""
    moves = (
        "reshape", "concat", "stack", "unstack", "split", "tile", "repeat", "transpose", "gather", "gather_nd", "expand_dims", "squeeze", "slice",
        "strided_slice", "reverse", "roll", "boolean_mask", "broadcast_to", "identity", "where", "tensor_scatter_nd_update", "stop_gradient",
        "meshgrid", "dynamic_partition", "reverse_sequence", "ensure_shape", "shuffle", "identity_n",
    )  # fmt: skip
    for name in moves:
        _handlers[name] = _over_numbers(getattr(module, name))

    def placeholder(x):
        return convert(np.zeros(StringTensor.make(x).array.shape, np.int32))

    for name in ("shape", "size", "rank"):
        function = getattr(module, name)
        _handlers[name] = lambda input, *args, _f=function, **kwargs: _f(placeholder(input), *args, **kwargs)

    def filled(word):
        def like(input, dtype=None, name=None):
            array = np.empty(StringTensor.make(input).array.shape, object)
            array[...] = word
            return StringTensor(array)

        return like

    def fill(dims, value, name=None, layout=None):
        array = np.empty(tuple(int(d) for d in np.asarray(dims)), object)
        array[...] = StringTensor.make(value).array[()]
        return StringTensor(array)

    def pad(tensor, paddings, mode="CONSTANT", constant_values=b"", name=None):
        value = StringTensor.make(constant_values if isinstance(constant_values, (str, bytes)) else b"").array[()]
        return StringTensor(np.pad(StringTensor.make(tensor).array, np.asarray(paddings), constant_values=value))

    def scatter_nd(indices, updates, shape, name=None):
        made = np.empty(tuple(int(n) for n in np.asarray(shape)), object)
        made[...] = b""
        at, words = np.asarray(indices), StringTensor.make(updates).array
        made[tuple(np.moveaxis(at, -1, 0))] = words
        return StringTensor(made)

    def unique(x, out_idx=dtypes._by_name["int32"], name=None, counts=False):
        order, index, number = {}, [], []
        for word in StringTensor.make(x).array:
            at = order.setdefault(word, len(order))
            index.append(at)
            number += [0] if at == len(number) else []
            number[at] += 1
        from tandem import _arrays

        made = (StringTensor.make(list(order)), convert(np.array(index, np.int64), out_idx), convert(np.array(number, np.int64), out_idx))
        return _arrays.UniqueWithCounts(*made) if counts else _arrays.Unique(*made[:2])

    _handlers.update(
        zeros_like=filled(b""), fill=fill, pad=pad, scatter_nd=scatter_nd, unique=unique,
        unique_with_counts=lambda x, out_idx=dtypes._by_name["int32"], name=None: unique(x, out_idx, counts=True),
        equal=lambda x, y, name=None: StringTensor.make(x) == y, not_equal=lambda x, y, name=None: StringTensor.make(x) != y,
        cast=_cast,
    )  # fmt: skip


def _cast(x, dtype, name=None):
    if dtypes.as_dtype(dtype) is dtypes.string:
        return StringTensor.make(x)
    raise NotImplementedError(f"Cast string to {dtypes.as_dtype(dtype).name} is not supported; use tf.strings.to_number")


def is_strings(x):
    """Whether an object of Python's holds text only."""
    if isinstance(x, (str, bytes)):
        return True
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "SU" or (x.dtype.kind == "O" and x.size > 0 and all(isinstance(i, (str, bytes)) for i in x.reshape(-1)))
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(is_strings(i) or isinstance(i, StringTensor) for i in x)


def raise_as_strings(x):
    raise NotOneTensor(StringTensor.make(x))


class _Face:
    """The functions that move elements, wherever they are."""

    def __getattr__(self, name):
        from tandem import _arrays, _gather, random

        for module in (_arrays, _gather, random):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


setup(_Face())
