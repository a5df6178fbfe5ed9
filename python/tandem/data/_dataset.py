"""tf.data.Dataset over the engine's pipelines.

An element is a nest in Python and a flat list of tensors in the engine. Functions are traced once and compiled; one that needs
numbers (`.numpy()`, NumPy, py_function, strings) is called for each element instead, under Python's lock: `explain()` says which, and
why. Large NumPy arrays (from 1 MiB) are not copied by from_tensor_slices and from_tensors: do not write into them while the Dataset is
used.
"""

from tandem import _core, _strings
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._specs import TensorSpec
from tandem.data import _functions, _nest
from tandem.data._functions import ElementFunction
from tandem.data._iterator import DeviceIterator, Iterator, NumpyIterator, TracedIterator, not_while_tracing
from tandem.data._nest import ONE, Nest
from tandem.data._options import Options

AUTOTUNE = -1
INFINITE, UNKNOWN = -1, -2


def _int(x):
    return int(x.numpy()) if hasattr(x, "numpy") else int(x)


def _seed(seed):
    """An operation's seed, mixed with the program's own (tf.random.set_seed) if it set one; operations without one are counted."""
    import sys

    face = sys.modules.get("tandem.random")  # nobody set a seed without it
    program = face._Global.seed if face else None
    if program is None:
        return None if seed is None else _int(seed) % 2**64
    if seed is None:
        seed = face._Global.by_op["tf.data"] = face._Global.by_op.get("tf.data", 0) + 1
    return (_int(seed) + program * 0x9E3779B97F4A7C15) % 2**64


def _extents(shape):
    """A padded shape as numbers; -1 where the longest element says it."""
    if hasattr(shape, "numpy"):
        shape = shape.numpy()
    return [-1 if d is None else _int(d) for d in (shape if hasattr(shape, "__iter__") else [shape])]


def _calls(num_parallel_calls):
    return 1 if num_parallel_calls is None else _int(num_parallel_calls)


def _has_rows_of_its_own(leaf):
    """Whether the rows of a leaf are not the rows of its tensors."""
    return hasattr(getattr(leaf, "like", None), "nested_row_splits") or _is_sparse(leaf)


def _is_sparse(leaf):
    return hasattr(getattr(leaf, "like", None), "dense_shape")


class Dataset:
    """A description of elements that come one after the other. Iterating reads them; stages give a new Dataset."""

    @classmethod
    def _of(cls, pipe, nest, kind, inputs=(), function=None, loose=None, why=None):
        self = Dataset.__new__(Dataset)
        self._init(pipe, nest, kind, inputs, function, loose, why)
        return self

    def _init(self, pipe, nest, kind, inputs=(), function=None, loose=None, why=None):
        self._pipe, self._known_nest, self._kind = pipe, nest, kind
        self._inputs, self._function, self._loose, self._why = tuple(inputs), function, loose, why
        self._set_options, self._peeked = None, None
        self._goes_to = None  # (the engine's device, elements that are copied ahead)

    def _like(self, pipe, kind):
        """The same elements, or fewer, or in another order."""
        return Dataset._of(pipe, self._known_nest, kind, [self], self._function, lambda: self._flat_specs())

    # --- what it is -------------------------------------------------------------------------------------------------------------

    @property
    def _nest(self):
        if self._known_nest is None:
            if self._function.nest is None and self._first() is None:
                raise errors.InvalidArgumentError(
                    None, None, f"{self._kind}: without elements, nobody knows what its function gives"
                )
            self._known_nest = self._function.nest
        return self._known_nest

    def _first(self):
        """The tensors of the first element, read for its types."""
        if self._peeked is None:
            self._peeked = self._pipe.iterate().next()
        return self._peeked

    def _flat_specs(self):
        known = self._pipe.specs()
        if known is not None:
            return [TensorSpec(dims, dtype) for dtype, dims in known]
        if self._loose is not None:
            return self._loose()
        self._nest  # asks the function
        return _functions.learned_specs(self._function)

    @property
    def element_spec(self):
        return self._nest.spec(self._flat_specs())

    @property
    def _type_spec(self):
        return _nest.DatasetSpec(self.element_spec)

    def cardinality(self, name=None):
        return convert(self._pipe.cardinality(), "int64")

    def __len__(self):
        count = self._pipe.cardinality()
        if count == INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self):
        return True

    def __repr__(self):
        try:
            spec = repr(self.element_spec)
        except errors.OpError:  # a function that Python runs tells with its first element; there may be none, or no file yet
            spec = "unknown"
        return f"<{self._kind} element_spec={spec}>"

    def explain(self):
        """The stages, and why functions are called by Python for each element, if some are."""
        lines = [self._pipe.str()]
        todo = [self]
        while todo:
            dataset = todo.pop()
            if dataset._why:
                lines.append(f"{dataset._kind}: called by Python for each element, since {dataset._why}")
            todo.extend(dataset._inputs)
        return "\n".join(lines)

    def options(self):
        merged = Options()
        for dataset in reversed(self._inputs[:1]):
            merged = merged.merge(dataset.options())
        return merged if self._set_options is None else merged.merge(self._set_options)

    def with_options(self, options, name=None):
        deterministic = options.deterministic if options.deterministic is not None else options.experimental_deterministic
        auto = options.autotune
        share = None
        if auto.cpu_budget:
            import os

            share = min(1.0, auto.cpu_budget / max(1, os.cpu_count() or 1))
        made = self._like(self._pipe.options(deterministic, auto.enabled, share, auto.ram_budget), "_OptionsDataset")
        made._set_options = options
        return made

    # --- reading ----------------------------------------------------------------------------------------------------------------

    def __iter__(self):
        not_while_tracing("a Python loop over a dataset, which AutoGraph did not convert")
        return Iterator(self) if self._goes_to is None else DeviceIterator(self, *self._goes_to)

    def _on_device(self, name, ahead, kind):
        """The same elements, which somebody who iterates finds on a device. A loop of the engine's own copies batches where its step wants them."""
        from tandem import _devices

        spec = _devices.parsed(name)
        made = self._like(self._pipe, kind)
        made._goes_to = (_devices.engine_name_of(spec) or "cpu", ahead)
        return made

    def traced(self):
        """A walk that begins each time the function that is being traced comes here."""
        return TracedIterator(_core.begin_walk(self._pipe), self)

    def as_numpy_iterator(self):
        return NumpyIterator(self)

    def get_single_element(self, name=None):
        elements = iter(self.take(2))
        found = list(elements)
        if len(found) != 1:
            raise errors.InvalidArgumentError(
                None, None, "Dataset was empty." if not found else "Dataset had more than one element."
            )
        return found[0]

    def _stacked(self):
        """All elements, side by side: for a Dataset inside of another one."""
        count = self._pipe.cardinality()
        if count == INFINITE:
            raise NotImplementedError("an infinite Dataset inside of an element is not supported")
        if count == 0:
            raise NotImplementedError("an empty Dataset inside of an element is not supported")
        flat = self._pipe.batch(2**62 if count == UNKNOWN else count, False, 1, True).iterate().next()
        if flat is None:
            raise NotImplementedError("an empty Dataset inside of an element is not supported")
        return flat

    def reduce(self, initial_state, reduce_func, name=None):
        from tandem.data import _python_stages

        return _python_stages.reduced(self, initial_state, reduce_func)

    # --- sources ----------------------------------------------------------------------------------------------------------------

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        if any(hasattr(leaf, "_components") and not hasattr(leaf, "_slices_alike") for leaf in _nest.leaves(tensors)):
            from tandem.data import _python_stages

            return _python_stages.rows_of_composites(tensors)
        nest, flat = _nest.flatten(tensors, _nest.shared)
        if not flat:
            raise ValueError("Invalid `tensors`. `tensors` should not be empty.")
        for t in flat:
            if t.ndim == 0:
                raise ValueError(f"Unbatching a tensor is only supported for rank >= 1: a component has the shape {t.shape}")
        return Dataset._of(_core.Dataset.from_slices(flat), nest, "_TensorSliceDataset")

    @staticmethod
    def from_tensors(tensors, name=None):
        nest, flat = _nest.flatten(tensors, _nest.shared)
        return Dataset._of(_core.Dataset.from_tensors(flat), nest, "_TensorDataset")

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        from tandem.data import _python_stages

        return _python_stages.from_generator(generator, output_types, output_shapes, args, output_signature)

    @staticmethod
    def range(*args, output_type=None, name=None):
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        numbers = [_int(a) for a in args]
        start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        made = Dataset._of(_core.Dataset.range(start, stop, step), ONE, "_RangeDataset")
        dtype = as_dtype(output_type or "int64")
        return made if dtype.name == "int64" else made.map(lambda x: _core.ops.cast(x, dtype=dtype))

    @staticmethod
    def counter(start=0, step=1, dtype="int64", name=None):
        step = _int(step)
        numbers = Dataset.range(_int(start), 2**62 if step > 0 else -(2**62), step, output_type=dtype)
        return numbers._like(numbers._pipe.assert_cardinality(INFINITE), "CounterV2")

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        return Dataset._of(_core.Dataset.random(_seed(seed), bool(rerandomize_each_iteration)), ONE, "_RandomDataset")

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        patterns = (
            _core.strings_to_list(convert(file_pattern))
            if not hasattr(file_pattern, "__fspath__")
            else [_strings.one(file_pattern)]
        )
        shuffle = True if shuffle is None else bool(shuffle)
        try:
            pipe = _core.Dataset.list_files([p.decode() for p in patterns], shuffle, _seed(seed))
        except errors.OpError as e:
            if "no file fits" not in str(e):
                raise
            raise errors.InvalidArgumentError(None, None, f"No files matched pattern: {b', '.join(patterns).decode()}") from None
        return Dataset._of(pipe, ONE, "_ShuffleDataset" if shuffle else "_TensorSliceDataset")

    @staticmethod
    def zip(*args, datasets=None, name=None):
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        structure = datasets if datasets is not None else (args[0] if len(args) == 1 else tuple(args))
        parts = _nest.leaves(structure)
        for d in parts:
            if not isinstance(d, Dataset):
                raise TypeError(
                    f"Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects, "
                    f"not {type(d)}."
                )
        source = iter(parts)
        nest = Nest(_nest.map_leaves(lambda _: next(source)._nest.template, structure))
        loose = lambda: [s for d in parts for s in d._flat_specs()]  # noqa: E731
        return Dataset._of(_core.Dataset.zip([d._pipe for d in parts]), nest, "_ZipDataset", parts, None, loose)

    @staticmethod
    def sample_from_datasets(
        datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None, name=None
    ):
        datasets = list(datasets)
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        if isinstance(weights, Dataset):
            from tandem.data import _python_stages

            return _python_stages.sample_by_dataset(datasets, weights, seed, stop_on_empty_dataset)
        if weights is not None:
            weights = [float(w) for w in (weights.numpy() if hasattr(weights, "numpy") else weights)]
            if len(weights) != len(datasets):
                raise ValueError(f"`weights` must have {len(datasets)} values, one for each dataset, not {len(weights)}")
        pipe = _core.Dataset.sample_from([d._pipe for d in datasets], weights or [], _seed(seed), stop_on_empty_dataset)
        return Dataset._of(pipe, datasets[0]._nest, "_DirectedInterleaveDataset", datasets, None, datasets[0]._flat_specs)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        datasets = list(datasets)
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        spec = choice_dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype.name != "int64" or spec.shape.rank != 0:
            raise TypeError(
                f"Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors but are {spec}."
            )
        pipe = _core.Dataset.choose_from([d._pipe for d in datasets], choice_dataset._pipe, stop_on_empty_dataset)
        return Dataset._of(
            pipe, datasets[0]._nest, "_DirectedInterleaveDataset", [*datasets, choice_dataset], None, datasets[0]._flat_specs
        )

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
        from tandem.data import _files

        return _files.load(path, element_spec)

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        from tandem.data import _files

        _files.save(self, path)

    # --- functions over elements ------------------------------------------------------------------------------------------------

    def map(
        self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=False, name=None
    ):
        function = ElementFunction(map_func, [lambda: self._nest])
        calls, in_order = _calls(num_parallel_calls), deterministic is not False
        pipe, why = _functions.compile_or_call(
            self,
            "map",
            function,
            lambda: self._pipe.map(function, calls, in_order),
            lambda: self._pipe.map_callback(function, calls, in_order, None),
        )
        return Dataset._of(
            pipe, function.nest, "_ParallelMapDataset" if num_parallel_calls else "_MapDataset", [self], function, None, why
        )

    def filter(self, predicate, name=None):
        return self._chosen("filter", predicate, self._pipe.filter, "_FilterDataset")

    def take_while(self, predicate, name=None):
        return self._chosen("take_while", predicate, self._pipe.take_while, "_TakeWhileDataset")

    def _chosen(self, stage, predicate, choose, kind):
        function = ElementFunction(predicate, [lambda: self._nest])
        pipe, why = _functions.compile_or_call(
            self, stage, function, lambda: choose(function, True), lambda: choose(function, False)
        )
        made = self._like(pipe, kind)
        made._why = why
        return made

    def scan(self, initial_state, scan_func, name=None):
        from tandem.data import _python_stages

        return _python_stages.scanned(self, initial_state, scan_func)

    def flat_map(self, map_func, name=None):
        function = self._dataset_function(map_func, "flat_map")
        return self._opened(function, self._pipe.flat_map(function, None), "_FlatMapDataset")

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
        function = self._dataset_function(map_func, "interleave")
        cycle = AUTOTUNE if cycle_length is None else _int(cycle_length)
        block = 1 if block_length is None else _int(block_length)
        pipe = self._pipe.interleave(function, cycle, block, _calls(num_parallel_calls), deterministic is not False, None)
        return self._opened(function, pipe, "_ParallelInterleaveDataset" if num_parallel_calls else "_InterleaveDataset")

    def _dataset_function(self, map_func, stage):
        """Called for each element by the engine, which keeps the Dataset that it gives as long as it is open."""
        function = map_func

        def open_one(tensors):
            made = function(*self._nest.arguments(tensors))
            if not isinstance(made, Dataset):
                raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(made)!r}. ({stage})")
            if open_one.nest is None:
                open_one.nest, open_one.flat_specs = made._nest, made._flat_specs()
            return made

        open_one.nest, open_one.flat_specs = None, None
        return open_one

    def _opened(self, function, pipe, kind):
        made = Dataset._of(pipe, None, kind, [self], function)
        made._loose = lambda: (made._nest, function.flat_specs)[1]
        return made

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
        from tandem.data import _python_stages

        return _python_stages.group_by_window(self, key_func, reduce_func, window_size, window_size_func)

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        from tandem.data import _python_stages

        return _python_stages.rejection_resample(self, class_func, target_dist, initial_dist, seed)

    def bucket_by_sequence_length(
        self,
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes=None,
        padding_values=None,
        pad_to_bucket_boundary=False,
        no_padding=False,
        drop_remainder=False,
        name=None,
    ):
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError(
                f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)={len(bucket_batch_sizes)}` "
                f"and `len(bucket_boundaries)={len(bucket_boundaries)}`."
            )
        if no_padding:
            raise NotImplementedError("bucket_by_sequence_length: no_padding; use ragged_batch")
        function = ElementFunction(element_length_func, [lambda: self._nest])
        shapes, values = self._padding(padded_shapes, padding_values)
        sizes = [_int(n) for n in bucket_batch_sizes]
        bucket = lambda f, traced: self._pipe.bucket(  # noqa: E731
            f, traced, [_int(b) for b in bucket_boundaries], sizes, drop_remainder, shapes, values, pad_to_bucket_boundary
        )
        pipe, why = _functions.compile_or_call(
            self, "bucket_by_sequence_length", function, lambda: bucket(function, True), lambda: bucket(function, False)
        )
        return Dataset._of(pipe, self._known_nest, "_GroupByWindowDataset", [self], self._function, self._loose_batch, why)

    # --- many to one, one to many -----------------------------------------------------------------------------------------------

    def _loose_batch(self):
        return [TensorSpec([None, *s.shape] if s.shape.rank is not None else None, s.dtype) for s in self._flat_specs()]

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        nest = self._known_nest or getattr(self._function, "nest", None)  # no element is read for it: what a function that is called gives may be unknown
        leaves = nest.leaves if nest is not None else []
        if any(isinstance(leaf, _nest.RaggedRow) for leaf in leaves):
            return self.ragged_batch(batch_size, drop_remainder)
        if any(_has_rows_of_its_own(leaf) for leaf in leaves):
            from tandem.data import _python_stages

            return _python_stages.batch_with_composites(self, _int(batch_size), bool(drop_remainder))
        pipe = self._pipe.batch(_int(batch_size), bool(drop_remainder), _calls(num_parallel_calls), deterministic is not False)
        return Dataset._of(pipe, self._known_nest, "_BatchDataset", [self], self._function, self._loose_batch)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        shapes, values = self._padding(padded_shapes, padding_values)
        pipe = self._pipe.padded_batch(_int(batch_size), bool(drop_remainder), shapes, values)
        return Dataset._of(pipe, self._known_nest, "_PaddedBatchDataset", [self], self._function, self._loose_batch)

    def _padding(self, shapes, values):
        """Nests of shapes and of values as flat lists. A single value is for all components."""
        flat_shapes = flat_values = None
        if shapes is not None:
            parts = self._spread(
                shapes,
                lambda s: (
                    hasattr(s, "as_list") or not isinstance(s, (dict, tuple)) or all(d is None or isinstance(d, int) for d in s)
                ),
            )
            flat_shapes = [_extents(s) for s in parts]
        if values is not None:
            parts = self._spread(values, lambda v: not isinstance(v, (dict, tuple)))
            specs = self._flat_specs()
            flat_values = [
                convert("" if s.dtype.name == "string" else 0, s.dtype) if v is None else convert(v, s.dtype)
                for v, s in zip(parts, specs)
            ]
        return flat_shapes, flat_values

    def _spread(self, given, is_one):
        """One for each component of a nest like that of the elements."""
        if is_one(given):
            return [given] * self._nest.count

        def walk(template, part):
            if not _nest.is_structure(template):
                return [part] * template.count
            parts = _nest.children(part if not isinstance(part, list) else tuple(part))
            children = _nest.children(template)
            if len(parts) != len(children):
                raise ValueError(f"{given!r} does not have the structure of the elements, {self.element_spec!r}")
            return [x for t, p in zip(children, parts) for x in walk(t, p)]

        return walk(self._nest.template, given)

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype="int64", name=None):
        from tandem.data import _python_stages

        return _python_stages.ragged_batch(self, _int(batch_size), bool(drop_remainder), as_dtype(row_splits_dtype))

    def sparse_batch(self, batch_size, row_shape, name=None):
        from tandem.data import _python_stages

        return _python_stages.sparse_batch(self, _int(batch_size), row_shape)

    def unbatch(self, name=None):
        if self._known_nest is not None and any(_has_rows_of_its_own(leaf) for leaf in self._known_nest.leaves):
            from tandem.data import _python_stages

            return _python_stages.ragged_rows(self)
        def loose():
            return [TensorSpec(s.shape[1:] if s.shape.rank is not None else None, s.dtype) for s in self._flat_specs()]

        return Dataset._of(self._pipe.unbatch(), self._known_nest, "_UnbatchDataset", [self], self._function, loose)

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        sizes = [_int(n) for n in convert(batch_size).numpy().reshape(-1)]
        if len(sizes) > 1:
            from tandem.data import _python_stages

            return _python_stages.rebatch_in_turns(self, sizes, drop_remainder)
        pipe = self._pipe.rebatch(sizes[0], bool(drop_remainder))
        return Dataset._of(pipe, self._known_nest, "_RebatchDataset", [self], self._function, self._flat_specs)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        size = _int(size)
        pipe = self._pipe.window(size, size if shift is None else _int(shift), _int(stride), bool(drop_remainder))
        return Dataset._of(pipe, _nest.windows_of(self._nest), "_WindowDataset", [self], None, self._loose_batch)

    # --- which elements, in which order -----------------------------------------------------------------------------------------

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        again = reshuffle_each_iteration is not False
        return self._like(self._pipe.shuffle(_int(buffer_size), _seed(seed), again), "_ShuffleDataset")

    def repeat(self, count=None, name=None):
        return self._like(self._pipe.repeat(INFINITE if count is None else _int(count)), "_RepeatDataset")

    def take(self, count, name=None):
        return self._like(self._pipe.take(_int(count)), "_TakeDataset")

    def skip(self, count, name=None):
        count = _int(count)
        return self._like(self._pipe.take(0) if count < 0 else self._pipe.skip(count), "_SkipDataset")

    def shard(self, num_shards, index, name=None):
        return self._like(self._pipe.shard(_int(num_shards), _int(index)), "_ShardDataset")

    def unique(self, name=None):
        return self._like(self._pipe.unique(), "_UniqueDataset")

    def enumerate(self, start=0, name=None):
        nest = _nest.tuple_of(ONE, self._nest)
        loose = lambda: [TensorSpec((), "int64"), *self._flat_specs()]  # noqa: E731
        return Dataset._of(self._pipe.enumerate(_int(start)), nest, "_EnumerateDataset", [self], None, loose)

    def concatenate(self, dataset, name=None):
        types = [s.dtype for s in self._flat_specs()], [s.dtype for s in dataset._flat_specs()]
        if not self._nest.same_kind(dataset._nest) or types[0] != types[1]:
            raise TypeError(
                f"Two datasets to concatenate have different types {self.element_spec!r} and {dataset.element_spec!r}. "
                "Incompatible dataset elements."
            )
        return Dataset._of(
            self._pipe.concatenate(dataset._pipe), self._nest, "_ConcatenateDataset", [self, dataset], None, self._flat_specs
        )

    # --- keeping ----------------------------------------------------------------------------------------------------------------

    def cache(self, filename="", name=None):
        return self._like(self._pipe.cache(_strings.text(filename)), "_CacheDataset")

    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
        return self._like(self._pipe.snapshot(_strings.text(path)), "_SnapshotDataset")

    def prefetch(self, buffer_size, name=None):
        ahead = AUTOTUNE if buffer_size is None else _int(buffer_size)
        made = self._like(self._pipe.prefetch(ahead), "_PrefetchDataset")
        if self._goes_to is not None:
            made._goes_to = (self._goes_to[0], max(ahead, 1))
        return made

    def ignore_errors(self, log_warning=False, name=None):
        return self._like(self._pipe.ignore_errors(log_warning), "_IgnoreErrorsDataset")

    def apply(self, transformation_func):
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made)}.")
        return made
