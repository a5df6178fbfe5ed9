"""Colours and filters of images; the axis of the channels is a number."""
import numpy as np

from tandem import _core

ops = _core.ops


def _channels(images, axis):
    return ops.unstack(images, axis=axis)


def to_gray(images, axis):
    """The brightness of red, green and blue, one channel."""
    r, g, b = _channels(images, axis)
    return ops.expand_dims(0.2989 * r + 0.587 * g + 0.114 * b, axis=[axis])


def rgb_to_hsv(images, axis):
    r, g, b = _channels(images, axis)
    value = ops.maximum(ops.maximum(r, g), b)
    spread = ops.subtract(value, ops.minimum(ops.minimum(r, g), b))
    zero, one = ops.cast(0, dtype=images.dtype), ops.cast(1, dtype=images.dtype)
    saturation = ops.where(ops.greater(value, 0), ops.divide(spread, ops.where(ops.greater(value, 0), value, one)), zero)
    has_hue = ops.greater(spread, 0)
    sixth = ops.divide(one, 6.0 * ops.where(has_hue, spread, one))
    hue = ops.where(ops.equal(value, g), sixth * (b - r) + 2.0 / 6.0, sixth * (r - g) + 4.0 / 6.0)
    hue = ops.where(ops.equal(value, r), sixth * (g - b), hue)
    hue = ops.where(has_hue, ops.where(ops.less(hue, 0), hue + 1.0, hue), zero)
    return ops.stack([hue, saturation, value], axis=axis)


def hsv_to_rgb(images, axis):
    hue, saturation, value = _channels(images, axis)
    place = ops.remainder(hue, ops.cast(1, dtype=images.dtype)) * 6.0
    r = ops.clip(ops.absolute(place - 3.0) - 1.0, 0.0, 1.0)
    g = ops.clip(2.0 - ops.absolute(place - 2.0), 0.0, 1.0)
    b = ops.clip(2.0 - ops.absolute(place - 4.0), 0.0, 1.0)
    white = 1.0 - saturation
    return ops.stack([value * (white + saturation * c) for c in (r, g, b)], axis=axis)


# --- filters of [batch, height, width, channels] ----------------------------------------------------------------------------------------


def _gaussian(size, sigma, dtype):
    x = ops.cast(np.arange(size) - (size - 1) / 2, dtype=dtype)
    bell = ops.exp(-0.5 * ops.square(ops.divide(x, sigma)))
    return ops.divide(bell, ops.sum(bell))


def gaussian_blur(images, size, sigma):
    """Size and sigma are those of x, then of y. Outside of the image is 0."""
    channels = images.dims[-1]
    kernel = ops.outer(_gaussian(size[1], sigma[1], images.dtype), _gaussian(size[0], sigma[0], images.dtype))
    kernel = ops.broadcast_to(ops.reshape(kernel, shape=[size[1], size[0], 1, 1]), shape=[size[1], size[0], channels, 1])
    return ops.depthwise_conv(images, kernel, padding="same")


def sobel_edges(images):
    """The slopes along y and x as a new last axis; the image goes on behind its border mirrored."""
    batch, height, width, channels = images.dims
    x = ops.pad_mode(images, low=[0, 1, 1, 0], high=[0, 1, 1, 0], mode="reflect")
    slope, smooth = np.array([-1, 0, 1]), np.array([1, 2, 1])
    kernel = np.stack([np.outer(slope, smooth), np.outer(smooth, slope)], axis=-1)  # [3, 3, 2]
    kernel = ops.broadcast_to(ops.cast(kernel.reshape(3, 3, 1, 2), dtype=images.dtype), shape=[3, 3, channels, 2])
    return ops.reshape(ops.depthwise_conv(x, kernel), shape=[batch, height, width, channels, 2])
