"""Images of another size: each axis is one product with a matrix of weights, computed on the host since sizes are known."""
import numpy as np

from tandem import _core

ops = _core.ops


def _triangle(x):
    return np.maximum(1 - np.abs(x), 0)


def _cubic(a):
    def kernel(x):
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return kernel


def _lanczos(radius):
    def kernel(x):
        x = np.abs(x)
        safe = np.where(x < 1e-3, 1, x)
        value = radius * np.sin(np.pi * safe) * np.sin(np.pi * safe / radius) / (np.pi**2 * safe * safe)
        return np.where(x < 1e-3, 1, np.where(x <= radius, value, 0))

    return kernel


def _gaussian(x):
    return np.where(np.abs(x) >= 1.5, 0, np.exp(-(x**2) / (2 * 0.5**2)))


def _mitchell(x):
    x = np.abs(x)
    near = (7 * x - 12) * x * x / 6 + 16 / 18
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


KERNELS = {
    "bilinear": (_triangle, 1.0), "bicubic": (_cubic(-0.5), 2.0), "lanczos3": (_lanczos(3), 3.0), "lanczos5": (_lanczos(5), 5.0), "gaussian": (_gaussian, 1.5),
    "mitchellcubic": (_mitchell, 2.0),
}  # fmt: skip


def weights(size, wanted, method, antialias):
    """[wanted, size]: the share of each old place in each new one."""
    scale = size / wanted
    if method == "nearest":
        at = np.minimum(np.floor((np.arange(wanted) + 0.5) * scale).astype(int), size - 1)
        return np.eye(size)[at]
    if method == "area":
        edges = np.arange(wanted + 1) * scale
        low, high = edges[:-1, None], edges[1:, None]
        place = np.arange(size)[None]
        return np.clip(np.minimum(high, place + 1) - np.maximum(low, place), 0, None) / scale
    kernel, _ = KERNELS[method]
    if not antialias and method == "bilinear":  # places outside of the image are those at its edge
        at = np.clip((np.arange(wanted) + 0.5) * scale - 0.5, 0, size - 1)
        made = _triangle(at[:, None] - np.arange(size)[None])
        return made
    stretch = max(scale, 1.0) if antialias else 1.0
    centre = (np.arange(wanted) + 0.5) * scale
    made = kernel((np.arange(size)[None] + 0.5 - centre[:, None]) / stretch)
    total = made.sum(axis=1, keepdims=True)
    return np.where(np.abs(total) > 1e-12, made / np.where(total == 0, 1, total), 0)


def resize(x, height, width, method, antialias):
    """[batch, h, w, c] of floats."""
    old_height, old_width = x.shape[1], x.shape[2]
    kind = x.dtype.as_numpy_dtype
    if method == "nearest":
        rows = np.minimum(np.floor((np.arange(height) + 0.5) * old_height / height).astype(np.int32), old_height - 1)
        columns = np.minimum(np.floor((np.arange(width) + 0.5) * old_width / width).astype(np.int32), old_width - 1)
        return ops.take(ops.take(x, _core.from_buffer(rows), axis=1), _core.from_buffer(columns), axis=2)
    if height != old_height:
        m = np.ascontiguousarray(weights(old_height, height, method, antialias).astype(kind))
        x = ops.einsum([_core.from_buffer(m), x], equation="ph,bhwc->bpwc")
    if width != old_width:
        m = np.ascontiguousarray(weights(old_width, width, method, antialias).astype(kind))
        x = ops.einsum([_core.from_buffer(m), x], equation="qw,bhwc->bhqc")
    return x
