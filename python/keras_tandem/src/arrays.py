"""Arrays of all kinds as the engine takes them."""
import numpy as np
from keras.src import tree
from keras.src.backend.common import is_float_dtype
from keras.src.backend.config import floatx
from keras.src.trainers.data_adapters import array_slicing

from tandem import _core


def plain(x):
    """Other libraries' arrays as NumPy's or ours."""
    if isinstance(x, (_core.Tensor, np.ndarray)) or np.isscalar(x):
        return x
    if hasattr(x, "toarray"):  # SciPy's sparse matrices
        return x.toarray()
    return x


def as_tensors(structure):
    """Each array as a tensor in the memory where it lies; None when one of them cannot be."""
    sliceable = array_slicing.convert_to_sliceable(structure, target_backend="numpy")
    kinds = []

    def convert(s):
        if s is None:
            return None
        array = s.array
        kinds.append(type(array))
        if isinstance(array, _core.Tensor):
            return array
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" or array.dtype.byteorder == ">":
            kinds.append(None)
            return None
        if is_float_dtype(str(array.dtype)) and str(array.dtype) != floatx():
            array = array.astype(floatx())
        if not array.flags.aligned:
            array = array.copy()
        return _core.from_buffer(array, shares=True)

    made = tree.map_structure(convert, sliceable)
    return None if None in kinds else made


def adapted(x):
    """Our own datasets behind the interface that Keras takes batches from."""
    return x


def first_batch(epoch_iterator):
    for _, _, iterator in epoch_iterator:
        return next(iterator) if not isinstance(iterator, (list, tuple)) else iterator[0]
    raise ValueError("there is no data")
