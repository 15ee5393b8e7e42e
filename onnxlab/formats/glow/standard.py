"""Glow's dialect by ONNX's specification: each Glow_* node as nodes of ai.onnx, quantized values rounded between."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from onnxlab import dtypes
from onnxlab.formats.base.format import FormatLoss
from onnxlab.graph.protos import glow_dialect, tensors
from onnxlab.graph.protos.attributes import decode
from onnxlab.ops.glow.operators import ELEM_KINDS

_SAME: Final = {
    f"{glow_dialect.PREFIX}{name}": name
    for name in (
        "Add", "Sub", "Mul", "Div", "Max", "Min", "MatMul", "Relu", "Tanh", "Sigmoid", "Quantize", "Dequantize",
    )
}  # fmt: skip
_OPSET: Final = 13
"""The first version in which all operators that are written take the types they need."""

_NOTHING: Final = ("Quantize", "Dequantize")
"""Operators that do only what `real` and `store` do to quantized inputs and outputs anyway."""

Attributes = Mapping[str, Any]


def losses(model: onnx.ModelProto) -> list[FormatLoss]:
    """The parts of a model in the dialect that ONNX has no place for, and the nodes that cannot be written."""
    if not glow_dialect.is_dialect(model):
        return [
            FormatLoss("dialect", "of the model", "it is not Glow's, so it is ONNX already: save it as .onnx", True)
        ]
    lost = [
        FormatLoss("properties", f"of {message.name!r}", "left out: " + ", ".join(properties))
        for message in _described(model.graph)
        if (properties := glow_dialect.parse_doc(message.doc_string))
    ]
    if parts := [entry.key for entry in model.metadata_props if _of_partitions(entry.key)]:
        lost.append(FormatLoss("partitions", f"({len(parts)} entries of the metadata)", "left out"))
    for node in model.graph.node:
        options = [attribute.name for attribute in node.attribute if glow_dialect.is_own_attribute(attribute.name)]
        backend_options = [name for name in options if not name[1:2].isdigit()]
        if backend_options:
            lost.append(FormatLoss("options", f"of {node.name!r}", "left out: " + ", ".join(backend_options)))
        if node.op_type not in _BUILDERS and node.op_type not in _SAME and node.op_type != "Identity":
            why = "no operators of ONNX are known for it" if node.op_type.startswith(glow_dialect.PREFIX) else (
                f"it is of another opset than {_OPSET}, in which the others are written"
            )  # fmt: skip
            lost.append(FormatLoss("node", f"{node.op_type} {node.name!r}", why, refused=True))
    return lost


def standard(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model of the dialect in ai.onnx; raises ValueError where a node lacks the attributes that give its type."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    result.ir_version, result.producer_name = max(7, model.ir_version), "onnxlab"
    del result.opset_import[:], result.graph.node[:], result.metadata_props[:]
    result.opset_import.add(version=_OPSET)
    result.metadata_props.extend(entry for entry in model.metadata_props if not _of_partitions(entry.key))
    for message in _described(result.graph):
        if glow_dialect.parse_doc(message.doc_string):
            message.ClearField("doc_string")
    described = (*model.graph.input, *model.graph.initializer)
    implied = glow_dialect.input_quantization(list(enumerate(model.graph.node)), described)
    writer = _Writer(result.graph)
    for place, node in enumerate(model.graph.node):
        try:
            attributes = {a.name: decode(a) for a in node.attribute} | implied.get(place, {})
            writer.write(node, attributes)
        except (KeyError, IndexError, TypeError, OverflowError) as error:
            why = f"its inputs, outputs and attributes are not those of the operator ({error!r:.80})"
            raise ValueError(f"{node.op_type} {node.name!r:.100} cannot be written: {why}") from None
    return result


def _described(graph: onnx.GraphProto) -> list[Any]:
    """The messages whose doc strings belong to the dialect."""
    return [*graph.input, *graph.output, *graph.initializer]


def _of_partitions(key: str) -> bool:
    return key == "numPartitions" or key.startswith("partition_")


class _Writer:
    """Writes nodes into a graph, with fresh names for the values and constants between them."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self._taken = {message.name for message in _described(graph)}
        self._taken |= {info.name for info in graph.value_info}
        self._label = ""

    def write(self, node: onnx.NodeProto, attributes: Attributes) -> None:
        """Write nodes of ai.onnx that compute the same as a node of the dialect."""
        self._label = node.name or node.output[0]
        self._taken.update(node.output)
        if node.op_type == "Identity":
            self.graph.node.append(helper.make_node("Identity", node.input, node.output, name=node.name))
        elif node.op_type in _BUILDERS:
            _BUILDERS[node.op_type](self, node, attributes)
        else:
            real = [self.real(name, attributes, f"i{slot}") for slot, name in enumerate(node.input)]
            kind = _SAME[node.op_type]
            self.store(real[0] if kind in _NOTHING else self.made(kind, real), attributes, node.output[0])

    def made(self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        name = output or self.fresh(f"{self._label}_{op_type}")
        label = self._label if output else name
        self.graph.node.append(helper.make_node(op_type, inputs, [name], name=label, **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Add an initializer; returns its name."""
        name = self.fresh(f"{self._label}_constant")
        self.graph.initializer.append(tensors.from_array(np.asarray(array), name))
        return name

    def fresh(self, base: str) -> str:
        """A name that no value of the graph has."""
        name, number = base, 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def real(self, name: str, attributes: Attributes, place: str) -> str:
        """The name of a value dequantized to floats; the value itself where it is not quantized."""
        scale, offset = attributes.get(f"{place}_qScale"), attributes.get(f"{place}_qOffset")
        if scale is None or offset is None:
            return name
        floats = self.made("Cast", [name], to=onnx.TensorProto.FLOAT)
        shifted = self.made("Sub", [floats, self.constant(np.float32(offset))]) if offset else floats
        return self.made("Mul", [shifted, self.constant(np.float32(scale))])

    def store(self, real: str, attributes: Attributes, output: str) -> None:
        """Write floats to the first output, quantized: rounded to the nearest step, ties to even, within its limits."""
        kind = ELEM_KINDS[attributes.get("o0_elemKind", "float")]
        dtype = dtypes.to_numpy(kind)
        if dtype.kind not in "iu":
            self.made("Identity" if kind == dtypes.FLOAT else "Cast", [real], output, **_cast(kind))
            return
        if "o0_qScale" not in attributes or "o0_qOffset" not in attributes:
            raise ValueError(f"{self._label!r} has no o0_qScale and o0_qOffset, without which {dtype} means nothing")
        scaled = self.made("Div", [real, self.constant(np.float32(attributes["o0_qScale"]))])
        if attributes["o0_qOffset"]:
            scaled = self.made("Add", [scaled, self.constant(np.float32(attributes["o0_qOffset"]))])
        limits = [self.constant(np.float32(end)) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
        rounded = self.made("Round", [scaled])
        self.made("Cast", [self.made("Clip", [rounded, *limits])], output, to=kind)


def _cast(kind: int) -> dict[str, int]:
    return {} if kind == dtypes.FLOAT else {"to": kind}


def _top_k(writer: _Writer, node: onnx.NodeProto, attributes: Attributes) -> None:
    count = writer.constant(np.array([attributes["K"]], np.int64))
    narrow = attributes.get("o1_elemKind", "index64") == "index32"
    places = writer.fresh(f"{node.name}_places") if narrow else node.output[1]
    top_k = helper.make_node("TopK", [node.input[0], count], [node.output[0], places], name=node.name)
    writer.graph.node.append(top_k)
    if narrow:
        writer.made("Cast", [places], node.output[1], to=onnx.TensorProto.INT32)


def _convolution(writer: _Writer, node: onnx.NodeProto, attributes: Attributes) -> None:
    x, filters, bias, scales, offsets, bias_scales, bias_offsets = node.input
    image = writer.made("Transpose", [writer.real(x, attributes, "i0")], perm=[0, 3, 1, 2])
    per_filter = writer.constant(np.array([-1, 1, 1, 1], np.int64))
    weights = _scaled(writer, filters, writer.made("Reshape", [offsets, per_filter]),
                      writer.made("Reshape", [scales, per_filter]))  # fmt: skip
    moved = writer.made("Transpose", [weights], perm=[0, 3, 1, 2])
    added = _scaled(writer, bias, bias_offsets, bias_scales) if "i2_qScale" in attributes else bias
    convolved = writer.made(
        "Conv", [image, moved, added], kernel_shape=list(attributes["Kernels"]), strides=list(attributes["Strides"]),
        pads=list(attributes["Pads"]), group=attributes.get("Group", 1),
        dilations=list(attributes.get("Dilation", (1, 1))),
    )  # fmt: skip
    if attributes.get("FusedActivation", "NONE") == "RELU":
        convolved = writer.made("Relu", [convolved])
    writer.store(writer.made("Transpose", [convolved], perm=[0, 2, 3, 1]), attributes, node.output[0])


def _scaled(writer: _Writer, stored: str, offsets: str, scales: str) -> str:
    floats = [writer.made("Cast", [name], to=onnx.TensorProto.FLOAT) for name in (stored, offsets)]
    return writer.made("Mul", [writer.made("Sub", floats), scales])


_BUILDERS: Final[Mapping[str, Callable[[_Writer, onnx.NodeProto, Attributes], None]]] = {
    "Glow_TopK": _top_k,
    "Glow_ChannelwiseQuantizedConvolution": _convolution,
}
