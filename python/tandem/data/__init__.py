"""tf.data: input pipelines, run by the engine's own threads."""

from tandem.data._dataset import AUTOTUNE, INFINITE, UNKNOWN, Dataset
from tandem.data._files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from tandem.data._iterator import Iterator, IteratorSpec, NumpyIterator
from tandem.data._nest import DatasetSpec
from tandem.data._options import Options, ThreadingOptions

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]


def __getattr__(name):
    if name == "experimental":
        import importlib

        return importlib.import_module("tandem.data.experimental")
    raise AttributeError(f"module 'tandem.data' has no attribute {name!r}")
