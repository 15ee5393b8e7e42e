"""Texts that are split into words, whose n-grams are counted: one node makes no array of words in between."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from onnxlab.execution.planning.inlining import Fixed
from onnxlab.execution.planning.passes.pass_list import NodeList, NodePass
from onnxlab.ops.microsoft.text_counts import counted


class CountedTexts(NodePass):
    """N-grams of vectors of texts, counted at once."""

    def run(self, draft: NodeList) -> NodeList:
        """The nodes with which texts are counted; those that made words are left out afterwards."""
        functions = {key[:2] for key in draft.scope.compiler.snapshot.functions}
        compiled = any(provider.capabilities.own_threads for provider in draft.scope.compiler.providers)
        nodes, facts = counted(
            draft.nodes, draft.scope.reads, draft.seen, functions,
            lambda name: draft.fact(name).rank == 1 and draft.fact(name).dtype == object,
            Fixed, draft.scope.ids if compiled else None,
        )  # fmt: skip
        listed = chain.from_iterable(nodes.get(node, (node,)) for node in draft.nodes)
        return (
            replace(draft, nodes=tuple(listed), fact=lambda name: facts.get(name) or draft.fact(name))
            if nodes
            else draft
        )
