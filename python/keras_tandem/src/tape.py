"""A tape over Keras's variables."""
from keras.src.backend.common import KerasVariable

from tandem import _core


class GradientTape:
    """Records while its `with` block runs; variables are watched when they are read."""

    def __enter__(self):
        self._tape = _core.Tape()
        return self

    def __exit__(self, *error):
        self._tape.stop()

    def gradient(self, target, sources):
        sources = [v._value if isinstance(v, KerasVariable) else v for v in sources]
        return self._tape.gradients([target], sources)
