"""What networks are made of: products, convolutions, pooling, softmax and losses, normalisation, attention."""
import itertools
import math

import numpy as np

EXACT = {"matmul"}
EPSILON = 1e-7  # Keras's

# --- products ---


def matmul(x, y, transpose_x, transpose_y, dtype):
    x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    result = dtype or x.dtype
    wide = np.float64 if x.dtype.kind not in "iu" else result
    return np.matmul(x.astype(wide), y.astype(wide)).astype(result)


def tensordot(x, y, axes, x_axes, y_axes):
    return np.tensordot(x, y, axes if x_axes is None else (x_axes, y_axes))


# --- convolutions: element by element, over a padded copy of the input ---


def spatial(values, axes, otherwise=1):
    values = [otherwise] * axes if values is None else list(values)
    return values * axes if len(values) == 1 else values


def padding_of(sizes, windows, strides, padding):
    """How much Keras pads each axis: 'same' gives ceil(size / stride) windows, the odd element goes behind."""
    if padding == "valid":
        return [(0, 0)] * len(sizes)
    if padding == "causal":
        return [(k - 1, 0) for k in windows]
    totals = [max((math.ceil(n / s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, windows, strides)]
    return [(t // 2, t - t // 2) for t in totals]


def window_counts(sizes, windows, strides):
    return [max((n - k) // s + 1, 0) for n, k, s in zip(sizes, windows, strides)]


def spread(x, steps):
    """Zeros between the elements of the spatial axes."""
    shape = [(n - 1) * s + 1 if n else 0 for n, s in zip(x.shape[1:-1], steps)]
    out = np.zeros((x.shape[0], *shape, x.shape[-1]), x.dtype)
    out[(slice(None), *[slice(None, None, s) for s in steps], slice(None))] = x
    return out


def padded(x, low, high, value=0):
    for axis, (before, after) in enumerate(zip(low, high), start=1):
        x = np.take(x, range(max(-before, 0), x.shape[axis] - max(-after, 0)), axis=axis)
        width = [(0, 0)] * x.ndim
        width[axis] = (max(before, 0), max(after, 0))
        x = np.pad(x, width, constant_values=value)
    return x


def general_conv(x, w, strides, low, high, dilation, input_dilation, groups, dtype=None):
    x = padded(spread(x, input_dilation), low, high)
    kernel, (taken, filters) = w.shape[:-2], w.shape[-2:]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    counts = window_counts(x.shape[1:-1], spans, strides)
    out = np.zeros((x.shape[0], *counts, filters), x.dtype)
    each = filters // groups
    for tap in itertools.product(*map(range, kernel)):
        index = [slice(t * d, t * d + (c - 1) * s + 1 if c else t * d, s) for t, d, c, s in zip(tap, dilation, counts, strides)]
        seen = x[(slice(None), *index, slice(None))]
        for g in range(groups):
            columns = slice(g * each, (g + 1) * each)
            out[..., columns] += np.matmul(seen[..., g * taken:(g + 1) * taken], w[tap][:, columns])
    return out


def conv_kernel_gradient(x, g, kernel, strides, low, high, dilation, input_dilation, groups, dtype=None):
    """For each tap, what it was multiplied with, against the gradient of what it gave."""
    x = padded(spread(x, input_dilation), low, high)
    counts = g.shape[1:-1]
    taken, each = x.shape[-1] // groups, g.shape[-1] // groups
    out = np.zeros((*kernel, taken, g.shape[-1]), x.dtype)
    for tap in itertools.product(*map(range, kernel)):
        index = [slice(t * d, t * d + (c - 1) * s + 1 if c else t * d, s) for t, d, c, s in zip(tap, dilation, counts, strides)]
        seen = x[(slice(None), *index, slice(None))].reshape(-1, x.shape[-1])
        for k in range(groups):
            columns = slice(k * each, (k + 1) * each)
            out[(*tap, slice(None), columns)] = seen[:, k * taken:(k + 1) * taken].T @ g[..., columns].reshape(-1, each)
    return out


def conv(x, w, strides, padding, dilation, groups):
    axes = x.ndim - 2
    strides, dilation = spatial(strides, axes), spatial(dilation, axes)
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape, dilation)]
    low, high = zip(*padding_of(x.shape[1:-1], spans, strides, padding))
    return general_conv(x, w, strides, low, high, dilation, [1] * axes, groups or x.shape[-1] // w.shape[-2])


def depthwise_conv(x, w, strides, padding, dilation):
    channels = [conv(x[..., c:c + 1], w[..., c:c + 1, :], strides, padding, dilation, 1) for c in range(x.shape[-1])]
    return np.concatenate(channels, axis=-1)


def separable_conv(x, depthwise, pointwise, strides, padding, dilation):
    return conv(depthwise_conv(x, depthwise, strides, padding, dilation), pointwise, None, "valid", None, 1)


def conv_transpose(x, w, strides, padding, output_padding, dilation):
    """The transpose of a convolution, as TensorFlow makes it: inputs scattered over the full output, of which Keras's rule cuts a part."""
    axes = x.ndim - 2
    strides, dilation = spatial(strides, axes), spatial(dilation, axes)
    extra = [None] * axes if output_padding is None else spatial(output_padding, axes)
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape, dilation)]
    full = np.zeros((x.shape[0], *[(n - 1) * s + k for n, s, k in zip(x.shape[1:-1], strides, spans)], w.shape[-2]), x.dtype)
    for tap in itertools.product(*map(range, w.shape[:-2])):
        index = [slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, x.shape[1:-1], strides)]
        full[(slice(None), *index, slice(None))] += np.matmul(x, w[tap].T)
    low, high = [], []
    for n, s, k, e in zip(x.shape[1:-1], strides, spans, extra):
        if padding == "valid":
            size = (n - 1) * s + (max(k, s) if e is None else k + e)
            cut = 0
        else:
            size = n * s if e is None else (n - 1) * s + k % 2 + e
            cut = max((n - 1) * s + k - size, 0) // 2  # what the forward convolution over `size` would pad in front
        low.append(-cut)
        high.append(size - ((n - 1) * s + k - cut))
    return padded(full, low, high)


# --- pooling: window by window ---


def windows(sizes, pool_size, strides, padding):
    """For each window its place in the output and, along each axis, its first position (which may lie before the input)."""
    axes = len(sizes)
    pool_size = spatial(pool_size, axes)
    strides = pool_size if strides is None else spatial(strides, axes)
    pads = padding_of(sizes, pool_size, strides, padding)
    counts = window_counts([n + a + b for n, (a, b) in zip(sizes, pads)], pool_size, strides)
    starts = [[i * s - a for i in range(c)] for c, s, (a, _) in zip(counts, strides, pads)]
    return pool_size, counts, [(i, [t[j] for t, j in zip(starts, i)]) for i in itertools.product(*map(range, counts))]


def offsets_inside(start, size, sizes):
    """The offsets within a window whose position lies in the input, in row-major order, with those positions."""
    for number, offset in enumerate(itertools.product(*map(range, size))):
        at = tuple(a + o for a, o in zip(start, offset))
        if all(0 <= p < n for p, n in zip(at, sizes)):
            yield number, at


def pool(x, pool_size, strides, padding, f, dtype):
    sizes = x.shape[1:-1]
    size, counts, places = windows(sizes, pool_size, strides, padding)
    out = np.zeros((x.shape[0], *counts, x.shape[-1]), dtype)
    for i, start in places:
        inside = list(offsets_inside(start, size, sizes))
        values = np.stack([x[(slice(None), *at)] for _, at in inside])
        out[(slice(None), *i)] = f(values, [number for number, _ in inside])
    return out


def max_pool(x, pool_size, strides, padding):
    return pool(x, pool_size, strides, padding, lambda v, _: v.max(axis=0), x.dtype)


def average_pool(x, pool_size, strides, padding):
    return pool(x, pool_size, strides, padding, lambda v, _: v.mean(axis=0), x.dtype)


def max_pool_index(x, pool_size, strides, padding):
    return pool(x, pool_size, strides, padding, lambda v, numbers: np.array(numbers)[np.argmax(v, axis=0)], "int32")


def visit_chosen(index, extents, pool_size, strides, padding, visit):
    size, _, places = windows(extents, pool_size, strides, padding)
    for i, start in places:
        inside = dict(offsets_inside(start, size, extents))
        for n, c in itertools.product(range(index.shape[0]), range(index.shape[-1])):
            at = inside.get(int(index[(n, *i, c)]))
            if at is not None:
                visit((n, *i, c), (n, *at, c))


def max_pool_grad(g, index, extents, pool_size, strides, padding):
    out = np.zeros((g.shape[0], *extents, g.shape[-1]), g.dtype)

    def give(window, at):
        out[at] += g[window]

    visit_chosen(index, extents, pool_size, strides, padding, give)
    return out


def max_pool_pick(x, index, pool_size, strides, padding):
    out = np.zeros(index.shape, x.dtype)

    def take(window, at):
        out[window] = x[at]

    visit_chosen(index, x.shape[1:-1], pool_size, strides, padding, take)
    return out


def average_pool_grad(g, extents, pool_size, strides, padding):
    out = np.zeros((g.shape[0], *extents, g.shape[-1]), g.dtype)
    size, _, places = windows(extents, pool_size, strides, padding)
    for i, start in places:
        inside = list(offsets_inside(start, size, extents))
        for _, at in inside:
            out[(slice(None), *at)] += g[(slice(None), *i)] / len(inside)
    return out


def global_pool(f):
    return lambda x, keepdims: f(x, axis=tuple(range(1, x.ndim - 1)), keepdims=keepdims)


# --- softmax and losses, as Keras 3 defines them ---


def softmax(x, axis):
    if x.shape[axis] == 0:
        return x
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, axis):
    if x.shape[axis] == 0:
        return x
    s = x - x.max(axis=axis, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=axis, keepdims=True))


def sparsemax(x, axis):
    """The projection onto the simplex (Martins and Astudillo, 2016, algorithm 1), line by line."""
    lines = np.moveaxis(x, axis, -1)
    out = np.zeros(lines.shape)
    for i in np.ndindex(lines.shape[:-1]):
        z = np.sort(lines[i])[::-1]
        ks = [k for k in range(1, len(z) + 1) if 1 + k * z[k - 1] > z[:k].sum()]
        if ks:
            out[i] = np.maximum(lines[i] - (z[:max(ks)].sum() - 1) / max(ks), 0)
    return np.moveaxis(out, -1, axis)


def log_probabilities(output, from_logits, axis):
    if from_logits:
        return log_softmax(output, axis)
    return np.log(np.clip(output / output.sum(axis=axis, keepdims=True), EPSILON, 1 - EPSILON))


def categorical_crossentropy(target, output, from_logits=True, axis=-1):
    return -(target * log_probabilities(output, from_logits, axis)).sum(axis=axis)


def sparse_categorical_crossentropy(target, output, from_logits=True, axis=-1):
    log_p = np.moveaxis(log_probabilities(output, from_logits, axis), axis, -1)
    target = target.reshape(log_p.shape[:-1])
    out = np.full(target.shape, np.nan)  # of a class that there isn't, as TensorFlow says
    for i in np.ndindex(target.shape):
        if 0 <= target[i] < log_p.shape[-1]:
            out[i] = -log_p[i][target[i]]
    return out


def sigmoid_crossentropy(target, logits):
    return target * np.logaddexp(0, -logits) + (1 - target) * np.logaddexp(0, logits)


def binary_crossentropy(target, output, from_logits):
    if from_logits:
        return sigmoid_crossentropy(target, output)
    p = np.clip(output, EPSILON, 1 - EPSILON)
    return -(target * np.log(p) + (1 - target) * np.log(1 - p))


# --- normalisation, as Keras 3 defines it ---


def factor(v, x, axes):
    """A parameter in the shape in which it meets x."""
    axes = sorted(a % x.ndim for a in axes)
    if v is None or v.ndim == 0 or v.shape != tuple(x.shape[a] for a in axes):
        return v
    return v.reshape([n if a in axes else 1 for a, n in enumerate(x.shape)])


def scaled(y, x, axes, gamma, beta):
    y = y if gamma is None else y * factor(gamma, x, axes)
    return y if beta is None else y + factor(beta, x, axes)


def layer_normalization(x, gamma=None, beta=None, axis=None, epsilon=0):
    axes = tuple(axis)
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return scaled(y, x, axes, gamma, beta)


def rms_normalization(x, scale=None, axis=None, epsilon=0):
    return scaled(x / np.sqrt((x * x).mean(tuple(axis), keepdims=True) + epsilon), x, axis, scale, None)


def normalize(x, axis, order, epsilon):
    norm = (np.abs(x) ** order).sum(None if axis is None else tuple(axis), keepdims=True) ** (1 / order)
    return x / np.maximum(norm, epsilon)


def batch_normalization(x, mean, variance, offset=None, scale=None, axis=-1, epsilon=0):
    fit = [factor(v, x, [axis]) for v in (mean, variance)]
    return scaled((x - fit[0]) / np.sqrt(fit[1] + epsilon), x, [axis], scale, offset)


def group_normalization(x, gamma=None, beta=None, groups=1, axis=-1, epsilon=0):
    moved = np.moveaxis(x, axis, 1)
    y = np.empty(moved.shape)
    for i, g in itertools.product(range(len(x)), range(groups)):
        part = np.s_[i, g * moved.shape[1] // groups:(g + 1) * moved.shape[1] // groups]
        y[part] = (moved[part] - moved[part].mean()) / np.sqrt(moved[part].var() + epsilon)
    return scaled(np.moveaxis(y, 1, axis), x, [axis], gamma, beta)


# --- attention ---


def attention_logits(query, key, bias, mask, scale, is_causal):
    """[batch, heads, targets, sources], key having as many heads as query; and what is seen."""
    logits = np.einsum("btnh,bsnh->bnts", query, key) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    three = lambda v: v[:, None] if v.ndim == 3 else v  # [batch, targets, sources]
    if bias is not None:
        logits = logits + three(bias)
    seen = np.ones(logits.shape, bool)
    if mask is not None:
        seen &= three(mask)
    if is_causal:
        seen &= np.tri(*logits.shape[2:], dtype=bool)
    return np.where(seen, logits, -1e300), seen


def attention_parts(query, key, value, bias=None, mask=None, scale=None, is_causal=False):
    key, value = (np.repeat(x, query.shape[2] // key.shape[2], axis=2) for x in (key, value))
    logits, _ = attention_logits(query, key, bias, mask, scale, is_causal)
    peak = logits.max(-1, initial=-np.inf)
    total = np.exp(logits - peak[..., None]).sum(-1)
    return np.einsum("bnts,bsnh->btnh", np.exp(logits - peak[..., None]) / total[..., None], value), peak, total


def dot_product_attention(*operands, **attrs):
    return attention_parts(*operands, **attrs)[0]


def attention_gradient(query, key, value, gradient, peak, total, mean, bias=None, mask=None, scale=None, is_causal=False, bias_gradient=False):
    group = query.shape[2] // key.shape[2]
    ungrouped = lambda x: x.reshape(*x.shape[:2], x.shape[2] // group, group, x.shape[-1]).sum(3)
    key, value = (np.repeat(x, group, axis=2) for x in (key, value))
    logits, seen = attention_logits(query, key, bias, mask, scale, is_causal)
    weights = np.exp(logits - peak[..., None]) / total[..., None]
    by_logits = np.where(seen, weights * (np.einsum("btnh,bsnh->bnts", gradient, value) - mean[..., None]), 0)
    by_products = by_logits * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    results = [np.einsum("bnts,bsnh->btnh", by_products, key), ungrouped(np.einsum("bnts,btnh->bsnh", by_products, query)),
               ungrouped(np.einsum("bnts,btnh->bsnh", weights, gradient))]
    return results + [by_logits] * bias_gradient


# --- recurrent layers: one step after the other ---


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def stacked(steps, like):
    """One array of all steps; of the right shape when there are none."""
    return np.array(steps).reshape(like)


def lstm(inputs, recurrent_kernel, h, c, mask=None, keep=False):
    outputs, gates, cells = [], [], []
    for t, x in enumerate(inputs):
        i, f, g, o = np.split(x + h @ recurrent_kernel, 4, axis=-1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        seen = np.ones((len(x), 1), bool) if mask is None else mask[t][:, None]
        new = f * c + i * g
        h, c = np.where(seen, o * np.tanh(new), h), np.where(seen, new, c)
        outputs.append(h)
        gates.append(np.concatenate([i, f, g, o], axis=-1))
        cells.append(c)
    states = inputs.shape[:2] + h.shape[1:]
    kept = (stacked(gates, inputs.shape), stacked(cells, states)) if keep else ()
    return (stacked(outputs, states), h, c) + kept


def lstm_gradient(gates, cells, recurrent_kernel, c, outputs_gradient, h_gradient, c_gradient):
    dh, dc, sums = h_gradient, c_gradient, []
    for t in reversed(range(len(gates))):
        i, f, g, o = np.split(gates[t], 4, axis=-1)
        before, activated = cells[t - 1] if t else c, np.tanh(cells[t])
        dh = dh + (outputs_gradient[t] if outputs_gradient.ndim else 0)
        dc = dc + dh * o * (1 - activated**2)
        sums.append(np.concatenate([dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g**2), dh * activated * o * (1 - o)], axis=-1))
        dh, dc = sums[-1] @ recurrent_kernel.T, dc * f
    return stacked(sums[::-1], gates.shape), dh, dc


def gru(inputs, recurrent_kernel, h, recurrent_bias, mask=None, reset_after=True, keep=False):
    units, outputs, gates = h.shape[1], [], []
    for t, x in enumerate(inputs):
        by_state = h @ recurrent_kernel + recurrent_bias
        z, r = np.split(sigmoid(x[:, :2 * units] + by_state[:, :2 * units]), 2, axis=-1)
        from_state = by_state[:, 2 * units:]
        before = (r * h) @ recurrent_kernel[:, 2 * units:] + recurrent_bias[2 * units:]
        candidate = np.tanh(x[:, 2 * units:] + (r * from_state if reset_after else before))
        seen = np.ones((len(x), 1), bool) if mask is None else mask[t][:, None]
        h = np.where(seen, z * h + (1 - z) * candidate, h)
        outputs.append(h)
        gates.append(np.concatenate([z, r, candidate, from_state], axis=-1))
    states = inputs.shape[:2] + (units,)
    kept = (stacked(gates, inputs.shape[:2] + (4 * units,)),) if keep else ()
    return (stacked(outputs, states), h) + kept


def gru_gradient(gates, outputs, recurrent_kernel, h, outputs_gradient, h_gradient):
    dh, by_inputs, by_state = h_gradient, [], []
    for t in reversed(range(len(gates))):
        z, r, candidate, from_state = np.split(gates[t], 4, axis=-1)
        before = outputs[t - 1] if t else h
        dh = dh + (outputs_gradient[t] if outputs_gradient.ndim else 0)
        dcandidate = dh * (1 - z) * (1 - candidate**2)
        dz, dr = dh * (before - candidate) * z * (1 - z), dcandidate * from_state * r * (1 - r)
        by_inputs.append(np.concatenate([dz, dr, dcandidate], axis=-1))
        by_state.append(np.concatenate([dz, dr, dcandidate * r], axis=-1))
        dh = dh * z + by_state[-1] @ recurrent_kernel.T
    sums = gates.shape[:2] + (3 * h.shape[1],)
    return stacked(by_inputs[::-1], sums), stacked(by_state[::-1], sums), dh


REFERENCE = {
    "matmul": matmul,
    "dot": np.dot,
    "vdot": np.vdot,
    "inner": np.inner,
    "outer": np.outer,
    "tensordot": tensordot,
    "kron": np.kron,
    "einsum": lambda *xs, equation: np.einsum(equation, *xs),
    "general_conv": general_conv,
    "conv_kernel_gradient": conv_kernel_gradient,
    "conv": conv,
    "depthwise_conv": depthwise_conv,
    "separable_conv": separable_conv,
    "conv_transpose": conv_transpose,
    "max_pool": max_pool,
    "max_pool_index": max_pool_index,
    "max_pool_grad": max_pool_grad,
    "max_pool_pick": max_pool_pick,
    "average_pool": average_pool,
    "average_pool_grad": average_pool_grad,
    "global_max_pool": global_pool(np.max),
    "global_average_pool": global_pool(np.mean),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "sparsemax": sparsemax,
    "softmax_crossentropy": lambda target, logits, axis: categorical_crossentropy(target, logits, True, axis),
    "sparse_softmax_crossentropy": lambda target, logits, axis: sparse_categorical_crossentropy(target, logits, True, axis),
    "categorical_crossentropy": categorical_crossentropy,
    "sparse_categorical_crossentropy": sparse_categorical_crossentropy,
    "sigmoid_crossentropy": sigmoid_crossentropy,
    "binary_crossentropy": binary_crossentropy,
    "layer_normalization": layer_normalization,
    "rms_normalization": rms_normalization,
    "normalize": normalize,
    "batch_normalization": batch_normalization,
    "group_normalization": group_normalization,
    "dot_product_attention": dot_product_attention,
    "attention_parts": attention_parts,
    "attention_gradient": attention_gradient,
    "lstm": lstm,
    "lstm_gradient": lstm_gradient,
    "gru": gru,
    "gru_gradient": gru_gradient,
}
