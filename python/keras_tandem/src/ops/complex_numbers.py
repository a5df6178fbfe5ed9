"""keras.ops of complex tensors, which are pairs of real ones: what each function does to them."""
import functools

from keras.src import tree

from tandem import _complex
from tandem._complex import ComplexTensor
from tandem._convert import NotOneTensor

# Functions that move elements, or add them, do the same to both parts.
_BY_PARTS = set(
    "broadcast_to concatenate copy cumsum diag diagonal expand_dims flip mean moveaxis negative pad ravel repeat reshape roll rot90 split squeeze stack sum "
    "swapaxes take take_along_axis tile trace transpose tril triu vstack hstack append zeros_like".split()
)
_MAKING = {"array", "empty", "eye", "full", "full_like", "identity", "ones", "ones_like", "zeros", "zeros_like"}
_UNARY = {
    "exp": _complex.exp, "log": _complex.log, "sqrt": _complex.sqrt, "conj": _complex.conj, "conjugate": _complex.conj,
    "angle": _complex.angle, "abs": abs, "absolute": abs, "real": lambda x: x.re, "imag": lambda x: x.im, "square": lambda x: x * x,
}  # fmt: skip
_UNARY.update({name: _complex._special[theirs] for name, theirs in {
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "expm1": "expm1", "log1p": "log1p", "sign": "sign", "reciprocal": "reciprocal",
    "ones_like": "ones_like",
}.items()})  # fmt: skip
_BINARY = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
    "true_divide": lambda a, b: a / b, "power": lambda a, b: a**b, "matmul": lambda a, b: a @ b, "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
}  # fmt: skip


def _made(x, like):
    """A number or a real tensor beside a complex one."""
    return x if isinstance(x, ComplexTensor) else ComplexTensor.make(x, like.dtype)


def _parts(function, args, kwargs):
    def part(imaginary):
        pick = lambda x: (x.im if imaginary else x.re) if isinstance(x, ComplexTensor) else x  # noqa: E731
        return function(*tree.map_structure(pick, list(args)), **{k: tree.map_structure(pick, v) for k, v in kwargs.items()})

    re, im = part(False), part(True)
    return tree.map_structure(ComplexTensor, re, im) if isinstance(re, (list, tuple)) else ComplexTensor(re, im)


def apply(function, args, kwargs):
    name = function.__name__
    dtype = str(kwargs.get("dtype") or "")
    if "complex" in dtype and name in _MAKING:
        part = {"complex64": "float32", "complex128": "float64"}[dtype]
        if any("complex" in str(getattr(x, "dtype", type(x))) for x in args):
            return ComplexTensor.make(args[0], dtype) if name == "array" else NotImplemented
        return ComplexTensor.make(function(*args, **{**kwargs, "dtype": part}), dtype)
    tensors = [x for x in tree.flatten((list(args), kwargs)) if isinstance(x, ComplexTensor)]
    if not tensors:  # arrays and Python's own numbers
        kind = lambda x: str(getattr(x, "dtype", "complex64" if isinstance(x, complex) else ""))  # noqa: E731
        args = tree.map_structure(lambda x: ComplexTensor.make(x, kind(x)) if "complex" in kind(x) else x, list(args))
        tensors = [x for x in tree.flatten(args) if isinstance(x, ComplexTensor)]
        if not tensors:
            return NotImplemented
    like = tensors[0]
    if name in _UNARY:
        return _UNARY[name](like)
    if name == "isreal":
        return like.im == 0
    if name in _BINARY:
        a, b = [*args, *kwargs.values()][:2]
        return _BINARY[name](_made(a, like), _made(b, like))
    if name == "where" and len(args) == 3:
        return ComplexTensor(*(function(args[0], *(getattr(_made(x, like), p) for x in args[1:])) for p in ("re", "im")))
    if name in _BY_PARTS:
        if name in ("concatenate", "stack", "append", "vstack", "hstack"):
            args = [[_made(x, like) for x in args[0]] if isinstance(args[0], (list, tuple)) else args[0], *args[1:]]
        return _parts(function, args, kwargs)
    return NotImplemented


def taking_complex(function):
    """The function, with complex tensors among what it takes."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except NotOneTensor:
            made = apply(function, args, kwargs)
            if made is NotImplemented:
                raise NotImplementedError(f"{function.__name__} of complex tensors, or of others that are not one tensor of numbers") from None
            return made

    return call
