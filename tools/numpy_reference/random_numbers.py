"""Random numbers: Philox4x32-10 (Salmon et al., 2011) on Python's integers, and the distributions that are formulas of its words."""
import math

import numpy as np
import scipy.special as sp

WORD = (1 << 32) - 1
DRAW, SPLIT, FOLD = 0, 1, 2  # the last counter word says what for

EXACT = {
    "random_bits", "random_unit", "standard_normal", "standard_gumbel", "random_uniform", "random_normal", "truncated_normal", "random_int",
    "bernoulli", "categorical", "shuffle", "dropout", "split_key", "fold_in",
}


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & WORD, p0 >> 32 ^ c[3] ^ k[1], p0 & WORD]
        k = [k[0] + 0x9E3779B9 & WORD, k[1] + 0xBB67AE85 & WORD]
    return c


def words(key, number, purpose=DRAW):
    return philox([number & WORD, number >> 32 & WORD, 0, purpose], [int(w) for w in key])


def filled(shape, f, dtype):
    """f(position) for each element in row-major order."""
    return np.array([f(i) for i in range(math.prod(shape))], dtype=dtype).reshape(shape)


def random_bits(key, shape):
    return filled(shape, lambda i: words(key, i // 4)[i % 4], "uint32")


def unit(key, dtype):
    """position -> a multiple of 2^-precision in [0, 1)."""
    precision = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[np.dtype(dtype).name]

    def at(i, pair=0):
        w = words(key, i)[pair:pair + 2]
        if precision <= 32:
            return (w[0] >> (32 - precision)) / 2**precision
        return ((w[0] >> 5) * 2**26 + (w[1] >> 6)) / 2**53

    return at


def random_unit(key, shape, dtype):
    return filled(shape, unit(key, dtype), np.float64).astype(dtype)


def wide(dtype):
    """float16 and bfloat16 are drawn in float32."""
    return np.dtype("float64") if dtype == np.float64 else np.dtype("float32")


def open_unit(key, dtype):
    """position -> (0, 1], all 32 bits of the first word in float32."""
    if dtype == np.float64:
        return lambda i: unit(key, dtype)(i) + 2.0**-54
    return lambda i: float(np.float32(np.float32(words(key, i)[0]) * np.float32(2.0**-32) + np.float32(2.0**-33)))


def standard_normal(key, shape, dtype):
    radius, angle = open_unit(key, wide(dtype)), unit(key, wide(dtype))
    return filled(shape, lambda i: math.sqrt(-2 * math.log(radius(i))) * math.cos(2 * math.pi * angle(i, 2)), np.float64).astype(dtype)


def standard_gumbel(key, shape, dtype):
    rest = open_unit(key, wide(dtype))
    largest = 1 - (2.0**-53 if wide(dtype) == np.float64 else 2.0**-24)
    return filled(shape, lambda i: -math.log(-math.log1p(-min(rest(i), largest))), np.float64).astype(dtype)


def random_uniform(key, low=0.0, high=1.0, shape=(), dtype=None):
    u = random_unit(key, shape, dtype).astype(np.float64)
    return (low + (high - np.asarray(low, float)) * u).astype(dtype)


def random_normal(key, mean=0.0, stddev=1.0, shape=(), dtype=None):
    return (mean + stddev * standard_normal(key, shape, np.dtype("float64") if dtype == np.float64 else dtype)).astype(dtype)


def truncated_normal(key, mean=0.0, stddev=1.0, shape=(), dtype=None):
    u = random_unit(key, shape, wide(dtype)).astype(np.float64)
    x = math.sqrt(2) * sp.erfinv((2 * u - 1) * math.erf(math.sqrt(2)))
    return (mean + stddev * np.clip(x, -2, 2)).astype(dtype)


def random_int(key, low, high, shape, dtype):
    low, high = np.broadcast_to(low, shape).ravel(), np.broadcast_to(high, shape).ravel()

    def at(i):
        a, b = int(low[i]), int(high[i])
        w = words(key, i)
        return a + ((w[1] << 32 | w[0]) * (b - a) >> 64) if b > a else a

    return filled(shape, at, dtype)


def bernoulli(key, p, shape):
    return random_unit(key, shape, wide(p.dtype)) < p


def categorical(key, logits, samples, axis):
    moved = np.moveaxis(logits, axis, -1)[..., None, :]
    shape = moved.shape[:-2] + (samples, moved.shape[-1])
    noise = standard_gumbel(key, shape, wide(logits.dtype))
    return np.moveaxis(np.argmax(moved + noise, axis=-1), -1, axis).astype("int32")


def shuffle(key, x, axis):
    return np.take(x, np.argsort(random_bits(key, [x.shape[axis]]), kind="stable"), axis=axis)


def dropout(key, x, rate, noise_shape):
    keep = random_bits(key, x.shape if noise_shape is None else noise_shape) >= rate * 2.0**32
    return np.where(keep, x / (1 - rate) if rate < 1 else x, 0).astype(x.dtype) if rate > 0 else x


def split_key(key, count):
    return np.array([words(key, i, SPLIT)[:2] for i in range(count)], "uint32").reshape(count, 2)


def fold_in(key, data):
    return np.array(words(key, int(data) % (1 << 64), FOLD)[:2], "uint32")


REFERENCE = {name: globals()[name] for name in EXACT}
