"""One trace of a tf.function, with the structures of its arguments and results."""
import numpy as np

from tandem import _core
from tandem import errors
from tandem import nest
from tandem._convert import Composite
from tandem._face import CoreVariable, Tensor, any_tensor, tensor
from tandem._function import autograph as ag
from tandem._misc import Graph
from tandem._specs import TensorSpec, TypeSpec
from tandem._trace import NeedsData, NeedsEager, Trace, is_about_missing_values

_TENSOR = object()


class ConcreteFunction:
    """A function for arguments of one kind."""

    def __init__(self, owner, args, kwargs, specs=None):
        self._owner, self._args, self._kwargs = owner, _without_values(args), _without_values(kwargs)
        self._specs, self._only_one_tensor = specs, False
        self._result = None  # the structure of the results; _TENSOR where a tensor goes
        self._why_numbers = None
        self._variables = []
        self.compiled = self._compile(specs)

    @classmethod
    def of_specs(cls, owner, args, kwargs):
        leaves = [s for s in nest.flatten((args, kwargs)) if isinstance(s, TypeSpec)]
        known = all(isinstance(s, TensorSpec) and s.shape.rank is not None and s.dtype._code >= 0 for s in leaves)
        made = cls(owner, args, kwargs, [(s.dtype, tuple(s.shape)) for s in leaves] if known else None)
        made._input_specs = leaves
        if known:
            made._trace_now()
        return made

    def _trace_now(self):
        try:
            self.compiled.result_specs(self._symbolic)
        except Exception as e:
            if isinstance(e, NeedsEager):
                raise
            self._without_symbols(e)

    # --- compiling

    def _compile(self, specs):
        self._symbolic = None if specs is None else _with_symbols(specs)
        return _core.Function(self._body, self._owner._name, self._symbolic)

    def _body(self, tensors):
        owner = self._owner
        owner._counted()
        args, kwargs = self._with_values(tensors)
        self._name_arguments(args)
        with Trace(owner._name) as trace:
            trace.may_make_variables = not owner._has_run
            with ag.status(owner._autograph):
                result = owner._converted()(*args, **kwargs)
            self._variables += [v for v in trace.variables]
        leaves = nest.flatten(result, expand_composites=True)
        outputs, places = [], []
        for x in leaves:
            if isinstance(x, (Tensor, CoreVariable)):
                outputs.append(tensor(x))
                places.append(_TENSOR)
            elif x is None or not isinstance(x, (bool, int, float, np.ndarray, np.generic)):
                if isinstance(x, (str, bytes)) or isinstance(x, Composite):
                    raise NeedsData("the result is a tensor of strings")
                places.append(x)
            else:
                outputs.append(any_tensor(x))
                places.append(_TENSOR)
        if self._only_one_tensor and not (result is leaves[0] if leaves else False):
            from tandem._function import _OtherKind

            raise _OtherKind()
        self._result = (result if not isinstance(result, (Tensor, CoreVariable)) else None, places)
        self._outputs = [TensorSpec(t.shape, t.dtype) for t in outputs]
        return outputs

    def _name_arguments(self, args):
        """Traced arguments print as the parameters they are."""
        signature = self._owner._signature
        if signature is None:
            import inspect

            try:
                signature = inspect.signature(self._owner._python_function)
            except (TypeError, ValueError):
                return
        for name, value in zip(signature.parameters if signature else (), args):
            if isinstance(value, Tensor):
                value._graph_name = f"{name}:0"

    def _with_values(self, tensors):
        source = iter(tensors)

        def value(x):
            return next(source) if x is _TENSOR else x

        leaves = [value(x) for x in nest.flatten((self._args, self._kwargs), expand_composites=True)]
        return nest.pack_sequence_as((self._args, self._kwargs), leaves, expand_composites=True)

    def _without_symbols(self, error):
        """A symbol that cannot be decided: numbers instead, and one trace for each shape."""
        if self._specs is None or isinstance(error, NeedsEager) or is_about_missing_values(error) or not isinstance(
            error, (errors.OpError, TypeError, ValueError)
        ):
            raise error
        self._why_numbers, self._specs = str(error).splitlines()[0], None
        self.compiled = self._compile(None)

    # --- calling

    @property
    def gives_one_tensor(self):
        return self._result is not None and self._result[0] is None and self._result[1] == [_TENSOR]

    def must_give_one_tensor(self):
        """Later traces of the same function for other shapes must be of this kind too."""
        self._only_one_tensor = True

    def call_flat(self, tensors):
        try:
            outputs = self.compiled(tensors)
        except Exception as e:
            if self._result is not None and self._specs is not None and self._why_numbers is None and isinstance(
                e, errors.InternalError
            ):
                raise
            self._without_symbols(e)
            outputs = self.compiled(tensors)
        structure, places = self._result
        if structure is None and places == [_TENSOR]:
            return outputs[0]
        source = iter(outputs)
        leaves = [next(source) if p is _TENSOR else p for p in places]
        return nest.pack_sequence_as(structure, leaves, expand_composites=True)

    def __call__(self, *args, **kwargs):
        """Takes the tensors only, in their order or by the names of their arguments; Python values are part of the function."""
        specs = [s for s in nest.flatten((self._args, self._kwargs), expand_composites=True) if s is _TENSOR]
        if kwargs:
            names = self._names()
            args = list(args) + [kwargs.pop(n) for n in names[len(args) :] if n in kwargs]
            if kwargs:
                raise TypeError(f"{self.name}: got unexpected keyword arguments {sorted(kwargs)}, expected {names}")
        tensors = []
        known = getattr(self, "_input_specs", None) or [None] * len(specs)
        flat = [x for x in nest.flatten(list(args), expand_composites=True)]
        if len(flat) != len(specs):
            whole = nest.flatten((self._args, self._kwargs), expand_composites=True)
            if len(flat) == len(whole):  # Python values are given again: they must be the ones of the trace
                flat = [x for x, place in zip(flat, whole) if place is _TENSOR]
            else:
                raise TypeError(f"{self.name} takes {len(specs)} tensors, got {len(flat)}")
        for x, spec in zip(flat, known):
            x = any_tensor(x, spec.dtype if spec is not None and not isinstance(x, (Tensor, Composite)) else None)
            if spec is not None and not (spec.dtype is x.dtype and spec.shape.is_compatible_with(x.shape)):
                raise TypeError(
                    f"Binding inputs to tf.function failed due to `Can not cast TensorSpec(shape={x.shape}, dtype={x.dtype!r}, "
                    f"name=None) to {spec}`"
                )
            tensors.append(x)
        if any(isinstance(x, Composite) for x in tensors):
            values = self._with_values(tensors)
            return self._owner._python_function(*values[0], **values[1])
        if _core.is_tracing():
            values = self._with_values(tensors)
            return self._owner._inline(*values)
        return self.call_flat(tensors)

    def _names(self):
        import inspect

        return list(inspect.signature(self._owner._python_function).parameters)

    # --- looking at it

    name = property(lambda self: f"__inference_{self._owner._name}_{id(self) & 0xFFFF}")
    function_def = property(lambda self: None)
    inputs = property(lambda self: getattr(self, "_input_specs", []))
    captured_inputs = property(lambda self: [])
    variables = property(lambda self: tuple(self._variables))
    trainable_variables = property(lambda self: tuple(v for v in self._variables if v.trainable))
    graph = property(lambda self: FunctionGraph(self))

    @property
    def outputs(self):
        return list(getattr(self, "_outputs", []))

    @property
    def structured_input_signature(self):
        return _specs_in(self._args, self._kwargs, getattr(self, "_input_specs", []))

    @property
    def structured_outputs(self):
        if self._result is None:
            return None
        structure, places = self._result
        source = iter(self._outputs)
        leaves = [next(source) if p is _TENSOR else p for p in places]
        return leaves[0] if structure is None else nest.pack_sequence_as(structure, leaves, expand_composites=True)

    @property
    def output_shapes(self):
        return nest.map_structure(lambda s: getattr(s, "shape", None), self.structured_outputs)

    @property
    def output_dtypes(self):
        return nest.map_structure(lambda s: getattr(s, "dtype", None), self.structured_outputs)

    def explain(self):
        if self._why_numbers:
            return f"compiled for each shape, since a symbol could not be decided: {self._why_numbers}"
        return "compiled"

    def graph_text(self):
        return self.compiled.graph()

    def pretty_printed_signature(self, verbose=True):
        args, kwargs = self.structured_input_signature
        names = self._names()
        lines = [f"{self._owner._name}({', '.join(names)})"]
        if not verbose:
            return lines[0]
        lines.append("  Args:")
        lines += [f"    {n}: {v}" for n, v in zip(names, [*args, *kwargs.values()])]
        lines.append(f"  Returns:\n    {self.structured_outputs}")
        return "\n".join(lines)

    def __repr__(self):
        return f"<ConcreteFunction {self._owner._name} at {id(self):#x}>"

    def __str__(self):
        import inspect

        args, kwargs = self.structured_input_signature
        parts = [
            f"{n}: {v!r}" for n, v in zip(inspect.signature(self._owner._python_function).parameters, [*args, *kwargs.values()])
        ]
        return f"ConcreteFunction Input Parameters:\n  " + "\n  ".join(parts) + f"\nOutput Type:\n  {self.structured_outputs}\nCaptures:\n  None"


class FunctionGraph(Graph):
    """What `.graph` of a concrete function can tell."""

    def __init__(self, concrete):
        self._concrete = concrete
        self.name = concrete._owner._name
        self.structured_input_signature, self.structured_outputs = concrete.structured_input_signature, concrete.structured_outputs
        self.variables, self.outputs, self.inputs = concrete.variables, concrete.outputs, concrete.inputs

    def as_text(self):
        return self._concrete.graph_text()

    def get_operations(self):
        return [line for line in self.as_text().splitlines() if "=" in line]


def _without_values(x):
    """Arguments with places where tensors were."""

    def leaf(v):
        if isinstance(v, TypeSpec):
            return _TENSOR
        if isinstance(v, Tensor) or (isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "biuf"):
            return _TENSOR
        return v

    flat = nest.flatten(x, expand_composites=True)
    return nest.pack_sequence_as(x, [leaf(v) for v in flat], expand_composites=True) if nest.is_nested(x) else leaf(x)


def _specs_in(args, kwargs, specs):
    source = iter(specs)
    leaves = [next(source, None) if x is _TENSOR else x for x in nest.flatten((args, kwargs), expand_composites=True)]
    return nest.pack_sequence_as((args, kwargs), leaves, expand_composites=True)


def _with_symbols(specs):
    """Each unknown extent as a symbol of its own."""
    made, count = [], 0
    for dtype, dims in specs:
        extents = []
        for d in dims:
            if d is None:
                d, count = _core.symbol(f"n{count}"), count + 1
            extents.append(d)
        made.append((dtype, extents))
    return made
