"""Features of serialized tf.train.Example messages, read by the engine."""

import collections

import numpy as np

from tandem import _core
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._strings import as_strings, mapped, one


class FixedLenFeature(collections.namedtuple("FixedLenFeature", ["shape", "dtype", "default_value"])):
    """As many values in each message; one without them takes the default."""

    def __new__(cls, shape, dtype, default_value=None):
        return super().__new__(cls, shape, as_dtype(dtype), default_value)


class VarLenFeature(collections.namedtuple("VarLenFeature", ["dtype"])):
    """Any number of values: a SparseTensor."""

    def __new__(cls, dtype):
        return super().__new__(cls, as_dtype(dtype))


class FixedLenSequenceFeature(
    collections.namedtuple("FixedLenSequenceFeature", ["shape", "dtype", "allow_missing", "default_value"])
):
    """Any number of pieces of one shape; a batch is padded to the longest."""

    def __new__(cls, shape, dtype, allow_missing=False, default_value=None):
        return super().__new__(cls, shape, as_dtype(dtype), allow_missing, default_value)


class RaggedFeature(
    collections.namedtuple("RaggedFeature", ["dtype", "value_key", "partitions", "row_splits_dtype", "validate"])
):
    """Any number of values: a RaggedTensor."""

    def __new__(cls, dtype, value_key=None, partitions=(), row_splits_dtype="int32", validate=False):
        return super().__new__(cls, as_dtype(dtype), value_key, partitions, as_dtype(row_splits_dtype), validate)


class SparseFeature(collections.namedtuple("SparseFeature", ["index_key", "value_key", "dtype", "size", "already_sorted"])):
    def __new__(cls, index_key, value_key, dtype, size, already_sorted=False):
        return super().__new__(cls, index_key, value_key, as_dtype(dtype), size, already_sorted)


def _bad(text):
    return errors.InvalidArgumentError(None, None, text)


def _shape(feature):
    shape = feature.shape
    return [int(d) for d in (shape if isinstance(shape, (list, tuple)) else [shape])]


def _with_defaults(values, counts, size, key, feature):
    """Values where each message has `size` of them, the default where it has none."""
    wrong = [int(c) for c in counts if c not in (0, size)]
    if wrong:
        raise _bad(
            f"Key: {key}.  Number of {feature.dtype.name} values != expected.  Values size: {wrong[0]} but output shape: {_shape(feature)}"
        )
    missing = counts == 0 if size else np.zeros(len(counts), bool)
    if not missing.any():
        return values
    if feature.default_value is None:
        raise _bad(f"Feature: {key} (data type: {feature.dtype.name}) is required but could not be found.")
    default = _flat(convert(feature.default_value, feature.dtype))
    default = default if default.shape[0] == size else _core.ops.broadcast_to(default, shape=[size])
    # Rows of what is there and, behind them, the default's.
    at = np.where(missing, values.shape[0] // size, np.cumsum(~missing) - 1)
    table = _core.ops.reshape(_core.ops.concatenate([values, default]), shape=[-1, size])
    return _flat(_core.ops.take(table, convert(at.astype(np.int64)), axis=0))


def _flat(t):
    return _core.ops.reshape(t, shape=[-1])


def _fixed(values, counts, key, feature, batch):
    shape = _shape(feature)
    size = int(np.prod(shape, dtype=int))
    return _core.ops.reshape(_with_defaults(values, counts, size, key, feature), shape=[*batch, *shape])


def _sequence(values, counts, key, feature, batch):
    if not feature.allow_missing:
        raise ValueError(f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True. (feature {key})")
    shape = _shape(feature)
    size = int(np.prod(shape, dtype=int))
    if (counts % size).any():
        raise _bad(f"Key: {key}.  Number of values is no multiple of {size}, the size of {shape}")
    lengths = counts // size
    most = int(lengths.max()) if len(lengths) else 0
    if not batch:
        return _core.ops.reshape(values, shape=[most, *shape])
    default = feature.default_value if feature.default_value is not None else "" if feature.dtype.name == "string" else 0
    pool = _core.ops.reshape(
        _core.ops.concatenate([values, _core.ops.broadcast_to(_flat(convert(default, feature.dtype)), shape=[size])]),
        shape=[-1, size],
    )
    at = np.full((len(lengths), most), int(lengths.sum()), np.int64)
    starts = np.cumsum(lengths) - lengths
    for row, (start, n) in enumerate(zip(starts, lengths)):
        at[row, :n] = np.arange(start, start + n)
    return _core.ops.reshape(_core.ops.take(pool, convert(at), axis=0), shape=[*batch, most, *shape])


def _sparse(values, counts, batch):
    try:
        from tandem._sparse import SparseTensor
    except ImportError:
        raise NotImplementedError(
            "parse_example: VarLenFeature gives a SparseTensor, which is not there yet; use FixedLenSequenceFeature"
        ) from None
    columns = np.concatenate([np.arange(n) for n in counts]) if len(counts) else np.zeros(0)
    rows = np.repeat(np.arange(len(counts)), counts)
    indices = np.stack([rows, columns], 1) if batch else columns[:, None]
    most = int(counts.max()) if len(counts) else 0
    return SparseTensor(convert(indices.astype(np.int64)), values, convert(np.array([*batch, most], np.int64)))


def _parsed(serialized, features, batch):
    for key, f in features.items():
        if isinstance(f, SparseFeature) or isinstance(f, RaggedFeature) and f.partitions:
            raise NotImplementedError(f"parse_example: {type(f).__name__} with indices or partitions (feature {key})")
        if not isinstance(f, (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature)):
            raise ValueError(f"Invalid feature {key}:{f}.")
    if not features:
        return {}
    keys = [getattr(f, "value_key", None) or key for key, f in features.items()]
    found = _core.strings.parse_examples(_flat(serialized), [(k, f.dtype) for k, f in zip(keys, features.values())])
    result = {}
    for (key, feature), (values, counts) in zip(features.items(), found):
        numbers = counts.numpy()
        if isinstance(feature, FixedLenFeature):
            result[key] = _fixed(values, numbers, key, feature, batch)
        elif isinstance(feature, FixedLenSequenceFeature):
            result[key] = _sequence(values, numbers, key, feature, batch)
        elif isinstance(feature, RaggedFeature):
            from tandem.strings import ragged

            result[key] = ragged(values, counts) if batch else values
        else:
            result[key] = _sparse(values, numbers, batch)
    return result


def parse_single_example(serialized, features, example_names=None, name=None):
    if not features:
        raise ValueError("Invalid argument: features cannot be None.")
    serialized = as_strings(serialized)
    if serialized.ndim:
        raise ValueError(f"Input serialized must be a scalar, not {serialized.shape}")
    return _parsed(serialized, features, [])


def parse_example(serialized, features, example_names=None, name=None):
    if not features:
        raise ValueError("Invalid argument: features cannot be None.")
    serialized = as_strings(serialized)
    if serialized.ndim == 0:
        return _parsed(serialized, features, [])
    return _parsed(serialized, features, list(serialized.shape))


def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None, name=None):
    """(context, sequences) of one tf.train.SequenceExample: dicts of tensors."""
    from tandem._messages import Example, SequenceExample

    try:
        message = SequenceExample.FromString(one(serialized))
    except Exception as e:  # protobuf's own, of which there are several
        raise _bad(f"Could not parse example input, value: {e}") from None
    context = _parsed(as_strings(Example(features=message.context).SerializeToString()), context_features or {}, [])
    lists = message.feature_lists.feature_list
    sequences = {}
    for key, feature in (sequence_features or {}).items():
        if key not in lists and not getattr(feature, "allow_missing", True):
            raise _bad(f"Name: <unknown>, Feature list '{key}' is required but could not be found.")
        steps = [
            Example(features={"feature": {key: step}}).SerializeToString()
            for step in (lists[key].feature if key in lists else ())
        ]
        sequences[key] = _steps(key, feature, _core.strings_from(steps, [len(steps)]))
    return context, sequences


def parse_sequence_example(serialized, context_features=None, sequence_features=None, example_names=None, name=None):
    """(context, sequences, lengths) of a batch of tf.train.SequenceExample. Steps of fixed size are padded to the longest sequence."""
    from tandem import _arrays, ragged, sparse

    words = as_strings(serialized)
    parsed = [parse_single_sequence_example(w, context_features, sequence_features) for w in _core.strings_to_list(words)]

    def joined(parts, feature):
        first = parts[0]
        if hasattr(first, "dense_shape"):
            return sparse.concat(0, [sparse.expand_dims(p, 0) for p in parts], expand_nonconcat_dims=True)
        if isinstance(feature, RaggedFeature):
            return ragged.stack(parts)
        if isinstance(feature, FixedLenSequenceFeature):
            longest = max(p.shape[0] for p in parts)
            fill = "" if feature.dtype.name == "string" else 0
            rest = lambda p: [longest - p.shape[0], *p.shape[1:]]  # noqa: E731
            return _arrays.stack([_arrays.concat([p, _arrays.fill(rest(p), convert(fill, feature.dtype))], 0) for p in parts])
        return _arrays.stack(parts)

    context = {k: joined([p[0][k] for p in parsed], f) for k, f in (context_features or {}).items()}
    sequences = {k: joined([p[1][k] for p in parsed], f) for k, f in (sequence_features or {}).items()}
    lengths = {
        k: convert(np.array([p[1][k].shape[0] for p in parsed], np.int64))
        for k, f in (sequence_features or {}).items()
        if isinstance(f, FixedLenSequenceFeature)
    }
    return context, sequences, lengths


def _steps(key, feature, steps):
    """One feature of all steps: stacked, sparse or ragged."""
    values, counts = _core.strings.parse_examples(steps, [(key, feature.dtype)])[0]
    if isinstance(feature, FixedLenSequenceFeature):
        return _fixed(values, counts.numpy(), key, FixedLenFeature(feature.shape, feature.dtype), [steps.shape[0]])
    if isinstance(feature, VarLenFeature):
        return _sparse(values, counts.numpy(), [steps.shape[0]])
    if isinstance(feature, RaggedFeature) and not feature.partitions:
        from tandem.strings import ragged

        return ragged(values, counts)
    raise NotImplementedError(f"parse_single_sequence_example: {type(feature).__name__} (feature {key})")


def decode_json_example(json_examples, name=None):
    """Examples written as JSON, as serialized messages."""
    from google.protobuf import json_format

    from tandem._messages import Example

    def decode(text):
        try:
            return json_format.Parse(text, Example()).SerializeToString()
        except json_format.ParseError as e:
            raise _bad(f"Error while parsing JSON: {e}") from None

    return mapped(decode, json_examples)
