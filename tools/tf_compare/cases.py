"""A case: an expression over `tf` and the arguments `x`, with the arguments as data. Both engines get the same ones."""
import numpy as np

from inputs import Kind, generator


class Cases:
    """What the families add their cases to."""

    def __init__(self, seed, rounds, only=None):
        self.seed, self.rounds, self.only, self.all = seed, rounds, only, []
        self._function = None

    def rng(self, function):
        """Begins a function: its random numbers."""
        self._function = function
        return generator(self.seed, function)

    def wants(self, function):
        return self.only is None or any(function == o or function.startswith(o + ".") for o in self.only)

    def code(self, function, code, *x, grad=(), note=""):
        """`code` is an expression over tf and x, the list of arguments; `grad` says with respect to which a gradient is compared."""
        if self.wants(function):
            self.all.append({"function": function, "code": code, "x": list(x), "grad": list(grad), "seed": self.seed, "note": note})

    def call(self, function, *args, grad=None, note="", **kwargs):
        """A call. Arrays become tensors, other values are written as they are. The gradient is that of all floating arguments, unless it is said."""
        x = []

        def written(value):
            if isinstance(value, (np.ndarray, np.generic, Kind)):
                x.append(value)
                return f"x[{len(x) - 1}]"
            if isinstance(value, list):
                return "[" + ", ".join(map(written, value)) + "]"
            if isinstance(value, tuple):
                return "(" + "".join(f"{written(v)}, " for v in value) + ")"
            if isinstance(value, Raw):
                return str(value)
            return repr(value)

        parts = [written(a) for a in args] + [f"{k}={written(v)}" for k, v in kwargs.items()]
        if grad is None:
            grad = [i for i, v in enumerate(x) if isinstance(v, np.ndarray) and is_floating(v)]
        self.code(function, f"{function}({', '.join(parts)})", *x, grad=grad, note=note)


class Raw(str):
    """Text that goes into the expression as it is."""


def is_floating(array):
    return array.dtype.kind in "fc" or array.dtype.name == "bfloat16"
