"""Conversion of Python's control flow, by the library diastatic-malt with our own operators."""
import functools
import inspect
import importlib.util  # noqa: F401 (malt uses it without importing it)
import sys
import threading
import types
import weakref

from tandem import _core
from tandem._trace import NeedsData

_local = threading.local()
_CONVERTED = "_tandem_converted"
_left_alone = (
    "tandem",
    "keras",
    "keras_tandem",
    "numpy",
    "malt",
    "tensorflow",
    "tensorboard",
    "absl",
    "tqdm",
    "scipy",
    "pandas",
    "matplotlib",
    "PIL",
    "h5py",
)
_standard_library = sys.stdlib_module_names


class status:
    """Whether functions that are called in here are converted."""

    def __init__(self, enabled):
        self._enabled = enabled

    def __enter__(self):
        self._before = is_enabled()
        _local.enabled = self._enabled

    def __exit__(self, *exception):
        _local.enabled = self._before
        return False


def is_enabled():
    return getattr(_local, "enabled", False)


def do_not_convert(func=None):
    if func is None:
        return do_not_convert
    if not callable(func):
        return func

    @functools.wraps(func)
    def call(*args, **kwargs):
        with status(False):
            return func(*args, **kwargs)

    call.autograph_info__ = {}
    return call


def converted_if_enabled(function):
    """A user's function as an argument of one of ours."""
    if not is_enabled() or not _core.is_tracing():
        return function
    return lambda *args, **kwargs: converted_call(function, args, kwargs)


@functools.lru_cache(None)
def _transpiler():
    from malt.core import converter
    from malt.impl import api
    from malt.lang import special_functions
    from malt import operators as plain

    from tandem._function import operators

    module = types.ModuleType("autograph_operators")
    module.__dict__.update({k: v for k, v in vars(plain).items() if not k.startswith("__")})
    module.__dict__.update({k: v for k, v in vars(special_functions).items() if not k.startswith("__")})
    module.ConversionOptions, module.STD, module.Feature = converter.ConversionOptions, converter.STANDARD_OPTIONS, converter.Feature
    module.utils = api.utils
    module.autograph_artifact = api.autograph_artifact
    for name in ("if_stmt", "if_exp", "while_stmt", "for_stmt", "and_", "or_", "not_", "assert_stmt"):
        setattr(module, name, getattr(operators, name))
    module.converted_call = converted_call

    class Transpiler(api.PyToPy):
        def get_transformed_name(self, node):
            return "tf__" + super().get_transformed_name(node).removeprefix("ag__")

        def get_extra_locals(self):
            return {"ag__": module}

    options = converter.ConversionOptions(
        recursive=True, user_requested=True, optional_features=(converter.Feature.ASSERT_STATEMENTS,)
    )
    return Transpiler(), converter.ProgramContext(options=options)


def _is_left_alone(function):
    # Where the code stands, not where a decorator says it does.
    name = getattr(function, "__globals__", {}).get("__name__") or getattr(function, "__module__", None) or ""
    top = name.split(".")[0]
    return top in _left_alone or (top in _standard_library and top != "__main__")


def transformed(function):
    """The function with its control flow as calls, or itself where that cannot be done."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    # Closures share code: the transpiler binds the cells itself, so each function has its own. It keeps it itself, so that both are
    # collected together, with the models in their cells; a wrapper that took over its attributes is another function.
    known = getattr(function, _CONVERTED, None)
    if known is not None and known[0]() is function:
        return known[1]
    try:
        transpiler, context = _transpiler()
        made, _, source_map = transpiler.transform(function, context)
        _name_lines(source_map)
    except Exception:
        # No source (a notebook's lambda, exec), or a construct that cannot be converted: it runs as it is.
        made = function
    setattr(function, _CONVERTED, (weakref.ref(function), made))
    return made


def _name_lines(source_map):
    """Errors name the user's lines, not those of the code that was made of them."""
    files = {}
    for place, origin in source_map.items():
        files.setdefault(place.filename, {})[place.lineno] = (origin.loc.filename, origin.loc.lineno)
    for file, lines in files.items():
        _core.name_generated_lines(file, [(line, *users) for line, users in sorted(lines.items())])


def _over_tensors(f, args, kwargs):
    """Built-in functions of Python that have a meaning for traced tensors; NotImplemented for the rest."""
    from tandem import _arrays
    from tandem._control import is_traced

    if f is range and any(is_traced(a) for a in args):
        return _arrays.range(*args)
    if f is len and len(args) == 1 and is_traced(args[0]):
        return _arrays.shape(args[0])[0] if args[0].shape[0] is None else args[0].shape[0]
    if f in (int, float, bool) and len(args) == 1 and is_traced(args[0]):
        return _arrays.cast(args[0], {int: "int32", float: "float32", bool: "bool"}[f])
    if f in (max, min) and len(args) > 1 and any(is_traced(a) for a in args):
        from tandem import math

        return functools.reduce(math.maximum if f is max else math.minimum, args)
    if f is iter and len(args) == 1 and _core.is_tracing() and hasattr(args[0], "traced"):
        return args[0].traced()
    if f in (enumerate, zip, map) and _core.is_tracing() and any(hasattr(a, "element_spec") for a in args):
        return _over_datasets(f, args, kwargs)
    return NotImplemented


def _over_datasets(f, args, kwargs):
    """enumerate, zip and map of datasets are datasets; of iterators, whose elements cannot be put back, they are left to Python."""
    from tandem.data import Dataset

    if f is enumerate and isinstance(args[0], Dataset):
        return args[0].enumerate(*args[1:], **kwargs)
    if f is zip and all(isinstance(a, Dataset) for a in args):
        return Dataset.zip(tuple(args))
    if f is map and len(args) == 2 and isinstance(args[1], Dataset):
        return args[1].map(args[0])
    raise NeedsData(f"{f.__name__} over an iterator of a dataset")


def converted_call(f, args, kwargs=None, caller_fn_scope=None, options=None):
    kwargs = kwargs or {}
    if f is super and not args:  # needs the frame of the method it stands in
        from malt.operators import py_builtins

        return py_builtins.super_in_original_context(f, args, caller_fn_scope)
    if f in (eval, locals, globals):
        from malt.operators import py_builtins

        if f is eval:
            return py_builtins.eval_in_original_context(f, args, caller_fn_scope)
        return (
            py_builtins.locals_in_original_context if f is locals else py_builtins.globals_in_original_context
        )(caller_fn_scope)
    if isinstance(f, types.BuiltinFunctionType) or f in (range, int, float, bool, enumerate, zip, map):
        result = _over_tensors(f, args, kwargs)
        if result is not NotImplemented:
            return result
        return f(*args, **kwargs)
    if not is_enabled() or inspect.isclass(f) or hasattr(f, "autograph_info__") or hasattr(f, "get_concrete_function"):
        return f(*args, **kwargs)
    if isinstance(f, functools.partial):
        return converted_call(f.func, (*f.args, *args), {**f.keywords, **kwargs}, caller_fn_scope, options)
    if inspect.ismethod(f):
        function, args = f.__func__, (f.__self__, *args)
    elif inspect.isfunction(f):
        function = f
    else:
        call = getattr(type(f), "__call__", None)
        if not inspect.isfunction(call) or _is_left_alone(type(f)) or _is_left_alone(call):
            return f(*args, **kwargs)
        function, args = call, (f, *args)
    if _is_left_alone(function) or inspect.isgeneratorfunction(function) or hasattr(function, "autograph_info__"):
        return function(*args, **kwargs)
    if not inspect.isfunction(function):
        return function(*args, **kwargs)
    return transformed(function)(*args, **kwargs)


def to_code(entity, recursive=True, experimental_optional_features=None):
    function = getattr(entity, "python_function", entity)
    return inspect.getsource(transformed(inspect.unwrap(function)))


def to_graph(entity, recursive=True, experimental_optional_features=None):
    function = transformed(getattr(entity, "python_function", entity))

    @functools.wraps(function)
    def call(*args, **kwargs):
        with status(True):
            return function(*args, **kwargs)

    return call
