"""A step of training, evaluation or prediction, compiled once for each kind of batch."""
from keras.src import tree

from keras_tandem.src.ops.core import Tensor, convert_to_tensor
from tandem import _core


class _Place:
    """Where a tensor stands in the structure that a step gives."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


def batch_spec(tensors):
    """Types with the batch as a symbol, so that the last, smaller batch needs no other trace. None when there is no common first axis."""
    rows = {t.shape[0] if t.ndim else None for t in tensors}
    if len(rows) != 1 or None in rows:
        return None
    b = _core.symbol("b")
    return [(t.dtype, [b, *t.dims[1:]]) for t in tensors]


class CompiledFor:
    """The step for batches of one structure and type."""

    def __init__(self, step, tensors, pack):
        self._step, self._pack = step, pack
        self.structure = None  # of what the step gives
        self.specs = batch_spec(tensors)
        self.function = _core.Function(self._body, step.name, self.specs)
        if self.specs is None:
            return
        try:
            self.function.prepare()
        except Exception:
            # Something in the model wants the batch as a number: one trace for each batch size then.
            self.function = _core.Function(self._body, step.name)

    def _body(self, tensors):
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
    """step(data), traced at the first batch of each kind."""

    def __init__(self, trainer, name, function):
        self.trainer, self.name, self.run = trainer, name, function
        self._compiled = {}

    def flatten(self, data):
        leaves = tree.flatten(data)
        tensors = [convert_to_tensor(x) for x in leaves if x is not None]

        def pack(values):
            given = iter(values)
            return tree.pack_sequence_as(data, [None if x is None else next(given) for x in leaves])

        return tensors, pack

    def compiled_for(self, data, tensors, pack):
        structure = tree.map_structure(lambda x: x is None, data)
        key = (repr(structure), tuple((t.dtype.name, tuple(t.shape[1:]), t.ndim) for t in tensors))
        if key not in self._compiled:
            self._compiled[key] = CompiledFor(self, tensors, pack)
        return self._compiled[key]

    def __call__(self, data):
        """Runs it on one batch, and gives what the step gives."""
        tensors, pack = self.flatten(data)
        compiled = self.compiled_for(data, tensors, pack)
        results = compiled.function(tensors)
        return self.trainer.get_metrics_result() if compiled.gives_nothing else compiled.results(results)
