"""Take along what is left without a value: declarations, annotations and bindings of values that an edit removed.

Only entries of values that the edit itself removed are considered. Entries that a file already had for no value (some
exporters leave these) stay as they are.
"""

import onnx

from onnxlab.graph.edit.changes import RemoveEntry, ReplaceEntry, SetField
from onnxlab.graph.edit.commits import OpenEdit
from onnxlab.graph.edit.name_references import BINDINGS
from onnxlab.graph.index.records import Scope
from onnxlab.graph.state.graph_state import GraphState


def remove_orphans(graph: GraphState, transaction: OpenEdit) -> None:
    """Remove, as a part of the transaction, what mentions nothing but values that it removed."""
    gone = graph.index.gone
    for value in [gone[vid] for vid in gone if vid not in graph.values]:
        scope = graph.scopes.get(value.scope)
        if scope is None or value.name in scope.names:
            continue
        if len(scope.proto.value_info):
            _drop_declarations(transaction, scope, value.name)
        if scope.kind != "function" and len(scope.proto.quantization_annotation):
            _drop_annotations(transaction, scope, value.name)
        if graph.header.training_info:
            _drop_bindings(graph, transaction, scope, value.name)


def _drop_declarations(transaction: OpenEdit, scope: Scope, name: str) -> None:
    for position in reversed(scope.places("value_info").positions(name)):
        transaction.apply(RemoveEntry(scope.id, "value_info", position))


def _drop_annotations(transaction: OpenEdit, scope: Scope, name: str) -> None:
    annotations = scope.proto.quantization_annotation
    for position in reversed(scope.places("quantization_annotation").positions(name)):
        if annotations[position].tensor_name == name:
            transaction.apply(RemoveEntry(scope.id, "quantization_annotation", position))
            continue
        rest = onnx.TensorAnnotation()
        rest.CopyFrom(annotations[position])
        parameters = rest.quant_parameter_tensor_names
        for number in reversed(range(len(parameters))):
            if parameters[number].value == name:
                del parameters[number]
        transaction.apply(ReplaceEntry(scope.id, "quantization_annotation", position, rest))


def _drop_bindings(graph: GraphState, transaction: OpenEdit, scope: Scope, name: str) -> None:
    """Bindings whose key, or whose value, was in `scope` and is nowhere now."""
    for position, training in enumerate(graph.header.training_info):
        for field, attribute in BINDINGS.items():
            entries = tuple(getattr(training, field))
            inner = graph.index.training[position].get(attribute, 0)
            keys = scope.id in (graph.main.id, graph.index.training[position].get("algorithm", 0))
            remaining = tuple(
                entry for entry in entries
                if not (keys and entry.key == name) and not (scope.id == inner and entry.value == name)
            )  # fmt: skip
            if len(remaining) < len(entries):
                transaction.apply(SetField(("training", position), field, remaining))
