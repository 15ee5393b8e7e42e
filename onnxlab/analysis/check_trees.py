"""Checks of tree ensembles: whether the lists of a node are trees."""

from typing import TYPE_CHECKING

from onnxlab.analysis.findings import Findings
from onnxlab.analysis.tree_ensembles import is_ensemble, refuse_lists
from onnxlab.errors import OnnxlabError
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.index.records import NodeRecord

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph

CODE = "tree-ensemble"


def check_trees(graph: "ModelGraph", node: NodeRecord, findings: Findings) -> None:
    """Problems of the lists of a tree ensemble; of what is no list, or not there, other checks speak."""
    if node.domain != "ai.onnx.ml" or not is_ensemble(node.op_type):
        return
    try:
        refuse_lists(node.op_type, Node(graph, node.id).attributes)
    except (OnnxlabError, TypeError, AttributeError, KeyError):
        return
    except ValueError as error:
        findings.error(
            CODE, f"{graph.label(node)} ({node.op_type}) holds no trees: {error}",
            "set the lists to those of the trees: each list of nodes has an entry for every node", "trees", str(error),
        )  # fmt: skip
