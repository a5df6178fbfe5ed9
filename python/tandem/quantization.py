"""tf.quantization: rounding to few levels, with the gradients that training wants."""
from tandem._face import api, convert, ops, tensor
from tandem._gradient import custom_gradient


def _levels(low, high, bits, narrow):
    """(scale, adjusted low and high) so that zero is one of the levels."""
    first, last = (1 if narrow else 0), 2**bits - 1
    scale = (high - low) / float(last - first)
    zero = float(first) - low / scale
    zero = ops.clip(ops.floor(zero + 0.5), float(first), float(last))
    return scale, (float(first) - zero) * scale, (float(last) - zero) * scale


def _fake(x, low, high, bits, narrow):
    scale, low, high = _levels(low, high, bits, narrow)
    cut = ops.clip(x, low, high)
    return ops.floor((cut - low) / scale + 0.5) * scale + low, low, high


@api
def fake_quant_with_min_max_vars(inputs, min, max, num_bits=8, narrow_range=False, name=None):
    @custom_gradient
    def quantized(x, low, high):
        made, a, b = _fake(x, low, high, num_bits, narrow_range)

        def backward(g):
            below, above = ops.less(x, a), ops.greater(x, b)
            inside = ops.logical_not(ops.logical_or(below, above))
            zero = convert(0.0)
            outside = [ops.where(part, g, zero) for part in (below, above)]
            return ops.where(inside, g, zero), *(ops.sum(part, axis=list(range(x.ndim - low.ndim))) for part in outside)

        return made, backward

    return quantized(tensor(inputs), tensor(min, "float32"), tensor(max, "float32"))


def fake_quant_with_min_max_args(inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None):
    return fake_quant_with_min_max_vars(inputs, float(min), float(max), num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel(inputs, min, max, num_bits=8, narrow_range=False, name=None):
    return fake_quant_with_min_max_vars(inputs, min, max, num_bits, narrow_range)


def fake_quant_with_min_max_args_gradient(gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False, name=None):
    _, low, high = _levels(convert(float(min)), convert(float(max)), num_bits, narrow_range)
    x = tensor(inputs)
    inside = ops.logical_and(ops.greater_equal(x, low), ops.less_equal(x, high))
    return ops.where(inside, tensor(gradients), convert(0.0))


@api
def quantize_and_dequantize_v2(input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, round_mode="HALF_TO_EVEN", name=None,
                               narrow_range=False, axis=None):  # fmt: skip
    return _rounded(tensor(input), input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, is_cut=True)


@api
def quantize_and_dequantize(input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, round_mode="HALF_TO_EVEN", name=None,
                            narrow_range=False, axis=None):  # fmt: skip
    return _rounded(tensor(input), input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, is_cut=False)


def _rounded(x, input_min, input_max, *options, is_cut):
    """The gradient is that of what is not rounded; with `is_cut` only where the input is within its limits."""

    @custom_gradient
    def rounded(x):
        inside = None
        if is_cut:
            low, high = convert(input_min, x.dtype), convert(input_max, x.dtype)
            inside = ops.logical_and(ops.greater_equal(x, low), ops.less_equal(x, high))
        backward = lambda g: g if inside is None else ops.where(inside, g, convert(0.0, g.dtype))  # noqa: E731
        return _of_levels(x, input_min, input_max, *options), backward

    return rounded(x)


def _of_levels(x, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range):
    low, high = (tensor(input_min, x.dtype), tensor(input_max, x.dtype)) if range_given else (ops.min(x), ops.max(x))
    top = 2 ** (num_bits - 1) - 1 if signed_input else 2**num_bits - 1
    bottom = (-top if narrow_range else -top - 1) if signed_input else 0
    limit = ops.maximum(ops.absolute(low) / float(abs(bottom) or 1), ops.absolute(high) / float(top))
    steps = ops.clip(x, limit * float(bottom), limit * float(top)) / limit
    rounded = ops.round(steps) if round_mode == "HALF_TO_EVEN" else ops.floor(steps + 0.5)
    return rounded * limit

