"""Dead code elimination: removes nodes that no output depends on, and unused initializers and functions."""

from onnxlab.graph import edits
from onnxlab.graph.edit.changes import RemoveFormal, RemoveFunction, RemoveNode
from onnxlab.graph.edits import cleaning
from onnxlab.transforms.rewriting import Rewriting

NAME = "dead code elimination"
NAMES = (NAME,)


def run(rewriting: Rewriting) -> None:
    """Take out what is not used."""
    if not rewriting.allows(NAME, ""):
        return
    for count, kind in (
        (_drop_dead_nodes(rewriting), "nodes that no output depends on"),
        (_drop_weights_as_inputs(rewriting), "weights among the inputs, of before IR version 4"),
        (_drop_initializers(rewriting), "initializers that nothing reads"),
        (_drop_functions(rewriting), "functions that nothing calls"),
    ):
        if count:
            rewriting.note(NAME, "", f"{count} {kind}", "taken out")


def _drop_dead_nodes(rewriting: Rewriting) -> int:
    """Take dead nodes out, bodies and functions included; a node without outputs must have an effect, and stays."""
    graph, count = rewriting.graph, 0
    if not rewriting.options.protected:
        return edits.drop_dead_nodes(graph)
    waiting = [node for node in graph.nodes.values() if cleaning.is_dead(graph, node)]
    while waiting:
        node = waiting.pop()
        if node.id not in graph.nodes or not cleaning.is_dead(graph, node) or rewriting.stays(node):
            continue
        read = {*node.inputs, *graph.index.captures(node)}
        graph.apply(RemoveNode(node.id))
        count += 1
        waiting.extend(cleaning.makers(graph, read))
    return count


def _drop_initializers(rewriting: Rewriting) -> int:
    names = rewriting.options.protected
    values = [value for value in cleaning.unused_initializers(rewriting.graph) if value.name not in names]
    cleaning.remove_stored(rewriting.graph, values)
    return len(values)


def _drop_functions(rewriting: Rewriting) -> int:
    graph = rewriting.graph
    uncalled = cleaning.uncalled_functions(graph)
    idle = [ident for ident in uncalled if not rewriting.is_protected_scope(graph.scopes[ident])]
    for ident in reversed(idle):
        graph.apply(RemoveFunction(ident))
    return len(idle)


def _drop_weights_as_inputs(rewriting: Rewriting) -> int:
    """Take weights out of the inputs, among which they have to be before IR version 4: those that nothing reads.

    A new tensor is no input, so a model with one becomes a model of IR version 4, and then all weights are taken out: a
    weight that is an input is a default from that version on, which a caller may override and no runtime takes for
    constant.
    """
    graph, main = rewriting.graph, rewriting.graph.main
    if not rewriting.inputs_are_weights:
        return 0
    inputs = [graph.values[vid] for vid in main.inputs]
    stored = [graph.values[vid] for vid in main.names.values() if graph.values[vid].initializer is not None]
    converts = not {value.id for value in stored} <= set(main.inputs)
    idle = [
        place
        for place, value in enumerate(inputs)
        if value.initializer is not None and (converts or not (value.uses or value.formal_outputs))
    ]
    for place in reversed(idle):
        graph.apply(RemoveFormal(main.id, "input", place))
    return len(idle)
