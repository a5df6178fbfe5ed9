"""Neural networks: activations, losses, normalization, attention. Windows over images are in convolution.py."""
from keras.src.backend.config import epsilon as default_epsilon

from keras_tandem.src import replicas
from keras_tandem.src.ops.convolution import (  # noqa: F401 (they belong to this module's face)
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    conv,
    conv_transpose,
    depth_to_space,
    depthwise_conv,
    fold,
    max_pool,
    separable_conv,
    space_to_depth,
    unfold,
)
from keras_tandem.src.ops.core import Tensor, cast, convert_to_tensor
from tandem import _core
from tandem._algorithms import ctc

ops = _core.keras_ops


# --- activations ------------------------------------------------------------------------------------------------------------------------


def relu(x):
    return ops.relu(convert_to_tensor(x))


def relu6(x):
    return ops.relu6(convert_to_tensor(x))


def sigmoid(x):
    return ops.sigmoid(convert_to_tensor(x))


def sparse_sigmoid(x):
    return ops.sparse_sigmoid(convert_to_tensor(x))


def tanh(x):
    return ops.tanh(convert_to_tensor(x))


def tanh_shrink(x):
    return ops.tanh_shrink(convert_to_tensor(x))


def softplus(x):
    return ops.softplus(convert_to_tensor(x))


def softsign(x):
    return ops.softsign(convert_to_tensor(x))


def soft_shrink(x, threshold=0.5):
    return ops.soft_shrink(convert_to_tensor(x), threshold=threshold)


def sparse_plus(x):
    return ops.sparse_plus(convert_to_tensor(x))


def silu(x):
    return ops.silu(convert_to_tensor(x))


def squareplus(x, b=4):
    return ops.squareplus(convert_to_tensor(x), b=b)


def log_sigmoid(x):
    return ops.log_sigmoid(convert_to_tensor(x))


def leaky_relu(x, negative_slope=0.2):
    return ops.leaky_relu(convert_to_tensor(x), negative_slope=negative_slope)


def hard_sigmoid(x):
    return ops.hard_sigmoid(convert_to_tensor(x))


def hard_silu(x):
    return ops.hard_silu(convert_to_tensor(x))


def elu(x, alpha=1.0):
    return ops.elu(convert_to_tensor(x), alpha=alpha)


def selu(x):
    return ops.selu(convert_to_tensor(x))


def gelu(x, approximate=True):
    return ops.gelu(convert_to_tensor(x), approximate=bool(approximate))


def celu(x, alpha=1.0):
    return ops.celu(convert_to_tensor(x), alpha=alpha)


def glu(x, axis=-1):
    x = convert_to_tensor(x)
    extent = x.dims[axis]
    if isinstance(extent, int) and extent % 2 != 0:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}")
    half = extent // 2
    value, gate = ops.split(x, sizes=[half, half], axis=axis)
    return ops.multiply(value, ops.sigmoid(gate))


def hard_tanh(x):
    return ops.hard_tanh(convert_to_tensor(x))


def hard_shrink(x, threshold=0.5):
    return ops.hard_shrink(convert_to_tensor(x), threshold=threshold)


def threshold(x, threshold, default_value):
    return ops.threshold(convert_to_tensor(x), threshold=threshold, default_value=default_value)


def _along(op, x, axis):
    """An op along one axis, or over all elements when there is none given."""
    x = convert_to_tensor(x)
    if axis is not None:
        return op(x, axis=axis)
    return ops.reshape(op(ops.reshape(x, shape=[-1]), axis=0), shape=x.dims)


def softmax(x, axis=-1):
    return _along(ops.softmax, x, axis)


def log_softmax(x, axis=-1):
    return _along(ops.log_softmax, x, axis)


def sparsemax(x, axis=-1):
    return _along(ops.sparsemax, x, axis)


# --- classes ----------------------------------------------------------------------------------------------------------------------------


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise ValueError("`sparse=True` is not supported with the tandem backend")
    x = convert_to_tensor(x)
    if x.dtype.name not in ("int32", "int64"):
        x = cast(x, "int32")
    return ops.one_hot(x, classes=num_classes, axis=axis, dtype=dtype or "float32")


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    hot = one_hot(x, num_classes, axis=axis, dtype=dtype, sparse=sparse)
    return ops.max(hot, axis=[1 if hot.ndim > 2 else 0])


# --- losses -----------------------------------------------------------------------------------------------------------------------------

# What the rows keep probabilities away from 0 and 1.
_ROW_EPSILON = 1e-7


def _differ(a, b):
    """Whether two shapes cannot be the same; extents that are not known yet may be anything."""
    return len(a) != len(b) or any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in zip(a, b))


def _expect_same_shape(target, output):
    if _differ(target.dims, output.dims):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )


def _is_row_epsilon():
    return abs(default_epsilon() - _ROW_EPSILON) < 1e-12


def _kept_inside(p):
    """Probabilities as far from 0 and 1 as Keras's setting says."""
    return ops.clip(p, default_epsilon(), 1.0 - default_epsilon())


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _expect_same_shape(target, output)
    if target.ndim < 1:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )
    if from_logits or _is_row_epsilon():
        return ops.categorical_crossentropy(target, output, from_logits=bool(from_logits), axis=axis)
    share = _kept_inside(ops.divide(output, ops.sum(output, axis=[axis], keepdims=True)))
    return ops.negative(ops.sum(ops.multiply(target, ops.log(share)), axis=[axis]))


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = cast(target, "int32"), convert_to_tensor(output)
    if target.ndim == output.ndim and target.ndim and isinstance(target.dims[-1], int) and target.dims[-1] == 1:
        target = ops.squeeze(target, axis=[-1])
    if output.ndim < 1:
        raise ValueError(f"Argument `output` must be at least rank 1. Received: output.shape={output.shape}")
    if _differ(target.dims, output.dims[:-1]):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )
    if from_logits or _is_row_epsilon():
        return ops.sparse_categorical_crossentropy(target, output, from_logits=bool(from_logits), axis=axis)
    hot = ops.one_hot(target, classes=output.dims[axis], axis=axis, dtype=output.dtype)
    return categorical_crossentropy(hot, output, axis=axis)


def binary_crossentropy(target, output, from_logits=False):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _expect_same_shape(target, output)
    if from_logits or _is_row_epsilon():
        return ops.binary_crossentropy(target, output, from_logits=bool(from_logits))
    p = _kept_inside(output)
    return ops.negative(ops.add(ops.xlogy(target, p), ops.xlogy(ops.subtract(1.0, target), ops.subtract(1.0, p))))


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    output = convert_to_tensor(output)
    if output.dtype.name in ("float16", "bfloat16"):
        output = cast(output, "float32")
    return ctc.loss(cast(target, "int32"), output, cast(target_length, "int32"), cast(output_length, "int32"), blank=mask_index)


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0):
    inputs = convert_to_tensor(inputs)
    if inputs.dtype.name != "float64":
        inputs = cast(inputs, "float32")
    lengths = cast(sequence_lengths, "int32")
    if mask_index is None:
        mask_index = inputs.dims[-1] - 1
    if strategy == "greedy":
        return ctc.greedy(inputs, lengths, merge_repeated=merge_repeated, blank=mask_index)
    if strategy == "beam_search":
        return ctc.beam_search(inputs, lengths, beam_width=beam_width, top_paths=top_paths, blank=mask_index)
    raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")


def psnr(x1, x2, max_val):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if _differ(x1.dims, x2.dims):
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation. ")
    max_val = convert_to_tensor(max_val, x2.dtype)
    error = ops.mean(ops.square(ops.subtract(x1, x2)))
    return ops.subtract(ops.multiply(20.0, ops.log10(max_val)), ops.multiply(10.0, ops.log10(error)))


# --- normalization ----------------------------------------------------------------------------------------------------------------------

_HALF_LIMIT = 65504.0


def moments(x, axes, keepdims=False, synchronized=False):
    x = convert_to_tensor(x)
    axes = [axes] if isinstance(axes, int) else list(axes)
    dtype = x.dtype.name
    is_half = dtype in ("float16", "bfloat16")
    wide = cast(x, "float32") if is_half else x
    replica = replicas.several() if 0 in axes else None
    if replica is not None and (synchronized or getattr(replica.strategy.extended, "synchronizes_statistics", False)):
        mean, variance = _moments_of_all(wide, axes, keepdims, replica)
    else:
        mean, variance = ops.moments(wide, axis=axes, keepdims=keepdims)
    if not is_half:
        return mean, variance
    # The squares of halves leave their range: computed wider, and cut to what fits.
    return tuple(cast(ops.clip(m, -_HALF_LIMIT, _HALF_LIMIT), dtype) for m in (mean, variance))


def _moments_of_all(x, axes, keepdims, replica):
    """Of the rows of all replicas: each one's means count by its rows."""
    mean = replica.all_reduce("SUM", ops.mean(x, axis=axes, keepdims=True) * replica.weight)
    variance = replica.all_reduce("SUM", ops.mean(ops.square(x - mean), axis=axes, keepdims=True) * replica.weight)
    return (mean, variance) if keepdims else (ops.squeeze(mean, axis=axes), ops.squeeze(variance, axis=axes))


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    x, mean, variance = convert_to_tensor(x), convert_to_tensor(mean), convert_to_tensor(variance)
    scale = None if scale is None else convert_to_tensor(scale)
    if offset is not None:
        offset = convert_to_tensor(offset)
    elif scale is not None:
        offset = 0.0  # an operand can be left out only from the end
    return ops.batch_normalization(x, mean, variance, offset, scale, axis=axis, epsilon=epsilon)


# Keras composes the two below of smaller functions; _hook.py puts these in their place where they fit.


def _wide(x, *others):
    """Statistics are computed in float32 at least."""
    dtype = "float64" if x.dtype.name == "float64" else "float32"
    return [None if v is None else convert_to_tensor(v, dtype=dtype) for v in (x, *others)]


def layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=None):
    x = convert_to_tensor(x)
    wide, gamma, beta = _wide(x, gamma, beta)
    if gamma is None and beta is not None:
        gamma = 1.0
    axes = [axis] if isinstance(axis, int) else sorted(axis)
    epsilon = default_epsilon() if epsilon is None else epsilon
    return cast(ops.layer_normalization(wide, gamma, beta, axis=axes, epsilon=epsilon), x.dtype)


def rms_normalization(x, scale=None, axis=-1, epsilon=None):
    x = convert_to_tensor(x)
    wide, scale = _wide(x, scale)
    axes = [axis] if isinstance(axis, int) else sorted(axis)
    epsilon = default_epsilon() if epsilon is None else epsilon
    return cast(ops.rms_normalization(wide, scale, axis=axes, epsilon=epsilon), x.dtype)


# --- attention --------------------------------------------------------------------------------------------------------------------------


def _rank4(x):
    """[batch, heads, to, from], with 1 for the axes in front that were not given."""
    return ops.expand_dims(x, axis=list(range(4 - x.ndim))) if x.ndim < 4 else x


def dot_product_attention(
    query, key, value, bias=None, mask=None, scale=None, is_causal=False, flash_attention=None, attn_logits_soft_cap=None
):
    query, key, value = convert_to_tensor(query), convert_to_tensor(key), convert_to_tensor(value)
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={query.shape}, key.shape={key.shape}, value.shape={value.shape}."
        )
    if attn_logits_soft_cap is not None:
        raise NotImplementedError("dot_product_attention: `attn_logits_soft_cap` is not supported with the tandem backend")
    bias = None if bias is None else _rank4(convert_to_tensor(bias))
    if mask is not None:
        mask = _rank4(cast(mask, "bool"))
        if bias is None:
            bias = 0.0  # the row wants one beside a mask
    if isinstance(scale, Tensor):
        query, scale = ops.multiply(query, cast(scale, query.dtype)), 1.0
    return ops.dot_product_attention(query, key, value, bias, mask, scale=scale, is_causal=bool(is_causal))
