"""Results of other optimizers, brought back by the structural difference; parts that need no change stay.

Names, documentation, metadata, declared types and the header stay those of the model; documentation and metadata of a
removed node go to the node that makes its value now.
"""

from collections.abc import Iterable
from typing import Any, Final

import onnx

from onnxlab.analysis.diff.becoming import Becoming
from onnxlab.analysis.diff.matching import match
from onnxlab.errors import EditError
from onnxlab.graph.edit.ir_versions import INITIALIZERS_SINCE
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.tables import function_key
from onnxlab.transforms.metadata_transfer import joined
from onnxlab.transforms.rewriting import Rewriting

_DESCRIBES: Final = ("name", "doc_string", "metadata_props")
_OF_THE_MODEL: Final = (
    "ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string", "metadata_props",
    "training_info", "configuration",
)  # fmt: skip


def bring_back(rewriting: Rewriting, other: onnx.ModelProto, rule: str) -> None:
    """Apply the result of another optimizer to a model, inside of an open edit.

    Args:
        rewriting: the model.
        other: the result; changed in place to keep what the model says of itself.
        rule: the name of the application.

    Raises:
        EditError: the other model has other inputs or outputs.
    """
    graph = rewriting.graph
    _refuse_other_formals(graph.header.graph, other.graph)
    _keep(graph, other)
    target = ModelGraph(other)
    matching = match(graph, target)
    gone = [ident for ident in graph.main.node_ids if ident not in matching.nodes]
    paired = set(matching.nodes.values())
    came = [ident for ident in target.main.node_ids if ident not in paired]
    changed = False
    for change in Becoming(graph, target, matching).steps():
        graph.apply(change)
        changed = True
    if changed:
        rewriting.note(rule, "", f"{len(gone)} nodes", f"{len(gone)} nodes became {len(came)}")


def _refuse_other_formals(graph: onnx.GraphProto, other: onnx.GraphProto) -> None:
    stored = {tensor.name for tensor in graph.initializer}
    for kind, ours, theirs in (("inputs", graph.input, other.input), ("outputs", graph.output, other.output)):
        names, now = {value.name for value in ours}, {value.name for value in theirs}
        if now - names or (names - now) - stored:
            differ = ", ".join(sorted(now ^ names)[:5])
            raise EditError(f"it has other {kind}: {differ}")


def _keep(graph: ModelGraph, other: onnx.ModelProto) -> None:
    """Restore in the result every field that does not affect what is computed."""
    header, inside = graph.header, other.graph
    for field in _OF_THE_MODEL:
        _take(header, other, field)
    known = {entry.domain: entry for entry in header.opset_import} | {
        entry.domain: entry for entry in other.opset_import
    }
    _refill(other.opset_import, known.values())
    before = header.graph
    for field in _DESCRIBES:
        _take(before, inside, field)
    _describe(before.initializer, inside.initializer)
    _refill(inside.output, before.output)
    stored = {tensor.name for tensor in before.initializer}
    now = {tensor.name for tensor in inside.initializer}
    converts = header.ir_version < INITIALIZERS_SINCE and not now <= {value.name for value in before.input}
    named = {value.name for value in inside.input} | now
    _refill(inside.input, [value for value in before.input
                           if value.name not in stored or (value.name in named and not converts)])  # fmt: skip
    produced = named | {name for node in inside.node for name in node.output}
    _refill(inside.value_info, [value for value in before.value_info if value.name in produced])
    notes = [note for note in before.quantization_annotation if note.tensor_name in produced]
    _refill(inside.quantization_annotation, notes)
    functions = {function_key(function): function for function in header.functions}
    for function in other.functions:
        ours = functions.get(function_key(function))
        if ours is not None and [_bare(node) for node in ours.node] == [_bare(node) for node in function.node]:
            function.CopyFrom(ours)
    _inherit(before.node, inside.node)


def _inherit(before: Iterable[onnx.NodeProto], now: Iterable[onnx.NodeProto]) -> None:
    """Give nodes the documentation and metadata of the former makers of their values; equal nodes their names too."""
    nodes = list(before)
    makers = {name: node for node in nodes for name in node.output if name}
    same = {_bare(node): node for node in nodes}
    for node in now:
        equal = same.get(_bare(node))
        if equal is not None:
            for field in _DESCRIBES:
                _take(equal, node, field)
            continue
        for old in (makers[name] for name in node.output if name in makers):
            node.doc_string = joined(node.doc_string, old.doc_string)
            held = {entry.key for entry in node.metadata_props}
            node.metadata_props.extend(entry for entry in old.metadata_props if entry.key not in held)


def _bare(node: onnx.NodeProto) -> bytes:
    """The content of a node and the names of its values, without the node's own name and documentation."""
    bare = onnx.NodeProto(op_type=node.op_type, domain="" if node.domain == "ai.onnx" else node.domain,
                          input=node.input, output=node.output, overload=node.overload)  # fmt: skip
    bare.attribute.extend(sorted(node.attribute, key=lambda attribute: attribute.name))
    for attribute in bare.attribute:
        attribute.doc_string = ""
    return bare.SerializeToString(deterministic=True)


def _describe(before: Iterable[onnx.TensorProto], now: Iterable[onnx.TensorProto]) -> None:
    """Give tensors the documentation and metadata of the former tensors of the same names."""
    known = {tensor.name: tensor for tensor in before}
    for tensor in now:
        old = known.get(tensor.name)
        if old is not None:
            for field in ("doc_string", "metadata_props"):
                _take(old, tensor, field)


def _take(source: Any, target: Any, field: str) -> None:
    """Make a field of a message equal to that of another one, absent where it is absent there."""
    if field not in source.DESCRIPTOR.fields_by_name:
        return
    target.ClearField(field)
    partial = type(source)()
    value = getattr(source, field)
    if hasattr(value, "extend"):
        getattr(partial, field).extend(value)
    elif source.HasField(field):
        setattr(partial, field, value)
    target.MergeFrom(partial)


def _refill(repeated: Any, messages: Iterable[Any]) -> None:
    copies = [type(message).FromString(message.SerializeToString()) for message in messages]
    del repeated[:]
    repeated.extend(copies)
