"""Plans again with other weights: an edit of what is only packed packs it anew and lowers nothing.

A plan is remembered with the constants that it was made from. The plan is reused, with the addresses of changed
constants exchanged, where a later region has the same nodes, the call has the same shapes, and the elements of the
changed constants were only read to pack them. After any other edit, another plan is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxlab.execution.numba.plan.plan import Plan
from onnxlab.execution.numba.plan.views import Array
from onnxlab.execution.numba.plan.weight_packing import Packed
from onnxlab.graph.edit.snapshot import NodeView


@dataclass(frozen=True, slots=True)
class Bound:
    """A plan without the memory of its runs, and what it was made of.

    Attributes:
        nodes: nodes of the region at that time.
        constants: {name: array}.
        looked: names of constants whose elements may be part of the plan.
    """

    plan: Plan
    nodes: tuple[NodeView, ...]
    constants: Mapping[str, Array]
    looked: frozenset[str]
    packed: Packed


def remember(
    packed: Packed,
    key: Any,
    nodes: tuple[NodeView, ...],
    plan: Plan,
    constants: Mapping[str, Array],
    looked: frozenset[str],
) -> None:
    """Remember a plan that depends on `key`, nodes and constants alone; it replaces the plan before an edit.

    The key has the ids of nodes, so that plans of earlier versions of these nodes are dropped.
    """
    packed.shared.bound.keep(key, Bound(plan.exchanged(()), nodes, constants, looked, packed))


def renewed(packed: Packed, key: Any, nodes: tuple[NodeView, ...], constants: Mapping[str, Array]) -> Plan | None:
    """The remembered plan for `key` and these nodes, with these constants; None where no plan can be reused."""
    before: Bound | None = packed.shared.bound.get(key)
    if before is None or before.nodes != nodes or before.constants.keys() != constants.keys():
        return None
    old = {name: array for name, array in before.constants.items() if array is not constants[name]}
    for name, array in old.items():
        now = constants[name]
        if name in before.looked or (array.shape, array.dtype) != (now.shape, now.dtype):
            return None
    pairs = packed.renewed(before.packed, constants, old)
    plan = before.plan.exchanged((then.buffer.array, now.buffer.array) for then, now in pairs)  # type: ignore[misc]
    remember(packed, key, nodes, plan, constants, before.looked)
    return plan
