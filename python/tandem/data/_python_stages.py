"""Sources and stages whose work is a Python function for each element: generators, groups, resampling; and reduce."""

import numpy as np

from tandem import _core, _dtypes
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._shape import TensorShape
from tandem._specs import TensorSpec
from tandem._trace import begun_again
from tandem.data import _functions, _nest
from tandem.data._dataset import UNKNOWN, Dataset, _int, _seed
from tandem.data._functions import ElementFunction

# --- sources --------------------------------------------------------------------------------------------------------------------


def _core_specs(flat):
    """What the engine can check; None when the rank of one is not known."""
    if any(s.shape.rank is None for s in flat):
        return None
    return [(s.dtype, tuple(s.shape)) for s in flat]


def flat_source(start, nest, flat_specs, kind, cardinality=UNKNOWN, inputs=()):
    """A Dataset over start(), an iterable of flat lists, asked anew for each walk."""

    def begin():
        elements = iter(start())
        return lambda: next(elements, None)

    pipe = _core.Dataset.generator(begin, _core_specs(flat_specs), cardinality)
    return Dataset._of(pipe, nest, kind, inputs, None, lambda: list(flat_specs))


def _flat_like(spec, value):
    """The parts of a value where the spec has leaves; lists may stand for tuples."""
    if not _nest.is_structure(spec):
        return [value]
    if isinstance(value, list):
        value = tuple(value)
    mismatch = TypeError(
        f"`generator` yielded an element that did not match the expected structure. The expected structure was {spec!r}, but the yielded element was {value!r}."
    )
    if not _nest.is_structure(value):
        raise mismatch
    parts, values = _nest.children(spec), _nest.children(value)
    if len(parts) != len(values):
        raise mismatch
    return [x for p, v in zip(parts, values) for x in _flat_like(p, v)]


def _checked(value, spec):
    try:
        t = value if isinstance(value, _core.Tensor) else _as_dtype(value, spec.dtype)
    except (TypeError, ValueError) as e:
        raise TypeError(
            f"`generator` yielded an element that could not be converted to the expected type. The expected type was {spec.dtype.name}, "
            f"but the yielded element was {value!r}."
        ) from e
    if t.dtype is not spec.dtype:
        raise TypeError(f"`generator` yielded an element of {t.dtype!r} where {spec.dtype!r} was expected.")
    if not spec.shape.is_compatible_with(t.shape):
        raise TypeError(f"`generator` yielded an element of shape {t.shape} where an element of shape {spec.shape} was expected.")
    return t


def _as_dtype(value, dtype):
    if dtype is _dtypes.string:
        return convert(value, dtype)
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        raise TypeError(f"{value!r} is no number")
    return convert(array.astype(dtype.as_numpy_dtype), dtype)


def from_generator(generator, output_types, output_shapes, args, output_signature):
    if not callable(generator):
        raise TypeError("`generator` must be a Python callable.")
    if output_signature is None and output_types is None:
        raise TypeError("Please specify either `output_signature` or `output_types`.")
    if output_signature is not None and (output_types is not None or output_shapes is not None):
        raise TypeError(
            "The `output_types` and `output_shapes` arguments can not be used together with the `output_signature` argument."
        )
    if output_signature is None:
        output_signature = _signature(output_types, output_shapes)
    nest, flat_specs = _nest.nest_of_spec(output_signature)
    arguments = [] if args is None else [convert(a).numpy() for a in args]

    def start():
        for value in generator(*arguments):
            flat, at = [], 0
            for part, leaf in zip(_flat_like(output_signature, value), nest.leaves):
                parts = part._components() if isinstance(leaf, _nest.CompositeLeaf) else [part] * leaf.count
                flat += [_checked(p, s) for p, s in zip(parts, flat_specs[at : at + leaf.count])]
                at += leaf.count
            yield flat

    return flat_source(start, nest, flat_specs, "_FlatMapDataset")


def _signature(types, shapes):
    is_one_shape = lambda s: (
        s is None or hasattr(s, "as_list") or isinstance(s, list) or all(d is None or isinstance(d, int) for d in s)
    )  # noqa: E731

    def walk(t, s):
        if not _nest.is_structure(t):
            return TensorSpec(s, as_dtype(t))
        parts = [None] * len(_nest.children(t)) if s is None else _nest.children(s if not isinstance(s, list) else tuple(s))
        return _nest.rebuilt(t, [walk(a, b) for a, b in zip(_nest.children(t), parts)])

    if isinstance(types, list):
        types = tuple(types)
    if not _nest.is_structure(types) and not is_one_shape(shapes):
        raise TypeError(f"one type was given for the shapes {shapes!r}")
    return walk(types, TensorShape(shapes) if shapes is not None and not _nest.is_structure(types) else shapes)


# --- reduce, scan ---------------------------------------------------------------------------------------------------------------


def _pair(value):
    """(state, output) of a scan function, flattened one behind the other; the state must keep its structure."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError("The `scan_func` argument must be a pair: (new_state, output_value).")
    state, flat_state = _nest.flatten(value[0])
    output, flat_output = _nest.flatten(value[1])
    return _nest.tuple_of(state, output), [*flat_state, *flat_output]


def scanned(dataset, initial_state, scan_func):
    state_nest, initial = _nest.flatten(initial_state)
    function = ElementFunction(scan_func, [state_nest, lambda: dataset._nest], _pair)
    count = len(initial)

    def called():
        def start():
            state, elements = initial, dataset._pipe.iterate()
            while (flat := elements.next()) is not None:
                results = function([*state, *flat])
                state = results[:count]
                yield results[count:]

        def begin():
            elements = start()
            return lambda: next(elements, None)

        return _core.Dataset.generator(begin, None, dataset._pipe.cardinality())

    # The first call of Python is with the types of the state: results of other types are the user's mistake in both ways.
    pipe, why = _compile_scan(dataset, function, initial, called)
    made = Dataset._of(pipe, None, "_ScanDataset", [dataset], _Output(function, count), None, why)
    return made


def _compile_scan(dataset, function, initial, called):
    reason = _functions.why_not_traced(dataset)
    if reason is None and any(t.dtype is _dtypes.string for t in initial):
        reason = "its state has strings"
    if reason is None:
        try:
            return dataset._pipe.scan(initial, function), None
        except Exception as e:
            if not _functions._needs_values(e):
                raise
            reason, function.nest = str(e).splitlines()[0], None
    return called(), reason


class _Output:
    """The part of a scan function's results that is no state."""

    def __init__(self, function, count):
        self._function, self._count = function, count

    @property
    def nest(self):
        whole = self._function.nest
        return None if whole is None else _nest.Nest(whole.template[1])

    @property
    def flat_specs(self):
        return self._function.flat_specs[self._count :]


def reduced(dataset, initial_state, reduce_func):
    nest, state = _nest.flatten(initial_state)
    function = ElementFunction(reduce_func, [nest, lambda: dataset._nest])
    elements = dataset._pipe.iterate()
    step = None
    while (flat := elements.next()) is not None:
        if step is None:
            step = _reduce_step(dataset, function, [*state, *flat])
        state = step([*state, *flat])
        if len(state) != nest.count:
            raise TypeError(f"The `reduce_func` must give a state like the initial one: {nest.count} tensors, not {len(state)}.")
    return nest.pack(state)


def _reduce_step(dataset, function, first):
    """Compiled, or the function itself when it cannot be traced."""
    if _functions.why_not_traced(dataset) or any(t.dtype is _dtypes.string for t in first):
        return function
    compiled = _core.Function(function, name="reduce")
    try:
        begun_again(lambda: compiled.result_specs([(t.dtype, tuple(t.shape)) for t in first]))
        return compiled
    except Exception as e:
        if not _functions._needs_values(e):
            raise
        function.nest = None
        return function


# --- groups ---------------------------------------------------------------------------------------------------------------------


def group_by_window(dataset, key_func, reduce_func, window_size, window_size_func):
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Either the `window_size` argument or the `window_size_func` argument must be specified, and not both.")
    if window_size is not None and _int(window_size) <= 0:
        raise ValueError(f"Invalid `window_size`: {window_size} must be greater than zero.")
    size_of = window_size_func if window_size is None else lambda key: window_size
    key_of, reduce = key_func, reduce_func

    def opened(key, elements):
        specs = dataset._flat_specs()
        window = flat_source(lambda: elements, dataset._nest, specs, "_VariantDataset", len(elements))
        made = reduce(convert(key, "int64"), window)
        if not isinstance(made, Dataset):
            raise TypeError(f"The `reduce_func` must return a `Dataset` object, not {type(made)}.")
        if opened.nest is None:
            opened.nest, opened.flat_specs = made._nest, made._flat_specs()
        walk = made._pipe.iterate()
        while (flat := walk.next()) is not None:
            yield flat
        del made

    opened.nest = opened.flat_specs = None

    def start():
        windows, sizes = {}, {}
        elements = dataset._pipe.iterate()
        while (flat := elements.next()) is not None:
            key = _int(key_of(*dataset._nest.arguments(flat)))
            window = windows.setdefault(key, [])
            window.append(flat)
            if key not in sizes:
                sizes[key] = _int(size_of(convert(key, "int64")))
            if len(window) >= sizes[key]:
                del windows[key]
                yield from opened(key, window)
        for key, window in windows.items():
            yield from opened(key, window)

    def begin():
        elements = start()
        return lambda: next(elements, None)

    made = Dataset._of(_core.Dataset.generator(begin, None, UNKNOWN), None, "_GroupByWindowDataset", [dataset], opened)
    made._loose = lambda: (made._nest, opened.flat_specs)[1]
    return made


def rebatch_in_turns(dataset, sizes, drop_remainder):
    """Batches of sizes[0], sizes[1], … and again from the start."""
    rows = dataset.unbatch()

    def start():
        elements, turn = rows._pipe.iterate(), 0
        while True:
            size, batch = sizes[turn % len(sizes)], []
            while len(batch) < size and (flat := elements.next()) is not None:
                batch.append(flat)
            if batch and (len(batch) == size or not drop_remainder):
                yield [_core.ops.stack(list(parts)) for parts in zip(*batch)]
            if len(batch) < size:
                return
            turn += 1

    specs = [TensorSpec([None, *s.shape], s.dtype) if s.shape.rank is not None else s for s in rows._flat_specs()]
    return flat_source(start, dataset._nest, specs, "_RebatchDataset", inputs=[rows])


# --- ragged and sparse tensors --------------------------------------------------------------------------------------------------


def rows_of_composites(tensors):
    """Slices along the first axis, where some of the tensors are ragged or sparse: one row after the other."""
    whole = _nest.map_leaves(lambda x: x if x is None or hasattr(x, "_components") else convert(x), tensors)
    counts = {int(x.shape[0]) for x in _nest.leaves(whole) if x is not None}
    if len(counts) != 1:
        raise ValueError(f"Dimension 0 of all components must agree; they have {sorted(counts)} rows")
    count = counts.pop()

    def row(i):
        return _nest.flatten(_nest.map_leaves(lambda x: None if x is None else x[i], whole))

    nest, first = row(0) if count else _nest.flatten(whole)
    kinds = iter(_nest.leaves(whole))
    nest = _nest.Nest(
        _nest.map_leaves(lambda leaf: _nest.RaggedRow() if hasattr(next(kinds), "nested_row_splits") and type(leaf) is _nest.Leaf else leaf, nest.template)
    )
    fixed = [
        leaf.count == 1 and not hasattr(x, "_components")
        for leaf, x in zip(nest.leaves, _nest.leaves(whole))
        for _ in range(leaf.count)
    ]
    specs = [TensorSpec(t.shape if f else [None] * t.ndim, t.dtype) for t, f in zip(first, fixed)]
    return flat_source(lambda: (row(i)[1] for i in range(count)), nest, specs, "_TensorSliceDataset", count)


def ragged_rows(dataset):
    """unbatch, where some components are ragged: their rows are tensors of different lengths."""
    nest, flat = dataset._nest, iter(dataset._flat_specs())
    kinds, specs = [], []
    for leaf in nest.leaves:
        own = [next(flat) for _ in range(leaf.count)]
        if hasattr(getattr(leaf, "like", None), "nested_row_splits"):
            if leaf.like.ragged_rank != 1:
                raise NotImplementedError(f"Dataset.unbatch: rows of a ragged tensor of ragged_rank {leaf.like.ragged_rank} are ragged themselves")
            kinds.append(_nest.RaggedRow())
            specs.append(TensorSpec([None, *own[0].shape[1:]], own[0].dtype))
        elif hasattr(getattr(leaf, "like", None), "dense_shape"):
            kinds.append(_sparse_leaf(leaf.spec(own).shape[1:], own[1].dtype))
            specs += kinds[-1].flat_specs
        else:
            kinds.append(leaf)
            specs += [TensorSpec(s.shape[1:], s.dtype) if s.shape.rank is not None else s for s in own]
    source = iter(kinds)

    def start():
        elements = dataset._pipe.iterate()
        while (tensors := elements.next()) is not None:
            rows = rows_of_composites(nest.pack(tensors))._pipe.iterate()
            while (row := rows.next()) is not None:
                yield row

    return flat_source(start, _nest.Nest(_nest.map_leaves(lambda _: next(source), nest.template)), specs, "_UnbatchDataset", inputs=[dataset])


def sparse_batch(dataset, size, row_shape):
    """Elements of any extents up to those of `row_shape` (None or -1: the largest of the batch) as one sparse tensor."""
    from tandem._face import ints

    specs = dataset._flat_specs()
    if len(specs) != 1:
        raise TypeError(f"sparse_batch: elements of one component are wanted, there are {len(specs)}")
    limits = [-1 if d is None else int(d) for d in (row_shape if isinstance(row_shape, (list, tuple)) else ints(row_shape))]
    dtype = specs[0].dtype
    leaf = _sparse_leaf(TensorShape([None, *(None if d < 0 else d for d in limits)]), dtype)

    def joined(batch):
        places, extents = [], list(limits)
        for i, (x,) in enumerate(batch):
            if any(0 <= limit < have for limit, have in zip(limits, x.shape)) or x.ndim != len(limits):
                raise errors.DataLossError(None, None, f"sparse_batch: an element of shape {x.shape} does not fit into rows of {limits}")
            at = np.indices(tuple(x.shape)).reshape(x.ndim, -1).T
            places.append(np.insert(at, 0, i, axis=1))
            extents = [have if limit < 0 else e for have, limit, e in zip(np.maximum(extents, x.shape), limits, extents)]
        yield convert(np.ascontiguousarray(np.concatenate(places), np.int64))
        yield _core.ops.concatenate([_core.ops.reshape(x, shape=[-1]) for (x,) in batch])
        yield convert(np.array([len(batch), *extents], np.int64))

    def start():
        elements, batch = dataset._pipe.iterate(), []
        while (flat := elements.next()) is not None:
            batch.append(flat)
            if len(batch) == size:
                yield list(joined(batch))
                batch = []
        if batch:
            yield list(joined(batch))

    return flat_source(start, _nest.Nest(leaf), leaf.flat_specs, "_DenseToSparseBatchDataset", inputs=[dataset])


def _sparse_leaf(shape, dtype):
    """The place of a sparse tensor of this shape, which may be unknown."""
    from tandem._sparse import SparseTensor, SparseTensorSpec

    rank = shape.rank
    like = SparseTensor(np.zeros((0, rank or 0), np.int64), convert(np.zeros(0), dtype), [0] * (rank or 0))
    leaf = _nest.CompositeLeaf(like, 3, SparseTensorSpec(shape, dtype))
    leaf.flat_specs = [TensorSpec([None, rank], "int64"), TensorSpec([None], dtype), TensorSpec([rank], "int64")]
    return leaf


def _ragged_leaf(shape, dtype, rank):
    """The place of a ragged tensor of this shape, with so many axes of rows of different lengths."""
    from tandem import _arrays
    from tandem._ragged import RaggedTensor, RaggedTensorSpec

    inner = list(shape[rank + 1 :]) if shape.rank is not None else []
    empty = _arrays.zeros([0, *(d or 0 for d in inner)], dtype)
    like = RaggedTensor.from_nested_row_splits(empty, [convert(np.zeros(1, np.int64))] * rank)
    leaf = _nest.CompositeLeaf(like, rank + 1, RaggedTensorSpec(shape, dtype, rank))
    leaf.flat_specs = [TensorSpec([None, *inner], dtype), *[TensorSpec([None], "int64")] * rank]
    return leaf


def _stacked_ragged(elements):
    """The parts of ragged tensors as those of one with an axis in front: values, and ends of rows from the outermost on."""
    yield _core.ops.concatenate([e[0] for e in elements])
    levels = [[e[k].numpy().astype(np.int64) for e in elements] for k in range(1, len(elements[0]))]
    yield convert(np.cumsum([0, *(len(s) - 1 for s in levels[0])]))
    for splits in levels:
        before = np.cumsum([0, *(s[-1] for s in splits)])
        yield convert(np.concatenate([[0], *(s[1:] + b for s, b in zip(splits, before))]))


def batch_with_composites(dataset, size, drop_remainder):
    """Elements some of whose components are sparse or ragged: these stay so, with one more axis in front."""
    nest, flat = dataset._nest, iter(dataset._flat_specs())
    kinds, specs, counts = [], [], []
    for leaf in nest.leaves:
        own = [next(flat) for _ in range(leaf.count)]
        counts.append(leaf.count)
        if hasattr(getattr(leaf, "like", None), "nested_row_splits"):
            before = leaf.spec(own).shape
            shape = TensorShape(None if before.rank is None else [size if drop_remainder else None, *before])
            kinds.append(_ragged_leaf(shape, own[0].dtype, leaf.like.ragged_rank + 1))
            specs += kinds[-1].flat_specs
            continue
        if not hasattr(getattr(leaf, "like", None), "dense_shape"):
            kinds.append(leaf)
            specs += [TensorSpec([size if drop_remainder else None, *s.shape] if s.shape.rank is not None else None, s.dtype) for s in own]
            continue
        before = leaf.spec(own).shape
        kinds.append(_sparse_leaf(TensorShape(None if before.rank is None else [size if drop_remainder else None, *before]), own[1].dtype))
        specs += kinds[-1].flat_specs
    source = iter(kinds)

    def joined(batch):
        at = 0
        for kind, count in zip(kinds, counts):
            parts = [element[at : at + count] for element in batch]
            at += count
            if hasattr(getattr(kind, "like", None), "nested_row_splits"):
                yield from _stacked_ragged(parts)
                continue
            if not hasattr(getattr(kind, "like", None), "dense_shape"):
                yield from (_core.ops.stack([p[i] for p in parts]) for i in range(count))
                continue
            shapes = [p[2].numpy() for p in parts]
            if any(len(s) != len(shapes[0]) for s in shapes):
                raise errors.InvalidArgumentError(None, None, f"batch: sparse elements of {len(shapes[0])} and of other numbers of axes")
            places = [np.insert(p[0].numpy().reshape(-1, len(shapes[0])), 0, i, axis=1) for i, p in enumerate(parts)]
            yield convert(np.ascontiguousarray(np.concatenate(places), np.int64))
            yield _core.ops.concatenate([p[1] for p in parts])
            yield convert(np.array([len(batch), *np.max(shapes, axis=0)], np.int64))

    def start():
        elements, batch = dataset._pipe.iterate(), []
        while (tensors := elements.next()) is not None:
            batch.append(tensors)
            if len(batch) == size:
                yield list(joined(batch))
                batch = []
        if batch and not drop_remainder:
            yield list(joined(batch))

    return flat_source(start, _nest.Nest(_nest.map_leaves(lambda _: next(source), nest.template)), specs, "_BatchDataset", inputs=[dataset])


def ragged_batch(dataset, size, drop_remainder, splits_dtype):
    """Components whose first extent varies become ragged, the others are stacked."""
    from tandem import _arrays
    from tandem._ragged import RaggedTensor, RaggedTensorSpec

    if size <= 0:
        raise ValueError(f"ragged_batch: the batch size is {size}, it must be above 0")
    specs = dataset._flat_specs()
    varies = [s.shape.rank is None or None in tuple(s.shape) for s in specs]
    for s, v in zip(specs, varies):
        if v and (s.shape.rank is None or s.shape.rank == 0 or None in tuple(s.shape[1:])):
            raise NotImplementedError(f"Dataset.ragged_batch: components of which more than the first extent varies ({s})")
    kinds, flat_specs = [], []
    for s, v in zip(specs, varies):
        if v:
            like = RaggedTensor.from_row_splits(
                _arrays.zeros([0, *s.shape[1:]], s.dtype), convert(np.zeros(1, np.int64), splits_dtype)
            )
            kinds.append(_nest.CompositeLeaf(like, 2, RaggedTensorSpec([None, None, *s.shape[1:]], s.dtype, 1, splits_dtype)))
            flat_specs += [TensorSpec([None, *s.shape[1:]], s.dtype), TensorSpec([None], splits_dtype)]
        else:
            kinds.append(_nest.ONE.template)
            flat_specs.append(TensorSpec([size if drop_remainder else None, *s.shape], s.dtype))
    source = iter(kinds)
    nest = _nest.Nest(_nest.map_leaves(lambda leaf: next(source) if leaf.count == 1 else leaf, dataset._nest.template))

    def joined(batch):
        for parts, v in zip(zip(*batch), varies):
            if not v:
                yield _core.ops.stack(list(parts))
                continue
            yield _core.ops.concatenate(list(parts))
            yield convert(np.cumsum([0, *(p.shape[0] for p in parts)]), splits_dtype)

    def start():
        elements, batch = dataset._pipe.iterate(), []
        while (flat := elements.next()) is not None:
            batch.append(flat)
            if len(batch) == size:
                yield list(joined(batch))
                batch = []
        if batch and not drop_remainder:
            yield list(joined(batch))

    return flat_source(start, nest, flat_specs, "_RaggedBatchDataset", inputs=[dataset])


# --- random choices -------------------------------------------------------------------------------------------------------------


def _distribution(x):
    return np.asarray(convert(x).numpy(), np.float64)


def rejection_resample(dataset, class_func, target_dist, initial_dist, seed):
    """Elements with their class, kept with such chances that classes come as in target_dist."""
    target = _distribution(target_dist)
    known = None if initial_dist is None else _distribution(initial_dist)
    class_of = class_func

    def start():
        draw = np.random.default_rng(_seed(seed))
        counts = np.ones(len(target))
        elements = dataset._pipe.iterate()
        while (flat := elements.next()) is not None:
            label = convert(class_of(*dataset._nest.arguments(flat)))
            number = _int(label)
            if not 0 <= number < len(target):
                raise errors.InvalidArgumentError(None, None, f"rejection_resample: class {number} of {len(target)}")
            counts[number] += 1
            initial = known if known is not None else counts / counts.sum()
            ratio = np.divide(target, initial, out=np.zeros_like(target), where=initial > 0)
            if draw.random() * ratio.max() < ratio[number]:
                yield [label, *flat]

    first = dataset._first()
    label = TensorSpec((), convert(class_of(*dataset._nest.arguments(first))).dtype if first is not None else "int32")
    nest = _nest.tuple_of(_nest.ONE, dataset._nest)
    return flat_source(start, nest, [label, *dataset._flat_specs()], "_RejectionResampleDataset", inputs=[dataset])


def sample_by_dataset(datasets, weights, seed, stop_on_empty):
    """The weights are another Dataset's elements, one vector for each choice."""

    def start():
        draw = np.random.default_rng(_seed(seed))
        inputs, given = [d._pipe.iterate() for d in datasets], weights._pipe.iterate()
        alive = np.ones(len(inputs), bool)
        while alive.any():
            if (w := given.next()) is None:
                return
            chances = np.where(alive, w[0].numpy(), 0).astype(np.float64)
            if chances.sum() <= 0:
                return
            at = int(draw.choice(len(inputs), p=chances / chances.sum()))
            flat = inputs[at].next()
            if flat is not None:
                yield flat
            elif stop_on_empty:
                return
            else:
                alive[at] = False

    return flat_source(
        start, datasets[0]._nest, datasets[0]._flat_specs(), "_DirectedInterleaveDataset", inputs=[*datasets, weights]
    )
