"""tf.audio: WAV files of 16-bit samples."""

import collections
import struct

import numpy as np

from tandem import _strings, errors
from tandem._face import any_tensor, convert, number

_Decoded = collections.namedtuple("DecodeWav", ["audio", "sample_rate"])
_SCALE = 1 << 15


def _refuse(what):
    raise errors.InvalidArgumentError(None, None, f"decode_wav: {what}")


def _chunks(data):
    """{name: bytes} of the parts of a RIFF file."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        _refuse("not a WAV file: it does not begin with RIFF and WAVE")
    found, at = {}, 12
    while at + 8 <= len(data):
        name, size = struct.unpack("<4sI", data[at : at + 8])
        if at + 8 + size > len(data):
            _refuse(f"the file is cut off: chunk {name!r} has {size} bytes, {len(data) - at - 8} are there")
        found.setdefault(name, data[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found


def decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None):
    """(samples from -1 to 1 as float32 [samples, channels], sample rate). Channels and samples that are asked for are cut off or filled up."""
    chunks = _chunks(_strings.one(contents))
    if b"fmt " not in chunks or b"data" not in chunks:
        _refuse("the file has no format or no data")
    if len(chunks[b"fmt "]) < 16:
        _refuse(f"the format has {len(chunks[b'fmt '])} bytes, it must have at least 16")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunks[b"fmt "][:16])
    if kind not in (1, 0xFFFE) or bits != 16:
        _refuse(f"only 16-bit PCM is read, the file has format {kind} with {bits} bits")
    if channels == 0:
        _refuse("the file has no channels")
    values = np.frombuffer(chunks[b"data"][: len(chunks[b"data"]) // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels)
    audio = values.astype(np.float32) / _SCALE
    wanted_channels, wanted_samples = int(number(desired_channels)), int(number(desired_samples))
    if wanted_channels > 0:
        more = np.repeat(audio[:, -1:], max(wanted_channels - channels, 0), axis=1)  # the last one again
        audio = np.concatenate([audio[:, :wanted_channels], more], axis=1)
    if wanted_samples >= 0:
        audio = audio[:wanted_samples]
        audio = np.pad(audio, [(0, wanted_samples - len(audio)), (0, 0)])
    return _Decoded(convert(np.ascontiguousarray(audio)), convert(np.int32(rate)))


def encode_wav(audio, sample_rate, name=None):
    """A WAV file of float32 samples [samples, channels]; what is beyond -1 and 1 is cut off."""
    audio = np.asarray(any_tensor(audio).numpy())
    if audio.ndim != 2:
        raise errors.InvalidArgumentError(
            None, None, f"encode_wav: audio must be 2-dimensional [samples, channels], got shape {audio.shape}"
        )
    channels, rate = audio.shape[1], int(number(sample_rate))
    scaled = audio.astype(np.float64) * _SCALE
    whole = np.where(scaled < 0, np.ceil(scaled - 0.5), np.floor(scaled + 0.5))  # halves away from zero
    data = np.clip(whole, -_SCALE, _SCALE - 1).astype("<i2").tobytes()
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(data),
        b"WAVE",
        b"fmt ",
        16,
        1,
        channels,
        rate,
        rate * channels * 2,
        channels * 2,
        16,
        b"data",
        len(data),
    )
    return convert(head + data)
