"""Names in tf that are single ops of TensorFlow's graphs, with their arguments; the rest of the face has them in other words."""

import functools

import numpy as np

from tandem import errors, signal
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._face import any_tensor, ints, number, ops, tensor


def approx_top_k(
    input, k, reduction_dimension=-1, recall_target=0.95, is_max_k=True, reduction_input_size_override=-1, aggregate_to_topk=True, name=None
):
    """The k largest or smallest, exactly."""
    from tandem import math

    return (math.approx_max_k if is_max_k else math.approx_min_k)(input, int(number(k)), reduction_dimension)


def check_pinned(tensor, name=None):
    return any_tensor(tensor)


def conv(
    input, filter, strides, padding, explicit_paddings=(), data_format="CHANNELS_LAST", dilations=(), batch_dims=1, groups=1, name=None
):
    from tandem import nn

    x, w = tensor(input), tensor(filter)
    if padding == "EXPLICIT":
        pads = np.reshape(list(explicit_paddings), (-1, 2))
        padding = [tuple(int(n) for n in p) for p in pads]
    first = data_format == "CHANNELS_FIRST"
    rank = w.ndim - 2
    names = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[rank]
    batch = x.dims[: int(batch_dims)]
    flat = x if batch_dims == 1 else ops.reshape(x, shape=[-1, *x.dims[int(batch_dims) :]])
    made = nn.convolution(flat, w, list(strides), padding, names[first], list(dilations) or None)
    return made if batch_dims == 1 else ops.reshape(made, shape=[*batch, *made.dims[1:]])


def _gradient_of(function, at, upstream):
    """What flows back to `at`, a tensor of which only shape and type matter where the function is linear in it."""
    from tandem._gradient import GradientTape

    with GradientTape() as tape:
        tape.watch(at)
        made = function(at)
    return tape.gradient(made, at, output_gradients=tensor(upstream))


def _with_pads(padding, explicit_paddings):
    return [tuple(int(n) for n in p) for p in np.reshape(list(explicit_paddings), (-1, 2))] if padding == "EXPLICIT" else padding


def conv2d_backprop_input_v2(
    input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=(), data_format="NHWC", dilations=(1, 1, 1, 1), name=None
):
    from tandem import nn

    pads = _with_pads(padding, explicit_paddings)
    return _gradient_of(lambda x: nn.conv2d(x, filter, list(strides), pads, data_format, list(dilations)), tensor(input), out_backprop)


def conv2d_backprop_filter_v2(
    input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=(), data_format="NHWC", dilations=(1, 1, 1, 1), name=None
):
    from tandem import nn

    pads = _with_pads(padding, explicit_paddings)
    return _gradient_of(lambda w: nn.conv2d(input, w, list(strides), pads, data_format, list(dilations)), tensor(filter), out_backprop)


def _zeros(sizes, dtype):
    return ops.full(convert(np.zeros((), dtype.as_numpy_dtype)), shape=ints(sizes))


def depthwise_conv2d_backprop_input(input_sizes, filter, out_backprop, strides, padding, data_format="NHWC", dilations=(1, 1, 1, 1), name=None):
    from tandem import nn

    w = tensor(filter)
    conv = lambda x: nn.depthwise_conv2d(x, w, list(strides), padding, data_format, list(dilations)[1:3])  # noqa: E731
    return _gradient_of(conv, _zeros(input_sizes, w.dtype), out_backprop)


def depthwise_conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding, data_format="NHWC", dilations=(1, 1, 1, 1), name=None):
    from tandem import nn

    x = tensor(input)
    conv = lambda w: nn.depthwise_conv2d(x, w, list(strides), padding, data_format, list(dilations)[1:3])  # noqa: E731
    return _gradient_of(conv, _zeros(filter_sizes, x.dtype), out_backprop)


def fftnd(input, fft_length, axes, name=None):
    return signal.fftnd(input, fft_length, axes)


def ifftnd(input, fft_length, axes, name=None):
    return signal.ifftnd(input, fft_length, axes)


def rfftnd(input, fft_length, axes, Tcomplex="complex64", name=None):
    return signal.rfftnd(input, fft_length, axes)


def irfftnd(input, fft_length, axes, Treal="float32", name=None):
    return signal.irfftnd(input, fft_length, axes)


def ragged_fill_empty_rows(value_rowids, values, nrows, default_value, name=None):
    """(row ids, values, which rows were empty, where each value went): a row without values gets the default."""
    import collections

    x = any_tensor(values)
    rows, count = tensor(value_rowids).numpy(), int(number(nrows))
    if len(rows) and (rows.min() < 0 or rows.max() >= count):
        raise errors.InvalidArgumentError(None, None, f"value_rowids({rows.max()}) is invalid: there are {count} rows")
    empty = ~np.isin(np.arange(count), rows)
    ids = np.concatenate([rows, np.flatnonzero(empty)]).astype(rows.dtype)
    order = np.argsort(ids, kind="stable")
    default = ops.reshape(any_tensor(default_value, x.dtype), shape=[1])
    table = ops.concatenate([x, default])
    made = ops.take(table, convert(np.minimum(order, len(rows)).astype(np.int64)), axis=0)
    back = np.argsort(order, kind="stable")[: len(rows)]
    result = collections.namedtuple(
        "RaggedFillEmptyRows", ["output_value_rowids", "output_values", "empty_row_indicator", "reverse_index_map"]
    )
    return result(convert(ids[order]), made, convert(empty), convert(back.astype(np.int64)))


def ragged_fill_empty_rows_grad(reverse_index_map, grad_values, name=None):
    import collections

    at, g = tensor(reverse_index_map), tensor(grad_values)
    d_values = ops.take(g, at, axis=0)
    result = collections.namedtuple("RaggedFillEmptyRowsGrad", ["d_values", "d_default_value"])
    return result(d_values, ops.subtract(ops.sum(g), ops.sum(d_values)))


def nondifferentiable_batch_function(
    num_batch_threads, max_batch_size, batch_timeout_micros, allowed_batch_sizes=None, max_enqueued_batches=10, autograph=True, enable_large_batch_splitting=True
):
    """A decorator: each call is a batch of its own, which is one of the ways in which calls may be brought together."""
    from tandem import stop_gradient
    from tandem._function import function as traced

    def decorate(fn):
        run = traced(fn, autograph=autograph)

        @functools.wraps(fn)
        def call(*args):
            made = run(*args)
            flat = made if isinstance(made, (list, tuple)) else [made]
            flat = [stop_gradient(x) if as_dtype(x.dtype).is_floating else x for x in flat]
            return type(made)(flat) if isinstance(made, (list, tuple)) else flat[0]

        return call

    return decorate
