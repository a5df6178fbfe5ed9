"""What Keras asks of TensorFlow's inner parts."""
from tandem._convert import Composite as CompositeTensor  # noqa: F401
from tandem._core import Tensor as EagerTensor  # noqa: F401
