"""tf.train.Example and its parts: protobuf messages, described here and made by protobuf itself."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
# name -> [(field, number, label, type)]; a type in quotes is another message.
_MESSAGES = {
    "BytesList": [("value", 1, "repeated", "bytes")],
    "FloatList": [("value", 1, "packed", "float")],
    "Int64List": [("value", 1, "packed", "int64")],
    "Feature": [
        ("bytes_list", 1, "kind", "BytesList"),
        ("float_list", 2, "kind", "FloatList"),
        ("int64_list", 3, "kind", "Int64List"),
    ],
    "Features": [("feature", 1, "map", "Feature")],
    "FeatureList": [("feature", 1, "repeated", "Feature")],
    "FeatureLists": [("feature_list", 1, "map", "FeatureList")],
    "Example": [("features", 1, "one", "Features")],
    "SequenceExample": [("context", 1, "one", "Features"), ("feature_lists", 2, "one", "FeatureLists")],
}
_SCALARS = {"bytes": _FIELD.TYPE_BYTES, "float": _FIELD.TYPE_FLOAT, "int64": _FIELD.TYPE_INT64}


def _add_field(message, name, number, label, kind):
    field = message.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
    if label in ("repeated", "packed", "map"):
        field.label = _FIELD.LABEL_REPEATED
    if label == "packed":
        field.options.packed = True
    if label == "kind":
        if not message.oneof_decl:
            message.oneof_decl.add(name="kind")
        field.oneof_index = 0
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _FIELD.TYPE_MESSAGE
    field.type_name = f".tensorflow.{kind}"
    if label == "map":
        entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_STRING)
        entry.field.add(
            name="value", number=2, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_MESSAGE, type_name=f".tensorflow.{kind}"
        )
        field.type_name = f".tensorflow.{message.name}.{entry.name}"


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name="tandem/example.proto", package="tensorflow", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
    pool = descriptor_pool.DescriptorPool()  # its own: TensorFlow may be there too
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tensorflow.{name}")) for name in _MESSAGES}


globals().update(_classes())
__all__ = list(_MESSAGES)
