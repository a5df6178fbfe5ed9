"""Arrays of all kinds as the engine takes them."""
import numpy as np
from keras.src import tree
from keras.src.backend.common import is_float_dtype
from keras.src.backend.config import floatx
from keras.src.trainers.data_adapters import array_slicing

from keras_tandem.src.ops.core import dense
from tandem import _core
from tandem._sparse import SparseTensor


def plain(x):
    """Other libraries' arrays as NumPy's or ours."""
    if isinstance(x, (_core.Tensor, np.ndarray)) or np.isscalar(x):
        return x
    x = plain_sparse(x)
    if hasattr(x, "toarray"):  # SciPy's sparse matrices
        return x.toarray()
    return x


def plain_sparse(x):
    return dense(x) if isinstance(x, SparseTensor) else x


def dense_batches(dataset):
    """A dataset without sparse components: each batch is made dense when it is taken."""
    if not any(hasattr(getattr(leaf, "like", None), "dense_shape") for leaf in dataset._nest.leaves):
        return dataset
    shapes = tree.map_structure(lambda s: list(s.shape), dataset.element_spec)

    def all_dense(*parts):
        return tree.map_structure(plain_sparse, parts if len(parts) > 1 else parts[0])

    made = dataset.map(all_dense)
    told = lambda *parts: tree.map_structure_up_to(parts if len(parts) > 1 else parts[0], _with_shape, parts if len(parts) > 1 else parts[0], shapes)  # noqa: E731
    return made.map(told) if any(s.shape.rank is None for s in made._flat_specs()) else made


def _with_shape(x, shape):
    from tandem import ensure_shape

    return ensure_shape(x, shape)


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


def first_batch(epoch_iterator):
    for _, _, iterator in epoch_iterator:
        return next(iterator) if not isinstance(iterator, (list, tuple)) else iterator[0]
    raise ValueError("there is no data")
