"""Dead code: nodes that no output depends on, and initializers and functions that nothing uses."""

from onnxlab.graph import edits
from onnxlab.graph.edit.changes import RemoveFormal
from onnxlab.transforms.rewriting import Rewriting

NAME = "dead code elimination"


def run(rewriting: Rewriting) -> None:
    """Take out what is not used."""
    graph = rewriting.graph
    if not rewriting.allows(NAME, ""):
        return
    for count, kind in (
        (edits.drop_dead_nodes(graph), "nodes that no output depends on"),
        (_drop_weights_as_inputs(rewriting), "weights of a model of before IR version 4 that nothing reads"),
        (edits.drop_unused_initializers(graph), "initializers that nothing reads"),
        (edits.drop_unused_functions(graph), "functions that nothing calls"),
    ):
        if count:
            rewriting.note(NAME, "", f"{count} {kind}", "taken out")


def _drop_weights_as_inputs(rewriting: Rewriting) -> int:
    """Take weights out of the inputs that have to be there before IR version 4, where nothing reads them any more."""
    graph, main = rewriting.graph, rewriting.graph.main
    if not rewriting.inputs_are_weights:
        return 0
    values = [graph.values[vid] for vid in main.inputs]
    idle = [place for place, value in enumerate(values) if value.initializer is not None and not value.uses]
    idle = [place for place in idle if not values[place].formal_outputs]
    for place in reversed(idle):
        graph.apply(RemoveFormal(main.id, "input", place))
    return len(idle)
