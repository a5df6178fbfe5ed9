"""Protocol buffers of any type: fields as tensors, and back. The type is one that the program has imported, or comes with its description in a file."""

import numpy as np

from tandem import _core, errors
from tandem._convert import convert
from tandem._dtypes import as_dtype
from tandem._face import any_tensor
from tandem._strings import one


def _type(message_type, descriptor_source):
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    source = one(descriptor_source)
    if source in (b"", b"local://"):
        pool = descriptor_pool.Default()
    else:
        if source.startswith(b"bytes://"):
            content = source[len(b"bytes://") :]
        else:
            with open(source, "rb") as file:
                content = file.read()
        pool = descriptor_pool.DescriptorPool()
        for described in descriptor_pb2.FileDescriptorSet.FromString(content).file:
            pool.Add(described)
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(one(message_type).decode()))
    except KeyError:
        raise errors.InvalidArgumentError(None, None, f"No descriptor found for message type {one(message_type).decode()}") from None


def _field(kind, name):
    field = kind.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise errors.InvalidArgumentError(None, None, f"Unknown field: {name} in message type {kind.DESCRIPTOR.full_name}")
    return field


def _is_repeated(field):
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _values(message, field):
    values = getattr(message, field.name)
    if not _is_repeated(field):
        present = not field.has_presence or message.HasField(field.name)
        values = [values] if present else []
    if field.message_type is not None:
        return [v.SerializeToString() for v in values]
    return [v.encode() if isinstance(v, str) else v for v in values]


def decode_proto(
    bytes, message_type, field_names, output_types, descriptor_source="local://", message_format="binary", sanitize=False, name=None
):
    """(sizes, values): how many values each field has in each message, and the values, filled up to the largest number."""
    import collections

    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    words, kind = any_tensor(bytes), _type(message_type, descriptor_source)
    messages = []
    for text in _core.strings_to_list(words):
        try:
            messages.append(kind.FromString(text) if message_format == "binary" else text_format.Parse(text, kind()))
        except (DecodeError, text_format.ParseError) as e:
            raise errors.DataLossError(None, None, f"Unable to parse {kind.DESCRIPTOR.full_name}: {e}") from None
    sizes, results = [], []
    for field_name, dtype in zip(field_names, output_types, strict=True):
        field, dtype = _field(kind, field_name), as_dtype(dtype)
        rows = [_values(m, field) for m in messages]
        width = max(map(len, rows), default=0)
        sizes.append([len(r) for r in rows])
        missing = b"" if dtype.name == "string" else field.default_value if field.message_type is None and not _is_repeated(field) else 0
        if not _is_repeated(field):
            width = 1
        flat = [v for r in rows for v in [*r, *[missing.encode() if isinstance(missing, str) else missing] * (width - len(r))]]
        shape = [*words.shape, width]
        if dtype.name == "string":
            results.append(_core.strings_from(flat, shape))
        else:
            results.append(convert(np.array(flat, dtype.as_numpy_dtype).reshape(shape)))
    counted = np.array(sizes, np.int32).reshape(len(sizes), -1).T.reshape(*words.shape, len(sizes))
    return collections.namedtuple("DecodeProtoV2", ["sizes", "values"])(convert(np.ascontiguousarray(counted)), results)


def encode_proto(sizes, values, field_names, message_type, descriptor_source="local://", name=None):
    """The messages that have these values."""
    kind, counts = _type(message_type, descriptor_source), any_tensor(sizes).numpy()
    batch = counts.shape[:-1]
    counts = counts.reshape(-1, counts.shape[-1])
    columns = []
    for x in values:
        x = any_tensor(x)
        flat = _core.strings_to_list(x) if x.dtype.name == "string" else x.numpy().reshape(-1).tolist()
        width = x.shape[-1]
        columns.append([flat[i * width : (i + 1) * width] for i in range(len(counts))])
    words = []
    for i, row in enumerate(counts):
        message = kind()
        for field_name, column, count in zip(field_names, columns, row, strict=True):
            field, found = _field(kind, field_name), column[i][: int(count)]
            if field.message_type is not None:
                for v in found:
                    (getattr(message, field.name).add() if _is_repeated(field) else getattr(message, field.name)).MergeFromString(v)
                continue
            if field.cpp_type == field.CPPTYPE_STRING and field.type == field.TYPE_STRING:
                found = [v.decode() for v in found]
            if _is_repeated(field):
                getattr(message, field.name).extend(found)
            elif found:
                setattr(message, field.name, found[0])
        words.append(message.SerializeToString())
    return _core.strings_from(words, batch)
