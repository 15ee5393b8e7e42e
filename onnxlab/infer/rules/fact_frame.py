"""Frames of facts while a graph is walked: one for the model, one for each distinct call of a function.

Subgraphs share the frame of the graph around them, because the ids of values are unique and captures are read there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import onnx

from onnxlab.infer.rules.operators import Problem
from onnxlab.shapes import UNKNOWN, Fact


@dataclass(slots=True, eq=False)
class FactFrame:
    """Facts by value id.

    Attributes:
        call: identity of the call, None for the model itself; part of the identity of unknown dims.
        attributes: attributes of the call, by name, the function's defaults included.
        attribute_key: bytes that identify these attributes.
        problems: what is wrong, by node id.
        changed: {value id: the fact before} since the frame was asked to record, None while it is not.
        evaluated: how many nodes were inferred in it.
        walked: ids of the subgraphs whose values may have facts in it.
    """

    call: Hashable = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    attribute_key: bytes = b""
    facts: dict[int, Fact] = field(default_factory=dict)
    problems: dict[int, tuple[Problem, ...]] = field(default_factory=dict)
    changed: dict[int, Fact] | None = None
    evaluated: int = 0
    walked: set[int] = field(default_factory=set)

    def set(self, value: int, fact: Fact) -> bool:
        """Keep a fact; True where it is another one than before."""
        old = self.facts.get(value, UNKNOWN)
        if old is fact:
            self.facts[value] = fact
            return False
        if self.changed is not None:
            self.changed.setdefault(value, old)
        self.facts[value] = fact
        return True

    def drop(self, value: int) -> None:
        """Forget a value; it counts as changed to UNKNOWN."""
        old = self.facts.pop(value, UNKNOWN)
        if self.changed is not None and old is not UNKNOWN:
            self.changed.setdefault(value, old)
