"""A model as ONNX Runtime stores it: functions inlined, constants as initializers, defaults and types filled in."""

from collections.abc import Iterator, Mapping

import onnx
from onnx import helper

from onnxlab import dtypes, runtime_schemas, schemas
from onnxlab.errors import SaveError
from onnxlab.formats.base.format import FormatLoss
from onnxlab.formats.ort.operators import schema_of
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.inlining import inline_functions
from onnxlab.graph.protos.renaming import graphs_of
from onnxlab.infer import Inference
from onnxlab.infer.dropin.fact_writer import Writer
from onnxlab.infer.facts.type_protos import type_of_fact
from onnxlab.schemas import Schema
from onnxlab.shapes import UNKNOWN

_A = onnx.AttributeProto
_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
WRITTEN_OUT = frozenset({
    "Bernoulli", "CastLike", "CausalConvWithState", "CenterCropPad", "GroupNormalization", "HardSwish",
    "LinearAttention", "Mish", "NegativeLogLikelihoodLoss", "SequenceMap", "SoftmaxCrossEntropyLoss", "SwiGLU", "Swish",
})  # fmt: skip
"""Operators of ai.onnx for which ONNX Runtime has no kernel: it writes out their functions when it loads ONNX."""
_NOT_HELD = frozenset(
    number for name, number in onnx.TensorProto.DataType.items()
    if name.startswith("COMPLEX") or number > onnx.TensorProto.FLOAT8E5M2FNUZ
)  # fmt: skip
"""Element types of tensors that the format cannot hold."""
_BARE = ("GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS")
"""Types of attributes that the format cannot hold."""


def prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model, ready to be written; the model itself is not changed.

    Raises:
        SaveError: inference does not find the element type of a value; the message names the values.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if copy.functions:
        inline_functions(graph := ModelGraph(copy, shared=False))
        copy = graph.share()
        del copy.functions[:]
    import_all(copy)
    for graph_proto in graphs(copy.graph):
        _lift_constants(graph_proto)
    opsets = {schemas.canonical_domain(entry.domain): entry.version for entry in copy.opset_import}
    for graph_proto in graphs(copy.graph):
        for node in graph_proto.node:
            if (schema := schema_of(node, opsets)) is not None:
                _add_defaults(node, schema)
    if next(untyped(copy.graph, frozenset()), None) is not None:
        copy = _typed(copy)
    if missing := list(dict.fromkeys(untyped(copy.graph, frozenset()))):
        shown = ", ".join(map(repr, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        raise SaveError(f"the element types of {shown} are not known, which ORT format needs; declare them")
    return copy


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the types that inference finds, those of the inputs of bodies included."""
    graph = ModelGraph(model, shared=False)
    inference = Inference(graph)
    Writer(graph, inference).write_scope(graph.main)
    for scope in graph.scopes.values():
        infos = {info.name: info for info in (*scope.proto.input, *scope.proto.output)}
        for value in (*scope.inputs, *scope.outputs):
            info = infos.get(graph.values[value].name)
            fact = inference.fact(value)
            if info is not None and not _is_typed(info.type) and fact is not UNKNOWN:
                info.type.CopyFrom(type_of_fact(fact))
    return graph.share()


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and all bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in graphs_of(attribute):
                yield from graphs(body)


def import_all(model: onnx.ModelProto) -> None:
    """Import the newest versions of domains that nodes have and the model does not import."""
    imported = {schemas.canonical_domain(entry.domain) for entry in model.opset_import}
    used = {schemas.canonical_domain(node.domain) for graph in graphs(model.graph) for node in graph.node}
    for domain in sorted(used - imported):
        model.opset_import.add(domain=domain, version=schemas.latest_opset(domain) or 1)


def _lift_constants(graph: onnx.GraphProto) -> None:
    """Make initializers of the Constant nodes of a graph, since ONNX Runtime has no kernel for Constant."""
    remaining = []
    for node in graph.node:
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.attribute) != 1:
            remaining.append(node)
            continue
        (attribute,) = node.attribute
        name = next(iter(node.output), "")
        if not name:
            continue  # nothing can read it
        if attribute.type == _A.SPARSE_TENSOR:
            graph.sparse_initializer.add().CopyFrom(attribute.sparse_tensor)
            graph.sparse_initializer[-1].values.name = name
        else:
            graph.initializer.append(_constant(attribute, name))
    if len(remaining) < len(graph.node):
        copies = []
        for node in remaining:
            copies.append(onnx.NodeProto())
            copies[-1].CopyFrom(node)
        del graph.node[:]
        graph.node.extend(copies)


# {type of attribute: (field, element type)}
_LITERALS = {
    _A.FLOAT: ("f", onnx.TensorProto.FLOAT), _A.FLOATS: ("floats", onnx.TensorProto.FLOAT),
    _A.INT: ("i", onnx.TensorProto.INT64), _A.INTS: ("ints", onnx.TensorProto.INT64),
    _A.STRING: ("s", onnx.TensorProto.STRING), _A.STRINGS: ("strings", onnx.TensorProto.STRING),
}  # fmt: skip


def _constant(attribute: onnx.AttributeProto, name: str) -> onnx.TensorProto:
    if attribute.type == _A.TENSOR:
        tensor = onnx.TensorProto()
        tensor.CopyFrom(attribute.t)
        tensor.name = name
        return tensor
    if attribute.type not in _LITERALS:
        kind = _A.AttributeType.Name(attribute.type)
        raise SaveError(f"the constant {name!r} is a {kind}, which ORT format does not hold")
    field, elem = _LITERALS[attribute.type]
    value = getattr(attribute, field)
    if len(field) == 1:
        return helper.make_tensor(name, elem, [], [value])
    return helper.make_tensor(name, elem, [len(value)], value)


def _add_defaults(node: onnx.NodeProto, schema: Schema) -> None:
    """Set the attributes that a node leaves out to their defaults."""
    present = {attribute.name for attribute in node.attribute}
    for name, default in schema.defaults.items():
        if name not in present:
            kind = getattr(_A, schema.attributes[name].type.upper())
            node.attribute.append(helper.make_attribute(name, default, attr_type=kind))


def untyped(graph: onnx.GraphProto, outer: frozenset[str]) -> Iterator[str]:
    """Names of values whose element type a graph does not declare, bodies included."""
    typed = {info.name for info in (*graph.value_info, *graph.output, *graph.input) if _is_typed(info.type)}
    typed |= {tensor.name for tensor in graph.initializer}
    typed |= {sparse.values.name for sparse in graph.sparse_initializer}
    known = outer | typed
    for node in graph.node:
        yield from (name for name in (*node.input, *node.output) if name and name not in known)
        for attribute in node.attribute:
            for body in graphs_of(attribute):
                yield from untyped(body, known)


def _is_typed(proto: onnx.TypeProto) -> bool:
    match proto.WhichOneof("value"):
        case "tensor_type":
            return proto.tensor_type.elem_type != dtypes.UNDEFINED
        case "sparse_tensor_type":
            return proto.sparse_tensor_type.elem_type != dtypes.UNDEFINED
        case "sequence_type":
            return _is_typed(proto.sequence_type.elem_type)
        case kind:
            return kind is not None


def without_kernels(model: onnx.ModelProto) -> list[str]:
    """Labels of the nodes that only ONNX Runtime itself can write: it has no kernel for them, or none for float16.

    It writes functions out, and puts Casts to float32 around nodes.
    """
    return list(_without_kernels(model.graph, {}))


def _without_kernels(graph: onnx.GraphProto, outer: Mapping[str, int]) -> Iterator[str]:
    types = dict(outer) | {tensor.name: tensor.data_type for tensor in graph.initializer}
    for info in (*graph.value_info, *graph.output, *graph.input):
        types[info.name] = info.type.tensor_type.elem_type
    kernels = runtime_schemas.half_precision_kernels()
    for node in graph.node:
        halves = any(types.get(name) in _HALVES for name in (*node.input, *node.output))
        domain = schemas.canonical_domain(node.domain)
        function = node.op_type in WRITTEN_OUT and not domain
        if function or (halves and f"{domain}:{node.op_type}" not in kernels):
            yield f"{node.op_type} {node.name or next(iter(node.output), '')!r}"
        for attribute in node.attribute:
            for body in graphs_of(attribute):
                yield from _without_kernels(body, types)


def losses(model: onnx.ModelProto) -> Iterator[FormatLoss]:
    """The parts of a model that ORT format has no place for."""
    if model.graph.name not in ("", "graph"):  # the names of graphs without a name
        yield FormatLoss("name", f"of the graph, {model.graph.name!r}", "left out")
    for function in model.functions:
        yield FormatLoss("function", f"{function.domain}::{function.name}", "inlined where it is called")
    for entry in model.training_info[:1]:
        yield FormatLoss("training", f"{len(entry.algorithm.node)} nodes of its algorithm", "left out")
    if model.configuration:
        yield FormatLoss("devices", f"{len(model.configuration)} configurations", "left out")
    for graph in graphs(model.graph):
        yield from _losses_of_graph(graph)


def _losses_of_graph(graph: onnx.GraphProto) -> Iterator[FormatLoss]:
    if graph.metadata_props:
        yield FormatLoss("metadata", f"of the graph {graph.name!r}", "left out")
    for annotation in graph.quantization_annotation:
        yield FormatLoss("quantization", annotation.tensor_name, "left out")
    for node in graph.node:
        yield from _losses_of_node(node)
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.metadata_props:
            yield FormatLoss("metadata", f"of the value {info.name!r}", "left out")
        if (kind := info.type.WhichOneof("value")) in ("optional_type", "opaque_type"):
            yield FormatLoss("type", f"of {info.name!r}", f"{kind.removesuffix('_type')} is not held", refused=True)
    for tensor in graph.initializer:
        if tensor.data_type in _NOT_HELD:
            yield _not_held(tensor, f"of the initializer {tensor.name!r}")
        if tensor.metadata_props:
            yield FormatLoss("metadata", f"of the initializer {tensor.name!r}", "left out")


def _not_held(tensor: onnx.TensorProto, where: str) -> FormatLoss:
    return FormatLoss("type", where, f"tensors of {dtypes.name(tensor.data_type)} are not held", refused=True)


def _losses_of_node(node: onnx.NodeProto) -> Iterator[FormatLoss]:
    label = node.name or (node.output[0] if node.output else node.op_type)
    if node.metadata_props:
        yield FormatLoss("metadata", f"of the node {label!r}", "left out")
    if node.device_configurations:
        yield FormatLoss("devices", f"of the node {label!r}", "left out")
    if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
        yield FormatLoss("constant", repr(label), "becomes an initializer")
        yield from (_not_held(attribute.t, f"of the constant {label!r}")
                    for attribute in node.attribute if attribute.t.data_type in _NOT_HELD)  # fmt: skip
        return
    for attribute in node.attribute:
        kind = _A.AttributeType.Name(attribute.type)
        if kind in _BARE:
            yield FormatLoss(
                "type", f"of attribute {attribute.name!r} of {label!r}", f"{kind} is not held", refused=True
            )
