"""Functions of the user's over elements: traced and compiled where that is possible, else called for each element."""

import logging

from tandem import _core, _dtypes, errors
from tandem._function import autograph
from tandem._specs import TensorSpec
from tandem._trace import CallShapes, NeedsData, begun_again, why
from tandem.data._nest import DatasetLeaf, flatten

log = logging.getLogger("tandem.data")


def _needs_values(error):
    """What py_function, `.numpy()`, strings and data-dependent shapes raise in a trace: the function can still be called."""
    text = str(error)
    parts = (
        "while a function is traced",
        "symbolic tf.Tensor",
        "has no numbers yet",
        "has no value",
        "strings cannot be traced",
        "which are not traced",
    )
    return isinstance(error, NotImplementedError) or any(part in text for part in parts)


class ElementFunction:
    """A function of the user's as one over flat lists. What nest it gives is known after its first call."""

    def __init__(self, function, nests, results=None):
        self._function, self._nests, self._results = function, nests, results
        self.nest = None
        self.flat_specs = None  # (dtype, rank) as the first call gave them
        self._shapes = CallShapes()

    def __call__(self, tensors):
        arguments, at = [], 0
        nests = [n() if callable(n) else n for n in self._nests]
        if len(nests) == 1:
            arguments = nests[0].arguments(tensors)
        else:  # a state beside the element: each is one argument
            for nest in nests:
                arguments.append(nest.pack(tensors[at : at + nest.count]))
                at += nest.count
        if _core.is_tracing():
            with self._shapes.trace_of(tensors):
                nest, flat = self._flattened(self._called(arguments))
        else:
            nest, flat = self._flattened(self._called(arguments))
        if self.nest is None:
            self.nest, self.flat_specs = nest, [(t.dtype, t.ndim) for t in flat]
        elif nest.count != self.nest.count:
            raise TypeError(f"the function gave {nest.count} tensors for one element and {self.nest.count} for another")
        return flat

    def _called(self, arguments):
        if not _core.is_tracing():
            return self._function(*arguments)
        with autograph.status(True):  # Python's `if` and `while` over tensors become ops
            return autograph.converted_call(self._function, arguments, {})

    def _flattened(self, value):
        if self._results:
            return self._results(value)
        # A list that a function gives is rather several tensors (py_function gives one) than one tensor of them.
        return flatten(tuple(value) if isinstance(value, list) else value)


_calls_everything = False


def set_debug_mode(is_on):
    """Whether functions are called for each element instead of being traced, so that they can be stepped through."""
    global _calls_everything
    _calls_everything = is_on


def why_not_traced(dataset):
    """What keeps any function over these elements from being traced, or None."""
    if _calls_everything:
        return "tf.data.experimental.enable_debug_mode() was called"
    try:
        specs, leaves = dataset._pipe.specs(), dataset._nest.leaves
    except errors.NotFoundError:  # an error when elements are asked for, and not before
        return "a file is not there yet, which would tell of what kind its elements are"
    if any(isinstance(leaf, DatasetLeaf) for leaf in leaves):
        return "its elements are Datasets"
    if specs is not None and any(dtype is _dtypes.string for dtype, _ in specs):
        return "its elements have strings"
    return None


def _exact_specs(tensors):
    return [(t.dtype, tuple(t.shape)) for t in tensors]


def compile_or_call(dataset, stage, function, compiled, called):
    """compiled() when the function can be traced for the dataset's elements, else called(). Gives (pipeline, reason or None).

    What fails while tracing is tried once with the first element. If it fails there too, it is the user's mistake, and is raised.
    """
    reason = why_not_traced(dataset)
    if reason is None:
        try:
            if dataset._pipe.specs() is None:
                begun_again(lambda: _trace_with_first(dataset, function))
            return begun_again(compiled), None
        except Exception as e:  # any function of the user may raise anything
            if not _needs_values(e) and not _works_eagerly(dataset, function):
                raise
            reason = f"{type(e).__name__}: {why(e)}"
            function.nest = None
    log.info("%s: called by Python for each element, since %s", stage, reason)
    return called(), reason


def _trace_with_first(dataset, function):
    """Types are known only from running: the function must be traceable for those of the first element."""
    first = dataset._first()
    if first is None:
        return
    if any(t.dtype is _dtypes.string for t in first):
        raise NeedsData("its elements have strings")
    _core.Function(function, name="trial").result_specs(_exact_specs(first))


def _works_eagerly(dataset, function):
    try:
        first = dataset._first()
        if first is None:
            return False
        function.nest = None
        function(first)
        return True
    except Exception:
        return False


def learned_specs(function):
    """TensorSpecs of what a called function gave: extents may be others for the next element."""
    return [TensorSpec([None] * rank, dtype) for dtype, rank in function.flat_specs]
