"""Tandem: TensorFlow programs on the CPU and the GPU together."""
from tandem import _core
from tandem import _convert, _dtypes, _shape, errors, _tensor

__version__ = "0.1.0"

_core.configure({
    "convert": _convert.convert,
    "as_dtype": _dtypes.as_dtype,
    "shape": _shape.TensorShape,
    "index": _tensor.index,
    "raise_error": errors._raise,
    "dtypes": _dtypes._core_types,
})  # fmt: skip
_tensor.setup()

import keras_tandem  # noqa: E402, F401: `import keras` from now on finds the backend; Keras itself is not loaded
