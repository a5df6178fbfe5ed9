"""What converted Python code calls: if, while, for, and, or, not over tensors. Over anything else they are Python's own."""
from tandem import _core
from tandem import errors
from tandem import nest
from tandem._arrays import RangeOfData
from tandem._control import is_traced, learn_element_shapes
from tandem._convert import Composite
from tandem._face import CoreVariable, Tensor, any_tensor, convert, ops, tensor
from tandem._trace import NeedsData, NoElementsUnderTape


def _undefined(x):
    from malt.operators.variables import Undefined, UndefinedReturnValue

    return isinstance(x, (Undefined, UndefinedReturnValue))


def _as_bool(x):
    x = tensor(x)
    return x if x.dtype.is_bool else ops.not_equal(x, 0)


def _scalar(x):
    return ops.reshape(_as_bool(x), shape=[])


# --- state: what a branch or a loop changes -------------------------------------------------------------------------------------


class _Slot:
    """One leaf of the state that goes through a branch or a loop as a tensor."""

    def __init__(self, dtype=None, dims=None):
        self.dtype, self.dims = dtype, dims

    def zeros(self):
        return ops.full(ops.cast(0, dtype=self.dtype), shape=self.dims)


def _flat(state):
    """Leaves of a tuple of values; an undefined value is one leaf."""
    return [leaf for value in state for leaf in ([value] if _undefined(value) else nest.flatten(value, expand_composites=True))]


def _packed(structure, leaves):
    source, made = list(leaves), []
    for value in structure:
        count = 1 if _undefined(value) else len(nest.flatten(value, expand_composites=True))
        part, source = source[:count], source[count:]
        if _undefined(value):
            made.append(part[0])
        else:
            made.append(nest.pack_sequence_as(value, part, expand_composites=True))
    return tuple(made)


def _is_number(x):
    return isinstance(x, (bool, int, float)) or type(x).__module__ == "numpy"


def _can_be_tensor(x):
    return isinstance(x, (Tensor, CoreVariable)) or _is_number(x)


# --- if -------------------------------------------------------------------------------------------------------------------------


class _Again(Exception):
    """The branches must be traced again: something was learned about their types."""


def if_stmt(cond, body, orelse, get_state, set_state, symbol_names, nouts):
    if isinstance(cond, CoreVariable):
        cond = cond.read()
    if not is_traced(cond):
        return body() if cond else orelse()
    first = get_state()
    _learn_element_shapes(first, set_state, [body, orelse])
    learned = {}  # leaf -> _Slot, where one branch gives a Python number or nothing
    while True:
        records = []

        def thunk(branch):
            def run(_):
                set_state(first)
                branch()
                state = get_state()[:nouts]
                records.append((state, _flat(state)))
                return [_leaf_of_branch(i, x, learned) for i, x in enumerate(records[-1][1])]

            return run

        try:
            with NoElementsUnderTape():
                outputs = _core.cond(_scalar(cond), thunk(body), thunk(orelse))
        except (errors.OpError, ValueError, TypeError):
            set_state(first)
            if len(records) == 2 and _learn(records, learned):
                continue
            _explain_if(records, symbol_names)
            raise
        if _learn(records, learned):
            continue
        break
    (state, then), (other_state, otherwise) = records
    leaves = []
    for old, new, output in zip(then, otherwise, outputs):
        same = old is new or (_is_number(old) and _is_number(new) and type(old) is type(new) and old == new)
        if same or not (_can_be_tensor(old) or _can_be_tensor(new)):
            if not same and not (_undefined(old) or _undefined(new)) and old != new:
                raise TypeError(
                    f"a Python object cannot depend on a tensor: {old!r} in one branch, {new!r} in the other\n  hint: give "
                    "tensors, or decide by a Python value"
                )
            leaves.append(old)
        else:
            leaves.append(output)
    shape = tuple(b if _undefined(a) else a for a, b in zip(state, other_state))
    set_state(_packed(shape, leaves) + tuple(first[nouts:]))


def _leaf_of_branch(i, x, learned):
    slot = learned.get(i)
    if slot is not None and (_undefined(x) or x is None):
        return slot.zeros()
    if slot is not None and _is_number(x):
        return convert(x, slot.dtype)
    if _can_be_tensor(x):
        return tensor(x)
    if isinstance(x, Composite):
        raise NeedsData(f"an if over a tensor gives a tensor of {x.dtype.name}")
    return convert(0)  # a Python object, the same in both branches


def _learn(records, learned):
    """Types for what one branch leaves open; whether there is something new."""
    if len(records[0][1]) != len(records[1][1]):
        return False
    found = False
    for i, (a, b) in enumerate(zip(records[0][1], records[1][1])):
        if i in learned:
            continue
        for x, y in ((a, b), (b, a)):
            open_ = _undefined(x) or x is None or _is_number(x)
            if open_ and isinstance(y, (Tensor, CoreVariable)):
                learned[i] = _Slot(y.dtype, y.dims)
                found = True
            elif (_undefined(x) or x is None) and _is_number(y):
                made = any_tensor(y)
                learned[i] = _Slot(made.dtype, made.dims)
                found = True
    return found


def _explain_if(records, names):
    if len(records) == 2 and len(records[0][1]) != len(records[1][1]):
        raise TypeError(f"the branches of an if over a tensor leave different structures in {', '.join(map(str, names))}")


def if_exp(cond, if_true, if_false, expr_repr):
    if isinstance(cond, CoreVariable):
        cond = cond.read()
    if not is_traced(cond):
        return if_true() if cond else if_false()
    from tandem import _control

    return _control.staged_branches(lambda thunks: _core.cond(_scalar(cond), *thunks), [if_true, if_false])


# --- loops ----------------------------------------------------------------------------------------------------------------------


def while_stmt(test, body, get_state, set_state, symbol_names, opts):
    while True:
        decision = test()
        if isinstance(decision, CoreVariable):
            decision = decision.read()
        if is_traced(decision):
            return _staged_loop(test, body, get_state, set_state, symbol_names, opts.get("maximum_iterations"))
        if not decision:
            return
        body()


def for_stmt(iter_, extra_test, body, get_state, set_state, symbol_names, opts):
    if isinstance(iter_, CoreVariable):
        iter_ = iter_.read()
    if isinstance(iter_, RangeOfData):
        return _for_range(iter_, extra_test, body, get_state, set_state, symbol_names)
    if isinstance(iter_, Tensor) and _core.is_tracing():
        return _for_tensor(iter_, extra_test, body, get_state, set_state, symbol_names)
    if _core.is_tracing() and hasattr(iter_, "element_spec"):
        return _for_dataset(iter_, extra_test, body, get_state, set_state, symbol_names)
    if extra_test is None:
        for item in iter_:
            body(item)
        return
    state = extra_test()
    if not is_traced(state) and not state:
        return
    for item in iter_:
        go_on = extra_test()
        if is_traced(go_on):  # from here on, the rest of the loop only happens if it was not left
            if_stmt(go_on, lambda item=item: body(item), lambda: None, get_state, set_state, symbol_names, len(symbol_names))
            continue
        if not go_on:
            return
        body(item)


def _for_tensor(x, extra_test, body, get_state, set_state, symbol_names):
    if x.ndim == 0:
        raise TypeError("Cannot iterate over a scalar tensor.")
    count = x.dims[0]
    length = convert(count, "int32") if isinstance(count, int) else ops.reshape(ops.extent(dims=[count], dtype="int32"), shape=[])
    start, limit = ops.full(ops.cast(0, dtype="int32"), shape=[]), count if isinstance(count, int) else None

    def take(i):
        body(ops.take(x, i, axis=0))

    _counted_loop(
        start,
        lambda i: ops.less(i, length),
        lambda i: ops.add(i, 1),
        take,
        extra_test,
        get_state,
        set_state,
        symbol_names,
        limit,
    )


def _for_range(x, extra_test, body, get_state, set_state, symbol_names):
    """Counts without a tensor of all numbers."""
    goes_on = lambda i: ops.where(ops.greater(x.delta, 0), ops.less(i, x.limit), ops.greater(i, x.limit))  # noqa: E731
    _counted_loop(x.start, goes_on, lambda i: ops.add(i, x.delta), body, extra_test, get_state, set_state, symbol_names, None)


def _counted_loop(start, goes_on, next_of, body, extra_test, get_state, set_state, symbol_names, limit):
    place = [start]

    def test():
        inside = goes_on(place[0])
        if extra_test is None:
            return inside
        more = extra_test()
        return ops.logical_and(inside, _scalar(more)) if isinstance(
            more, (Tensor, CoreVariable)
        ) else ops.logical_and(inside, bool(more))

    def one():
        now = place[0]
        place[0] = next_of(now)
        body(now)

    def get():
        return (place[0], *get_state())

    def put(values):
        place[0] = values[0]
        set_state(tuple(values[1:]))

    _staged_loop(test, one, get, put, ("the place", *symbol_names), limit)


def _for_dataset(x, extra_test, body, get_state, set_state, symbol_names):
    """Each step takes the next element by a host call without Python. A loop that is left does not take one more."""
    if not hasattr(x, "traced") and not hasattr(x, "taken"):
        raise NeedsData(f"a loop over a {type(x).__name__}")
    begins = hasattr(x, "_pipe")  # a dataset: the loop's own walk
    walk = x.traced() if hasattr(x, "traced") else x

    def flat(taken):
        return [taken[0], *taken[1]]

    def advanced():
        more = True if extra_test is None else extra_test()
        if isinstance(more, (Tensor, CoreVariable)):
            return _core.cond(_scalar(more), lambda _: flat(walk.taken(False)), lambda _: flat(walk.nothing()))
        return flat(walk.taken(False) if more else walk.nothing())

    now = advanced()

    def one():
        body(walk.packed(now[1:]))
        now[:] = advanced()

    def get():
        return (list(now), *get_state())

    def put(values):
        now[:] = values[0]
        set_state(tuple(values[1:]))

    _staged_loop(lambda: now[0], one, get, put, ("the element", *symbol_names), None)
    if begins:
        _core.end_walk(walk._number)


def _learn_element_shapes(first, set_state, parts):
    """TensorArrays in the state learn from what a step, or the branches, write."""
    known = [i for i, x in enumerate(first) if not _undefined(x)]

    def run(values):
        state = list(first)
        for i, x in zip(known, values):
            state[i] = x
        for part in parts:
            set_state(tuple(state))
            part()

    learn_element_shapes([first[i] for i in known], run)
    set_state(first)


def _staged_loop(test, body, get_state, set_state, symbol_names, limit):
    """A loop in the graph. A variable that the body first defines, or a number whose type it changes, makes it trace again."""
    first = get_state()
    learned = {}
    _learn_element_shapes(first, set_state, [body])
    while True:
        start = _flat(first)
        inits = {}
        for i, x in enumerate(start):
            slot = learned.get(i)
            if slot is not None and (_undefined(x) or x is None):
                inits[i] = slot.zeros()
            elif slot is not None and _is_number(x):
                inits[i] = ops.broadcast_to(convert(x, slot.dtype), shape=slot.dims)
            elif _can_be_tensor(x):
                inits[i] = tensor(x)
            elif isinstance(x, Composite):
                raise NeedsData(f"a loop over tensors carries one of {x.dtype.name}")
        carried = list(inits)
        shape_of_state = [first]

        def state_of(tensors):
            leaves = list(start)
            for i, t in zip(carried, tensors):
                leaves[i] = t
            return _packed(shape_of_state[0], leaves)

        def condition(tensors):
            set_state(state_of(tensors))
            return [_scalar(test())]

        grown = []

        def step(tensors):
            set_state(state_of(tensors))
            body()
            after = get_state()
            leaves = _flat(after)
            if len(leaves) != len(start):
                grown.append(after)
                raise NeedsData(f"a loop over tensors changes the structure of one of {', '.join(map(str, symbol_names))}")
            result = []
            for i, x in enumerate(leaves):
                if i in inits:
                    old = inits[i]
                    if isinstance(x, (Tensor, CoreVariable)):
                        if (
                            x.dtype is not old.dtype or tuple(x.dims) != tuple(old.dims)
                        ) and i not in learned and (_is_number(start[i]) or _undefined(start[i])):
                            learned[i] = _Slot(x.dtype, x.dims)
                            raise _Again()
                        result.append(tensor(x))
                    elif _is_number(x):
                        result.append(convert(x, old.dtype))
                    else:
                        raise TypeError(f"'{symbol_names[0]}': {x!r} cannot be carried by a loop over tensors")
                elif isinstance(x, (Tensor, CoreVariable)) or (_is_number(x) and (_undefined(start[i]) or start[i] is None)):
                    made = tensor(x)
                    learned[i] = _Slot(made.dtype, made.dims)
                    raise _Again()
            return result

        try:
            with NoElementsUnderTape():
                outputs = _core.while_loop(condition, step, [inits[i] for i in carried], limit)
            break
        except _Again:
            set_state(first)
        except errors.InvalidArgumentError as e:
            set_state(first)
            if "shape" in str(e) or "carr" in str(e) or "extent" in str(e):
                raise NeedsData(f"a loop over tensors changes the shape of a variable ({e})") from None
            raise
        except BaseException:
            set_state(first)
            raise
    leaves = list(start)
    for i, t in zip(carried, outputs):
        leaves[i] = t
    set_state(_packed(first, leaves))


# --- and, or, not, assert -------------------------------------------------------------------------------------------------------


def and_(a, b):
    left = a()
    if is_traced(left):
        return ops.logical_and(_as_bool(left), _as_bool(b()))
    return left and b()


def or_(a, b):
    left = a()
    if is_traced(left):
        return ops.logical_or(_as_bool(left), _as_bool(b()))
    return left or b()


def not_(a):
    return ops.logical_not(_as_bool(a)) if is_traced(a) else not a


def assert_stmt(expression1, expression2):
    from tandem import debugging

    message = expression2()
    if isinstance(expression1, Tensor):
        return debugging.Assert(expression1, [message if isinstance(message, (str, bytes, Tensor)) else str(message)])
    assert expression1, message
