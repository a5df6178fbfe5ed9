"""What happens while a function is traced: why a trace is given up, and what it made."""
import os
import threading

from tandem import _core


class NeedsData(NotImplementedError):
    """A trace that needs numbers to go on: the function runs eagerly instead."""


class NeedsEager(NotImplementedError):
    """A first call that makes variables out of traced values: it runs eagerly, later ones are traced."""


class ShapeLearned(BaseException):
    """The program told the shape of what a Python function gave. The trace begins again and knows it when it comes to the call.
    No error: nobody but the one who traces may catch it."""

    def __init__(self):
        super().__init__("the shape of a Python function's result was learned; the trace has to begin again")


class CallShapes:
    """The shapes that the program tells after its calls of Python functions, for each kind of arguments of one function."""

    def __init__(self):
        self._by_kind = {}

    @property
    def has_learned(self):
        return any(self._by_kind.values())

    def trace_of(self, tensors):
        """Around one trace with these arguments."""
        return _ShapesOfTrace(self._by_kind.setdefault(str([t.dims for t in tensors]), {}))


class _ShapesOfTrace:
    def __init__(self, known):
        self._known, self._count = known, 0

    def __enter__(self):
        self._before = call_shapes()
        _local.shapes = self
        return self

    def __exit__(self, *exception):
        _local.shapes = self._before
        return False

    def next_call(self):
        self._count += 1
        return self._count - 1

    def known(self, call, result):
        return self._known.get((call, result))

    def learn(self, call, result, dims):
        self._known[call, result] = list(dims)
        raise ShapeLearned()


def call_shapes():
    """What the trace that is under way knows of the results of Python functions; None when it cannot begin again."""
    return getattr(_local, "shapes", None)


def element_is_taken():
    """A trace comes to the next element of a dataset. A gradient that computes something again would take another one."""
    _local.taken = elements_taken() + 1


def elements_taken():
    return getattr(_local, "taken", 0)


class NoElementsUnderTape:
    """Around a loop or a branch that is traced: what its gradient computes again must not take elements."""

    def __enter__(self):
        self._before = elements_taken()

    def __exit__(self, kind, *exception):
        if kind is None and elements_taken() != self._before and _core.is_recording():
            raise NeedsData("a loop or a branch inside of a GradientTape takes elements of a dataset")
        return False


def begun_again(run):
    """run(), which traces; as often as something is learned that the trace needs from its start."""
    while True:
        try:
            return run()
        except ShapeLearned:
            continue


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
    "a shape is wanted, but",  # and a traced tensor that depends on data was given
    "has no numbers yet",
)


def is_about_missing_values(error):
    """Whether an error says that a traced tensor has no numbers yet."""
    if isinstance(error, NeedsData):
        return True
    text = str(error)
    return isinstance(error, (NotImplementedError, ValueError, TypeError)) and any(part in text for part in _NO_VALUES)


def users_line(error):
    """'file.py:12', where the user's program did what raised the error; '' when it was nobody's line."""
    found, trace = None, error.__traceback__
    while trace is not None:
        line = _core.users_line(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        found, trace = line or found, trace.tb_next
    return "" if found is None else f"{os.path.basename(found[0])}:{found[1]}"


def why(error):
    """An error as a reason, in one line."""
    text, line = str(error).splitlines()[0] if str(error) else type(error).__name__, users_line(error)
    return f"{text} (at {line})" if line else text
