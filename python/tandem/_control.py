"""Branches, loops and maps: at once when nothing is traced, else as parts of the graph."""
import numpy as np

from tandem import _core
from tandem import errors
from tandem import nest
from tandem._convert import Composite
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, convert, number, ops, tensor
from tandem._trace import NeedsData, NoElementsUnderTape


def is_traced(x):
    return isinstance(x, Tensor) and x.is_traced


def map_composite(function, x):
    """A composite with the function applied to each of its tensors."""
    return x._from_components([function(p) for p in x._components()]) if hasattr(x, "_components") else x


def flat_tensors(structure):
    """Leaves as tensors, and the structure to put them back into."""
    flat = nest.flatten(structure, expand_composites=True)
    return [x if x is None else any_tensor(x) for x in flat]


# --- branches -------------------------------------------------------------------------------------------------------------------


class _Branches:
    """Branches of one decision: their results must agree, and where one gives a Python number it takes the other's type."""

    def __init__(self, functions):
        self.functions, self.results, self.hints = functions, [None] * len(functions), {}

    def thunk(self, i):
        def run(_):
            result = self.functions[i]()
            self.results[i] = result
            flat = nest.flatten(result, expand_composites=True)
            return [convert(0) if x is None else self._leaf(k, x) for k, x in enumerate(flat)]

        return run

    def _leaf(self, k, x):
        if k in self.hints and isinstance(x, (bool, int, float)):
            return convert(x, self.hints[k])
        x = any_tensor(x)
        if not isinstance(x, Tensor):
            raise NeedsData(f"a branch gives a tensor of {x.dtype.name}")
        return x

    def check(self):
        first = self.results[0]
        for other in self.results[1:]:
            try:
                nest.assert_same_structure(first, other, check_types=False, expand_composites=True)
            except (ValueError, TypeError) as e:
                raise TypeError(
                    "true_fn and false_fn arguments to tf.cond must have the same number, type, and overall structure of "
                    f"return values.\n{e}"
                ) from None

    def learn(self):
        """Types of tensors that another branch gives as Python numbers; whether there is something new."""
        if any(r is None for r in self.results):
            return False
        flats = [nest.flatten(r, expand_composites=True) for r in self.results]
        before = dict(self.hints)
        for k, leaves in enumerate(zip(*flats)):
            kinds = [as_dtype(x.dtype) for x in leaves if hasattr(x, "dtype")]
            if kinds and any(isinstance(x, (bool, int, float)) for x in leaves):
                self.hints[k] = kinds[0]
        return self.hints != before


def staged_branches(run, functions):
    """`run(thunks)` traces all of the functions; gives the structure of the first with the outputs in it."""
    branches = _Branches(functions)
    thunks = [branches.thunk(i) for i in range(len(functions))]
    while True:
        try:
            with NoElementsUnderTape():
                flat = run(thunks)
        except (errors.OpError, ValueError, TypeError):
            if branches.learn():
                continue
            if all(r is not None for r in branches.results):
                branches.check()
            raise
        if branches.learn():
            continue
        branches.check()
        shape = branches.results[0]
        if shape is None:
            return None
        leaves = nest.flatten(shape, expand_composites=True)
        return nest.pack_sequence_as(
            shape, [None if old is None else new for old, new in zip(leaves, flat)], expand_composites=True
        )


def cond(pred, true_fn=None, false_fn=None, name=None):
    if not callable(true_fn):
        raise TypeError("'true_fn' must be callable.")
    if not callable(false_fn):
        raise TypeError("'false_fn' must be callable.")
    if isinstance(pred, CoreVariable):
        pred = pred.read()
    if not is_traced(pred):
        if isinstance(pred, bool) and not _core.is_tracing():
            raise TypeError("pred must not be a Python bool")
        return _outcome(true_fn() if bool(pred) else false_fn())
    true_fn, false_fn = _converted(true_fn), _converted(false_fn)
    pred = pred if pred.dtype.is_bool else ops.not_equal(pred, 0)
    return staged_branches(lambda thunks: _core.cond(pred, *thunks), [true_fn, false_fn])


def _outcome(x):
    """What a branch that ran at once gives: numbers as tensors, a list of one as the one."""
    made = nest.map_structure(
        lambda v: v if v is None else any_tensor(v) if not isinstance(v, Composite) else v, x
    ) if _convertible(x) else x
    return made[0] if isinstance(made, list) and len(made) == 1 else made


def _convertible(x):
    return all(
        v is None or isinstance(
            v, (Tensor, CoreVariable, Composite, int, float, complex, str, bytes, np.ndarray, np.generic)
        ) for v in nest.flatten(x)
    )


def _converted(function):
    """A function that the user gave to one of ours is converted as the function around it."""
    from tandem._function import autograph

    return autograph.converted_if_enabled(function)


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    branch_fns = list(branch_fns)
    if branch_fns and isinstance(branch_fns[0], tuple):
        branch_fns = [f for _, f in sorted(branch_fns, key=lambda p: p[0])]
    for f in branch_fns:
        if not callable(f):
            raise TypeError("branch_fns elements must be callable")
    functions = branch_fns + [default if default is not None else branch_fns[-1]]
    index = tensor(branch_index)
    inside = ops.logical_and(ops.greater_equal(index, 0), ops.less(index, len(branch_fns)))
    index = ops.where(inside, index, len(branch_fns))
    if not index.is_traced:
        return _outcome(functions[index.item()]())
    functions = [_converted(f) for f in functions]
    return staged_branches(lambda thunks: _core.switch_case(index, thunks), functions)


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    pairs = [(p.deref() if hasattr(p, "deref") else p, f) for p, f in pairs]
    for _, f in pairs:
        if not callable(f):
            raise TypeError(f"fn for pred_fn_pairs must be callable, got {f}")
    if exclusive and not any(is_traced(p) for p, _ in pairs) and sum(bool(p) for p, _ in pairs) > 1:
        raise errors.InvalidArgumentError(
            None, None, "Input error: exclusive=True: more than 1 conditions evaluated as True but exclusive=True."
        )

    def from_(i):
        if i == len(pairs):
            if default is None:
                raise errors.InvalidArgumentError(
                    None, None, "Input error: None of conditions evaluated as True, and there is no default"
                )
            return default()
        predicate, function = pairs[i]
        if i == len(pairs) - 1 and default is None and is_traced(predicate):
            return function()
        return cond(tensor(predicate), function, lambda: from_(i + 1))

    return from_(0)


# --- loops ----------------------------------------------------------------------------------------------------------------------


def while_loop(
    cond,
    body,
    loop_vars,
    shape_invariants=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    maximum_iterations=None,
    name=None,
):
    if not callable(cond) or not callable(body):
        raise TypeError("'cond' and 'body' must be callable.")
    if not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    limit = None if maximum_iterations is None else int(number(maximum_iterations))
    cond, body = _converted(cond), _converted(body)

    def step(values):
        result = body(*values)
        if not isinstance(result, (list, tuple)) or isinstance(result, Composite):
            result = [result]
        return type(values)(result) if type(values) in (list, tuple) else list(result)

    if not _core.is_tracing():
        trips, values = 0, loop_vars
        while (limit is None or trips < limit) and bool(cond(*values)):
            result = step(values)
            nest.assert_same_structure(list(loop_vars), list(result), check_types=False)
            values, trips = result, trips + 1
        return nest.map_structure(lambda x: x if isinstance(x, Composite) else any_tensor(x), values)
    return staged_while(cond, step, loop_vars, limit)


def learn_element_shapes(state, step):
    """A TensorArray learns the shape of its elements from a first write: one step of a loop is traced with copies, and thrown away."""
    from tandem._tensor_array import TensorArray

    def needs(x):
        return isinstance(x, TensorArray) and x.needs_element_shape

    if not any(needs(x) for x in nest.flatten(state)):
        return
    copies = nest.map_structure(lambda x: x._copy() if needs(x) else x, state)
    leaves = nest.flatten(copies)
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) or type(x) in (int, float)]
    tensors = [tensor(leaves[i]) for i in places]

    def body(parameters):
        given = list(leaves)
        for i, x in zip(places, parameters):
            given[i] = x
        step(nest.pack_sequence_as(copies, given))
        return []

    try:
        _core.Function(body, "a first step").result_specs([(x.dtype, x.dims) for x in tensors])
    except Exception:  # the loop itself meets it again and says what it is, if it is more than the missing shape
        pass
    for old, new in zip(nest.flatten(state), leaves):
        if needs(old):
            old.set_shape(new.element_shape)


def staged_while(condition, step, loop_vars, limit):
    learn_element_shapes(loop_vars, step)
    flat = flat_tensors(loop_vars)
    if not all(isinstance(x, Tensor) for x in flat):
        raise NeedsData("a loop over tensors that are not numbers")

    def packed(tensors):
        return nest.pack_sequence_as(loop_vars, tensors, expand_composites=True)

    def test(tensors):
        result = condition(*packed(tensors))
        result = tensor(result)
        return [ops.reshape(result, shape=[]) if result.dtype.is_bool else ops.not_equal(result, 0)]

    def one_step(tensors):
        result = step(packed(tensors))
        nest.assert_same_structure(list(loop_vars), list(result), check_types=False, expand_composites=True)
        made = []
        for old, new in zip(tensors, nest.flatten(result, expand_composites=True)):
            made.append(convert(new, old.dtype) if isinstance(new, (bool, int, float)) else tensor(new))
        return made

    try:
        with NoElementsUnderTape():
            return packed(_core.while_loop(test, one_step, flat, limit))
    except errors.InvalidArgumentError as e:
        if "shape" in str(e) or "carr" in str(e):
            raise NeedsData(f"a loop changes the shape of a variable: {e}") from None
        raise


# --- maps -----------------------------------------------------------------------------------------------------------------------


def _rows(elems):
    """Tensors whose rows are the elements, and how many rows. Composites that are sliced as their tensors are taken apart."""
    flat = [x if isinstance(x, Composite) else any_tensor(x) for x in nest.flatten(elems, _slices_alike(elems))]
    if not flat:
        raise ValueError("elems must be a Tensor or (possibly nested) sequence of Tensors")
    first = flat[0]
    count = first.nrows().item() if hasattr(first, "nrows") else first.dims[0] if hasattr(first, "dims") else first.shape[0]
    return flat, count


def _slices_alike(elems):
    return any(hasattr(x, "_slices_alike") for x in nest.flatten(elems))


def _row(elems, rows):
    return nest.pack_sequence_as(elems, rows, expand_composites=_slices_alike(elems))


def map_fn(
    fn,
    elems,
    dtype=None,
    parallel_iterations=None,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    name=None,
    fn_output_signature=None,
):
    signature = dtype if fn_output_signature is None else fn_output_signature
    flat, count = _rows(elems)
    fn = _converted(fn)
    if _core.is_tracing() and all(isinstance(x, Tensor) for x in flat):
        return _traced_map(fn, elems, flat, signature)
    results = [fn(_row(elems, [x[i] for x in flat])) for i in range(count)]
    return _stacked(results, signature, elems, signature is None and any(hasattr(x, "nrows") for x in flat))


def _plain_tensors(structure, what):
    """Leaves as tensors of numbers, which is what a loop of a compiled function holds."""
    for x in nest.flatten(structure):
        if hasattr(x, "row_splits") or hasattr(x, "dense_shape"):
            raise NeedsData(f"{what} gives a {type(x).__name__}, whose rows have shapes of their own")
    flat = flat_tensors(structure)
    for x in flat:
        if not isinstance(x, Tensor) or x.dtype.name == "string":
            raise NeedsData(f"{what} gives a {type(x).__name__}, which is not one tensor of numbers")
    return flat


def _traced_map(fn, elems, flat, signature):
    kinds = None if signature is None else [as_dtype(getattr(s, "dtype", s)) for s in nest.flatten(signature)]
    found = []

    def step(carry, rows):
        result = fn(_row(elems, rows))
        found[:] = [result]
        for x, kind in zip(nest.flatten(result), kinds or ()):
            given = any_tensor(x).dtype
            if given is not kind:
                raise errors.InvalidArgumentError(None, None, f"map_fn: fn gave {given.name}, fn_output_signature says {kind.name}")
        return [], _plain_tensors(result, "map_fn's function")

    _, outputs = _core.scan(step, [], flat)
    made = nest.pack_sequence_as(found[0], outputs, expand_composites=True)
    return made if signature is None else nest.pack_sequence_as(signature, nest.flatten(made))


def _stacked(results, signature, elems, ragged_rows=False):
    """The results one upon the other; rows of ragged elements stay ragged."""
    from tandem import _arrays
    from tandem._ragged import RaggedTensor, RaggedTensorSpec
    from tandem._sparse import SparseTensor

    if not results:
        if signature is None:
            return nest.map_structure(lambda x: any_tensor(x), elems)
        return nest.map_structure(
            lambda s: _arrays.zeros([0, *[d or 0 for d in (getattr(s, "shape", None) or [])]], getattr(s, "dtype", s)), signature
        )
    structure = results[0] if signature is None else signature

    def leaves(result):
        if signature is not None:
            nest.assert_same_structure(signature, result, check_types=False)
        return nest.flatten(result)

    specs = nest.flatten(signature) if signature is not None else [None] * len(leaves(results[0]))
    columns = list(zip(*[leaves(r) for r in results]))
    made = []
    for spec, column in zip(specs, columns):
        if isinstance(spec, RaggedTensorSpec) or any(isinstance(x, RaggedTensor) or ragged_rows and x.ndim > 0 for x in column):
            from tandem import ragged

            made.append(ragged.stack(list(column)))
        elif any(isinstance(x, SparseTensor) for x in column):
            from tandem import sparse

            made.append(sparse.concat(0, [sparse.expand_dims(x, 0) for x in column]))
        elif hasattr(column[0], "_slices_alike"):
            made.append(column[0]._from_components([_arrays.stack(list(parts)) for parts in zip(*[x._components() for x in column])]))
        else:
            kind = None if spec is None else getattr(spec, "dtype", spec)
            column = [any_tensor(x, None, kind) for x in column]
            if kind is not None and column[0].dtype is not as_dtype(kind):
                raise errors.InvalidArgumentError(
                    None, None, f"map_fn: fn gave {column[0].dtype.name}, fn_output_signature says {as_dtype(kind).name}"
                )
            made.append(_arrays.stack(column))
    return nest.pack_sequence_as(structure, made)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    flat = [any_tensor(x) for x in nest.flatten(elems)]
    counts = [x.dims[0] for x in flat if x.ndim]
    count = next((c for c in counts if c != 1), 1)
    from tandem import _arrays

    flat = [_arrays.broadcast_to(x, [count, *x.dims[1:]]) if x.ndim and x.dims[0] == 1 and count != 1 else x for x in flat]
    return map_fn(fn, nest.pack_sequence_as(elems, flat))


def scan(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    reverse=False,
    name=None,
):
    flat, count = _rows(elems)
    fn = _converted(fn)
    if _core.is_tracing() and all(isinstance(x, Tensor) for x in flat):
        return _traced_scan(fn, elems, flat, initializer, reverse)[1]
    order = range(count - 1, -1, -1) if reverse else range(count)
    order = list(order)

    def at(i):
        return _row(elems, [x[i] for x in flat])

    if initializer is None:
        carry, rest, outputs = at(order[0]), order[1:], [at(order[0])]
    else:
        carry, rest, outputs = nest.map_structure(any_tensor, initializer), order, []
    for i in rest:
        result = fn(carry, at(i))
        carry = nest.pack_sequence_as(carry, [any_tensor(x) for x in nest.flatten(result)])
        outputs.append(carry)
    outputs = outputs[::-1] if reverse else outputs
    return _stacked(outputs, None, elems)


def _traced_scan(fn, elems, flat, initializer, reverse):
    """A loop of the graph along the first axis: the last state, and all states in the places of their elements."""
    first = None
    if initializer is None:  # the first element is the state, and the loop goes along the others
        initializer = nest.pack_sequence_as(elems, [x[-1 if reverse else 0] for x in flat])
        flat = [x[:-1] if reverse else x[1:] for x in flat]
        first = flat_tensors(initializer)
    structure = nest.map_structure(any_tensor, initializer)

    def step(carry, rows):
        result = fn(nest.pack_sequence_as(structure, carry), nest.pack_sequence_as(elems, rows))
        nest.assert_same_structure(structure, result, check_types=False)
        leaves = [convert(x, c.dtype) if isinstance(x, (bool, int, float)) else x for x, c in zip(nest.flatten(result), carry)]
        made = _plain_tensors(leaves, "the function of a scan")
        return made, made

    start = _plain_tensors(structure, "the initializer of a scan")
    try:
        last, states = _core.scan(step, start, flat, None, reverse)
    except errors.InvalidArgumentError as e:
        if "the state keeps its element types and shapes" in str(e):
            raise NeedsData(f"a scan changes the shape of its state: {e}") from None
        raise
    if first is not None:
        ends = [ops.expand_dims(x, axis=[0]) for x in first]
        states = [ops.concatenate([s, e] if reverse else [e, s], axis=0) for s, e in zip(states, ends)]
    return nest.pack_sequence_as(structure, last), nest.pack_sequence_as(structure, states)


def _fold(fn, elems, initializer, order):
    flat, count = _rows(elems)
    fn = _converted(fn)
    if _core.is_tracing() and all(isinstance(x, Tensor) for x in flat):
        return _traced_scan(fn, elems, flat, initializer, order < 0)[0]
    indices = list(range(count))[::order]

    def at(i):
        return _row(elems, [x[i] for x in flat])

    if initializer is None:
        carry, indices = at(indices[0]), indices[1:]
    else:
        carry = nest.map_structure(any_tensor, initializer)
    for i in indices:
        carry = fn(carry, at(i))
    return carry


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    return _fold(fn, elems, initializer, 1)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    return _fold(fn, elems, initializer, -1)
