"""tf.test: unittest with comparisons of arrays."""
import contextlib
import shutil
import tempfile
import unittest

import numpy as np

from tandem import nest
from tandem._face import Composite, CoreVariable, Tensor, any_tensor, convert


def _array(x):
    if isinstance(x, (Tensor, CoreVariable, Composite)):
        return x.numpy()
    return np.asarray(x) if not isinstance(x, (dict,)) else x


class TestCase(unittest.TestCase):
    """unittest.TestCase, and tensors are compared as arrays."""

    def get_temp_dir(self):
        if not getattr(self, "_folder", None):
            self._folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self._folder, True)
        return self._folder

    def evaluate(self, tensors):
        return nest.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, tensors)

    @contextlib.contextmanager
    def session(self, *args, **kwargs):
        yield None

    cached_session = test_session = session

    def _each(self, a, b, check):
        if isinstance(a, dict):
            self.assertEqual(sorted(a), sorted(b))
            for k in a:
                self._each(a[k], b[k], check)
        elif isinstance(a, (list, tuple)) and any(
            isinstance(i, (Tensor, np.ndarray, list, tuple, dict)) for i in a
        ) and len(a) == len(b):
            for x, y in zip(a, b):
                self._each(x, y, check)
        else:
            check(_array(a), _array(b))

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        self._each(a, b, lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=msg or ""))

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        raise AssertionError(msg or "The two values are close at all elements")

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, float_rtol=1e-6, float_atol=1e-6, half_rtol=1e-3, half_atol=1e-3, bfloat16_rtol=1e-2,
                                      bfloat16_atol=1e-2, msg=None):  # fmt: skip
        kind = str(np.asarray(_array(a)).dtype)
        rtol, atol = {
            "float16": (half_rtol, half_atol), "bfloat16": (bfloat16_rtol, bfloat16_atol), "float32": (float_rtol, float_atol)
        }.get(kind, (rtol, atol))
        self.assertAllClose(np.asarray(_array(a), np.float64), np.asarray(_array(b), np.float64), rtol, atol, msg)

    def assertAllEqual(self, a, b, msg=None):
        self._each(a, b, lambda x, y: np.testing.assert_array_equal(_decoded(x), _decoded(y), err_msg=msg or ""))

    def assertNotAllEqual(self, a, b, msg=None):
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(msg or "The two values are equal at all elements.")

    def assertAllGreater(self, a, comparison_target):
        self.assertTrue(np.all(_array(a) > comparison_target))

    def assertAllGreaterEqual(self, a, comparison_target):
        self.assertTrue(np.all(_array(a) >= comparison_target))

    def assertAllLess(self, a, comparison_target):
        self.assertTrue(np.all(_array(a) < comparison_target))

    def assertAllLessEqual(self, a, comparison_target):
        self.assertTrue(np.all(_array(a) <= comparison_target))

    def assertAllInRange(self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False):
        x = _array(target)
        self.assertTrue(
            np.all(
                x > lower_bound if open_lower_bound else x >= lower_bound
            ) and np.all(x < upper_bound if open_upper_bound else x <= upper_bound)
        )

    def assertAllInSet(self, target, expected_set):
        self.assertTrue(set(np.asarray(_array(target)).reshape(-1).tolist()) <= set(expected_set))

    def assertArrayNear(self, farray1, farray2, err, msg=None):
        for a, b in zip(farray1, farray2):
            self.assertNear(a, b, err, msg)

    def assertNear(self, f1, f2, err, msg=None):
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, msg or f"{f1} and {f2} differ by more than {err}")

    def assertNDArrayNear(self, ndarray1, ndarray2, err, msg=None):
        self.assertTrue(np.max(np.abs(np.asarray(ndarray1) - np.asarray(ndarray2))) <= err, msg)

    def assertShapeEqual(self, input_a, input_b, msg=None):
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target, expected_dtype):
        from tandem._dtypes import as_dtype

        self.assertIs(any_tensor(target).dtype, as_dtype(expected_dtype))

    def assertStartsWith(self, actual, expected_start, msg=None):
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    def assertEmpty(self, container, msg=None):
        self.assertEqual(len(container), 0, msg)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type, expected_err_re_or_predicate):
        with self.assertRaises(exception_type) as found:
            yield
        if isinstance(expected_err_re_or_predicate, str):
            self.assertRegex(str(found.exception), expected_err_re_or_predicate)
        elif expected_err_re_or_predicate is not None:
            self.assertTrue(expected_err_re_or_predicate(found.exception))

    def assertRaisesOpError(self, expected_err_re_or_predicate):
        from tandem import errors

        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)


def _decoded(x):
    x = np.asarray(x)
    return np.vectorize(
        lambda v: v.decode() if isinstance(v, bytes) else v, otypes=[object]
    )(x) if x.dtype.kind in "OS" and x.size else x


class Benchmark:
    """A base for benchmarks; runs nothing by itself."""


def main(argv=None):
    unittest.main(argv=argv) if argv else unittest.main()


def is_built_with_cuda():
    return False


def is_built_with_rocm():
    return False


def is_built_with_gpu_support():
    return False


def is_built_with_xla():
    return True


def is_cpu_target_available(target):
    return target in ("x86_64", "x86")


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    return False


def gpu_device_name():
    return ""


def benchmark_config():
    raise NotImplementedError("tf.test.benchmark_config")


def create_local_cluster(*args, **kwargs):
    raise NotImplementedError("tf.test.create_local_cluster")


def disable_with_predicate(pred, skip_message):
    def decorate(f):
        return unittest.skipIf(pred(), skip_message)(f)

    return decorate


def with_eager_op_as_function(cls=None, only_as_function=False):
    return cls if cls is not None else lambda c: c


def compute_gradient(f, x, delta=None):
    """(by the tape, by finite differences): Jacobians of f by each of x."""
    from tandem._gradient import GradientTape

    x = [any_tensor(v) for v in x]
    delta = 1.0 / 1024 if delta is None else delta
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(*x)
    size = y.shape.num_elements()
    ours, theirs = [], []
    for i, v in enumerate(x):
        count = v.shape.num_elements()
        j = tape.jacobian(y, v)
        ours.append(np.zeros((size, count), y.dtype.as_numpy_dtype) if j is None else j.numpy().reshape(size, count))
        base, columns = v.numpy(), []
        for k in range(count):
            sides = []
            for sign in (1, -1):
                moved = np.array(base, copy=True).reshape(-1)
                moved[k] += sign * delta
                args = list(x)
                args[i] = convert(moved.reshape(np.shape(base)))
                sides.append(np.asarray(f(*args).numpy()).reshape(-1))
            columns.append((sides[0] - sides[1]) / (2 * delta))
        theirs.append(np.stack(columns, axis=1))
    return tuple(ours), tuple(theirs)


class experimental:
    @staticmethod
    def sync_devices():
        """Everything that was asked for is computed when it is read."""
