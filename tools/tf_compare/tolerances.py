"""How far numbers may be from TensorFlow's, in units in the last place (ulp) of the result's type, by function, with the reason."""
import re
from dataclasses import dataclass


@dataclass
class Tolerance:
    pattern: str
    value: float  # ulp
    scale: str  # "element": of the element itself; "tensor": of the largest number in the result
    gradient: float  # ulp of the largest number in the gradient
    reason: str


TABLE = [
    Tolerance(r".*", 4, "element", 64, "one rounding on each side, and another order of the same few operations"),
    Tolerance(r"tf\.math\.(reduce_|cum|segment_|unsorted_segment_).*|tf\.(add_n|foldl|foldr|scan)", 16, "tensor", 64, "sums in another order"),
    Tolerance(r"tf\.math\.(lgamma|digamma|polygamma|zeta|igammac?|betainc|erfinv|erfcinv|ndtri|bessel_.*|special\..*)", 64, "element", 512,
              "special functions by other polynomials"),
    Tolerance(r"tf\.math\.(pow|expm1|log1p|tanh|tan|sinh|cosh|xlogy|xlog1py)|tf\.Tensor \*\*", 8, "element", 64, "exp and log of other libraries"),
    Tolerance(r"tf\.math\.(log_)?softmax|tf\.math\.(softplus|log_sigmoid)", 32, "tensor", 256, "sums in another order, exp of other libraries; near 0 the difference of near numbers"),
    Tolerance(r"tf\.math\.sigmoid|tf\.nn\.sigmoid", 8, "tensor", 8192, "y * (1 - y) has few digits where y is near 1"),
    Tolerance(r"tf\.math\.a(sin|cos|tan)h?", 16, "tensor", 256, "complex ones by logarithms"),
    Tolerance(r"tf\.linalg\..*|tf\.(einsum|tensordot|matmul|norm)", 64, "tensor", 1024, "products and factorisations in another order; an error grows with the condition number"),
    Tolerance(r"tf\.signal\..*", 32, "tensor", 128, "sums of a Fourier transform in another order"),
    Tolerance(r"tf\.nn\..*conv.*|tf\.nn\.(batch_norm.*|.*moments|lrn|local_response_normalization|.*loss.*|.*cross_entropy.*|.*pool.*|sufficient_statistics|l2_.*|.*softmax|embedding_.*|safe_.*)", 32, "tensor", 256,
              "sums in another order"),
    Tolerance(r"tf\.nn\.(gelu|elu|selu|silu|swish|softplus|leaky_relu|crelu)", 8, "tensor", 64, "exp of other libraries; near 0 the difference of near numbers"),
    Tolerance(r"tf\.image\..*", 64, "tensor", 512, "weights of a resampling computed in another order"),
    Tolerance(r"tf\.sparse\..*|tf\.RaggedTensor", 16, "tensor", 64, "sums in another order"),
    Tolerance(r"tf\.keras\..*", 64, "tensor", 512, "whole formulas, whose parts differ by the rows above"),
]


def tolerance(function):
    """The last row that matches: rows go from general to particular."""
    return next(row for row in reversed(TABLE) if re.fullmatch(row.pattern, function))
