"""tf.function: Python functions that are traced once for each kind of arguments and then run as compiled graphs."""
import functools
import inspect
import weakref

import numpy as np

from tandem import _core
from tandem import nest
from tandem._convert import Composite
from tandem._face import CoreVariable, Tensor, any_tensor, convert
from tandem._function import autograph as ag
from tandem._function.concrete import ConcreteFunction
from tandem._specs import TensorSpec, TypeSpec, type_spec_from_value
from tandem._trace import NeedsEager, ShapeLearned, begun_again, is_about_missing_values, why

_run_eagerly = False


def run_functions_eagerly(run_eagerly):
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly():
    return _run_eagerly


class _Identity:
    """A key for an object without equality: the object itself, as long as it lives."""

    __slots__ = ("_ref", "_hash")

    def __init__(self, x):
        try:
            self._ref = weakref.ref(x)
        except TypeError:
            self._ref = lambda x=x: x
        self._hash = id(x)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        mine = self._ref()
        return type(other) is _Identity and mine is not None and mine is other._ref()


def _python_key(x):
    if isinstance(x, CoreVariable):
        return ("variable", x.dtype, x.dims, _Identity(x))
    try:
        hash(x)
        if x != x:
            return ("nan", type(x))
        return (type(x), x) if type(x).__eq__ is not object.__eq__ else _Identity(x)
    except (TypeError, ValueError):
        return _Identity(x)


def _structure_key(x):
    if nest.is_nested(x):
        children = nest._children(x)
        return (type(x), tuple((k, _structure_key(c)) for k, c in children))
    if isinstance(x, Composite) and hasattr(x, "_components"):
        return (type(x), len(x._components()), x._static_key() if hasattr(x, "_static_key") else None)
    return None


class Function:
    """What @tf.function makes."""

    def __init__(
        self, python_function, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, name=None
    ):
        self._python_function = python_function
        self._autograph, self._jit_compile, self._reduce_retracing = autograph, jit_compile, reduce_retracing
        self._name = name or getattr(python_function, "__name__", type(python_function).__name__)
        self._input_signature = None if input_signature is None else tuple(input_signature)
        self._concrete = {}  # key -> ConcreteFunction, or a text that says why this kind of call runs eagerly
        self._relaxed = {}  # key without shapes -> shapes seen
        self._count = 0
        self._plain = None  # the compiled function of calls with tensors only and one tensor as the result
        self._plain_count = -1
        self._has_run = False
        self._scope, self._by_scope = "", {}  # the device scope that it is traced in, and the same function for other scopes
        self._bound = weakref.WeakKeyDictionary()
        self._signature = None
        if self._input_signature is not None:
            self._check_signature()
        functools.update_wrapper(self, python_function, updated=())

    def _check_signature(self):
        for spec in nest.flatten(self._input_signature):
            if not isinstance(spec, TypeSpec):
                raise TypeError(
                    f"input_signature must be a possibly nested sequence of TensorSpec objects, got {self._input_signature}"
                )

    # --- calling

    def __call__(self, *args, **kwargs):
        # The common case first: nothing but tensors, and a function whose compiled form takes them.
        if self._plain is not None and len(args) == self._plain_count and not kwargs and not _run_eagerly and _core.current_device() == self._scope:
            for a in args:
                if type(a) is not Tensor:
                    break
            else:
                try:
                    return self._plain(args)[0]
                except ShapeLearned:
                    pass
                except Exception as e:
                    if type(e) is not _OtherKind and self._reason_to_run_eagerly(e) is None:
                        raise
        return self._call(args, kwargs)

    def _call(self, args, kwargs):
        if _run_eagerly:
            return self._python_function(*args, **kwargs)
        if _core.is_tracing():
            return self._inline(args, kwargs)
        scope = _core.current_device()
        if scope != self._scope:
            return self._in_scope(scope)._call(args, kwargs)
        args, kwargs = self._canonical(args, kwargs)
        key, tensors, specs = self._key(args, kwargs)
        concrete = self._concrete.get(key)
        if concrete is None:
            concrete = self._trace(key, args, kwargs, specs)
        if type(concrete) is str or tensors is None:
            return self._python_function(*args, **kwargs)
        if concrete.takes_elements and _core.is_recording():  # a gradient of the whole would take other elements
            return self._python_function(*args, **kwargs)
        try:
            result = concrete.call_flat(tensors)
        except Exception as e:
            reason = self._reason_to_run_eagerly(e)
            if reason is None:
                raise
            if not isinstance(e, NeedsEager):
                self._concrete[key] = reason
            else:
                self._concrete.pop(key, None)
            return self._python_function(*args, **kwargs)
        self._has_run = True
        if concrete.variables:  # a trace that made variables is good for one call: the next one must find them
            self._concrete.pop(key, None)
            self._check_next_call(args, kwargs, tensors)
            return result
        if key[0] == "plain" and concrete.gives_one_tensor and not concrete.takes_elements and self._plain is None and self._input_signature is None:
            # From now on it takes all calls with that many tensors: it traces by itself when shapes are new.
            concrete.must_give_one_tensor()
            self._plain, self._plain_count = concrete.compiled, len(args)
        return result

    def _in_scope(self, scope):
        """This function as calls inside of a tf.device scope mean it: what the body does not place is where the scope says."""
        if not self._concrete:
            self._scope = scope
            return self
        found = self._by_scope.get(scope)
        if found is None:
            found = self._by_scope[scope] = self.__deepcopy__(None)
            found._scope, found._has_run = scope, self._has_run
        return found

    def _check_next_call(self, args, kwargs, tensors):
        """Traces once more: a function that makes variables in each call is an error in the first one already, as TensorFlow has it."""
        again = ConcreteFunction(self, args, kwargs, None)
        try:
            begun_again(lambda: again.compiled.result_specs([(t.dtype, t.dims) for t in tensors]))
        except Exception as e:
            if self._reason_to_run_eagerly(e) is None:
                raise

    def _reason_to_run_eagerly(self, error):
        if isinstance(error, NeedsEager):
            return str(error)
        if is_about_missing_values(error):
            return f"runs eagerly: {why(error)}"
        return None

    def _inline(self, args, kwargs):
        """Inside of another trace: the body becomes a part of it."""
        if self._input_signature is not None:
            args, kwargs = self._canonical(args, kwargs)
        with ag.status(self._autograph):
            result = self._converted()(*args, **kwargs)
        return nest.map_structure(
            lambda x: any_tensor(x) if isinstance(x, (CoreVariable, int, float, np.ndarray)) and not isinstance(x, bool) else x,
            result,
        )

    def _converted(self):
        if not self._autograph:
            return self._python_function
        return lambda *args, **kwargs: ag.converted_call(self._python_function, args, kwargs)

    # --- what kind of call it is

    def _canonical(self, args, kwargs):
        """Arguments by the function's own signature: keywords in their places, defaults filled in."""
        if self._signature is None:
            try:
                signature = inspect.signature(self._python_function)
            except (TypeError, ValueError):
                signature = False
            self._signature = signature
        if self._signature:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if self._input_signature is not None:
            args = self._fitted(args)
        return args, kwargs

    def _fitted(self, args):
        """Arguments as the input signature wants them."""
        signature = self._input_signature
        skip = 1 if self._takes_self() and len(args) == len(signature) + 1 else 0
        if len(args) - skip < len(signature):
            raise TypeError(f"{self._name}: input_signature has {len(signature)} arguments, the call {len(args) - skip}")
        fitted = list(args[:skip])
        for value, spec in zip(args[skip:], signature):
            try:
                fitted.append(
                    nest.map_structure(
                        _as_spec, spec, value, check_types=False
                    ) if nest.is_nested(spec) else _as_spec(spec, value)
                )
            except (ValueError, TypeError) as e:
                raise TypeError(
                    f"Binding inputs to tf.function failed due to `{e}`. Received args: {args} and kwargs: {{}} for signature: "
                    f"{self._signature}."
                ) from None
        fitted += args[skip + len(signature) :]
        return tuple(fitted)

    def _takes_self(self):
        names = list(self._signature.parameters) if self._signature else []
        return bool(names) and names[0] == "self"

    def _key(self, args, kwargs):
        """(key, tensors, leaves as specs or Python values); no tensors when the call cannot be compiled."""
        plain = not kwargs
        for a in args:
            if type(a) is not Tensor:
                plain = False
                break
        if plain and self._input_signature is None and not self._reduce_retracing:
            return ("plain", *[(a.dtype, a.dims) for a in args]), list(args), None
        for x in nest.flatten((args, kwargs)):
            if hasattr(x, "_makes_eager"):
                return ("eager", type(x).__name__), None, f"runs eagerly: {x._makes_eager}"
        leaves = nest.flatten((args, kwargs), expand_composites=True)
        tensors, parts = [], []
        for x in leaves:
            if isinstance(x, (np.ndarray, np.generic)) and getattr(x, "dtype", None) is not None and x.dtype.kind in "biuf":
                x = convert(x)
            if isinstance(x, Tensor):
                tensors.append(x)
                parts.append(("tensor", x.dtype, x.dims))
            elif isinstance(x, Composite):
                return ("eager", type(x).__name__), None, f"runs eagerly: an argument is a tensor of {x.dtype.name}"
            else:
                parts.append(_python_key(x))
        structure = _structure_key((args, kwargs))
        parts = self._relax(structure, parts)
        return ("nested", structure, *parts), tensors, None

    def _relax(self, structure, parts):
        """Unknown extents where an input signature has them, or, when retracing is to be reduced, where two calls differ."""
        if self._input_signature is not None:
            specs = iter([s for s in nest.flatten(self._input_signature) if isinstance(s, TensorSpec)])
            made = []
            for p in parts:
                spec = next(specs, None) if p[0] == "tensor" else None
                if spec is not None and spec.shape.rank is not None:
                    p = ("tensor", p[1], tuple(None if d is None else n for d, n in zip(spec.shape, p[2])))
                made.append(p)
            return made
        if not self._reduce_retracing:
            return parts
        key = (structure, *[(p[1], len(p[2])) if p[0] == "tensor" else p for p in parts])
        seen = self._relaxed.get(key)
        if seen is None:
            self._relaxed[key] = parts
            return parts
        merged = []
        for old, new in zip(seen, parts):
            if new[0] == "tensor":
                new = ("tensor", new[1], tuple(a if a == b else None for a, b in zip(old[2], new[2])))
            merged.append(new)
        self._relaxed[key] = merged
        return merged

    # --- tracing

    def _trace(self, key, args, kwargs, reason):
        if key[0] == "eager":
            self._concrete[key] = reason
            return reason
        parts = key[1:] if key[0] == "plain" else [p[1:] for p in key[2:] if isinstance(p, tuple) and p and p[0] == "tensor"]
        symbolic = any(d is None for _, dims in parts for d in dims)
        made = ConcreteFunction(self, args, kwargs, [(dtype, dims) for dtype, dims in parts] if symbolic else None)
        self._concrete[key] = made
        return made

    def _counted(self):
        self._count += 1

    # --- the rest of the interface

    def get_concrete_function(self, *args, **kwargs):
        if self._input_signature is not None:  # there is one kind of arguments only
            if args or kwargs:
                self._canonical(args, kwargs)
            args, kwargs = self._input_signature, {}
        if self._signature is None and (args or kwargs):
            self._signature = inspect.signature(self._python_function)
        if self._signature:
            bound = self._signature.bind(*args, **kwargs) if not self._takes_self() or len(args) != len(
                self._signature.parameters
            ) - 1 else None
            if bound is not None:
                bound.apply_defaults()
                args, kwargs = bound.args, bound.kwargs
        specs = nest.flatten((args, kwargs), expand_composites=False)
        leaves = [type_spec_from_value(x) if isinstance(x, (Tensor, np.ndarray, Composite, TypeSpec)) else x for x in specs]
        key = (
            "specs", _structure_key((args, kwargs)), *[(s._key() if isinstance(s, TypeSpec) else _python_key(s)) for s in leaves]
        )
        found = self._concrete.get(key)
        if found is None:
            args, kwargs = nest.pack_sequence_as((args, kwargs), leaves)
            found = ConcreteFunction.of_specs(self, args, kwargs)
            self._concrete[key] = found
        return found

    def experimental_get_tracing_count(self):
        return self._count + sum(f._count for f in self._by_scope.values())

    def experimental_get_compiler_ir(self, *args, **kwargs):
        concrete = self.get_concrete_function(*args, **kwargs)
        return lambda stage="hlo", **options: concrete.graph_text()

    def explain(self):
        """For each kind of call that was seen: compiled, or run eagerly and why."""
        lines = [f.explain() for f in self._by_scope.values()]
        for key, found in self._concrete.items():
            kinds = [f"{p[0].name}{list(p[1])}" for p in key[1:]] if key[0] == "plain" else [str(p) for p in key[1:]]
            lines.append(f"{self._name}({', '.join(kinds)}): {found if isinstance(found, str) else found.explain()}")
        return "\n".join(lines) or f"{self._name}: not called yet"

    def pretty_printed_concrete_signatures(self, verbose=True):
        return "\n\n".join(f.pretty_printed_signature(verbose) for f in self._concrete.values() if not isinstance(f, str))

    python_function = property(lambda self: self._python_function)
    input_signature = property(lambda self: self._input_signature)
    function_spec = property(lambda self: self)
    name = property(lambda self: self._name)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        try:
            bound = self._bound.get(instance)
        except TypeError:  # an object that can be no key
            bound = instance.__dict__.get(f"__function_{self._name}")
        if bound is None:
            bound = Function(
                _Method(self._python_function, instance),
                self._input_signature,
                self._autograph,
                self._jit_compile,
                self._reduce_retracing,
                self._name,
            )
            try:
                self._bound[instance] = bound
            except TypeError:
                instance.__dict__[f"__function_{self._name}"] = bound
        return bound

    def __repr__(self):
        return f"<tandem.Function {self._name}>"

    def __deepcopy__(self, memo):
        return Function(
            self._python_function, self._input_signature, self._autograph, self._jit_compile, self._reduce_retracing, self._name
        )

    def _decorate(self, decorator):
        self._python_function = decorator(self._python_function)


class _OtherKind(Exception):
    """A plain call whose result is not one tensor after all."""


class _Method:
    """A method of an object that it does not keep alive."""

    def __init__(self, function, instance):
        self._function = function
        try:
            self._instance = weakref.ref(instance)
        except TypeError:
            self._instance = lambda: instance
        functools.update_wrapper(self, function, updated=())
        parameters = list(inspect.signature(function).parameters.values())
        self.__signature__ = inspect.Signature(parameters[1:])

    def __call__(self, *args, **kwargs):
        instance = self._instance()
        if instance is None:
            raise ReferenceError(f"the object of method {self._function.__name__} is gone")
        return ag.converted_call(
            self._function, (instance, *args), kwargs
        ) if ag.is_enabled() else self._function(instance, *args, **kwargs)

    autograph_info__ = {}


def _as_spec(spec, value):
    if not isinstance(spec, TensorSpec):
        if not spec.is_compatible_with(value):
            raise TypeError(f"Can not cast {value} to {spec}")
        return value
    if isinstance(value, TypeSpec):
        return value
    if not isinstance(value, (Tensor, Composite)):
        value = any_tensor(value, spec.dtype) if not isinstance(value, CoreVariable) else value.read()
    if value.dtype is not spec.dtype or not spec.shape.is_compatible_with(value.shape):
        raise TypeError(f"Can not cast TensorSpec(shape={value.shape}, dtype={value.dtype!r}, name=None) to {spec}")
    return value


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, experimental_implements=None,
             experimental_autograph_options=None, experimental_attributes=None, experimental_relax_shapes=None, experimental_compile=None,
             experimental_follow_type_hints=None):  # fmt: skip
    """Compiles a function over tensors. `jit_compile` changes nothing: every function is compiled."""
    relax = bool(reduce_retracing or experimental_relax_shapes)

    def decorate(f):
        if isinstance(f, Function):
            f = f._python_function
        if not callable(f):
            raise TypeError(f"tf.function: {f!r} is no function")
        return Function(f, input_signature, autograph, jit_compile, relax)

    return decorate if func is None else decorate(func)


def executing_eagerly():
    """False inside of a trace."""
    return not _core.is_tracing()


def inside_function():
    return _core.is_tracing()
