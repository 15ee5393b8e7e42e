"""Bindings of a TrainingInfoProto: which output of its graphs is assigned to which initializer."""

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import SetField, field_value
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.name_references import BINDINGS, bound_value
from onnxlab.graph.edits.recording.edit_spec import recorded


@recorded
def set_binding(
    graph: ModelGraph, variable: str, output: str | None, initialization: bool = False, training: int = 0
) -> None:
    """Assign an output of the algorithm to an initializer after each step, or one of the initialization before them.

    Args:
        graph: of a model with training information.
        variable: an initializer of the algorithm, or else of the model.
        output: of the graph; None takes the binding away.
        initialization: whether it is an output of the initialization.
        training: which of the training information.

    Raises:
        EditError: there is no such initializer or output.
    """
    count = len(graph.header.training_info)
    if not 0 <= training < count:
        raise EditError(f"the model has {count} entries of training_info, and none at place {training}")
    field = "initialization_binding" if initialization else "update_binding"
    bindings = field_value(graph.target(("training", training)), field)
    kept = tuple(entry for entry in bindings if entry.key != variable)
    if output is None:
        if len(kept) == len(bindings):
            raise EditError(f"{variable!r} is bound to nothing")
        graph.apply(SetField(("training", training), field, kept))
        return
    made = onnx.StringStringEntryProto(key=variable, value=output)
    found = graph.values.get(bound_value(graph, training, field, made, "key"))
    if found is None or found.initializer is None:
        raise EditError(f"{variable!r} is no initializer of the model or of the algorithm")
    if not (value := graph.values.get(bound_value(graph, training, field, made, "value"))) or not value.is_output:
        raise EditError(f"{output!r} is no output of the {BINDINGS[field]}")
    graph.apply(SetField(("training", training), field, (*kept, made)))
