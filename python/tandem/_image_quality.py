"""How alike two images are."""
import numpy as np

from tandem._face import api, convert, ops, tensor
from tandem._image_color import convert_image_dtype

__all__ = ["psnr", "ssim", "ssim_multiscale", "total_variation"]


@api
def total_variation(images, name=None):
    x = tensor(images)
    down, right = x[..., 1:, :, :] - x[..., :-1, :, :], x[..., :, 1:, :] - x[..., :, :-1, :]
    axes = [-3, -2, -1]
    total = ops.sum(ops.absolute(down), axis=axes) + ops.sum(ops.absolute(right), axis=axes)
    return total if x.dtype.is_floating else ops.cast(total, dtype=x.dtype)


def _both(a, b, max_val):
    a, b = tensor(a), tensor(b)
    limit = convert_image_dtype(convert(np.array(max_val, a.dtype.as_numpy_dtype)), "float32")
    return convert_image_dtype(a, "float32"), convert_image_dtype(b, "float32"), limit


@api
def psnr(a, b, max_val, name=None):
    a, b, limit = _both(a, b, max_val)
    error = ops.mean(ops.square(a - b), axis=[-3, -2, -1])
    return ops.log(limit) * float(20 / np.log(10)) - ops.log(error) * float(10 / np.log(10))


def _ssim_parts(a, b, limit, size, sigma, k1, k2):
    """Luminance and contrast-structure maps (Wang et al. 2004)."""
    at = np.arange(size) - (size - 1) / 2
    line = np.exp(-(at**2) / (2 * sigma**2))
    window = np.outer(line, line)
    window /= window.sum()
    depth = a.shape[-1]
    kernel = convert(np.tile(window[:, :, None, None], [1, 1, depth, 1]), a.dtype)

    def blur(x):
        flat = ops.reshape(x, shape=[-1, *x.dims[-3:]])
        made = ops.depthwise_conv(flat, kernel)
        return ops.reshape(made, shape=[*x.dims[:-3], *made.dims[1:]])

    c1, c2 = ops.square(limit * k1), ops.square(limit * k2)
    mean_a, mean_b = blur(a), blur(b)
    both = mean_a * mean_b * 2.0
    squares = ops.square(mean_a) + ops.square(mean_b)
    luminance = (both + c1) / (squares + c1)
    cross = blur(a * b) * 2.0 - both
    spread = blur(ops.square(a) + ops.square(b)) - squares
    return luminance, (cross + c2) / (spread + c2)


@api
def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03, return_index_map=False):
    a, b, limit = _both(img1, img2, max_val)
    luminance, structure = _ssim_parts(a, b, limit, filter_size, filter_sigma, k1, k2)
    product = luminance * structure
    return ops.mean(product, axis=[-1]) if return_index_map else ops.mean(product, axis=[-3, -2, -1])


@api
def ssim_multiscale(
    img1,
    img2,
    max_val,
    power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size=11,
    filter_sigma=1.5,
    k1=0.01,
    k2=0.03,
):
    a, b, limit = _both(img1, img2, max_val)
    single = a.ndim == 3
    if single:
        a, b = ops.expand_dims(a, axis=[0]), ops.expand_dims(b, axis=[0])
    total = None
    for i, power in enumerate(power_factors):
        if i:
            odd = [a.shape[1] % 2, a.shape[2] % 2]
            if any(odd):
                a, b = [ops.pad_mode(x, low=[0, 0, 0, 0], high=[0, *odd, 0], mode="symmetric") for x in (a, b)]
            a, b = [ops.average_pool(x, pool_size=[2, 2], strides=[2, 2]) for x in (a, b)]
        luminance, structure = _ssim_parts(a, b, limit, filter_size, filter_sigma, k1, k2)
        value = luminance * structure if i == len(power_factors) - 1 else structure
        part = ops.power(ops.relu(ops.mean(value, axis=[1, 2])), float(power))
        total = part if total is None else total * part
    made = ops.mean(total, axis=[-1])
    return ops.squeeze(made, axis=[0]) if single else made
