"""tf.linalg. Linear operators are in _linear_operators.py."""
import numpy as np

from tandem import errors
from tandem._arrays import _needs_data, _renamed, cast, concat, expand_dims, eye, reshape, zeros
from tandem._complex import ComplexTensor
from tandem._dtypes import as_dtype
from tandem._face import any_tensor, api, axes, axis_in, convert, float_tensor, ints, number, ops, pair, strict, tensor
from tandem.math import global_norm, l2_normalize  # noqa: F401


@api
def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False, b_is_sparse=False, output_type=None,
           grad_a=False, grad_b=False, name=None):  # fmt: skip
    if transpose_a and adjoint_a or transpose_b and adjoint_b:
        raise ValueError("Only one of `transpose` and `adjoint` can be True.")
    a, b = pair(a, b)
    a, b = tensor(a), tensor(b)
    if a.ndim < 2 or b.ndim < 2:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"matmul: In[0] and In[1] must have at least 2 dimensions, got shapes {a.shape} and {b.shape}\n  hint: "
            "tf.linalg.matvec, tf.tensordot",
        )
    if output_type is not None:
        return ops.matmul(
            a,
            b,
            transpose_x=bool(transpose_a or adjoint_a),
            transpose_y=bool(transpose_b or adjoint_b),
            dtype=as_dtype(output_type),
        )
    return strict.matmul(a, b, transpose_x=bool(transpose_a or adjoint_a), transpose_y=bool(transpose_b or adjoint_b))


@api
def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    b = any_tensor(b)
    return _squeeze_last(matmul(a, expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a))


def _squeeze_last(x):
    from tandem._arrays import squeeze

    return squeeze(x, -1)


@api
def tensordot(a, b, axes, name=None):
    a, b = pair(a, b)
    a, b = tensor(a), tensor(b)
    if isinstance(axes, (int, np.integer)) or getattr(axes, "ndim", None) == 0:
        return strict.tensordot(a, b, axes=int(number(axes)))
    left, right = axes if not hasattr(axes, "numpy") else axes.numpy()
    return strict.tensordot(a, b, axes=0, x_axes=ints(left), y_axes=ints(right))


@api
def einsum(equation, *inputs, **kwargs):
    inputs = [tensor(x) for x in inputs]
    equation = equation.replace(" ", "")
    if "..." not in equation or "->" in equation:
        return strict.einsum(inputs, equation=equation)
    return strict.einsum(inputs, equation=equation)


def _matrix(row, name):
    op = getattr(ops, row)

    @api
    def call(input, name=None):
        return op(float_tensor(input, public))

    public = name
    call.__name__ = name
    return call


cholesky, det, _inverse = _matrix("cholesky", "cholesky"), _matrix("det", "det"), _matrix("inverse", "inv")


@api
def inv(input, adjoint=False, name=None):
    x = float_tensor(input, "inv")
    if x.dtype.size == 2:  # as TensorFlow's kernel of 16 bits does
        return cast(inv(cast(x, "float32"), adjoint), x.dtype)
    made = ops.inverse(x)
    return matrix_transpose(made) if adjoint else made


@api
def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    return ops.swapaxes(tensor(a), axis1=-1, axis2=-2)


@api
def adjoint(matrix, name=None):
    return ops.swapaxes(tensor(matrix), axis1=-1, axis2=-2)


@api
def slogdet(input, name=None):
    from collections import namedtuple

    return namedtuple("LogMatrixDeterminant", ["sign", "log_abs_determinant"])(*ops.slogdet(float_tensor(input, "slogdet")))


@api
def logdet(matrix, name=None):
    chol = ops.cholesky(float_tensor(matrix, "logdet"))
    return ops.multiply(ops.sum(ops.log(ops.diagonal(chol, axis1=-2, axis2=-1)), axis=[-1]), 2.0)


@api
def cholesky_solve(chol, rhs, name=None):
    chol, rhs = pair(chol, rhs)
    half = ops.triangular_solve(tensor(chol), tensor(rhs), lower=True)
    return ops.triangular_solve(tensor(chol), half, lower=True, transpose=True)


@api
def solve(matrix, rhs, adjoint=False, name=None):
    matrix, rhs = pair(matrix, rhs)
    matrix, rhs = tensor(matrix), tensor(rhs)
    return ops.solve(matrix_transpose(matrix) if adjoint else matrix, rhs)


@api
def triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None):
    matrix, rhs = pair(matrix, rhs)
    matrix, rhs = tensor(matrix), tensor(rhs)
    lead = np.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(rhs.shape[:-2]))
    matrix = ops.broadcast_to(matrix, shape=[*lead, *matrix.dims[-2:]])
    rhs = ops.broadcast_to(rhs, shape=[*lead, *rhs.dims[-2:]])
    return ops.triangular_solve(matrix, rhs, lower=bool(lower), transpose=bool(adjoint))


@api
def qr(input, full_matrices=False, name=None):
    from collections import namedtuple

    x = float_tensor(input, "qr")
    if x.dtype.size == 2:  # as TensorFlow's kernels of 16 bits do
        return namedtuple("Qr", ["q", "r"])(*(cast(part, x.dtype) for part in qr(cast(x, "float32"), full_matrices)))
    return namedtuple("Qr", ["q", "r"])(*ops.qr(float_tensor(input, "qr"), mode="complete" if full_matrices else "reduced"))


@api
def svd(tensor_, full_matrices=False, compute_uv=True, name=None):
    u, s, vt = ops.svd(float_tensor(tensor_, "svd"), full_matrices=bool(full_matrices))
    return (s, u, matrix_transpose(vt)) if compute_uv else s


svd = _renamed(svd, tensor="tensor_")


@api
def eigh(tensor_, name=None):
    return ops.eigh(float_tensor(tensor_, "eigh"))


eigh = _renamed(eigh, tensor="tensor_")
self_adjoint_eig = eigh


def eigvalsh(tensor, name=None):
    return eigh(tensor)[0]


@api
def eig(tensor_, name=None):
    re, im, vre, vim = ops.eig(float_tensor(tensor_, "eig"))
    return ComplexTensor(re, im), ComplexTensor(vre, vim)


eig = _renamed(eig, tensor="tensor_")


def eigvals(tensor, name=None):
    return eig(tensor)[0]


@api
def lu(input, output_idx_type=as_dtype("int32"), name=None):
    from collections import namedtuple

    packed, _, perm = ops.lu(float_tensor(input, "lu"))
    return namedtuple("Lu", ["lu", "p"])(packed, cast(perm, output_idx_type))


@api
def lu_solve(lower_upper, perm, rhs, validate_args=False, name=None):
    packed, perm, rhs = tensor(lower_upper), tensor(perm), tensor(rhs)
    picked = ops.take_along_axis(rhs, ops.broadcast_to(expand_dims(perm, -1), shape=rhs.dims), axis=-2)
    return ops.triangular_solve(packed, ops.triangular_solve(packed, picked, lower=True, unit=True), lower=False)


@api
def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    packed = tensor(lower_upper)
    n = packed.dims[-1]
    return lu_solve(packed, perm, ops.broadcast_to(eye(n, dtype=packed.dtype), shape=packed.dims))


@api
def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    packed, perm = tensor(lower_upper), tensor(perm)
    lower = ops.add(ops.tril(packed, k=-1), eye(packed.dims[-1], dtype=packed.dtype))
    made = ops.matmul(lower, ops.triu(packed))
    back = ops.argsort(perm, axis=-1)
    return ops.take_along_axis(made, ops.broadcast_to(expand_dims(back, -1), shape=made.dims), axis=-2)


@api
def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    matrix, rhs = pair(matrix, rhs)
    a, b = tensor(matrix), tensor(rhs)
    regular = float(number(l2_regularizer))
    rows, columns = a.shape[-2], a.shape[-1]
    at = matrix_transpose(a)
    if not fast:  # by singular values, for which TensorFlow leaves the regularizer out
        return ops.matmul(ops.pinv(a), b)
    if rows >= columns:
        return ops.solve(ops.matmul(at, a) + eye(columns, dtype=a.dtype) * regular, ops.matmul(at, b))
    return ops.matmul(at, ops.solve(ops.matmul(a, at) + eye(rows, dtype=a.dtype) * regular, b))


@api
def pinv(a, rcond=None, validate_args=False, name=None):
    return ops.pinv(float_tensor(a, "pinv"), rcond=None if rcond is None else float(number(rcond)))


@api
def matrix_rank(a, tol=None, validate_args=False, name=None):
    return ops.matrix_rank(float_tensor(a, "matrix_rank"), tol=None if tol is None else float(number(tol)))


@api
def expm(input, name=None):
    """Scaling, a Padé approximant of order 8, and squaring."""
    x = float_tensor(input, "expm")
    if x.dtype.size == 2:
        return cast(expm(cast(x, "float32")), x.dtype)
    n = x.dims[-1]
    one = eye(n, dtype=x.dtype)
    if x.is_traced:
        squarings = 16
    else:
        size = float(np.abs(x.numpy()).sum(-2).max(initial=0.0)) if x.shape.num_elements() else 0.0
        squarings = max(0, int(np.ceil(np.log2(max(size, 1e-30)))) + 1)
    x = x * (0.5**squarings)
    order, c, power = 8, 1.0, one
    top, bottom = one, one
    for k in range(1, order + 1):
        c = c * (order - k + 1) / (k * (2 * order - k + 1))
        power = ops.matmul(x, power) if k > 1 else x
        top = top + power * c
        bottom = bottom + power * (c if k % 2 == 0 else -c)
    made = ops.solve(bottom, top)
    for _ in range(squarings):
        made = ops.matmul(made, made)
    return made


@api
def sqrtm(input, name=None):
    """Denman and Beavers's iteration."""
    y = float_tensor(input, "sqrtm")
    z = ops.broadcast_to(eye(y.dims[-1], dtype=y.dtype), shape=y.dims)
    for _ in range(25):
        y, z = (y + ops.inverse(z)) * 0.5, (z + ops.inverse(y)) * 0.5
    return y


matrix_square_root = sqrtm


@api
def logm(input, name=None):
    x = tensor(input)
    raise errors.InvalidArgumentError(None, None, f"logm: takes complex matrices, got {x.dtype.name}\n  hint: tf.cast(x, tf.complex64)")


@api
def cross(a, b, name=None):
    a, b = pair(a, b)
    a, b = tensor(a), tensor(b)
    return ops.roll(
        a, shift=[-1], axis=[-1]
    ) * ops.roll(b, shift=[-2], axis=[-1]) - ops.roll(a, shift=[-2], axis=[-1]) * ops.roll(b, shift=[-1], axis=[-1])


@api
def trace(x, name=None):
    x = tensor(x)
    return ops.cast(ops.trace(x, axis1=-2, axis2=-1), dtype=x.dtype)


@api
def norm(tensor_, ord="euclidean", axis=None, keepdims=None, name=None):
    x = tensor(tensor_)
    if x.dtype.is_integer:
        return cast(norm(cast(x, "float64"), ord, axis, keepdims), x.dtype)
    x = float_tensor(x, "norm")
    keepdims = bool(keepdims)
    matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    if ord in ("euclidean", "fro") or (ord == 2 and not matrix):
        return ops.sqrt(ops.sum(ops.square(x), axis=axes(axis), keepdims=keepdims))
    size = ops.absolute(x)
    if matrix and ord in (1, np.inf, 2):
        if ord == 2:
            perm = [i for i in range(x.ndim) if i not in [axis_in(a, x.ndim) for a in axis]] + [axis_in(a, x.ndim) for a in axis]
            made = ops.max(ops.svd(ops.transpose(x, perm=perm))[1], axis=[-1])
            return ops.expand_dims(made, axis=sorted(axis_in(a, x.ndim) for a in axis)) if keepdims else made
        first, second = (axis[0], axis[1]) if ord == 1 else (axis[1], axis[0])
        total = ops.sum(size, axis=[axis_in(first, x.ndim)], keepdims=True)
        made = ops.max(total, axis=[axis_in(second, x.ndim)], keepdims=True)
        return made if keepdims else ops.squeeze(made, axis=[axis_in(a, x.ndim) for a in axis])
    if ord == 1:
        return ops.sum(size, axis=axes(axis), keepdims=keepdims)
    if ord == np.inf:
        from tandem.math import reduce_max  # which knows what to give for no elements

        return reduce_max(size, axis, keepdims)
    if isinstance(ord, (int, float)) and ord > 0:
        return ops.power(ops.sum(ops.power(size, float(ord)), axis=axes(axis), keepdims=keepdims), 1.0 / float(ord))
    raise ValueError(f"'ord' must be a supported norm type, got {ord}")


norm = _renamed(norm, tensor="tensor_")


@api
def normalize(tensor_, ord="euclidean", axis=None, name=None):
    x = tensor(tensor_)
    length = norm(x, ord, axis, True)
    return x / length, length


normalize = _renamed(normalize, tensor="tensor_")


# --- diagonals ------------------------------------------------------------------------------------------------------------------


def _span(k):
    k = ints(k)
    low, high = (k[0], k[0]) if len(k) == 1 else (k[0], k[1])
    if low > high:
        raise errors.InvalidArgumentError(
            None, None, f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}"
        )
    return low, high


def _placed(d, low, high, rows, columns, align):
    """For each diagonal of a packed [.., diagonals, length]: its number, its length and where its elements begin."""
    longest = max(min(rows + min(k, 0), columns - max(k, 0)) for k in range(low, high + 1))
    for i, k in enumerate(range(high, low - 1, -1)):
        length = min(rows + min(k, 0), columns - max(k, 0))
        left = align.startswith("LEFT") if k > 0 else align.endswith("LEFT") if k < 0 else True
        yield i, k, length, 0 if left or k == 0 else longest - length


def _aligned(align):
    """Super-diagonals by the first word, sub-diagonals by the second."""
    first, second = align.split("_")
    return f"{first}_{second}"


@api
def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    d = tensor(diagonal)
    low, high = _span(k)
    length = d.shape[-1]
    rows, columns = int(number(num_rows)), int(number(num_cols))
    if rows == -1 and columns == -1:
        rows = columns = length + max(
            abs(low) if high < 0 else 0, high if low > 0 else 0, 0
        ) if low == high or high < 0 or low > 0 else length
        if low == high:
            rows = columns = length + abs(low)
    elif rows == -1:
        rows = max(length - min(high, 0), 1) if columns >= length + max(low, 0) else length - min(high, 0)
    elif columns == -1:
        columns = length + max(low, 0)
    packed = d if low != high else expand_dims(d, -2)
    lead = packed.dims[:-2]
    base = ops.full(convert(padding_value, d.dtype), shape=[*lead, rows, columns])
    return _written(base, packed, low, high, align)


def _written(base, packed, low, high, align):
    rows, columns = base.shape[-2:]
    at, columns_of = [], []
    for i, k, length, start in _placed(packed, low, high, rows, columns, _aligned(align)):
        for j in range(length):
            at.append((j - min(k, 0)) * columns + j + max(k, 0))
            columns_of.append(i * packed.shape[-1] + start + j)
    flat = reshape(base, [*base.dims[:-2], rows * columns])
    values = ops.take(reshape(packed, [*packed.dims[:-2], -1]), convert(np.array(columns_of, np.int32)), axis=-1)
    moved = ops.moveaxis(flat, source=[-1], destination=[0])
    values = ops.moveaxis(ops.broadcast_to(values, shape=[*base.dims[:-2], len(at)]), source=[-1], destination=[0])
    made = ops.scatter(moved, convert(np.array(at, np.int32).reshape(-1, 1)), values, mode="set")
    return reshape(ops.moveaxis(made, source=[0], destination=[-1]), base.dims)


@api
def set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    x, d = tensor(input), tensor(diagonal, tensor(input).dtype)
    low, high = _span(k)
    return _written(x, d if low != high else expand_dims(d, -2), low, high, align)


@api
def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    x = tensor(input)
    low, high = _span(k)
    rows, columns = x.shape[-2:]
    longest = max(min(rows + min(n, 0), columns - max(n, 0)) for n in range(low, high + 1))
    flat = reshape(x, [*x.dims[:-2], rows * columns])
    flat = concat([flat, ops.full(convert(padding_value, x.dtype), shape=[*x.dims[:-2], 1])], -1)
    places = np.full((high - low + 1, longest), rows * columns, np.int32)
    for i, n, length, start in _placed(None, low, high, rows, columns, _aligned(align)):
        for j in range(length):
            places[i, start + j] = (j - min(n, 0)) * columns + j + max(n, 0)
    made = ops.take(flat, convert(places), axis=-1)
    return ops.squeeze(made, axis=[-2]) if low == high else made


@api
def tensor_diag(diagonal, name=None):
    d = tensor(diagonal)
    size = d.shape.num_elements()
    return reshape(ops.diag(reshape(d, [size])), [*d.dims, *d.dims])


@api
def tensor_diag_part(input, name=None):
    x = tensor(input)
    half = x.dims[: x.ndim // 2]
    size = int(np.prod(half))
    return reshape(ops.diagonal(reshape(x, [size, size])), half)


@api
def band_part(input, num_lower, num_upper, name=None):
    x, lower, upper = tensor(input), int(number(num_lower)), int(number(num_upper))
    made = x
    if lower >= 0:
        made = ops.triu(made, k=-lower)
    return ops.tril(made, k=upper) if upper >= 0 else made


# --- bands ----------------------------------------------------------------------------------------------------------------------


def _tridiagonal(diagonals, diagonals_format):
    """(superdiagonal, diagonal, subdiagonal), each as long as the matrix."""
    if diagonals_format == "compact":
        d = tensor(diagonals)
        return d[..., 0, :], d[..., 1, :], d[..., 2, :]
    if diagonals_format == "sequence":
        upper, main, lower = [tensor(d) for d in diagonals]
        n = main.shape[-1]
        if upper.shape[-1] == n - 1:
            upper = concat([upper, zeros([*upper.dims[:-1], 1], upper.dtype)], -1)
        if lower.shape[-1] == n - 1:
            lower = concat([zeros([*lower.dims[:-1], 1], lower.dtype), lower], -1)
        return upper, main, lower
    m = tensor(diagonals)
    upper, main, lower = [ops.diagonal(m, offset=k, axis1=-2, axis2=-1) for k in (1, 0, -1)]
    pad = zeros([*main.dims[:-1], 1], main.dtype)
    return concat([upper, pad], -1), main, concat([pad, lower], -1)


def _tridiagonal_matrix(diagonals, diagonals_format):
    upper, main, lower = _tridiagonal(diagonals, diagonals_format)
    made = diag(main)
    made = set_diag(made, upper[..., :-1], k=1)
    return set_diag(made, lower[..., 1:], k=-1)


@api
def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, name=None, partial_pivoting=True,
                      perturb_singular=False):  # fmt: skip
    matrix = _tridiagonal_matrix(diagonals, diagonals_format)
    rhs = tensor(rhs, matrix.dtype)
    vector = rhs.ndim == matrix.ndim - 1
    right = expand_dims(rhs, -1) if vector else matrix_transpose(rhs) if transpose_rhs else rhs
    made = ops.solve(matrix, right)
    return _squeeze_last(made) if vector else made


@api
def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    return ops.matmul(_tridiagonal_matrix(diagonals, diagonals_format), tensor(rhs))


@api
def banded_triangular_solve(bands, rhs, lower=True, adjoint=False, name=None):
    bands = tensor(bands)
    count, n = bands.shape[-2:]
    k = (-(count - 1), 0) if lower else (0, count - 1)
    matrix = diag(bands, k=k, num_rows=n, num_cols=n, align="LEFT_RIGHT" if lower else "LEFT_RIGHT")
    return triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


@api
def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None):
    alpha, beta = tensor(alpha), tensor(beta)
    if alpha.dtype.is_floating and alpha.dtype.size == 2:
        made = eigh_tridiagonal(cast(alpha, "float32"), cast(beta, "float32"), eigvals_only, select, select_range, tol)
        return cast(made, alpha.dtype) if eigvals_only else tuple(cast(part, alpha.dtype) for part in made)
    matrix = set_diag(set_diag(diag(alpha), beta, k=1), beta, k=-1)
    values, vectors = ops.eigh(matrix)
    if select == "i":
        low, high = ints(select_range)
        values, vectors = values[low : high + 1], vectors[:, low : high + 1]
    elif select == "v":
        if values.is_traced:
            raise _needs_data("eigh_tridiagonal with select='v'")
        low, high = (float(number(v)) for v in select_range)
        kept = np.flatnonzero((values.numpy() > low) & (values.numpy() <= high)).astype(np.int32)
        values, vectors = ops.take(values, convert(kept), axis=0), ops.take(vectors, convert(kept), axis=1)
    return values if eigvals_only else (values, vectors)


class experimental:
    """tf.linalg.experimental"""

    @staticmethod
    def conjugate_gradient(operator, rhs, preconditioner=None, x=None, tol=1e-5, max_iter=20, name="conjugate_gradient"):
        """Hestenes and Stiefel's way to solve operator x = rhs, for one that is self-adjoint and positive definite."""
        import collections

        if not (operator.is_self_adjoint and operator.is_positive_definite):
            raise ValueError("Expected a self-adjoint, positive definite operator.")
        rhs = tensor(rhs)
        size = float(number(ops.sqrt(ops.sum(ops.square(rhs)))))
        dot = lambda a, b: ops.sum(ops.multiply(a, b), axis=[-1], keepdims=True)  # noqa: E731
        before = (lambda r: r) if preconditioner is None else preconditioner.matvec
        x = ops.subtract(rhs, rhs) if x is None else tensor(x, rhs.dtype)
        r = ops.subtract(rhs, operator.matvec(x))
        z = before(r)
        p, gamma, i = z, dot(r, z), 0
        while i < int(number(max_iter)) and float(number(ops.sqrt(ops.sum(ops.square(r))))) > tol * size:
            step = operator.matvec(p)
            alpha = ops.divide(gamma, dot(p, step))
            x, r = x + alpha * p, r - alpha * step
            z = before(r)
            last, gamma = gamma, dot(r, z)
            p = z + ops.divide(gamma, last) * p
            i += 1
        state = collections.namedtuple("CGState", ["i", "x", "r", "p", "gamma"])
        return state(convert(np.int32(i)), x, r, p, ops.squeeze(gamma, axis=[-1]))


def __getattr__(name):
    if name.startswith("LinearOperator"):
        from tandem import _linear_operators

        if hasattr(_linear_operators, name):
            return getattr(_linear_operators, name)
    raise AttributeError(f"tf.linalg has no '{name}': see docs/coverage.md")
