"""tf.compat: text between Python's versions, tf.compat.v2 is tf, tf.compat.v1 as far as it is trivial."""
import numbers

import numpy as np

bytes_or_text_types = (bytes, str)
integral_types, real_types, complex_types = (numbers.Integral, np.integer), (
    numbers.Real, np.integer, np.floating
), (numbers.Complex, np.number)


def as_bytes(bytes_or_text, encoding="utf-8"):
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text, encoding="utf-8"):
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path):
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path


def dimension_value(dimension):
    return getattr(dimension, "value", dimension)


def dimension_at_index(shape, index):
    return shape[index]


def __getattr__(name):
    if name == "v2":
        import tandem

        return tandem
    if name == "v1":
        import importlib

        return importlib.import_module("tandem.compat.v1")
    raise AttributeError(f"tf.compat has no '{name}': see docs/coverage.md")
