"""Texts that are split into words, whose n-grams are counted: one node makes no array of words in between."""

from __future__ import annotations

from dataclasses import replace

from onnxlab.execution.planning.inlining import Fixed
from onnxlab.execution.planning.passes.pass_list import NodeList, NodePass
from onnxlab.ops.microsoft.text_counts import OWN, TEXT_COUNTS, counted


class CountedTexts(NodePass):
    """N-grams of vectors of texts, counted at once."""

    def run(self, draft: NodeList) -> NodeList:
        """The nodes with which texts are counted; those that made words are left out afterwards."""
        functions = {key[:2] for key in draft.scope.compiler.snapshot.functions}
        nodes = counted(
            draft.nodes, draft.scope.reads, draft.seen, functions,
            lambda name: draft.fact(name).rank == 1 and draft.fact(name).dtype == object,
            lambda node, texts, attributes: replace(
                node, domain=OWN, op_type=TEXT_COUNTS, since_version=1, inputs=(texts,), input_ids=(0,),
                attributes=Fixed(attributes)),
        )  # fmt: skip
        return replace(draft, nodes=tuple([nodes.get(node, node) for node in draft.nodes])) if nodes else draft
