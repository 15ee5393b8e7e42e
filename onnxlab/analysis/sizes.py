"""Sizes for the symbols of a model's inputs, where questions about memory and cost need numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab.errors import Diagnostic
from onnxlab.execution.base.synthetic_inputs import free_sizes, observe
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.questions.what_if import input_facts
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.walker import Walker

BATCH = 1
"""Size of a symbol that first occurs as the first axis, where nothing tells it: one image, one sentence."""


def chosen_sizes(
    graph: ModelGraph, policy: Policy, dims: Mapping[str, int], arrays: Mapping[str, Any]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Sizes of all symbols, and the symbols whose sizes were assumed.

    Args:
        dims: sizes that are given.
        arrays: of inputs by name, which tell sizes of symbols that are not given.
    """
    facts = input_facts(graph, policy)
    known: dict[str, int] = {}
    for vid, fact in facts.items():
        name = graph.values[vid].name
        if name in arrays:
            observe(fact, arrays[name], known)
    known.update(dims)
    sizes = free_sizes(facts.values(), known, BATCH)
    return sizes, tuple(name for name in sizes if name not in known)


def refusals(walker: Walker, frame: FactFrame) -> tuple[Diagnostic, ...]:
    """The errors of an inference, those inside of called functions included."""
    frames = [frame, *(call.frame for call in walker.calls.alive(frame).values())]
    problems = (problem for part in frames for problem in walker.diagnostics(part))
    return tuple(problem for problem in problems if problem.severity == "error")


def described(sizes: Mapping[str, int], assumed: tuple[str, ...]) -> str:
    """'batch=1 (assumed), seq=8: ', "" without any."""
    words = [f"{name}={size}{' (assumed)' if name in assumed else ''}" for name, size in sizes.items()]
    return ", ".join(words) + ": " if words else ""
