"""Strings between Python and tensors: bytes, str (written as UTF-8), lists and NumPy arrays of them."""

import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes


def _nested(x):
    """The elements and the shape of nested lists; lengths must agree."""
    if isinstance(x, _core.Tensor):
        return _core.strings_to_list(x), tuple(x.shape)
    if hasattr(x, "dtype") and hasattr(x, "__array__") or isinstance(x, np.ndarray):
        array = np.asarray(x)
        items = array.astype(object) if array.dtype.kind in "SU" else array
        return list(items.reshape(-1)), array.shape
    if not isinstance(x, (list, tuple)):
        return [x], ()
    parts = [_nested(item) for item in x]
    shapes = {shape for _, shape in parts}
    if len(shapes) > 1:
        raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: parts have the shapes {sorted(shapes)}.")
    flat = [item for items, _ in parts for item in items]
    return flat, (len(parts), *(shapes.pop() if shapes else ()))


def as_strings(x):
    """A tensor of strings."""
    if isinstance(x, _core.Tensor):
        if x.dtype is not dtypes.string:
            raise TypeError(f"a tensor of strings is wanted, not of {x.dtype.name}")
        return x
    flat, shape = _nested(x)
    return _core.strings_from(flat, shape)


def as_numpy(t):
    """Bytes, or an array of bytes objects."""
    flat = _core.strings_to_list(t)
    if t.ndim == 0:
        return flat[0]
    array = np.empty(len(flat), object)
    array[:] = flat
    return array.reshape(t.shape)


def one(x):
    """The bytes of one string: a scalar tensor, bytes, str or a path."""
    if isinstance(x, _core.Tensor):
        if x.ndim:
            raise ValueError(f"one string is wanted, not {x.shape}")
        return _core.strings_to_list(as_strings(x))[0]
    if hasattr(x, "__fspath__"):
        x = x.__fspath__()
    if isinstance(x, np.ndarray) or isinstance(x, np.generic):
        x = x.item()
    return x.encode("utf-8") if isinstance(x, str) else bytes(x)


def text(x):
    """The same as str."""
    return one(x).decode("utf-8")


def mapped(function, x):
    """function(bytes) -> bytes on each element."""
    x = as_strings(x)
    return _core.strings_from([function(s) for s in _core.strings_to_list(x)], tuple(x.shape))
