"""One model with everything that onnx.proto has and that tools like to lose, and files written in unusual ways."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import AttributeProto, TensorProto, TypeProto, helper

UNKNOWN = b"\x80\x7d\x01"
"""Field 2000 with the varint 1: nothing in onnx.proto has that number."""

TYPED_FIELDS = {
    TensorProto.FLOAT: "float_data", TensorProto.COMPLEX64: "float_data", TensorProto.DOUBLE: "double_data",
    TensorProto.COMPLEX128: "double_data", TensorProto.INT64: "int64_data", TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data", TensorProto.STRING: "string_data",
}  # fmt: skip
"""Where each element type keeps typed data; int32_data for the others."""
BITS = {TensorProto.UINT4: 4, TensorProto.INT4: 4, TensorProto.FLOAT4E2M1: 4, TensorProto.UINT2: 2, TensorProto.INT2: 2}
ELEMENT_TYPES = [number for name, number in TensorProto.DataType.items() if name != "UNDEFINED"]


def tensors() -> Iterator[onnx.TensorProto]:
    """Every element type, typed and raw; one external, one in segments, one empty, one as a scalar."""
    for number in ELEMENT_TYPES:
        name = TensorProto.DataType.Name(number).lower()
        typed = TensorProto(name=f"{name}_typed", data_type=number, dims=[2])
        field = TYPED_FIELDS.get(number, "int32_data")  # type: ignore[call-overload]
        value: Any = b"\xff\xfe text" if field == "string_data" else 1
        getattr(typed, field).extend([value] * (4 if "COMPLEX" in name.upper() else 2))
        yield typed
        if number != TensorProto.STRING:
            yield TensorProto(name=f"{name}_raw", data_type=number, dims=[2], raw_data=bytes(32))
    external = TensorProto(name="external", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", "nowhere.bin"), ("offset", "16"), ("length", "8"), ("checksum", "ab"), ("own", "")):
        external.external_data.add(key=key, value=entry)
    yield external
    yield TensorProto(name="part", data_type=1, dims=[2], float_data=[1], segment=TensorProto.Segment(begin=0, end=1))
    yield TensorProto(name="empty", data_type=1, dims=[0], raw_data=b"")
    yield TensorProto(name="scalar", data_type=1, float_data=[0.5], doc_string="", data_location=TensorProto.DEFAULT)


def sparse(name: str) -> onnx.SparseTensorProto:
    values = helper.make_tensor(name, TensorProto.FLOAT, [2], [5.0, 7.0])
    return helper.make_sparse_tensor(values, helper.make_tensor("", TensorProto.INT64, [2], [1, 5]), [2, 3])


def types() -> dict[str, onnx.TypeProto]:
    """Every kind of type, with denotations, and dims that are a number, a name, an empty name and unknown."""
    full = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "N", None, None])
    full.denotation = "IMAGE"
    full.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    full.tensor_type.shape.dim[2].dim_param = ""
    opaque = TypeProto()
    opaque.opaque_type.domain, opaque.opaque_type.name = "torture", "Thing"
    return {
        "tensor": full,
        "no_shape": helper.make_tensor_type_proto(TensorProto.INT2, None),
        "sparse": helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [None, 3]),
        "sequence": helper.make_sequence_type_proto(full),
        "map": helper.make_map_type_proto(TensorProto.STRING, helper.make_sequence_type_proto(full)),
        "optional": helper.make_optional_type_proto(helper.make_sequence_type_proto(full)),
        "opaque": opaque,
        "none": TypeProto(),
    }


def body(name: str, reads: str) -> onnx.GraphProto:
    """A graph with an initializer, a sparse one, value_info and metadata of its own, which captures `reads`."""
    nodes = [
        helper.make_node("Add", [reads, f"{name}_w"], [f"{name}_sum"], name=f"{name}_add"),
        helper.make_node("Mul", [f"{name}_sum", f"{name}_s"], [f"{name}_out"], name=f"{name}_mul"),
    ]
    graph = helper.make_graph(
        nodes, name, [], [onnx.ValueInfoProto(name=f"{name}_out")],
        [helper.make_tensor(f"{name}_w", 1, [1], [2.0])], doc_string="inner", sparse_initializer=[sparse(f"{name}_s")],
    )  # fmt: skip
    graph.value_info.add(name=f"{name}_sum", doc_string="declared", type=types()["tensor"])
    graph.value_info.add(name=reads, type=types()["tensor"])
    annotate(graph, f"{name}_sum", f"{name}_w")
    graph.metadata_props.add(key="namespace", value="inner")
    return graph


def annotate(graph: onnx.GraphProto, tensor: str, scale: str) -> None:
    annotation = graph.quantization_annotation.add(tensor_name=tensor)
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)


def attributes() -> Iterator[onnx.AttributeProto]:
    """Every kind of attribute, empty lists, a string that is not UTF-8, one without a type and one of its own kind."""
    array = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])
    kinds: dict[str, Any] = {
        "f": (AttributeProto.FLOAT, 0.1), "i": (AttributeProto.INT, -(2**63)),
        "s": (AttributeProto.STRING, b"\xff\x00"),
        "t": (AttributeProto.TENSOR, array), "g": (AttributeProto.GRAPH, body("attribute_g", "h")),
        "sparse_tensor": (AttributeProto.SPARSE_TENSOR, sparse("")),
        "tp": (AttributeProto.TYPE_PROTO, types()["map"]), "floats": (AttributeProto.FLOATS, [1.5, float("nan")]),
        "ints": (AttributeProto.INTS, [1, 2]), "strings": (AttributeProto.STRINGS, [b"", b"\xfe"]),
        "tensors": (AttributeProto.TENSORS, [array, array]),
        "graphs": (AttributeProto.GRAPHS, [body("attribute_a", "h"), body("attribute_b", "h")]),
        "sparse_tensors": (AttributeProto.SPARSE_TENSORS, [sparse("a"), sparse("b")]),
        "type_protos": (AttributeProto.TYPE_PROTOS, list(types().values())),
    }  # fmt: skip
    for field, (number, value) in kinds.items():
        attribute = AttributeProto(name=f"a_{field}", type=number, doc_string=f"of {field}")
        if isinstance(value, Message):
            getattr(attribute, field).CopyFrom(value)
        elif isinstance(value, list):
            getattr(attribute, field).extend(value)
        else:
            setattr(attribute, field, value)
        yield attribute
    yield AttributeProto(name="no_ints", type=AttributeProto.INTS)
    yield AttributeProto(name="no_type", i=3)
    yield AttributeProto(name="two_fields", type=AttributeProto.INT, i=3, f=0.25)


def nodes() -> Iterator[onnx.NodeProto]:
    first = helper.make_node("Add", ["x_tensor", "float_raw"], ["h"], name="first")
    first.domain = first.doc_string = ""  # present and empty is not absent
    first.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'layer']")
    first.metadata_props.add(key="empty", value="")
    place = first.device_configurations.add(configuration_id="two", pipeline_stage=0)
    spec = place.sharding_spec.add(tensor_name="h", device=[-1, 1])
    spec.index_to_device_group_map.add(key=-1, value=[0, 1])
    spec.sharded_dim.add(axis=0).simple_sharding.add(dim_param="N", num_shards=2)
    spec.sharded_dim.add(axis=1).simple_sharding.add(dim_value=4, num_shards=2)
    yield first
    custom = onnx.NodeProto(op_type="Custom", domain="torture", overload="second", input=["h", "", "float_typed"])
    custom.output.extend(["c", "", "c_third"])
    custom.attribute.extend(attributes())
    yield custom
    yield helper.make_node("Identity", ["c"], [""], name="nothing_made", domain="ai.onnx")
    yield helper.make_node("Twice", ["c", "kept"], ["y"], name="call", domain="torture", overload="second", axis=2)


def functions() -> Iterator[onnx.FunctionProto]:
    for overload in ("", "second"):
        inner = onnx.NodeProto(op_type="Softmax", name="inner", input=["v"], output=["soft"])
        inner.attribute.add(name="axis", type=AttributeProto.INT, ref_attr_name="axis")
        final = onnx.NodeProto(op_type="Add", input=["soft", "w"], output=["out"])
        function = onnx.FunctionProto(
            name="Twice", domain="torture", overload=overload, input=["v", "w"], output=["out"], attribute=["axis"],
            attribute_proto=[AttributeProto(name="mode", type=AttributeProto.STRING, s=b"default")],
            node=[inner, final], opset_import=[helper.make_opsetid("", 20)], doc_string="a function",
            value_info=[onnx.ValueInfoProto(name="soft", type=types()["tensor"])],
        )  # fmt: skip
        function.metadata_props.add(key="of", value="function")
        yield function


def training() -> onnx.TrainingInfoProto:
    """Zero an initializer first, then take a step: both graphs are scopes that see the main graph's names."""
    zero = helper.make_node("Constant", [], ["zeroed"], value=helper.make_tensor("", 1, [2], [0.0, 0.0]))
    start = helper.make_graph([zero], "start", [], [onnx.ValueInfoProto(name="zeroed")])
    step = helper.make_node("Sub", ["float_raw", "rate"], ["stepped"], name="step")
    rate = helper.make_tensor("rate", 1, [1], [0.1])
    update = helper.make_graph([step], "update", [], [onnx.ValueInfoProto(name="stepped")], [rate])
    info = onnx.TrainingInfoProto(initialization=start, algorithm=update)
    info.initialization_binding.add(key="float_raw", value="zeroed")
    info.update_binding.add(key="float_raw", value="stepped")
    return info


def torture(ir_version: int = 14) -> onnx.ModelProto:
    """Everything at once; unknown fields at every level, the insides of tensors and types included."""
    graph = onnx.GraphProto(name="torture", doc_string="", node=nodes(), initializer=tensors())
    graph.sparse_initializer.append(sparse("kept"))
    for kind, type_ in types().items():
        info = graph.input.add(name=f"x_{kind}", type=type_, doc_string="")
        info.metadata_props.add(key="of", value=kind)
    graph.input.add(name="float_raw", type=types()["tensor"])
    graph.output.add(name="y", type=types()["tensor"])
    graph.output.add(name="c")
    for name in ("ghost", "c", "h", "c"):
        graph.value_info.add(name=name, type=types()["tensor"], doc_string=name)
    annotate(graph, "h", "float_raw")
    annotate(graph, "missing", "float_typed")
    graph.metadata_props.add(key="of", value="graph")
    model = helper.make_model(
        graph, ir_version=ir_version, producer_name="by hand", producer_version="", model_version=0,
        domain="org.example", doc_string="all",
        opset_imports=[helper.make_opsetid("ai.onnx", 25), helper.make_opsetid("torture", 1)], functions=functions(),
    )  # fmt: skip
    model.metadata_props.add(key="of", value="model")
    model.training_info.append(training())
    model.configuration.add(name="two", num_devices=2, device=["cpu:0", "cpu:1"])
    for message in [*messages(model)]:
        message.MergeFromString(UNKNOWN)
    for tensor in model.graph.initializer:
        tensor.metadata_props.add(key="of", value=tensor.name)
    return model


def messages(message: Any) -> Iterator[Any]:
    """A message and all that are set in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from messages(inner)


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """(number, whole field with its tag) of a serialized message, in its order."""
    pairs, at = [], 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        if tag & 7 == 0:
            _, at = _read_varint(data, at)
        elif tag & 7 == 2:
            size, at = _read_varint(data, at)
            at += size
        else:
            at += {1: 8, 5: 4}[tag & 7]
        pairs.append((tag >> 3, data[start:at]))
    return pairs


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def backward(data: bytes) -> bytes:
    """The same model with its fields by falling number, as no writer orders them."""
    return b"".join(field for _, field in sorted(fields(data), key=lambda field: -field[0]))


def split(data: bytes) -> bytes:
    """The same model with its graph in two parts, which a reader has to join; dims packed, floats not."""
    tensor = b"\x0a\x02\x01\x02" + b"\x10\x01" + b"\x25" + np.float32(1).tobytes() + b"\x25" + np.float32(2).tobytes()
    tensor += b"\x42\x08unpacked"
    graph = b"\x2a" + bytes([len(tensor)]) + tensor
    return data + b"\x3a" + bytes([len(graph)]) + graph
