"""The IR version that an edit needs: raised as a part of it."""

import onnx

from onnxlab.graph.edit.changes import InsertFormal, RemoveEntry, RemoveNode, SetField
from onnxlab.graph.edit.commits import OpenEdit
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.graph_state import GraphState

INITIALIZERS_SINCE = 4
"""The IR version from which on an initializer need not be a graph input too."""

_IMPORTS_SINCE = 3


def raise_for_initializers(graph: GraphState, transaction: OpenEdit) -> None:
    """Raise an IR version below INITIALIZERS_SINCE where the edit made an initializer that is no graph input.

    The label of the edit mentions the new IR version. Initializers that the file already had without an input do not
    raise the version.
    """
    header = graph.header
    if not _lacks_an_input(graph, transaction):
        return
    transaction.label += f" (IR version {header.ir_version} → {INITIALIZERS_SINCE})"
    if header.ir_version < _IMPORTS_SINCE and not header.opset_import:
        # the opset that such a model has without an import
        imports = (onnx.OperatorSetIdProto(domain="", version=1),)
        transaction.apply(SetField(("model", 0), "opset_import", imports))
    transaction.apply(SetField(("model", 0), "ir_version", INITIALIZERS_SINCE))


def _lacks_an_input(graph: GraphState, transaction: OpenEdit) -> bool:
    """Whether an initializer came, or an input went, so that now there is an initializer that is no input."""
    return any(map(_may_part, transaction.inverses)) and any(
        value.initializer is not None and not value.is_input
        for value in map(graph.values.get, transaction.touch.suspects)
        if value is not None
    )


def _may_part(inverse: Change) -> bool:
    match inverse:
        case RemoveEntry(field="initializer" | "sparse_initializer") | InsertFormal(kind="input") | RemoveNode():
            return True
    return False
