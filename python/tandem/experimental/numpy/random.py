"""tf.experimental.numpy.random: NumPy's names for random numbers of the engine, in NumPy's default types."""

from tandem import _arrays
from tandem import random as _random
from tandem._dtypes import as_dtype
from tandem.experimental.numpy import _promotion


def _kind():
    return as_dtype(_promotion.default_float())


def seed(s):
    """The seed of all random numbers, as tf.random.set_seed."""
    _random.set_seed(int(s))


def randn(*args):
    return standard_normal(args)


def standard_normal(size=None):
    return _random.normal(
        [] if size is None else _arrays.reshape(size, [-1]) if hasattr(size, "dtype") else _list(size), dtype=_kind()
    )


def _list(size):
    return [int(size)] if not isinstance(size, (tuple, list)) else [int(n) for n in size]


def uniform(low=0.0, high=1.0, size=None):
    low, high = _arrays.cast(low, _kind()), _arrays.cast(high, _kind())
    sizes = list((low + high).shape) if size is None else _list(size)
    return low + (high - low) * _random.uniform(sizes, dtype=_kind())


def rand(*size):
    return uniform(0.0, 1.0, list(size))


def random(size=None):
    return uniform(0.0, 1.0, [] if size is None else size)


def randint(low, high=None, size=None, dtype=None):
    if high is None:
        low, high = 0, low
    kind = as_dtype("int64" if dtype in (None, int) else dtype)
    made = _random.uniform([] if size is None else _list(size), int(low), int(high), dtype="int64")
    return _arrays.cast(made, kind)


def poisson(lam=1.0, size=None):
    return _arrays.cast(_random.poisson([] if size is None else _list(size), _arrays.cast(lam, _kind())), "int64")
