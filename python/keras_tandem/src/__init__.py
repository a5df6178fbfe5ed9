"""The backend in the layout that Keras 3.16 expects of a package; flat.py gives 3.15 the same names in its own layout."""
from keras_tandem.src import ops, random, rnn, tensorboard
from keras_tandem.src.ops.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_GRADIENT,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    compute_output_spec,
    device_scope,
    name_scope,
)
from keras_tandem.src.variable import Variable

distribution_lib = None
