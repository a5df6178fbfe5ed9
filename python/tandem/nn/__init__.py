"""tf.nn."""
import numpy as np

from tandem import _core
from tandem._arrays import cast, reshape
from tandem._dtypes import as_dtype
from tandem._face import api, convert, float_tensor, ints, number, ops, pair, tensor
from tandem._graph_ops import depthwise_conv2d_backprop_filter, depthwise_conv2d_backprop_input  # noqa: F401
from tandem._gather import space_to_batch, top_k  # noqa: F401
from tandem.math import (  # noqa: F401
    approx_max_k, approx_min_k, in_top_k, l2_normalize, log_softmax, sigmoid, softmax, softplus, softsign, tanh, zero_fraction,
)  # fmt: skip
from tandem.nn._conv import *  # noqa: F401, F403
from tandem.nn._embedding import *  # noqa: F401, F403
from tandem.nn._losses import *  # noqa: F401, F403
from tandem.nn._pool import *  # noqa: F401, F403

from tandem.random import (  # noqa: F401
    all_candidate_sampler, fixed_unigram_candidate_sampler, learned_unigram_candidate_sampler,
)  # fmt: skip


def _activation(name, row=None):
    op = getattr(ops, row or name)

    def call(features, name=None):
        return op(tensor(features))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.__doc__
    return api(call)


relu, relu6, selu, elu = _activation("relu"), _activation("relu6"), _activation("selu"), _activation("elu")


@api
def gelu(features, approximate=False, name=None):
    return ops.gelu(float_tensor(features, "gelu"), approximate=bool(approximate))


@api
def leaky_relu(features, alpha=0.2, name=None):
    x = tensor(features)
    x = cast(x, "float32") if x.dtype.is_integer else x
    return ops.leaky_relu(x, negative_slope=float(np.float32(number(alpha))))  # TensorFlow's has 32 bits for float64, too


@api
def silu(features, beta=1.0):
    x = float_tensor(features, "silu")
    return ops.silu(x) if isinstance(beta, float) and beta == 1.0 else x * ops.sigmoid(x * beta)


swish = silu


@api
def crelu(features, axis=-1, name=None):
    x = tensor(features)
    return ops.relu(ops.concatenate([x, ops.negative(x)], axis=axis))


# --- dropout -----------------------------------------------------------------------------------------------------------------------------


def _dropped(key, x, rate, noise_shape):
    x = tensor(x)
    if isinstance(rate, (int, float)):
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
        if not x.dtype.is_floating:
            raise ValueError(
                f"x has to be a floating point tensor since it's going to be scaled. Got a {x.dtype!r} tensor instead."
            )
        if rate == 0:
            return x
    rate = convert(rate, x.dtype) if isinstance(rate, (int, float)) else cast(tensor(rate), x.dtype)
    shape = x.dims
    if noise_shape is not None:
        shape = [d if n in (None, -1) else n for d, n in zip(x.dims, list(noise_shape) if isinstance(noise_shape, (list, tuple)) else ints(noise_shape))]
    noise = ops.random_uniform(key, None, None, shape=shape, dtype=x.dtype)
    kept = ops.greater_equal(noise, rate)
    return ops.where(kept, ops.divide(x, ops.subtract(1.0, rate)), convert(np.array(0, x.dtype.as_numpy_dtype)))


@api
def dropout(x, rate, noise_shape=None, seed=None, name=None):
    from tandem import random

    return _dropped(random._next_key(seed), x, rate, noise_shape)


class experimental:
    """tf.nn.experimental."""

    @staticmethod
    @api
    def stateless_dropout(x, rate, seed, rng_alg=None, noise_shape=None, name=None):
        from tandem import random

        return _dropped(random._stateless_key(seed), x, rate, noise_shape)

    @staticmethod
    @api
    def general_dropout(x, rate, uniform_sampler, noise_shape=None, name=None):
        x = tensor(x)
        shape = x.dims if noise_shape is None else noise_shape
        noise = uniform_sampler(shape=shape, dtype=x.dtype)
        rate = convert(rate, x.dtype)
        return ops.where(
            ops.greater_equal(noise, rate), ops.divide(x, ops.subtract(1.0, rate)), convert(np.array(0, x.dtype.as_numpy_dtype))
        )


# --- normalisation -----------------------------------------------------------------------------------------------------------------------


@api
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    x = tensor(x)
    factor = ops.rsqrt(ops.add(tensor(variance), variance_epsilon))
    if scale is not None:
        factor = ops.multiply(factor, tensor(scale))
    shift = ops.negative(ops.multiply(tensor(mean), factor))
    if offset is not None:
        shift = ops.add(tensor(offset), shift)
    return cast(ops.add(ops.multiply(x, factor), shift), x.dtype)


def batch_norm_with_global_normalization(
    input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization, name=None
):
    return batch_normalization(input, mean, variance, beta, gamma if scale_after_normalization else None, variance_epsilon)


@api
def moments(x, axes, shift=None, keepdims=False, name=None):
    x = tensor(x)
    wide = cast(x, "float32") if x.dtype.size < 4 else x
    if x.dtype.is_integer:  # of whole numbers all steps are rounded
        from tandem.math import reduce_mean

        mean = reduce_mean(x, ints(axes), True)
        variance = reduce_mean(ops.square(ops.subtract(x, mean)), ints(axes), keepdims)
        return (mean if keepdims else ops.squeeze(mean, axis=ints(axes))), variance
    mean, variance = ops.moments(wide, axis=ints(axes), keepdims=bool(keepdims))
    return cast(mean, x.dtype), cast(variance, x.dtype)


def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None):
    x, weights = tensor(x), tensor(frequency_weights)
    weights = ops.broadcast_to(cast(weights, x.dtype), shape=ops.multiply(x, cast(weights, x.dtype)).dims)
    total = ops.sum(weights, axis=ints(axes), keepdims=True)
    mean = ops.divide(ops.sum(ops.multiply(x, weights), axis=ints(axes), keepdims=True), total)
    variance = ops.divide(
        ops.sum(ops.multiply(ops.square(ops.subtract(x, mean)), weights), axis=ints(axes), keepdims=True), total
    )
    return (mean, variance) if keepdims else (ops.squeeze(mean, axis=ints(axes)), ops.squeeze(variance, axis=ints(axes)))


def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    x, every = tensor(x), ints(axes)
    count = convert(float(np.prod([x.shape[a] for a in every])), x.dtype)
    moved = x if shift is None else x - tensor(shift)
    return count, ops.sum(moved, axis=every, keepdims=bool(keepdims)), ops.sum(
        ops.square(moved), axis=every, keepdims=bool(keepdims)
    ), None if shift is None else tensor(shift)


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    share = ops.reciprocal(tensor(counts))
    moved = tensor(mean_ss) * share
    mean = moved if shift is None else moved + tensor(shift)
    return mean, tensor(variance_ss) * share - ops.square(moved)


@api
def local_response_normalization(input, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, name=None):
    x = tensor(input)
    squares = ops.pad(
        ops.square(x), convert(0, x.dtype), low=[0] * (x.ndim - 1) + [depth_radius], high=[0] * (x.ndim - 1) + [depth_radius]
    )
    depth = x.shape[-1]
    total = squares[..., :depth]
    for i in range(1, 2 * depth_radius + 1):
        total = total + squares[..., i : i + depth]
    return x / ops.power(total * float(alpha) + float(bias), float(beta))


lrn = local_response_normalization


@api
def bias_add(value, bias, data_format=None, name=None):
    value, bias = pair(value, bias)
    value, bias = tensor(value), tensor(bias)
    if data_format is not None and data_format.startswith("NC") and value.ndim > 2:
        bias = reshape(bias, [1, -1] + [1] * (value.ndim - 2))
    return _core.strict_ops.add(value, bias)


@api
def isotonic_regression(inputs, decreasing=True, axis=-1):
    """Pool adjacent violators, row by row."""
    x = tensor(inputs)
    rows = np.moveaxis(x.numpy().astype(np.float64), axis, -1)
    made, segments = np.empty_like(rows), np.empty(rows.shape, np.int32)
    for at in np.ndindex(rows.shape[:-1]):
        blocks = []
        for v in rows[at] if not decreasing else rows[at]:
            blocks.append([v, 1])
            while len(blocks) > 1 and (blocks[-2][0] < blocks[-1][0] if decreasing else blocks[-2][0] > blocks[-1][0]):
                v2, n2 = blocks.pop()
                v1, n1 = blocks.pop()
                blocks.append([(v1 * n1 + v2 * n2) / (n1 + n2), n1 + n2])
        made[at] = np.concatenate([np.full(n, v) for v, n in blocks])
        segments[at] = np.concatenate([np.full(n, i) for i, (_, n) in enumerate(blocks)])
    out = x.dtype if x.dtype.is_floating else as_dtype("float32")
    blocks = convert(np.ascontiguousarray(np.moveaxis(segments, -1, axis)))
    level = convert(np.ascontiguousarray(np.moveaxis(made, -1, axis)), out)
    if not x.dtype.is_floating:
        return level, blocks
    from tandem._gradient import custom_gradient

    @custom_gradient
    def regressed(x):
        def backward(g):  # the mean over each block
            array, result = np.moveaxis(g.numpy(), axis, -1), np.zeros(rows.shape)
            for at in np.ndindex(rows.shape[:-1]):
                sizes = np.bincount(segments[at])
                result[at] = (np.bincount(segments[at], array[at]) / sizes)[segments[at]]
            return convert(np.ascontiguousarray(np.moveaxis(result, -1, axis)), out)

        return level, backward

    return regressed(x), blocks


def scale_regularization_loss(regularization_loss):
    from tandem import distribute

    return ops.divide(ops.sum(tensor(regularization_loss)), float(distribute.get_strategy().num_replicas_in_sync))
