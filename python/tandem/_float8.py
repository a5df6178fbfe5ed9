"""Tensors of 8-bit floats: their codes, which only casts read. Rounding is to the nearest, to even codes in the middle."""

import numpy as np

from tandem import _core
from tandem import _dtypes as dtypes
from tandem._convert import Composite, convert
from tandem._dtypes import as_dtype

ops = _core.ops

# Bits of the mantissa, the bias of the exponent, the code of the largest number, that of what is larger, and that of NaN.
_FORMATS = {
    "float8_e4m3fn": (3, 7, 0x7E, 0x7F, 0x7F),
    "float8_e5m2": (2, 15, 0x7B, 0x7C, 0x7E),
}


def _encoded(x, dtype):
    mantissa, bias, largest, beyond, nan = _FORMATS[dtype.name]
    x = ops.cast(x, dtype="float32")
    size = ops.absolute(x)
    bits = ops.bitcast(size, dtype="int32")
    shift = 23 - mantissa
    odd = ops.bitwise_and(ops.right_shift(bits, shift), 1)
    normal = ops.subtract(ops.right_shift(ops.add(ops.add(bits, (1 << (shift - 1)) - 1), odd), shift), (127 - bias) << mantissa)
    # Below the smallest normal number all steps are equal; the one that is rounded up to it has its code.
    small = ops.cast(ops.round(ops.minimum(ops.multiply(size, float(2.0 ** (bias - 1 + mantissa))), 256.0)), dtype="int32")
    code = ops.where(ops.less(size, float(2.0 ** (1 - bias))), small, normal)
    code = ops.where(ops.greater(code, largest), beyond, code)
    code = ops.where(ops.is_nan(x), nan, code)
    sign = ops.where(ops.less(ops.bitcast(x, dtype="int32"), 0), 128, 0)
    return ops.cast(ops.add(code, sign), dtype="uint8")


def _decoded(codes, dtype):
    table = np.arange(256, dtype=np.uint8).view(dtype.as_numpy_dtype).astype(np.float32)
    return ops.take(convert(table), ops.cast(codes, dtype="int32"), axis=0)


class Float8Tensor(Composite):
    """What tf.cast to an 8-bit float gives."""

    __array_priority__ = 100

    def __init__(self, codes, dtype, source=None):
        self.codes, self._dtype, self._source = codes, as_dtype(dtype), source  # what was rounded: its gradient is that of the numbers here

    @classmethod
    def make(cls, x, dtype):
        dtype = as_dtype(dtype)
        if isinstance(x, Float8Tensor):
            return x if x.dtype is dtype else cls(_encoded(x.decoded(), dtype), dtype)
        array = getattr(x, "dtype", None)
        if isinstance(x, np.ndarray) and array == dtype.as_numpy_dtype:
            return cls(convert(np.ascontiguousarray(x).view(np.uint8)), dtype)
        x = convert(x)
        return cls(_encoded(x, dtype), dtype, x if x.dtype.is_floating else None)

    dtype = property(lambda self: self._dtype)
    shape = property(lambda self: self.codes.shape)
    dims = property(lambda self: self.codes.dims)
    ndim = property(lambda self: self.codes.ndim)
    is_traced = property(lambda self: self.codes.is_traced)
    device = "/job:localhost/replica:0/task:0/device:CPU:0"

    def decoded(self):
        """The numbers, in float32."""
        if self._source is None:
            return _decoded(self.codes, self._dtype)

        def forward(_):
            return [_decoded(self.codes, self._dtype)], lambda upstream, numbers=(): [ops.cast(upstream[0], dtype=self._source.dtype)]

        return _core.custom_gradient(forward, [self._source])[0]

    def get_shape(self):
        return self.shape

    def _components(self):
        return [self.codes]

    def _from_components(self, parts):
        return Float8Tensor(parts[0], self._dtype)

    def numpy(self):
        return np.asarray(self.codes.numpy()).view(self._dtype.as_numpy_dtype)[()]

    def __array__(self, dtype=None, copy=None):
        array = np.asarray(self.numpy())
        return array if dtype is None else array.astype(dtype)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, key):
        return Float8Tensor(self.codes[key], self._dtype)

    def __repr__(self):
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={np.asarray(self.numpy())!r}>"

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __dispatch__(self, function, args, kwargs):
        """Functions that move elements move the codes; all others want a cast."""
        if function.__name__ == "cast":
            return cast(*args, **kwargs)
        if function.__name__ not in _MOVES:
            return NotImplemented
        codes = lambda x: x.codes if isinstance(x, Float8Tensor) else [codes(i) for i in x] if isinstance(x, (list, tuple)) else x  # noqa: E731
        made = function(*[codes(a) for a in args], **{k: codes(v) for k, v in kwargs.items()})
        back = lambda x: [back(i) for i in x] if isinstance(x, (list, tuple)) else Float8Tensor(x, self._dtype)  # noqa: E731
        return back(made)


_MOVES = {
    "reshape", "transpose", "concat", "stack", "unstack", "split", "tile", "gather", "gather_nd", "expand_dims", "squeeze", "slice", "strided_slice", "reverse",
    "broadcast_to", "identity", "stop_gradient",
}  # fmt: skip


def cast(x, dtype, name=None):
    dtype = as_dtype(dtype)
    if dtype.name in _FORMATS:
        return Float8Tensor.make(x, dtype)
    return ops.cast(x.decoded(), dtype=dtype) if dtype is not dtypes.float32 else x.decoded()


def is_float8(dtype):
    return getattr(dtype, "name", dtype) in _FORMATS
