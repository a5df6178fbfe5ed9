"""Random numbers: each draw takes a key of two uint32, which SeedGenerator keeps and counts on."""
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed  # noqa: F401 (Keras looks for them here)

from keras_tandem.src.ops.core import Tensor, cast, convert_to_tensor
from tandem import _core

ops = _core.keras_ops


def _key(seed):
    if isinstance(seed, Tensor):
        return cast(seed, "uint32")
    return cast(draw_seed(seed), "uint32")


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return ops.random_normal(_key(seed), mean, stddev, shape=shape, dtype=dtype or floatx())


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return ops.truncated_normal(_key(seed), mean, stddev, shape=shape, dtype=dtype or floatx())


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    return ops.random_uniform(_key(seed), minval, maxval, shape=shape, dtype=dtype or floatx())


def randint(shape, minval, maxval, dtype="int32", seed=None):
    return ops.random_int(_key(seed), minval, maxval, shape=shape, dtype=dtype)


def categorical(logits, num_samples, dtype="int32", seed=None):
    return cast(ops.categorical(_key(seed), convert_to_tensor(logits), samples=num_samples, axis=1), dtype)


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if rate == 0.0:
        return inputs
    if rate == 1.0:
        return ops.multiply(inputs, 0)
    if noise_shape is not None:
        noise_shape = [inputs.dims[i] if d is None else d for i, d in enumerate(noise_shape)]
    return ops.dropout(_key(seed), inputs, rate=rate, noise_shape=noise_shape)


def shuffle(x, axis=0, seed=None):
    return ops.shuffle(_key(seed), convert_to_tensor(x), axis=axis)


def gamma(shape, alpha, dtype=None, seed=None):
    return ops.gamma(_key(seed), cast(alpha, dtype or floatx()), shape=shape)


def beta(shape, alpha, beta, dtype=None, seed=None):
    dtype = dtype or floatx()
    return ops.beta(_key(seed), cast(alpha, dtype), cast(beta, dtype), shape=shape)


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    dtype = dtype or floatx()
    return ops.binomial(_key(seed), cast(counts, dtype), cast(probabilities, dtype), shape=shape)
