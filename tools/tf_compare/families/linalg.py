"""tf.linalg: products, factorisations, solvers, functions of matrices."""
import numpy as np

from inputs import COMPLEX, FLOATS, TYPES, array

KINDS = ["float32", "float64", "complex64", "complex128", "int32", "float16"]


def well(rng, shape, dtype):
    """A matrix far from singular."""
    x = array(rng, shape, dtype, -1, 1)
    return (x + np.eye(*shape[-2:]) * 3).astype(x.dtype)


def positive(rng, shape, dtype):
    x = array(rng, shape, dtype, -1, 1).astype("complex128" if dtype in COMPLEX else "float64")
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1]) * 2).astype(dtype)


def fill(cases):
    rng = cases.rng("tf.linalg.matmul")
    for dtype in TYPES:
        for a, b, options in [((2, 3), (3, 4), {}), ((2, 2, 3), (2, 3, 4), {}), ((3, 2), (3, 4), {"transpose_a": True}), ((2, 3), (4, 3), {"transpose_b": True}), ((2, 1, 2, 3), (3, 3, 2), {}),
                              ((0, 3), (3, 2), {}), ((2, 0), (0, 3), {}), ((3, 2), (3, 4), {"adjoint_a": True}), ((2, 3), (2, 3), {}), ((3,), (3, 2), {}), ((9, 33), (33, 17), {})]:  # fmt: skip
            cases.call("tf.linalg.matmul", array(rng, a, dtype), array(rng, b, dtype), **options)
    cases.call("tf.linalg.matmul", array(rng, (2, 3), "int8"), array(rng, (3, 2), "int8"), output_type="int32")
    rng = cases.rng("tf.linalg.matvec")
    for dtype in TYPES:
        cases.call("tf.linalg.matvec", array(rng, (2, 3), dtype), array(rng, (3,), dtype))
        cases.call("tf.linalg.matvec", array(rng, (2, 3, 2), dtype), array(rng, (2, 3), dtype), transpose_a=True)
    for function, makes in {"cholesky": positive, "det": well, "inv": well, "logdet": positive, "slogdet": well, "eigvalsh": positive, "expm": well, "logm": positive, "sqrtm": positive, "pinv": well,
                            "lu_matrix_inverse": None, "matrix_rank": well, "lu": well}.items():  # fmt: skip
        if makes is None:
            continue
        name = f"tf.linalg.{function}"
        rng = cases.rng(name)
        for dtype in KINDS:
            for shape in [(1, 1), (3, 3), (2, 3, 3), (0, 0), (0, 2, 2), (9, 9)]:
                cases.call(name, makes(rng, shape, dtype))
        cases.call(name, array(rng, (2, 3), "float32"))
        cases.call(name, array(rng, (3,), "float32"))
        cases.call(name, np.zeros((2, 2), np.float32), grad=[], note="singular")
        cases.call(name, np.array([[1, 2], [2, 1]], np.float32), grad=[], note="not positive")
    for name, code in {
        "qr": "tf.linalg.qr(x[0])", "svd": "tf.linalg.svd(x[0], compute_uv=False)", "eigh": "tf.linalg.eigh(x[0])", "eigvals": "tf.sort(tf.abs(tf.linalg.eigvals(x[0])))", "eig": "tf.sort(tf.abs(tf.linalg.eig(x[0])[0]))",
    }.items():  # fmt: skip
        rng = cases.rng(f"tf.linalg.{name}")
        for dtype in KINDS:
            for shape in [(3, 3), (2, 3, 3), (0, 0)]:
                x = positive(rng, shape, dtype) if name == "eigh" else well(rng, shape, dtype)
                # The sign of a vector is free: products that do not depend on it are compared.
                code_ = {"eigh": "(lambda e, v: (e, tf.matmul(v * tf.cast(e[..., None, :], v.dtype), v, adjoint_b=True)))(*tf.linalg.eigh(x[0]))", "qr": "(lambda q, r: (tf.matmul(q, r), tf.abs(r)))(*tf.linalg.qr(x[0]))"}.get(name, code)
                cases.code(f"tf.linalg.{name}", code_, x, grad=[0] if name in ("svd", "eigh") else [])
        cases.code(f"tf.linalg.{name}", code, array(rng, (2, 3), "float32"))
    rng = cases.rng("tf.linalg.svd")
    for dtype in KINDS:
        for shape in [(3, 2), (2, 3), (2, 4, 2)]:
            cases.code("tf.linalg.svd", "(lambda s, u, v: (s, tf.matmul(u * tf.cast(s[..., None, :], u.dtype), v, adjoint_b=True)))(*tf.linalg.svd(x[0]))", array(rng, shape, dtype), grad=[0])
    solves(cases)
    products(cases)
    operators(cases)


def solves(cases):
    rng = cases.rng("tf.linalg.solve")
    for dtype in KINDS:
        for adjoint in (False, True):
            cases.call("tf.linalg.solve", well(rng, (3, 3), dtype), array(rng, (3, 2), dtype), adjoint=adjoint)
            cases.call("tf.linalg.triangular_solve", well(rng, (2, 3, 3), dtype), array(rng, (2, 3, 2), dtype), lower=bool(adjoint))
            cases.call("tf.linalg.triangular_solve", well(rng, (3, 3), dtype), array(rng, (3, 2), dtype), adjoint=adjoint)
        cases.call("tf.linalg.solve", well(rng, (2, 3, 3), dtype), array(rng, (2, 3, 1), dtype))
        cases.code("tf.linalg.cholesky_solve", "tf.linalg.cholesky_solve(tf.linalg.cholesky(x[0]), x[1])", positive(rng, (3, 3), dtype), array(rng, (3, 2), dtype), grad=[0, 1])
        cases.code("tf.linalg.lu_solve", "tf.linalg.lu_solve(*tf.linalg.lu(x[0]), x[1])", well(rng, (3, 3), dtype), array(rng, (3, 2), dtype))
        cases.code("tf.linalg.lu_matrix_inverse", "tf.linalg.lu_matrix_inverse(*tf.linalg.lu(x[0]))", well(rng, (3, 3), dtype))
        cases.code("tf.linalg.lu_reconstruct", "tf.linalg.lu_reconstruct(*tf.linalg.lu(x[0]))", well(rng, (3, 3), dtype))
        for fast in (True, False):
            cases.call("tf.linalg.lstsq", array(rng, (5, 3), dtype), array(rng, (5, 2), dtype), fast=fast)
            cases.call("tf.linalg.lstsq", array(rng, (5, 3), dtype), array(rng, (5, 2), dtype), l2_regularizer=0.5, fast=fast)
        cases.call("tf.linalg.banded_triangular_solve", array(rng, (2, 4), dtype, 1, 3), array(rng, (4, 2), dtype))
        cases.call("tf.linalg.tridiagonal_solve", np.stack([array(rng, (4,), dtype, 0.1, 1), array(rng, (4,), dtype, 3, 5), array(rng, (4,), dtype, 0.1, 1)]), array(rng, (4, 2), dtype))
        cases.call("tf.linalg.tridiagonal_solve", [array(rng, (3,), dtype, 0.1, 1), array(rng, (4,), dtype, 3, 5), array(rng, (3,), dtype, 0.1, 1)], array(rng, (4,), dtype), diagonals_format="sequence")
        cases.call("tf.linalg.tridiagonal_matmul", array(rng, (3, 4), dtype), array(rng, (4, 2), dtype))
        cases.call("tf.linalg.eigh_tridiagonal", array(rng, (4,), dtype), array(rng, (3,), dtype), grad=[])
    cases.call("tf.linalg.solve", np.zeros((2, 2), np.float32), array(rng, (2, 1), "float32"), grad=[], note="singular")


def products(cases):
    rng = cases.rng("tf.einsum")
    for dtype in TYPES:
        for equation, shapes in {"ij,jk->ik": [(2, 3), (3, 4)], "bij,bjk->bik": [(2, 2, 3), (2, 3, 2)], "ij->ji": [(2, 3)], "ii->i": [(3, 3)], "ij->": [(2, 3)], "...i,i->...": [(2, 4, 3), (3,)],
                                 "i,j->ij": [(2,), (3,)], "abc,cd,def->abef": [(1, 2, 3), (3, 2), (2, 2, 1)], "ij,jk": [(2, 3), (3, 2)], "ii": [(3, 3)]}.items():  # fmt: skip
            cases.call("tf.einsum", equation, *[array(rng, s, dtype) for s in shapes])
        cases.call("tf.tensordot", array(rng, (2, 3, 4), dtype), array(rng, (4, 3, 2), dtype), [[1, 2], [1, 0]])
        cases.call("tf.tensordot", array(rng, (2, 3), dtype), array(rng, (3, 2), dtype), 1)
        cases.call("tf.tensordot", array(rng, (2,), dtype), array(rng, (3,), dtype), 0)
        cases.call("tf.linalg.cross", array(rng, (2, 3), dtype), array(rng, (2, 3), dtype))
    cases.call("tf.einsum", "ij,jk->ik", array(rng, (2, 3)), array(rng, (2, 3)))


def operators(cases):
    rng = cases.rng("tf.linalg.LinearOperator")
    made = {
        "FullMatrix": "tf.linalg.LinearOperatorFullMatrix(x[0])", "Diag": "tf.linalg.LinearOperatorDiag(tf.linalg.diag_part(x[0]))", "LowerTriangular": "tf.linalg.LinearOperatorLowerTriangular(x[0])",
        "ScaledIdentity": "tf.linalg.LinearOperatorScaledIdentity(3, x[0][0, 0])", "Identity": "tf.linalg.LinearOperatorIdentity(3)", "Zeros": "tf.linalg.LinearOperatorZeros(3)",
        "Householder": "tf.linalg.LinearOperatorHouseholder(x[0][0])", "Toeplitz": "tf.linalg.LinearOperatorToeplitz(x[0][:, 0], tf.concat([x[0][:1, 0], x[0][0, 1:]], 0))",
        "Kronecker": "tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorFullMatrix(x[0]), tf.linalg.LinearOperatorIdentity(1)])",
        "BlockDiag": "tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(x[0][:2, :2]), tf.linalg.LinearOperatorFullMatrix(x[0][2:, 2:])])",
        "Composition": "tf.linalg.LinearOperatorComposition([tf.linalg.LinearOperatorFullMatrix(x[0]), tf.linalg.LinearOperatorFullMatrix(x[0])])",
        "Adjoint": "tf.linalg.LinearOperatorAdjoint(tf.linalg.LinearOperatorFullMatrix(x[0]))", "Inversion": "tf.linalg.LinearOperatorInversion(tf.linalg.LinearOperatorFullMatrix(x[0], is_non_singular=True))",
        "LowRankUpdate": "tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorFullMatrix(x[0]), x[0][:, :1])", "Permutation": "tf.linalg.LinearOperatorPermutation([2, 0, 1])",
        "Tridiag": "tf.linalg.LinearOperatorTridiag(x[0], diagonals_format='compact')",
    }  # fmt: skip
    for name, make in made.items():
        function = f"tf.linalg.LinearOperator{name}"
        rng = cases.rng(function)
        x, y = well(rng, (3, 3), "float32"), array(rng, (3, 2), "float32")
        for method in ("to_dense()", "matmul(x[1])", "matmul(x[1], adjoint=True)", "matvec(x[1][:, 0])", "solve(x[1])", "determinant()", "log_abs_determinant()", "trace()", "diag_part()", "shape", "dtype", "inverse().to_dense()", "adjoint().to_dense()", "add_to_tensor(x[0])"):
            cases.code(function, f"{make}.{method}", x, y)
    _ = FLOATS
