"""Initializers of tf itself; Keras has its own."""
import numpy as np

from tandem import random
from tandem._arrays import constant, ones, zeros
from tandem._dtypes import as_dtype


class _Initializer:
    def get_config(self):
        return dict(vars(self))

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config.pop("dtype", None)
        return cls(**config)


class zeros_initializer(_Initializer):
    def __call__(self, shape, dtype="float32", **kwargs):
        return zeros(shape, dtype)


class ones_initializer(_Initializer):
    def __call__(self, shape, dtype="float32", **kwargs):
        return ones(shape, dtype)


class constant_initializer(_Initializer):
    def __init__(self, value=0, support_partition=False):
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {type(value).__name__}. Expected Python scalar, list or tuple of values, or "
                "numpy.ndarray."
            )
        self.value = value

    def __call__(self, shape, dtype=None, **kwargs):
        return constant(self.value, dtype if dtype is None else as_dtype(dtype), shape)


class random_normal_initializer(_Initializer):
    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape, dtype="float32", **kwargs):
        return random.normal(shape, self.mean, self.stddev, dtype, self.seed)


class random_uniform_initializer(_Initializer):
    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape, dtype="float32", **kwargs):
        return random.uniform(shape, self.minval, self.maxval, dtype, self.seed)
