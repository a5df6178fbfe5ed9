"""Tensors as protobuf messages."""
import numpy as np

from tandem._dtypes import as_dtype


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


_lists = {
    "float32": "float_val",
    "float64": "double_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "string": "string_val",
}


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
