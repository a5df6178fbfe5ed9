"""tf.GradientTape, custom gradients, and gradients inside of functions."""
import contextlib
import enum
import functools
import inspect

import numpy as np

from tandem import _core
from tandem import nest
from tandem._complex import ComplexTensor
from tandem._convert import Composite
from tandem._face import CoreVariable, Tensor, ops, tensor
from tandem._indexed_slices import IndexedSlices


class UnconnectedGradients(enum.Enum):
    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records what is computed from watched tensors and variables, and gives gradients of it."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent, self._watch_variables = persistent, watch_accessed_variables
        self._tape, self._recording, self._used, self._watched = None, False, False, []

    def __enter__(self):
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._tape is None:
            # The engine's tape is persistent either way: jacobians ask it several times.
            self._tape = _core.Tape(persistent=True, watch_variables=self._watch_variables)
        else:
            self._tape.resume()
        self._start()
        return self

    def __exit__(self, *exception):
        if self._recording:
            self._stop()
            self._tape.stop()
        return False

    def _start(self):
        self._recording = True

    def _stop(self):
        self._recording = False

    def watch(self, tensor):
        for x in nest.flatten(tensor, expand_composites=True):
            if not isinstance(x, (Tensor, CoreVariable)):
                if isinstance(x, Composite):
                    continue
                raise ValueError(
                    f"Passed in object {x} of type {type(x).__name__!r}, not tf.Tensor or tf.Variable or ExtensionType."
                )
            if not x.dtype.is_floating:
                import logging

                logging.getLogger("tandem").log(
                    30, "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", x.dtype
                )
                continue
            self._tape.watch(x)

    @contextlib.contextmanager
    def stop_recording(self):
        if self._tape is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._tape.stop()
        was = self._recording
        if was:
            self._stop()
        try:
            yield
        finally:
            if was:
                self._start()
                self._tape.resume()

    def reset(self):
        self._tape.reset()

    def _release(self):
        """A tape that was used once keeps nothing but which variables it saw."""
        self._watched, self._tape, self._used = self._tape.watched(), None, True

    def watched_variables(self):
        from tandem import _variable

        found = [_variable.of_number(n) for n in (self._watched if self._tape is None else self._tape.watched())]
        return tuple(v for v in found if v is not None)

    # --- gradients

    def _check_usable(self):
        if self._tape is None:
            if self._used:
                raise RuntimeError(
                    "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
                )
            raise RuntimeError("the tape has recorded nothing: use it in a with statement")

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
        self._check_usable()
        if output_gradients is None and unconnected_gradients is UnconnectedGradients.NONE and isinstance(target, Tensor):
            single = isinstance(sources, (Tensor, CoreVariable))
            if (sources.dtype.is_floating if single else _all_plain(sources)) and target.dtype.is_floating:
                return self._plain_gradient(target, sources, single)
        zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
        flat_sources = nest.flatten(sources)
        targets = [x for x in nest.flatten(target) if x is not None]
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
                "differentiated, but received None."
            )
        seeds = None if output_gradients is None else nest.flatten(output_gradients)
        targets, seeds = self._real_targets(targets, seeds)
        if self._recording and not self._persistent:
            self._stop()
            self._tape.stop()
        parts = [_parts_of_source(s) for s in flat_sources]
        plain = [p for of_one in parts for p in of_one]
        # A variable as a target was not computed from anything: its gradient is to itself.
        own = [k for k, t in enumerate(targets) if isinstance(t, CoreVariable)]
        rest = [k for k in range(len(targets)) if k not in own]
        gradients = self._gradients([targets[k] for k in rest], plain, None if seeds is None else [seeds[k] for k in rest])
        for k in own:
            seed = _ones_like(targets[k]) if seeds is None else seeds[k]
            gradients = [g if p is not targets[k] else seed if g is None else ops.add(g, seed) for p, g in zip(plain, gradients)]
        found = iter(gradients)
        made = []
        for source, of_one in zip(flat_sources, parts):
            made.append(_like_source(source, of_one, [next(found) for _ in of_one], zero))
        if not self._persistent:
            self._release()
        return nest.pack_sequence_as(sources, made)

    def _plain_gradient(self, target, sources, single):
        """One target by tensors and variables: nothing to look through."""
        tape = self._tape
        if not self._persistent:
            if self._recording:
                self._stop()
                tape.stop()
            self._release()
        found = tape.gradients([target], [sources] if single else sources)
        return found[0] if single else type(sources)(found)

    def _real_targets(self, targets, seeds):
        kept, kept_seeds = [], []
        for i, t in enumerate(targets):
            if isinstance(t, ComplexTensor) and seeds is not None and seeds[i] is not None:
                seed = ComplexTensor.make(seeds[i], t.dtype)
                kept += [t.re, t.im]
                kept_seeds += [seed.re, seed.im]
                continue
            if isinstance(t, (IndexedSlices,)):
                t = t.values
            if not isinstance(t, (Tensor, CoreVariable)):
                if isinstance(t, Composite) and hasattr(t, "_components"):
                    t = t._components()[0]
                else:
                    t = tensor(t)
            if not t.dtype.is_floating:
                import logging

                logging.getLogger("tandem").log(
                    30,
                    "The dtype of the target tensor must be floating (e.g. tf.float32) when calling GradientTape.gradient, got "
                    "%r",
                    t.dtype,
                )
                continue
            kept.append(t)
            kept_seeds.append(None if seeds is None or seeds[i] is None else tensor(seeds[i]))
        if not any(s is not None for s in kept_seeds):
            return kept, None
        return kept, [_ones_like(t) if s is None else s for t, s in zip(kept, kept_seeds)]

    def _gradients(self, targets, sources, seeds):
        """None where a source has no gradient."""
        live = [i for i, s in enumerate(sources) if s is not None]
        found = self._tape.gradients(targets, [sources[i] for i in live], seeds) if targets else [None] * len(live)
        made = [None] * len(sources)
        for i, g in zip(live, found):
            made[i] = g
        return made

    def jacobian(
        self,
        target,
        sources,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        self._check_usable()
        zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
        if self._recording and not self._persistent:
            self._stop()
            self._tape.stop()
        target, made = tensor(target), []
        for source in nest.flatten(sources):
            found = self._tape.jacobian(target, _plain_source(source))
            if found is None and zero:
                found = ops.full(ops.cast(0, dtype=source.dtype), shape=[*target.dims, *source.dims])
            made.append(found)
        if not self._persistent:
            self._release()
        return nest.pack_sequence_as(sources, made)

    def batch_jacobian(
        self,
        target,
        source,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        self._check_usable()
        if self._recording and not self._persistent:
            self._stop()
            self._tape.stop()
        target = tensor(target)
        if target.shape.rank < 2 or source.shape.rank < 1 or target.shape[0] != source.shape[0]:
            raise ValueError(f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match.")
        found = self._tape.batch_jacobian(target, _plain_source(source))
        if not self._persistent:
            self._release()
        if found is None and UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
            return ops.full(ops.cast(0, dtype=target.dtype), shape=[*target.dims, *source.dims[1:]])
        return found


def _all_plain(sources):
    if type(sources) not in (list, tuple):
        return False
    for s in sources:
        if not isinstance(s, (Tensor, CoreVariable)) or not s.dtype.is_floating:
            return False
    return True


def _plain_source(s):
    if isinstance(s, (Tensor, CoreVariable)):
        return s if s.dtype.is_floating else None
    if isinstance(s, Composite) and hasattr(s, "_components"):
        parts = [p for p in s._components() if isinstance(p, Tensor) and p.dtype.is_floating]
        return parts[0] if parts else None
    if hasattr(s, "__tandem_variable__"):  # Keras's
        return _plain_source(s.__tandem_variable__())
    if s is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    raise TypeError(f"sources must be tensors or variables, got {s!r}")


def _parts_of_source(s):
    """The tensors that a source consists of; None for one that has no gradient."""
    return [s.re, s.im] if isinstance(s, ComplexTensor) else [_plain_source(s)]


def _like_source(source, parts, gradients, zero):
    """The gradient in the form of its source. That of a complex number is the slope along its real part and i times that along the other."""
    if all(g is None for g in gradients) and not zero:
        return None
    if isinstance(source, ComplexTensor):
        return ComplexTensor(*[_zeros_like(p) if g is None else g for p, g in zip(parts, gradients)])
    g = gradients[0]
    if g is None:
        g = ops.full(ops.cast(0, dtype=source.dtype), shape=source.dims)
    return source.with_flat_values(g) if isinstance(source, Composite) and hasattr(source, "with_flat_values") else g


def _ones_like(x):
    return ops.full(ops.cast(1, dtype=x.dtype), shape=x.dims)


def _zeros_like(x):
    return ops.full(ops.cast(0, dtype=x.dtype), shape=x.dims)


# --- gradients of one's own -----------------------------------------------------------------------------------------------------


def custom_gradient(f=None):
    """f gives (result, grad_fn): the gradient is what grad_fn gives for the gradient of the result."""
    if f is None:
        return custom_gradient
    from tandem import _variable
    from tandem._function import autograph

    @functools.wraps(f)
    def call(*args, **kwargs):
        tensors_in, pack = _differentiable(args)
        found = []

        def forward(tensors):
            result, gradient = autograph.converted_if_enabled(f)(*pack(tensors), **kwargs)
            found[:] = [result]

            def backward(upstream, numbers=()):
                variables = [_variable.of_number(n) for n in numbers]
                return _run_backward(gradient, variables, upstream)

            return [tensor(x) for x in nest.flatten(result)], backward

        outputs = _core.custom_gradient(forward, tensors_in)
        return nest.pack_sequence_as(found[0], outputs)

    call.autograph_info__ = {}
    return call


def _is_differentiable(x):
    return isinstance(x, (Tensor, CoreVariable, float, np.ndarray)) or (isinstance(x, int) and not isinstance(x, bool))


def _differentiable(args):
    """The arguments that a gradient may flow to, as tensors, and how the arguments look with others in their places."""
    leaves = nest.flatten(args)
    places = [i for i, x in enumerate(leaves) if _is_differentiable(x)]

    def pack(tensors):
        given = list(leaves)
        for i, t in zip(places, tensors):
            given[i] = t
        return nest.pack_sequence_as(args, given)

    return [tensor(leaves[i]) for i in places], pack


def _run_backward(gradient, variables, upstream):
    if not variables:
        return [_as_gradient(g) for g in nest.flatten(gradient(*upstream))]
    parameters = inspect.signature(gradient).parameters.values()
    if not any(p.name == "variables" or p.kind == p.VAR_KEYWORD for p in parameters):
        raise TypeError(
            "If using @custom_gradient with a function that uses variables, then grad_fn must accept a 'variables' keyword "
            "argument."
        )
    inner, of_variables = gradient(*upstream, variables=list(variables))
    return [_as_gradient(g) for g in [*nest.flatten(inner), *of_variables]]


def _as_gradient(g):
    return None if g is None else g.dense() if isinstance(g, IndexedSlices) else tensor(g)


def recompute_grad(f):
    """Computes f again when its gradient is wanted, instead of keeping what it computed."""

    @functools.wraps(f)
    def call(*args, **kwargs):
        tensors_in, pack = _differentiable(args)
        found = []

        def again(tensors):
            found[:] = [f(*pack(tensors), **kwargs)]
            return [tensor(x) for x in nest.flatten(found[0])]

        outputs = _core.remat(again, tensors_in)
        return nest.pack_sequence_as(found[0], outputs)

    call.autograph_info__ = {}
    return call


def grad_pass_through(f):
    """f forwards, the identity backwards."""

    @custom_gradient
    def call(x):
        return f(x), lambda dy: dy

    return call


def gradients(ys, xs, grad_ys=None, name="gradients", gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients=UnconnectedGradients.NONE):  # fmt: skip
    """Gradients of what the function that is being traced has computed already."""
    if not _core.is_tracing():
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
    targets = [tensor(y) for y in _listed(ys)]
    sources = [_plain_source(x) if x is not None else None for x in _listed(xs)]
    seeds = [None if g is None else tensor(g) for g in _listed(grad_ys)] if grad_ys is not None else [None] * len(targets)
    if len(seeds) != len(targets):
        raise ValueError(f"Passed {len(seeds)} grad_ys for {len(targets)} ys")
    pairs = [(y, g) for y, g in zip(targets, seeds) if y.dtype.is_floating]
    live = [x for x in sources if x is not None]
    stops = [tensor(x) for x in _listed(stop_gradients)]
    found = [None] * len(live)
    if pairs and live:
        found = _core.traced_gradients([y for y, _ in pairs], [tensor(x) for x in live], [g for _, g in pairs], stops)
    made = iter(found)
    result = [None if x is None else next(made) for x in sources]
    if zero:
        result = [_zeros_like(tensor(x)) if g is None else g for x, g in zip(_listed(xs), result)]
    return result


def _listed(x):
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name="hessians"):
    """For each x the second derivatives of the sum of ys, [x..., x...]: one row for each element of x."""
    made = []
    for x, g in zip(_listed(xs), gradients(ys, xs)):
        x = tensor(x)
        if g is None:
            raise ValueError("tf.hessians: ys do not depend on one of xs")
        count = x.shape.num_elements()
        if count is None:
            raise ValueError(f"tf.hessians: x must have a shape that is known, it is {x.shape}")
        flat = ops.reshape(g, shape=[count])
        rows = [gradients(ops.take(flat, i, axis=0), x, unconnected_gradients=UnconnectedGradients.ZERO)[0] for i in range(count)]
        made.append(ops.reshape(ops.stack(rows), shape=[*x.dims, *x.dims]))
    return made


class ForwardAccumulator:
    """Jacobian-vector products: the derivative along given tangents, from two gradients taken in reverse."""

    def __init__(self, primals, tangents):
        self._primals, self._tangents = nest.flatten(primals), [tensor(t) for t in nest.flatten(tangents)]
        for p, t in zip(self._primals, self._tangents):
            if p.shape != t.shape:
                raise ValueError(f"Dimensions of primal {p.shape} and tangent {t.shape} differ")
        self._tape = None

    def __enter__(self):
        self._tape = GradientTape(persistent=True).__enter__()
        self._tape.watch(self._primals)
        return self

    def __exit__(self, *exception):
        return self._tape.__exit__(*exception)

    def jvp(self, primals, unconnected_gradients=UnconnectedGradients.NONE):
        def one(y):
            for p, t in zip(self._primals, self._tangents):
                if y is p:
                    return t
            with GradientTape() as outer:
                seed = _zeros_like(y)
                outer.watch(seed)
                found = self._tape._gradients([tensor(y)], [_plain_source(p) for p in self._primals], [seed])
                pairs = [(g, t) for g, t in zip(found, self._tangents) if g is not None]
            if not pairs:
                return _zeros_like(y) if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO else None
            made = outer.gradient([g for g, _ in pairs], seed, [t for _, t in pairs])
            return _zeros_like(y) if made is None else made

        return nest.map_structure(one, primals)


class RegisterGradient:
    """Gradients of ops by name, which graphs here do not have."""

    def __init__(self, op_type):
        self._op_type = op_type

    def __call__(self, f):
        return f


def no_gradient(op_type):
    return None
