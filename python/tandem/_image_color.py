"""Colours and brightness of images."""
import numpy as np

from tandem._arrays import cast, saturate_cast
from tandem._dtypes import as_dtype
from tandem._face import api, convert, ops, tensor

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation", "convert_image_dtype", "grayscale_to_rgb", "hsv_to_rgb",
    "per_image_standardization", "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "yiq_to_rgb", "yuv_to_rgb",
]  # fmt: skip


@api
def convert_image_dtype(image, dtype, saturate=False, name=None):
    x, dtype = tensor(image), as_dtype(dtype)
    if x.dtype is dtype:
        return x
    if x.dtype.is_integer and dtype.is_integer:
        high, wanted = x.dtype.max, dtype.max
        if high > wanted:  # the higher bits
            scale = (high + 1) // (wanted + 1)
            made = ops.floor_divide(x, convert(scale, x.dtype))
            return saturate_cast(made, dtype) if saturate else cast(made, dtype)
        scale = (wanted + 1) // (high + 1)
        return ops.multiply(cast(x, dtype), convert(scale, dtype))
    if x.dtype.is_floating and dtype.is_floating:
        return cast(x, dtype)
    if x.dtype.is_integer:
        return ops.multiply(cast(x, dtype), convert(1.0 / x.dtype.max, dtype))
    scaled = ops.multiply(x, convert(dtype.max + 0.5, x.dtype))
    return saturate_cast(scaled, dtype) if saturate else cast(scaled, dtype)


def _floats(image):
    """The image as floats of at most 32 bits, which is what TensorFlow computes in, and its own type."""
    x = tensor(image)
    return (x if x.dtype.name in ("float16", "float32") else convert_image_dtype(x, "float32")), x.dtype


def _scaled_back(x, dtype):
    return convert_image_dtype(x, dtype, saturate=True)


def _factor(x, dtype):
    return convert(x, dtype) if isinstance(x, (int, float, np.generic)) else cast(tensor(x), dtype)


@api
def adjust_brightness(image, delta):
    x, dtype = _floats(image)
    return _scaled_back(x + _factor(delta, x.dtype), dtype)


@api
def adjust_contrast(images, contrast_factor):
    x, dtype = _floats(images)
    mean = ops.mean(x, axis=[-3, -2], keepdims=True)
    return _scaled_back((x - mean) * _factor(contrast_factor, x.dtype) + mean, dtype)


@api
def adjust_gamma(image, gamma=1, gain=1):
    if isinstance(gamma, (int, float)) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    x, dtype = _floats(image)
    return _scaled_back(ops.power(x, _factor(gamma, x.dtype)) * _factor(gain, x.dtype), dtype)


@api
def rgb_to_hsv(images, name=None):
    x = tensor(images)
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    value = ops.max(x, axis=[-1])
    span = value - ops.min(x, axis=[-1])
    grey = ops.equal(span, 0)
    safe = ops.where(grey, ops.add(span, 1.0), span)
    saturation = ops.divide_no_nan(span, value)
    norm = ops.divide(1.0 / 6.0, safe)
    of_b = norm * (r - g) + 4.0 / 6.0
    of_g = norm * (b - r) + 2.0 / 6.0
    of_r = norm * (g - b)
    hue = ops.where(ops.equal(r, value), of_r, ops.where(ops.equal(g, value), of_g, of_b))
    hue = ops.where(grey, 0.0, hue)
    hue = ops.where(ops.less(hue, 0), hue + 1.0, hue)
    return ops.stack([hue, saturation, value], axis=-1)


@api
def hsv_to_rgb(images, name=None):
    x = tensor(images)
    h, s, v = x[..., 0], x[..., 1], x[..., 2]
    dh = h * 6.0
    dr = ops.clip(ops.absolute(dh - 3.0) - 1.0, 0.0, 1.0)
    dg = ops.clip(2.0 - ops.absolute(dh - 2.0), 0.0, 1.0)
    db = ops.clip(2.0 - ops.absolute(dh - 4.0), 0.0, 1.0)
    return ops.stack([(1.0 - s + s * d) * v for d in (dr, dg, db)], axis=-1)


@api
def adjust_hue(image, delta, name=None):
    if isinstance(delta, (int, float)) and not -1 <= delta <= 1:
        raise ValueError("delta must be in the interval [-1, 1]")
    x, dtype = _floats(image)
    hsv = rgb_to_hsv(x)
    hue = ops.remainder(hsv[..., 0] + _factor(delta, x.dtype) + 1.0, 1.0)
    return _scaled_back(hsv_to_rgb(ops.stack([hue, hsv[..., 1], hsv[..., 2]], axis=-1)), dtype)


@api
def adjust_saturation(image, saturation_factor, name=None):
    x, dtype = _floats(image)
    hsv = rgb_to_hsv(x)
    saturation = ops.clip(hsv[..., 1] * _factor(saturation_factor, x.dtype), 0.0, 1.0)
    return _scaled_back(hsv_to_rgb(ops.stack([hsv[..., 0], saturation, hsv[..., 2]], axis=-1)), dtype)


@api
def rgb_to_grayscale(images, name=None):
    x, dtype = _floats(images)
    weights = convert(np.array([0.2989, 0.587, 0.114]), x.dtype)
    return _scaled_back(ops.sum(x * weights, axis=[-1], keepdims=True), dtype)


@api
def grayscale_to_rgb(images, name=None):
    x = tensor(images)
    return ops.broadcast_to(x, shape=[*x.dims[:-1], 3])


_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])
_YUV = np.array([[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]])


def _mixed(matrix):
    @api
    def call(images):
        x = tensor(images)
        return ops.tensordot(x, convert(matrix, x.dtype), axes=0, x_axes=[x.ndim - 1], y_axes=[0])

    return call


rgb_to_yiq, yiq_to_rgb = _mixed(_YIQ), _mixed(np.linalg.inv(_YIQ))
rgb_to_yuv, yuv_to_rgb = _mixed(_YUV), _mixed(np.linalg.inv(_YUV))


@api
def per_image_standardization(image):
    x = tensor(image)
    x = cast(x, "float32")
    mean = ops.mean(x, axis=[-3, -2, -1], keepdims=True)
    spread = ops.std(x, axis=[-3, -2, -1], keepdims=True)
    count = np.prod([x.shape[a] for a in (-3, -2, -1)])
    return (x - mean) / ops.maximum(spread, float(1 / np.sqrt(count)))
