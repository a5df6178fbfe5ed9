"""Tensors, shapes, control flow: what all other parts of the backend and Keras itself stand on."""
import contextlib

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.name_scope import name_scope as name_scope
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope
from keras.src.backend.config import floatx

from tandem import _convert, _core, _float8
from tandem._complex import ComplexTensor
from tandem._convert import NotOneTensor
from tandem._sparse import SparseTensor
from tandem._trace import CallShapes, NeedsData, begun_again

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
SUPPORTS_GRADIENT = True
IS_THREAD_SAFE = False  # callbacks run between steps, on the thread that called fit

ops = _core.keras_ops
Tensor = _core.Tensor
_slice = slice  # Python's own; a function of this name is below


_FLOATS = ("float32", "float64", "float16", "bfloat16")


# --- tensors ----------------------------------------------------------------------------------------------------------------------------


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    if isinstance(x, SparseTensor):
        if sparse:
            return x if dtype is None else _cast_sparse(x, dtype)
        x = dense(x)
    elif sparse and not isinstance(x, Tensor):  # a tensor that is dense stays so
        raise ValueError("`sparse=True` is not supported with the tandem backend")
    if ragged:
        raise ValueError("`ragged=True` is not supported with the tandem backend")
    if isinstance(x, KerasVariable):
        x = x.value
    if isinstance(x, ComplexTensor) or dtype is not None and is_complex(dtype) or type(x) is complex or getattr(getattr(x, "dtype", None), "kind", None) == "c":
        return _complex_tensor(x, dtype)
    if isinstance(x, _float8.Float8Tensor):
        return x if dtype is None else _float8.cast(x, standardize_dtype(dtype))
    if dtype is not None and _float8.is_float8(dtype):
        return _float8.Float8Tensor.make(convert_to_tensor(x), dtype)
    if isinstance(x, KerasTensor):
        raise ValueError(f"a KerasTensor has no value: {x}")
    if dtype is not None:
        dtype = standardize_dtype(dtype)
    if isinstance(x, Tensor):
        return x if dtype is None or x.dtype.name == dtype else _core.ops.cast(x, dtype=dtype)
    if dtype is None and isinstance(x, float):
        dtype = floatx()
    if type(x) is float and dtype in _FLOATS and _core.is_tracing():
        return _core.ops.cast(x, dtype=dtype)  # a number in the graph, where equal ones are one; a tensor would be an operand of its own
    return _convert.convert(x, dtype)


def is_complex(dtype):
    return "complex" in str(dtype)


def _complex_tensor(x, dtype):
    """Numbers without a type are complex64, NumPy's arrays as they are."""
    if dtype is not None and not is_complex(dtype):
        raise NotOneTensor(x if isinstance(x, ComplexTensor) else ComplexTensor.make(x))
    if dtype is None:
        dtype = "complex128" if str(getattr(x, "dtype", "")).endswith("complex128") else "complex64"
    return ComplexTensor.make(convert_to_tensor(x) if isinstance(x, KerasVariable) else x, standardize_dtype(dtype))


def convert_to_numpy(x):
    if isinstance(x, KerasVariable):
        x = x.value
    if isinstance(x, SparseTensor):
        x = dense(x)
    if isinstance(x, _core.Variable):
        x = x.read()
    return np.asarray(x.numpy()) if isinstance(x, (Tensor, ComplexTensor)) else np.array(x)


def is_tensor(x):
    return isinstance(x, (Tensor, SparseTensor, ComplexTensor, _float8.Float8Tensor))


def dense(x):
    """What stands in a sparse tensor, in one of all elements. In a compiled function, where the places are computed, too."""
    flat = ops.matmul(_whole(x.indices), _whole(_strides(x)))
    total = ops.full(ops.cast(0, dtype=x.dtype), shape=[_product(_extents(x))])
    made = ops.scatter(total, ops.expand_dims(flat, axis=[1]), x.values, mode="add")
    return ops.reshape(made, shape=_extents(x))


def _whole(x):
    return ops.cast(x, dtype="int64")


def _extents(x):
    if x.dense_shape.is_traced:
        raise NeedsData("a sparse tensor whose shape is computed")
    return [int(n) for n in x.dense_shape.numpy()]


def _product(extents):
    total = 1
    for n in extents:
        total *= n
    return total


def _strides(x):
    extents = _extents(x)
    return np.array([_product(extents[i + 1 :]) for i in range(len(extents))], np.int64)


def _cast_sparse(x, dtype):
    return x.with_values(ops.cast(x.values, dtype=standardize_dtype(dtype)))


def shape(x):
    """The extents; where one is not known yet, an object that stands for it in other shapes."""
    if isinstance(x, KerasTensor):
        return x.shape
    if isinstance(x, (Tensor, ComplexTensor, _float8.Float8Tensor)):
        return x.dims
    return tuple(x.shape)


def cast(x, dtype):
    if isinstance(x, SparseTensor):
        return _cast_sparse(x, dtype)
    if isinstance(x, ComplexTensor) and not is_complex(dtype):
        return cast(x.re, dtype)
    return convert_to_tensor(x, dtype=standardize_dtype(dtype))


def stop_gradient(variable):
    return ops.stop_gradient(convert_to_tensor(variable))


def random_seed_dtype():
    return "uint32"  # the engine's random numbers come from keys of two of them


@contextlib.contextmanager
def device_scope(device_name):
    if not isinstance(device_name, str):
        raise ValueError(f"Invalid value for argument `device_name`. Expected a string like 'cpu:0'. Received: device_name='{device_name}'")
    import tandem

    with tandem.device(device_name):
        yield


# --- shapes of results ------------------------------------------------------------------------------------------------------------------


class _Leaf:
    """The place of a tensor in a structure."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


def _specs(fn, args, kwargs, unknown):
    """What fn gives for KerasTensors, with `unknown` for each extent that is None: KerasTensors whose unknown extents are Dims."""
    symbols = [x for x in tree.flatten((args, kwargs)) if isinstance(x, KerasTensor)]
    structure, shapes = [], CallShapes()

    def body(tensors):
        given = iter(tensors)
        with StatelessScope(), shapes.trace_of(tensors):
            a, k = tree.map_structure(lambda x: next(given) if isinstance(x, KerasTensor) else x, (args, kwargs))
            result = fn(*a, **k)
        found = []

        def leaf(x):
            if isinstance(x, KerasVariable):
                x = x.value
            if not isinstance(x, Tensor):
                return x
            found.append(x)
            return _Leaf(len(found) - 1)

        structure.append(tree.map_structure(leaf, result))
        return found

    function = _core.Function(body, "compute_output_spec")
    specs = [(x.dtype, [unknown if d is None else d for d in x.shape]) for x in symbols]
    results = begun_again(lambda: function.result_specs(specs))
    return structure[-1], results


def _merged(extents):
    """An extent that came out the same for all sizes that were tried."""
    first = extents[0]
    return first if isinstance(first, int) and all(e == first for e in extents) else None


def compute_output_spec(fn, *args, **kwargs):
    with StatelessScope(), SymbolicScope():
        try:
            structure, results = _specs(fn, args, kwargs, _core.symbol("d"))
            several = [results]
        except Exception:
            # Something wanted a number. Two sizes tell which extents depend on it.
            structure, results = _specs(fn, args, kwargs, 83)
            several = [results, _specs(fn, args, kwargs, 89)[1]]

        def keras_tensor(x):
            if not isinstance(x, _Leaf):
                return x
            dtype, dims = results[x.number]
            extents = [[r[x.number][1][i] for r in several] for i in range(len(dims))]
            return KerasTensor(tuple(_merged(e) for e in extents), dtype.name)

        return tree.map_structure(keras_tensor, structure)


# --- control flow -----------------------------------------------------------------------------------------------------------------------


def _flat(structure):
    """Leaves as tensors, and how to put tensors back. None stays None."""
    leaves = tree.flatten(structure)
    tensors = [convert_to_tensor(x) for x in leaves if x is not None]

    def pack(values):
        given = iter(values)
        return tree.pack_sequence_as(structure, [None if x is None else next(given) for x in leaves])

    return tensors, pack


def cond(pred, true_fn, false_fn):
    if isinstance(pred, KerasVariable):
        pred = pred.value
    if not isinstance(pred, Tensor):
        return true_fn() if pred else false_fn()
    packs = []

    def branch(fn):
        def run(_):
            tensors, pack = _flat(fn())
            packs.append(pack)
            return tensors

        return run

    if pred.dtype.name != "bool":
        pred = ops.not_equal(pred, 0)
    results = _core.cond(pred, branch(true_fn), branch(false_fn))
    return packs[0](results)


def switch(index, branches, *operands):
    packs = []

    def branch(fn):
        def run(_):
            tensors, pack = _flat(fn(*operands))
            packs.append(pack)
            return tensors

        return run

    index = convert_to_tensor(index, "int32")
    results = _core.switch_case(index, [branch(fn) for fn in branches])
    return packs[0](results)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    is_tuple = isinstance(loop_vars, (tuple, list))
    state = tuple(loop_vars) if is_tuple else (loop_vars,)
    tensors, pack = _flat(state)

    def test(values):
        return [ops.cast(convert_to_tensor(cond(*pack(values))), dtype="bool")]

    def step(values):
        new = body(*pack(values))
        new = tuple(new) if is_tuple else (new,)
        return [cast(a, b.dtype) for a, b in zip(_flat(new)[0], tensors, strict=True)]

    results = pack(_core.while_loop(test, step, tensors, maximum_iterations))
    return results if is_tuple else results[0]


def fori_loop(lower, upper, body_fun, init_val):
    def test(i, _):
        return ops.less(i, upper)

    def step(i, value):
        return ops.add(i, 1), body_fun(i, value)

    return while_loop(test, step, (convert_to_tensor(lower, "int32"), init_val))[1]


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    carry, pack_carry = _flat(init)
    sequences, pack_sequence = _flat(xs)
    packs = []

    def body(values, slices):
        new, output = f(pack_carry(values), pack_sequence(slices) if xs is not None else None)
        outputs, pack_output = _flat(output)
        packs.append(pack_output)
        return _flat(new)[0], outputs

    last, outputs = _core.scan(body, carry, sequences, None if sequences else length, reverse)
    return pack_carry(last), packs[0](outputs) if packs else None


def map(f, xs):
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def vectorized_map(function, elements):
    return map(function, elements)


def associative_scan(f, elems, reverse=False, axis=0):
    """All prefixes under an associative function, in a number of steps that grows with the logarithm of the length."""
    tensors, pack = _flat(elems)
    rank = tensors[0].ndim
    axis = axis + rank if axis < 0 else axis
    count = tensors[0].shape[axis]
    if count is None:
        raise NotImplementedError("associative_scan: the length of the axis is not known while tracing")
    if any(t.shape[axis] != count for t in tensors):
        raise ValueError(f"Array inputs to associative_scan must have the same first dimension. Received: {[t.shape for t in tensors]}")
    if reverse:
        tensors = [ops.flip(t, axis=[axis]) for t in tensors]

    def part(t, *range_):
        return t[(_slice(None),) * axis + (_slice(*range_),)]

    def combine(a, b):
        return _flat(f(pack(a), pack(b)))[0]

    def prefixes(parts):
        n = parts[0].shape[axis]
        if n < 2:
            return parts
        pairs = combine([part(t, None, n - 1, 2) for t in parts], [part(t, 1, None, 2) for t in parts])
        odd = prefixes(pairs)
        if n % 2 == 0:
            even = combine([part(t, None, -1) for t in odd], [part(t, 2, None, 2) for t in parts])
        else:
            even = combine(odd, [part(t, 2, None, 2) for t in parts])
        even = [ops.concatenate([part(t, None, 1), e], axis=axis) for t, e in zip(parts, even)]
        return [_interleaved(e, o, axis) for e, o in zip(even, odd)]

    results = prefixes(tensors)
    if reverse:
        results = [ops.flip(t, axis=[axis]) for t in results]
    return pack(results)


def _interleaved(even, odd, axis):
    """even[0], odd[0], even[1], odd[1], …; even may have one more."""
    n, m = even.shape[axis], odd.shape[axis]
    both = ops.stack([even[(_slice(None),) * axis + (_slice(0, m),)], odd], axis=axis + 1)
    shape = list(even.dims)
    shape[axis] = 2 * m
    both = ops.reshape(both, shape=shape)
    if n == m:
        return both
    return ops.concatenate([both, even[(_slice(None),) * axis + (_slice(m, n),)]], axis=axis)


# --- parts of tensors -------------------------------------------------------------------------------------------------------------------


def scatter(indices, values, shape):
    values = convert_to_tensor(values)
    return ops.scatter(ops.full(ops.cast(0, dtype=values.dtype), shape=shape), _indices(indices), values, mode="add")


def scatter_update(inputs, indices, updates, reduction=None):
    inputs = convert_to_tensor(inputs)
    if reduction not in (None, "add", "max", "min", "mul"):
        raise ValueError(f"Unsupported reduction: {reduction}")
    return ops.scatter(inputs, _indices(indices), convert_to_tensor(updates, inputs.dtype), mode=reduction or "set")


def _indices(indices):
    indices = convert_to_tensor(indices)
    return indices if indices.dtype.name in ("int32", "int64") else cast(indices, "int32")


def slice(inputs, start_indices, shape):
    inputs = convert_to_tensor(inputs)
    sizes = [inputs.dims[i] - start_indices[i] if isinstance(s, int) and s == -1 else s for i, s in enumerate(shape)]
    return ops.dynamic_slice(inputs, _starts(start_indices), sizes=sizes)


def slice_update(inputs, start_indices, updates):
    inputs = convert_to_tensor(inputs)
    return ops.dynamic_update_slice(inputs, convert_to_tensor(updates, inputs.dtype), _starts(start_indices))


def _starts(start_indices):
    if isinstance(start_indices, (list, tuple)):
        return ops.stack([cast(i, "int32") for i in start_indices])
    return cast(start_indices, "int32")


def unstack(x, num=None, axis=0):
    return list(ops.unstack(convert_to_tensor(x), axis=axis))


# --- gradients --------------------------------------------------------------------------------------------------------------------------


def custom_gradient(fun):
    """fun(*args) gives outputs and a function from their gradients to those of the arguments."""

    def wrapped(*args, **kwargs):
        tensors, pack = _flat(args)
        packs = []

        def forward(values):
            outputs, gradient = fun(*pack(values), **kwargs)
            flat, pack_outputs = _flat(outputs)
            packs.append(pack_outputs)

            def backward(upstream):
                up = pack_outputs(upstream)
                grads = gradient(*up) if isinstance(up, (list, tuple)) else gradient(up)
                grads = grads if isinstance(grads, (list, tuple)) else (grads,)
                return [None if g is None else convert_to_tensor(g) for g in tree.flatten(list(grads))]

            return flat, backward

        results = _core.custom_gradient(forward, tensors)
        return packs[0](results)

    return wrapped


def remat(f):
    """f, recomputed in the backward pass instead of kept."""

    def wrapped(*args, **kwargs):
        tensors, pack = _flat((args, kwargs))
        packs = []

        def forward(values):
            a, k = pack(values)
            flat, pack_outputs = _flat(f(*a, **k))
            packs.append(pack_outputs)
            return flat

        results = _core.remat(forward, tensors)
        return packs[0](results)

    return wrapped
