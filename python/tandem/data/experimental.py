"""tf.data.experimental: names from before they became methods of Dataset, and what is still only here."""

from tandem import _core, _strings, errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._specs import TensorSpec
from tandem.data._dataset import AUTOTUNE, INFINITE, UNKNOWN, Dataset
from tandem.data._files import _names
from tandem.data._nest import DatasetSpec as DatasetStructure  # noqa: F401
from tandem.data._options import (  # noqa: F401
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from tandem.data.optional import Optional  # noqa: F401
from tandem.io._records import TFRecordWriter as _RecordWriter

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN


def cardinality(dataset):
    return dataset.cardinality()


def assert_cardinality(expected_cardinality):
    count = int(expected_cardinality)
    return lambda dataset: dataset._like(dataset._pipe.assert_cardinality(count), "_AssertCardinalityDataset")


def ignore_errors(log_warning=False):
    return lambda dataset: dataset.ignore_errors(log_warning)


def get_single_element(dataset):
    return dataset.get_single_element()


def to_variant(dataset):
    raise NotImplementedError("tf.data.experimental.to_variant: a Dataset is no tensor here")


def enumerate_dataset(start=0):
    return lambda dataset: dataset.enumerate(start)


def unbatch():
    return lambda dataset: dataset.unbatch()


def unique():
    return lambda dataset: dataset.unique()


def scan(initial_state, scan_func):
    return lambda dataset: dataset.scan(initial_state, scan_func)


def take_while(predicate):
    return lambda dataset: dataset.take_while(predicate)


def snapshot(path, compression="AUTO", reader_func=None, shard_func=None):
    return lambda dataset: dataset.snapshot(path)


def prefetch_to_device(device, buffer_size=None):
    """The last stage: the next elements (one, unless `buffer_size` says more) are copied while the program works on this one."""
    ahead = 1 if buffer_size is None or int(buffer_size) < 0 else int(buffer_size)
    return lambda dataset: dataset.prefetch(AUTOTUNE)._on_device(device, ahead, "_PrefetchToDeviceDataset")


def copy_to_device(target_device, source_device="/cpu:0"):
    """Elements are copied when they are taken; with `prefetch` behind it, ahead of that."""
    return lambda dataset: dataset._on_device(target_device, 0, "_CopyToDeviceDataset")


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None
):
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length, not sloppy)


def rejection_resample(class_func, target_dist, initial_dist=None, seed=None):
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def bucket_by_sequence_length(
    element_length_func,
    bucket_boundaries,
    bucket_batch_sizes,
    padded_shapes=None,
    padding_values=None,
    pad_to_bucket_boundary=False,
    no_padding=False,
    drop_remainder=False,
):
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def group_by_window(key_func, reduce_func, window_size=None, window_size_func=None):
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def dense_to_ragged_batch(batch_size, drop_remainder=False, row_splits_dtype="int64"):
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size, row_shape):
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False):
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False):
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def Counter(start=0, step=1, dtype="int64"):  # noqa: N802
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed=None):  # noqa: N802
    return Dataset.random(seed)


def save(dataset, path, compression=None, shard_func=None):
    dataset.save(path)


def load(path, element_spec=None, compression=None, reader_func=None):
    return Dataset.load(path, element_spec)


def from_list(elements, name=None):
    """The elements of a list, nests of one structure."""
    from tandem.data import _nest, _python_stages

    if not elements:
        raise ValueError("Empty lists are not supported; at least one element is needed to know what elements are.")
    nests = [_nest.flatten(e) for e in elements]
    rows = [flat for _, flat in nests]
    columns = list(zip(*rows))
    if all(t.shape == parts[0].shape for parts in columns for t in parts):
        return Dataset._of(
            _core.Dataset.from_slices([_core.ops.stack(list(parts)) for parts in columns]), nests[0][0], "_ListDataset"
        )
    specs = [
        TensorSpec(t.shape, t.dtype).most_specific_common_supertype([TensorSpec(o.shape, o.dtype) for o in parts])
        for t, *parts in columns
    ]
    return _python_stages.flat_source(lambda: rows, nests[0][0], specs, "_ListDataset", len(rows))


def get_structure(dataset_or_iterator):
    return dataset_or_iterator.element_spec


def DatasetInitializer(dataset):  # noqa: N802
    """The pairs of a Dataset, for a table."""
    from tandem import lookup

    pairs = list(dataset.as_numpy_iterator())
    key, value = dataset.element_spec
    return lookup.KeyValueTensorInitializer([k for k, _ in pairs], [v for _, v in pairs], key.dtype, value.dtype)


def index_table_from_dataset(
    dataset=None, num_oov_buckets=0, vocab_size=None, default_value=-1, hasher_spec=None, key_dtype="string", name=None
):
    """Each element with its number."""
    words = dataset if vocab_size is None else dataset.take(vocab_size)
    return table_from_dataset(
        words.enumerate().map(lambda i, word: (word, i)), num_oov_buckets, None, default_value, None, key_dtype
    )


def table_from_dataset(
    dataset, num_oov_buckets=0, vocab_size=None, default_value=None, hasher_spec=None, key_dtype="string", name=None
):
    from tandem import lookup

    pairs = [(k, v) for k, v in dataset.as_numpy_iterator()]
    first = lookup.KeyValueTensorInitializer([k for k, _ in pairs], [v for _, v in pairs], key_dtype)
    if num_oov_buckets:
        return lookup.StaticVocabularyTable(first, num_oov_buckets)
    return lookup.StaticHashTable(first, -1 if default_value is None else default_value)


class TFRecordWriter:
    """Writes a Dataset of strings into one TFRecord file."""

    def __init__(self, filename, compression_type=None):
        self._filename, self._compression = filename, compression_type

    def write(self, dataset):
        with _RecordWriter(self._filename, self._compression) as writer:
            for record in dataset:
                writer.write(_strings.one(record))


class CsvDataset(Dataset):
    """Lines of CSV files, parsed: one component a column."""

    def __init__(
        self,
        filenames,
        record_defaults,
        compression_type=None,
        buffer_size=None,
        header=False,
        field_delim=",",
        use_quote_delim=True,
        na_value="",
        select_cols=None,
        exclude_cols=None,
    ):
        from tandem import io
        from tandem.data._files import TextLineDataset

        if exclude_cols is not None:
            raise NotImplementedError("CsvDataset: exclude_cols; name what is wanted by select_cols")
        defaults = [
            d if hasattr(d, "shape") else (convert([], as_dtype(d)) if _is_type(d) else convert(d)) for d in record_defaults
        ]
        lines = [TextLineDataset(name, compression_type, buffer_size).skip(1 if header else 0) for name in _names(filenames)]
        text = lines[0]
        for more in lines[1:]:
            text = text.concatenate(more)

        def parsed(line):
            return tuple(io.decode_csv(line, defaults, field_delim, use_quote_delim, na_value=na_value, select_cols=select_cols))

        made = text.map(parsed)
        self._init(made._pipe, made._known_nest, "CsvDatasetV2", [made], made._function, made._flat_specs, made._why)


def _is_type(d):
    try:
        as_dtype(d)
        return not isinstance(d, (str, bytes))
    except TypeError:
        return False


def make_csv_dataset(
    file_pattern,
    batch_size,
    column_names=None,
    column_defaults=None,
    label_name=None,
    select_columns=None,
    field_delim=",",
    use_quote_delim=True,
    na_value="",
    header=True,
    num_epochs=None,
    shuffle=True,
    shuffle_buffer_size=10000,
    shuffle_seed=None,
    prefetch_buffer_size=None,
    num_parallel_reads=None,
    sloppy=False,
    num_rows_for_inference=100,
    compression_type=None,
    ignore_errors=False,
    encoding="utf-8",
):
    """Batches of a dict of columns, with the label beside it. All rows are read, and tell what types the columns have."""
    from tandem.data import _csv

    names, columns = _csv.read(
        _names(Dataset.list_files(file_pattern, shuffle=False)),
        column_names,
        field_delim,
        use_quote_delim,
        na_value,
        header,
        compression_type,
    )
    chosen = list(names) if select_columns is None else [names[c] if isinstance(c, int) else c for c in select_columns]
    defaults = dict(zip(chosen, column_defaults)) if column_defaults is not None else {}
    rows = {name: _csv.as_column(columns[name], defaults.get(name), na_value) for name in chosen}
    if label_name is not None and label_name not in rows:
        raise ValueError(f"Invalid `label_name`. `label_name` must be one of the columns {chosen}, not {label_name}.")
    dataset = Dataset.from_tensor_slices(rows)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    if label_name is not None:
        dataset = dataset.map(lambda features: ({k: v for k, v in features.items() if k != label_name}, features[label_name]))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


# --- what reads features, groups and databases ------------------------------------------------------------------------------------

SHARD_HINT = -1


def at(dataset, index):
    """The element at a place. Those before it are read, too."""
    i = int(index)
    for element in dataset.skip(i).take(1):
        return element
    raise errors.OutOfRangeError(None, None, f"at: index {i} is beyond the end of the dataset")


def get_next_as_optional(iterator):
    return iterator.get_next_as_optional()


def enable_debug_mode():
    """Stages call the Python functions that they were given, element by element."""
    from tandem.data import _functions

    _functions.set_debug_mode(True)


def pad_to_cardinality(cardinality, mask_key="valid"):
    """Elements are dicts: each says under `mask_key` whether it is real; zeros follow up to the number."""

    def pad(dataset):
        if not isinstance(dataset.element_spec, dict):
            raise ValueError(f"pad_to_cardinality: elements must be dicts, they are {dataset.element_spec!r}")
        if mask_key in dataset.element_spec:
            raise ValueError(f"pad_to_cardinality: elements already have the key {mask_key!r}")
        from tandem import constant, nest, zeros

        count = int(dataset.cardinality())
        if count < 0:
            raise ValueError("pad_to_cardinality: the number of elements must be known")
        if count > cardinality:
            raise ValueError(f"pad_to_cardinality: there are {count} elements, more than {cardinality}")
        empty = nest.map_structure(lambda s: zeros(s.shape, s.dtype), dataset.element_spec)
        real = dataset.map(lambda x: {**x, mask_key: constant(True)})
        rest = Dataset.from_tensors(empty).repeat(cardinality - count).map(lambda x: {**x, mask_key: constant(False)})
        return real.concatenate(rest)

    return pad


class Reducer:
    """How group_by_reducer makes one result of a group: init(key), reduce(state, element), finalize(state)."""

    def __init__(self, init_func, reduce_func, finalize_func):
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func, reducer):
    """One result for each key, in the order of the keys' first elements. All elements are read first."""

    def group(dataset):
        states = {}
        for element in dataset:
            parts = element if isinstance(element, tuple) else (element,)
            key = int(key_func(*parts))
            if key not in states:
                states[key] = reducer.init_func(convert(key, "int64"))
            states[key] = reducer.reduce_func(states[key], element)
        results = [reducer.finalize_func(state) for state in states.values()]
        if not results:
            raise ValueError("group_by_reducer: the dataset is empty, so that the type of results is not known")
        from tandem import nest, stack

        return Dataset.from_tensor_slices(nest.map_structure(lambda *parts: stack([convert(p) for p in parts]), *results))

    return group


def parse_example_dataset(features, num_parallel_calls=1, deterministic=None):
    """Batches of serialized examples as dicts of features."""
    from tandem import io

    return lambda dataset: dataset.map(lambda x: io.parse_example(x, features), num_parallel_calls)


def make_batched_features_dataset(file_pattern, batch_size, features, reader=None, label_key=None, reader_args=None, num_epochs=None, shuffle=True, shuffle_buffer_size=10000,
                                  shuffle_seed=None, prefetch_buffer_size=None, reader_num_threads=None, parser_num_threads=None, sloppy_ordering=False, drop_final_batch=False):  # fmt: skip
    """Batches of dicts out of files of serialized examples, with the label beside them when a key for it is given."""
    from tandem import io
    from tandem.data import TFRecordDataset

    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    read = reader or TFRecordDataset
    dataset = files.interleave(lambda name: read(name, *(reader_args or [])), cycle_length=reader_num_threads or 1)
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.map(lambda x: io.parse_example(x, features))
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys: {features.keys()!r}.")
        dataset = dataset.map(lambda x: ({k: v for k, v in x.items() if k != label_key}, x[label_key]))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


class SqlDataset(Dataset):
    """The rows of a query of an SQLite database."""

    def __init__(self, driver_name, data_source_name, query, output_types):
        import sqlite3

        if _strings.text(driver_name) != "sqlite":
            raise ValueError(f"SqlDataset: the driver is {_strings.text(driver_name)!r}, there is 'sqlite'")
        types = [as_dtype(t) for t in output_types]

        def rows():
            connection = sqlite3.connect(_strings.text(data_source_name))
            try:
                for row in connection.execute(_strings.text(query)):
                    if len(row) != len(types):
                        raise errors.InvalidArgumentError(None, None, f"The number of columns in query result is {len(row)}, expected {len(types)}")
                    yield tuple(str(v) if t.name == "string" else v for v, t in zip(row, types))
            finally:
                connection.close()

        made = Dataset.from_generator(rows, output_signature=tuple(TensorSpec([], t) for t in types))
        self._init(made._pipe, made._known_nest, "_SqlDatasetV2", [made], made._function, made._flat_specs, made._why)
