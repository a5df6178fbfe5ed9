"""Numbers that Python and C++ compute alike, bit for bit; bench/models/formula.hpp is the other half and says what for."""
import numpy as np


def bits(name, count):
    """The first `count` numbers of the series `name`: 24 random bits each."""
    seed = 0xCBF29CE484222325  # FNV-1a
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):  # SplitMix64
        x = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) >> np.uint64(40)


def units(name, shape):
    """In [0, 1), exact in float32."""
    return (bits(name, int(np.prod(shape))).astype(np.float32) * np.float32(2**-24)).reshape(shape)


def integers(name, shape, limit):
    return (bits(name, int(np.prod(shape))) % np.uint64(limit)).astype(np.int32).reshape(shape)


def weight(name, shape):
    middle = 1 if name.endswith(("gamma", "moving_variance")) else 0
    scale = 0.25
    if name.endswith(("kernel", "embeddings")):
        scale, fan_in = 2.0, int(np.prod(shape)) // shape[-1]
        while scale * scale * fan_in > 4:
            scale /= 2
    return np.float32(middle) + (units(name, shape) - np.float32(0.5)) * np.float32(scale)
