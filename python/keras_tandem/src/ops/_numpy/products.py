"""Sums of products."""
import numpy as np

from keras_tandem.src.ops._numpy.common import Dim, SparseTensor, axis_of, cast, convert_to_tensor, floating, function, ops, promoted, resulting


def _of_two(name):
    """A row whose operands are numbers: of bools the result is one again."""
    row = getattr(ops, name)

    def body(x1, x2):
        x1, x2 = promoted(convert_to_tensor(x1), convert_to_tensor(x2))
        if x1.dtype.is_bool:
            return cast(row(cast(x1, "int32"), cast(x2, "int32")), "bool")
        return row(x1, x2)

    return function(name, body)


dot = _of_two("dot")
inner = _of_two("inner")
kron = _of_two("kron")
outer = _of_two("outer")
vdot = _of_two("vdot")


def _rows_times(x1, x2):
    """A sparse matrix by a dense one: what stands in a row takes its share of x2's rows."""
    x1, x2 = promoted_sparse(x1, x2)
    rows, columns = x1.indices[:, 0], x1.indices[:, 1]
    parts = ops.multiply(ops.expand_dims(x1.values, axis=[1]), ops.take(x2, columns, axis=0))
    return ops.segment_sum(parts, cast(rows, "int32"), segments=int(x1.dense_shape.numpy()[0]))


def promoted_sparse(x1, x2):
    x2 = convert_to_tensor(x2)
    dtype = resulting(x1, x2)
    return cast(x1, dtype), cast(x2, dtype)


def matmul(x1, x2):
    if isinstance(x1, SparseTensor) and x1.ndim == 2 and len(x2.shape) == 2 and not x1.dense_shape.is_traced:
        return _rows_times(x1, x2)
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1.dtype.name == x2.dtype.name == "int8":
        return ops.matmul(x1, x2, dtype="int32")  # as quantized layers want it
    x1, x2 = promoted(x1, x2)
    if x1.dtype.is_bool:
        return cast(ops.matmul(cast(x1, "int32"), cast(x2, "int32")), "bool")
    return ops.matmul(x1, x2)


def einsum(subscripts, *operands, **kwargs):
    operands = [convert_to_tensor(x) for x in operands]
    dtypes = {x.dtype.name for x in operands}
    dtype = "int32" if dtypes == {"int8"} else resulting(*operands) if len(dtypes) > 1 else operands[0].dtype.name
    compute = "int32" if dtype == "bool" else dtype
    return cast(ops.einsum([cast(x, compute) for x in operands], equation=subscripts), dtype)


def tensordot(x1, x2, axes=2):
    x1, x2 = promoted(convert_to_tensor(x1), convert_to_tensor(x2))
    dtype = x1.dtype
    if dtype.is_bool:
        x1, x2 = cast(x1, "int32"), cast(x2, "int32")
    if isinstance(axes, (int, np.integer)):
        return cast(ops.tensordot(x1, x2, axes=int(axes)), dtype)
    first, second = ([a] if isinstance(a, (int, np.integer)) else list(a) for a in axes)
    first, second = [axis_of(a, x1.ndim) for a in first], [axis_of(a, x2.ndim) for a in second]
    return cast(ops.tensordot(x1, x2, x_axes=first, y_axes=second), dtype)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = promoted(convert_to_tensor(x1), convert_to_tensor(x2))
    x1 = ops.moveaxis(x1, source=[axisa], destination=[-1])
    x2 = ops.moveaxis(x2, source=[axisb], destination=[-1])
    sizes = x1.shape[-1], x2.shape[-1]
    if any(n not in (2, 3, None) for n in sizes):
        raise ValueError(
            f"`x1`'s dim on `axis={axisa}` and `x2`'s dim on `axis={axisb}` must be either 2 or 3. "
            f"Received: {sizes[0]} and {sizes[1]}"
        )
    if x1.dtype.is_bool:
        raise TypeError("cross: bools have no cross product")
    a, b = ([x[..., i] for i in range(n)] for x, n in zip((x1, x2), sizes))
    last = ops.subtract(ops.multiply(a[0], b[1]), ops.multiply(a[1], b[0]))
    if sizes == (2, 2):
        return last
    a2, b2 = a[2] if len(a) == 3 else 0, b[2] if len(b) == 3 else 0  # a plane's vectors have no height
    first = ops.subtract(ops.multiply(a[1], b2), ops.multiply(a2, b[1]))
    second = ops.subtract(ops.multiply(a2, b[0]), ops.multiply(a[0], b2))
    return ops.moveaxis(ops.stack([first, second, last], axis=-1), source=[-1], destination=[axisc])


def correlate(x1, x2, mode="valid"):
    x1, x2 = (floating(x) for x in promoted(convert_to_tensor(x1), convert_to_tensor(x2)))
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"`x1` and `x2` must be 1-D tensors. Received: shapes {x1.shape} and {x2.shape}")
    long, short = x1.dims[0], x2.dims[0]
    if isinstance(long, Dim) or isinstance(short, Dim):
        raise NotImplementedError("correlate: which operand is longer is not known while a function is traced")
    swapped = short > long
    if swapped:
        x1, x2, long, short = x2, x1, short, long
    if mode == "valid":
        low = high = 0
    elif mode == "full":
        low = high = short - 1
    elif mode == "same":
        low, high = short // 2, short - 1 - short // 2
        if swapped:
            low, high = high, low
    else:
        raise ValueError(f"`mode` must be 'valid', 'same' or 'full'. Received: mode={mode}")
    x1 = ops.pad(x1, cast(0, x1.dtype), low=[low], high=[high])
    signal, kernel = ops.reshape(x1, shape=[1, -1, 1]), ops.reshape(x2, shape=[-1, 1, 1])
    result = ops.reshape(ops.conv(signal, kernel), shape=[-1])
    return ops.flip(result) if swapped else result


def slogdet(x):
    return tuple(ops.slogdet(convert_to_tensor(x)))


def corrcoef(x):
    """Pearson's coefficients of the rows."""
    x = floating(x)
    if x.ndim == 1:
        x = ops.expand_dims(x, axis=[0])
    centered = ops.subtract(x, ops.mean(x, axis=[-1], keepdims=True))
    covariance = ops.matmul(centered, ops.transpose(centered))
    spread = ops.sqrt(ops.diagonal(covariance))
    coefficients = ops.divide(ops.divide(covariance, ops.expand_dims(spread, axis=[1])), spread)
    return ops.squeeze(ops.clip(coefficients, -1.0, 1.0)) if x.shape[0] == 1 else ops.clip(coefficients, -1.0, 1.0)
