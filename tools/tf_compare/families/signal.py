"""tf.signal."""
import numpy as np

from cases import Raw
from inputs import COMPLEX, array

REAL = ["float32", "float64", "int32", "float16", "bfloat16"]


def fill(cases):
    for name in ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"):
        function = f"tf.signal.{name}"
        rng = cases.rng(function)
        for dtype in [*COMPLEX, "float32"]:
            for shape in [(4, 5, 6), (2, 3, 4, 7), (1, 1, 1), (0, 2, 4)]:
                cases.call(function, array(rng, shape, dtype))
        cases.call(function, array(rng, (), "complex64"))
    for name, rank in {"rfft": 1, "rfft2d": 2, "rfft3d": 3}.items():
        function = f"tf.signal.{name}"
        rng = cases.rng(function)
        for dtype in REAL:
            cases.call(function, array(rng, (2, 4, 5, 6), dtype))
            cases.call(function, array(rng, (4, 5, 7), dtype))
            cases.call(function, array(rng, (4, 5, 6), dtype), [4] * rank)
            cases.call(function, array(rng, (4, 5, 6), dtype), [8] * rank)
    for name, rank in {"irfft": 1, "irfft2d": 2, "irfft3d": 3}.items():
        function = f"tf.signal.{name}"
        rng = cases.rng(function)
        for dtype in COMPLEX:
            cases.call(function, array(rng, (2, 4, 5, 4), dtype))
            cases.call(function, array(rng, (4, 5, 4), dtype), [5] * rank)
            cases.call(function, array(rng, (4, 5, 4), dtype), [8] * rank)
    for name, dtypes in {"fftnd": COMPLEX, "ifftnd": COMPLEX, "rfftnd": REAL[:2], "irfftnd": COMPLEX}.items():
        function = f"tf.signal.{name}"
        rng = cases.rng(function)
        for dtype in dtypes:
            cases.call(function, array(rng, (3, 4, 5), dtype), fft_length=[3, 4], axes=[0, 1])
            cases.call(function, array(rng, (3, 4, 5), dtype))
    for name in ("dct", "idct"):
        function = f"tf.signal.{name}"
        rng = cases.rng(function)
        for dtype in REAL:
            for kind in (1, 2, 3, 4):
                for norm in (None, "ortho"):
                    cases.call(function, array(rng, (2, 8), dtype), type=kind, norm=norm)
            if name == "dct":
                cases.call(function, array(rng, (2, 8), dtype), n=5)
                cases.call(function, array(rng, (2, 8), dtype), n=11)
    for name in ("mdct", "inverse_mdct"):
        function = f"tf.signal.{name}"
        rng = cases.rng(function)
        for dtype in REAL[:3]:
            for norm in (None, "ortho"):
                if name == "mdct":
                    for end in (False, True):
                        cases.call(function, array(rng, (2, 25), dtype), 8, pad_end=end, norm=norm)
                else:
                    cases.call(function, array(rng, (2, 5, 4), dtype), norm=norm)
    rng = cases.rng("tf.signal.frame")
    for dtype in [*REAL, "int64", "complex64", "bool"]:
        for end in (False, True):
            cases.call("tf.signal.frame", array(rng, (2, 10), dtype), 4, 3, pad_end=end)
        cases.call("tf.signal.frame", array(rng, (10, 2), dtype), 3, 2, axis=0)
        cases.call("tf.signal.frame", array(rng, (3,), dtype), 4, 3)
        cases.call("tf.signal.overlap_and_add", array(rng, (2, 4, 5), dtype), 2)
        cases.call("tf.signal.overlap_and_add", array(rng, (3, 4), dtype), 7)
    rng = cases.rng("tf.signal.stft")
    for dtype in REAL:
        for end in (False, True):
            cases.call("tf.signal.stft", array(rng, (2, 40), dtype), 16, 5, pad_end=end)
            cases.call("tf.signal.stft", array(rng, (40,), dtype), 10, 5, fft_length=32, pad_end=end)
    rng = cases.rng("tf.signal.inverse_stft")
    for dtype in COMPLEX:
        cases.call("tf.signal.inverse_stft", array(rng, (2, 5, 9), dtype), 16, 8)
        cases.code("tf.signal.inverse_stft", "tf.signal.inverse_stft(x[0], 12, 6, 16, window_fn=tf.signal.inverse_stft_window_fn(6))", array(rng, (5, 9), dtype), grad=[0])
    cases.rng("tf.signal.inverse_stft_window_fn")
    for step in (4, 5, 8):
        cases.code("tf.signal.inverse_stft_window_fn", f"tf.signal.inverse_stft_window_fn({step})(16, tf.float32)")
    for name in ("hamming_window", "hann_window", "vorbis_window", "kaiser_window", "kaiser_bessel_derived_window"):
        function = f"tf.signal.{name}"
        cases.rng(function)
        for length in (0, 1, 2, 7, 16):
            for dtype in ("float32", "float64", "float16", "bfloat16", "int32"):
                cases.call(function, length, dtype=Raw(f"tf.{dtype}"))
        for length in (5, 8):
            cases.call(function, length, **({"beta": 5.0} if "kaiser" in name else {"periodic": False} if name[0] == "h" else {}))
    cases.rng("tf.signal.linear_to_mel_weight_matrix")
    for bins, spectrogram, rate in ((20, 129, 8000), (4, 33, 16000)):
        for dtype in ("float32", "float64"):
            cases.call("tf.signal.linear_to_mel_weight_matrix", bins, spectrogram, rate, 125.0, 3800.0, dtype=Raw(f"tf.{dtype}"))
    cases.call("tf.signal.linear_to_mel_weight_matrix", 20, 129, 8000, 500.0, 100.0)
    rng = cases.rng("tf.signal.mfccs_from_log_mel_spectrograms")
    cases.call("tf.signal.mfccs_from_log_mel_spectrograms", array(rng, (2, 3, 8)))
    _ = np
