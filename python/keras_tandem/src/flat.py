"""The backend as Keras 3.15 sees one: modules and the most used functions side by side."""
from keras_tandem.src import random, tensorboard
from keras_tandem.src.ops import core, image, linalg, math, nn, numpy
from keras_tandem.src.ops.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    device_scope,
    is_tensor,
    name_scope,
    random_seed_dtype,
    scatter,
    shape,
    stop_gradient,
    vectorized_map,
)
from keras_tandem.src.rnn import bidirectional_gru, bidirectional_lstm, cudnn_ok, gru, lstm, rnn
from keras_tandem.src.variable import Variable
