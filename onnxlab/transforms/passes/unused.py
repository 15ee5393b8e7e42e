"""Dead code: nodes that no output depends on, and initializers and functions that nothing uses."""

from onnxlab.graph import edits
from onnxlab.transforms.rewriting import Rewriting

NAME = "dead code elimination"


def run(rewriting: Rewriting) -> None:
    """Take out what is not used."""
    graph = rewriting.graph
    for count, what in (
        (edits.drop_dead_nodes(graph), "nodes that no output depends on"),
        (edits.drop_unused_initializers(graph), "initializers that nothing reads"),
        (edits.drop_unused_functions(graph), "functions that nothing calls"),
    ):
        if count:
            rewriting.note(NAME, f"{count} {what}", "taken out")
