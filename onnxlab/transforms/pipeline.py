"""Pipelines of `simplify`, `optimize` and `rewrite`: rules and passes over a model, inside of an edit that is open."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Final

from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant, numbers_of
from onnxlab.graph.protos import tensors
from onnxlab.shapes import Fact
from onnxlab.transforms.passes import (
    constant_folding,
    control_flow,
    duplicates,
    known_shapes,
    unused,
    worklist,
)
from onnxlab.transforms.passes.worklist import Rules
from onnxlab.transforms.rewriting import Compute, RewriteOptions, Rewriting
from onnxlab.transforms.rules.rule import AnyRule
from onnxlab.transforms.rules.user_rules import RuleSource, rules_from, sources_of

PASSES: Final[dict[str, ModuleType]] = {
    "known_shapes": known_shapes,
    "control_flow": control_flow,
    "constant_folding": constant_folding,
    "duplicates": duplicates,
    "unused": unused,
}
"""The passes over the whole graph, by name."""

PASS_OF: Final[dict[str, str]] = {name: key for key, module in PASSES.items() for name in module.NAMES}
"""The pass by the name of its applications."""

MOST_ROUNDS: Final = 4
"""Rounds of passes and rules at most; a round that changes nothing ends them."""

Pipeline = Callable[[Rewriting], None]
"""A function that rewrites a graph inside of an open edit."""


def standard(rules: Sequence[AnyRule], passes: Collection[str] = tuple(PASSES)) -> Pipeline:
    """A plan: rules and passes in turn, until nothing changes."""
    table = Rules(rules)

    def plan(rewriting: Rewriting) -> None:
        for _ in range(MOST_ROUNDS):
            before = len(rewriting.applied)
            for name in ("known_shapes", "control_flow", "constant_folding"):
                if name in passes:
                    PASSES[name].run(rewriting)
            worklist.run(rewriting, table)
            if "duplicates" in passes:
                duplicates.run(rewriting)
            if "unused" in passes:
                unused.run(rewriting)
            if len(rewriting.applied) == before:
                return

    return plan


def only(rules: Sequence[AnyRule]) -> Pipeline:
    """A plan: apply these rules, then take out what they left unused."""
    table = Rules(rules)

    def plan(rewriting: Rewriting) -> None:
        worklist.run(rewriting, table)
        if rewriting.applied:
            unused.run(rewriting)

    return plan


def asked(sources: RuleSource | Iterable[RuleSource]) -> tuple[Pipeline, list[AnyRule]]:
    """The plan of rules, and of passes given by name; and the rules.

    Raises:
        TransformError: a text or name is no rule, or a file has no rules or cannot be read; the message says where.
    """
    several = sources_of(sources)
    passes = [source for source in several if isinstance(source, str) and source in PASSES]
    rules = rules_from([source for source in several if not (isinstance(source, str) and source in PASSES)])
    return (standard(rules, {*passes, "unused"}) if passes else only(rules)), rules


def rewrite(
    graph: ModelGraph, facts: Mapping[int, Fact], compute: Compute, plan: Pipeline, options: RewriteOptions
) -> Rewriting:
    """Follow a plan, inside of an edit that is open; returns the rewriting with its applications.

    Args:
        graph: the model.
        facts: what inference knows, by value id.
        compute: arrays of values that depend on no input.
        plan: the rewriting to do.
        options: the limits of it.
    """
    rewriting = Rewriting(graph, facts, compute, options)
    plan(rewriting)
    return rewriting


def count_bytes(graph: ModelGraph) -> int:
    """The bytes of the stored tensors of the graphs, bodies and functions included, by their types and shapes."""
    total = 0
    for value in graph.values.values():
        tensor = value.tensor
        if tensor is None and value.producers and is_constant(node := graph.nodes[value.producers[0][0]]):
            for attribute in node.proto.attribute:
                if (numbers := numbers_of(attribute)) is not None:
                    total += numbers.nbytes
                elif attribute.HasField("t"):
                    tensor = attribute.t
        try:
            total += 0 if tensor is None else tensors.nbytes(tensor)
        except LoadError:
            continue  # a damaged tensor has no size
    return total


def count_nodes(graph: ModelGraph) -> int:
    """The number of nodes in the graphs, bodies and functions included, Constant not counted."""
    training = {scope.id for scope in graph.scopes.values() if scope.kind == "training"}
    return sum(not is_constant(node) and node.scope not in training for node in graph.nodes.values())


def count_constants(graph: ModelGraph) -> int:
    """The number of Constant nodes in the graphs, bodies and functions included."""
    training = {scope.id for scope in graph.scopes.values() if scope.kind == "training"}
    return sum(is_constant(node) and node.scope not in training for node in graph.nodes.values())
