"""Images between files and tensors."""

import io
import struct
import zlib

import numpy as np

from tandem import _core, _dtypes
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._strings import as_strings, one


def _as_type(image, dtype):
    """Bytes as another type: 16 bits spread over their range, floats over 0 to 1."""
    dtype = as_dtype(dtype)
    if dtype.name == "uint8":
        return image
    array = image.numpy()
    if dtype.name == "uint16":
        return convert(array.astype(np.uint16) * 257)
    return convert((array.astype(np.float32) / 255).astype(dtype.as_numpy_dtype))


def _bad(e):
    return errors.InvalidArgumentError(None, None, str(e))


def decode_jpeg(
    contents,
    channels=0,
    ratio=1,
    fancy_upscaling=True,
    try_recover_truncated=False,
    acceptable_fraction=1,
    dct_method="",
    name=None,
):
    if ratio != 1:
        raise NotImplementedError("decode_jpeg: a ratio other than 1; resize the image instead")
    return decode_image(contents, channels)


def decode_png(contents, channels=0, dtype=_dtypes._by_name["uint8"], name=None):
    return decode_image(contents, channels, dtype)


def decode_image(contents, channels=None, dtype=_dtypes._by_name["uint8"], name=None, expand_animations=True):
    raw, channels = one(contents), int(channels or 0)
    if raw[:3] == b"GIF":
        image = decode_gif(contents)
        return _as_type(image if expand_animations else image[0], dtype)
    if raw[:2] == b"BM":
        return _as_type(decode_bmp(contents, channels), dtype)
    try:
        return _as_type(_core.strings.decode_image(as_strings(raw), channels), dtype)
    except (errors.ResourceExhaustedError, errors.DataLossError) as e:  # what the file holds, not what the machine lacks
        raise _bad(e) from None


def decode_bmp(contents, channels=0, name=None):
    raw = one(contents)
    if raw[:2] != b"BM" or len(raw) < 54:
        raise _bad("decode_bmp: not a BMP file")
    start, width, height, bits, packing = (
        *struct.unpack_from("<I", raw, 10),
        *struct.unpack_from("<ii", raw, 18),
        *struct.unpack_from("<HI", raw, 28),
    )
    found = bits // 8
    if bits not in (8, 24, 32) or packing not in (0, 3) or channels not in (0, found):
        raise _bad(f"decode_bmp: {bits} bits a pixel with compression {packing} for {channels} channels is not supported")
    stride = (width * found + 3) // 4 * 4
    rows = abs(height)
    if len(raw) < start + stride * rows:
        raise _bad("decode_bmp: the file ends early")
    image = (
        np.frombuffer(raw, np.uint8, stride * rows, start).reshape(rows, stride)[:, : width * found].reshape(rows, width, found)
    )
    image = image[::-1] if height > 0 else image
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[found]
    return convert(np.ascontiguousarray(image[..., order]))


def _pillow(what):
    try:
        from PIL import Image
    except ImportError:
        raise NotImplementedError(f"{what} needs the package Pillow") from None
    return Image


def decode_gif(contents, name=None):
    picture = _pillow("decode_gif").open(io.BytesIO(one(contents)))
    frames = []
    for number in range(getattr(picture, "n_frames", 1)):
        picture.seek(number)
        frames.append(np.asarray(picture.convert("RGB")))
    return convert(np.stack(frames))


def decode_webp(contents, channels=0, dtype=_dtypes._by_name["uint8"], name=None):
    picture = _pillow("decode_webp").open(io.BytesIO(one(contents)))
    return _as_type(convert(np.asarray(picture.convert("RGBA" if channels == 4 else "RGB"))), dtype)


def is_jpeg(contents, name=None):
    return convert(one(contents)[:3] == b"\xff\xd8\xff")


def extract_jpeg_shape(contents, output_type=_dtypes._by_name["int32"], name=None):
    return convert(list(decode_jpeg(contents).shape), output_type)


def encode_png(image, compression=-1, name=None):
    array = convert(image).numpy()
    if array.ndim != 3 or array.shape[2] not in (1, 2, 3, 4) or array.dtype not in (np.uint8, np.uint16):
        raise _bad(f"encode_png: an image is uint8 or uint16 [height, width, 1 to 4], not {array.dtype} {list(array.shape)}")
    height, width, channels = array.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.ascontiguousarray(array.astype(array.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", width, height, 8 * array.itemsize, kind, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, compression)) + chunk(b"IEND", b"")
    return convert(file)


def encode_jpeg(
    image,
    format="",
    quality=95,
    progressive=False,
    optimize_size=False,
    chroma_downsampling=True,
    density_unit="in",
    x_density=300,
    y_density=300,
    xmp_metadata="",
    name=None,
):
    array = convert(image).numpy()
    out = io.BytesIO()
    _pillow("encode_jpeg").fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(
        out,
        "JPEG",
        quality=quality,
        progressive=progressive,
        optimize=optimize_size,
        subsampling="4:2:0" if chroma_downsampling else "4:4:4",
    )
    return convert(out.getvalue())
