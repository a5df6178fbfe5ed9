"""Arguments as data: arrays of seeded numbers in shapes and types that matter, and what both engines build their tensors from."""
import zlib

import ml_dtypes
import numpy as np

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMBERS = INTEGERS + FLOATS + COMPLEX
TYPES = [*NUMBERS, "bool"]
# What most programs use; functions whose arithmetic is the same for all types are tried with these.
COMMON = ["int32", "int64", "float16", "bfloat16", "float32", "float64"]

SHAPES = [(), (0,), (1,), (5,), (2, 3), (1, 4), (3, 1), (0, 3), (2, 3, 4), (2, 1, 3), (33,)]


def numpy_type(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def generator(seed, name):
    """Random numbers that depend on the function's name and nothing else, so that one function can be run again alone."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


class Kind:
    """An argument that is built on each side. `parts` are arrays and plain values."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts


def ragged(rows, dtype=None, ragged_rank=None):
    return Kind("ragged", rows, dtype, ragged_rank)


def sparse(indices, values, shape):
    return Kind("sparse", np.asarray(indices, np.int64).reshape(-1, len(shape)), np.asarray(values), np.asarray(shape, np.int64))


def plain(array):
    """A NumPy array that stays one."""
    return Kind("array", np.asarray(array))


def text(items):
    """A tensor of strings."""
    made = np.array(items, object)
    flat = made.reshape(-1)
    flat[:] = [s.encode() if isinstance(s, str) else s for s in flat]
    return flat.reshape(made.shape)


def array(rng, shape, dtype="float32", low=-3.0, high=3.0):
    """Numbers between low and high; whole ones for integers."""
    kind = numpy_type(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in COMPLEX:
        return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(kind)
    if dtype in INTEGERS:
        low, high = int(np.ceil(low)), int(np.floor(high))
        if dtype.startswith("u"):
            low, high = max(low, 0), max(high, 1)
        return np.asarray(rng.integers(low, max(high, low) + 1, shape)).astype(kind)
    return np.asarray(rng.uniform(low, high, shape)).astype(kind)


def distinct(rng, shape, dtype="float32"):
    """Numbers of which no two are equal, so that order is certain."""
    count = int(np.prod(shape))
    return (rng.permutation(count).reshape(shape) - count // 2).astype(numpy_type(dtype))


def shape(rng, low_rank=0, high_rank=4, zero=True):
    """A shape; now and then with an extent of 0 or 1."""
    rank = int(rng.integers(low_rank, high_rank + 1))
    return tuple(int(rng.choice([0, 1, 2, 3, 4, 5], p=[0.06 if zero else 0, 0.15, 0.25 if zero else 0.31, 0.24, 0.18, 0.12])) for _ in range(rank))


def shapes_that_broadcast(rng):
    """Two shapes for one elementwise function."""
    whole = shape(rng, 0, 4)
    second = tuple(1 if rng.random() < 0.25 else n for n in whole)[int(rng.integers(0, len(whole) + 1)) :]
    return (whole, second) if rng.random() < 0.5 else (second, whole)


def special(dtype):
    """The numbers at which functions are wrong first."""
    kind = numpy_type(dtype)
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        return np.array(sorted({limits.min, limits.min + 1, 0, 1, 2, 7, limits.max - 1, limits.max} | ({-1, -2, -7} if limits.min else set())), kind)
    if dtype in COMPLEX:
        parts = [0.0, -0.0, 1.0, -1.0, 2.5, -0.5, 1e-3, 20.0]
        return np.array([complex(a, b) for a in parts for b in parts], kind)
    limits = ml_dtypes.finfo(kind)
    largest, smallest = float(limits.max), float(limits.smallest_normal)
    whole = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 10.0, 50.0, 100.0, 1e-3, 1e-6 if dtype != "float16" else 1e-4, smallest, largest, np.inf]
    return np.array([*whole, *(-v for v in whole), np.nan], np.float64).astype(kind)


def denormal(dtype):
    kind = numpy_type(dtype)
    limits = ml_dtypes.finfo(kind)
    return np.array([float(limits.smallest_normal) / 2, -float(limits.smallest_normal) / 4, float(limits.smallest_subnormal)], np.float64).astype(kind)
