"""tf.feature_column: descriptions of features, which say how serialized examples are parsed. The layers that computed with them are not in Keras 3; its
preprocessing layers (Discretization, StringLookup, HashedCrossing, CategoryEncoding …) are what does."""

import collections

import numpy as np

from tandem._dtypes import as_dtype
from tandem.io import FixedLenFeature, VarLenFeature


class _Column:
    """What all descriptions share."""

    __slots__ = ()
    parents = property(lambda self: [])
    parse_example_spec = property(lambda self: {k: v for parent in self.parents for k, v in parent.parse_example_spec.items()})


def _column(name, fields):
    return collections.namedtuple(name, fields)


class NumericColumn(_Column, _column("NumericColumn", "key shape default_value dtype normalizer_fn")):
    name = property(lambda self: self.key)
    parse_example_spec = property(lambda self: {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)})


class BucketizedColumn(_Column, _column("BucketizedColumn", "source_column boundaries")):
    name = property(lambda self: f"{self.source_column.name}_bucketized")
    parents = property(lambda self: [self.source_column])
    num_buckets = property(lambda self: (len(self.boundaries) + 1) * int(np.prod(self.source_column.shape)))


class _Categorical(_Column):
    __slots__ = ()
    name = property(lambda self: self.key)
    parse_example_spec = property(lambda self: {self.key: VarLenFeature(getattr(self, "dtype", as_dtype("int64")))})


class HashedCategoricalColumn(_Categorical, _column("HashedCategoricalColumn", "key hash_bucket_size dtype")):
    num_buckets = property(lambda self: self.hash_bucket_size)


class VocabularyFileCategoricalColumn(
    _Categorical, _column("VocabularyFileCategoricalColumn", "key vocabulary_file vocabulary_size num_oov_buckets dtype default_value file_format")
):
    num_buckets = property(lambda self: self.vocabulary_size + self.num_oov_buckets)


class VocabularyListCategoricalColumn(_Categorical, _column("VocabularyListCategoricalColumn", "key vocabulary_list dtype default_value num_oov_buckets")):
    num_buckets = property(lambda self: len(self.vocabulary_list) + self.num_oov_buckets)


class IdentityCategoricalColumn(_Categorical, _column("IdentityCategoricalColumn", "key number_buckets default_value")):
    num_buckets = property(lambda self: self.number_buckets)


class WeightedCategoricalColumn(_Column, _column("WeightedCategoricalColumn", "categorical_column weight_feature_key dtype")):
    name = property(lambda self: f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}")
    parents = property(lambda self: [self.categorical_column])
    num_buckets = property(lambda self: self.categorical_column.num_buckets)

    @property
    def parse_example_spec(self):
        return {**self.categorical_column.parse_example_spec, self.weight_feature_key: VarLenFeature(self.dtype)}


class CrossedColumn(_Column, _column("CrossedColumn", "keys hash_bucket_size hash_key")):
    num_buckets = property(lambda self: self.hash_bucket_size)

    @property
    def _leaves(self):
        return [leaf for k in self.keys for leaf in (k._leaves if isinstance(k, CrossedColumn) else [k])]

    @property
    def name(self):
        return "_X_".join(sorted(k if isinstance(k, str) else k.name for k in self._leaves))

    @property
    def parse_example_spec(self):
        made = {}
        for k in self.keys:
            made.update({k: VarLenFeature("string")} if isinstance(k, str) else k.parse_example_spec)
        return made


class IndicatorColumn(_Column, _column("IndicatorColumn", "categorical_column")):
    name = property(lambda self: f"{self.categorical_column.name}_indicator")
    parents = property(lambda self: [self.categorical_column])
    variable_shape = property(lambda self: (1, self.categorical_column.num_buckets))


class EmbeddingColumn(
    _Column,
    _column(
        "EmbeddingColumn", "categorical_column dimension combiner initializer ckpt_to_load_from tensor_name_in_ckpt max_norm trainable use_safe_embedding_lookup"
    ),
):
    name = property(lambda self: f"{self.categorical_column.name}_embedding")
    parents = property(lambda self: [self.categorical_column])
    variable_shape = property(lambda self: (self.dimension,))


class SharedEmbeddingColumn(_Column, _column("SharedEmbeddingColumn", "categorical_column dimension combiner shared_embedding_collection_name max_norm")):
    name = property(lambda self: f"{self.categorical_column.name}_shared_embedding")
    parents = property(lambda self: [self.categorical_column])


class SequenceCategoricalColumn(_Column, _column("SequenceCategoricalColumn", "categorical_column")):
    name = property(lambda self: self.categorical_column.name)
    parents = property(lambda self: [self.categorical_column])
    num_buckets = property(lambda self: self.categorical_column.num_buckets)


class SequenceNumericColumn(_Column, _column("SequenceNumericColumn", "key shape default_value dtype normalizer_fn")):
    name = property(lambda self: self.key)
    parse_example_spec = property(lambda self: {self.key: VarLenFeature(self.dtype)})


# --- the functions --------------------------------------------------------------------------------------------------------------


def _checked_key(key):
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}, value {key!r}.")
    return key


def _numeric_dtype(dtype):
    dtype = as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}")
    return dtype


def _discrete_dtype(dtype):
    dtype = as_dtype(dtype)
    if dtype.name != "string" and not dtype.is_integer:
        raise ValueError(f"dtype must be string or integer. dtype: {dtype}")
    return dtype


def _shape(shape):
    shape = (shape,) if isinstance(shape, int) else tuple(int(d) for d in shape)
    if any(d <= 0 for d in shape):
        raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}")
    return shape


def _default(value, shape, dtype):
    if value is None:
        return None
    try:
        array = np.broadcast_to(np.asarray(value, dtype.as_numpy_dtype), shape)
    except ValueError:
        raise ValueError(f"The shape of default_value must be equal to given shape. default_value: {value}, shape: {shape}") from None
    nested = lambda x: tuple(map(nested, x)) if isinstance(x, list) else x  # noqa: E731
    return nested(array.tolist())


def numeric_column(key, shape=(1,), default_value=None, dtype="float32", normalizer_fn=None):
    shape, dtype = _shape(shape), _numeric_dtype(dtype)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return NumericColumn(_checked_key(key), shape, _default(default_value, shape, dtype), dtype, normalizer_fn)


def bucketized_column(source_column, boundaries):
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries or any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def categorical_column_with_hash_bucket(key, hash_bucket_size, dtype="string"):
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    return HashedCategoricalColumn(_checked_key(key), hash_bucket_size, _discrete_dtype(dtype))


def categorical_column_with_identity(key, num_buckets, default_value=None):
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    return IdentityCategoricalColumn(_checked_key(key), num_buckets, default_value)


def categorical_column_with_vocabulary_file(
    key, vocabulary_file, vocabulary_size=None, dtype="string", default_value=None, num_oov_buckets=0, file_format=None
):
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        with open(vocabulary_file, "rb") as file:
            vocabulary_size = len(file.read().splitlines())
    if num_oov_buckets and default_value is not None:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    return VocabularyFileCategoricalColumn(
        _checked_key(key), vocabulary_file, vocabulary_size, num_oov_buckets, _discrete_dtype(dtype), -1 if default_value is None else default_value, file_format
    )


def categorical_column_with_vocabulary_list(key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0):
    words = tuple(vocabulary_list or ())
    if not words:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(words)) != len(words):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    if num_oov_buckets and default_value != -1:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    dtype = _discrete_dtype(("string" if isinstance(words[0], (str, bytes)) else "int64") if dtype is None else dtype)
    return VocabularyListCategoricalColumn(_checked_key(key), words, dtype, default_value, num_oov_buckets)


def weighted_categorical_column(categorical_column, weight_feature_key, dtype="float32"):
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, _numeric_dtype(dtype))


def crossed_column(keys, hash_bucket_size, hash_key=None):
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for k in keys:
        if not isinstance(k, (str, _Categorical, BucketizedColumn, CrossedColumn)) or isinstance(k, HashedCategoricalColumn):
            raise ValueError(f"Unsupported key type. All keys must be either string, or categorical column except HashedCategoricalColumn. Given: {k}")
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column):
    return IndicatorColumn(categorical_column)


def embedding_column(categorical_column, dimension, combiner="mean", initializer=None, ckpt_to_load_from=None, tensor_name_in_ckpt=None, max_norm=None,
                     trainable=True, use_safe_embedding_lookup=True):  # fmt: skip
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    return EmbeddingColumn(
        categorical_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, use_safe_embedding_lookup
    )


def shared_embeddings(categorical_columns, dimension, combiner="mean", initializer=None, shared_embedding_collection_name=None, ckpt_to_load_from=None,
                      tensor_name_in_ckpt=None, max_norm=None, trainable=True, use_safe_embedding_lookup=True):  # fmt: skip
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    name = shared_embedding_collection_name or "_".join(sorted(c.name for c in categorical_columns)) + "_shared_embedding"
    return [SharedEmbeddingColumn(c, dimension, combiner, name, max_norm) for c in categorical_columns]


def sequence_categorical_column_with_hash_bucket(key, hash_bucket_size, dtype="string"):
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_identity(key, num_buckets, default_value=None):
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_vocabulary_file(
    key, vocabulary_file, vocabulary_size=None, num_oov_buckets=0, default_value=None, dtype="string"
):
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets)
    )


def sequence_categorical_column_with_vocabulary_list(key, vocabulary_list, dtype=None, default_value=-1, num_oov_buckets=0):
    return SequenceCategoricalColumn(categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets))


def sequence_numeric_column(key, shape=(1,), default_value=0.0, dtype="float32", normalizer_fn=None):
    return SequenceNumericColumn(_checked_key(key), _shape(shape), default_value, _numeric_dtype(dtype), normalizer_fn)


def make_parse_example_spec(feature_columns):
    """What tf.io.parse_example is told so that it gives what these columns need."""
    made = {}
    for column in feature_columns:
        if not isinstance(column, _Column):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        for key, feature in column.parse_example_spec.items():
            if key in made and made[key] != feature:
                raise ValueError(f"feature_columns contain different parse_spec for key {key}. Given {made[key]} and {feature}")
            made[key] = feature
    return made
