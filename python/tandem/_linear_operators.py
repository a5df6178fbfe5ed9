"""tf.linalg.LinearOperator and its kinds: matrices that know their structure. What a kind does not do better goes through the dense matrix."""
import numpy as np

from tandem import _dtypes as dtypes
from tandem import linalg
from tandem._arrays import broadcast_to, concat, expand_dims, eye, zeros
from tandem._convert import convert
from tandem._face import ints, number, ops, tensor


class LinearOperator:
    """A batch of matrices."""

    def __init__(
        self,
        dtype=None,
        is_non_singular=None,
        is_self_adjoint=None,
        is_positive_definite=None,
        is_square=None,
        name=None,
        parameters=None,
    ):
        self._hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._name = name or type(self).__name__

    name = property(lambda self: self._name)
    is_non_singular = property(lambda self: self._hints[0])
    is_self_adjoint = property(lambda self: self._hints[1])
    is_positive_definite = property(lambda self: self._hints[2])
    dtype = property(lambda self: self.to_dense().dtype)
    shape = property(lambda self: self.to_dense().shape)

    @property
    def is_square(self):
        return self._hints[3] if self._hints[3] is not None else self.shape[-1] == self.shape[-2]

    batch_shape = property(lambda self: self.shape[:-2])
    tensor_rank = property(lambda self: len(self.shape))
    domain_dimension = property(lambda self: self.shape[-1])
    range_dimension = property(lambda self: self.shape[-2])

    def shape_tensor(self, name="shape_tensor"):
        return convert(np.array(self.shape, np.int32))

    def batch_shape_tensor(self, name=None):
        return convert(np.array(self.batch_shape, np.int32))

    def domain_dimension_tensor(self, name=None):
        return convert(np.int32(self.domain_dimension))

    def range_dimension_tensor(self, name=None):
        return convert(np.int32(self.range_dimension))

    def tensor_rank_tensor(self, name=None):
        return convert(np.int32(self.tensor_rank))

    def to_dense(self, name="to_dense"):
        raise NotImplementedError(f"{type(self).__name__}.to_dense")

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        if isinstance(x, LinearOperator):
            return LinearOperatorComposition([self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x])
        return linalg.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def matvec(self, x, adjoint=False, name="matvec"):
        return linalg._squeeze_last(self.matmul(expand_dims(tensor(x), -1), adjoint))

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        rhs = tensor(rhs)
        rhs = linalg.adjoint(rhs) if adjoint_arg else rhs
        matrix = self.to_dense()
        lead = np.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(rhs.shape[:-2]))
        return linalg.solve(
            broadcast_to(matrix, [*lead, *matrix.dims[-2:]]), broadcast_to(rhs, [*lead, *rhs.dims[-2:]]), adjoint=adjoint
        )

    def solvevec(self, rhs, adjoint=False, name="solve"):
        return linalg._squeeze_last(self.solve(expand_dims(tensor(rhs), -1), adjoint))

    def determinant(self, name="det"):
        return linalg.det(self.to_dense())

    def log_abs_determinant(self, name="log_abs_det"):
        return linalg.slogdet(self.to_dense())[1]

    def trace(self, name="trace"):
        return linalg.trace(self.to_dense())

    def diag_part(self, name="diag_part"):
        return linalg.diag_part(self.to_dense())

    def add_to_tensor(self, x, name="add_to_tensor"):
        return self.to_dense() + tensor(x)

    def adjoint(self, name="adjoint"):
        return LinearOperatorAdjoint(self)

    H = property(lambda self: self.adjoint())

    def inverse(self, name="inverse"):
        return LinearOperatorInversion(self)

    def cholesky(self, name="cholesky"):
        return LinearOperatorLowerTriangular(linalg.cholesky(self.to_dense()))

    def cond(self, name="cond"):
        s = linalg.svd(self.to_dense(), compute_uv=False)
        return ops.max(s, axis=[-1]) / ops.min(s, axis=[-1])

    def eigvals(self, name="eigvals"):
        return linalg.eigvalsh(self.to_dense())

    def assert_non_singular(self, name=None):
        return None

    assert_positive_definite = assert_self_adjoint = assert_non_singular

    def __matmul__(self, other):
        return self.matmul(other)


class LinearOperatorFullMatrix(LinearOperator):
    def __init__(self, matrix, *args, **kwargs):
        super().__init__(None, *args, **kwargs)
        self._matrix = tensor(matrix)

    def to_dense(self, name="to_dense"):
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    def __init__(self, tril, *args, **kwargs):
        super().__init__(None, *args, **kwargs)
        self._tril = tensor(tril)

    def to_dense(self, name="to_dense"):
        return ops.tril(self._tril)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        rhs = linalg.adjoint(tensor(rhs)) if adjoint_arg else rhs
        return linalg.triangular_solve(self.to_dense(), rhs, lower=True, adjoint=adjoint)

    def determinant(self, name="det"):
        return ops.prod(linalg.diag_part(self._tril), axis=[-1])

    def log_abs_determinant(self, name="log_abs_det"):
        return ops.sum(ops.log(ops.absolute(linalg.diag_part(self._tril))), axis=[-1])


class LinearOperatorDiag(LinearOperator):
    def __init__(self, diag, *args, **kwargs):
        super().__init__(None, *args, **kwargs)
        self._diag = tensor(diag)

    diag = property(lambda self: self._diag)

    def to_dense(self, name="to_dense"):
        return linalg.diag(self._diag)

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        if isinstance(x, LinearOperator):
            return super().matmul(x, adjoint, adjoint_arg)
        x = linalg.adjoint(tensor(x)) if adjoint_arg else tensor(x)
        return expand_dims(self._diag, -1) * x

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        rhs = linalg.adjoint(tensor(rhs)) if adjoint_arg else tensor(rhs)
        return rhs / expand_dims(self._diag, -1)

    def determinant(self, name="det"):
        return ops.prod(self._diag, axis=[-1])

    def log_abs_determinant(self, name="log_abs_det"):
        return ops.sum(ops.log(ops.absolute(self._diag)), axis=[-1])

    def diag_part(self, name="diag_part"):
        return self._diag


class LinearOperatorIdentity(LinearOperator):
    def __init__(self, num_rows, batch_shape=None, dtype=None, **kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k.startswith("is_") or k == "name"}
        super().__init__(None, **kwargs)
        self._dense = eye(num_rows, batch_shape=None if batch_shape is None else ints(batch_shape), dtype=dtype or dtypes.float32)

    def to_dense(self, name="to_dense"):
        return self._dense

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        return linalg.adjoint(tensor(rhs)) if adjoint_arg else tensor(rhs)


class LinearOperatorScaledIdentity(LinearOperatorIdentity):
    def __init__(self, num_rows, multiplier, **kwargs):
        multiplier = tensor(multiplier)
        super().__init__(num_rows, dtype=multiplier.dtype, **kwargs)
        self._multiplier = multiplier
        self._dense = self._dense * expand_dims(expand_dims(multiplier, -1), -1)

    multiplier = property(lambda self: self._multiplier)
    solve = LinearOperator.solve


class LinearOperatorZeros(LinearOperator):
    def __init__(self, num_rows, num_columns=None, batch_shape=None, dtype=None, **kwargs):
        super().__init__(None)
        columns = num_rows if num_columns is None else num_columns
        self._dense = zeros(
            [*([] if batch_shape is None else ints(batch_shape)), int(number(num_rows)), int(number(columns))],
            dtype or dtypes.float32,
        )

    def to_dense(self, name="to_dense"):
        return self._dense


class LinearOperatorTridiag(LinearOperator):
    def __init__(self, diagonals, diagonals_format="compact", **kwargs):
        super().__init__(None, **kwargs)
        self._diagonals, self._format = diagonals, diagonals_format

    diagonals = property(lambda self: self._diagonals)
    diagonals_format = property(lambda self: self._format)

    def to_dense(self, name="to_dense"):
        return linalg._tridiagonal_matrix(self._diagonals, self._format)


class LinearOperatorToeplitz(LinearOperator):
    def __init__(self, col, row, **kwargs):
        super().__init__(None, **kwargs)
        self._col, self._row = tensor(col), tensor(row)

    def to_dense(self, name="to_dense"):
        n = self._col.shape[-1]
        line = concat([ops.flip(self._row[..., 1:], axis=[-1]), self._col], -1)
        at = np.arange(n)[:, None] - np.arange(n)[None] + n - 1
        return ops.take(line, convert(at.astype(np.int32)), axis=-1)


class LinearOperatorHouseholder(LinearOperator):
    def __init__(self, reflection_axis, **kwargs):
        super().__init__(None, **kwargs)
        self._axis = linalg.l2_normalize(tensor(reflection_axis), axis=-1)

    def to_dense(self, name="to_dense"):
        v = expand_dims(self._axis, -1)
        return eye(self._axis.shape[-1], dtype=self._axis.dtype) - ops.matmul(v, v, transpose_y=True) * 2.0


class LinearOperatorPermutation(LinearOperator):
    def __init__(self, perm, dtype=dtypes.float32, **kwargs):
        super().__init__(None, **kwargs)
        self._perm, self._kind = tensor(perm), dtype

    def to_dense(self, name="to_dense"):
        return ops.one_hot(self._perm, classes=self._perm.shape[-1], dtype=self._kind)


class LinearOperatorAdjoint(LinearOperator):
    def __init__(self, operator, **kwargs):
        super().__init__(None)
        self._operator = operator

    operator = property(lambda self: self._operator)

    def to_dense(self, name="to_dense"):
        return linalg.adjoint(self._operator.to_dense())

    def adjoint(self, name="adjoint"):
        return self._operator


class LinearOperatorInversion(LinearOperator):
    def __init__(self, operator, **kwargs):
        super().__init__(None)
        self._operator = operator

    operator = property(lambda self: self._operator)

    def to_dense(self, name="to_dense"):
        return linalg.inv(self._operator.to_dense())

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        return self._operator.solve(x, adjoint, adjoint_arg)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        return self._operator.matmul(rhs, adjoint, adjoint_arg)

    def inverse(self, name="inverse"):
        return self._operator


class LinearOperatorComposition(LinearOperator):
    def __init__(self, operators, **kwargs):
        super().__init__(None)
        self._operators = list(operators)

    operators = property(lambda self: self._operators)

    def to_dense(self, name="to_dense"):
        made = self._operators[0].to_dense()
        for o in self._operators[1:]:
            made = linalg.matmul(made, o.to_dense())
        return made


class LinearOperatorKronecker(LinearOperatorComposition):
    def to_dense(self, name="to_dense"):
        made = self._operators[0].to_dense()
        for o in self._operators[1:]:
            b = o.to_dense()
            product = ops.multiply(
                ops.reshape(made, shape=[*made.dims[:-2], made.dims[-2], 1, made.dims[-1], 1]),
                ops.reshape(b, shape=[*b.dims[:-2], 1, b.dims[-2], 1, b.dims[-1]]),
            )
            made = ops.reshape(
                product, shape=[*product.dims[:-4], product.dims[-4] * product.dims[-3], product.dims[-2] * product.dims[-1]]
            )
        return made


class LinearOperatorBlockDiag(LinearOperatorComposition):
    def to_dense(self, name="to_dense"):
        return _blocks(
            [[o.to_dense() if i == j else None for j in range(len(self._operators))] for i, o in enumerate(self._operators)]
        )


class LinearOperatorBlockLowerTriangular(LinearOperator):
    def __init__(self, operators, **kwargs):
        super().__init__(None, **{k: v for k, v in kwargs.items() if k.startswith("is_")})
        self._operators = [list(row) for row in operators]

    operators = property(lambda self: self._operators)

    def to_dense(self, name="to_dense"):
        n = len(self._operators)
        return _blocks([[row[j].to_dense() if j < len(row) else None for j in range(n)] for row in self._operators])


def _blocks(rows):
    """A matrix of blocks; None is zeros."""
    lead = np.broadcast_shapes(*[tuple(b.shape[:-2]) for row in rows for b in row if b is not None])
    widths = [next(rows[i][j].shape[-1] for i in range(len(rows)) if rows[i][j] is not None) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        some = next(b for b in row if b is not None)
        parts = [zeros([*lead, some.shape[-2], w], some.dtype) if b is None else broadcast_to(b, [*lead, *b.dims[-2:]]) for b, w in zip(row, widths)]
        lines.append(concat(parts, -1))
    return concat(lines, -2)


class LinearOperatorLowRankUpdate(LinearOperator):
    def __init__(self, base_operator, u, diag_update=None, v=None, **kwargs):
        super().__init__(None, **{k: v_ for k, v_ in kwargs.items() if k in ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square", "name")})
        self._base, self._u, self._v = base_operator, tensor(u), tensor(u if v is None else v)
        self._update = None if diag_update is None else tensor(diag_update)

    def to_dense(self, name="to_dense"):
        u = self._u if self._update is None else self._u * expand_dims(self._update, -2)
        return self._base.to_dense() + linalg.matmul(u, self._v, adjoint_b=True)


class _Circulant(LinearOperator):
    """A matrix that a Fourier transform makes diagonal: matvec(x) is the inverse transform of spectrum * transform(x)."""

    _rank = 1

    def __init__(self, spectrum, input_output_dtype=dtypes.complex64, **kwargs):
        from tandem._complex import ComplexTensor
        from tandem._dtypes import as_dtype

        super().__init__(**kwargs)
        self._io = as_dtype(input_output_dtype)
        spectrum = spectrum if isinstance(spectrum, ComplexTensor) else ComplexTensor.make(spectrum)
        self._spectrum = spectrum
        self.spectrum = spectrum

    dtype = property(lambda self: self._io)
    block_depth = property(lambda self: self._rank)
    block_shape = property(lambda self: self._spectrum.shape[-self._rank :])

    @property
    def _size(self):
        return int(np.prod(self.block_shape))

    @property
    def shape(self):
        from tandem._shape import TensorShape

        return TensorShape([*self._spectrum.shape[: -self._rank], self._size, self._size])

    def _transformed(self, x, how):
        from tandem import signal

        return getattr(signal, how + {1: "", 2: "2d", 3: "3d"}[self._rank])(x)

    def _filtered(self, x, spectrum):
        """x: [..., n, columns], complex."""
        from tandem._complex import ComplexTensor

        turn = lambda t: ComplexTensor(*(ops.swapaxes(p, axis1=-1, axis2=-2) for p in (t.re, t.im)))  # noqa: E731
        shaped = lambda t, tail: ComplexTensor(*(ops.reshape(p, shape=[*t.dims[:-1], *tail]) for p in (t.re, t.im)))  # noqa: E731
        rows = shaped(turn(x), self.block_shape)
        lead = ComplexTensor(*(ops.expand_dims(p, axis=[-self._rank - 1]) for p in (spectrum.re, spectrum.im)))
        made = self._transformed(self._transformed(rows, "fft") * lead, "ifft")
        flat = ComplexTensor(*(ops.reshape(p, shape=[*made.dims[: -self._rank], self._size]) for p in (made.re, made.im)))
        return turn(flat)

    def _complex(self, x):
        from tandem._complex import ComplexTensor

        return ComplexTensor.make(x, self._spectrum.dtype)

    def _back(self, x):
        from tandem._arrays import cast

        return cast(x, self._io)

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        from tandem._complex import conj

        x = self._complex(x)
        x = linalg.adjoint(x) if adjoint_arg else x
        return self._back(self._filtered(x, conj(self._spectrum) if adjoint else self._spectrum))

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        from tandem._complex import conj

        rhs = self._complex(rhs)
        rhs = linalg.adjoint(rhs) if adjoint_arg else rhs
        spectrum = conj(self._spectrum) if adjoint else self._spectrum
        return self._back(self._filtered(rhs, self._complex(1.0) / spectrum))

    def matvec(self, x, adjoint=False, name="matvec"):
        made = self.matmul(expand_dims(x, -1), adjoint)
        return linalg._squeeze_last(made)

    def solvevec(self, rhs, adjoint=False, name="solve"):
        return linalg._squeeze_last(self.solve(expand_dims(rhs, -1), adjoint))

    def to_dense(self, name="to_dense"):
        return self.matmul(self._complex(eye(self._size)))

    def convolution_kernel(self, name="convolution_kernel"):
        return self._back(self._transformed(self._spectrum, "ifft"))

    def _over_block(self, reduce, x):
        return reduce(x, axis=list(range(-self._rank, 0)))

    def determinant(self, name="det"):
        from tandem import math

        return self._back(self._over_block(math.reduce_prod, self._spectrum))

    def log_abs_determinant(self, name="log_abs_det"):
        from tandem import math

        return self._back(self._complex(self._over_block(math.reduce_sum, ops.log(abs(self._spectrum)))))

    def trace(self, name="trace"):
        from tandem import math

        return self._back(self._over_block(math.reduce_sum, self._spectrum))

    def diag_part(self, name="diag_part"):
        mean = self.trace() / self._back(self._complex(float(self._size)))
        return broadcast_to(expand_dims(mean, -1), [*self.shape[:-1]])

    def eigvals(self, name="eigvals"):
        flat = [ops.reshape(p, shape=[*self._spectrum.dims[: -self._rank], self._size]) for p in (self._spectrum.re, self._spectrum.im)]
        return type(self._spectrum)(*flat)


class LinearOperatorCirculant(_Circulant):
    """Rows are those before, moved on by one."""


class LinearOperatorCirculant2D(_Circulant):
    """The same in two directions, of images written row by row."""

    _rank = 2


class LinearOperatorCirculant3D(_Circulant):
    """And in three."""

    _rank = 3
