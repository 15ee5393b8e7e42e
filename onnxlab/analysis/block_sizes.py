"""The doubt about models whose images lie in blocks of channels of a size that nothing in the model tells."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.ops.base.image_layouts import BLOCKED, BLOCKS
from onnxlab.ops.nchwc.images import VARIABLE, block_size
from onnxlab.shapes import UNKNOWN, Fact

CODE = "block-size"


def doubts(graph: ModelGraph, inference: Inference) -> list[Diagnostic]:
    """A warning where the model may have been saved with blocks of several sizes, which mean different numbers."""
    if all(entry.domain != BLOCKED for entry in graph.header.opset_import):
        return []
    first = next((node for node in graph.nodes.values() if node.domain == BLOCKED), None)
    if first is None:
        return []
    from onnxlab.execution.planning.block_size import BlockSize  # loading a model needs nothing of running it

    evidence = BlockSize()
    with graph.lock:
        for scope in graph.snapshot().scopes.values():
            evidence.look(scope.nodes, partial(_fact, inference, graph.scopes[scope.id].names))
    if evidence.evidence:
        return []
    sizes = " or ".join(map(str, BLOCKS))
    return [
        Diagnostic(
            "warning", CODE, f"nothing in the model tells whether its channels lie in blocks of {sizes}: runs take "
            f"{block_size()}, as ONNX Runtime on this processor would", first.id, 0, first.scope, sizes, "no evidence",
            f"set the environment variable {VARIABLE} where the model was saved on another kind of processor",
        )
    ]  # fmt: skip


def _fact(inference: Inference, names: Mapping[str, int], name: str) -> Fact:
    """The fact of a value of a scope, by name."""
    value = names.get(name)
    return UNKNOWN if value is None else inference.fact(value)
