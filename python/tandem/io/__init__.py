"""tf.io: files, records, images, and tensors as bytes."""

import os

import numpy as np

from tandem import _strings
from tandem._convert import convert
from tandem.io import gfile
from tandem.io._examples import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    decode_json_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from tandem.io._images import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from tandem.io._records import TFRecordOptions, TFRecordWriter, tf_record_iterator
from tandem.io._tensors import (
    decode_base64,
    decode_compressed,
    decode_csv,
    decode_raw,
    encode_base64,
    parse_tensor,
    serialize_tensor,
)
from tandem.io._sparse_strings import deserialize_many_sparse, serialize_many_sparse, serialize_sparse

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "decode_webp",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "tf_record_iterator",
    "write_file",
    "write_graph",
]


def read_file(filename, name=None):
    with gfile.GFile(_strings.text(filename), "rb") as file:
        return convert(file.read())


def write_file(filename, contents, name=None):
    path = _strings.text(filename)
    folder = os.path.dirname(path)
    if folder:
        gfile.makedirs(folder)
    with gfile.GFile(path, "wb") as file:
        file.write(_strings.one(contents))


def matching_files(pattern, name=None):
    patterns = np.asarray(_strings.as_strings(pattern).numpy(), object).reshape(-1)
    return convert(np.array(sorted(f.encode() for p in patterns for f in gfile.glob(p.decode())), object))


def match_filenames_once(pattern, name=None):
    return matching_files(pattern)


def decode_and_crop_jpeg(
    contents,
    crop_window,
    channels=0,
    ratio=1,
    fancy_upscaling=True,
    try_recover_truncated=False,
    acceptable_fraction=1,
    dct_method="",
    name=None,
):
    y, x, height, width = (int(n) for n in convert(crop_window).numpy())
    return decode_jpeg(contents, channels, ratio)[y : y + height, x : x + width]


def write_graph(graph_or_graph_def, logdir, name, as_text=True):
    raise NotImplementedError("tf.io.write_graph: there is no GraphDef here")


def __getattr__(name):
    if name in ("decode_proto", "encode_proto"):
        from tandem.io import _messages_of_type

        return getattr(_messages_of_type, name)
    raise AttributeError(f"module 'tandem.io' has no attribute {name!r}")
