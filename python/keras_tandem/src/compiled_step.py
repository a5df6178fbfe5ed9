"""A step of training, evaluation or prediction, compiled once for each kind of batch."""
import warnings

from keras.src import tree

from keras_tandem.src.ops.core import Tensor, convert_to_tensor
from tandem import _core
from tandem._trace import CallShapes, begun_again, is_about_missing_values, why


class _Place:
    """Where a tensor stands in the structure that a step gives."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


def batch_types(types):
    """Types with the batch as a symbol, so that the last, smaller batch needs no other trace, and one for each extent that is None.
    None when the tensors have no common first axis."""
    if not types or len({dims[0] if dims else "none" for _, dims in types}) != 1 or not types[0][1]:
        return None
    b = _core.symbol("b")
    return [(dtype, [b, *[_core.symbol(f"d{i}_{k}") if d is None else d for k, d in enumerate(dims[1:])]]) for i, (dtype, dims) in enumerate(types)]


def types_of(tensors):
    return [(t.dtype, tuple(t.shape)) for t in tensors]


class CompiledFor:
    """The step for batches of one structure and type."""

    def __init__(self, step, types, pack):
        self._step, self._pack = step, pack
        self.structure = None  # of what the step gives
        self.why_eager = None  # the step needs numbers while it is traced
        self._shapes, self._learns_first = CallShapes(), False
        self.specs = batch_types(types)
        self.is_symbolic = False  # whether one trace serves every batch
        self.function = _core.Function(self._body, step.name, None if step.by_size else self.specs)
        if self.specs is None:
            return
        try:
            if step.by_size:
                self._check_with_numbers()
            else:
                begun_again(self.function.prepare)
                self.is_symbolic = True
        except Exception:
            # Something in the model wants the batch as a number: one trace for each batch size then.
            self.function = _core.Function(self._body, step.name)
            self._check_with_numbers()
            self._learns_first = self._shapes.has_learned

    def _check_with_numbers(self):
        """Whether the step can be traced at all: what a Python function of unknown shape gives, for example, cannot."""
        try:
            specs = [(dtype, [d if type(d) is int else 2 for d in dims]) for dtype, dims in self.specs]
            begun_again(lambda: self.function.result_specs(specs))
        except Exception as e:
            if is_about_missing_values(e):
                self.why_eager = why(e)
                warnings.warn(f"{self._step.name} runs eagerly: {self.why_eager}", stacklevel=2)

    def _body(self, tensors):
        if self._learns_first:
            # The loop that calls cannot take a batch again: what the trace has to know is learned in one that is thrown away.
            with _core.EagerScope():
                begun_again(lambda: _core.Function(self._traced, "shapes").result_specs(types_of(tensors)))
        return self._traced(tensors)

    def _traced(self, tensors):
        with self._shapes.trace_of(tensors):
            result = self._step.run(self._pack(tensors))
        found = []

        def place(x):
            if x is None:
                return None
            found.append(x if isinstance(x, Tensor) else convert_to_tensor(x))
            return _Place(len(found) - 1)

        if self._step.trainer._is_metrics_result(result):
            self.structure = result.keys()
            return []
        self.structure = tree.map_structure(place, result)
        return found

    @property
    def gives_nothing(self):
        """What the step would give is read from the metrics when somebody wants it."""
        return isinstance(self.structure, type({}.keys()))

    def results(self, tensors):
        return tree.map_structure(lambda x: tensors[x.number] if isinstance(x, _Place) else x, self.structure)


class CompiledStep:
    """step(data), traced at the first batch of each kind, and, `by_size`, of each number of rows."""

    def __init__(self, trainer, name, function, by_size=False):
        self.trainer, self.name, self.run, self.by_size = trainer, name, function, by_size
        self._compiled = {}

    def flatten(self, data):
        leaves = tree.flatten(data)
        tensors = [convert_to_tensor(x) for x in leaves if x is not None]

        def pack(values):
            given = iter(values)
            return tree.pack_sequence_as(data, [None if x is None else next(given) for x in leaves])

        return tensors, pack

    def compiled_for(self, data, types, pack):
        """`data` shows the structure of a batch: its leaves may be anything, but where there is none they are None."""
        structure = tree.map_structure(lambda x: x is None, data)
        key = (_core.current_device(), repr(structure), tuple((dtype.name, dims[1:], len(dims)) for dtype, dims in types))
        if key not in self._compiled:
            self._compiled[key] = CompiledFor(self, types, pack)
        return self._compiled[key]

    def budget_summaries(self):
        """What each kind of batch's plan does to stay within a device's memory; one line each, none for what fits as it is."""
        lines = [_core.budget_summary(compiled.function) for compiled in self._compiled.values()]
        return list(dict.fromkeys(line for line in lines if line))

    def predicted_seconds(self):
        """How long a step of each kind of batch is expected to take when steps follow each other."""
        return [compiled.function.predicted_seconds() for compiled in self._compiled.values()]

    def __call__(self, data):
        """Runs it on one batch, and gives what the step gives."""
        tensors, pack = self.flatten(data)
        compiled = self.compiled_for(data, types_of(tensors), pack)
        if compiled.why_eager:
            return self.run(data)
        results = compiled.function(tensors)
        return self.trainer.get_metrics_result() if compiled.gives_nothing else compiled.results(results)
