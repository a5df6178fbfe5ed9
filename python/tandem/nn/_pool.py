"""Pooling."""
import numpy as np

from tandem import random
from tandem._arrays import cast, reshape
from tandem._face import api, convert, ops, tensor
from tandem.nn._conv import channels_first, padded, spatial, to_first, to_last

__all__ = [
    "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", "fractional_avg_pool", "fractional_max_pool", "max_pool", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_pool_with_argmax", "pool",
]  # fmt: skip


def _pooled(x, ksize, strides, padding, data_format, rank, how):
    first = channels_first(data_format)
    x = to_last(tensor(x), first)
    x, mode = padded(x, padding, rank, first)
    op = ops.max_pool if how == "max" else ops.average_pool
    made = op(x, pool_size=spatial(ksize, rank, data_format), strides=spatial(strides, rank, data_format), padding=mode)
    return to_first(made, first)


def _pool(how, rank, default):
    @api
    def call(input, ksize, strides, padding, data_format=default, name=None):
        n = tensor(input).ndim - 2 if rank is None else rank
        return _pooled(input, ksize, strides, padding, data_format, n, how)

    call.__name__ = call.__qualname__ = f"{how}_pool{'' if rank is None else f'{rank}d'}"
    return call


max_pool, max_pool1d, max_pool2d, max_pool3d = _pool("max", None, None), _pool("max", 1, "NWC"), _pool("max", 2, "NHWC"), _pool("max", 3, "NDHWC")
avg_pool, avg_pool1d, avg_pool2d, avg_pool3d = _pool("avg", None, None), _pool("avg", 1, "NWC"), _pool("avg", 2, "NHWC"), _pool("avg", 3, "NDHWC")


@api
def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    if dilations is not None and any(d != 1 for d in np.atleast_1d(dilations)):
        from tandem.nn._conv import with_space_to_batch

        rank = tensor(input).ndim - 2
        if strides is not None and any(s != 1 for s in np.atleast_1d(strides)):
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        first = channels_first(data_format)
        x = to_last(tensor(input), first)
        inner = lambda t, _, mode: _pooled(t, window_shape, 1, mode, None, rank, pooling_type.lower())  # noqa: E731
        return to_first(with_space_to_batch(x, spatial(dilations, rank, data_format), padding, inner, window_shape), first)
    return _pooled(input, window_shape, strides, padding, data_format, tensor(input).ndim - 2, pooling_type.lower())


@api
def max_pool_with_argmax(
    input, ksize, strides, padding, data_format="NHWC", output_dtype="int64", include_batch_in_index=False, name=None
):
    x = tensor(input)
    size, steps = spatial(ksize, 2, data_format), spatial(strides, 2, data_format)
    made = ops.max_pool(x, pool_size=size, strides=steps, padding=padding.lower())
    n, h, w, c = x.shape
    # The place of each element goes through the same windows as its value.
    from tandem.nn._conv import _windows

    values = _windows(
        x, size, [1, *steps, 1], padding, [1, 1, 1, 1], float(np.finfo(np.float32).min) if x.dtype.is_floating else x.dtype.min
    )
    places = np.arange(h * w * c, dtype=np.float64).reshape(1, h, w, c)
    where = _windows(convert(places), size, [1, *steps, 1], padding, [1, 1, 1, 1], -1.0)
    best = ops.argmax(values, axis=3)
    found = ops.take_along_axis(ops.broadcast_to(where, shape=values.dims), ops.expand_dims(best, axis=[3]), axis=3)
    found = cast(ops.squeeze(found, axis=[3]), output_dtype)
    if include_batch_in_index:
        found = found + cast(reshape(ops.multiply(ops.iota(shape=[n], dtype="int32"), h * w * c), [n, 1, 1, 1]), output_dtype)
    return made, found


def _edges(extent, count, pseudo, rng):
    """Where the pooling regions of a fractional pool begin."""
    ratio = extent / count
    if pseudo:
        u = rng.uniform(0, 1)
        edges = np.ceil(ratio * (np.arange(count + 1) + u)) - np.ceil(ratio * u)
    else:
        small, large = int(ratio), int(ratio) + 1
        wide = extent - small * count
        sizes = np.array([large] * wide + [small] * (count - wide))
        rng.shuffle(sizes)
        edges = np.concatenate([[0], np.cumsum(sizes)])
    edges[-1] = extent
    return edges.astype(np.int64)


def _fractional(how):
    @api
    def call(value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None):
        x = tensor(value)
        ratio = [pooling_ratio] * 2 if isinstance(pooling_ratio, (int, float)) else list(pooling_ratio)
        ratio = ratio[1:3] if len(ratio) == 4 else ratio
        rng = np.random.default_rng(seed or random._next_key().numpy())
        rows, columns = [_edges(x.shape[1 + i], int(x.shape[1 + i] / ratio[i]), pseudo_random, rng) for i in range(2)]
        more = 1 if overlapping else 0
        reduce = ops.max if how == "max" else ops.mean
        lines = [ops.stack([reduce(x[:, a : b + more, c : d + more, :], axis=[1, 2]) for c, d in zip(columns, columns[1:])], axis=1) for a, b in zip(rows, rows[1:])]
        return ops.stack(lines, axis=1), convert(rows), convert(columns)

    call.__name__ = f"fractional_{how}_pool"
    return call


fractional_max_pool, fractional_avg_pool = _fractional("max"), _fractional("avg")
