"""keras.ops.math: segments, Fourier transforms, special functions. A complex tensor is a pair of real ones, as Keras has it."""
import numpy as np

from keras_tandem.src.ops._numpy.common import cast, convert_to_tensor, floating, function, ops, values
from tandem._algorithms import signal

# --- segments and ranks ---------------------------------------------------------------------------------------------------------


def _segment(name):
    row = getattr(ops, name)

    def body(data, segment_ids, num_segments=None, sorted=False):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        if num_segments is None:
            ids = values(segment_ids, f"{name} without num_segments")
            num_segments = int(ids.max()) + 1 if ids.size else 0
        return row(data, segment_ids, segments=int(num_segments))

    return function(name, body)


segment_sum = _segment("segment_sum")
segment_max = _segment("segment_max")
segment_min = _segment("segment_min")
segment_prod = _segment("segment_prod")


def top_k(x, k, sorted=True):
    return tuple(ops.top_k(convert_to_tensor(x), k=k, sorted=sorted))


def in_top_k(targets, predictions, k):
    targets = convert_to_tensor(targets)
    return ops.in_top_k(targets if targets.dtype.is_integer else cast(targets, "int32"), floating(predictions), k=k)


def logsumexp(x, axis=None, keepdims=False):
    return ops.logsumexp(floating(x), axis=axis, keepdims=keepdims)


def cdist(x, y):
    x, y = floating(x), floating(y)
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"Last dimension of inputs to `cdist` must match. Received: {x.shape[-1]} and {y.shape[-1]}")
    return ops.norm2(ops.subtract(ops.expand_dims(x, axis=[-2]), ops.expand_dims(y, axis=[-3])), axis=[-1])


# --- Fourier transforms ---------------------------------------------------------------------------------------------------------


def extract_sequences(x, sequence_length, sequence_stride):
    return signal.frames(convert_to_tensor(x), sequence_length, sequence_stride)


def _parts(x):
    """The real and the imaginary part."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}")
    real, imag = convert_to_tensor(x[0]), convert_to_tensor(x[1])
    if real.shape != imag.shape:
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary. "
            "Both the real and imaginary parts should have the same shape. "
            f"Received: x[0].shape = {real.shape}, x[1].shape = {imag.shape}"
        )
    if not real.dtype.is_floating or not imag.dtype.is_floating:
        raise ValueError(f"At least one tensor in input `x` is not of type float. Received: x={x}.")
    return real, imag


def fft(x):
    return ops.fft(*_parts(x))


def fft2(x):
    return ops.fft2(*_parts(x))


def ifft2(x):
    return ops.ifft2(*_parts(x))


def rfft(x, fft_length=None):
    return ops.rfft(floating(x), length=fft_length)


def irfft(x, fft_length=None):
    return ops.irfft(*_parts(x), length=fft_length)


def _window(window, sequence_length, fft_length):
    """The window as an array as long as the transform, with the frame in the middle; None: there is none."""
    if window is None:
        return None
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError(
                f'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. Received: window={window}'
            )
        window = signal.window(window, sequence_length)
    window = values(window, "stft: a window")
    if window.ndim != 1 or window.shape[0] != sequence_length:
        raise ValueError(f"The shape of `window` must be equal to [sequence_length]. Received: window shape={window.shape}")
    left = (fft_length - sequence_length) // 2
    return np.pad(window, (left, fft_length - sequence_length - left))


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = convert_to_tensor(x)
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype.name}")
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
    window = _window(window, sequence_length, fft_length)
    if center:
        x = signal.reflected(x, fft_length // 2)
    window = None if window is None else convert_to_tensor(window, x.dtype)
    return signal.stft(x, window, fft_length, sequence_stride, fft_length)


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    real, imag = _parts(x)
    if real.ndim < 2:
        raise ValueError(f"Input `x` must have at least 2 dimensions. Received shape: {real.shape}")
    window = _window(window, sequence_length, fft_length)
    if window is not None:
        window = convert_to_tensor(signal.inverse_window(window, sequence_stride), real.dtype)
    result = signal.istft(real, imag, window, fft_length, sequence_stride, fft_length)
    start = fft_length // 2 if center else 0
    if length is not None:
        return result[..., start : start + length]
    return result[..., start : result.dims[-1] - start]


# --- special functions ----------------------------------------------------------------------------------------------------------


def rsqrt(x):
    return ops.rsqrt(floating(x))


def erf(x):
    return ops.erf(floating(x))


def erfc(x):
    return ops.erfc(floating(x))


def erfinv(x):
    return ops.erfinv(floating(x))


def logdet(x):
    return ops.slogdet(floating(x))[1]


def _get_complex_tensor_from_tuple(x):
    """The name under which Keras's polar() asks every backend for a complex tensor of two real ones."""
    from tandem._complex import ComplexTensor

    real, imag = (convert_to_tensor(part) for part in x)
    if real.shape != imag.shape:
        raise ValueError(f"Input `x` should be a tuple of two tensors of one shape. Received: shapes {real.shape} and {imag.shape}")
    if not real.dtype.is_floating:
        raise ValueError(f"At least one tensor in input `x` is not of float type. Received: x={x}.")
    return ComplexTensor(real, imag)
