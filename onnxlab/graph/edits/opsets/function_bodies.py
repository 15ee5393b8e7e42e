"""The nodes that a node stands for, by the function that its operator's schema carries. Works on messages alone."""

import onnx

from onnxlab import schemas
from onnxlab.graph.edits.opsets.schema_fit import Types, spelled
from onnxlab.graph.protos.attributes import encode
from onnxlab.graph.protos.renaming import Renaming, graphs_of, nodes_inside


def written_out(node: onnx.NodeProto, version: int, types: Types) -> tuple[list[onnx.NodeProto], int] | None:
    """(the nodes, the version of ai.onnx that they are of) that a node of `version` stands for; None: not known.

    Names of values inside derive from that of the node's first output. Nodes without readers are left out.
    """
    schema = schemas.find(node.domain, node.op_type, version)
    if schema is None or (body := _function(schema, node, version, types)) is None:
        return None
    function, chosen = body
    names = dict(zip(function.input, [*node.input, *[""] * len(function.input)], strict=False))
    names.update(zip(function.output, [*node.output, *[""] * len(function.output)], strict=False))
    stem = next(filter(None, node.output))
    for name in [name for inner in nodes_inside(function.node) for name in inner.output if name]:
        names[name] = names.get(name) or f"{stem}/{name}"
    attributes = {spec.name: encode(spec.name, spec.default, spec.type)
                  for spec in schema.attributes.values() if spec.default is not None}  # fmt: skip
    attributes.update((attribute.name, attribute) for attribute in node.attribute)
    renaming = Renaming(names, attributes=attributes)
    return needed([renaming.node(inner) for inner in function.node], {name for name in node.output if name}), chosen


def is_written_with_bodies(node: onnx.NodeProto, version: int, types: Types) -> bool:
    """Whether a node whose operator is new in a version becomes nodes with bodies in the one before."""
    if any(graphs_of(attribute) for attribute in node.attribute):
        return True
    schema = schemas.find(node.domain, node.op_type, version)
    if schema is None or (body := _function(schema, node, version, types)) is None:
        return False
    return any(graphs_of(attribute) for inner in body[0].node for attribute in inner.attribute)


def needed(nodes: list[onnx.NodeProto], names: set[str]) -> list[onnx.NodeProto]:
    """The nodes that make what is wanted, in order."""
    remaining: list[onnx.NodeProto] = []
    names = set(names)
    for node in reversed(nodes):
        if names.intersection(node.output):
            remaining.append(node)
            names.update(name for inner in nodes_inside([node]) for name in inner.input)
    return remaining[::-1]


def _function(
    schema: schemas.Schema, node: onnx.NodeProto, version: int, types: Types
) -> tuple[onnx.FunctionProto, int] | None:
    """The body that a schema gives for a node: a fixed one, or one made from the types of its inputs."""
    raw = schema.onnx
    if raw is None or not (raw.has_function or raw.has_context_dependent_function):
        return None
    versions = raw.function_opset_versions if raw.has_function else raw.context_dependent_function_opset_versions
    if not (usable := [since for since in versions if since <= version]):
        return None
    chosen = max(usable)
    if raw.has_function:
        data = raw.get_function_with_opset_version(chosen)
    else:
        input_types = [types.get(name, onnx.TypeProto()) for name in node.input]
        if node.op_type == "SequenceMap" and not all(map(spelled, input_types)):
            return None  # onnx's function for it crashes where types are missing
        known = [since.SerializeToString() for since in input_types]
        try:
            data = raw.get_context_dependent_function_with_opset_version(chosen, node.SerializeToString(), known)
        except (ValueError, RuntimeError):  # a damaged node, as a SequenceMap without a body
            return None
    function = onnx.FunctionProto.FromString(data)
    imported = {entry.domain: entry.version for entry in function.opset_import}
    return (function, imported.get("", chosen)) if function.node else None
