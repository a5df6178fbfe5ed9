"""Images: sizes, maps of the plane, colours, filters."""
from keras.src.backend import is_float_dtype, standardize_data_format
from keras.src.random.seed_generator import draw_seed

from keras_tandem.src.ops.core import cast, convert_to_tensor
from tandem import _core
from tandem._algorithms import image_color, image_resize, image_warp

ops = _core.keras_ops

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}  # and how many neighbours take part, less one
AFFINE_TRANSFORM_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}
MAP_COORDINATES_FILL_MODES = AFFINE_TRANSFORM_FILL_MODES
SCALE_AND_TRANSLATE_METHODS = {"linear", "bilinear", "trilinear", "cubic", "bicubic", "tricubic", "lanczos3", "lanczos5"}


# --- arguments --------------------------------------------------------------------------------------------------------------------------


def _expect_image(images):
    if images.ndim not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={images.shape}"
        )


def _expect_one_of(name, value, known):
    if value not in known:
        raise ValueError(f"Invalid value for argument `{name}`. Expected of one {set(known)}. Received: {name}={value}")


def _is_first(data_format):
    return standardize_data_format(data_format) == "channels_first"


def _channel_axis(data_format):
    return -3 if _is_first(data_format) else -1


class _Batch:
    """Images as [batch, height, width, channels], and back to how they were given."""

    def __init__(self, images, data_format):
        _expect_image(images)
        self.is_one = images.ndim == 3
        self.first = _is_first(data_format)
        x = ops.expand_dims(images, axis=[0]) if self.is_one else images
        self.images = ops.transpose(x, perm=[0, 2, 3, 1]) if self.first else x

    def as_given(self, x):
        if self.first:
            x = ops.transpose(x, perm=[0, 3, 1, 2, *range(4, x.ndim)])
        return ops.squeeze(x, axis=[0]) if self.is_one else x


# --- colours ----------------------------------------------------------------------------------------------------------------------------


def rgb_to_grayscale(images, data_format=None):
    images = convert_to_tensor(images)
    axis = _channel_axis(data_format)
    _expect_image(images)
    channels = images.shape[axis]
    if channels not in (1, 3):
        raise ValueError(
            f"Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received input with shape: images.shape={images.shape}"
        )
    if channels == 1:
        return images
    dtype = images.dtype.name
    return cast(image_color.to_gray(images if is_float_dtype(dtype) else cast(images, "float32"), axis), dtype)


def _colours(change, images, data_format):
    images = convert_to_tensor(images)
    axis = _channel_axis(data_format)
    _expect_image(images)
    if not is_float_dtype(images.dtype.name):
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype.name}")
    return change(images, axis)


def rgb_to_hsv(images, data_format=None):
    return _colours(image_color.rgb_to_hsv, images, data_format)


def hsv_to_rgb(images, data_format=None):
    return _colours(image_color.hsv_to_rgb, images, data_format)


# --- sizes ------------------------------------------------------------------------------------------------------------------------------


def resize(
    images,
    size,
    interpolation="bilinear",
    antialias=False,
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
    data_format=None,
):
    first = _is_first(data_format)
    if interpolation not in RESIZE_INTERPOLATIONS:
        raise ValueError(
            f"Invalid value for argument `interpolation`. Expected of one {RESIZE_INTERPOLATIONS}. "
            f"Received: interpolation={interpolation}"
        )
    if fill_mode != "constant":
        raise ValueError(
            f"Invalid value for argument `fill_mode`. Only `'constant'` is supported. Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if len(size) != 2:
        raise ValueError(f"Argument `size` must be a tuple of two elements (height, width). Received: size={size}")
    images = convert_to_tensor(images)
    _expect_image(images)
    size = tuple(int(s) for s in size)
    axes = (-2, -1) if first else (-3, -2)
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        images = _to_aspect(images, size, axes, fill_value if pad_to_aspect_ratio else None)
    return image_resize.resize(images, axes, size, interpolation, antialias)


def _to_aspect(images, size, axes, fill):
    """The middle of the images with the aspect of a size, or the images with a border around them."""
    height, width = (images.dims[a] for a in axes)
    if not isinstance(height, int) or not isinstance(width, int):
        raise ValueError(f"resize: an aspect ratio needs a height and a width that are known. Received: images.shape={images.shape}")
    # As much as the other extent asks for.
    wanted = (int(width * size[0] / size[1]), int(height * size[1] / size[0]))
    low, high = [0] * images.ndim, [0] * images.ndim
    for axis, extent, other in zip(axes, (height, width), wanted):
        if fill is None:
            kept = max(min(extent, other), 1)
            low[axis] = -int((extent - kept) / 2)
            high[axis] = kept - extent - low[axis]
        else:
            low[axis] = high[axis] = int((max(extent, other) - extent) / 2)
    return ops.pad(images, ops.cast(fill or 0, dtype=images.dtype), low=low, high=high)


def scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    _expect_one_of("method", method, SCALE_AND_TRANSLATE_METHODS)
    images, scale, translation = convert_to_tensor(images), convert_to_tensor(scale), convert_to_tensor(translation)
    wide = "float64" if "float64" in (scale.dtype.name, translation.dtype.name) else "float32"
    scale, translation = cast(scale, wide), cast(translation, wide)
    axes = list(spatial_dims)
    scales, translations = [scale[i] for i in range(len(axes))], [translation[i] for i in range(len(axes))]
    result = image_resize.scale_and_translate(images, output_shape, axes, scales, translations, method, antialias)
    dtype = images.dtype
    if not is_float_dtype(dtype.name):
        result = ops.clip(ops.round(result), ops.min(images), ops.max(images))
    return cast(result, dtype)


# --- maps of the plane ------------------------------------------------------------------------------------------------------------------


def affine_transform(images, transform, interpolation="bilinear", fill_mode="constant", fill_value=0, data_format=None):
    _expect_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    _expect_one_of("fill_mode", fill_mode, AFFINE_TRANSFORM_FILL_MODES)
    images, transform = convert_to_tensor(images), convert_to_tensor(transform)
    _expect_image(images)
    if transform.ndim not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
            f"Received input with shape: transform.shape={transform.shape}"
        )
    batch = _Batch(images, data_format)
    transform = ops.expand_dims(transform, axis=[0]) if transform.ndim == 1 else transform
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return batch.as_given(image_warp.project_images(batch.images, transform, order, fill_mode, fill_value))


def perspective_transform(images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None):
    _expect_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    images, start, end = convert_to_tensor(images), convert_to_tensor(start_points), convert_to_tensor(end_points)
    _expect_image(images)
    for name, points in (("start_points", start), ("end_points", end)):
        if points.ndim not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. Received shape: {points.shape}"
            )
    if tuple(start.shape) != tuple(end.shape):
        raise ValueError(
            "start_points and end_points must have the same shape. "
            f"Received start_points.shape={start.shape}, end_points.shape={end.shape}"
        )
    batch = _Batch(images, data_format)
    if start.ndim == 2:
        start, end = ops.expand_dims(start, axis=[0]), ops.expand_dims(end, axis=[0])
    transforms = image_warp.homography(cast(start, "float32"), cast(end, "float32"))
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return batch.as_given(image_warp.project_images(batch.images, transforms, order, "constant", fill_value))


def compute_homography_matrix(start_points, end_points):
    return image_warp.homography(cast(start_points, "float32"), cast(end_points, "float32"))


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    inputs, coordinates = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if coordinates.shape[0] != inputs.ndim:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. "
            f"Received inputs with shape: {inputs.shape} and coordinate leading dim of {coordinates.shape[0]}"
        )
    if coordinates.ndim < 2:
        raise ValueError(f"Invalid coordinates rank: expected at least rank 2. Received input with shape: {coordinates.shape}")
    if fill_mode not in MAP_COORDINATES_FILL_MODES:
        raise ValueError(
            f"Invalid value for argument `fill_mode`. Expected one of {MAP_COORDINATES_FILL_MODES}. "
            f"Received: fill_mode={fill_mode}"
        )
    if order not in (0, 1):
        raise ValueError(f"Invalid value for argument `order`. Expected one of [0, 1]. Received: order={order}")
    return image_warp.map_coordinates(inputs, coordinates, order, fill_mode, fill_value)


def elastic_transform(
    images, alpha=20.0, sigma=5.0, interpolation="bilinear", fill_mode="reflect", fill_value=0.0, seed=None, data_format=None
):
    _expect_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    _expect_one_of("fill_mode", fill_mode, AFFINE_TRANSFORM_FILL_MODES)
    images = convert_to_tensor(images)
    batch = _Batch(images, data_format)
    count, height, width, _ = batch.images.dims
    size = int(6 * float(sigma)) | 1
    keys = ops.split_key(cast(draw_seed(seed), "uint32"), count=2)

    def displacement(key):
        noise = ops.random_normal(key, 0.0, sigma, shape=[count, height, width, 1], dtype="float32")
        return ops.squeeze(image_color.gaussian_blur(noise, (size, size), (sigma, sigma)), axis=[3])

    y, x = image_warp.grid(height, width)
    y = ops.add(y, ops.multiply(displacement(keys[1]), alpha))
    x = ops.add(x, ops.multiply(displacement(keys[0]), alpha))
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return batch.as_given(image_warp.sample(batch.images, y, x, order, fill_mode, fill_value))


# --- filters ----------------------------------------------------------------------------------------------------------------------------


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    images = convert_to_tensor(images)
    batch = _Batch(images, data_format)
    sigma = convert_to_tensor(sigma, dtype=images.dtype)
    size = [int(k) for k in kernel_size]
    return batch.as_given(image_color.gaussian_blur(batch.images, size, (sigma[0], sigma[1])))


def sobel_edges(images, data_format=None):
    batch = _Batch(convert_to_tensor(images), data_format)
    return batch.as_given(image_color.sobel_edges(batch.images))
