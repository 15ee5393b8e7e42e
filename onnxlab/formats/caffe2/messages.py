"""The messages of Caffe2's networks, by field numbers, for protobuf's parser of text."""

from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_TYPES: Final = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "float": _FIELD.TYPE_FLOAT,
}
# message: (field, number, type), a type in brackets is repeated, one with a capital is a message
_MESSAGES: Final = {
    "Argument": (
        ("name", 1, "string"), ("f", 2, "float"), ("i", 3, "int64"), ("s", 4, "bytes"), ("floats", 5, "[float]"),
        ("ints", 6, "[int64]"), ("strings", 7, "[bytes]"), ("n", 8, "NetDef"), ("nets", 9, "[NetDef]"),
    ),
    "DeviceOption": (("device_type", 1, "int32"), ("device_id", 2, "int32"), ("node_name", 4, "string")),
    "OperatorDef": (
        ("input", 1, "[string]"), ("output", 2, "[string]"), ("name", 3, "string"), ("type", 4, "string"),
        ("arg", 5, "[Argument]"), ("device_option", 6, "DeviceOption"), ("engine", 7, "string"),
        ("control_input", 8, "[string]"), ("is_gradient_op", 9, "int32"), ("debug_info", 10, "string"),
        ("domain", 11, "string"), ("op_version", 12, "int64"),
    ),
    "NetDef": (
        ("name", 1, "string"), ("op", 2, "[OperatorDef]"), ("type", 3, "string"), ("num_workers", 4, "int32"),
        ("device_option", 5, "DeviceOption"), ("arg", 6, "[Argument]"), ("external_input", 7, "[string]"),
        ("external_output", 8, "[string]"),
    ),
}  # fmt: skip


@cache
def net_def() -> Any:
    """The message class of a network; a text with other fields is parsed with unknown fields allowed."""
    package = "onnxlab.caffe2"
    file = descriptor_pb2.FileDescriptorProto(name="onnxlab/caffe2.proto", package=package, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            inner = kind.strip("[]")
            row = message.field.add(name=field, number=number)
            row.label = _FIELD.LABEL_REPEATED if kind.startswith("[") else _FIELD.LABEL_OPTIONAL
            if inner in _TYPES:
                row.type = _TYPES[inner]
            else:
                row.type, row.type_name = _FIELD.TYPE_MESSAGE, f".{package}.{inner}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.NetDef"))
