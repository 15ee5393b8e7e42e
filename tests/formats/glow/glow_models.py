"""Models in Glow's dialect, for tests and the notebook of formats."""

from typing import Any

import onnx
from onnx import TensorProto, helper


def described(shape: list[int], **more: Any) -> dict[str, Any]:
    """Attributes of a node whose output is floats of a shape."""
    return {"o0_elemKind": "float", "o0_shape": shape, **more}


def model() -> onnx.ModelProto:
    """A product and a sum in one partition."""
    nodes = [
        helper.make_node("Glow_MatMul", ["a", "b"], ["p"], name="p", NodeOpt_CPU_tile=["1", "2"], **described([2, 2])),
        helper.make_node("Glow_Add", ["p", "b"], ["y__1"], name="y__1", partitionName="main_p0", **described([2, 2])),
        helper.make_node("Identity", ["y__1"], ["y"], name="y_save", partitionName="main_p0"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "aby"]
    values[0].doc_string = "$offline:0$trainable:0$layout:*$strides:31,1$elemKind:float"
    values[2].doc_string = "$offline:0$trainable:0$layout:*$elemKind:float$saveName:y_save"
    graph = helper.make_graph(nodes, "glow", values[:2], values[2:])
    graph.initializer.append(helper.make_tensor("filter", TensorProto.INT8, [1], [3]))
    graph.initializer[0].doc_string = "ui8fused"
    proto = helper.make_model(
        graph, producer_name="GlowONNXModelWriter", ir_version=7, opset_imports=[helper.make_opsetid("", 9)]
    )
    properties = {
        "numPartitions": "1", "partition_0_name": "main_p0", "partition_0_numLogicalDevices": "2",
        "partition_0_logicalDevice_0": "1", "partition_0_logicalDevice_1": "0", "partition_0_backendName": "CPU",
        "partition_0_size": "1600", "partition_0_BackendHint_executionUnits": "0",
        "partition_0_numBackendSpecificOpts": "1", "partition_0_backendSpecificOpts_key_0": "opt",
        "partition_0_backendSpecificOpts_val_0": "v", "partition_0_replicationCount": "1",
    }  # fmt: skip
    helper.set_model_props(proto, properties)
    return proto


def quantized() -> onnx.ModelProto:
    """a and b are int8 with scales of their own; y is their sum, stored with another."""
    proto = model()
    del proto.graph.node[:], proto.graph.initializer[:]
    attributes = {"o0_elemKind": "i8", "o0_shape": [2, 2], "o0_qScale": 0.5, "o0_qOffset": 3}
    proto.graph.node.add().CopyFrom(helper.make_node("Glow_Add", ["a", "b"], ["y__1"], name="sum", **attributes))
    proto.graph.node.add().CopyFrom(helper.make_node("Identity", ["y__1"], ["y"], name="y_save"))
    infos = (*proto.graph.input, proto.graph.output[0])
    for info, scale, offset in zip(infos, (0.5, 0.25, 0.5), (1, -2, 3), strict=True):
        info.type.tensor_type.elem_type = TensorProto.INT8
        info.doc_string = f"$layout:*$elemKind:i8$qScale:{scale:.14f}$qOffset:{offset}"
    return proto
