"""tf.autodiff."""
from tandem._gradient import ForwardAccumulator, GradientTape  # noqa: F401
