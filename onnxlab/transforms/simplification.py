"""`simplify`: the passes that leave less of a model without changing what it computes, as one step of the history."""

from collections.abc import Callable, Collection
from types import ModuleType
from typing import Final

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant
from onnxlab.shapes import Fact
from onnxlab.transforms.passes import constant_folding, duplicates, fusions, known_shapes, no_ops, pairs, unused
from onnxlab.transforms.rewriting import Compute, Rewriting

PASSES: Final[dict[str, ModuleType]] = {
    "known_shapes": known_shapes,
    "constant_folding": constant_folding,
    "no_ops": no_ops,
    "pairs": pairs,
    "fusions": fusions,
    "duplicates": duplicates,
    "unused": unused,
}
"""The passes of `simplify` in their order, by name."""

_ORDER: Final = (
    "known_shapes", "constant_folding", "no_ops", "pairs", "no_ops", "fusions", "duplicates", "pairs", "unused",
)  # fmt: skip

BUDGET: Final = 1 << 20
"""Bytes that folding may add to a model unless told otherwise."""


def rewrite(
    graph: ModelGraph,
    fact: Callable[[int], Fact],
    compute: Compute,
    passes: Collection[str] = tuple(PASSES),
    protected: Collection[str] = (),
    budget: int = BUDGET,
) -> Rewriting:
    """Run passes over the main graph, inside of an edit that is open; returns what was done.

    Args:
        graph: the model.
        fact: what inference knows of a value id.
        compute: arrays of values that depend on no input.
        passes: names of those to run.
        protected: names of nodes and values that stay as they are.
        budget: bytes that folding may add.
    """
    rewriting = Rewriting(graph, fact, compute, frozenset(protected), budget)
    for name in _ORDER:
        if name in passes:
            PASSES[name].run(rewriting)
    return rewriting


def count_nodes(graph: ModelGraph) -> int:
    """How many nodes the main graph has, Constant not counted."""
    return sum(not is_constant(graph.nodes[node]) for node in graph.main.node_ids)
