"""Windows over images beyond convolution and pooling: adaptive pooling, patches as columns, blocks of pixels as channels."""
import numpy as np

from tandem import _core

ops = _core.ops


# --- pooling to a given size ------------------------------------------------------------------------------------------------------------


def adaptive_pool(x, sizes, reduce):
    """The mean or max of so many windows along each spatial axis of [batch, spatial, channels]; together they cover the axis."""
    for i, size in enumerate(sizes):
        axis = i + 1
        if not isinstance(x.dims[axis], int):
            raise ValueError(f"adaptive pooling: the extent of axis {axis} must be known, got shape {x.shape}")
        x = _adaptive_axis(x, axis, size, reduce)
    return x


def _adaptive_axis(x, axis, size, reduce):
    length = x.dims[axis]
    if length % size == 0:
        parts = ops.reshape(x, shape=[*x.dims[:axis], size, length // size, *x.dims[axis + 1 :]])
        return (ops.mean if reduce == "mean" else ops.max)(parts, axis=[axis + 1])
    # Window i reaches from floor(i * length / size) to ceil((i + 1) * length / size), so windows may overlap and differ in size.
    i = np.arange(size)
    start, stop = i * length // size, -(-(i + 1) * length // size)
    widest = int((stop - start).max())
    places = start[:, None] + np.arange(widest)
    inside = places < stop[:, None]
    parts = ops.take(x, np.minimum(places, stop[:, None] - 1).astype("int32"), axis=axis)
    if reduce == "max":
        return ops.max(parts, axis=[axis + 1])  # what was read twice does no harm
    tail = (1,) * (x.ndim - axis - 1)
    kept = ops.where(inside.reshape(size, widest, *tail), parts, ops.cast(0, dtype=x.dtype))
    counts = ops.cast((stop - start).reshape(size, *tail), dtype=x.dtype)
    return ops.divide(ops.sum(kept, axis=[axis + 1]), counts)


# --- patches as columns -----------------------------------------------------------------------------------------------------------------


def _patch_count(length, kernel, dilation, padding, stride):
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def unfold(x, kernel, dilation, padding, stride):
    """[batch, channels, height, width] to [batch, channels * kernel, patches]."""
    batch, channels = x.dims[:2]
    counts = [_patch_count(x.dims[2 + i], kernel[i], dilation[i], padding[i], stride[i]) for i in range(2)]
    if any(padding):
        edge = [0, 0, *padding]
        x = ops.pad(x, ops.cast(0, dtype=x.dtype), low=edge, high=edge)
    for i, axis in ((0, 2), (1, 4)):  # the first take turns one axis into two
        shape = [kernel[i], counts[i]]
        inner, outer = ops.iota(shape=shape, axis=0), ops.iota(shape=shape, axis=1)
        x = ops.take(x, ops.add(ops.multiply(inner, dilation[i]), ops.multiply(outer, stride[i])), axis=axis)
    x = ops.transpose(x, perm=[0, 1, 2, 4, 3, 5])
    return ops.reshape(x, shape=[batch, channels * kernel[0] * kernel[1], counts[0] * counts[1]])


def fold(x, output, kernel, dilation, padding, stride):
    """[batch, channels * kernel, patches] to [batch, channels, height, width]; where patches overlap, their sum."""
    batch, rows = x.dims[:2]
    channels = rows // (kernel[0] * kernel[1])
    counts = [_patch_count(output[i], kernel[i], dilation[i], padding[i], stride[i]) for i in range(2)]
    x = ops.reshape(x, shape=[batch, channels, *kernel, *counts])
    padded = [output[i] + 2 * padding[i] for i in range(2)]
    total = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            start = [0, 0, i * dilation[0], j * dilation[1]]
            part = ops.place(x[:, :, i, j], shape=[batch, channels, *padded], start=start, step=[1, 1, *stride])
            total = part if total is None else ops.add(total, part)
    if any(padding):
        limit = [batch, channels, padding[0] + output[0], padding[1] + output[1]]
        total = ops.slice(total, start=[0, 0, *padding], limit=limit, step=[1, 1, 1, 1])
    return total


# --- blocks of pixels as channels -------------------------------------------------------------------------------------------------------


def _divided(count, by, what):
    if isinstance(count, int) and count % by != 0:
        raise ValueError(f"{what}: {count} cannot be divided by {by}")
    return count // by


def depth_to_space(x, block, channels_first=False):
    n, *rest = x.dims
    if channels_first:
        c, h, w = rest
        c = _divided(c, block * block, "depth_to_space: the channels")
        x = ops.transpose(ops.reshape(x, shape=[n, c, block, block, h, w]), perm=[0, 1, 4, 2, 5, 3])
        return ops.reshape(x, shape=[n, c, h * block, w * block])
    h, w, c = rest
    c = _divided(c, block * block, "depth_to_space: the channels")
    x = ops.transpose(ops.reshape(x, shape=[n, h, w, block, block, c]), perm=[0, 1, 3, 2, 4, 5])
    return ops.reshape(x, shape=[n, h * block, w * block, c])


def space_to_depth(x, block, channels_first=False):
    n, *rest = x.dims
    if channels_first:
        c, h, w = rest
        h, w = _divided(h, block, "space_to_depth: the height"), _divided(w, block, "space_to_depth: the width")
        x = ops.transpose(ops.reshape(x, shape=[n, c, h, block, w, block]), perm=[0, 1, 3, 5, 2, 4])
        return ops.reshape(x, shape=[n, c * block * block, h, w])
    h, w, c = rest
    h, w = _divided(h, block, "space_to_depth: the height"), _divided(w, block, "space_to_depth: the width")
    x = ops.transpose(ops.reshape(x, shape=[n, h, block, w, block, c]), perm=[0, 1, 3, 2, 4, 5])
    return ops.reshape(x, shape=[n, h, w, c * block * block])
