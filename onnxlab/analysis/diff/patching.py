"""Applying the difference of two models to a model, as one edit."""

from __future__ import annotations

import onnx

from onnxlab.analysis.diff.becoming import Becoming
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.identical import identical, same_elements, same_folder, same_places
from onnxlab.analysis.diff.matching import GraphMatching, match
from onnxlab.analysis.diff.transfer import Transfer
from onnxlab.argument_types import expect
from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.external_data import all_tensors, is_external


def patch(graph: ModelGraph, diff: Diff, *, strict: bool = True, label: str = "") -> list[str]:
    """Make the changes of a difference to a model.

    The model that the difference begins with becomes the other one, to the byte, unless something was ignored. In any
    other model, the nodes and values that correspond to the first one by structure are changed, and the edit is judged
    like every edit.

    Args:
        strict: refuse where something that changed is not in this model, or was changed in it too; False makes the
            other changes, and in conflicts those of the difference.
        label: of the step in the history.

    Returns:
        list[str]: labels of what the difference changes and this model does not have, and of conflicts.

    Raises:
        EditError: something is missing, both changed one thing, the models of the difference were edited since, or the
            result is not valid.
        LoadError: a data file of the second model, which lies in another folder, cannot be read.
    """
    expect(diff, Diff, "diff", "the difference of two models, as onnxlab.diff(a, b) makes it")
    if (diff.a.version, diff.b.version) != diff.versions:
        raise EditError("one of the models was edited after the difference was taken; take it again")
    label = label or "patch"
    with graph.lock:
        diff = _carried(diff, graph)
        same = graph is diff.a or identical(graph, diff.a)
        if same and not diff.ignored:
            if graph.read_only:
                raise EditError(graph.read_only)
            matching = diff.matching
            if graph is not diff.a:
                same_pairs = same_places(diff.a, graph)
                matching = _through(same_pairs, diff)
            if not identical(graph, diff.b):
                graph.replay(label, Becoming(graph, diff.b, matching).steps())
            return []
        diff = _apart(diff, graph)
        matching = same_places(diff.a, graph) if same else match(diff.a, graph)
        with graph.edit(label) as edit:
            transfer = Transfer(diff, graph, matching, edit.apply)
            transfer.run()
            if strict:
                _refuse(transfer.missing, transfer.conflicts)
        return transfer.missing + transfer.conflicts


def _carried(diff: Diff, graph: ModelGraph) -> Diff:
    """The difference, with what lies in data files of the second model read in where this model would not find it."""
    b, proto = diff.b, onnx.ModelProto()
    if b.base_dir is None or same_folder(graph.base_dir, b.base_dir) or not any(map(is_external, all_tensors(b.proto))):
        return diff
    proto.CopyFrom(b.proto)
    count = 0
    for tensor in filter(is_external, list(all_tensors(proto))):
        if not same_elements(tensor, graph.base_dir, b.base_dir):
            tensor.CopyFrom(tensors.read_in(tensor, b.base_dir))
            count += 1
    return Diff(diff.a, ModelGraph(proto, b.base_dir, shared=False), diff.ignored, diff.tolerance) if count else diff


def _apart(diff: Diff, graph: ModelGraph) -> Diff:
    """The difference, of a copy where one of its models is the graph that is about to change."""
    if graph is not diff.a and graph is not diff.b:
        return diff
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    copy = ModelGraph(proto, graph.base_dir, shared=False)
    a, b = (copy if side is graph else side for side in (diff.a, diff.b))
    return Diff(a, b, diff.ignored, diff.tolerance)


def _through(pairs: GraphMatching, diff: Diff) -> GraphMatching:
    """The pairs of a difference, of a model that is equal to its first one."""
    matching = GraphMatching()
    matching.nodes = {pairs.nodes[ident]: other for ident, other in diff.matching.nodes.items() if ident in pairs.nodes}
    matching.values = {
        pairs.values[ident]: other for ident, other in diff.matching.values.items() if ident in pairs.values
    }
    matching.scopes = {
        pairs.scopes[ident]: other for ident, other in diff.matching.scopes.items() if ident in pairs.scopes
    }
    return matching


def _refuse(missing: list[str], conflicts: list[str]) -> None:
    """Raise EditError where a difference changes what is not there, or what was changed here too."""
    if missing:
        raise EditError(
            f"the difference changes what this model does not have: {_first(missing)}; "
            "patch(strict=False) makes the other changes"
        )
    if conflicts:
        raise EditError(
            f"a conflict: the difference changes what this model has otherwise than both models: {_first(conflicts)}; "
            "patch(strict=False) takes it from the difference"
        )


def _first(labels: list[str]) -> str:
    return ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
