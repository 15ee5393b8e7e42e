"""Glow's dialect of ONNX: content without a field in ONNX is in doc strings, attributes and metadata.

The doc string of an input, output or initializer is `$key:value` after `$key:value`: offline, trainable, layout,
elemKind, qScale, qOffset, strides, saveName. A doc string of another form is left unchanged.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import onnx

PREFIX: Final = "Glow_"
"""Prefix of the operators of the dialect."""

_PRODUCER: Final = "GlowONNXModelWriter"
_PLACE: Final = re.compile(r"[io]\d{1,9}_(?:elemKind|shape|strides|qScale|qOffset)")
_OWN: Final = frozenset(("partitionName", "isIntermediateOutputForDAG"))
_OPTION: Final = "NodeOpt_"
_MOST: Final = 100_000


def is_dialect(model: onnx.ModelProto) -> bool:
    """Tell whether Glow wrote a model."""
    return model.producer_name == _PRODUCER


def is_own_attribute(name: str) -> bool:
    """Tell whether an attribute is one that Glow adds to nodes of any operator."""
    return name in _OWN or name.startswith(_OPTION) or _PLACE.fullmatch(name) is not None


def parse_doc(doc: str) -> dict[str, str] | None:
    """The properties in a doc string, in order; None where it is not of the form, or printing would change it."""
    if not doc.startswith("$"):
        return None
    properties: dict[str, str] = {}
    for part in doc[1:].split("$"):
        key, colon, text = part.partition(":")
        if not key or not colon or key in properties:
            return None
        properties[key] = text
    return properties


def print_doc(properties: Mapping[str, str]) -> str:
    """The doc string of properties, in their order.

    Raises:
        ValueError: a key or value holds text that the form cannot express.
    """
    for key, text in properties.items():
        if not key or "$" in key or ":" in key or "$" in text:
            raise ValueError(f"{key!r:.60}: {text!r:.60} cannot be written as $key:value; keep $ out of it")
    return "".join(f"${key}:{text}" for key, text in properties.items())


def is_save_node(node: onnx.NodeProto, output: Any) -> bool:
    """Tell whether a node is what Glow saves an output by: an Identity that the output's saveName names."""
    properties = parse_doc(output.doc_string) if output is not None else None
    return node.op_type == "Identity" and properties is not None and properties.get("saveName") == node.name != ""


def notes(message: Any) -> dict[str, str]:
    """The dialect's content of a node, of an input or output, or of an initializer, for display: {title: text}."""
    if not isinstance(message, onnx.NodeProto):
        return dict(parse_doc(message.doc_string) or {})
    part, options = partition_of(message), options_of(message)
    texts_of = {"Partition": part} if part else {}
    return texts_of | {f"{option} of {backend}": ", ".join(texts) for (backend, option), texts in options.items()}


def input_quantization(
    nodes: Iterable[tuple[int, onnx.NodeProto]], described: Iterable[Any]
) -> dict[int, dict[str, Any]]:
    """The quantization of inputs that nodes leave out: {id: {"i0_qScale": 0.5, "i0_qOffset": 1}}.

    Args:
        nodes: (id, message), in topological order.
        described: inputs and initializers, whose doc strings hold the quantization.
    """
    known: dict[str, tuple[float, int]] = {}
    for message in described:
        properties = parse_doc(message.doc_string) or {}
        try:
            known[message.name] = float(properties["qScale"]), int(properties["qOffset"])
        except (KeyError, ValueError):
            continue
    implied_of = {}
    for ident, node in nodes:
        held: dict[str, Any] = {a.name: a.f if a.type == onnx.AttributeProto.FLOAT else a.i for a in node.attribute}
        if node.op_type == "Identity" and node.output and node.input and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
        for slot, name in enumerate(node.output):
            if f"o{slot}_qScale" in held and f"o{slot}_qOffset" in held:
                known[name] = held[f"o{slot}_qScale"], held[f"o{slot}_qOffset"]
        if node.op_type.startswith(PREFIX):
            implied = {
                f"i{slot}_{key}": number
                for slot, name in enumerate(node.input) if name in known and f"i{slot}_qScale" not in held
                for key, number in zip(("qScale", "qOffset"), known[name], strict=True)
            }  # fmt: skip
            if implied:
                implied_of[ident] = implied
    return implied_of


@dataclass(frozen=True, slots=True)
class GlowPartition:
    """A part of a graph that Glow gives to one backend, as the metadata of a model lists it.

    Attributes:
        name: the name to which the `partitionName` of nodes refers.
        devices: logical devices, in order.
        backend: name of the backend.
        size: in bytes.
        hints: hints for the backend by name, without "BackendHint_".
        options: options of the backend by name.
        replication: number of copies of the partition.
    """

    name: str
    devices: tuple[int, ...]
    backend: str
    size: int
    hints: Mapping[str, str]
    options: Mapping[str, str]
    replication: int

    def texts(self) -> tuple[str, ...]:
        """The cells of its row under `COLUMNS`."""
        settings = {**self.hints, **self.options}
        return (
            self.name, self.backend, ", ".join(map(str, self.devices)), str(self.size), str(self.replication),
            ", ".join(f"{key}={text}" for key, text in settings.items()),
        )  # fmt: skip


COLUMNS: Final = ("Partition", "Backend", "Devices", "Bytes", "Copies", "Hints and options")


def partitions(metadata: Mapping[str, str]) -> tuple[GlowPartition, ...]:
    """The partitions that the metadata of a model lists; none where it lists none, or not in this form."""
    try:
        count = _count(metadata.get("numPartitions", "0"))
        return tuple(_partition(metadata, f"partition_{number}_") for number in range(count))
    except (KeyError, ValueError):
        return ()


def _partition(metadata: Mapping[str, str], start: str) -> GlowPartition:
    hint = f"{start}BackendHint_"
    devices = range(_count(metadata[f"{start}numLogicalDevices"]))
    options = range(_count(metadata.get(f"{start}numBackendSpecificOpts", "0")))
    return GlowPartition(
        metadata[f"{start}name"],
        tuple(int(metadata[f"{start}logicalDevice_{place}"]) for place in devices),
        metadata[f"{start}backendName"],
        int(metadata.get(f"{start}size", "0")),
        {key.removeprefix(hint): text for key, text in metadata.items() if key.startswith(hint)},
        {
            metadata[f"{start}backendSpecificOpts_key_{place}"]: metadata[f"{start}backendSpecificOpts_val_{place}"]
            for place in options
        },
        int(metadata.get(f"{start}replicationCount", "1")),
    )


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= _MOST:
        raise ValueError(f"{count} is no count")
    return count


def partition_of(node: onnx.NodeProto) -> str:
    """The name of the partition that a node is in, "" where it says none."""
    for attribute in node.attribute:
        if attribute.name == "partitionName":
            return attribute.s.decode("utf-8", "replace")
    return ""


def options_of(node: onnx.NodeProto) -> dict[tuple[str, str], tuple[str, ...]]:
    """The values of a node's options by (backend, option)."""
    options = {}
    for attribute in node.attribute:
        backend, _, option = attribute.name.removeprefix(_OPTION).partition("_")
        if attribute.name.startswith(_OPTION) and option:
            options[backend, option] = tuple(text.decode("utf-8", "replace") for text in attribute.strings)
    return options
