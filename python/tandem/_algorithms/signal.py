"""Short-time Fourier transforms: windows, overlapping frames, and back."""
import math

import numpy as np

from tandem import _core

ops = _core.ops


def window(kind, length, periodic=True):
    """A window of cosines, 'hann' or 'hamming', as a NumPy array. Transforms want a periodic one, the other is symmetric."""
    if kind not in ("hann", "hamming"):
        raise ValueError(f"the window is '{kind}', there are 'hann' and 'hamming'")
    mean = {"hann": 0.5, "hamming": 0.54}[kind]
    if length < 2:
        return np.ones(length)
    angle = np.arange(length) * (2 * math.pi / (length if periodic else length - 1))
    return mean - (1 - mean) * np.cos(angle)


def inverse_window(window, step):
    """What frames are to be multiplied with on the way back, so that those that overlap, a step apart, sum to the signal."""
    length = window.shape[0]
    overlaps = -(-length // step)
    power = np.zeros(overlaps * step, window.dtype)
    power[:length] = np.square(window)
    total = np.tile(power.reshape(overlaps, step).sum(0), overlaps)[:length]
    with np.errstate(divide="ignore", invalid="ignore"):
        return window / total


def frames(x, length, step):
    """The last axis as frames [count, length] that begin a step apart; what is left at the end is not used."""
    count = (x.dims[-1] - length) // step + 1
    starts = ops.multiply(ops.iota(shape=[count, length], axis=0, dtype="int32"), step)
    return ops.take(x, ops.add(starts, ops.iota(shape=[count, length], axis=1, dtype="int32")), axis=x.ndim - 1)


def overlap_add(x, step):
    """The sum of frames [count, length] that begin a step apart: what frames takes apart."""
    *batch, count, length = x.dims
    overlaps = -(-length // step)
    zero = ops.cast(0, dtype=x.dtype)
    rank = len(batch)
    # Each frame as pieces of a step; the piece j of frame i goes to the place i + j.
    x = ops.pad(x, zero, low=[0] * (rank + 2), high=[0] * (rank + 1) + [overlaps * step - length])
    pieces = ops.reshape(x, shape=[*batch, count, overlaps, step])
    total = None
    for j, piece in enumerate(ops.unstack(pieces, axis=rank + 1)):
        low, high = [0] * rank + [j, 0], [0] * rank + [overlaps - 1 - j, 0]
        moved = ops.pad(piece, zero, low=low, high=high)
        total = moved if total is None else ops.add(total, moved)
    total = ops.reshape(total, shape=[*batch, (count + overlaps - 1) * step])
    return total[..., : length + step * (count - 1)]


def reflected(x, width):
    """The last axis with so many elements before and behind it, mirrored at its ends."""
    last = ops.extent(dims=[x.dims[-1] - 1], dtype="int32")
    places = ops.subtract(ops.iota(shape=[x.dims[-1] + 2 * width], axis=0, dtype="int32"), width)
    places = ops.subtract(last, ops.absolute(ops.subtract(last, ops.absolute(places))))
    return ops.take(x, places, axis=x.ndim - 1)


def stft(x, window, length, step, fft_length):
    """The transforms of frames under a window (None: without one), filled up with zeros: two parts [count, bins]."""
    parts = frames(x, length, step)
    if window is not None:
        parts = ops.multiply(parts, window)
    return ops.rfft(parts, length=fft_length)


def istft(real, imag, window, length, step, fft_length):
    """The sum of the frames that have these transforms, each multiplied with a window (see inverse_window)."""
    parts = ops.irfft(real, imag, length=fft_length)
    if length != fft_length:
        parts = parts[..., :length]
    if window is not None:
        parts = ops.multiply(parts, window)
    return overlap_add(parts, step)
