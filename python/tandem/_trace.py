"""What happens while a function is traced: why a trace is given up, and what it made."""
import threading

from tandem import _core


class NeedsData(NotImplementedError):
    """A trace that needs numbers to go on: the function runs eagerly instead."""


class NeedsEager(NotImplementedError):
    """A first call that makes variables out of traced values: it runs eagerly, later ones are traced."""


_local = threading.local()


def current():
    """The trace of this thread that is under way, or None."""
    return getattr(_local, "trace", None)


class Trace:
    """One trace of a tf.function."""

    def __init__(self, name):
        self.name, self.variables, self.may_make_variables = name, [], True

    def __enter__(self):
        self._before = current()
        _local.trace = self
        return self

    def __exit__(self, *exception):
        _local.trace = self._before
        return False


def variable_is_made(variable):
    trace = current()
    if trace is None or not _core.is_tracing():
        return
    if not trace.may_make_variables:
        raise ValueError(
            "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
            "created once or created outside tf.function. "
            "See https://www.tensorflow.org/guide/function#creating_tfvariables for more information."
        )
    trace.variables.append(variable)


# What the engine says of traced tensors, and of strings, which are never traced.
_NO_VALUES = (
    "while a function is traced",
    "symbolic tf.Tensor",
    "strings cannot be traced",
    "which are not traced",
    "and was given string[",
)


def is_about_missing_values(error):
    """Whether an error says that a traced tensor has no numbers yet."""
    if isinstance(error, NeedsData):
        return True
    text = str(error)
    return isinstance(error, (NotImplementedError, ValueError, TypeError)) and any(part in text for part in _NO_VALUES)
