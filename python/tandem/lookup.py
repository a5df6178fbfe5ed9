"""tf.lookup: tables from keys to values, on the host. Those from numbers to numbers also work inside of compiled functions."""

import numpy as np

from tandem import _core, _dtypes, _strings
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype


class TextFileIndex:
    WHOLE_LINE, LINE_NUMBER = -2, -1


class TableInitializerBase:
    def __init__(self, key_dtype, value_dtype):
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    key_dtype = property(lambda self: self._key_dtype)
    value_dtype = property(lambda self: self._value_dtype)


class KeyValueTensorInitializer(TableInitializerBase):
    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self._keys, self._values = convert(keys, key_dtype), convert(values, value_dtype)
        if key_dtype is None and self._keys.dtype.name == "int32" and not hasattr(keys, "dtype"):
            self._keys = _core.ops.cast(self._keys, dtype="int64")
        super().__init__(self._keys.dtype, self._values.dtype)

    def pairs(self):
        return self._keys, self._values


class TextFileInitializer(TableInitializerBase):
    """A pair for each line: the line itself, its number, or one of its fields."""

    def __init__(
        self,
        filename,
        key_dtype,
        key_index,
        value_dtype,
        value_index,
        vocab_size=None,
        delimiter="\t",
        name=None,
        value_index_offset=0,
    ):
        self._file, self._indices, self._size = _strings.text(filename), (key_index, value_index), vocab_size
        self._delimiter, self._offset = _strings.one(delimiter), value_index_offset
        if key_index == TextFileIndex.LINE_NUMBER and as_dtype(key_dtype).name != "int64":
            raise ValueError(f"`key_dtype` must be int64 if `key_index` is {TextFileIndex.LINE_NUMBER}, received: {key_dtype}")
        super().__init__(key_dtype, value_dtype)

    def pairs(self):
        try:
            with open(self._file, "rb") as file:
                lines = file.read().splitlines()
        except OSError as e:
            raise errors.NotFoundError(None, None, f"{self._file}; {e.strerror}") from None
        if self._size is not None:
            if len(lines) < self._size:
                raise errors.InvalidArgumentError(
                    None, None, f"Invalid vocab_size in {self._file}: expected {self._size} but got {len(lines)}"
                )
            lines = lines[: self._size]
        return tuple(
            self._column(lines, index, dtype) for index, dtype in zip(self._indices, (self._key_dtype, self._value_dtype))
        )

    def _column(self, lines, index, dtype):
        if index == TextFileIndex.LINE_NUMBER:
            return convert(np.arange(len(lines)) + self._offset, dtype)
        fields = lines if index == TextFileIndex.WHOLE_LINE else [line.split(self._delimiter)[index] for line in lines]
        words = _core.strings_from(fields, [len(fields)])
        return words if dtype is _dtypes.string else _core.strings.to_number(words, dtype)


class TextFileIdTableInitializer(TextFileInitializer):
    def __init__(
        self,
        filename,
        key_column_index=TextFileIndex.WHOLE_LINE,
        value_column_index=TextFileIndex.LINE_NUMBER,
        vocab_size=None,
        delimiter="\t",
        name=None,
        key_dtype="string",
    ):
        super().__init__(filename, key_dtype, key_column_index, "int64", value_column_index, vocab_size, delimiter)


def _python_keys(t):
    if t.dtype is _dtypes.string:
        return _core.strings_to_list(t)
    return np.asarray(t.numpy()).reshape(-1).tolist()


class _Pairs:
    """Keys to values, whatever they are: the engine's own table for strings to integers, sorted keys for numbers to numbers."""

    def __init__(self, key_dtype, value_dtype):
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.map = {}
        self.changed()

    def changed(self):
        self._table = self._sorted = None

    def insert(self, keys, values, unique=False):
        rows = (
            _python_keys(values)
            if values.ndim <= keys.ndim
            else list(values.numpy().reshape(keys.shape.num_elements(), *values.shape[keys.ndim :]))
        )
        for k, v in zip(_python_keys(keys), rows):
            if unique and k in self.map and np.any(self.map[k] != v):
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    f"HashTable has different value for same key. Key {k} has {self.map[k]} and trying to add value {v}",
                )
            self.map[k] = v
        self.changed()

    def find(self, keys, default):
        if self.key_dtype is _dtypes.string and self.value_dtype.is_integer and default.ndim == 0:
            return _core.ops.cast(self._string_table().find(keys, int(default.numpy())), dtype=self.value_dtype)
        if self.key_dtype is not _dtypes.string and self.value_dtype is not _dtypes.string and default.ndim == 0 and self.map:
            return self._find_numbers(keys, default)
        missing = default.numpy()
        found = [self.map.get(k, missing) for k in _python_keys(keys)]
        shape = (*keys.shape, *default.shape)
        if self.value_dtype is _dtypes.string:
            return _core.strings_from(found, shape)
        return convert(np.array(found, self.value_dtype.as_numpy_dtype).reshape(shape))

    def _string_table(self):
        if self._table is None:
            self._table = _core.strings.Table()
            if self.map:
                words = list(self.map)
                self._table.insert(_core.strings_from(words, [len(words)]), convert(np.array(list(self.map.values()), np.int64)))
        return self._table

    def _find_numbers(self, keys, default):
        """By the place among sorted keys: ops alone, so that it can be traced."""
        if self._sorted is None:
            order = sorted(self.map)
            self._sorted = (
                convert(np.array(order, self.key_dtype.as_numpy_dtype)),
                convert(np.array([self.map[k] for k in order], self.value_dtype.as_numpy_dtype)),
            )
        known, values = self._sorted
        ops = _core.ops
        at = ops.minimum(ops.searchsorted(known, keys), len(self.map) - 1)
        return ops.where(ops.equal(ops.take(known, at, axis=0), keys), ops.take(values, at, axis=0), default)

    def export(self):
        keys, values = list(self.map), list(self.map.values())
        as_tensor = lambda items, t: (
            _core.strings_from(items, [len(items)]) if t is _dtypes.string else convert(np.array(items, t.as_numpy_dtype))
        )  # noqa: E731
        return as_tensor(keys, self.key_dtype), as_tensor(values, self.value_dtype)


class _Table:
    """What tables share: looking up tensors and ragged tensors."""

    key_dtype = property(lambda self: self._pairs.key_dtype)
    value_dtype = property(lambda self: self._pairs.value_dtype)
    name = property(lambda self: self._name)

    def _keys(self, keys):
        keys = convert(keys, None if hasattr(keys, "dtype") else self.key_dtype)
        if keys.dtype is not self.key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self.key_dtype}, received: {keys.dtype}")
        return keys

    def _mapped(self, function, keys):
        if hasattr(keys, "with_flat_values"):
            return keys.with_flat_values(function(keys.flat_values))
        if hasattr(keys, "with_values"):
            return keys.with_values(function(keys.values))
        return function(self._keys(keys))

    def size(self, name=None):
        return convert(len(self._pairs.map), "int64")

    def __getitem__(self, keys):
        return self.lookup(keys)


class StaticHashTable(_Table):
    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        self._initializer, self._name = initializer, name or "hash_table"
        self._pairs = _Pairs(initializer.key_dtype, initializer.value_dtype)
        self._default = convert(default_value, initializer.value_dtype)
        if hasattr(initializer, "_keys") or type(initializer).pairs is not KeyValueTensorInitializer.pairs:
            self._pairs.insert(*initializer.pairs(), unique=True)
        else:  # one of the program's own, which may leave the table empty
            initializer.initialize(self)

    default_value = property(lambda self: self._default)

    def lookup(self, keys, name=None):
        return self._mapped(lambda k: self._pairs.find(k, self._default), keys)

    def export(self, name=None):
        return self._pairs.export()


class StaticVocabularyTable(_Table):
    """Keys that are not in the vocabulary have numbers behind it, by their hash."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        if num_oov_buckets <= 0:
            raise ValueError(
                "`num_oov_buckets` must be > 0; use StaticHashTable instead."
                if initializer is not None
                else "`num_oov_buckets` must be > 0"
            )
        key_dtype = as_dtype(lookup_key_dtype or (initializer.key_dtype if initializer else "string"))
        if initializer is not None and initializer.value_dtype.name != "int64":
            raise TypeError(f"Invalid `value_dtype`, expected {as_dtype('int64')} but got {initializer.value_dtype}.")
        self._name, self._buckets = name or "string_to_index", int(num_oov_buckets)
        self._pairs = _Pairs(initializer.key_dtype if initializer else key_dtype, as_dtype("int64"))
        self._lookup_dtype = key_dtype
        if initializer is not None:
            self._pairs.insert(*initializer.pairs(), unique=True)

    key_dtype = property(lambda self: self._lookup_dtype)

    def size(self, name=None):
        return convert(len(self._pairs.map) + self._buckets, "int64")

    def lookup(self, keys, name=None):
        return self._mapped(self._find, keys)

    def _find(self, keys):
        from tandem import strings

        ops = _core.ops
        inner = keys if keys.dtype is self._pairs.key_dtype else ops.cast(keys, dtype=self._pairs.key_dtype)
        found = self._pairs.find(inner, convert(-1, "int64"))
        words = keys if keys.dtype is _dtypes.string else strings.as_string(keys)
        other = ops.add(strings.to_hash_bucket_fast(words, self._buckets), convert(len(self._pairs.map), "int64"))
        return ops.where(ops.less(found, 0), other, found)


class _MutableTable(_Table):
    def __init__(self, key_dtype, value_dtype, default_value, name):
        self._pairs, self._name = _Pairs(as_dtype(key_dtype), as_dtype(value_dtype)), name
        self._default = convert(default_value, as_dtype(value_dtype))

    def lookup(self, keys, dynamic_default_values=None, name=None):
        default = self._default if dynamic_default_values is None else convert(dynamic_default_values, self.value_dtype)
        return self._mapped(lambda k: self._pairs.find(k, default), keys)

    def insert(self, keys, values, name=None):
        self._pairs.insert(self._keys(keys), convert(values, self.value_dtype))

    def insert_or_assign(self, keys, values, name=None):
        self.insert(keys, values)

    def remove(self, keys, name=None):
        for k in _python_keys(self._keys(keys)):
            self._pairs.map.pop(k, None)
        self._pairs.changed()

    def erase(self, keys, name=None):
        self.remove(keys)

    def export(self, name=None):
        return self._pairs.export()


class MutableHashTable(_MutableTable):
    def __init__(
        self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True, experimental_is_anonymous=False
    ):
        super().__init__(key_dtype, value_dtype, default_value, name)


class DenseHashTable(_MutableTable):
    def __init__(
        self,
        key_dtype,
        value_dtype,
        default_value,
        empty_key,
        deleted_key,
        initial_num_buckets=None,
        name="MutableDenseHashTable",
        checkpoint=True,
        experimental_is_anonymous=False,
    ):
        super().__init__(key_dtype, value_dtype, default_value, name)
        self._reserved = [_python_keys(convert(k, as_dtype(key_dtype)))[0] for k in (empty_key, deleted_key)]
        if self._reserved[0] == self._reserved[1]:
            raise errors.InvalidArgumentError(None, None, "Empty and deleted keys cannot be equal")

    def insert(self, keys, values, name=None):
        if any(k in self._reserved for k in _python_keys(self._keys(keys))):
            raise errors.InvalidArgumentError(None, None, "Using the empty_key or the deleted_key as a table key is not allowed")
        super().insert(keys, values)


class experimental:
    """tf.lookup.experimental"""

    MutableHashTable, DenseHashTable = MutableHashTable, DenseHashTable
