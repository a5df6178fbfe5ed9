"""keras.ops.linalg: decompositions and systems of equations."""
import math

import numpy as np
from keras.src import tree

from keras_tandem.src.ops._numpy.common import convert_to_tensor, floating, ops, promoted
from tandem import _core
from tandem._complex import ComplexTensor


def _matrices(x):
    x = floating(x)
    if x.ndim < 2:
        raise ValueError(f"Expected input to have rank >= 2. Received input with shape {x.shape}.")
    return x


def _transposed(x):
    return ops.swapaxes(x, axis1=-1, axis2=-2)


def cholesky(a, upper=False):
    result = ops.cholesky(floating(a))
    if not result.is_traced and np.isnan(result.numpy().astype("float32")).any():
        raise ValueError("Cholesky decomposition failed. The input might not be a valid positive definite matrix.")
    return _transposed(result) if upper else result


def cholesky_inverse(a, upper=False):
    return ops.cholesky_inverse(floating(a), upper=upper)


def det(a):
    return ops.det(floating(a))


def eig(x):
    """Eigenvalues and eigenvectors: real tensors where they are real, complex ones where they are not, or where a function is traced."""
    real, imag, vectors, vectors_imag = ops.eig(floating(x))
    if not real.is_traced:
        largest = max(float(np.abs(part.numpy()).max(initial=0)) for part in (imag, vectors_imag))
        if largest <= 1e-6 * max(float(np.abs(real.numpy()).max(initial=0)), 1.0):
            return real, vectors
    return ComplexTensor(real, imag), ComplexTensor(vectors, vectors_imag)


def eigh(x):
    return tuple(ops.eigh(floating(x)))


def inv(a):
    return ops.inverse(floating(a))


def lu_factor(x):
    factors, pivots, _ = ops.lu(floating(x))
    return factors, pivots


def norm(x, ord=None, axis=None, keepdims=False):
    x = floating(x)
    axes = [axis] if isinstance(axis, int) else None if axis is None else list(axis)
    if axes is not None and any(not -x.ndim <= a < x.ndim for a in axes):
        raise ValueError(f"norm: axis {axis} is not one of a tensor with {x.ndim} axes")
    if ord is None:
        return ops.norm2(x, axis=axes, keepdims=keepdims)
    count = x.ndim if axes is None else len(axes)
    if count not in (1, 2):
        raise ValueError(f"norm: a vector or a matrix is wanted for ord={ord}, these are {count} axes")
    if count == 1 and isinstance(ord, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    if count == 2 and ord not in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2):
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    return ops.norm(x, ord=str(ord), axis=list(range(x.ndim)) if axes is None else axes, keepdims=keepdims)


def qr(x, mode="reduced"):
    if mode not in ("reduced", "complete"):
        raise ValueError(f"`mode` argument value not supported. Expected one of {{'reduced', 'complete'}}. Received: mode={mode}")
    x = floating(x)
    return tuple(ops.qr(x) if mode == "reduced" else ops.qr(x, mode=mode))


def solve(a, b):
    return ops.solve(*promoted(floating(a), floating(b)))


def solve_triangular(a, b, lower=False):
    a, b = promoted(floating(a), floating(b))
    if b.ndim == a.ndim - 1:  # vectors
        return ops.squeeze(ops.triangular_solve(a, ops.expand_dims(b, axis=[-1]), lower=lower), axis=[-1])
    return ops.triangular_solve(a, b, lower=lower)


def svd(x, full_matrices=True, compute_uv=True):
    parts = tuple(ops.svd(floating(x), full_matrices=full_matrices and compute_uv))
    return parts if compute_uv else parts[1]


def lstsq(a, b, rcond=None):
    return ops.lstsq(*promoted(floating(a), floating(b)), rcond=rcond)


def matrix_rank(x, tol=None):
    return ops.matrix_rank(_matrices(x), tol=tol)


def pinv(x, rcond=None):
    return ops.pinv(_matrices(x), rcond=rcond)


def jvp(fun, primals, tangents, has_aux=False):
    """The derivative along the tangents. The gradient by the inputs is linear in the outputs' gradients; differentiated by those,
    it gives the derivative the other way round."""
    primals, tangents = list(primals), list(tangents)
    inputs = [convert_to_tensor(x) for x in tree.flatten(primals)]
    along = [convert_to_tensor(t, x.dtype) for t, x in zip(tree.flatten(tangents), inputs, strict=True)]
    outer = _core.Tape(persistent=False, watch_variables=False)
    inner = _core.Tape(persistent=False, watch_variables=False)
    for x in inputs:
        inner.watch(x)
    result = fun(*tree.pack_sequence_as(primals, inputs))
    outputs, aux = result if has_aux else (result, None)
    flat = [convert_to_tensor(y) for y in tree.flatten(outputs)]
    inner.stop()
    duals = [ops.full(ops.cast(1, dtype=y.dtype), shape=y.dims) for y in flat]
    for dual in duals:
        outer.watch(dual)
    gradients = inner.gradients(flat, inputs, duals, True)
    outer.stop()
    changes = tree.pack_sequence_as(outputs, outer.gradients(gradients, duals, along, True))
    return (outputs, changes, aux) if has_aux else (outputs, changes)
