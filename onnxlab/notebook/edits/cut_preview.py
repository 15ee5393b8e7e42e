"""The effect of a cut of the model, before it is made."""

from typing import TYPE_CHECKING

from onnxlab.errors import EditError
from onnxlab.graph.edits import plan_behind, plan_cut
from onnxlab.notebook.edits.kinds import chosen_value
from onnxlab.notebook.protocol.messages import JSON

if TYPE_CHECKING:
    from onnxlab.model import Model


def preview(model: "Model", outputs: list[int], inputs: list[int], siblings: bool, behind: bool) -> JSON:
    """The effect of a cut at values; with `behind`, of removing all that depends on the first of `outputs`.

    Raises:
        EditError: the cut is refused.
        NameLookupError: a value is not in the model any more.
    """
    graph = model.graph
    ends, starts = ([graph.values[chosen_value(model, ident).id] for ident in side] for side in (outputs, inputs))
    if behind and not ends:
        raise EditError("no value was chosen; choose the one behind which all goes")
    planned = plan_behind(graph, ends[0]) if behind else plan_cut(graph, ends, starts, siblings)

    def names(ids: tuple[int, ...]) -> list[str]:
        return [graph.values[ident].name for ident in ids]

    return {
        "nodes": list(planned.nodes),
        "outputs": names(planned.outputs),
        "inputs": names(planned.inputs),
        "lost_outputs": names(planned.lost_outputs),
        "lost_inputs": names(planned.lost_inputs),
        "siblings": list(planned.siblings),
    }
