"""The effect of a cut of the model, before it is made."""

from typing import TYPE_CHECKING

from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits import plan_behind, plan_cut
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.handles.handles import Value
from onnxlab.graph.query import cones
from onnxlab.notebook.edits.kinds import chosen_value
from onnxlab.notebook.protocol.messages import JSON

if TYPE_CHECKING:
    from onnxlab.model import Model


def preview(
    model: "Model", outputs: list[int], inputs: list[int], part: list[int], siblings: bool, behind: bool
) -> JSON:
    """The effect of a cut at values; with `behind`, of removing all that depends on the first of `outputs`.

    With `part`, what a model of these nodes would be; this one stays as it is.

    Raises:
        EditError: the cut is refused.
        NameLookupError: a value or node is not in the model any more.
    """
    if part:
        return _preview_of_part(model, part)
    graph = model.graph
    ends, starts = ([graph.values[chosen_value(model, ident).id] for ident in side] for side in (outputs, inputs))
    if behind and not ends:
        raise EditError("no value was chosen; choose the one behind which all goes")
    planned = plan_behind(graph, ends[0]) if behind else plan_cut(graph, ends, starts, siblings)

    def names(ids: tuple[int, ...]) -> list[str]:
        return [graph.values[ident].name for ident in ids]

    return {
        "nodes": list(planned.nodes),
        "kept": 0,
        "stored": 0,
        "outputs": names(planned.outputs),
        "inputs": names(planned.inputs),
        "lost_outputs": names(planned.lost_outputs),
        "lost_inputs": names(planned.lost_inputs),
        "siblings": list(planned.siblings),
    }


def borders(graph: ModelGraph, nodes: list[int]) -> tuple[list[Value], list[Value]]:
    """The outputs and inputs of nodes that become a model of their own; Constants that they read come along.

    Raises:
        EditError: nothing that the nodes make could be an output.
        NameLookupError: a node is not in the model any more.
    """
    if gone := [ident for ident in nodes if ident not in graph.nodes]:
        raise NameLookupError(f"node {gone[0]} is not in the model any more")
    if len({graph.nodes[ident].scope for ident in nodes}) > 1:
        raise EditError("the selected nodes are in different graphs; select nodes of one graph")
    sides = cones.boundary(graph, nodes)
    outputs = [Value(graph, ident) for ident in (*sides.outputs, *sides.unused) if ident in graph.values]
    if not outputs:
        raise EditError("nothing that the selected nodes make is read elsewhere; select nodes with an output")
    return outputs, [Value(graph, ident) for ident in sides.inputs if not _constants(graph, [ident])]


def _constants(graph: ModelGraph, values: list[int]) -> set[int]:
    """Ids of the Constant nodes that make some of the values."""
    makers = (producer for value in values for producer, _ in graph.values[value].producers)
    return {maker for maker in makers if is_constant(graph.nodes[maker])}


def _preview_of_part(model: "Model", part: list[int]) -> JSON:
    graph = model.graph
    outputs, inputs = borders(graph, part)
    sides = cones.boundary(graph, part)
    along = {*part, *_constants(graph, list(sides.inputs))}
    around = graph.scopes[graph.nodes[part[0]].scope].node_ids

    def typed(values: list[Value]) -> list[str]:
        return [f"{value.name} {model.fact(value)}" for value in values]

    return {
        "nodes": [ident for ident in around if ident not in along],
        "kept": len(along),
        "stored": len(sides.initializers),
        "outputs": typed(outputs),
        "inputs": typed(inputs),
        "lost_outputs": [],
        "lost_inputs": [],
        "siblings": [],
    }
