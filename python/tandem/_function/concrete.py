"""One trace of a tf.function, with the structures of its arguments and results."""
import re

import numpy as np

from tandem import _core
from tandem import errors
from tandem import nest
from tandem._convert import Composite
from tandem._dtypes import as_dtype
from tandem._face import CoreVariable, Tensor, any_tensor, tensor
from tandem._function import autograph as ag
from tandem._misc import Graph
from tandem._specs import TensorSpec, TypeSpec, type_spec_from_value
from tandem._trace import CallShapes, NeedsData, NeedsEager, Trace, begun_again, elements_taken, is_about_missing_values, why

_TENSOR = object()


class ArgumentMismatch(errors.InvalidArgumentError, TypeError):
    """A tensor of another type than the one that the function was made for."""


class ConcreteFunction:
    """A function for arguments of one kind."""

    def __init__(self, owner, args, kwargs, specs=None):
        self._owner, self._args, self._kwargs = owner, _without_values(args), _without_values(kwargs)
        self._specs, self._only_one_tensor = specs, False
        self._result = None  # the structure of the results; _TENSOR where a tensor goes
        self._why_numbers = self._why_eager = None
        self._variables, self._traced_for, self.takes_elements = [], [], False
        self._shapes = CallShapes()
        self.compiled = self._compile(specs)

    @classmethod
    def of_specs(cls, owner, args, kwargs):
        leaves = [
            part for s in nest.flatten((args, kwargs)) if isinstance(s, TypeSpec)
            for part in (s._component_specs() if hasattr(s, "_component_specs") else [s])
        ]
        known = all(isinstance(s, TensorSpec) and s.shape.rank is not None and s.dtype._code >= 0 for s in leaves)
        made = cls(owner, args, kwargs, [(s.dtype, tuple(s.shape)) for s in leaves] if known else None)
        made._input_specs = leaves
        made._argument_specs = (args, kwargs)
        if known:
            made._trace_now()
        elif any(isinstance(s, TensorSpec) and s.dtype._code < 0 or not isinstance(s, TensorSpec) for s in leaves):
            made._why_eager = "an argument is a tensor of strings, or ragged or sparse"
        return made

    def _trace_now(self):
        try:
            begun_again(lambda: self.compiled.result_specs(self._symbolic))
        except Exception as e:
            if isinstance(e, NeedsEager):
                raise
            if is_about_missing_values(e):
                self._why_eager = why(e)
                return
            self._without_symbols(e)

    # --- compiling

    def _compile(self, specs):
        self._symbolic = None if specs is None else _with_symbols(specs)
        return _core.Function(self._body, self._owner._name, self._symbolic)

    def _body(self, tensors):
        owner = self._owner
        owner._counted()
        self._traced_for.append(tuple((t.dtype, tuple(d if isinstance(d, int) else None for d in t.dims)) for t in tensors))
        args, kwargs = self._with_values(tensors)
        self._name_arguments(args)
        taken = elements_taken()
        with Trace(owner._name) as trace, self._shapes.trace_of(tensors):
            trace.may_make_variables = not owner._has_run
            with ag.status(owner._autograph):
                result = owner._converted()(*args, **kwargs)
            self._variables += [v for v in trace.variables]
        self.takes_elements = elements_taken() != taken
        if self.takes_elements and _core.is_recorded_outside():
            raise NeedsEager("runs eagerly: it takes elements of a dataset, and a GradientTape around it would take others again")
        leaves = nest.flatten(result, expand_composites=True)
        outputs, places = [], []
        for x in leaves:
            if isinstance(x, (Tensor, CoreVariable)) or hasattr(x, "__tandem_tensor__"):
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

    def _with_values(self, tensors, expand=True):
        source = iter(tensors)

        def value(x):
            return next(source) if x is _TENSOR else x

        leaves = [value(x) for x in nest.flatten((self._args, self._kwargs), expand_composites=expand)]
        return nest.pack_sequence_as((self._args, self._kwargs), leaves, expand_composites=expand)

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
            outputs = begun_again(lambda: self.compiled(tensors))
        except Exception as e:
            if self._result is not None and self._specs is not None and self._why_numbers is None and isinstance(
                e, errors.InternalError
            ):
                raise
            self._without_symbols(e)
            outputs = begun_again(lambda: self.compiled(tensors))
        structure, places = self._result
        if structure is None and places == [_TENSOR]:
            return outputs[0]
        source = iter(outputs)
        leaves = [next(source) if p is _TENSOR else p for p in places]
        return nest.pack_sequence_as(structure, leaves, expand_composites=True)

    def __call__(self, *args, **kwargs):
        """Takes the tensors only, in their order or by the names of their arguments; Python values are part of the function."""
        expand = all(isinstance(s, TensorSpec) for s in getattr(self, "_input_specs", ()))  # ragged and sparse tensors are given whole
        whole = nest.flatten((self._args, self._kwargs), expand_composites=expand)
        specs = [s for s in whole if s is _TENSOR]
        if kwargs:
            names = self._names()
            args = list(args) + [kwargs.pop(n) for n in names[len(args) :] if n in kwargs]
            if kwargs:
                raise TypeError(f"{self.name}: got unexpected keyword arguments {sorted(kwargs)}, expected {names}")
        tensors = []
        known = getattr(self, "_input_specs", None) or [None] * len(specs)
        flat = [x for x in nest.flatten(list(args), expand_composites=expand)]
        if len(flat) != len(specs):
            if len(flat) != len(whole):
                raise TypeError(f"{self.name} takes {len(specs)} tensors, got {len(flat)}")
            # Python values are given again: they must be the ones of the trace.
            for x, place in zip(flat, whole):
                if place is not _TENSOR and not (x is place or x == place):
                    raise TypeError(f"{self.name}: Can not cast {x!r} to Literal[{place!r}]: the function was traced for that value")
            flat = [x for x, place in zip(flat, whole) if place is _TENSOR]
        for i, (x, spec) in enumerate(zip(flat, known)):
            if spec is not None and not isinstance(spec, TensorSpec):
                tensors.append(x)
                continue
            x = any_tensor(x, spec.dtype if spec is not None and not isinstance(x, (Tensor, Composite)) else None)
            if spec is not None and spec.dtype is not x.dtype:
                raise ArgumentMismatch(
                    None, None, f"cannot compute {self.name} as input #{i}(zero-based) was expected to be a {spec.dtype.name} tensor but is a {x.dtype.name} tensor"
                )
            if spec is not None and not spec.shape.is_compatible_with(x.shape):
                raise TypeError(
                    f"Binding inputs to tf.function failed due to `Can not cast TensorSpec(shape={x.shape}, dtype={x.dtype!r}, "
                    f"name=None) to {spec}`"
                )
            tensors.append(x)
        if self._why_eager is not None or any(isinstance(x, Composite) for x in tensors):
            return self._run_eagerly(tensors, expand)
        if _core.is_tracing():
            values = self._with_values(tensors)
            return self._owner._inline(*values)
        try:
            return self.call_flat(tensors)
        except Exception as e:
            if not is_about_missing_values(e):
                raise
            self._why_eager = why(e)
            return self._run_eagerly(tensors, expand)

    def _run_eagerly(self, tensors, expand):
        args, kwargs = self._with_values(tensors, expand)
        result = self._owner._python_function(*args, **kwargs)
        if self._result is None:
            self._eager_outputs = nest.map_structure(lambda x: type_spec_from_value(x) if x is not None else None, result)
        return result

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
        specs = getattr(self, "_input_specs", None)
        if specs is None:  # traced by a call
            specs = [TensorSpec(dims, dtype) for dtype, dims in self._traced_for[0]] if self._traced_for else []
        return _specs_in(self._args, self._kwargs, specs)

    @property
    def structured_outputs(self):
        if self._result is None:
            return getattr(self, "_eager_outputs", None)
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

    @property
    def function_type(self):
        return FunctionType(self)

    @property
    def inference_fn(self):
        return self

    def explain(self):
        if self._why_eager:
            return f"runs eagerly: {self._why_eager}"
        if self._why_numbers:
            return f"compiled for each shape, since a symbol could not be decided: {self._why_numbers}"
        return "compiled" if self._result is not None else "not compiled: its trace ended with an error"

    def graph_text(self):
        """The traced graph; empty for a function that runs eagerly."""
        text = self.compiled.graph()
        if text or self._why_eager is not None or self._specs is None:
            return text
        compiled = self.compiled
        if not self._specs:  # one without arguments is traced when it is called; a stand-in with one that nobody reads shows the graph
            compiled = _core.Function(lambda _: self._body([]), self._owner._name, [(as_dtype("float32"), [])])
        compiled.prepare()
        return compiled.graph()

    def nodes(self):
        """[(name, op, names of inputs)] of the graph. A function that runs eagerly is one call of Python."""
        text = self.graph_text()
        if not text:
            inputs = [n for n, _ in zip(self._names(), self.inputs)]
            return [*[(n, "Placeholder", []) for n in inputs], (self._owner._name, "PyFunction", inputs)]
        names, found = {}, []
        header = text.split("{", 1)[0]
        for i, number in enumerate(re.findall(r"%(\d+):", header)):
            own = self._names()
            names[number] = own[i] if i < len(own) else f"captured_{number}"
            found.append((names[number], "Placeholder", []))
        for number, op, operands in re.findall(r"^  %(\d+) = (\w+)\(([^;)]*)", text, re.MULTILINE):
            names[number] = f"{op}_{number}"
            found.append((names[number], op, [names.get(n, n) for n in re.findall(r"%(\d+)", operands)]))
        return found

    def pretty_printed_signature(self, verbose=True):
        lines = self._signature_lines()
        return lines if verbose else f"{self._owner._name}({', '.join(self._names())})"

    def _signature_lines(self):
        import inspect

        args, kwargs = self.structured_input_signature
        parameters = inspect.signature(self._owner._python_function).parameters.values()
        shown = [f"  {p.name} ({p.kind.name}): {_kind_text(v)}" for p, v in zip(parameters, [*args, *kwargs.values()])]
        return "\n".join(["Input Parameters:", *(shown or ["  None"]), "Output Type:", f"  {self.structured_outputs}", "Captures:", "  None"])

    def __repr__(self):
        return f"<ConcreteFunction {self._owner._name} at {id(self):#x}>"

    def __str__(self):
        return f"ConcreteFunction {self._signature_lines()}"


def _kind_text(x):
    """A spec as it is, and a Python value as the one that a function was traced for."""
    if isinstance(x, (list, tuple)) and not hasattr(x, "as_list"):
        return f"{type(x).__name__.title()}[{', '.join(map(_kind_text, x))}]"
    return str(x) if x is None or isinstance(x, TypeSpec) else f"Literal[{x!r}]"


class FunctionType:
    """Parameters and result of a concrete function, as it prints them."""

    def __init__(self, concrete):
        args, kwargs = concrete.structured_input_signature
        self.parameters = dict(zip(concrete._names(), [*args, *kwargs.values()]))
        self.output = concrete.structured_outputs

    def __repr__(self):
        shown = ", ".join(f"{n}: {_kind_text(v)}" for n, v in self.parameters.items())
        return f"({shown}) -> {self.output}"


class FunctionGraph(Graph):
    """What `.graph` of a concrete function can tell."""

    def __init__(self, concrete):
        self._concrete = concrete
        self.name = concrete._owner._name
        self.structured_input_signature, self.structured_outputs = concrete.structured_input_signature, concrete.structured_outputs
        self.variables, self.outputs, self.inputs = concrete.variables, concrete.outputs, concrete.inputs

    def as_graph_def(self, from_version=None, add_shapes=False):
        """The engine's graph as a message: names, ops and inputs of its nodes. The ops are ours, so TensorFlow cannot run it."""
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        made = GraphDef()
        for name, op, inputs in self._concrete.nodes():
            made.node.add(name=name, op=op, input=inputs)
        return made

    def as_text(self):
        return self._concrete.graph_text()

    def get_operations(self):
        return [line for line in self.as_text().splitlines() if "=" in line]


def _without_values(x):
    """Arguments with places where tensors were."""

    def leaf(v):
        if isinstance(v, TypeSpec):
            return v._from_components([_TENSOR] * len(v._component_specs())) if hasattr(v, "_component_specs") else _TENSOR
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
