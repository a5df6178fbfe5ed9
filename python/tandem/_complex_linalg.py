"""tf.linalg of complex matrices. What real matrices of twice the size can say is computed by them, and has gradients; factorisations are
computed on the host, by NumPy, and have none."""

import numpy as np

from tandem import errors
from tandem._complex import ComplexTensor, _as_real, _of_real, conj
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._face import ints, ops


def _array(x):
    """The numbers; a function that is traced runs eagerly instead."""
    if x.is_traced:
        from tandem._trace import NeedsData

        raise NeedsData("a factorisation of complex matrices")
    return np.asarray(x.numpy())


def _made(array, like):
    return ComplexTensor.make(np.asarray(array), like.dtype)


def _real(array, like):
    """Real numbers as TensorFlow gives them for complex operands."""
    return convert(np.asarray(array), like.re.dtype)


def _invalid(what):
    return errors.InvalidArgumentError(None, None, what)


def turned(x):
    """The conjugate transpose."""
    swap = lambda part: ops.swapaxes(part, axis1=-1, axis2=-2)  # noqa: E731
    return conj(ComplexTensor(swap(x.re), swap(x.im)))


def _transposed(x):
    return ComplexTensor(ops.swapaxes(x.re, axis1=-1, axis2=-2), ops.swapaxes(x.im, axis1=-1, axis2=-2))


def _lower(array):
    """The Hermitian matrix of which the lower triangle is looked at."""
    low = np.tril(array, -1)
    diagonal = np.einsum("...ii->...i", array).real
    return low + low.swapaxes(-1, -2).conj() + diagonal[..., None] * np.eye(array.shape[-1])


def cholesky(input, name=None):
    try:
        return _made(np.linalg.cholesky(_lower(_array(input))), input)
    except np.linalg.LinAlgError:
        raise _invalid("Cholesky decomposition was not successful. The input might not be valid.") from None


def det(input, name=None):
    return _made(np.linalg.det(_array(input)), input)


def slogdet(input, name=None):
    from collections import namedtuple

    sign, size = np.linalg.slogdet(_array(input))
    return namedtuple("LogMatrixDeterminant", ["sign", "log_abs_determinant"])(_made(sign, input), _made(size, input))


def logdet(matrix, name=None):
    diagonal = np.einsum("...ii->...i", _array(cholesky(matrix)).real)
    return _real(2 * np.log(diagonal).sum(-1), matrix)


def qr(input, full_matrices=False, name=None):
    from collections import namedtuple

    return namedtuple("Qr", ["q", "r"])(
        *(_made(part, input) for part in np.linalg.qr(_array(input), "complete" if full_matrices else "reduced"))
    )


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    u, s, vh = np.linalg.svd(_array(tensor), full_matrices=bool(full_matrices))
    if not compute_uv:
        return _real(s, tensor)
    return _real(s, tensor), _made(u, tensor), _made(vh.swapaxes(-1, -2).conj(), tensor)


def eigh(tensor, name=None):
    values, vectors = np.linalg.eigh(_array(tensor))
    return _made(values, tensor), _made(vectors, tensor)


def eig(tensor, name=None):
    values, vectors = np.linalg.eig(_array(tensor))
    return _made(values, tensor), _made(vectors, tensor)


def _lu_of(matrix):
    """Doolittle's way with the largest pivot of each column, as LAPACK's."""
    a = matrix.copy()
    order = np.arange(len(a))
    for k in range(len(a)):
        best = k + int(np.argmax(np.abs(a[k:, k])))
        if a[best, k] == 0:
            raise _invalid("Input is not invertible.")
        a[[k, best]], order[[k, best]] = a[[best, k]], order[[best, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def lu(input, output_idx_type="int32", name=None):
    from collections import namedtuple

    array = _array(input)
    n = array.shape[-1]
    parts = [_lu_of(m) for m in array.reshape(-1, n, n)] if array.size else []
    packed = np.array([p[0] for p in parts], array.dtype).reshape(array.shape)
    order = np.array([p[1] for p in parts], as_dtype(output_idx_type).as_numpy_dtype).reshape(array.shape[:-1])
    return namedtuple("Lu", ["lu", "p"])(_made(packed, input), convert(order))


def _rows(x, order):
    order = np.asarray(order.numpy() if hasattr(order, "numpy") else order)
    pick = lambda part: ops.take_along_axis(  # noqa: E731
        part, ops.broadcast_to(convert(order[..., None].astype(np.int32)), shape=part.dims), axis=-2
    )
    return ComplexTensor(pick(x.re), pick(x.im))


def lu_solve(lower_upper, perm, rhs, validate_args=False, name=None):
    packed, picked = lower_upper, _rows(ComplexTensor.make(rhs, lower_upper.dtype), perm)
    return triangular_solve(packed, triangular_solve(_unit_lower(packed), picked), lower=False)


def _unit_lower(packed):
    n = packed.re.dims[-1]
    return ComplexTensor(ops.add(ops.tril(packed.re, k=-1), ops.eye(rows=[n], columns=[n], dtype=packed.re.dtype)), ops.tril(packed.im, k=-1))


def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    n = lower_upper.re.dims[-1]
    one = ops.broadcast_to(ops.eye(rows=[n], columns=[n], dtype=lower_upper.re.dtype), shape=lower_upper.re.dims)
    return lu_solve(lower_upper, perm, ComplexTensor.make(one, lower_upper.dtype))


def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    upper = ComplexTensor(ops.triu(lower_upper.re), ops.triu(lower_upper.im))
    back = np.argsort(np.asarray(perm.numpy() if hasattr(perm, "numpy") else perm), -1)
    return _rows(_unit_lower(lower_upper) @ upper, back)


def triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None):
    """By the real matrices of twice the size, of which only the triangle is left."""
    matrix, rhs = ComplexTensor.make(matrix), ComplexTensor.make(rhs)
    half = ops.tril if lower else ops.triu
    kept = ComplexTensor(half(matrix.re), half(matrix.im))
    kept = turned(kept) if adjoint else kept
    lead = np.broadcast_shapes(tuple(kept.shape[:-2]), tuple(rhs.shape[:-2]))
    spread = lambda x: ComplexTensor(*(ops.broadcast_to(p, shape=[*lead, *p.dims[-2:]]) for p in (x.re, x.im)))  # noqa: E731
    return _of_real(ops.solve(_as_real(spread(kept)), _as_real(spread(rhs))))


def cholesky_solve(chol, rhs, name=None):
    chol, rhs = ComplexTensor.make(chol), ComplexTensor.make(rhs)
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def solve(matrix, rhs, adjoint=False, name=None):
    matrix = ComplexTensor.make(matrix)
    return _of_real(ops.solve(_as_real(turned(matrix) if adjoint else matrix), _as_real(ComplexTensor.make(rhs))))


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    a, b = ComplexTensor.make(matrix), ComplexTensor.make(rhs)
    at, (rows, columns) = turned(a), a.shape[-2:]
    if not fast:
        return _made(np.linalg.pinv(_array(a)) @ _array(b), a)
    n = min(rows, columns)
    regular = ComplexTensor.make(ops.eye(rows=[n], columns=[n], dtype=a.re.dtype) * float(l2_regularizer), a.dtype)
    return solve(at @ a + regular, at @ b) if rows >= columns else at @ solve(a @ at + regular, b)


def pinv(a, rcond=None, validate_args=False, name=None):
    array = _array(a)
    limit = 10 * max(array.shape[-2:]) * np.finfo(array.dtype).eps if rcond is None else float(rcond)
    return _made(np.linalg.pinv(array, limit), a)


def matrix_rank(a, tol=None, validate_args=False, name=None):
    return convert(np.asarray(np.linalg.matrix_rank(_array(a), tol), np.int32))


def _of_schur(array, function):
    """A function of matrices by their eigenvalues; a matrix that has too few eigenvectors is moved a little."""
    if not array.size:
        return array
    values, vectors = np.linalg.eig(array.astype(np.complex128))
    if not np.all(np.linalg.cond(vectors) < 1e12):
        size = np.abs(array).max() + 1e-300
        noise = np.random.default_rng(0).normal(size=array.shape) * size * 1e-9
        values, vectors = np.linalg.eig(array.astype(np.complex128) + noise)
    return (vectors * function(values)[..., None, :]) @ np.linalg.inv(vectors)


def sqrtm(input, name=None):
    return _made(_of_schur(_array(input), np.sqrt), input)


def logm(input, name=None):
    return _made(_of_schur(_array(input), np.log), input)


def _tridiagonal(diagonals, diagonals_format):
    """The matrix: each part is that of the diagonals' parts."""
    from tandem import linalg

    if isinstance(diagonals, (list, tuple)):
        diagonals = [ComplexTensor.make(d) for d in diagonals]
        re, im = [d.re for d in diagonals], [d.im for d in diagonals]
    else:
        diagonals = ComplexTensor.make(diagonals)
        re, im = diagonals.re, diagonals.im
    return ComplexTensor(*(linalg._tridiagonal_matrix(part, diagonals_format) for part in (re, im)))


def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, **options):
    matrix = _tridiagonal(diagonals, diagonals_format)
    rhs = ComplexTensor.make(rhs, matrix.dtype)
    rhs = conj(rhs) if conjugate_rhs else rhs
    if rhs.ndim == matrix.ndim - 1:
        made = solve(matrix, ComplexTensor(*(ops.expand_dims(p, axis=[-1]) for p in (rhs.re, rhs.im))))
        return ComplexTensor(*(ops.squeeze(p, axis=[-1]) for p in (made.re, made.im)))
    return solve(matrix, _transposed(rhs) if transpose_rhs else rhs)


def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    return _tridiagonal(diagonals, diagonals_format) @ ComplexTensor.make(rhs)


def banded_triangular_solve(bands, rhs, lower=True, adjoint=False, name=None):
    from tandem import linalg

    bands = ComplexTensor.make(bands)
    count, n = bands.shape[-2:]
    k = (-(count - 1), 0) if lower else (0, count - 1)
    matrix = ComplexTensor(*(linalg.diag(p, k=k, num_rows=n, num_cols=n, align="LEFT_RIGHT") for p in (bands.re, bands.im)))
    return triangular_solve(matrix, rhs, lower, adjoint)


def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None):
    a, b = ComplexTensor.make(alpha), ComplexTensor.make(beta)
    middle, side = _array(a).real, _array(b)
    values, vectors = np.linalg.eigh(np.diag(middle).astype(side.dtype) + np.diag(side, -1) + np.diag(side.conj(), 1))
    if select == "i":
        low, high = ints(select_range)
        kept = np.arange(low, high + 1)
    elif select == "v":
        low, high = (float(v) for v in select_range)
        kept = np.flatnonzero((values > low) & (values <= high))
    else:
        kept = np.arange(len(values))
    return _real(values[kept], a) if eigvals_only else (_real(values[kept], a), _made(vectors[:, kept], a))


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """Real; that of squares in a complex type, as TensorFlow has it."""
    from tandem import linalg

    is_matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    if is_matrix and ord == 2:
        made = np.linalg.norm(_array(tensor), 2, tuple(axis), bool(keepdims))
        return _made(made, tensor)
    made = linalg.norm(abs(tensor), ord, axis, keepdims)
    return ComplexTensor.make(made, tensor.dtype) if ord in ("euclidean", "fro", 2) else made


def normalize(tensor, ord="euclidean", axis=None, name=None):
    length = ComplexTensor.make(norm(tensor, ord, axis, True), tensor.dtype)
    return tensor / length, length


NAMES = (
    "cholesky det slogdet logdet qr svd eigh eig lu lu_solve lu_matrix_inverse lu_reconstruct triangular_solve cholesky_solve solve lstsq pinv matrix_rank "
    "sqrtm logm tridiagonal_solve tridiagonal_matmul banded_triangular_solve eigh_tridiagonal norm normalize"
).split()
