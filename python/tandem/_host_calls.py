"""Calls of the program: printing, checks and functions of Python's. In a compiled function they happen when it runs, in order."""
import itertools
import pprint
import sys
import threading
from collections import OrderedDict

import numpy as np

from tandem import _core
from tandem import errors
from tandem import nest
from tandem._convert import Composite
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, convert, ops, tensor
from tandem._shape import TensorShape
from tandem._trace import NeedsData, call_shapes


def _is_operand(x):
    """What has its numbers only when the function runs."""
    return isinstance(x, CoreVariable) or isinstance(x, Tensor) and x.is_traced


def _as_tensors(x):
    """Keras's variables, and what else becomes a tensor."""
    return tensor(x) if hasattr(x, "__tandem_tensor__") and not isinstance(x, (Tensor, CoreVariable, Composite)) else x


def when_run(function, values, name, results=None):
    """function(values) each time the compiled function comes to this place. `values` are a structure with numbers in it then."""
    values = nest.map_structure(_as_tensors, values)
    leaves = nest.flatten(values, expand_composites=True)
    operands = [x for x in leaves if _is_operand(x)]

    def call(numbers):
        source = iter(numbers)
        filled = [next(source) if _is_operand(x) else x for x in leaves]
        found = function(nest.pack_sequence_as(values, filled, expand_composites=True))
        return [] if results is None else found

    return _core.host_call(call, [tensor(x) for x in operands], results, name)


# --- how TensorFlow writes numbers ----------------------------------------------------------------------------------------------


def _float_text(x):
    """With as few digits as 6 or 15 where they are enough to tell the number, else with all."""
    few, all_digits = (15, 17) if x.dtype == np.float64 else (6, 9)
    text = f"{x:.{few}g}"
    return text if np.isnan(x) or x.dtype.type(text) == x else f"{x:.{all_digits}g}"


def _bytes_text(x):
    """Bytes that are not plain text as numbers of base 8."""
    special = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(special.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in x)


def _item_text(x, quoted):
    if isinstance(x, (bytes, str)):
        x = x.encode() if isinstance(x, str) else x
        return f'"{_bytes_text(x)}"' if quoted else _bytes_text(x)
    if isinstance(x, (bool, np.bool_)):
        return "1" if x else "0"
    if isinstance(x, (complex, np.complexfloating)):
        return f"({_item_text(x.real, quoted)},{_item_text(x.imag, quoted)})"
    return _float_text(np.float64(x) if type(x) is float else x) if isinstance(x, (float, np.floating)) else str(x)


def _array(x):
    if x.dtype.name == "string":
        return np.asarray(x.numpy(), object)
    array = np.asarray(x.numpy())
    return array.astype(np.float32) if x.dtype.name in ("float16", "bfloat16") else array


def _text(x, summarize):
    """A tensor as tf.print shows it: no commas, the middle of long axes left out."""
    from tandem._sparse import SparseTensor

    if isinstance(x, SparseTensor):
        parts = [_text(part, summarize) for part in (x.indices, x.values, x.dense_shape)]
        return "'SparseTensor(indices={}, values={}, shape={})'".format(*parts)
    if isinstance(x, CoreVariable):
        x = x.read()
    if hasattr(x, "to_list") and not isinstance(x, Tensor):
        return str(x.to_list())
    return _array_text(_array(x), summarize, 0)


def _array_text(array, summarize, depth):
    if array.ndim == 0:
        return _item_text(array[()], True)
    edge = len(array) if summarize is None or summarize < 0 else summarize
    cut = len(array) > 2 * edge
    rows = list(array[:edge]) + list(array[len(array) - edge :] if cut else array[edge:])
    texts = [_array_text(np.asarray(r, array.dtype), summarize, depth + 1) for r in rows]
    if cut:
        texts.insert(edge, "...")
    joint = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (depth + 1)
    return "[" + joint.join(t for t in texts if array.ndim == 1 or array.size) + "]"


def _summary(x, limit):
    """A tensor as an assertion shows it: its first elements."""
    array = _array(x)
    items = [_item_text(v, False) for v in itertools.islice(array.reshape(-1), limit if limit >= 0 else array.size)]
    rest = "..." if len(items) < array.size else ""
    if array.ndim < 2:
        return " ".join(items) + rest
    source = iter(items)

    def row(depth):
        if depth == array.ndim - 1:
            row_items = list(itertools.islice(source, array.shape[-1]))
            return " ".join(row_items) + ("..." if len(row_items) < array.shape[-1] else "")
        found = []
        for _ in range(array.shape[depth]):
            if len(items) - source.__length_hint__() >= len(items):
                break
            found.append(f"[{row(depth + 1)}]")
        return "".join(found)

    return row(0) + rest


# --- printing -------------------------------------------------------------------------------------------------------------------


def _is_shown_as_tensor(x):
    return isinstance(x, (Tensor, CoreVariable, Composite))


class _Place:
    """Where a tensor's text goes in a structure that Python prints."""

    def __init__(self, number):
        self._text = f"<place {number} of tf.print>"

    def __repr__(self):
        return self._text


def text_of(x, summarize):
    """One argument of tf.print as text."""
    if _is_shown_as_tensor(x):
        return _text(x, summarize)
    if isinstance(x, str):
        return x
    places = {}

    def leaf(v):
        if not _is_shown_as_tensor(v):
            return v
        place = _Place(len(places))
        places[repr(place)] = _text(v, summarize)
        return place

    text = " ".join(pprint.pformat(nest.map_structure(leaf, x)).split())
    for place, shown in places.items():
        text = text.replace(place, shown)
    return text


def print_(*inputs, output_stream=None, summarize=3, sep=" ", end="\n", name=None):
    """tf.print: to standard error unless told otherwise. In a compiled function the line appears when the function runs."""
    # The standard streams of the time when the line appears: a notebook and a test runner exchange them.
    stream = "stderr" if output_stream is None or output_stream is sys.stderr else output_stream
    stream = "stdout" if stream is sys.stdout else stream

    def write(values):
        one = values[0] if len(values) == 1 else None
        if isinstance(one, Tensor) and one.dtype.name == "string" and one.ndim == 0:
            line = one.numpy().decode("utf-8", "replace")
        else:
            line = sep.join([text_of(x, summarize) for x in values])
        _write(line + end, stream)

    if _core.is_tracing():
        when_run(write, inputs, "print")
    else:
        write(nest.map_structure(_as_tensors, inputs))


def _write(line, stream):
    if stream in ("stderr", "stdout"):
        stream = getattr(sys, stream)
    if isinstance(stream, str):
        if stream.startswith("file://"):
            with open(stream[7:], "a") as f:
                f.write(line)
            return
        import logging

        getattr(logging.getLogger("tensorflow"), stream.split(".")[-1], logging.info)(line)
    elif callable(stream) and not hasattr(stream, "write"):  # a function of a logger
        stream(line)
    else:
        stream.write(line)
        stream.flush()


# --- checks ---------------------------------------------------------------------------------------------------------------------


def assertion_text(data, summarize):
    limit = 3 if summarize is None else summarize
    shown = [x if isinstance(x, str) else _summary(any_tensor(x), limit) for x in data]
    return "assertion failed: " + " ".join(f"[{x}]" for x in shown)


def check_when_run(holds, text, data):
    """Raises InvalidArgumentError with text(data) where a traced condition does not hold. Nobody calls Python while it holds."""

    def fail(values):
        raise errors.InvalidArgumentError(None, None, text(values))

    _core.cond(ops.all(holds), lambda _: [], lambda _: when_run(fail, list(data), "assert"))


# --- functions of Python's ------------------------------------------------------------------------------------------------------


def _kinds_of(Tout):
    """(TensorSpec-like types, whether several results are a list)."""
    if Tout is None:
        return [], False
    many = isinstance(Tout, (list, tuple)) and not isinstance(Tout, TensorShape)
    kinds = []
    for kind in list(Tout) if many else [Tout]:
        shape = TensorShape(getattr(kind, "shape", None)) if hasattr(kind, "dtype") else TensorShape(None)
        kinds.append((as_dtype(getattr(kind, "dtype", kind)), shape))
    return kinds, many


def _results_as(result, kinds, many, what):
    """What a function gave, as tensors of the types that were declared."""
    if not kinds:
        return []
    values = list(result) if many or isinstance(result, (list, tuple)) and len(kinds) == len(result) else [result]
    if len(values) != len(kinds):
        raise ValueError(f"{what}: the function gives {len(values)} results, Tout names {len(kinds)}")
    return [_result_as(value, dtype, what) for value, (dtype, _) in zip(values, kinds)]


def _result_as(value, dtype, what):
    if isinstance(value, (Tensor, CoreVariable, Composite)):
        value = any_tensor(value)
        if value.dtype is not dtype:
            raise errors.InvalidArgumentError(None, None, f"{what}: the {dtype.name} that Tout names is a {value.dtype.name}")
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(x, (Tensor, CoreVariable)) for x in nest.flatten(value)):
        return _result_as(tensor(value), dtype, what)
    return any_tensor(np.asarray(value).astype(dtype.as_numpy_dtype) if dtype._code >= 0 else value, dtype)


class NoTensorYet:
    """What a function cannot compute with while it is traced: whatever is asked of it makes the function run eagerly."""

    def __tandem_tensor__(self):
        raise NotImplementedError

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__tandem_tensor__()


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul neg abs invert "
    "and rand or ror xor rxor lt le gt ge eq ne getitem len iter bool int float index array"
).split():
    setattr(NoTensorYet, f"__{_name}__", lambda self, *args, **kwargs: self.__tandem_tensor__())
NoTensorYet.__hash__ = object.__hash__


class UnknownShape(NoTensorYet):
    """What a Python function gives, where nobody has told its shape yet: set_shape, ensure_shape and reshape tell it."""

    def __init__(self, dtype, shape, tell, name):
        self._dtype, self._shape, self._tell, self._name = dtype, shape, tell, name

    dtype = property(lambda self: self._dtype)
    shape = property(lambda self: self._shape)
    name = property(lambda self: f"{self._name}:0")

    def get_shape(self):
        return self._shape

    def set_shape(self, shape):
        dims = dims_of(shape)
        if dims is not None:
            self._shape.assert_has_rank(len(dims))
        if dims is None or any(d is None for d in dims):
            raise NeedsData(f"{self._name}: its result has the shape {TensorShape(shape)}, where extents are not known")
        self._tell(dims)

    def __tandem_tensor__(self):
        tell = "set_shape, tf.ensure_shape or a TensorSpec in Tout tells it"
        raise NeedsData(f"the result of {self._name} has a shape that is not known; {tell}")


def dims_of(shape):
    """The extents of a shape argument: numbers, symbols, and None where nothing is known; None without a rank."""
    from tandem._face import shape as shape_argument

    symbols = getattr(shape, "_symbols", None)
    if symbols is not None:
        return list(symbols)
    if isinstance(shape, TensorShape):
        return None if shape.rank is None else list(shape)
    shape = shape_argument(shape)
    if isinstance(shape, Tensor):
        shape = [shape[i] for i in range(shape.shape[0])] if shape.is_traced else shape.numpy().tolist()
    return None if shape is None else [d if d is None or isinstance(d, (_core.Dim, Tensor)) else int(d) for d in shape]


_KEPT_TAPES = 64  # a call whose tape is gone computes again for its gradient


class _Differentiable:
    """A Python function of tensors with its gradient: a call is recorded if its gradient will be wanted."""

    def __init__(self, compute, of_inputs, of_results):
        self._compute, self._inputs, self._results = compute, of_inputs, of_results  # places of floating tensors
        self.is_wanted = False
        self._tapes, self._lock, self._tickets = OrderedDict(), threading.Lock(), itertools.count()

    def _recorded(self, values):
        from tandem._gradient import GradientTape

        watched = [values[i] for i in self._inputs]
        with GradientTape() as tape:
            tape.watch(watched)
            results = self._compute(values)
        return tape, watched, results

    def forward(self, values):
        """Results, and a ticket for the way back."""
        if not self.is_wanted:
            return [*self._compute(values), convert(-1, "int64")]
        tape, watched, results = self._recorded(values)
        with self._lock:
            ticket = next(self._tickets)
            self._tapes[ticket] = tape, watched, results
            if len(self._tapes) > _KEPT_TAPES:
                self._tapes.popitem(last=False)
        return [*results, convert(ticket, "int64")]

    def backward(self, ticket, values, upstream):
        with self._lock:
            found = self._tapes.pop(ticket, None)
        tape, watched, results = found or self._recorded(values)
        gradients = tape.gradient([results[i] for i in self._results], watched, upstream)
        zeros = [ops.full(ops.cast(0, dtype=w.dtype), shape=w.dims) for w in watched]
        return [z if g is None else tensor(g) for g, z in zip(gradients, zeros)]


def _traced_call(func, values, kinds, many, unpack, what):
    shapes = call_shapes()
    call = None if shapes is None else shapes.next_call()
    dims, unknown = [], []
    for i, (dtype, shape) in enumerate(kinds):
        if dtype._code < 0:
            raise NeedsData(f"{what} gives a tensor of {dtype.name}")
        known = list(shape) if shape.is_fully_defined() else None if shapes is None else shapes.known(call, i)
        dims.append(known)
        if known is None:
            unknown.append(i)
    if unknown and shapes is None:
        raise NeedsData(f"the result of {what} has a shape that is not known; a TensorSpec in Tout tells it")
    told = [i for i in range(len(kinds)) if dims[i] is not None]
    places = [i for i, x in enumerate(values) if _is_operand(x)]
    operands = [tensor(values[i]) for i in places]

    def compute(numbers):
        given = list(values)
        for i, x in zip(places, numbers):
            given[i] = x
        found = _results_as(func(*[unpack(x) for x in given]), kinds, many, what)
        return [_fitting(found[i], dims[i]) for i in told]

    specs = [(kinds[i][0], dims[i]) for i in told]
    of_inputs = [k for k, x in enumerate(operands) if x.dtype.is_floating]
    of_results = [k for k, i in enumerate(told) if kinds[i][0].is_floating]
    if unpack is _as_it_is and of_inputs and of_results:
        found = _differentiable_call(compute, operands, specs, of_inputs, of_results, what)
    else:
        found = _core.host_call(compute, operands, specs, what)
    results = dict(zip(told, found))
    for i in unknown:
        results[i] = UnknownShape(*kinds[i], lambda d, i=i: shapes.learn(call, i, d), what)
    return [results[i] for i in range(len(kinds))]


def _fitting(x, dims):
    """As the program said with reshape, when the number of elements is right."""
    return x if len(dims) == x.ndim or not all(isinstance(d, int) for d in dims) else ops.reshape(x, shape=dims)


def _differentiable_call(compute, operands, specs, of_inputs, of_results, what):
    function, count = _Differentiable(compute, of_inputs, of_results), len(specs)
    # Under a tape the way back finds the call's own tape by the ticket. Else nobody knows whether there is a way back: it calls again.
    if _core.is_recording():
        found = _core.host_call(function.forward, operands, [*specs, (as_dtype("int64"), [])], what)
    else:
        found = [*_core.host_call(compute, operands, specs, what), convert(-1, "int64")]

    def forward(inputs):
        results = inputs[len(operands) : len(operands) + count]
        ticket = inputs[-1]

        def backward(upstream, numbers=()):
            function.is_wanted = True

            def call(values):
                at = int(values[0].item())
                return function.backward(at, values[1 : 1 + len(operands)], values[1 + len(operands) :])

            types = [(operands[k].dtype, operands[k].dims) for k in of_inputs]
            passed = [ticket, *inputs[: len(operands)], *upstream]
            made = iter(_core.host_call(call, passed, types, f"gradient of {what}"))
            gradients = [next(made) if k in of_inputs else None for k in range(len(operands))]
            return gradients + [None] * (len(inputs) - len(operands))

        return [ops.identity(results[k]) for k in of_results], backward

    through = _core.custom_gradient(forward, [*operands, *found])
    results = list(found[:count])
    for k, x in zip(of_results, through):
        results[k] = x
    return results


def _as_it_is(x):
    return x


def _call(func, inp, Tout, unpack, what):
    inp = [] if inp is None else inp
    values = [any_tensor(x) for x in (inp if isinstance(inp, (list, tuple)) else [inp])]
    kinds, many = _kinds_of(Tout)
    if _core.is_tracing():
        if any(isinstance(x, Composite) and hasattr(x, "_components") for x in values):
            raise NeedsData(f"{what} takes a tensor that is not one of numbers")
        found = _traced_call(func, values, kinds, many, unpack, what)
    else:
        found = _results_as(func(*[unpack(x) for x in values]), kinds, many, what)
    return found if many else found[0] if kinds else None


def py_function(func=None, inp=None, Tout=None, name=None):
    """A Python function of tensors. Its gradient is that of what it computes."""
    if func is None:
        return lambda f: lambda *args: py_function(f, args, Tout, name)
    return _call(func, inp, Tout, _as_it_is, "py_function")


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """A Python function of arrays. It has no gradient."""
    if func is None:
        return lambda f: lambda *args: numpy_function(f, args, Tout, stateful, name)
    return _call(func, inp, Tout, lambda x: x.numpy(), "numpy_function")
