"""What the functions of the face do with ragged tensors."""
import numpy as np

from tandem import errors
from tandem._convert import Composite, convert
from tandem._face import Tensor, any_tensor, ints, number, ops
from tandem._ragged import RaggedTensor, _expanded, _merged, _pick


def _is_ragged(x):
    return isinstance(x, RaggedTensor)


def _like(x, ragged):
    """A tensor broadcast to the rows of a ragged tensor, as flat values."""
    x = any_tensor(x, None, ragged.dtype) if not isinstance(x, Composite) else x
    if x.ndim == 0:
        return x
    sizes = ragged.bounding_shape().numpy().tolist()
    places, _ = ragged._places(sizes)
    shape = [1] * (len(sizes) - x.ndim) + list(x.shape)
    from tandem import _arrays, _gather

    x = _arrays.reshape(x, shape)
    at = [np.zeros_like(p) if shape[i] == 1 else p for i, p in enumerate(places)]
    for i, p in enumerate(at):
        if p.size and p.max() >= shape[i]:
            raise errors.InvalidArgumentError(
                None, None, f"Unable to broadcast: dimension size mismatch in dimension {i}: {sizes[i]} and {shape[i]}"
            )
    return _gather.gather_nd(x, convert(np.stack(at, axis=-1).astype(np.int32)))


def _broadcast(a, b):
    """Both as (flat values, the ragged tensor that has the rows)."""
    if _is_ragged(a) and _is_ragged(b):
        if _same_rows(a, b):
            return a.flat_values, b.flat_values, a
        if a.ndim != b.ndim or a.ragged_rank != b.ragged_rank:
            big, small = (a, b) if a.ragged_rank >= b.ragged_rank else (b, a)
            flat = _like(small.to_tensor(), big)
            return (big.flat_values, flat, big) if big is a else (flat, big.flat_values, big)
        la, lb = np.diff(a._splits), np.diff(b._splits)
        if np.all((la == lb) | (la == 1) | (lb == 1)) and len(la) == len(lb) and a.ragged_rank == 1:
            sizes = np.maximum(la, lb) * (la > 0) * (lb > 0)
            wide = RaggedTensor(
                convert(np.zeros(int(sizes.sum()), np.int32)),
                np.concatenate([[0], np.cumsum(sizes)]).astype(a._splits.dtype),
                internal=True,
            )

            def spread(x, lengths):
                at = np.concatenate(
                    [
                        np.full(n, s) if m == 1 else np.arange(s, s + m) for s, m, n in zip(x._splits[:-1], lengths, sizes)
                    ] or [np.zeros(0)]
                )
                return _pick(x._values, at.astype(np.int64))

            return spread(a, la), spread(b, lb), wide
        raise errors.InvalidArgumentError(None, None, "Unable to broadcast: dimension size mismatch in dimension 1")
    if _is_ragged(a):
        return a.flat_values, _like(_fitting(b, a), a), a
    return _like(_fitting(a, b), b), b.flat_values, b


def _fitting(x, ragged):
    """A tensor beside a ragged one: where its extent is not 1, every row must be as long."""
    x = any_tensor(x, None, ragged.dtype) if not isinstance(x, Composite) else x
    extents, rows, axis = [1] * (ragged.ndim - x.ndim) + list(x.shape), ragged, 0
    while _is_ragged(rows):
        axis += 1
        lengths = np.diff(rows._splits)
        wrong = lengths[lengths != extents[axis]] if extents[axis] != 1 else lengths[:0]
        if wrong.size:
            raise errors.InvalidArgumentError(
                None, None, f"Unable to broadcast: dimension size mismatch in dimension {axis}: a row has {wrong[0]} values, the tensor {extents[axis]}"
            )
        rows = rows._values
    return x


def _same_rows(a, b):
    while _is_ragged(a) and _is_ragged(b):
        if not np.array_equal(a._splits, b._splits):
            return False
        a, b = a._values, b._values
    return not _is_ragged(a) and not _is_ragged(b)


def binary(name, a, b):
    from tandem import math

    if a is None or b is None:
        return name == "not_equal"
    if name in ("equal", "not_equal") and not _same_lengths(a, b):
        return name == "not_equal"
    x, y, rows = _broadcast(a, b)
    return rows.with_flat_values(getattr(math, name)(x, y))


def _same_lengths(a, b):
    """Whether rows can be compared: a tensor has rows of one length."""
    if _is_ragged(a) and _is_ragged(b):
        return _same_rows(a, b) or a.ragged_rank != b.ragged_rank
    ragged, other = (a, b) if _is_ragged(a) else (b, a)
    other = any_tensor(other)
    if other.ndim != ragged.ndim or ragged.ragged_rank != 1:
        return True
    return len(ragged) == other.shape[0] and bool(np.all(np.diff(ragged._splits) == other.shape[1])) or 1 in other.shape[:2]


def dispatch(function, args, kwargs):
    handler = _handlers.get(function.__name__)
    if handler is not None:
        return handler(*args, **kwargs)
    if function.__name__ in _binary_names:
        names = dict(zip(("x", "y"), args), **{k: v for k, v in kwargs.items() if k in ("x", "y")})
        return binary(function.__name__, names["x"], names["y"])
    if function.__name__ in _unary_names:
        found = [x for x in [*args, *kwargs.values()] if _is_ragged(x)]
        if len(found) == 1:
            swap = lambda x: x.flat_values if _is_ragged(x) else x  # noqa: E731
            return found[0].with_flat_values(function(*[swap(a) for a in args], **{k: swap(v) for k, v in kwargs.items()}))
    return NotImplemented


_binary_names = {
    "add", "subtract", "multiply", "divide", "truediv", "floordiv", "floormod", "mod", "pow", "maximum", "minimum", "less", "less_equal", "greater",
    "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "squared_difference", "divide_no_nan", "atan2", "truncatediv",
    "truncatemod", "realdiv", "bitwise_and", "bitwise_or", "bitwise_xor",
}  # fmt: skip
_unary_names = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cast", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "exp", "expm1", "floor", "identity",
    "is_finite", "is_inf", "is_nan", "lgamma", "log", "log1p", "log_sigmoid", "logical_not", "negative", "ones_like", "zeros_like", "real", "imag", "conj",
    "angle", "reciprocal", "rint", "round", "rsqrt", "saturate_cast", "sigmoid", "sign", "sin", "sinh", "softplus", "softsign", "sqrt", "square",
    "stop_gradient", "tan", "tanh", "clip_by_value", "check_numerics", "relu", "gelu", "elu", "selu", "leaky_relu", "relu6", "silu", "swish", "dropout",
    "as_string", "to_number", "lower", "upper", "strip", "length", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong", "regex_replace",
    "regex_full_match", "substr", "decode_base64", "encode_base64", "unicode_script", "ensure_shape", "embedding_lookup", "one_hot_flat", "invert", "bitcast",
    "stateless_dropout", "general_dropout",
}  # fmt: skip
_handlers = {}


def _handles(*names):
    def register(f):
        for name in names:
            _handlers[name] = f
        return f

    return register


def _reduce(segment, name):
    @_handles(name)
    def reduced(input_tensor, axis=None, keepdims=False, name=None):
        from tandem import math

        x = input_tensor
        whole = getattr(math, name_of)
        if axis is None:
            made = whole(x.flat_values)
            return made if not keepdims else ops.reshape(made, shape=[1] * x.ndim)
        every = sorted({a % x.ndim for a in ints(axis)}, reverse=True)
        for a in every:
            x = _reduce_axis(x, a, segment, whole) if _is_ragged(x) else whole(x, a)
        if keepdims:
            from tandem import _arrays

            for a in reversed(every):
                x = _arrays.expand_dims(x, a) if not _is_ragged(x) else _expand(x, a)
        return x

    name_of = name
    return reduced


def _reduce_axis(x, axis, segment, whole):
    if axis == 0:
        if x.ragged_rank > 1 or x.ndim < 2:
            dense_rows = [x[i] for i in range(len(x))]
            longest = max((len(r) for r in dense_rows), default=0)
            columns = [stack([r[j] for r in dense_rows if len(r) > j]) for j in range(longest)]
            return stack([_reduce_axis(c, 0, segment, whole) if _is_ragged(c) else whole(c, 0) for c in columns])
        columns = np.concatenate([np.arange(n) for n in np.diff(x._splits)] or [np.zeros(0, np.int64)]).astype(np.int64)
        count = int(np.diff(x._splits).max(initial=0))
        return _segment(segment, x._values, columns, count, whole)
    if axis == 1 and not _is_ragged(x._values):
        rows = np.repeat(np.arange(len(x)), np.diff(x._splits))
        return _segment(segment, x._values, rows, len(x), whole)
    if axis == 1:
        return stack([_reduce_axis(row, 0, segment, whole) if _is_ragged(row) else whole(row, 0) for row in x]) if len(x) else x
    inner = x._values
    made = _reduce_axis(inner, axis - 1, segment, whole) if _is_ragged(inner) else whole(inner, axis - 1)
    return x.with_values(made)


def _segment(segment, values, ids, count, whole):
    from tandem import _segments, math

    if segment in ("all", "any"):
        numbers = ops.cast(values, dtype="int32")
        made = _segments._reduced("prod" if segment == "all" else "max", numbers, convert(ids.astype(np.int32)), count)
        if segment == "any":
            sizes = np.bincount(ids, minlength=count)
            made = ops.where(convert((sizes > 0).reshape([-1] + [1] * (made.ndim - 1))), made, 0)
        return ops.not_equal(made, 0)
    if segment == "mean":
        total = _segments._reduced("sum", values, convert(ids.astype(np.int32)), count)
        sizes = np.bincount(ids, minlength=count).reshape([-1] + [1] * (total.ndim - 1))
        if values.dtype.is_integer:
            return math.truediv(total, convert(sizes, values.dtype))
        return ops.divide(total, convert(sizes, total.dtype))
    if segment in ("max", "min", "sum", "prod"):
        return getattr(_segments, "unsorted_segment_" + segment)(values, convert(ids.astype(np.int32)), count)
    if segment == "variance":
        mean = _segment("mean", values, ids, count, whole)
        off = ops.square(ops.subtract(values, ops.take(mean, convert(ids.astype(np.int32)), axis=0)))
        return _segment("mean", off, ids, count, whole)
    if segment == "std":
        return ops.sqrt(_segment("variance", values, ids, count, whole))
    raise NotImplementedError(f"a reduction '{segment}' of ragged tensors")


for _short in ("sum", "prod", "max", "min", "mean", "all", "any", "variance", "std"):
    _reduce(_short, f"reduce_{_short}")


@_handles("size")
def _size(input, out_type=None, name=None):
    from tandem import _arrays

    return _arrays.size(input.flat_values, out_type)


@_handles("rank")
def _rank(input, name=None):
    return convert(np.int32(input.ndim))


@_handles("shape")
def _shape(input, out_type=None, name=None):
    from tandem._row_partition import DynamicRaggedShape

    return DynamicRaggedShape.from_tensor(input, out_type or "int32")


# --- joining --------------------------------------------------------------------------------------------------------------------


def _as_ragged(x, depth=1):
    if _is_ragged(x):
        return x
    x = any_tensor(x)
    return RaggedTensor.from_tensor(x, ragged_rank=min(depth, max(x.ndim - 1, 1))) if x.ndim > 1 else x


@_handles("concat")
def concat(values, axis, name="concat"):
    from tandem import _arrays

    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if not any(_is_ragged(v) for v in values):
        return _arrays.concat(values, axis)
    rank = max(v.ndim for v in values if _is_ragged(v))
    axis = int(number(axis)) % rank
    depth = max(v.ragged_rank for v in values if _is_ragged(v))
    values = [_as_ragged(v, depth) for v in values]
    if axis == 0:
        inner = [v._values for v in values]
        joined = concat(inner, 0) if any(_is_ragged(v) for v in inner) else _arrays.concat(inner, 0)
        splits, base = [np.zeros(1, np.int64)], 0
        for v in values:
            splits.append(v._splits[1:] + base)
            base += v._splits[-1]
        return RaggedTensor(joined, np.concatenate(splits).astype(values[0]._splits.dtype), internal=True)
    if axis == 1:
        count = len(values[0])
        if any(len(v) != count for v in values):
            raise errors.InvalidArgumentError(None, None, "Input tensors have different sizes in dimension 0")
        inner = [v._values for v in values]
        joined = concat(inner, 0) if any(_is_ragged(v) for v in inner) else _arrays.concat(inner, 0)
        offsets = np.cumsum([0] + [int(v._splits[-1]) for v in values])
        at = [np.arange(v._splits[i], v._splits[i + 1]) + o for i in range(count) for v, o in zip(values, offsets)]
        lengths = np.sum([np.diff(v._splits) for v in values], axis=0)
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(values[0]._splits.dtype)
        return RaggedTensor(_pick(joined, np.concatenate(at or [np.zeros(0)]).astype(np.int64)), splits, internal=True)
    return values[0].with_values(concat([v._values for v in values], axis - 1))


@_handles("stack")
def stack(values, axis=0, name=None):
    from tandem import _arrays

    values = list(values)
    if not any(_is_ragged(v) for v in values):
        values = [any_tensor(v) for v in values]
        if len({tuple(v.shape) for v in values}) <= 1:
            return _arrays.stack(values, axis)
    if axis == 0:
        parts = []
        for v in values:
            v = v if _is_ragged(v) else any_tensor(v)
            parts.append(_expanded(v) if _is_ragged(v) else RaggedTensor(v, np.array([0, v.shape[0]], np.int64), internal=True))
        return concat(parts, 0)
    return concat([_expand(v, axis) for v in values], axis)


def _expand(x, axis):
    axis = axis % (x.ndim + 1)
    if not _is_ragged(x):
        from tandem import _arrays

        return _arrays.expand_dims(x, axis)
    if axis == 0:
        return _expanded(x)
    if axis == 1:
        made = RaggedTensor(x, np.arange(len(x) + 1, dtype=x._splits.dtype), internal=True)
        made._uniform = 1
        return made
    return x.with_values(_expand(x._values, axis - 1))


@_handles("expand_dims")
def expand_dims(input, axis, name=None):
    return _expand(input, int(number(axis)))


@_handles("squeeze")
def squeeze(input, axis=None, name=None):
    x = input
    for a in sorted({i % x.ndim for i in ints(axis)}, reverse=True):
        x = x[0] if a == 0 else _merged(x, a - 1, a)
    return x


@_handles("gather")
def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    axis = batch_dims if axis is None else axis
    if batch_dims:
        rows = [gather(p, i, axis=axis - 1, batch_dims=batch_dims - 1) for p, i in zip(params, indices)]
        return stack(rows)
    if axis not in (0, None):
        if _is_ragged(params):
            return params.with_values(
                gather(params._values, indices, axis=axis - 1)
            ) if axis > 1 else stack([gather(r, indices) for r in params])
        raise NotImplementedError("tf.gather of ragged indices along another axis than 0")
    if _is_ragged(indices):
        return indices.with_values(gather(params, indices._values))
    if not _is_ragged(params):
        from tandem import _gather

        return _gather.gather(params, indices)
    at = any_tensor(indices)
    if at.ndim != 1:
        if at.ndim == 0:
            return params[at.item()]
        return stack([gather(params, at[i]) for i in range(at.shape[0])])
    rows = at.numpy()
    if rows.size and (rows.min() < 0 or rows.max() >= len(params)):
        raise errors.InvalidArgumentError(None, None, f"indices = {rows.tolist()} is not in [0, {len(params)})")
    return _pick(params, rows.astype(np.int64))


@_handles("gather_nd")
def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    rows = any_tensor(indices).numpy()
    if rows.ndim == 1:
        x = params
        for i in rows:
            x = x[int(i)]
        return x
    return stack([gather_nd(params, convert(r)) for r in rows])


@_handles("boolean_mask")
def boolean_mask(tensor_=None, mask=None, axis=None, name=None, data=None):
    x = data if tensor_ is None else tensor_
    mask = mask if _is_ragged(mask) else any_tensor(mask)
    if _is_ragged(mask):
        x = _as_ragged(x)
        inner = boolean_mask(x._values, mask._values) if _is_ragged(mask._values) else None
        if inner is not None:
            return x.with_values(inner)
        keep = mask._values.numpy()
        lengths = np.array([int(keep[a:b].sum()) for a, b in zip(mask._splits[:-1], mask._splits[1:])], np.int64)
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(mask._splits.dtype)
        return RaggedTensor(_pick(x._values, np.flatnonzero(keep).astype(np.int64)), splits, internal=True)
    keep = mask.numpy()
    if keep.ndim == 1:
        return _pick(x if _is_ragged(x) else any_tensor(x), np.flatnonzero(keep).astype(np.int64))
    x = x if _is_ragged(x) else any_tensor(x)
    flat = _merged(x, 0, keep.ndim - 1)
    lengths = keep.sum(-1)
    values = _pick(flat, np.flatnonzero(keep.reshape(-1)).astype(np.int64))
    made = RaggedTensor(values, np.concatenate([[0], np.cumsum(lengths.reshape(-1))]).astype(np.int64), internal=True)
    for width in reversed(keep.shape[1:-1]):
        made = RaggedTensor.from_uniform_row_length(made, width)
    return made


@_handles("tile")
def tile(input, multiples, name=None):
    times = ints(multiples)
    x = input
    for axis, n in enumerate(times):
        if n != 1:
            x = concat([x] * n, axis)
    return x


@_handles("reverse")
def reverse(tensor_, axis, name=None):
    x = tensor_
    for a in ints(axis):
        x = _reversed(x, a % x.ndim)
    return x


def _reversed(x, axis):
    if not _is_ragged(x):
        return ops.flip(x, axis=[axis])
    if axis == 0:
        return _pick(x, np.arange(len(x))[::-1].astype(np.int64))
    if axis == 1:
        at = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(x._splits[:-1], x._splits[1:])] or [np.zeros(0)])
        return x.with_values(_pick(x._values, at.astype(np.int64)))
    return x.with_values(_reversed(x._values, axis - 1))


@_handles("where")
def where(condition, x=None, y=None, name=None):
    if x is None:
        sizes = condition.bounding_shape().numpy().tolist()
        places, _ = condition._places(sizes)
        keep = np.asarray(condition.flat_values.numpy()).astype(bool)
        return convert(np.ascontiguousarray(places.T[keep]).astype(np.int64))
    rows = next(v for v in (condition, x, y) if _is_ragged(v))
    if not _is_ragged(condition) and any_tensor(condition).ndim == 1:
        keep = any_tensor(condition).numpy()
        return stack([a if k else b for k, a, b in zip(keep, x, y)])

    def flat(v):
        return v.flat_values if _is_ragged(v) else _like(v, rows)

    from tandem import _arrays

    return rows.with_flat_values(_arrays.where(flat(condition), flat(x), flat(y)))


@_handles("one_hot")
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    from tandem import _arrays

    return indices.with_flat_values(_arrays.one_hot(indices.flat_values, depth, on_value, off_value, None, dtype))


@_handles("add_n")
def add_n(inputs, name=None):
    total = inputs[0]
    for x in inputs[1:]:
        total = total + x
    return total


@_handles("matmul")
def matmul(a, b, **options):
    from tandem import linalg

    if _is_ragged(a) and _is_ragged(b):
        rows = [linalg.matmul(_dense(x), _dense(y), **options) for x, y in zip(a, b)]
    elif _is_ragged(a):
        if not _is_ragged(a._values) and a._values.ndim > 1:
            return a.with_values(linalg.matmul(a._values, b, **options))
        b = any_tensor(b)
        rows = [linalg.matmul(_dense(x), b if b.ndim == 2 else b[i], **options) for i, x in enumerate(a)]
    else:
        rows = [linalg.matmul(any_tensor(a)[i], _dense(y), **options) for i, y in enumerate(b)]
    return stack([RaggedTensor.from_tensor(r) for r in rows])


def _dense(x):
    return x.to_tensor() if _is_ragged(x) else x


@_handles("softmax")
def softmax(logits, axis=None, name=None):
    from tandem import math

    return stack([softmax(r) if _is_ragged(r) else math.softmax(r) for r in logits])


@_handles("bincount")
def bincount(arr, weights=None, minlength=None, maxlength=None, dtype="int32", name=None, axis=None, binary_output=False):
    from tandem import _segments

    return _segments.bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output)


@_handles("split")
def split(value, num_or_size_splits, axis=0, num=None, name=None):
    axis = axis % value.ndim
    count = len(value) if axis == 0 else int(value.bounding_shape().numpy()[axis])
    sizes = [
        count // int(number(num_or_size_splits))
    ] * int(number(num_or_size_splits)) if isinstance(num_or_size_splits, (int, Tensor)) else ints(num_or_size_splits)
    made, at = [], 0
    for n in sizes:
        made.append(value[(slice(None),) * axis + (slice(at, at + n),)])
        at += n
    return made


@_handles("unstack")
def unstack(value, num=None, axis=0, name=None):
    return [value[i] for i in range(len(value))]


@_handles("unique")
def unique(x, out_idx="int32", name=None):
    from tandem import _gather

    return _gather.unique(x.flat_values, out_idx)


@_handles("dynamic_partition")
def dynamic_partition(data, partitions, num_partitions, name=None):
    numbers = any_tensor(partitions).numpy()
    return [_pick(data, np.flatnonzero(numbers == i).astype(np.int64)) for i in range(num_partitions)]


@_handles("reshape")
def reshape(tensor_, shape, name=None):
    from tandem import _arrays

    return _arrays.reshape(tensor_.to_tensor(), shape)


@_handles("count_nonzero")
def count_nonzero(input, axis=None, keepdims=None, dtype="int64", name=None):
    from tandem import math

    return math.reduce_sum(input.with_flat_values(ops.cast(ops.not_equal(input.flat_values, 0), dtype=dtype)), axis)
