"""Classifiers with labels that are strings: what chooses places in a table of these runs compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onnxlab import dtypes
from onnxlab.execution.planning.inlining import Fixed
from onnxlab.execution.planning.passes.pass_list import Additions, NodeList, NodePass
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.ml.labels import TABLE, numbered
from onnxlab.shapes import TensorFact


class NumberedLabels(NodePass):
    """Classifiers that choose places in a table of strings, and the table."""

    def run(self, draft: NodeList) -> NodeList:
        """The nodes with tables; `draft` where no classifier has labels that are strings."""
        divided = {node: parts for node in draft.nodes
                   if node.domain and (parts := numbered(node.domain, node.op_type, node.attributes))
                   and any(node.outputs[:1])
                   and (node.domain, node.op_type, node.overload) not in draft.scope.compiler.snapshot.functions
                   }  # fmt: skip
        if not divided:
            return draft
        added, nodes = Additions(draft), list[NodeView]()
        for node in draft.nodes:
            nodes += _with_table(node, *divided[node], added) if node in divided else [node]
        return replace(draft, nodes=tuple(nodes), fact=added.fact)


def _with_table(node: NodeView, classifier: Any, table: Any, added: Additions) -> list[NodeView]:
    """The classifier, and the table behind it, with these attributes."""
    place = added.name(f"place of {node.outputs[0]}")
    added.facts[place] = TensorFact(dtypes.INT64, added.fact(node.outputs[0]).shape)
    return [
        replace(node, outputs=(place, *node.outputs[1:]), output_ids=(0, *node.output_ids[1:]),
                attributes=Fixed(classifier, node.attributes)),  # type: ignore[arg-type]
        replace(node, id=next(added.ids), op_type=TABLE, since_version=1, inputs=(place,), input_ids=(0,),
                outputs=node.outputs[:1], output_ids=node.output_ids[:1],
                attributes=Fixed(table)),  # type: ignore[arg-type]
    ]  # fmt: skip
