"""Changes that make a model's main graph that of another one; nodes are paired by the names of their values."""

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertNode, RemoveNode, SetField, SetInitializer
from onnxlab.graph.edit.merging import adopt_functions
from onnxlab.graph.edits.cleaning import drop_unused_functions, drop_unused_initializers
from onnxlab.graph.index.records import NodeRecord
from onnxlab.transforms.rewriting import Rewriting


def bring(rewriting: Rewriting, other: onnx.ModelProto, rule: str) -> None:
    """Let the main graph be that of another model with the same inputs and outputs, inside of an edit.

    Nodes that are in both stay as they are. What a removed node said of itself goes to the node that makes its value
    now, or is counted as lost.

    Raises:
        EditError: the other model has other inputs or outputs.
    """
    graph, main = rewriting.graph, rewriting.graph.main
    _refuse_other_formals(rewriting, other)
    before = {_key(graph.nodes[ident].proto): graph.nodes[ident] for ident in main.node_ids}
    after = {_key(node): node for node in other.graph.node}
    added = [node for key, node in after.items() if key not in before]
    removed = [node for key, node in before.items() if key not in after]
    if not added and not removed:
        return
    producers = {name: node for node in removed for name in node.proto.output if name}
    graph.apply(SetField(("model", 0), "opset_import", tuple(_imports(rewriting, other))))
    adopt_functions(graph, other.functions)
    spoken = [node for node in removed if node.proto.doc_string or node.proto.metadata_props]
    for node in removed:
        graph.apply(RemoveNode(node.id))
    for tensor in other.graph.initializer:
        known = main.names.get(tensor.name)
        value = graph.values[known] if known is not None else None
        if value is None or value.initializer is None or value.initializer != tensor:
            graph.apply(SetInitializer(main.id, tensor.name, tensor))
    heirs = set()
    for new_node in added:
        copy = onnx.NodeProto()
        copy.CopyFrom(new_node)
        heirs |= _inherit(copy, producers)
        graph.apply(InsertNode(main.id, len(main.node_ids), copy))
    drop_unused_initializers(graph)
    drop_unused_functions(graph)
    rewriting.lost += [node.name or node.op_type for node in spoken if node.id not in heirs]
    summary = f"{len(removed)} nodes became {len(added)}"
    rewriting.note(rule, "", f"{len(removed)} nodes", summary)


def _key(node: onnx.NodeProto) -> bytes:
    """What a node does to which values, whatever it is called."""
    bare = onnx.NodeProto(op_type=node.op_type, domain=node.domain.replace("ai.onnx", "", 1) if
                          node.domain == "ai.onnx" else node.domain, input=node.input, output=node.output)  # fmt: skip
    bare.attribute.extend(sorted(node.attribute, key=lambda entry: entry.name))
    for attribute in bare.attribute:
        attribute.doc_string = ""
    return bare.SerializeToString(deterministic=True)


def _refuse_other_formals(rewriting: Rewriting, other: onnx.ModelProto) -> None:
    graph = rewriting.graph.main.proto
    stored = {tensor.name for tensor in graph.initializer}
    for kind, ours, theirs in (
        ("inputs", graph.input, other.graph.input),
        ("outputs", graph.output, other.graph.output),
    ):
        names = {value.name for value in ours}
        other_names = {value.name for value in theirs}
        if other_names - names or (names - other_names) - stored:
            differ = ", ".join(sorted(other_names ^ names)[:5])
            raise EditError(f"it has other {kind}: {differ}")


def _imports(rewriting: Rewriting, other: onnx.ModelProto) -> list[onnx.OperatorSetIdProto]:
    """The opsets of the other model, and those that only this one has."""
    by_domain = {entry.domain: entry for entry in rewriting.graph.header.opset_import}
    by_domain |= {entry.domain: entry for entry in other.opset_import}
    return list(by_domain.values())


def _inherit(node: onnx.NodeProto, producers: dict[str, NodeRecord]) -> set[int]:
    """Give a node what those said of themselves that made its values before; returns their ids."""
    heirs = set()
    for name in node.output:
        old = producers.get(name)
        if old is None:
            continue
        heirs.add(old.id)
        node.doc_string = node.doc_string or old.proto.doc_string
        known = {entry.key for entry in node.metadata_props}
        node.metadata_props.extend(entry for entry in old.proto.metadata_props if entry.key not in known)
    return heirs
