"""tf.profiler: the engine's profiles, by TensorFlow's names."""
from tandem.profiler import experimental  # noqa: F401
