"""TensorFlow's checkpoint files: an index (a LevelDB table) and the tensors' bytes beside it."""
import os
import struct

import numpy as np

from tandem import _dtypes as dtypes
from tandem import errors
from tandem._crc32c import crc32c, masked, unmasked

_MAGIC = 0xDB4775248B80FB57


# --- protobuf's wire format, as far as two messages need it ---------------------------------------------------------------------


def _varint(n):
    made = bytearray()
    while n > 0x7F:
        made.append(n & 0x7F | 0x80)
        n >>= 7
    made.append(n)
    return bytes(made)


def _read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise errors.DataLossError(None, None, "a checkpoint's index ends in the middle of a number")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _fields(data):
    """[(number, value)]: whole numbers, or bytes."""
    found, at = [], 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
        elif kind == 2:
            size, at = _read_varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at : at + size], "little"), at + size
        else:
            raise errors.DataLossError(None, None, f"a checkpoint's index has a field of the unknown kind {kind}")
        found.append((key >> 3, value))
    return found


class Entry:
    """Where a tensor's bytes are."""

    def __init__(self, dtype, shape, offset, size, crc, shard=0):
        self.dtype, self.shape, self.offset, self.size, self.crc, self.shard = dtype, list(shape), offset, size, crc, shard

    def encoded(self):
        shape = b"".join(_field(2, _field(1, n)) for n in self.shape)
        made = _field(1, self.dtype.as_datatype_enum) + _field(2, shape)
        made += _field(4, self.offset) if self.offset else b""
        return made + _field(5, self.size) + _varint(6 << 3 | 5) + struct.pack("<I", self.crc)

    @classmethod
    def decoded(cls, data):
        kind, shape, shard, offset, size, crc = 1, [], 0, 0, 0, 0
        for number, value in _fields(data):
            if number == 1:
                kind = value
            elif number == 2:
                for n, dim in _fields(value):
                    if n == 2:
                        shape.append(dict(_fields(dim)).get(1, 0))
            elif number == 3:
                shard = value
            elif number == 4:
                offset = value
            elif number == 5:
                size = value
            elif number == 6:
                crc = value
        return cls(dtypes.as_dtype(kind), shape, offset, size, crc, shard)


# --- the table ------------------------------------------------------------------------------------------------------------------


def _block(items):
    """Entries without shared prefixes; every one is a restart."""
    body, restarts = b"", []
    parts = []
    at = 0
    for key, value in items:
        restarts.append(at)
        part = _varint(0) + _varint(len(key)) + _varint(len(value)) + key + value
        parts.append(part)
        at += len(part)
    body = b"".join(parts) + b"".join(struct.pack("<I", r) for r in restarts or [0]) + struct.pack("<I", len(restarts or [0]))
    return body


def _write_table(path, items):
    """`items`: sorted (key, value)."""
    out, index, pending, size = bytearray(), [], [], 0

    def put(body):
        handle = _varint(len(out)) + _varint(len(body))
        out.extend(body + b"\0" + struct.pack("<I", masked(crc32c(body + b"\0"))))
        return handle

    for key, value in items:
        pending.append((key, value))
        size += len(key) + len(value)
        if size > 1 << 15:
            index.append((key, put(_block(pending))))
            pending, size = [], 0
    if pending:
        index.append((pending[-1][0], put(_block(pending))))
    meta = put(_block([]))
    handle = put(_block(index))
    footer = (meta + handle).ljust(40, b"\0") + struct.pack("<Q", _MAGIC)
    with open(path, "wb") as f:
        f.write(bytes(out) + footer)


def _read_block(data, offset, size):
    body = data[offset : offset + size]
    if len(data) < offset + size + 5:
        raise errors.DataLossError(None, None, "a checkpoint's index is cut off")
    kind, crc = data[offset + size], struct.unpack("<I", data[offset + size + 1 : offset + size + 5])[0]
    if kind != 0:
        raise errors.UnimplementedError(None, None, "a checkpoint's index is compressed")
    if unmasked(crc) != crc32c(body + b"\0"):
        raise errors.DataLossError(None, None, "a checkpoint's index does not fit its checksum")
    restarts = struct.unpack("<I", body[-4:])[0]
    end, at, key, items = len(body) - 4 * (restarts + 1), 0, b"", []
    while at < end:
        shared, at = _read_varint(body, at)
        rest, at = _read_varint(body, at)
        size, at = _read_varint(body, at)
        key = key[:shared] + body[at : at + rest]
        items.append((key, body[at + rest : at + rest + size]))
        at += rest + size
    return items


def _read_table(path):
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 48 or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise errors.DataLossError(None, None, f"{path} is no index of a checkpoint")
    at = len(data) - 48
    _, at = _read_varint(data, at)
    _, at = _read_varint(data, at)
    offset, at = _read_varint(data, at)
    size, at = _read_varint(data, at)
    found = []
    for _, handle in _read_block(data, offset, size):
        start, k = _read_varint(handle, 0)
        length, _ = _read_varint(handle, k)
        found += _read_block(data, start, length)
    return found


# --- tensors --------------------------------------------------------------------------------------------------------------------


def _string_bytes(words):
    """Lengths, their checksum, then the bytes."""
    lengths, code = b"", 0
    for w in words:
        lengths += _varint(len(w))
        code = crc32c(struct.pack("<I", len(w)), code)
    check = struct.pack("<I", masked(code))
    code = crc32c(check, code)
    body = b"".join(words)
    return lengths + check + body, masked(crc32c(body, code))


def write(prefix, tensors):
    """`tensors`: {name: array}; arrays of bytes objects are strings."""
    os.makedirs(os.path.dirname(os.path.abspath(prefix)), exist_ok=True)
    entries, offset = {}, 0
    temporary = f"{prefix}.data-00000-of-00001.tmp{os.getpid()}"
    with open(temporary, "wb") as f:
        for name in sorted(tensors, key=lambda n: n.encode()):
            array = np.asarray(tensors[name])
            if array.dtype.kind in "OS":
                raw, crc = _string_bytes([bytes(w) for w in array.reshape(-1)])
                dtype = dtypes.string
            else:
                raw = np.ascontiguousarray(array).tobytes()
                dtype, crc = dtypes.as_dtype(array.dtype), masked(crc32c(raw))
            f.write(raw)
            entries[name] = Entry(dtype, array.shape, offset, len(raw), crc)
            offset += len(raw)
    os.replace(temporary, f"{prefix}.data-00000-of-00001")
    header = _field(1, 1) + _field(3, _field(1, 1))
    items = [(b"", header)] + [(n.encode(), entries[n].encoded()) for n in sorted(entries, key=lambda n: n.encode())]
    _write_table(f"{prefix}.index.tmp{os.getpid()}", items)
    os.replace(f"{prefix}.index.tmp{os.getpid()}", f"{prefix}.index")


class Reader:
    """A checkpoint's tensors by name; as tf.train.load_checkpoint gives it."""

    def __init__(self, prefix):
        self._prefix = prefix
        if not os.path.exists(prefix + ".index"):
            raise errors.NotFoundError(
                None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}"
            )
        items = _read_table(prefix + ".index")
        header = dict(_fields(items[0][1])) if items and items[0][0] == b"" else {1: 1}
        self._shards = header.get(1, 1)
        self._entries = {k.decode(): Entry.decoded(v) for k, v in items if k}

    def get_variable_to_shape_map(self):
        return {k: list(e.shape) for k, e in self._entries.items()}

    def get_variable_to_dtype_map(self):
        return {k: e.dtype for k, e in self._entries.items()}

    def has_tensor(self, name):
        return name in self._entries

    def get_tensor(self, name):
        if name not in self._entries:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")
        e = self._entries[name]
        path = f"{self._prefix}.data-{e.shard:05d}-of-{self._shards:05d}"
        with open(path, "rb") as f:
            f.seek(e.offset)
            raw = f.read(e.size)
        if len(raw) != e.size:
            raise errors.DataLossError(
                None, None, f"{path} is cut off: {name} has {e.size} bytes at {e.offset}, {len(raw)} are there"
            )
        if e.dtype.name == "string":
            return self._strings(raw, e, name)
        if unmasked(e.crc) != crc32c(raw):
            raise errors.DataLossError(None, None, f"Checksum does not match: {name} in {path}")
        return np.frombuffer(raw, e.dtype.as_numpy_dtype).reshape(e.shape).copy()

    def _strings(self, raw, e, name):
        count, at, sizes = int(np.prod(e.shape)) if e.shape else 1, 0, []
        for _ in range(count):
            n, at = _read_varint(raw, at)
            sizes.append(n)
        at += 4
        words = np.empty(count, object)
        for i, n in enumerate(sizes):
            words[i], at = raw[at : at + n], at + n
        if _string_bytes(list(words))[1] != e.crc:
            raise errors.DataLossError(None, None, f"Checksum does not match: {name}")
        return words.reshape(e.shape) if e.shape else words[0]
