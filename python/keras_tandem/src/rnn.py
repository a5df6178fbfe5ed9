"""Recurrent layers' inner loops: any cell step by step, and the engine's own LSTM and GRU over a whole sequence."""
from keras.src import tree

from keras_tandem.src.ops.core import cast, convert_to_tensor, scan
from tandem import _core

ops = _core.keras_ops


def _time_first(x):
    """[batch, time, ...] and [time, batch, ...], each to the other."""
    return ops.swapaxes(x, axis1=0, axis2=1)


def _where_seen(seen, new, old):
    """new for the examples that are seen [batch], old for the others."""
    return ops.where(ops.reshape(seen, shape=[seen.dims[0]] + [1] * (new.ndim - 1)), new, old)


def rnn(
    step_function,
    inputs,
    initial_states,
    go_backwards=False,
    mask=None,
    constants=None,
    unroll=False,
    input_length=None,
    time_major=False,
    zero_output_for_mask=False,
    return_all_outputs=True,
):
    inputs = tree.map_structure(convert_to_tensor, inputs)
    states = tree.map_structure(convert_to_tensor, list(initial_states))
    constants = list(constants or [])
    if not time_major:
        inputs = tree.map_structure(_time_first, inputs)
    if mask is not None:
        mask = cast(mask, "bool")
        if not time_major:
            mask = _time_first(mask)
        if mask.ndim > 2:
            mask = ops.any(mask, axis=list(range(2, mask.ndim)))  # [time, batch]
    if go_backwards:
        inputs = tree.map_structure(lambda x: ops.flip(x, axis=[0]), inputs)
        mask = None if mask is None else ops.flip(mask, axis=[0])

    def step(states, slices):
        x, seen = slices
        output, new_states = step_function(x, type(initial_states)(states) + type(initial_states)(constants))
        pairs = zip(tree.flatten(new_states), tree.flatten(states), strict=True)
        new_states = tree.pack_sequence_as(states, [cast(new, old.dtype) for new, old in pairs])
        if seen is None:
            return new_states, output
        if zero_output_for_mask:
            before = ops.cast(0, dtype="int32")
        else:
            # A cell's first state is its output; of stacked cells the last one's.
            before = states[-1][0] if tree.is_nested(states[0]) else states[0]
        output = tree.map_structure(lambda y: _where_seen(seen, y, cast(before, y.dtype)), output)
        return tree.map_structure(lambda new, old: _where_seen(seen, new, old), new_states, states), output

    if unroll:
        outputs, states = _unrolled(step, states, inputs, mask)
    elif mask is None:
        states, outputs = scan(lambda c, x: step(c, (x, None)), states, inputs)
    else:
        states, outputs = scan(step, states, (inputs, mask))
    last_output = tree.map_structure(lambda y: y[-1], outputs)
    if not return_all_outputs:
        outputs = tree.map_structure(lambda y: ops.expand_dims(y, axis=[0]), last_output)
    if not time_major:
        outputs = tree.map_structure(_time_first, outputs)
    return last_output, outputs, states


def _unrolled(step, states, inputs, mask):
    count = tree.flatten(inputs)[0].dims[0]
    if not isinstance(count, int) or count == 0:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    outputs = []
    for t in range(count):
        states, output = step(states, (tree.map_structure(lambda x: x[t], inputs), None if mask is None else mask[t]))
        outputs.append(output)
    return tree.map_structure(lambda *steps: ops.stack(list(steps), axis=0), *outputs), states


# --- whole sequences --------------------------------------------------------------------------------------------------------------------


def cudnn_ok(activation, recurrent_activation, unroll, use_bias=True, reset_after=None):
    """Whether the engine's LSTM and GRU have these functions; the name is Keras's."""
    from keras.src import activations
    from keras.src import ops as keras_ops

    return activation in (activations.tanh, keras_ops.tanh) and recurrent_activation in (activations.sigmoid, keras_ops.sigmoid)


def _expect_row(name, mask, activation, recurrent_activation):
    """Otherwise Keras goes on with `rnn`. Masks do too: whether masked outputs are zero is told to `rnn` only."""
    if mask is not None:
        raise NotImplementedError(f"{name} with a mask")
    if not cudnn_ok(activation, recurrent_activation, False):
        raise NotImplementedError(f"{name} with other activations than tanh and sigmoid")


def _projected(inputs, kernel, bias, go_backwards):
    """The part of all steps that does not depend on the state, [time, batch, gates]."""
    inputs = _time_first(convert_to_tensor(inputs))
    if go_backwards:
        inputs = ops.flip(inputs, axis=[0])
    product = ops.matmul(inputs, convert_to_tensor(kernel))
    return product if bias is None else ops.add(product, bias)


def _results(outputs, states, return_sequences):
    last = states[0]
    return last, _time_first(outputs) if return_sequences else ops.expand_dims(last, axis=[1]), list(states)


def lstm(
    inputs,
    initial_state_h,
    initial_state_c,
    mask,
    kernel,
    recurrent_kernel,
    bias,
    activation,
    recurrent_activation,
    return_sequences=False,
    go_backwards=False,
    unroll=False,
):
    _expect_row("lstm", mask, activation, recurrent_activation)
    projected = _projected(inputs, kernel, None if bias is None else convert_to_tensor(bias), go_backwards)
    h, c = convert_to_tensor(initial_state_h), convert_to_tensor(initial_state_c)
    outputs, h, c = ops.lstm(projected, convert_to_tensor(recurrent_kernel), h, c, None)
    return _results(outputs, (h, c), return_sequences)


def gru(
    inputs,
    initial_state,
    mask,
    kernel,
    recurrent_kernel,
    bias,
    activation,
    recurrent_activation,
    return_sequences=False,
    go_backwards=False,
    unroll=False,
    reset_after=True,
):
    _expect_row("gru", mask, activation, recurrent_activation)
    recurrent_kernel = convert_to_tensor(recurrent_kernel)
    bias = None if bias is None else convert_to_tensor(bias)
    has_two = bias is not None and bias.ndim == 2  # of the input and of the state
    projected = _projected(inputs, kernel, bias[0] if has_two else bias, go_backwards)
    if has_two:
        recurrent_bias = bias[1]
    else:
        recurrent_bias = ops.full(ops.cast(0, dtype=recurrent_kernel.dtype), shape=[recurrent_kernel.dims[1]])
    h = convert_to_tensor(initial_state)
    outputs, h = ops.gru(projected, recurrent_kernel, h, recurrent_bias, None, reset_after=bool(reset_after))
    return _results(outputs, (h,), return_sequences)


def _in_time_order(last, outputs, states):
    """Of a backward pass, whose outputs come in the order in which they were made."""
    return last, ops.flip(outputs, axis=[1]), states


def bidirectional_lstm(
    inputs,
    fwd_initial_state_h,
    fwd_initial_state_c,
    bwd_initial_state_h,
    bwd_initial_state_c,
    mask,
    fwd_kernel,
    fwd_recurrent_kernel,
    fwd_bias,
    bwd_kernel,
    bwd_recurrent_kernel,
    bwd_bias,
    activation,
    recurrent_activation,
    return_sequences=False,
    unroll=False,
):
    shared = (activation, recurrent_activation, return_sequences)
    forward_weights, backward_weights = (fwd_kernel, fwd_recurrent_kernel, fwd_bias), (bwd_kernel, bwd_recurrent_kernel, bwd_bias)
    forward = lstm(inputs, fwd_initial_state_h, fwd_initial_state_c, mask, *forward_weights, *shared)
    backward = lstm(inputs, bwd_initial_state_h, bwd_initial_state_c, mask, *backward_weights, *shared, go_backwards=True)
    return forward, _in_time_order(*backward)


def bidirectional_gru(
    inputs,
    fwd_initial_state,
    bwd_initial_state,
    mask,
    fwd_kernel,
    fwd_recurrent_kernel,
    fwd_bias,
    bwd_kernel,
    bwd_recurrent_kernel,
    bwd_bias,
    activation,
    recurrent_activation,
    return_sequences=False,
    unroll=False,
    reset_after=True,
):
    shared = (activation, recurrent_activation, return_sequences)
    forward_weights, backward_weights = (fwd_kernel, fwd_recurrent_kernel, fwd_bias), (bwd_kernel, bwd_recurrent_kernel, bwd_bias)
    forward = gru(inputs, fwd_initial_state, mask, *forward_weights, *shared, reset_after=reset_after)
    backward = gru(inputs, bwd_initial_state, mask, *backward_weights, *shared, go_backwards=True, reset_after=reset_after)
    return forward, _in_time_order(*backward)
