"""Windows over images: convolutions, pooling, and moving elements between space and channels.

The engine's rows have the channels last; with channels first, data is turned before and after them, and the compiler joins
neighbouring turns.
"""
from keras.src.backend import standardize_data_format

from keras_tandem.src.ops.core import convert_to_tensor
from tandem import _core
from tandem._algorithms import windows

ops = _core.keras_ops


def _each(value, axes, name):
    """One number an axis."""
    values = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(values) != axes:
        raise ValueError(f"`{name}` must be an integer or a sequence of {axes} integers. Received: {name}={value}")
    return [int(v) for v in values]


def _is_first(data_format):
    return standardize_data_format(data_format) == "channels_first"


def _channels_last(x, first):
    return ops.moveaxis(x, source=[1], destination=[-1]) if first else x


def _as_given(y, first):
    return ops.moveaxis(y, source=[-1], destination=[1]) if first else y


# --- pooling ----------------------------------------------------------------------------------------------------------------------------


def _pool(op, inputs, pool_size, strides, padding, data_format):
    first = _is_first(data_format)
    inputs = convert_to_tensor(inputs)
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    axes = inputs.ndim - 2
    pool_size = _each(pool_size, axes, "pool_size")
    strides = pool_size if strides is None else _each(strides, axes, "strides")
    return _as_given(op(_channels_last(inputs, first), pool_size=pool_size, strides=strides, padding=padding), first)


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(ops.max_pool, inputs, pool_size, strides, padding, data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(ops.average_pool, inputs, pool_size, strides, padding, data_format)


def _adaptive_pool(reduce, inputs, output_size, data_format):
    first = _is_first(data_format)
    inputs = convert_to_tensor(inputs)
    axes = inputs.ndim - 2
    if axes not in (1, 2, 3):
        raise ValueError(f"adaptive pooling supports only 1D/2D/3D inputs. Received: inputs.shape={inputs.shape}")
    sizes = _each(output_size, axes, "output_size")
    return _as_given(windows.adaptive_pool(_channels_last(inputs, first), sizes, reduce), first)


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adaptive_pool("mean", inputs, output_size, data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adaptive_pool("max", inputs, output_size, data_format)


# --- convolutions -----------------------------------------------------------------------------------------------------------------------


def _expect_channels(inputs, channels, first, what):
    """Of depthwise and transposed kernels, whose channels are those of the input."""
    given = inputs.dims[1 if first else -1]
    if isinstance(given, int) and isinstance(channels, int) and given != channels:
        raise ValueError(
            f"The number of channels of the input and of the {what} differ. Received: inputs.shape={inputs.shape}, "
            f"which has {given} channels, and a kernel for {channels}"
        )


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    first = _is_first(data_format)
    kernel = convert_to_tensor(kernel)
    inputs = convert_to_tensor(inputs, dtype=kernel.dtype)
    axes = inputs.ndim - 2
    channels, each = inputs.dims[1 if first else -1], kernel.dims[-2]
    if isinstance(channels, int) and channels % each != 0:
        raise ValueError(
            "The number of input channels must be evenly divisible by kernel's in_channels. "
            f"Received input channels {channels} and kernel in_channels {each}. "
        )
    result = ops.conv(
        _channels_last(inputs, first),
        kernel,
        strides=_each(strides, axes, "strides"),
        padding=padding.lower(),
        dilation=_each(dilation_rate, axes, "dilation_rate"),
    )
    return _as_given(result, first)


def _depthwise(op, inputs, kernels, strides, padding, data_format, dilation_rate):
    """A row whose first kernel has a plane for each channel."""
    first = _is_first(data_format)
    inputs, kernels = convert_to_tensor(inputs), [convert_to_tensor(k) for k in kernels]
    _expect_channels(inputs, kernels[0].dims[-2], first, "depthwise kernel")
    axes = inputs.ndim - 2
    result = op(
        _channels_last(inputs, first),
        *kernels,
        strides=_each(strides, axes, "strides"),
        padding=padding.lower(),
        dilation=_each(dilation_rate, axes, "dilation_rate"),
    )
    return _as_given(result, first)


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    return _depthwise(ops.depthwise_conv, inputs, [kernel], strides, padding, data_format, dilation_rate)


def separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    return _depthwise(ops.separable_conv, inputs, [depthwise_kernel, pointwise_kernel], strides, padding, data_format, dilation_rate)


def conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1):
    first = _is_first(data_format)
    inputs, kernel = convert_to_tensor(inputs), convert_to_tensor(kernel)
    _expect_channels(inputs, kernel.dims[-1], first, "transposed kernel")
    axes = inputs.ndim - 2
    result = ops.conv_transpose(
        _channels_last(inputs, first),
        kernel,
        strides=_each(strides, axes, "strides"),
        padding=padding.lower(),
        output_padding=None if output_padding is None else _each(output_padding, axes, "output_padding"),
        dilation=_each(dilation_rate, axes, "dilation_rate"),
    )
    return _as_given(result, first)


# --- between space and channels ---------------------------------------------------------------------------------------------------------


def _pairs(**sizes):
    return [_each(value, 2, name) for name, value in sizes.items()]


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    sizes = _pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    return windows.unfold(convert_to_tensor(input), *sizes)


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    sizes = _pairs(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    return windows.fold(convert_to_tensor(x), *sizes)


def depth_to_space(x, block_size, data_format="channels_last"):
    first = _is_first(data_format)
    return windows.depth_to_space(convert_to_tensor(x), block_size, channels_first=first)


def space_to_depth(x, block_size, data_format="channels_last"):
    first = _is_first(data_format)
    return windows.space_to_depth(convert_to_tensor(x), block_size, channels_first=first)
