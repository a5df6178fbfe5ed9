"""TensorFlow's messages that tensorboard does not bring along, and tensors as messages."""
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tandem._dtypes import as_dtype

_F = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "tensorflow"


def _message(file, name, *fields):
    m = file.message_type.add(name=name)
    for number, (field, kind, repeated, type_name) in enumerate(fields, 1):
        f = m.field.add(name=field, number=number, type=kind, label=_F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL)
        if type_name:
            f.type_name = f".{_PACKAGE}.{type_name}"
    return m


def _map(message, field, number, value):
    """map<string, value> as protobuf describes it."""
    entry = message.nested_type.add(name="".join(w.capitalize() for w in field.split("_")) + "Entry")
    entry.field.add(name="key", number=1, type=_F.TYPE_STRING, label=_F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=_F.TYPE_MESSAGE, label=_F.LABEL_OPTIONAL, type_name=f".{_PACKAGE}.{value}")
    entry.options.map_entry = True
    message.field.add(name=field, number=number, type=_F.TYPE_MESSAGE, label=_F.LABEL_REPEATED, type_name=f".{_PACKAGE}.{message.name}.{entry.name}")


def _messages():
    file = descriptor_pb2.FileDescriptorProto(name="tandem/example.proto", package=_PACKAGE, syntax="proto3")
    _message(file, "BytesList", ("value", _F.TYPE_BYTES, True, None))
    packed = [_message(file, "FloatList", ("value", _F.TYPE_FLOAT, True, None)), _message(file, "Int64List", ("value", _F.TYPE_INT64, True, None))]
    for m in packed:
        m.field[0].options.packed = True
    feature = _message(file, "Feature", *[(n, _F.TYPE_MESSAGE, False, t) for n, t in (("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List"))])
    feature.oneof_decl.add(name="kind")
    for f in feature.field:
        f.oneof_index = 0
    _map(file.message_type.add(name="Features"), "feature", 1, "Feature")
    _message(file, "FeatureList", ("feature", _F.TYPE_MESSAGE, True, "Feature"))
    _map(file.message_type.add(name="FeatureLists"), "feature_list", 1, "FeatureList")
    _message(file, "Example", ("features", _F.TYPE_MESSAGE, False, "Features"))
    _message(file, "SequenceExample", ("context", _F.TYPE_MESSAGE, False, "Features"), ("feature_lists", _F.TYPE_MESSAGE, False, "FeatureLists"))
    pool = descriptor_pool.Default()
    try:
        pool.FindMessageTypeByName(f"{_PACKAGE}.Example")
    except KeyError:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{n}")) for n in _names}


_names = ("BytesList", "FloatList", "Int64List", "Feature", "Features", "FeatureList", "FeatureLists", "Example", "SequenceExample")
globals().update(_messages())


def array_to_tensor(values, dtype=None, shape=None):
    """A TensorProto."""
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    from tandem._face import any_tensor

    if isinstance(values, (str, bytes)) or not isinstance(values, np.ndarray):
        values = any_tensor(values, dtype).numpy()
    array = np.asarray(values)
    kind = as_dtype(array.dtype if dtype is None else dtype)
    if kind.name != "string":
        array = array.astype(kind.as_numpy_dtype)
    array = array if shape is None else np.broadcast_to(array, shape) if array.size == 1 else array.reshape(shape)
    made = TensorProto(dtype=kind.as_datatype_enum)
    for n in array.shape:
        made.tensor_shape.dim.add(size=n)
    if kind.name == "string":
        made.string_val.extend(w.encode() if isinstance(w, str) else bytes(w) for w in array.reshape(-1))
    else:
        made.tensor_content = array.tobytes()
    return made


_lists = {"float32": "float_val", "float64": "double_val", "int64": "int64_val", "bool": "bool_val", "uint32": "uint32_val", "uint64": "uint64_val", "string": "string_val"}


def tensor_to_array(proto):
    kind = as_dtype(int(proto.dtype))
    shape = [d.size for d in proto.tensor_shape.dim]
    if kind.name == "string":
        made = np.empty(len(proto.string_val), object)
        made[:] = list(proto.string_val)
    elif proto.tensor_content:
        made = np.frombuffer(proto.tensor_content, kind.as_numpy_dtype).copy()
    elif kind.name == "float16" or kind.name == "bfloat16":
        made = np.array(proto.half_val, np.uint16).view(kind.as_numpy_dtype)
    else:
        made = np.array(getattr(proto, _lists.get(kind.name, "int_val")), kind.as_numpy_dtype)
    count = int(np.prod(shape)) if shape else 1
    if len(made) == 1 and count > 1:
        made = np.repeat(made, count)
    return made.reshape(shape)
