"""tf.signal: transforms of complex tensors, windows, frames and spectrograms."""
import functools
import math as _pymath

import numpy as np

from tandem import _dtypes as dtypes
from tandem._algorithms import signal as shared
from tandem._arrays import expand_dims, pad
from tandem._complex import ComplexTensor
from tandem._convert import convert
from tandem._face import api, any_tensor, axis_in, float_tensor, ints, number, ops, tensor


def _complex(x):
    x = any_tensor(x) if not isinstance(x, ComplexTensor) else x
    if not isinstance(x, ComplexTensor):
        raise TypeError(f"a complex tensor is wanted, got {x.dtype.name}\n  hint: tf.cast(x, tf.complex64)")
    return x


def _transform(row, axes):
    op = getattr(ops, row)

    def call(input, name=None):
        x = _complex(input)
        re, im = x.re, x.im
        if 0 in re.shape.as_list():  # nothing to transform
            return x
        for a in axes:
            re, im = op(re, im, axis=a)
        return ComplexTensor(re, im)

    return call


fft, fft2d, fft3d = _transform("fft", [-1]), _transform("fft", [-1, -2]), _transform("fft", [-1, -2, -3])
ifft, ifft2d, ifft3d = _transform("ifft", [-1]), _transform("ifft", [-1, -2]), _transform("ifft", [-1, -2, -3])


def _fitted(x, axis, length):
    """An axis cut or filled with zeros."""
    have = x.dims[axis]
    if have == length:
        return x
    axis = axis_in(axis, x.ndim)
    if isinstance(have, int) and have > length:
        return x[(slice(None),) * axis + (slice(0, length),)]
    return pad(x, [(0, length - have if i == axis else 0) for i in range(x.ndim)])


def _real_transform(rank):
    def call(input_tensor, fft_length=None, name=None):
        x = float_tensor(input_tensor, "rfft")
        lengths = [x.dims[a] for a in range(-rank, 0)] if fft_length is None else ints(fft_length)
        for a, n in zip(range(-rank, 0), lengths):
            x = _fitted(x, a, n)
        re, im = ops.rfft(x)
        for a in range(-2, -rank - 1, -1):
            re, im = ops.fft(re, im, axis=a)
        return ComplexTensor(re, im)

    return call


def _real_inverse(rank):
    def call(input_tensor, fft_length=None, name=None):
        x = _complex(input_tensor)
        lengths = [x.dims[a] for a in range(-rank, 0)] if fft_length is None else ints(fft_length)
        if fft_length is None:
            lengths[-1] = 2 * (x.dims[-1] - 1)
        re, im = x.re, x.im
        for a, n in zip(range(-rank, 0), lengths):
            wanted = n // 2 + 1 if a == -1 else n
            re, im = _fitted(re, a, wanted), _fitted(im, a, wanted)
        for a in range(-rank, -1):
            re, im = ops.ifft(re, im, axis=a)
        return ops.irfft(re, im, length=lengths[-1])

    return call


rfft, rfft2d, rfft3d = _real_transform(1), _real_transform(2), _real_transform(3)
irfft, irfft2d, irfft3d = _real_inverse(1), _real_inverse(2), _real_inverse(3)


def _many(inverse):
    def call(input_tensor, fft_length=None, axes=None, norm=None, name=None):
        x = _complex(input_tensor)
        axes_ = list(range(x.ndim)) if axes is None else [a % x.ndim for a in ints(axes)]
        lengths = [x.dims[a] for a in axes_] if fft_length is None else ints(fft_length)
        re, im = x.re, x.im
        for a, n in zip(axes_, lengths):
            re, im = _fitted(re, a, n), _fitted(im, a, n)
            re, im = (ops.ifft if inverse else ops.fft)(re, im, axis=a)
        scale = _scale(norm, int(np.prod(lengths)), inverse)
        return ComplexTensor(re * scale, im * scale) if scale != 1 else ComplexTensor(re, im)

    return call


def _scale(norm, count, inverse):
    if norm == "ortho":
        return float(np.sqrt(count)) if inverse else float(1 / np.sqrt(count))
    if norm == "forward":
        return float(count) if inverse else 1.0 / count
    return 1


fftnd, ifftnd = _many(False), _many(True)


def rfftnd(input_tensor, fft_length=None, axes=None, norm=None, name=None):
    x = float_tensor(input_tensor, "rfftnd")
    axes_ = list(range(x.ndim)) if axes is None else [a % x.ndim for a in ints(axes)]
    made = fftnd(ComplexTensor.make(x, "complex64" if x.dtype is dtypes.float32 else "complex128"), fft_length, axes_, norm)
    last = axes_[-1]
    keep = made.re.shape[last] // 2 + 1
    return made[(slice(None),) * last + (slice(0, keep),)]


def irfftnd(input_tensor, fft_length=None, axes=None, norm=None, name=None):
    x = _complex(input_tensor)
    axes_ = list(range(x.ndim)) if axes is None else [a % x.ndim for a in ints(axes)]
    lengths = [x.dims[a] for a in axes_] if fft_length is None else ints(fft_length)
    if fft_length is None:
        lengths[-1] = 2 * (x.dims[axes_[-1]] - 1)
    made = ifftnd(x, lengths[:-1], axes_[:-1]) if axes_[:-1] else x
    moved = [ops.moveaxis(p, source=[axes_[-1]], destination=[-1]) for p in (made.re, made.im)]
    back = ops.irfft(_fitted(moved[0], -1, lengths[-1] // 2 + 1), _fitted(moved[1], -1, lengths[-1] // 2 + 1), length=lengths[-1])
    made = ops.moveaxis(back, source=[-1], destination=[axes_[-1]])
    scale = _scale(norm, int(np.prod(lengths)), True)
    return made * scale if scale != 1 else made


@api
def fftshift(x, axes=None, name=None):
    x = tensor(x)
    axes_ = list(range(x.ndim)) if axes is None else ints(axes)
    return ops.roll(x, shift=[x.shape[a] // 2 for a in axes_], axis=[a % x.ndim for a in axes_])


@api
def ifftshift(x, axes=None, name=None):
    x = tensor(x)
    axes_ = list(range(x.ndim)) if axes is None else ints(axes)
    return ops.roll(x, shift=[-(x.shape[a] // 2) for a in axes_], axis=[a % x.ndim for a in axes_])


# --- windows --------------------------------------------------------------------------------------------------------------------


def _raised_cosine(kind, length, periodic, dtype):
    length = int(number(length))
    return convert(shared.window(kind, length, bool(periodic) and length % 2 == 0), dtype)  # one of odd length is symmetric


def hann_window(window_length, periodic=True, dtype=dtypes.float32, name=None):
    return _raised_cosine("hann", window_length, periodic, dtype)


def hamming_window(window_length, periodic=True, dtype=dtypes.float32, name=None):
    return _raised_cosine("hamming", window_length, periodic, dtype)


def kaiser_window(window_length, beta=12.0, dtype=dtypes.float32, name=None):
    return convert(np.kaiser(int(number(window_length)), float(number(beta))), dtype)


def kaiser_bessel_derived_window(window_length, beta=12.0, dtype=dtypes.float32, name=None):
    half = int(number(window_length)) // 2
    total = np.cumsum(np.kaiser(half + 1, float(number(beta))))
    first = np.sqrt(total[:-1] / total[-1])
    return convert(np.concatenate([first, first[::-1]]), dtype)


def vorbis_window(window_length, dtype=dtypes.float32, name=None):
    n = int(number(window_length))
    return convert(np.sin(np.pi / 2 * np.sin(np.pi / max(n, 1) * (np.arange(n) + 0.5)) ** 2), dtype)


# --- frames ---------------------------------------------------------------------------------------------------------------------


@api
def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None):
    x = tensor(signal)
    axis, length, step = axis_in(axis, x.ndim), int(number(frame_length)), int(number(frame_step))
    size = x.shape[axis]
    if pad_end:
        count = -(-size // step)
        more = max((count - 1) * step + length - size, 0)
        x = pad(x, [(0, more if i == axis else 0) for i in range(x.ndim)], constant_values=pad_value)
    elif size < length:
        return ops.full(convert(np.zeros((), x.dtype.as_numpy_dtype)), shape=[*x.dims[:axis], 0, length, *x.dims[axis + 1 :]])
    if axis == x.ndim - 1:
        return shared.frames(x, length, step)
    made = shared.frames(ops.moveaxis(x, source=[axis], destination=[-1]), length, step)
    return ops.moveaxis(made, source=[-2, -1], destination=[axis, axis + 1])


@api
def overlap_and_add(signal, frame_step, name=None):
    x, step = tensor(signal), int(number(frame_step))
    return shared.overlap_add(x, step)


def _power_of_two(n):
    return 1 << max(int(_pymath.ceil(_pymath.log2(n))), 0)


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False, name=None):
    x = float_tensor(signals, "stft")
    length = int(number(frame_length))
    size = _power_of_two(length) if fft_length is None else int(number(fft_length))
    frames = frame(x, length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=x.dtype)
    return rfft(frames, [size])


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None):
    x, length = _complex(stfts), int(number(frame_length))
    size = _power_of_two(length) if fft_length is None else int(number(fft_length))
    real = irfft(x, [size])
    real = _fitted(real, -1, length)
    if window_fn is not None:
        real = real * window_fn(length, dtype=real.dtype)
    return overlap_and_add(real, frame_step)


def inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None):
    def window(frame_length, dtype):
        forward = forward_window_fn(frame_length, dtype=dtype).numpy()
        step = int(number(frame_step))
        overlaps = -(-int(frame_length) // step)
        squares = np.pad(forward**2, (0, overlaps * step - int(frame_length))).reshape(overlaps, step).sum(0, keepdims=True)
        return convert(forward / np.tile(squares, [overlaps, 1]).reshape(-1)[: int(frame_length)], dtype)

    return window


def mdct(signals, frame_length, window_fn=vorbis_window, pad_end=False, norm=None, name=None):
    x, length = float_tensor(signals, "mdct"), int(number(frame_length))
    half = length // 2
    frames = frame(x, length, half, pad_end=pad_end)
    window = window_fn(length, dtype=x.dtype) if window_fn is not None else convert(np.full(length, 1 / np.sqrt(2)), x.dtype)
    frames = frames * window
    n, k = np.arange(length), np.arange(half)
    basis = np.cos(np.pi / half * (n[:, None] + 0.5 + half / 2) * (k[None] + 0.5)) * (np.sqrt(2 / half) if norm == "ortho" else 2)
    return ops.matmul(frames, convert(basis, x.dtype))


def inverse_mdct(mdcts, window_fn=vorbis_window, norm=None, name=None):
    x = float_tensor(mdcts, "inverse_mdct")
    half = x.shape[-1]
    n, k = np.arange(2 * half), np.arange(half)
    basis = np.cos(
        np.pi / half * (n[None] + 0.5 + half / 2) * (k[:, None] + 0.5)
    ) * (np.sqrt(2 / half) if norm == "ortho" else 1 / half)
    frames = ops.matmul(x, convert(basis, x.dtype))
    window = window_fn(2 * half, dtype=x.dtype) if window_fn is not None else convert(np.full(2 * half, 1 / np.sqrt(2)), x.dtype)
    return overlap_and_add(frames * window, half)


# --- cosine transforms: a product with the basis, since lengths are known -------------------------------------------------------


@functools.lru_cache(64)
def _dct_basis(kind, size, ortho):
    n, k = np.arange(size)[:, None], np.arange(size)[None]
    if kind == 1:
        basis = 2 * np.cos(np.pi * n * k / (size - 1))
        basis[0], basis[-1] = 1.0, np.cos(np.pi * np.arange(size))
    elif kind == 2:
        basis = 2 * np.cos(np.pi * (n + 0.5) * k / size)
        if ortho:
            basis = basis * np.sqrt(0.5 / size)
            basis[:, 0] *= np.sqrt(0.5)
    elif kind == 3:
        basis = 2 * np.cos(np.pi * n * (k + 0.5) / size)
        basis[0] = 1.0
        if ortho:
            basis = np.sqrt(2 / size) * np.cos(np.pi * n * (k + 0.5) / size)
            basis[0] = np.sqrt(1 / size)
    else:
        basis = 2 * np.cos(np.pi * (n + 0.5) * (k + 0.5) / size)
        if ortho:
            basis = basis * np.sqrt(0.5 / size)
    return basis


@api
def dct(input, type=2, n=None, axis=-1, norm=None, name=None):
    if axis != -1:
        raise NotImplementedError("axis must be -1. Got: %s" % axis)
    x = float_tensor(input, "dct")
    if n is not None:
        x = _fitted(x, -1, int(n))
    return ops.matmul(
        x if x.ndim > 1 else expand_dims(x, 0), convert(_dct_basis(type, x.shape[-1], norm == "ortho"), x.dtype)
    )[() if x.ndim > 1 else 0]


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm)


# --- speech ---------------------------------------------------------------------------------------------------------------------


def _mel(hertz):
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins=20,
    num_spectrogram_bins=129,
    sample_rate=8000,
    lower_edge_hertz=125.0,
    upper_edge_hertz=3800.0,
    dtype=dtypes.float32,
    name=None,
):
    bins, rate = int(number(num_spectrogram_bins)), float(number(sample_rate))
    if num_mel_bins <= 0 or lower_edge_hertz < 0 or lower_edge_hertz >= upper_edge_hertz or upper_edge_hertz > rate / 2:
        raise ValueError(f"num_mel_bins must be positive and 0 <= lower_edge_hertz < upper_edge_hertz <= {rate / 2}")
    lines = _mel(np.linspace(0, rate / 2, bins)[1:])[:, None]
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
    low, centre, high = edges[:-2][None], edges[1:-1][None], edges[2:][None]
    made = np.maximum(0, np.minimum((lines - low) / (centre - low), (high - lines) / (high - centre)))
    return convert(np.pad(made, [(1, 0), (0, 0)]), dtype)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    x = float_tensor(log_mel_spectrograms, "mfccs")
    return dct(x) * float(1 / np.sqrt(2.0 * x.shape[-1]))
