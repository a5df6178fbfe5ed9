"""tf.image. Images are [height, width, channels] or a batch of them. Files of images are tf.io's; boxes are in _image_boxes.py."""

import numpy as np

from tandem import errors
from tandem import random as _random
from tandem._algorithms import image_resize
from tandem._arrays import cast, pad, reshape
from tandem._face import api, convert, ints, number, ops, tensor
from tandem._image_boxes import *  # noqa: F401, F403
from tandem._image_color import *  # noqa: F401, F403
from tandem._image_quality import *  # noqa: F401, F403


class ResizeMethod:
    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA, LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = (
        "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic",
    )  # fmt: skip


def _batched(image):
    x = tensor(image)
    if x.ndim == 3:
        return ops.expand_dims(x, axis=[0]), True
    if x.ndim == 4:
        return x, False
    raise ValueError(f"'image' (shape {x.shape}) must have either 3 or 4 dimensions.")


def _unbatched(x, single):
    return ops.squeeze(x, axis=[0]) if single else x


@api
def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    x, single = _batched(images)
    height, width = [int(n) for n in ints(size)]
    method = {0: "bilinear", 1: "nearest", 2: "bicubic", 3: "area"}.get(method, method)
    if method not in (*image_resize.KERNELS, "nearest", "area"):
        raise ValueError("Resize method is not implemented: " + str(method))
    if preserve_aspect_ratio:
        share = min(height / x.shape[1], width / x.shape[2])
        height, width = max(int(round(x.shape[1] * share)), 1), max(int(round(x.shape[2] * share)), 1)
    if height <= 0 or width <= 0:
        raise errors.InvalidArgumentError(None, None, f"output dimensions must be positive, got {height} x {width}")
    if method != "nearest":
        x = cast(x, "float32")  # of every type, float64 too
    return _unbatched(image_resize.resize(x, (1, 2), (height, width), method, bool(antialias)), single)


@api
def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    x, single = _batched(image)
    height, width = int(number(target_height)), int(number(target_width))
    # In 32 bits, as TensorFlow: an extent that divides the other must not lose one.
    high, wide = np.float32(x.shape[1]), np.float32(x.shape[2])
    share = max(wide / np.float32(width), high / np.float32(height))
    exact = [high / share, wide / share]
    small = [max(int(np.floor(n)), 1) for n in exact]
    top, left = [max(int(np.floor((np.float32(n) - e) / np.float32(2))), 0) for n, e in zip((height, width), exact)]
    return _unbatched(pad_to_bounding_box(resize(x, small, method, antialias=antialias), top, left, height, width), single)


@api
def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    x, single = _batched(image)
    top, left, height, width = [int(number(n)) for n in (offset_height, offset_width, target_height, target_width)]
    bottom, right = height - top - x.shape[1], width - left - x.shape[2]
    if top < 0 or left < 0:
        raise ValueError("offset_height and offset_width must be >= 0")
    if bottom < 0 or right < 0:
        raise ValueError("height must be <= target - offset")
    return _unbatched(pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)]), single)


@api
def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    x, single = _batched(image)
    top, left, height, width = [int(number(n)) for n in (offset_height, offset_width, target_height, target_width)]
    if min(top, left) < 0 or min(height, width) <= 0:
        raise ValueError("offsets must be >= 0 and targets > 0")
    if top + height > x.shape[1] or left + width > x.shape[2]:
        raise ValueError(
            f"height must be >= target + offset: {x.shape[1]} x {x.shape[2]} holds no {height} x {width} at {top}, {left}"
        )
    return _unbatched(x[:, top : top + height, left : left + width, :], single)


@api
def resize_with_crop_or_pad(image, target_height, target_width):
    x, single = _batched(image)
    height, width = int(number(target_height)), int(number(target_width))
    dh, dw = x.shape[1] - height, x.shape[2] - width
    x = crop_to_bounding_box(x, max(dh // 2, 0), max(dw // 2, 0), min(height, x.shape[1]), min(width, x.shape[2]))
    return _unbatched(pad_to_bounding_box(x, max(-dh // 2, 0), max(-dw // 2, 0), height, width), single)


@api
def central_crop(image, central_fraction):
    x, single = _batched(image)
    share = float(number(central_fraction))
    if not 0 < share <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    if share == 1:
        return _unbatched(x, single)
    top, left = int((x.shape[1] - x.shape[1] * share) / 2), int((x.shape[2] - x.shape[2] * share) / 2)
    return _unbatched(x[:, top : x.shape[1] - top, left : x.shape[2] - left, :], single)


# --- turning --------------------------------------------------------------------------------------------------------------------


@api
def flip_left_right(image):
    return ops.flip(tensor(image), axis=[-2])


@api
def flip_up_down(image):
    return ops.flip(tensor(image), axis=[-3])


@api
def transpose(image, name=None):
    return ops.swapaxes(tensor(image), axis1=-3, axis2=-2)


@api
def rot90(image, k=1, name=None):
    return ops.rot90(tensor(image), k=int(number(k)) % 4, axes=[-3, -2])


# --- at random ------------------------------------------------------------------------------------------------------------------


def _draw(seed):
    return _random._next_key(seed)


def _chance(key, shape=()):
    return ops.random_uniform(key, None, None, shape=list(shape), dtype="float32")


def _flipped(image, key, axis):
    x = tensor(image)
    heads = ops.less(_chance(key, [x.dims[0], 1, 1, 1] if x.ndim == 4 else []), 0.5)
    return ops.where(heads, ops.flip(x, axis=[axis]), x)


def random_flip_left_right(image, seed=None):
    return _flipped(image, _draw(seed), -2)


def random_flip_up_down(image, seed=None):
    return _flipped(image, _draw(seed), -3)


def stateless_random_flip_left_right(image, seed):
    return _flipped(image, _random._stateless_key(seed), -2)


def stateless_random_flip_up_down(image, seed):
    return _flipped(image, _random._stateless_key(seed), -3)


def _between(key, low, high):
    return ops.add(ops.multiply(_chance(key), float(number(high)) - float(number(low))), float(number(low)))


def _at_random(adjust, symmetric):
    """(with the global generator, with a seed) for a function of one parameter."""
    if symmetric:
        def check(limit):
            if number(limit) < 0:
                raise ValueError("max_delta must be non-negative.")

        def stateful(image, max_delta, seed=None):
            check(max_delta)
            return adjust(image, _between(_draw(seed), -number(max_delta), max_delta))

        def stateless(image, max_delta, seed):
            check(max_delta)
            return adjust(image, _between(_random._stateless_key(seed), -number(max_delta), max_delta))
    else:
        def check(low, high):
            if high <= low:
                raise ValueError("upper must be > lower.")
            if low < 0:
                raise ValueError("lower must be non-negative.")

        def stateful(image, lower, upper, seed=None):
            check(lower, upper)
            return adjust(image, _between(_draw(seed), lower, upper))

        def stateless(image, lower, upper, seed=None):
            check(lower, upper)
            return adjust(image, _between(_random._stateless_key(seed), lower, upper))

    return stateful, stateless


random_brightness, stateless_random_brightness = _at_random(lambda i, d: adjust_brightness(i, d), True)  # noqa: F405
random_contrast, stateless_random_contrast = _at_random(lambda i, d: adjust_contrast(i, d), False)  # noqa: F405
random_hue, stateless_random_hue = _at_random(lambda i, d: adjust_hue(i, d), True)  # noqa: F405
random_saturation, stateless_random_saturation = _at_random(lambda i, d: adjust_saturation(i, d), False)  # noqa: F405


def _cropped(value, size, key):
    x, size = tensor(value), ints(size)
    for d, n in zip(x.shape, size):
        if d is not None and d < n:
            raise errors.InvalidArgumentError(None, None, f"Need value.shape >= size, got {list(x.shape)} and {size}")
    room = [d - n + 1 for d, n in zip(x.dims, size)]
    u = _chance(key, [x.ndim])
    starts = ops.cast(ops.floor(ops.multiply(u, convert(np.array(room, np.float32)))), dtype="int32")
    return ops.dynamic_slice(x, starts, sizes=size)


def random_crop(value, size, seed=None, name=None):
    return _cropped(value, size, _draw(seed))


def stateless_random_crop(value, size, seed, name=None):
    return _cropped(value, size, _random._stateless_key(seed))


# --- patches and gradients ------------------------------------------------------------------------------------------------------


@api
def extract_patches(images, sizes, strides, rates, padding, name=None):
    from tandem.nn._conv import _windows

    x = tensor(images)
    size = ints(sizes)[1:3]
    found = _windows(x, size, strides, padding, rates, 0)
    return reshape(found, [*found.dims[:3], found.dims[3] * found.dims[4]])


@api
def image_gradients(image):
    x = tensor(image)
    if x.ndim != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}.")
    dy = pad(x[:, 1:] - x[:, :-1], [(0, 0), (0, 1), (0, 0), (0, 0)])
    dx = pad(x[:, :, 1:] - x[:, :, :-1], [(0, 0), (0, 0), (0, 1), (0, 0)])
    return dy, dx


@api
def sobel_edges(image):
    x = tensor(image)
    kernels = np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]], np.float32)
    depth = x.shape[-1]
    w = np.tile(np.transpose(kernels, (1, 2, 0))[:, :, None, :], [1, 1, depth, 1])
    padded = pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="REFLECT")
    made = ops.depthwise_conv(padded, convert(w, x.dtype))
    return reshape(made, [*x.dims, 2])


@api
def extract_glimpse(input, size, offsets, centered=True, normalized=True, noise="uniform", name=None):
    x, (height, width) = tensor(input), ints(size)
    at = tensor(offsets).numpy().astype(np.float64)
    high, wide = x.shape[1], x.shape[2]
    made = []
    array = x.numpy()
    rng = np.random.default_rng(_draw(None).numpy())
    for i, (y, c) in enumerate(at):
        if normalized:
            y, c = y * high, c * wide
            if centered:
                y, c = (y + high) / 2, (c + wide) / 2
        elif centered:
            y, c = y + high / 2, c + wide / 2
        top, left = int(y - height / 2), int(c - width / 2)
        fill = np.zeros((height, width, x.shape[3])) if noise == "zero" else rng.uniform(0, 1, (height, width, x.shape[3]))
        for r in range(height):
            for q in range(width):
                if 0 <= top + r < high and 0 <= left + q < wide:
                    fill[r, q] = array[i, top + r, left + q]
        made.append(fill)
    return convert(np.array(made), x.dtype)


# --- what storing as JPEG does ---------------------------------------------------------------------------------------------------


def adjust_jpeg_quality(image, jpeg_quality, name=None):
    """The image as it is after being stored with this quality."""
    from tandem import io
    from tandem._image_color import convert_image_dtype

    x = tensor(image)
    quality = int(number(jpeg_quality))
    if not 0 <= quality <= 100:
        raise errors.InvalidArgumentError(None, None, f"adjust_jpeg_quality: the quality is {quality}, it must be in [0, 100]")
    bytes_ = convert_image_dtype(x, "uint8", saturate=True)
    made = io.decode_jpeg(io.encode_jpeg(bytes_, quality=quality), channels=x.shape[-1])
    return convert_image_dtype(made, x.dtype, saturate=True)


def _random_quality(image, low, high, draw):
    if low < 0 or high < 0 or low > 100 or high > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if low >= high:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    return adjust_jpeg_quality(image, draw([], low, high))


def random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None):
    return _random_quality(image, min_jpeg_quality, max_jpeg_quality, lambda *a: _random.uniform(*a, dtype="int32", seed=seed))


def stateless_random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed):
    draw = lambda shape, low, high: _random.stateless_uniform(shape, seed, low, high, dtype="int32")  # noqa: E731
    return _random_quality(image, min_jpeg_quality, max_jpeg_quality, draw)


_files = {
    "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "extract_jpeg_shape", "is_jpeg",
}  # fmt: skip


def __getattr__(name):
    if name in _files:
        from tandem import io

        if hasattr(io, name):
            return getattr(io, name)
    raise AttributeError(f"tf.image has no '{name}': see docs/coverage.md")
