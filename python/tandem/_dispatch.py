"""tf.experimental.dispatch_for_api and its like: what functions of the face do to the user's own types."""

import importlib
import inspect
import types
import typing

_UNARY = {
    "bitwise": "invert", "_arrays": "cast saturate_cast ones_like zeros_like", "debugging": "check_numerics",
    "image": "adjust_brightness adjust_gamma convert_image_dtype random_brightness stateless_random_brightness",
    "io": "decode_base64 decode_compressed encode_base64",
    "math": """abs acos acosh angle asin asinh atan atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e ceil clip_by_value conj cos cosh digamma erf erfc erfcinv
        erfinv exp expm1 floor imag is_finite is_inf is_nan lgamma log log1p log_sigmoid logical_not ndtri negative nextafter real reciprocal
        reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus sqrt square tan tanh""",
    "nn": "elu gelu leaky_relu log_softmax relu relu6 selu silu softsign",
    "strings": """as_string length lower regex_full_match regex_replace strip substr to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong to_number
        unicode_script unicode_transcode upper""",
}  # fmt: skip
_BINARY = {
    "bitwise": "bitwise_and bitwise_or bitwise_xor left_shift right_shift", "_complex": "complex_", "nn": "sigmoid_cross_entropy_with_logits",
    "math": """add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal less less_equal logical_and logical_or logical_xor maximum
        minimum multiply multiply_no_nan not_equal pow scalar_mul squared_difference subtract truediv xdivy xlog1py xlogy zeta""",
}  # fmt: skip
_ASSERTS = {
    "debugging": "assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_near assert_none_equal"
}

_for_api = {}  # _inner(function of the face) -> [(signature, target)]
_for_kinds = {"unary": [], "binary": [], "assert": []}  # [(kinds, handler)], the newest last
_families = {}


def _inner(function):
    """What stands for a function of the face: some have a fast door and a slow one."""
    return getattr(function, "python_function", function)


def _functions(family):
    if family not in _families:
        table = {"unary": _UNARY, "binary": _BINARY, "assert": _ASSERTS}[family]
        found = []
        for module, names in table.items():
            module = importlib.import_module(f"tandem.{module}")
            found += [_inner(getattr(module, name)) for name in names.split() if hasattr(module, name)]
        _families[family] = found
    return _families[family]


def _fits(value, kind):
    """Whether a value is of an annotation's kind; a list is when all of its items are, and at least one of them is no tensor."""
    origin = typing.get_origin(kind)
    if kind is None or kind is inspect.Parameter.empty or kind is typing.Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, k) for k in typing.get_args(kind))
    if origin in (list, tuple):
        return isinstance(value, (list, tuple)) and all(_fits(v, typing.get_args(kind)[0]) for v in value)
    return isinstance(value, kind) if isinstance(kind, type) else False


def _is_own(value):
    """Whether there is a value of the user's own type in an argument."""
    from tandem._extension_type import ExtensionType

    return any(_is_own(v) for v in value) if isinstance(value, (list, tuple)) else isinstance(value, ExtensionType)


def _bound(function, args, kwargs):
    bound = inspect.signature(function).bind(*args, **kwargs)
    return bound.arguments


def call(function, args, kwargs):
    """What a function gives for arguments with one of the user's types among them; NotImplemented if nobody said."""
    try:
        arguments = _bound(function, args, kwargs)
    except TypeError:
        return NotImplemented
    for signature, target in _for_api.get(_inner(function), ()):
        wanted = {k: v for k, v in signature.items() if k in arguments}
        if any(_is_own(arguments[k]) for k in wanted) and all(_fits(arguments[k], kind) for k, kind in wanted.items()):
            return target(*args, **kwargs)
    names = list(arguments)
    for family, count in (("unary", 1), ("binary", 2), ("assert", 2)):
        if len(names) < count or _inner(function) not in _functions(family):
            continue
        # Two operands may stand anywhere: scalar_mul(scalar, x), clip_by_value(t, ...).
        values, rest = [arguments[n] for n in names[:count]], {n: arguments[n] for n in names[count:]}
        for kinds, handler in reversed(_for_kinds[family]):
            if all(_fits(v, k) for v, k in zip(values, kinds)):
                bound = (lambda *operands: function(*operands, **rest)) if rest else function
                return handler(bound, *values)
    return NotImplemented


def dispatch_for_api(api, *signatures):
    """A decorator: `api` does what the decorated function does for arguments of the annotated types."""
    names = list(inspect.signature(api).parameters)

    def by_name(signature):
        return {names[k] if isinstance(k, int) else k: v for k, v in signature.items()}

    def decorate(target):
        theirs = list(inspect.signature(target).parameters)
        if theirs[: len(names)] != names and not set(names) - {"name"} <= set(theirs):
            raise ValueError(
                f"Dispatch function's parameters must match those of {api.__name__}: {theirs} beside {names}\n  hint: the same names in "
                "the same order; `name` may be left out"
            )
        found = [by_name(s) for s in signatures]
        if not found:
            hints = {k: v for k, v in typing.get_type_hints(target).items() if k in names}
            if not hints:
                raise ValueError(
                    f"{target.__name__}: dispatch_for_api needs annotated parameters, or signatures, that say which types it is for"
                )
            found = [hints]
        for signature in found:
            unknown = [k for k in signature if k not in names]
            if unknown:
                raise ValueError(f"dispatch_for_api: {api.__name__} has no parameter {unknown[0]!r}; it has {names}")
            _for_api.setdefault(_inner(api), []).append((signature, target))
        return target

    return decorate


def _for_elementwise(family, kinds):
    def decorate(handler):
        if any(k == kinds for k, _ in _for_kinds[family]):
            raise ValueError(
                f"A{'n' if family in ('unary', 'assert') else ''} {family} elementwise dispatch handler has already been registered for {kinds}."
            )
        _for_kinds[family].append((kinds, handler))
        return handler

    return decorate


def dispatch_for_unary_elementwise_apis(x_type):
    return _for_elementwise("unary", (x_type,))


def dispatch_for_binary_elementwise_apis(x_type, y_type):
    return _for_elementwise("binary", (x_type, y_type))


def dispatch_for_binary_elementwise_assert_apis(x_type, y_type):
    return _for_elementwise("assert", (x_type, y_type))


def unregister_dispatch_for(dispatch_target):
    found = False
    for table in (*_for_api.values(), *_for_kinds.values()):
        kept = [entry for entry in table if entry[1] is not dispatch_target]
        found = found or len(kept) < len(table)
        table[:] = kept
    if not found:
        raise ValueError(f"Function {dispatch_target!r} was not registered using a `@tf.experimental.dispatch_for` decorator")
