"""Differences of two snapshots of a model: whether an edit left all nodes and names where they were."""

from __future__ import annotations

from collections.abc import Sequence

from onnxlab.graph.edit.snapshot import NodeView, Snapshot


def same_bindings(old: Snapshot, new: Snapshot) -> bool:
    """Whether every value of the main graph has the name and id that it had."""
    return same_structure(old, new) and changed_nodes(old.main.nodes, new.main.nodes) is not None


def same_structure(old: Snapshot, new: Snapshot) -> bool:
    """Whether everything but nodes and tensors is the same."""
    a, b = old.main, new.main
    if a is b and len(old.scopes) == len(new.scopes) == 1:
        return True
    return (
        a.inputs == b.inputs
        and a.input_ids == b.input_ids
        and a.opsets == b.opsets
        and a.initializers == b.initializers
        and _same_scopes(old, new, a.id)
    )


def _same_scopes(old: Snapshot, new: Snapshot, main: int) -> bool:
    """Whether bodies and functions are untouched."""
    if len(old.scopes) != len(new.scopes):
        return False
    for ident, view in old.scopes.items():
        if ident == main:
            continue
        if new.scopes.get(ident) is not view:
            return False
        if any(old.tensor(value) is not new.tensor(value) for value in view.initializers.values()):
            return False
    return True


def changed_nodes(old: Sequence[NodeView], new: Sequence[NodeView]) -> list[tuple[NodeView, NodeView]] | None:
    """Nodes that differ in no more than attributes, operator and name, as [(old, new)]; None where others do."""
    if old is new or old == new:  # views are equal where they are the same
        return []
    if len(old) != len(new):
        return None
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a is not b]
    for a, b in pairs:
        if a.id != b.id or a.input_ids != b.input_ids or a.output_ids != b.output_ids or a.inputs != b.inputs:
            return None
        if a.outputs != b.outputs or a.attributes.bodies or b.attributes.bodies:
            return None
    return pairs
