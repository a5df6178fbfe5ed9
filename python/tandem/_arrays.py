"""Tensors made, shaped, joined and taken apart: the functions of tf itself. Those that pick and place elements are in _gather.py."""
import builtins
import math as _math

import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem import errors
from tandem._convert import NotOneTensor
from tandem._dtypes import as_dtype
from tandem._face import Composite, CoreVariable, Tensor, any_tensor, api, axes, axis_in, convert, count, ints, number, of_literal, ops, pair, shape as _shape_argument, strict, tensor
from tandem._host_calls import NoTensorYet, UnknownShape, dims_of
from tandem._shape import TensorShape
from tandem._trace import is_about_missing_values

int32, int64 = as_dtype("int32"), as_dtype("int64")
_py_range, _py_slice = builtins.range, builtins.slice


# --- making ---------------------------------------------------------------------------------------------------------------------


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    from tandem._ragged import RaggedTensor

    made = any_tensor(value, dtype, dtype_hint)
    if isinstance(made, RaggedTensor) and made is not value:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
    return made


def constant(value, dtype=None, shape=None, name="Const"):
    """A tensor of a value of Python's. With a shape, the value is reshaped, or one number repeated."""
    if dtype is not None and isinstance(value, Tensor):
        made = cast(value, dtype)
    elif isinstance(value, (Tensor, CoreVariable)) and shape is None:
        made = tensor(value)
    else:
        made = any_tensor(value, dtype)
        if dtype is None and not hasattr(value, "dtype"):
            made = of_literal(made)
    if shape is None:
        return made
    shape = TensorShape(ints(shape) if not isinstance(shape, TensorShape) else shape)
    if made.shape == shape:
        return made
    if made.shape.num_elements() == 1 and shape.num_elements() != 1:
        return fill(shape, reshape(made, []))
    if made.shape.num_elements() == shape.num_elements():
        return reshape(made, shape)
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {made} (converted from {value}) has "
        f"{made.shape.num_elements()} elements, "
        f"but got `shape` {shape} with {shape.num_elements()} elements."
    )


@api
def cast(x, dtype, name=None):
    dtype = as_dtype(dtype)
    if dtype._code < 0:
        if dtype.is_complex:
            from tandem._complex import ComplexTensor

            return ComplexTensor.make(any_tensor(x), dtype)
        if dtype.name == "string" and getattr(x, "dtype", None) is dtype:
            return x
        if dtype.name.startswith("float8"):
            from tandem import _float8

            if _float8.is_float8(dtype):
                return _float8.Float8Tensor.make(any_tensor(x), dtype)
        raise NotImplementedError(f"tf.cast to {dtype.name}")
    x = tensor(x)
    if x.dtype is dtype:
        return x
    return ops.cast(x, dtype=dtype)


@api
def saturate_cast(value, dtype, name=None):
    value, dtype = tensor(value), as_dtype(dtype)
    if value.dtype is dtype:
        return value
    if value.dtype.is_bool or dtype.is_bool:
        raise TypeError(f"saturate_cast: bools have no limits, got {value.dtype.name} to {dtype.name}\n  hint: tf.cast")
    if dtype.is_complex:
        return cast(saturate_cast(value, dtype.real_dtype), dtype)
    if dtype.is_floating:
        if float(dtype.max) >= float(value.dtype.max):
            return cast(value, dtype)
        limits = (max(float(dtype.min), float(value.dtype.min)), min(float(dtype.max), float(value.dtype.max)))
        low, high = [convert(np.array(limit).astype(value.dtype.as_numpy_dtype)) for limit in limits]
        return cast(strict.clip(value, low, high), dtype)
    if value.dtype.is_floating:
        wide = cast(value, "float64")
        low, high = float(dtype.min), float(dtype.max)
        made = cast(ops.clip(wide, convert(low, "float64"), convert(high, "float64")), dtype)
        return where(ops.greater_equal(wide, high), convert(np.array(dtype.max, dtype.as_numpy_dtype)), made)
    low, high = max(value.dtype.min, dtype.min), min(value.dtype.max, dtype.max)
    return cast(strict.clip(value, convert(low, value.dtype), convert(high, value.dtype)), dtype)


@api
def identity(input, name=None):
    from tandem._control import map_composite

    if isinstance(input, Composite):
        return map_composite(identity, input)
    device = _core.current_device()
    return _core.to_device(tensor(input), device) if device else ops.identity(tensor(input))


def identity_n(input, name=None):
    return [identity(x) for x in input]


@api
def stop_gradient(input, name=None):
    return ops.stop_gradient(tensor(input))


@api
def fill(dims, value, name=None, layout=None):
    value = tensor(value)
    if value.ndim and value.shape.num_elements() == 1:
        value = reshape(value, [])
    if value.ndim:
        raise errors.InvalidArgumentError(None, None, f"fill: value must be a scalar, got shape {value.shape}")
    return ops.full(value, shape=_extents(dims))


def _extents(dims):
    dims = _shape_argument(dims)
    if isinstance(dims, (list, tuple)) and any(d is None for d in dims):
        raise ValueError(f"Cannot convert a partially known TensorShape {TensorShape(dims)} to a Tensor.")
    return dims


def _full(number_):
    @api
    def make(shape, dtype=dtypes.float32, name=None, layout=None):
        dtype = as_dtype(dtype)
        if dtype.name == "string":
            return fill(shape, b"" if not number_ else b"1")
        if dtype.is_complex:
            return cast(make(shape, dtype.real_dtype), dtype)
        return ops.full(convert(np.array(number_, dtype.as_numpy_dtype)), shape=_extents(shape))

    return make


def _full_like(number_):
    @api
    def make(input, dtype=None, name=None, layout=None):
        input = any_tensor(input)
        if not isinstance(input, Tensor) and dtype is None:
            raise NotOneTensor(input)
        dtype = input.dtype if dtype is None else as_dtype(dtype)
        if not hasattr(input, "dims"):
            raise NotOneTensor(input)
        if dtype._code < 0:
            return (zeros if not number_ else ones)(input.dims, dtype)
        return ops.full(convert(np.array(number_, dtype.as_numpy_dtype)), shape=input.dims)

    return make


zeros, ones, zeros_like, ones_like = _full(0), _full(1), _full_like(0), _full_like(1)
for _name in ("zeros", "ones", "zeros_like", "ones_like"):
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name


def range(start, limit=None, delta=1, dtype=None, name="range"):
    if limit is None:
        start, limit = 0, start
    parts = [start, limit, delta]
    if dtype is None:
        kinds = [as_dtype(p.dtype) if hasattr(p, "dtype") else dtypes.float32 if isinstance(p, float) else int32 for p in parts]
        order = ["int32", "int64", "bfloat16", "float16", "float32", "float64"]
        dtype = max(kinds, key=lambda k: order.index(k.name) if k.name in order else 0)
    dtype = as_dtype(dtype)
    if any(isinstance(p, Tensor) and p.is_traced for p in parts) or any(isinstance(p, _core.Dim) for p in parts):
        return _symbolic_range(start, limit, delta, dtype)
    start, limit, delta = [number(p) for p in parts]
    if delta == 0:
        raise errors.InvalidArgumentError(None, None, "Requires delta != 0: 0")
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Requires start {'<=' if delta > 0 else '>='} limit when delta {'>' if delta > 0 else '<'} 0: {start}/{limit}",
        )
    if dtype.is_integer:
        made = np.arange(int(start), int(limit), int(delta), dtype=np.int64)
    else:
        count = _math.ceil((limit - start) / delta)
        made = start + np.arange(count, dtype=np.float64) * delta
    return convert(made.astype(dtype.as_numpy_dtype))


class RangeOfData(NoTensorYet):
    """A traced range whose length depends on numbers: a loop can count along it, but it is no tensor."""

    def __init__(self, start, limit, delta, dtype):
        self.start, self.limit, self.delta = (cast(tensor(x), dtype) for x in (start, limit, delta))
        self.dtype = dtype

    def __tandem_tensor__(self):
        raise _needs_data("tf.range of a tensor")


def _symbolic_range(start, limit, delta, dtype):
    try:
        return _range_of_extents(start, limit, delta, dtype)
    except (errors.InvalidArgumentError, TypeError) as e:
        if not is_about_missing_values(e):
            raise
        return RangeOfData(start, limit, delta, dtype)


def _range_of_extents(start, limit, delta, dtype):
    """The length is an extent of the trace: iota, scaled and moved."""
    start, delta = number(start) if not isinstance(start, Tensor) else start, number(delta)
    if isinstance(start, Tensor) or isinstance(limit, Tensor):
        length = tensor(limit) - start if not isinstance(limit, Tensor) else limit - cast(tensor(start), limit.dtype)
    else:
        length = limit - start
    if delta != 1:
        length = (length + (delta - 1)) // delta
    made = ops.iota(shape=[length], dtype=dtype if dtype.is_integer else int64)
    made = cast(made, dtype)
    if delta != 1:
        made = strict.multiply(made, convert(delta, dtype))
    return strict.add(made, cast(tensor(start), dtype)) if isinstance(start, Tensor) or start != 0 else made


def linspace(start, stop, num, name=None, axis=0):
    start, stop = pair(start, stop)
    start, stop, num = tensor(start), tensor(stop), num if _is_traced(num) else int(number(num))
    if start.dtype.is_integer:
        dtype = "float32" if start.dtype.size <= 2 else "float64"  # as truediv
        start, stop = cast(start, dtype), cast(stop, dtype)
    if _is_traced(num):
        return _linspace_of_extent(start, stop, num, axis)
    if num < 0:
        raise errors.InvalidArgumentError(None, None, f"linspace: num must not be negative, got {num}")
    if num == 0:
        return take_slice(expand_dims(start + stop, axis), axis_in(axis, max(start.ndim, stop.ndim) + 1), 0, 0)
    steps = ops.iota(shape=[num], dtype="int32")
    steps = cast(steps, start.dtype) / max(num - 1, 1)
    start, stop = expand_dims(start, axis), expand_dims(stop, axis)
    rank = max(start.ndim, stop.ndim)
    at = axis_in(axis, rank)
    steps = reshape(steps, [num if i == at else 1 for i in _py_range(rank)])
    made = start + (stop - start) * steps
    last = broadcast_to(stop, take_slice(made, at, num - 1).dims) if num > 1 else None
    return made if last is None else concat([take_slice(made, at, 0, num - 1), last], at)


def _linspace_of_extent(start, stop, num, axis):
    """As many numbers as an extent of the trace; the last one is `stop` itself."""
    start, stop = expand_dims(start, axis), expand_dims(stop, axis)
    rank = max(start.ndim, stop.ndim)
    at = axis_in(axis, rank)
    place = reshape(ops.iota(shape=[num], dtype="int32"), [-1 if i == at else 1 for i in _py_range(rank)])
    last = cast(tensor(num), "int32") - 1
    steps = cast(place, start.dtype) / cast(ops.maximum(last, 1), start.dtype)
    return ops.where(ops.logical_and(ops.equal(place, last), ops.greater(last, 0)), stop, start + (stop - start) * steps)


def take_slice(x, axis, start, stop=None):
    """x[..., start:stop, ...] along an axis; of one element when there is no stop."""
    key = [_py_slice(None)] * axis + [_py_slice(start, start + 1 if stop is None else stop)]
    return x[tuple(key)]


def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32, name=None):
    dtype = as_dtype(dtype)
    rows = count(num_rows)
    columns = rows if num_columns is None else count(num_columns)
    if dtype.is_complex:
        return cast(eye(rows, columns, batch_shape, dtype.real_dtype), dtype)
    made = ops.eye(rows=[rows], columns=[columns], dtype=dtype)
    if batch_shape is None:
        return made
    batch = _shape_argument(batch_shape)
    batch = list(batch) if not isinstance(batch, Tensor) else ints(batch)
    return broadcast_to(made, [*batch, rows, columns])


@api
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    if dtype is None:
        given = next((v for v in (on_value, off_value) if v is not None), None)
        dtype = dtypes.float32 if given is None else any_tensor(given).dtype
    dtype = as_dtype(dtype)
    axis = -1 if axis is None else axis
    hot = _one_hot_of_extent(tensor(indices), depth, axis) if _is_traced(depth) else ops.one_hot(
        tensor(indices), classes=int(number(depth)), axis=axis, dtype="bool"
    )
    if on_value is None and off_value is None and dtype.name != "string":
        return cast(hot, dtype)
    on = any_tensor(1 if on_value is None else on_value, dtype)
    off = any_tensor(0 if off_value is None else off_value, dtype)
    return where(hot, on, off)


def _is_traced(x):
    return isinstance(x, Tensor) and x.is_traced


def _one_hot_of_extent(indices, depth, axis):
    """As many classes as an extent of the trace: each index beside all of them."""
    at = axis_in(axis, indices.ndim + 1)
    classes = reshape(ops.iota(shape=[depth], dtype=indices.dtype), [-1 if i == at else 1 for i in _py_range(indices.ndim + 1)])
    return ops.equal(expand_dims(indices, at), classes)


# --- shapes ---------------------------------------------------------------------------------------------------------------------


@api
def shape(input, out_type=None, name=None):
    out_type = int32 if out_type is None else as_dtype(out_type)
    if isinstance(input, CoreVariable):
        return convert(np.array(input.shape, out_type.as_numpy_dtype))
    input = tensor(input)
    dims = input.dims
    if all(type(d) is int for d in dims):
        return convert(np.array(dims, out_type.as_numpy_dtype))
    return stack(
        [ops.extent(dims=[d], dtype=out_type) if not isinstance(d, int) else convert(d, out_type) for d in map(_scalar_dim, dims)]
    )


def _scalar_dim(d):
    return d


def shape_n(input, out_type=int32, name=None):
    return [shape(x, out_type) for x in input]


@api
def size(input, out_type=None, name=None):
    out_type = int32 if out_type is None else as_dtype(out_type)
    total = 1
    for d in tensor(input).dims:
        total = total * d
    return convert(np.array(total, out_type.as_numpy_dtype)) if isinstance(total, int) else reshape(
        ops.extent(dims=[total], dtype=out_type), []
    )


@api
def rank(input, name=None):
    return convert(np.array(tensor(input).ndim, np.int32))


@api
def reshape(tensor_, shape, name=None):
    if isinstance(tensor_, UnknownShape):
        tensor_.set_shape([None if isinstance(d, int) and d < 0 else d for d in dims_of(shape)])
    x = tensor(tensor_)
    wanted = _shape_argument(shape)
    if isinstance(wanted, (list, tuple)):
        wanted = [-1 if d is None else number(d) if isinstance(d, np.generic) else d for d in wanted]
    if 0 in x.dims and wanted is not None:  # of no elements, the extent that is not said follows from the others, as TensorFlow counts
        known = ints(wanted) if not any(isinstance(d, Tensor) and d.is_traced for d in (wanted if isinstance(wanted, list) else [wanted])) else []
        if known.count(-1) == 1 and 0 in known and all(isinstance(d, int) for d in x.dims):
            full = lambda extents: int(np.prod([d for d in extents if d > 0]))  # noqa: E731
            wanted = [full(x.dims) // full(known) if d == -1 else d for d in known]
    return ops.reshape(x, shape=wanted)


def _renamed(function, **names):
    """The function with TensorFlow's own names of arguments, where one of them would hide a helper here."""
    import functools

    @functools.wraps(function)
    def call(*args, **kwargs):
        for theirs, ours in names.items():
            if theirs in kwargs:
                kwargs[ours] = kwargs.pop(theirs)
        return function(*args, **kwargs)

    return call


reshape = _renamed(reshape, tensor="tensor_")


@api
def expand_dims(input, axis, name=None):
    x = tensor(input)
    axis = number(axis if not isinstance(axis, (list, tuple)) else axis[0])
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise errors.InvalidArgumentError(None, None, f"Tried to expand dim index {axis} for tensor with {x.ndim} dimensions.")
    return ops.expand_dims(x, axis=[axis])


@api
def squeeze(input, axis=None, name=None):
    x = tensor(input)
    axis = axes(axis)
    return ops.squeeze(x, axis=axis if axis else None)


@api
def transpose(a, perm=None, conjugate=False, name="transpose"):
    if conjugate and isinstance(a, Composite):
        from tandem import math

        a = math.conj(a)
        return transpose(a, perm)
    return ops.transpose(tensor(a), perm=ints(perm))


@api
def broadcast_to(input, shape, name=None):
    return ops.broadcast_to(tensor(input), shape=_shape_argument(shape))


def broadcast_static_shape(shape_x, shape_y):
    x, y = list(TensorShape(shape_x)), list(TensorShape(shape_y))
    rank = max(len(x), len(y))
    x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
    made = []
    for a, b in zip(x, y):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise ValueError(f"Incompatible shapes for broadcasting: {TensorShape(shape_x)} and {TensorShape(shape_y)}.")
        made.append(b if a == 1 else a if b == 1 else a if b is None else b if a is None else a)
    return TensorShape(made)


def broadcast_dynamic_shape(shape_x, shape_y):
    x, y = tensor(shape_x), tensor(shape_y)
    return convert(np.array(broadcast_static_shape(ints(x), ints(y)), x.dtype.as_numpy_dtype))


@api
def ensure_shape(x, shape, name=None):
    if isinstance(x, UnknownShape):
        return x.set_shape(shape)
    x, shape = tensor(x), TensorShape(shape)
    if not x.shape.is_compatible_with(shape):
        raise errors.InvalidArgumentError(
            None, None, f"Shape of tensor input {list(x.shape)} is not compatible with expected shape {list(shape)}."
        )
    return x


@api
def get_static_value(tensor_, partial=False):
    x = tensor(tensor_)
    if not x.is_traced:
        return x.numpy()
    try:
        return np.array([x[i].__index__() for i in _py_range(x.shape[0])] if x.ndim else x.__index__(), x.dtype.as_numpy_dtype)
    except Exception:
        return None


def is_tensor(x):
    from tandem._face import is_tensor_like

    return is_tensor_like(x)


def is_symbolic_tensor(tensor):
    return isinstance(tensor, Tensor) and tensor.is_traced


# --- joining and taking apart ---------------------------------------------------------------------------------------------------


def _same_types(values):
    """All of the type of the first tensor among them, or of the first value."""
    values = list(values) if not isinstance(values, Tensor) else unstack(values)
    first = next((v for v in values if isinstance(v, (Tensor, CoreVariable))), None)
    if first is None:
        first = next((v for v in values if isinstance(v, (np.ndarray, Composite))), values[0]) if values else None
        if first is None:
            raise ValueError("a list of at least one tensor is wanted")
        first = tensor(first)
    return [tensor(v) if isinstance(v, (Tensor, CoreVariable)) else tensor(v, first.dtype) if not isinstance(v, np.ndarray) else convert(v, first.dtype)
            for v in values]  # fmt: skip


@api
def concat(values, axis, name="concat"):
    if not isinstance(values, (list, tuple)):
        values = [values]
    values, axis = _same_types(values), number(axis)
    for v in values:
        if v.ndim == 0:
            raise errors.InvalidArgumentError(None, None, "concat: expected a tensor of rank 1 or more, got a scalar")
    if len(values) == 1:
        axis_in(axis, values[0].ndim)
        return identity(values[0])
    return strict.concatenate(values, axis=axis)


@api
def stack(values, axis=0, name="stack"):
    if isinstance(values, Tensor):
        return values if axis == 0 else stack(unstack(values), axis)
    values = _same_types(values)
    if not -values[0].ndim - 1 <= axis <= values[0].ndim:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-values[0].ndim - 1}, {values[0].ndim + 1})")
    return strict.stack(values, axis=axis)


def parallel_stack(values, name="parallel_stack"):
    return stack(values)


@api
def unstack(value, num=None, axis=0, name="unstack"):
    value = tensor(value)
    if value.ndim == 0:
        raise ValueError("Argument `value` must have at least one dimension, got a scalar")
    made = list(ops.unstack(value, axis=axis))
    if num is not None and number(num) != len(made):
        raise errors.InvalidArgumentError(None, None, f"unstack: axis {axis} of shape {value.shape} has {len(made)} elements, num is {num}")
    return made


@api
def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    value, axis = tensor(value), number(axis)
    parts = num_or_size_splits
    if isinstance(parts, (Tensor, CoreVariable, np.ndarray)):
        parts = number(parts) if parts.ndim == 0 else ints(parts)
    axis = axis_in(axis, value.ndim)
    extent = value.dims[axis]
    if isinstance(parts, (list, tuple, TensorShape)):
        sizes = [count(p) for p in parts]
        if -1 in sizes:
            sizes[sizes.index(-1)] = extent - (sum(sizes) + 1)
    else:
        if isinstance(extent, int) and extent % parts:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} (size = {extent}) "
                f"and num_split {parts}",
            )
        sizes = [extent // parts] * parts
    return list(ops.split(value, sizes=sizes, axis=axis))


@api
def tile(input, multiples, name=None):
    x = tensor(input)
    multiples = _shape_argument(multiples)
    if isinstance(multiples, Tensor) and not multiples.is_traced:
        multiples = ints(multiples)
    if isinstance(multiples, (list, tuple)) and all(isinstance(m, (int, np.integer)) for m in multiples):
        if len(multiples) != x.ndim:
            raise errors.InvalidArgumentError(
                None, None, f"Expected multiples argument to be a vector of length {x.ndim} but got length {len(multiples)}"
            )
        return ops.tile(x, repeats=[int(m) for m in multiples])
    multiples = [multiples[i] for i in _py_range(x.ndim)]
    # A repeat that is an extent: a new axis of that extent before each axis.
    spread, wide, final = [], [], []
    for d, m in zip(x.dims, multiples):
        m = _as_extent(m)
        spread += [1, d]
        wide += [m, d]
        final.append(m * d)
    return ops.reshape(ops.broadcast_to(ops.reshape(x, shape=spread), shape=wide), shape=final)


def _as_extent(m):
    """A traced whole number as an extent."""
    if isinstance(m, Tensor) and m.is_traced:
        return ops.full(convert(0), shape=[m]).dims[0]
    return number(m)


@api
def repeat(input, repeats, axis=None, name=None):
    x = tensor(input)
    if axis is None:
        x, axis = ops.reshape(x, shape=[-1]), 0
    axis = axis_in(axis, x.ndim)
    if isinstance(repeats, (list, tuple, np.ndarray, Tensor, CoreVariable)):
        counts = tensor(repeats)
        if counts.shape.num_elements() != 1:
            if counts.is_traced:
                raise _needs_data("tf.repeat with a tensor of repeats")
            at = np.repeat(np.arange(x.shape[axis]), counts.numpy())
            return ops.take(x, convert(at.astype(np.int32)), axis=axis)
        if counts.is_traced:  # an extent of the trace: each element along an axis of its own
            wide = ops.broadcast_to(expand_dims(x, axis + 1), shape=[*x.dims[: axis + 1], reshape(counts, []), *x.dims[axis + 1 :]])
            return reshape(wide, [*x.dims[:axis], -1, *x.dims[axis + 1 :]])
        repeats = number(ops.reshape(counts, shape=[]))
    return ops.repeat(x, repeats=int(repeats), axis=axis)


def _needs_data(what):
    from tandem._trace import NeedsData

    return NeedsData(f"{what} has a shape that depends on numbers")


@api
def pad(tensor_, paddings, mode="CONSTANT", constant_values=0, name=None):
    x = tensor(tensor_)
    if isinstance(paddings, Tensor) and paddings.is_traced:
        pairs = [(paddings[i, 0], paddings[i, 1]) for i in _py_range(x.ndim)]
    elif isinstance(paddings, (Tensor, CoreVariable, np.ndarray)):
        pairs = [(int(a), int(b)) for a, b in np.asarray(paddings)]
    else:
        pairs = [tuple(number(n) if not (isinstance(n, Tensor) and n.is_traced) else n for n in p) for p in paddings]
    if len(pairs) != x.ndim:
        raise errors.InvalidArgumentError(
            None, None, f"pad: paddings must have {x.ndim} rows, one for each axis, got {len(pairs)}"
        )
    low, high = [p[0] for p in pairs], [p[1] for p in pairs]
    mode = mode.upper()
    _check_paddings(x, pairs, mode)
    if mode == "CONSTANT":
        value = tensor(constant_values, x.dtype) if not isinstance(constant_values, (int, float)) else convert(
            np.array(constant_values).astype(x.dtype.as_numpy_dtype)
        )
        return strict.pad(x, value, low=low, high=high)
    if mode in ("REFLECT", "SYMMETRIC"):
        return ops.pad_mode(x, low=low, high=high, mode=mode.lower())
    raise ValueError(
        f"Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. Received `mode` = {mode!r}"
    )


def _check_paddings(x, pairs, mode):
    """A mirror has no more elements than the axis; with REFLECT the edge itself is not among them."""
    for axis, (pair_, extent) in enumerate(zip(pairs, x.shape)):
        for n in pair_:
            if isinstance(n, int) and n < 0:
                raise errors.InvalidArgumentError(None, None, f"pad: paddings must not be negative, got {n} for axis {axis}")
            most = None if mode == "CONSTANT" or extent is None else extent - (mode == "REFLECT")
            if isinstance(n, int) and most is not None and n > most:
                raise errors.InvalidArgumentError(
                    None, None, f"pad: {mode} takes at most {most} elements of axis {axis}, which has {extent}, got a padding of {n}"
                )


pad = _renamed(pad, tensor="tensor_")


@api
def reverse(tensor_, axis, name=None):
    x, axis = tensor(tensor_), ints(axis)
    return ops.flip(x, axis=axis) if axis else identity(x)


reverse = _renamed(reverse, tensor="tensor_")


@api
def roll(input, shift, axis, name=None):
    x = tensor(input)
    return ops.roll(x, shift=ints(shift), axis=[axis_in(a, x.ndim) for a in ints(axis)])


@api
def slice(input_, begin, size, name=None):
    x = tensor(input_)
    if any(isinstance(b, Tensor) and b.is_traced for b in (begin, *(begin if isinstance(begin, (list, tuple)) else ()))):
        sizes = _shape_argument(size)
        return ops.dynamic_slice(x, tensor(begin), sizes=[sizes[i] for i in _py_range(x.ndim)])
    begin = ints(begin)
    sizes = _shape_argument(size)
    sizes = ints(sizes) if isinstance(sizes, (Tensor, np.ndarray)) and not getattr(sizes, "is_traced", False) else [
        sizes[i] for i in _py_range(x.ndim)
    ]
    limits = []
    for i, (b, n) in enumerate(zip(begin, sizes)):
        n = _as_extent(n)
        limit = x.dims[i] if isinstance(n, int) and n == -1 else b + n
        if isinstance(limit, int) and isinstance(x.dims[i], int) and not (0 <= b <= x.dims[i] and b <= limit <= x.dims[i]):
            raise errors.InvalidArgumentError(None, None, f"Expected size[{i}] in [0, {x.dims[i] - b}], but got {n}")
        limits.append(limit)
    return ops.slice(x, start=begin, limit=limits, step=[1] * x.ndim)


@api
def strided_slice(
    input_,
    begin,
    end,
    strides=None,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
    var=None,
    name=None,
):
    begin, end = ints(begin), ints(end)
    strides = [1] * len(begin) if strides is None else ints(strides)
    key = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(b)
        else:
            key.append(_py_slice(None if begin_mask & bit else b, None if end_mask & bit else e, s))
    return tensor(input_)[tuple(key)]


@api
def meshgrid(*args, **kwargs):
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    parts = [reshape(tensor(a), [-1]) for a in args]
    count = len(parts)
    if indexing == "xy" and count > 1:
        order = [1, 0, *_py_range(2, count)]
    else:
        order = list(_py_range(count))
    dims = [parts[i].dims[0] for i in order]
    made = []
    for i, part in enumerate(parts):
        at = order.index(i)
        made.append(broadcast_to(reshape(part, [dims[j] if j == at else 1 for j in _py_range(count)]), dims))
    return made


@api
def where(condition, x=None, y=None, name=None):
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    condition = tensor(condition)
    if x is None:
        if condition.is_traced:
            raise _needs_data("tf.where with one argument")
        return convert(np.argwhere(condition.numpy()).astype(np.int64))
    condition = condition if condition.dtype.is_bool else ops.not_equal(condition, 0)
    if isinstance(x, Composite) or isinstance(y, Composite):
        raise NotOneTensor(x if isinstance(x, Composite) else y)
    x, y = pair(x, y)
    return strict.where(condition, x, y)


@api
def bitcast(input, type, name=None):
    x, dtype = tensor(input), as_dtype(type)
    if dtype.is_bool or x.dtype.is_bool:
        if dtype is x.dtype:
            return x
        raise errors.InvalidArgumentError(None, None, f"bitcast: bools have no bits of other types, got {x.dtype.name} to {dtype.name}")
    ratio = x.dtype.size // dtype.size
    if ratio > 1:  # each number becomes a row of smaller ones
        return ops.reshape(ops.bitcast(ops.reshape(x, shape=[-1]), dtype=dtype), shape=[*x.dims, ratio])
    ratio = dtype.size // x.dtype.size
    if ratio > 1:  # and a row becomes one larger number
        if not x.ndim or x.shape[-1] != ratio:
            raise errors.InvalidArgumentError(
                None, None, f"bitcast: from {x.dtype.name} to {dtype.name} the last axis must have {ratio} elements, got shape {x.shape}"
            )
        return ops.reshape(ops.bitcast(x, dtype=dtype), shape=x.dims[:-1])
    return ops.bitcast(x, dtype=dtype)
