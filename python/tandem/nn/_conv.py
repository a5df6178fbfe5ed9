"""Convolutions: TensorFlow's arguments over the engine's channels-last ones."""
import numpy as np

from tandem import errors
from tandem._arrays import pad as _pad
from tandem._arrays import reshape
from tandem._face import api, ints, ops, tensor

__all__ = [
    "atrous_conv2d", "atrous_conv2d_transpose", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "conv_transpose",
    "convolution", "depth_to_space", "depthwise_conv2d", "dilation2d", "erosion2d", "separable_conv2d", "space_to_depth", "with_space_to_batch",
]  # fmt: skip


def channels_first(data_format):
    return data_format is not None and data_format.startswith("NC") and len(data_format) > 2


def to_last(x, first):
    """Channels moved to the end."""
    return ops.moveaxis(x, source=[1], destination=[-1]) if first else x


def to_first(x, first):
    return ops.moveaxis(x, source=[-1], destination=[1]) if first else x


def spatial(values, rank, data_format, default=1):
    """Strides and the like for the spatial axes only: of one number, of one each, or of all axes."""
    if values is None:
        return [default] * rank
    values = ints(values)
    if len(values) == 1:
        return values * rank
    if len(values) == rank:
        return values
    if len(values) == rank + 2:
        return values[2:] if channels_first(data_format) else values[1:-1]
    raise ValueError(f"strides should be of length 1, {rank} or {rank + 2} but was {len(values)}")


def padded(x, padding, rank, first):
    """(x, 'same' or 'valid'): paddings that are given in numbers are put on."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(
                f"Value for attr 'padding' of \"{padding}\" is not in the list of allowed values: \"SAME\", \"VALID\""
            )
        return x, padding.lower()
    pads = [tuple(p) for p in padding]
    pads = [pads[0], *pads[2:], pads[1]] if first else pads
    return _pad(x, pads), "valid"


def _convolved(x, w, strides, padding, data_format, dilations, rank):
    x, w = tensor(x), tensor(w)
    if x.dtype is not w.dtype:
        raise errors.InvalidArgumentError(None, None, f"conv: input is {x.dtype.name}, filters are {w.dtype.name}")
    first = channels_first(data_format)
    x = to_last(x, first)
    lead = x.dims[: x.ndim - rank - 1]
    if len(lead) != 1:  # more axes in front of the image
        x = reshape(x, [-1, *x.dims[len(lead) :]])
    x, mode = padded(x, padding, rank, first)
    made = ops.conv(
        x, w, strides=spatial(strides, rank, data_format), padding=mode, dilation=spatial(dilations, rank, data_format)
    )
    if len(lead) != 1:
        made = reshape(made, [*lead, *made.dims[1:]])
    return to_first(made, first)


@api
def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None, name=None):
    return _convolved(input, filters, stride, padding, data_format, dilations, 1)


@api
def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
    return _convolved(input, filters, strides, padding, data_format, dilations, 2)


@api
def conv3d(input, filters, strides, padding, data_format="NDHWC", dilations=None, name=None):
    return _convolved(input, filters, strides, padding, data_format, dilations, 3)


@api
def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    return _convolved(input, filters, strides, padding, data_format, dilations, tensor(filters).ndim - 2)


@api
def atrous_conv2d(value, filters, rate, padding, name=None):
    return _convolved(value, filters, 1, padding, None, rate, 2)


@api
def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    first = channels_first(data_format)
    x, mode = padded(to_last(tensor(input), first), padding, 2, first)
    made = ops.depthwise_conv(
        x, tensor(filter), strides=spatial(strides, 2, data_format), padding=mode, dilation=spatial(dilations, 2, data_format)
    )
    return to_first(made, first)


@api
def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None):
    made = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return _convolved(made, pointwise_filter, 1, "VALID", data_format, None, 2)


def _transposed(x, w, output_shape, strides, padding, data_format, dilations, rank):
    """The gradient of a convolution by its input: TensorFlow's filters are [..., out, in]."""
    x, w = tensor(x), tensor(w)
    first = channels_first(data_format)
    x = to_last(x, first)
    steps, spread = spatial(strides, rank, data_format), spatial(dilations, rank, data_format)
    shape = ints(output_shape)
    extents = shape[2:] if first else shape[1:-1] if len(shape) == rank + 2 else shape
    low, high = [], []
    for i in range(rank):
        kernel = (w.shape[i] - 1) * spread[i] + 1
        if isinstance(padding, str):
            same = padding.upper() == "SAME"
            total = max((x.shape[1 + i] - 1) * steps[i] + kernel - extents[i], 0) if same else 0
            before = total // 2
        else:
            pads = [tuple(p) for p in padding]
            before = (pads[2:] if first else pads[1:-1])[i][0]
        low.append(kernel - 1 - before)
        reached = (x.shape[1 + i] - 1) * steps[i] + 1
        high.append(extents[i] + kernel - 1 - low[i] - reached)
    turned = ops.swapaxes(ops.flip(w, axis=list(range(rank))), axis1=-1, axis2=-2)
    made = ops.general_conv(x, turned, strides=[1] * rank, low=low, high=high, dilation=spread, input_dilation=steps)
    return to_first(made, first)


@api
def conv1d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NWC", dilations=None, name=None):
    return _transposed(input, filters, output_shape, strides, padding, data_format, dilations, 1)


@api
def conv2d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NHWC", dilations=None, name=None):
    return _transposed(input, filters, output_shape, strides, padding, data_format, dilations, 2)


@api
def conv3d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NDHWC", dilations=None, name=None):
    return _transposed(input, filters, output_shape, strides, padding, data_format, dilations, 3)


@api
def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
    return _transposed(input, filters, output_shape, strides, padding, data_format, dilations, tensor(filters).ndim - 2)


@api
def atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None):
    return _transposed(value, filters, output_shape, 1, padding, None, rate, 2)


def with_space_to_batch(input, dilation_rate, padding, op, filter_shape=None, spatial_dims=None, data_format=None):
    """op, as if its window had holes: on what stands `dilation_rate` apart, brought together into a batch."""
    from tandem._gather import batch_to_space, required_space_to_batch_paddings, space_to_batch_nd

    x = tensor(input)
    rates = ints(dilation_rate)
    axes = sorted(spatial_dims) if spatial_dims is not None else list(range(2, 2 + len(rates)) if channels_first(data_format) else range(1, 1 + len(rates)))
    if all(r == 1 for r in rates):
        return op(x, len(rates), padding)
    if axes != list(range(1, 1 + len(rates))):
        raise NotImplementedError("tf.nn.with_space_to_batch: spatial axes that do not follow the batch")
    base = np.zeros((len(rates), 2), np.int64)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        more = (np.array(ints(filter_shape)[: len(rates)]) - 1) * np.array(rates)
        base = np.stack([more // 2, more - more // 2], 1)
    pads, crops = required_space_to_batch_paddings([x.shape[a] for a in axes], rates, base)
    made = op(space_to_batch_nd(x, rates, pads), len(rates), "VALID")
    return batch_to_space(made, rates, crops)


# --- morphology -----------------------------------------------------------------------------------------------------------------


def _windows(x, size, strides, padding, rates, fill):
    """[batch, rows, columns, taps, channels] of the window's elements."""
    steps, spread = ints(strides)[1:3], ints(rates)[1:3]
    pads = [(0, 0)]
    for i in range(2):
        reach, extent = (size[i] - 1) * spread[i] + 1, x.shape[1 + i]
        total = max((-(-extent // steps[i]) - 1) * steps[i] + reach - extent, 0) if padding.upper() == "SAME" else 0
        pads.append((total // 2, total - total // 2))
    x = _pad(x, [*pads, (0, 0)], constant_values=fill)
    counts = [(x.shape[1 + i] - ((size[i] - 1) * spread[i] + 1)) // steps[i] + 1 for i in range(2)]
    taps = []
    for a in range(size[0]):
        for b in range(size[1]):
            top, left = a * spread[0], b * spread[1]
            taps.append(
                x[
                    :,
                    top : top + (counts[0] - 1) * steps[0] + 1 : steps[0],
                    left : left + (counts[1] - 1) * steps[1] + 1 : steps[1],
                    :,
                ]
            )
    return ops.stack(taps, axis=3)


@api
def dilation2d(input, filters, strides, padding, data_format, dilations, name=None):
    x, w = tensor(input), tensor(filters)
    found = _windows(x, list(w.shape[:2]), strides, padding, dilations, float(np.finfo(np.float32).min))
    return ops.max(found + reshape(w, [-1, w.dims[-1]]), axis=[3])


@api
def erosion2d(value, filters, strides, padding, data_format, dilations, name=None):
    w = tensor(filters)
    return ops.negative(
        dilation2d(ops.negative(tensor(value)), ops.flip(w, axis=[0, 1]), strides, padding, data_format, dilations)
    )


# --- depth ----------------------------------------------------------------------------------------------------------------------


@api
def depth_to_space(input, block_size, data_format="NHWC", name=None):
    first = channels_first(data_format)
    x, b = to_last(tensor(input), first), int(block_size)
    n, h, w, c = x.dims
    made = reshape(
        ops.transpose(reshape(x, [n, h, w, b, b, c // (b * b)]), perm=[0, 1, 3, 2, 4, 5]), [n, h * b, w * b, c // (b * b)]
    )
    return to_first(made, first)


@api
def space_to_depth(input, block_size, data_format="NHWC", name=None):
    first = channels_first(data_format)
    x, b = to_last(tensor(input), first), int(block_size)
    n, h, w, c = x.dims
    made = reshape(
        ops.transpose(reshape(x, [n, h // b, b, w // b, b, c]), perm=[0, 1, 3, 2, 4, 5]), [n, h // b, w // b, b * b * c]
    )
    return to_first(made, first)
