"""Complex tensors: a pair of tensors, the real and the imaginary part."""
import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem._convert import Composite, NotOneTensor, convert
from tandem._dtypes import as_dtype

ops = _core.ops
complex64, complex128 = as_dtype("complex64"), as_dtype("complex128")


def _dtype_for(real):
    return complex128 if real is dtypes.float64 else complex64


class ComplexTensor(Composite):
    """re + i im."""

    __array_priority__ = 100

    def __init__(self, re, im):
        self.re, self.im = re, im

    @classmethod
    def make(cls, x, dtype=None):
        """Of an object; of real numbers too, when a type is given."""
        part = None if dtype is None else as_dtype(dtype).real_dtype
        if isinstance(x, ComplexTensor):
            return x if part is None or part is x.re.dtype else cls(ops.cast(x.re, dtype=part), ops.cast(x.im, dtype=part))
        if isinstance(x, _core.Variable):
            x = x.read()
        if isinstance(x, _core.Tensor):
            re = ops.cast(x, dtype=part or x.dtype)
            return cls(re, _zeros(re))
        if isinstance(x, (list, tuple)) and any(isinstance(i, Composite) for i in x):
            parts = [cls.make(i, dtype) for i in x]
            return cls(ops.stack([p.re for p in parts]), ops.stack([p.im for p in parts]))
        array = np.asarray(x)
        if array.dtype.kind not in "biufc":
            raise NotOneTensor(x) if isinstance(x, Composite) else TypeError(f"no complex tensor can be made of {x!r}")
        if part is None:
            part = dtypes.float32 if array.dtype == np.complex64 else dtypes.float64
        array = array.astype(np.complex64 if part is dtypes.float32 else np.complex128)
        return cls(convert(np.array(array.real), part), convert(np.array(array.imag), part))

    dtype = property(lambda self: _dtype_for(self.re.dtype))
    shape = property(lambda self: self.re.shape)
    dims = property(lambda self: self.re.dims)
    ndim = property(lambda self: self.re.ndim)
    rank = ndim
    is_traced = property(lambda self: self.re.is_traced or self.im.is_traced)
    device = "/job:localhost/replica:0/task:0/device:CPU:0"

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        self.re.set_shape(shape)

    def _components(self):
        return [self.re, self.im]

    def _from_components(self, parts):
        return ComplexTensor(*parts)

    def numpy(self):
        array = np.asarray(self.re.numpy()) + 1j * np.asarray(self.im.numpy())
        array = array.astype(self.dtype.as_numpy_dtype)
        return array if array.ndim else array[()]

    def __array__(self, dtype=None, copy=None):
        array = np.asarray(self.numpy())
        return array if dtype is None else array.astype(dtype)

    def ref(self):
        from tandem._tensor import Reference

        return Reference(self)

    def __repr__(self):
        array = self.numpy()
        text = repr(array) if self.ndim else str(array)
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={chr(10) if chr(10) in text else ''}{text}>"

    def __str__(self):
        text = str(self.numpy())
        return f"tf.Tensor({chr(10) if chr(10) in text else ''}{text}, shape={self.shape}, dtype={self.dtype.name})"

    def __complex__(self):
        return complex(self.numpy())

    def __bool__(self):
        return bool(self.numpy())

    def __len__(self):
        return len(self.re)

    def __iter__(self):
        return iter([self[i] for i in range(len(self.re))])

    def __getitem__(self, key):
        return ComplexTensor(self.re[key], self.im[key])

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    # --- arithmetic

    def _other(self, other):
        if isinstance(other, ComplexTensor):
            return other
        if isinstance(other, (_core.Tensor, _core.Variable)):
            raise TypeError(f"{self.dtype.name} and {other.dtype.name} do not go together\n  hint: tf.cast")
        return ComplexTensor.make(other, self.dtype)

    def __add__(self, other):
        o = self._other(other)
        return ComplexTensor(self.re + o.re, self.im + o.im)

    def __sub__(self, other):
        o = self._other(other)
        return ComplexTensor(self.re - o.re, self.im - o.im)

    def __rsub__(self, other):
        return self._other(other) - self

    def __mul__(self, other):
        o = self._other(other)
        return ComplexTensor(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)

    def __truediv__(self, other):
        o = self._other(other)
        total = o.re * o.re + o.im * o.im
        return ComplexTensor((self.re * o.re + self.im * o.im) / total, (self.im * o.re - self.re * o.im) / total)

    def __rtruediv__(self, other):
        return self._other(other) / self

    def __matmul__(self, other):
        o = self._other(other)
        return ComplexTensor(self.re @ o.re - self.im @ o.im, self.re @ o.im + self.im @ o.re)

    def __rmatmul__(self, other):
        return self._other(other) @ self

    def __pow__(self, other):
        if isinstance(other, int) and other == 2:
            return self * self
        return exp(log(self) * self._other(other))

    def __rpow__(self, other):
        return self._other(other) ** self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return ComplexTensor(-self.re, -self.im)

    def __pos__(self):
        return self

    def __abs__(self):
        return ops.hypot(self.re, self.im)

    def __eq__(self, other):
        if other is None:
            return False
        o = self._other(other)
        return ops.logical_and(ops.equal(self.re, o.re), ops.equal(self.im, o.im))

    def __ne__(self, other):
        return True if other is None else ops.logical_not(self == other)

    def __dispatch__(self, function, args, kwargs):
        name = function.__name__
        args, kwargs = [_as_complex(a) for a in args], {k: _as_complex(v) for k, v in kwargs.items()}
        if name in _special:
            return _special[name](*args, **kwargs)
        if function.python_function.__module__ == "tandem.linalg":
            from tandem import _complex_linalg

            if name in _complex_linalg.NAMES:
                return getattr(_complex_linalg, name)(*args, **kwargs)
        if name in _by_parts:
            return _each_part(function, args, kwargs)
        return NotImplemented


def _as_complex(x):
    """Lists and arrays of complex numbers as tensors; anything else as it is."""
    if isinstance(x, (list, tuple, np.ndarray, complex)) and not _has_complex(x):
        try:
            return ComplexTensor.make(x) if np.iscomplexobj(x) else x
        except ValueError:
            return x
    return x


def _zeros(x):
    return ops.full(ops.cast(0, dtype=x.dtype), shape=x.dims)


def _has_complex(x):
    return isinstance(x, ComplexTensor) or isinstance(x, (list, tuple)) and any(_has_complex(i) for i in x)


def _each_part(function, args, kwargs):
    """Functions that move numbers or add them do the same to both parts."""

    def part(x, imaginary):
        if isinstance(x, ComplexTensor):
            return x.im if imaginary else x.re
        if isinstance(x, (list, tuple)) and _has_complex(x):
            return type(x)(part(ComplexTensor.make(i), imaginary) for i in x)
        if isinstance(x, (complex, np.complexfloating)):
            return x.imag if imaginary else x.real
        return x

    re, im = ([function(*[part(a, i) for a in args], **{k: part(v, i) for k, v in kwargs.items()})] for i in (False, True))
    return _joined(re[0], im[0])


def _joined(re, im):
    if isinstance(re, (list, tuple)):
        return type(re)(_joined(a, b) for a, b in zip(re, im))
    return ComplexTensor(re, im)


_by_parts = {
    "reshape", "transpose", "concat", "stack", "unstack", "split", "tile", "repeat", "gather", "gather_nd", "expand_dims", "squeeze", "slice", "strided_slice",
    "reverse", "roll", "boolean_mask", "broadcast_to", "identity", "pad", "reduce_sum", "reduce_mean", "cumsum", "stop_gradient", "add_n", "negative",
    "diag", "diag_part", "trace", "matrix_transpose", "zeros_like", "band_part", "frame", "fftshift", "ifftshift", "ensure_shape", "scatter_nd",
    "meshgrid", "segment_sum", "unsorted_segment_sum", "segment_mean", "unsorted_segment_mean", "set_diag", "tensor_diag", "tensor_diag_part", "space_to_depth", "depth_to_space",
    "space_to_batch", "batch_to_space", "reverse_sequence", "dynamic_partition", "dynamic_stitch", "fill", "overlap_and_add", "embedding_lookup",
    "tensor_scatter_nd_add", "tensor_scatter_nd_sub", "tensor_scatter_nd_update",
}  # fmt: skip


def _pair(x, y):
    """Two operands, one of them complex at least."""
    if not isinstance(x, ComplexTensor) and not isinstance(y, ComplexTensor):
        x = ComplexTensor.make(x)
    if isinstance(x, ComplexTensor):
        return x, x._other(y)
    return y._other(x), y


def exp(x, name=None):
    size = ops.exp(x.re)
    return ComplexTensor(size * ops.cos(x.im), size * ops.sin(x.im))


def log(x, name=None):
    return ComplexTensor(ops.log(abs(x)), angle(x))


def angle(x, name=None):
    return ops.arctan2(x.im, x.re)


def sqrt(x, name=None):
    """Half of the angle. The part that would be the difference of near numbers is found by dividing."""
    large = ops.sqrt((abs(x) + ops.absolute(x.re)) * 0.5)
    none = ops.equal(large, 0)
    small = ops.where(none, _zeros(large), ops.absolute(x.im) / (2.0 * ops.where(none, ops.add(_zeros(large), 1.0), large)))
    right = ops.greater_equal(x.re, 0)
    return ComplexTensor(ops.where(right, large, small), ops.copysign(ops.where(right, small, large), x.im))


def conj(x, name=None):
    return ComplexTensor(x.re, -x.im)


def _where(condition, x=None, y=None, name=None):
    if x is None and y is None:
        return convert(np.argwhere(np.asarray(condition)).astype(np.int64))
    x, y = _pair(x, y)
    return ComplexTensor(ops.where(condition, x.re, y.re), ops.where(condition, x.im, y.im))


def _matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, **options):
    a, b = _pair(a, b)

    def turned(x, transposed, adjoint):
        if not transposed and not adjoint:
            return x
        x = conj(x) if adjoint else x
        return ComplexTensor(ops.swapaxes(x.re, axis1=-1, axis2=-2), ops.swapaxes(x.im, axis1=-1, axis2=-2))

    return turned(a, transpose_a, adjoint_a) @ turned(b, transpose_b, adjoint_b)


def _product_along(x, axis):
    """The halves multiplied with each other until one element is left."""
    count = x.shape[axis]
    cut = lambda begin, end: x[(slice(None),) * axis + (slice(begin, end),)]  # noqa: E731
    if not count:
        dims = [1 if i == axis else d for i, d in enumerate(x.dims)]
        return ComplexTensor.make(ops.full(ops.cast(1, dtype=x.re.dtype), shape=dims), x.dtype)
    while count > 1:
        half = count // 2
        both = cut(0, half) * cut(half, 2 * half)
        x = _function("concat")([both, cut(2 * half, count)], axis) if count % 2 else both
        count = half + count % 2
    return x


def _reduce_prod(input_tensor, axis=None, keepdims=False, name=None):
    from tandem._face import ints

    x = input_tensor
    axes = list(range(x.ndim)) if axis is None else [a % x.ndim for a in ints(axis)]
    for a in axes:
        x = _product_along(x, a)
    return x if keepdims or not axes else ComplexTensor(ops.squeeze(x.re, axis=axes), ops.squeeze(x.im, axis=axes))


def _cumprod(x, axis, exclusive, reverse):
    from tandem._face import axis_in

    axis = axis_in(axis, x.ndim)
    order = range(x.shape[axis])[:: -1 if reverse else 1]
    total, made = None, []
    for i in order:
        row = x[(slice(None),) * axis + (slice(i, i + 1),)]
        before = _one_like(row) if total is None else total
        total = row if total is None else total * row
        made.append(before if exclusive else total)
    return _function("concat")(made[:: -1 if reverse else 1], axis) if made else x


def _l2_normalize(x, axis, epsilon):
    from tandem._face import axes

    size = ops.sum(ops.square(x.re) + ops.square(x.im), axis=axes(axis), keepdims=True)
    scale = ops.rsqrt(ops.maximum(size, ops.cast(epsilon, dtype=x.re.dtype)))
    return ComplexTensor(x.re * scale, x.im * scale)


def _segment_prod(data, segment_ids, count):
    from tandem._face import number, tensor

    ids = tensor(segment_ids)
    if data.is_traced or ids.is_traced:
        from tandem._trace import NeedsData

        raise NeedsData("products of groups of complex numbers")
    rows, array = ids.numpy().reshape(-1), data.numpy()
    count = int(number(count)) if count is not None else int(rows.max(initial=-1)) + 1
    made = np.ones([count, *array.shape[ids.ndim :]], array.dtype)
    kept = rows >= 0
    np.multiply.at(made, rows[kept], array.reshape(len(rows), *array.shape[ids.ndim :])[kept])
    return ComplexTensor.make(made, data.dtype)


def _saturate_cast(x, dtype):
    saturate = _function("saturate_cast")
    if dtype.is_complex:
        return ComplexTensor(saturate(x.re, dtype.real_dtype), saturate(x.im, dtype.real_dtype))
    return saturate(x.re, dtype)


def _cast(x, dtype, name=None):
    dtype = as_dtype(dtype)
    return ComplexTensor.make(x, dtype) if dtype.is_complex else ops.cast(x.re, dtype=dtype)


def _unary(f):
    return lambda x, name=None: f(x)


def _sin(x):
    return ComplexTensor(ops.sin(x.re) * ops.cosh(x.im), ops.cos(x.re) * ops.sinh(x.im))


def _cos(x):
    return ComplexTensor(ops.cos(x.re) * ops.cosh(x.im), -(ops.sin(x.re) * ops.sinh(x.im)))


def _sign(x):
    size = abs(x)
    safe = ops.where(ops.equal(size, 0), ops.add(_zeros(size), 1.0), size)
    return ComplexTensor(x.re / safe, x.im / safe)


def _times_i(x):
    return ComplexTensor(-x.im, x.re)


def _sinh(x):
    return ComplexTensor(ops.sinh(x.re) * ops.cos(x.im), ops.cosh(x.re) * ops.sin(x.im))


def _cosh(x):
    return ComplexTensor(ops.cosh(x.re) * ops.cos(x.im), ops.sinh(x.re) * ops.sin(x.im))


def _tanh(x):
    """By the hyperbolic tangent of the real part, which does not grow: sinh / cosh would be infinity by infinity."""
    t, c, s = ops.tanh(x.re), ops.cos(x.im), ops.sin(x.im)
    sech2 = 1.0 / ops.square(ops.cosh(x.re))
    total = ops.square(c) + ops.square(t * s)
    return ComplexTensor(t / total, c * s * sech2 / total)


def _expm1(x):
    half = ops.sin(x.im * 0.5)
    return ComplexTensor(ops.expm1(x.re) * ops.cos(x.im) - 2.0 * half * half, ops.exp(x.re) * ops.sin(x.im))


def _log1p(x):
    return ComplexTensor(0.5 * ops.log1p(x.re * (2.0 + x.re) + ops.square(x.im)), ops.arctan2(x.im, 1.0 + x.re))


def _asinh(x):
    return log(x + sqrt(x * x + 1.0))


def _acosh(x):
    return log(x + sqrt(x + 1.0) * sqrt(x - 1.0))


def _atanh(x):
    return (_log1p(x) - _log1p(-x)) * 0.5


def _asin(x):
    return -_times_i(_asinh(_times_i(x)))


def _acos(x):
    return -_asin(x) + float(np.pi / 2)


def _atan(x):
    return -_times_i(_atanh(_times_i(x)))


def _no_nan(condition, value):
    """0 where the condition holds, and no NaN comes out of the other branch."""
    return ComplexTensor(ops.where(condition, _zeros(value.re), value.re), ops.where(condition, _zeros(value.im), value.im))


def _quotient_no_nan(x, y):
    none = y == 0
    return _no_nan(none, x / _where(none, _one_like(y), y))


def _einsum(equation, *inputs, **options):
    """A sum of products is linear in each operand: the terms of all choices of parts."""
    from tandem import linalg

    inputs = [ComplexTensor.make(x) for x in inputs]
    parts = [_zeros_of_type(inputs[0])] * 2
    for choice in range(2 ** len(inputs)):
        imaginary = [bool(choice >> i & 1) for i in range(len(inputs))]
        term = linalg.einsum(equation, *[x.im if im else x.re for x, im in zip(inputs, imaginary)], **options)
        power = sum(imaginary)
        parts[power % 2] = parts[power % 2] + (term if power % 4 < 2 else -term)
    return ComplexTensor(*parts)


def _zeros_of_type(x):
    return ops.cast(0, dtype=x.re.dtype)


def _tensordot(a, b, axes, name=None):
    from tandem import linalg

    a, b = _pair(a, b)
    product = lambda x, y: linalg.tensordot(x, y, axes)  # noqa: E731
    return ComplexTensor(product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re))


def _as_real(x):
    """[[re, -im], [im, re]]: real matrices that multiply as the complex ones do."""
    concat = _function("concat")
    return concat([concat([x.re, -x.im], -1), concat([x.im, x.re], -1)], -2)


def _of_real(x):
    rows, columns = x.shape[-2] // 2, x.shape[-1] // 2
    return ComplexTensor(x[..., :rows, :columns], x[..., rows:, :columns])


def _of_matrices(name):
    """Functions that are the same for the real matrices of twice the size."""

    def call(*args, **options):
        args = [_as_real(ComplexTensor.make(a)) if isinstance(a, (ComplexTensor, _core.Tensor)) else a for a in args]
        return _of_real(_function_of("linalg", name)(*args, **options))

    return call


def _one_like(x):
    return ComplexTensor(ops.add(_zeros(x.re), 1.0), _zeros(x.re))


_special = {
    "real": lambda input, name=None: input.re, "imag": lambda input, name=None: input.im, "conj": conj, "angle": lambda input, name=None: angle(input),
    "abs": _unary(abs), "exp": exp, "log": log, "sqrt": sqrt, "square": _unary(lambda x: x * x), "where": _where, "matmul": _matmul, "cast": _cast,
    "sin": _unary(_sin), "cos": _unary(_cos), "tan": _unary(
        lambda x: _sin(x) / _cos(x)
    ), "sinh": _unary(_sinh), "cosh": _unary(_cosh),
    "tanh": _unary(_tanh), "asin": _unary(_asin), "acos": _unary(_acos), "atan": _unary(_atan), "asinh": _unary(_asinh), "acosh": _unary(_acosh), "atanh": _unary(_atanh),
    "realdiv": lambda x, y, name=None: _pair(x, y)[0] / _pair(x, y)[1], "silu": lambda features, beta=1.0: features / (exp(-features * beta) + 1.0),
    "count_nonzero": lambda input, axis=None, keepdims=None, dtype="int64", name=None: _function_of("math", "count_nonzero")(input != 0, axis, keepdims, dtype),
    "zero_fraction": lambda value, name=None: ops.mean(ops.cast(value == 0, dtype="float32")),
    "reciprocal_no_nan": lambda x, name=None: _quotient_no_nan(_one_like(x), x), "multiply_no_nan": lambda x, y, name=None: _no_nan(_pair(x, y)[1] == 0, _pair(x, y)[0] * _pair(x, y)[1]),
    "xdivy": lambda x, y, name=None: _no_nan(_pair(x, y)[0] == 0, _pair(x, y)[0] / _pair(x, y)[1]), "xlogy": lambda x, y, name=None: _no_nan(_pair(x, y)[0] == 0, _pair(x, y)[0] * log(_pair(x, y)[1])),
    "xlog1py": lambda x, y, name=None: _no_nan(_pair(x, y)[0] == 0, _pair(x, y)[0] * _log1p(_pair(x, y)[1])), "einsum": _einsum, "tensordot": _tensordot,
    "inv": _of_matrices("inv"), "expm": _of_matrices("expm"), "sign": _unary(_sign), "reciprocal": _unary(lambda x: _one_like(x) / x),
    "rsqrt": _unary(
        lambda x: _one_like(x) / sqrt(x)
    ), "log1p": _unary(_log1p), "expm1": _unary(_expm1),
    "sigmoid": _unary(lambda x: _one_like(x) / (exp(-x) + 1.0)),
    "add": lambda x, y, name=None: _pair(x, y)[0] + _pair(x, y)[1], "subtract": lambda x, y, name=None: _pair(x, y)[0] - _pair(x, y)[1],
    "multiply": lambda x, y, name=None: _pair(x, y)[0] * _pair(x, y)[1], "divide": lambda x, y, name=None: _pair(x, y)[0] / _pair(x, y)[1],
    "truediv": lambda x, y, name=None: _pair(x, y)[0] / _pair(x, y)[1], "pow": lambda x, y, name=None: _pair(x, y)[0] ** _pair(x, y)[1],
    "divide_no_nan": lambda x, y, name=None: _quotient_no_nan(*_pair(x, y)),
    "equal": lambda x, y, name=None: _pair(x, y)[0] == _pair(x, y)[1], "not_equal": lambda x, y, name=None: _pair(x, y)[0] != _pair(x, y)[1],
    "reduce_prod": _reduce_prod, "ones_like": lambda input, dtype=None, name=None: _one_like(input),
    "shape": lambda input, out_type=None, name=None: _function("shape")(input.re, out_type),
    "size": lambda input, out_type=None, name=None: _function("size")(input.re, out_type), "rank": lambda input, name=None: _function("rank")(input.re),
    "squared_difference": lambda x, y, name=None: (lambda d: d * conj(d))(_pair(x, y)[0] - _pair(x, y)[1]),
    "adjoint": lambda matrix, name=None: conj(
        ComplexTensor(ops.swapaxes(matrix.re, axis1=-1, axis2=-2), ops.swapaxes(matrix.im, axis1=-1, axis2=-2))
    ),
    "reduce_variance": lambda input_tensor, axis=None, keepdims=False, name=None: _variance(input_tensor, axis, keepdims),
    "reduce_std": lambda input_tensor, axis=None, keepdims=False, name=None: ops.sqrt(_variance(input_tensor, axis, keepdims)),
    "reduce_euclidean_norm": lambda input_tensor, axis=None, keepdims=False, name=None: ComplexTensor.make(
        _function_of("math", "reduce_euclidean_norm")(abs(input_tensor), axis, keepdims), input_tensor.dtype
    ),
    "l2_normalize": lambda x, axis=None, epsilon=1e-12, name=None, dim=None: _l2_normalize(x, dim if axis is None else axis, epsilon),
    "cumprod": lambda x, axis=0, exclusive=False, reverse=False, name=None: _cumprod(x, axis, exclusive, reverse),
    "segment_prod": lambda data, segment_ids, name=None: _segment_prod(data, segment_ids, None),
    "unsorted_segment_prod": lambda data, segment_ids, num_segments, name=None: _segment_prod(data, segment_ids, num_segments),
    "saturate_cast": lambda value, dtype, name=None: _saturate_cast(value, as_dtype(dtype)),
}  # fmt: skip


def _variance(x, axis, keepdims):
    from tandem import math

    mean = math.reduce_mean(x, axis, True)
    return math.reduce_mean(ops.square(abs(x - mean)), axis, keepdims)


def _function(name):
    from tandem import _arrays

    return getattr(_arrays, name)


def _function_of(module, name):
    import importlib

    return getattr(importlib.import_module(f"tandem.{module}"), name)


def complex_(real, imag, name=None):
    """tf.complex."""
    from tandem._face import pair, tensor

    real, imag = pair(real, imag)
    real, imag = tensor(real), tensor(imag)
    if real.dtype is not imag.dtype or real.dtype.name not in ("float32", "float64"):
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {real.dtype} {imag.dtype}. They must be consistent, and "
            "one of [tf.float32, tf.float64]"
        )
    if real.shape != imag.shape:
        total = ops.add(real, imag)
        real, imag = ops.broadcast_to(real, shape=total.dims), ops.broadcast_to(imag, shape=total.dims)
    return ComplexTensor(real, imag)
