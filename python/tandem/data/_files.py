"""Datasets in files: TFRecord, text, records of a fixed length; whole Datasets saved and loaded."""

import json
import os

from tandem import _core, _strings
from tandem import errors
from tandem._convert import convert
from tandem._specs import TensorSpec
from tandem.data import _nest
from tandem.data._dataset import AUTOTUNE, UNKNOWN, Dataset, _calls
from tandem.data._nest import ONE

_BUFFER_BYTES = 1 << 18


def _names(filenames):
    """A name, a list or tensor of them, or a Dataset of names, as a list of str."""
    if isinstance(filenames, Dataset):
        return [n.decode() for flat in iter(filenames._pipe.iterate().next, None) for n in _core.strings_to_list(flat[0])]
    if hasattr(filenames, "__fspath__"):
        return [os.fspath(filenames)]
    if isinstance(filenames, (list, tuple)):
        filenames = [os.fspath(f) if hasattr(f, "__fspath__") else f for f in filenames]
        if not filenames:
            return []
    return [n.decode() for n in _core.strings_to_list(convert(filenames))]


class _FileDataset(Dataset):
    """Files one after the other, or several at a time."""

    def _read(self, open_files, filenames, num_parallel_reads, kind):
        names = _names(filenames)
        if not names:
            empty = _core.Dataset.generator(lambda: lambda: None, [(_strings_type(), ())], 0)
            self._init(empty, ONE, kind)
        elif num_parallel_reads is None or len(names) == 1:
            self._init(open_files(names), ONE, kind)
        else:
            each = Dataset._of(_core.Dataset.from_slices([convert(names)]), ONE, "_TensorSliceDataset")
            one = lambda name: Dataset._of(open_files([_strings.text(name)]), ONE, kind)  # noqa: E731
            reads = _calls(num_parallel_reads)
            read = each.interleave(one, cycle_length=AUTOTUNE if reads < 1 else reads, block_length=1, num_parallel_calls=reads)
            self._init(read._pipe, ONE, kind, [each, read], None, lambda: [TensorSpec((), "string")])


def _strings_type():
    return TensorSpec((), "string").dtype


def _compression(name):
    return "" if name is None else _strings.text(name)


class TFRecordDataset(_FileDataset):
    """The records of TFRecord files, as strings; their checksums are compared."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        kind, size = _compression(compression_type), buffer_size or _BUFFER_BYTES
        self._read(lambda names: _core.Dataset.tfrecords(names, kind, size), filenames, num_parallel_reads, "TFRecordDatasetV2")


class TextLineDataset(_FileDataset):
    """The lines of text files, without their ends."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        kind, size = _compression(compression_type), buffer_size or _BUFFER_BYTES
        self._read(lambda names: _core.Dataset.text_lines(names, kind, size), filenames, num_parallel_reads, "TextLineDatasetV2")


class FixedLengthRecordDataset(_FileDataset):
    """Records of so many bytes, behind a header and in front of a footer."""

    def __init__(
        self,
        filenames,
        record_bytes,
        header_bytes=None,
        footer_bytes=None,
        buffer_size=None,
        compression_type=None,
        num_parallel_reads=None,
        name=None,
    ):
        header, footer, kind = int(header_bytes or 0), int(footer_bytes or 0), _compression(compression_type)
        read = lambda names: _core.Dataset.fixed_length_records(names, int(record_bytes), header, footer, kind)  # noqa: E731
        self._read(read, filenames, num_parallel_reads, "FixedLengthRecordDatasetV2")


# --- whole Datasets -------------------------------------------------------------------------------------------------------------
# A folder with the elements, as a cache file, and their types. Named tuples come back as tuples.

_ELEMENTS, _TYPES = "elements", "element_spec.json"


def _described(spec):
    if isinstance(spec, dict):
        return {"dict": [[k, _described(spec[k])] for k in spec]}
    if isinstance(spec, tuple):
        return {"tuple": [_described(s) for s in spec]}
    if isinstance(spec, TensorSpec):
        return {"dtype": spec.dtype.name, "shape": None if spec.shape.rank is None else list(spec.shape)}
    raise NotImplementedError(f"Dataset.save: elements with {type(spec).__name__} cannot be saved")


def _made(description):
    if "dict" in description:
        return {k: _made(d) for k, d in description["dict"]}
    if "tuple" in description:
        return tuple(_made(d) for d in description["tuple"])
    return TensorSpec(description["shape"], description["dtype"])


def save(dataset, path):
    folder = _strings.text(path)
    os.makedirs(folder, exist_ok=True)
    elements = os.path.join(folder, _ELEMENTS)
    if os.path.exists(elements):
        os.remove(elements)
    written = dataset.cache(elements)
    walk = written._pipe.iterate()
    count = 0
    while walk.next() is not None:
        count += 1
    with open(os.path.join(folder, _TYPES), "w") as file:
        json.dump({"element_spec": _described(dataset.element_spec), "count": count}, file)


def load(path, element_spec):
    folder = _strings.text(path)
    types = os.path.join(folder, _TYPES)
    if not os.path.exists(types):
        raise errors.NotFoundError(None, None, f"{folder} does not exist, or holds no Dataset that was saved")
    with open(types) as file:
        found = json.load(file)
    spec = _made(found["element_spec"]) if element_spec is None else element_spec
    nest, flat = _nest.nest_of_spec(spec)
    ranks_known = all(s.shape.rank is not None for s in flat)
    # What is never asked, since the file is there: the source of a cache.
    source = _core.Dataset.generator(
        lambda: lambda: None, [(s.dtype, tuple(s.shape)) for s in flat] if ranks_known else None, UNKNOWN
    )
    pipe = source.cache(os.path.join(folder, _ELEMENTS)).assert_cardinality(found["count"])
    return Dataset._of(pipe, nest, "_LoadDataset", (), None, lambda: flat)
