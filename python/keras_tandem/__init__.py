"""Keras on Tandem: import this before keras, or `import tandem`, or set KERAS_BACKEND=tandem."""
import os

os.environ.setdefault("KERAS_BACKEND", "tandem")

from keras_tandem import _hook  # noqa: E402

_hook.install()
