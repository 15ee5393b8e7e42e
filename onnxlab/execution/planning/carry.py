"""The difference of two snapshots, by which what was made of the first is carried over to the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxlab.graph.edit.snapshot import NodeView, Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """Edits that left all nodes and names of a model where they were.

    Attributes:
        nodes: (before, now) of the nodes that differ, which they do in attributes, operator and name alone.
        tensors: ids of the initializers with other data.
    """

    nodes: list[tuple[NodeView, NodeView]]
    tensors: list[int]


def difference(old: Snapshot, new: Snapshot) -> SnapshotDiff | None:
    """The difference of two snapshots of a model; None where more than nodes and data of initializers changed."""
    nodes = _changed_nodes(old.main.nodes, new.main.nodes) if _same_structure(old, new) else None
    return None if nodes is None else SnapshotDiff(nodes, new.other_tensors(old))


def _same_structure(old: Snapshot, new: Snapshot) -> bool:
    """Whether everything but nodes and tensors is the same."""
    a, b = old.main, new.main
    if a is b and len(old.scopes) == len(new.scopes) == 1:
        return True
    same = a.inputs == b.inputs and a.input_ids == b.input_ids and a.opsets == b.opsets
    return same and a.initializers == b.initializers and _same_scopes(old, new, a.id)


def _same_scopes(old: Snapshot, new: Snapshot, main: int) -> bool:
    """Whether bodies and functions are untouched."""
    return len(old.scopes) == len(new.scopes) and all(
        new.scopes.get(ident) is view
        and all(old.tensor(value) is new.tensor(value) for value in view.initializers.values())
        for ident, view in old.scopes.items() if ident != main
    )  # fmt: skip


def _changed_nodes(old: Sequence[NodeView], new: Sequence[NodeView]) -> list[tuple[NodeView, NodeView]] | None:
    """(before, now) of the changed nodes; None where one differs in more than attributes, operator and name."""
    if old is new or old == new:  # views are equal where they are the same
        return []
    if len(old) != len(new):
        return None
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a is not b]
    return pairs if all(_alike(a, b) for a, b in pairs) else None


def _alike(a: NodeView, b: NodeView) -> bool:
    """Whether a node has the same inputs and outputs as before, and no bodies."""
    same = a.id == b.id and a.input_ids == b.input_ids and a.output_ids == b.output_ids
    return same and a.inputs == b.inputs and a.outputs == b.outputs and not (a.attributes.bodies or b.attributes.bodies)
