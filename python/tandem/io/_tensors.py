"""Tensors as bytes: raw, CSV, and TensorFlow's TensorProto message."""

import csv

import numpy as np

from tandem import _core, _dtypes
from tandem import errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._strings import as_strings, one


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    x, dtype = as_strings(input_bytes), as_dtype(out_type)
    kind = np.dtype(dtype.as_numpy_dtype)
    parts = _core.strings_to_list(x)
    if fixed_length is not None:
        parts = [p[:fixed_length].ljust(fixed_length, b"\0") for p in parts]
    sizes = {len(p) for p in parts}
    if len(sizes) > 1:
        raise errors.InvalidArgumentError(
            None, None, f"DecodeRaw requires input strings to all be the same size, but they have {sorted(sizes)} bytes"
        )
    size = sizes.pop() if sizes else 0
    if size % kind.itemsize:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Input to DecodeRaw has length {size} that is not a multiple of {kind.itemsize}, the size of {dtype.name}",
        )
    array = np.frombuffer(b"".join(parts), kind if little_endian else kind.newbyteorder(">")).reshape(
        *x.shape, size // kind.itemsize
    )
    from tandem._face import any_tensor

    return any_tensor(array.astype(kind))


def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, na_value="", select_cols=None, name=None):
    x = as_strings(records)
    defaults = [convert(d) if not isinstance(d, _core.Tensor) else d for d in record_defaults]
    lines = [s.decode("utf-8", "surrogateescape") for s in _core.strings_to_list(x)]
    quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    rows = [next(csv.reader([line], delimiter=field_delim, quoting=quoting), []) for line in lines]
    wanted = list(range(len(defaults))) if select_cols is None else list(select_cols)
    columns = []
    for number, row in enumerate(rows):
        if select_cols is None and len(row) != len(defaults):
            raise errors.InvalidArgumentError(None, None, f"Expect {len(defaults)} fields but have {len(row)} in record {number}")
    for column, default in zip(wanted, defaults):
        columns.append(_column([row[column] for row in rows], column, default, na_value, x.shape))
    return columns


def _column(fields, column, default, na_value, shape):
    has_default = default.shape.num_elements() > 0
    values = []
    for number, field in enumerate(fields):
        if field in ("", na_value):
            if not has_default:
                raise errors.InvalidArgumentError(None, None, f"Field {column} is required but missing in record {number}!")
            values.append(default.numpy().reshape(-1)[0] if default.ndim else default.numpy())
        else:
            values.append(field)
    if default.dtype is _dtypes.string:
        return _core.strings_from(
            [v.encode("utf-8", "surrogateescape") if isinstance(v, str) else v for v in values], tuple(shape)
        )
    parse = float if default.dtype.is_floating else int
    try:
        numbers = [parse(v) for v in values]
    except ValueError:
        bad = next(i for i, v in enumerate(values) if not _is_number(v, parse))
        raise errors.InvalidArgumentError(
            None, None, f"Field {column} in record {bad} is not a valid {default.dtype.name}: {values[bad]}"
        ) from None
    return convert(np.array(numbers, default.dtype.as_numpy_dtype).reshape(tuple(shape)))


def _is_number(v, parse):
    try:
        parse(v)
        return True
    except ValueError:
        return False


# --- TensorProto: fields of protobuf's wire format ------------------------------------------------------------------------------


def _varint(n):
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _block(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _read_varint(raw, at):
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise errors.InvalidArgumentError(None, None, "Could not parse `serialized` as TensorProto: it ends early")
        byte = raw[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(raw):
    at = 0
    while at < len(raw):
        key, at = _read_varint(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(raw, at)
        else:
            size, at = _read_varint(raw, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), at)
            if size < 0 or at + size > len(raw):
                raise errors.InvalidArgumentError(None, None, "Could not parse `serialized` as TensorProto")
            value, at = raw[at : at + size], at + size
        yield key >> 3, kind, value


def serialize_tensor(tensor, name=None):
    from tandem._face import any_tensor

    t = any_tensor(tensor)
    shape = b"".join(_block(2, _varint(1 << 3) + _varint(d)) for d in t.shape)
    head = _varint(1 << 3) + _varint(t.dtype.as_datatype_enum) + _block(2, shape)
    if t.dtype is _dtypes.string:
        return convert(head + b"".join(_block(8, s) for s in _core.strings_to_list(t)))
    return convert(head + _block(4, np.ascontiguousarray(t.numpy()).tobytes()))


_LISTS = {5: "<f4", 6: "<f8", 7: "int", 10: "int", 11: "int", 13: "int", 16: "int", 17: "int"}


def _numbers(kind, wire, value):
    """The values of one field of a list, packed or alone."""
    if kind != "int":
        return list(np.frombuffer(value, kind))
    if wire == 0:
        return [value]
    numbers, at = [], 0
    while at < len(value):
        n, at = _read_varint(value, at)
        numbers.append(n)
    return numbers


def parse_tensor(serialized, out_type, name=None):
    from tandem._face import any_tensor

    wanted, shape, content, words, numbers, found = as_dtype(out_type), [], None, [], [], None
    for number, wire, value in _fields(one(serialized)):
        if number == 1:
            found = as_dtype(int(value))
        elif number == 2:
            shape = [next((_signed(v) for n, _, v in _fields(d) if n == 1), 0) for n, _, d in _fields(value) if n == 2]
        elif number == 4:
            content = value
        elif number == 8:
            words.append(value)
        elif number in _LISTS:
            numbers += _numbers(_LISTS[number], wire, value)
    if found is not wanted:
        raise errors.InvalidArgumentError(
            None, None, f"Type mismatch between parsed tensor ({found.name if found else 'none'}) and dtype ({wanted.name})"
        )
    if wanted is _dtypes.string:
        return _core.strings_from(words, shape)
    kind = np.dtype(wanted.as_numpy_dtype)
    count = int(np.prod(shape, dtype=int))
    if content is not None:
        if len(content) != count * kind.itemsize:
            raise errors.InvalidArgumentError(
                None, None, f"parse_tensor: {len(content)} bytes for {count} values of {wanted.name}"
            )
        return any_tensor(np.frombuffer(content, kind).reshape(shape).copy())
    if wanted.name in ("float16", "bfloat16"):  # their bits, as integers
        numbers = list(np.array(numbers, np.uint16).view(kind))
    elif wanted.is_integer:
        numbers = [_signed(n) if not wanted.is_unsigned else n for n in numbers]
    filled = (numbers + [numbers[-1]] * (count - len(numbers))) if numbers else [0] * count  # the last one stands for the rest
    return convert(np.array(filled).astype(kind).reshape(shape))


def _signed(n):
    return n - 2**64 if n >= 2**63 else n


def encode_base64(input, pad=False, name=None):
    import base64

    from tandem._strings import mapped

    return mapped(lambda s: base64.urlsafe_b64encode(s) if pad else base64.urlsafe_b64encode(s).rstrip(b"="), input)


def decode_base64(input, name=None):
    import base64

    from tandem._strings import mapped

    return mapped(lambda s: base64.urlsafe_b64decode(s + b"=" * (-len(s) % 4)), input)


def decode_compressed(bytes, compression_type="", name=None):
    import gzip
    import zlib

    from tandem._strings import mapped

    return mapped({"": lambda s: s, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[compression_type], bytes)
