"""Provenance: the parts of a node's inputs that decide a part of its output, found by asking the rule again.

Inference records no provenance. To find where a dim comes from, the node's rule is called again with each dim or
element of its inputs in turn replaced by a probe, a symbol that occurs nowhere else: the dim depends on the inputs
whose probes change the result. This works for every rule, those of onnx included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator
from onnxlab.infer.walk.input_masks import Inputs
from onnxlab.infer.walk.walker import Walker
from onnxlab.shapes import UNKNOWN, Fact, KnownValue, SparseTensorFact, TensorFact, symbol

MAX_PROBES = 512
"""The most dims and elements of one node's inputs that are replaced by probes one by one."""

Kind = Literal["dim", "element", "rank"]


@dataclass(frozen=True, slots=True)
class FactPart:
    """A part of a fact: the dim of axis `index`, the element at flat position `index`, or the rank (index 0)."""

    kind: Kind
    index: int = 0

    def of(self, fact: Fact | None) -> object:
        """The value of this part in a fact: a Dim, an element, the rank; None where it is unknown."""
        shape = fact.shape if fact is not None else None
        if self.kind == "rank":
            return None if shape is None else len(shape)
        if self.kind == "dim":
            return shape[self.index] if shape is not None and self.index < len(shape) else None
        known = fact.known if isinstance(fact, TensorFact) else None
        return known.items[self.index] if known is not None and self.index < len(known.items) else None


Place = tuple[int, FactPart]
"""A part of a node's input, or output: (slot, part)."""


def dependencies(walker: Walker, frame: FactFrame, node: NodeRecord, operator: Operator, place: Place) -> list[Place]:
    """Parts of the inputs that decide a part of an output; empty where attributes alone do, or it cannot be told.

    Where a rule requires dims to be equal, a probe for one of them alone tells nothing: equal dims are then replaced
    together.
    """
    inputs: Inputs = tuple([frame.facts.get(vid, UNKNOWN) if vid else None for vid in node.inputs])
    slot, part = place

    def asked(probed: Inputs) -> object:
        outcome = walker.outcome(frame, node, operator, probed)
        refused = any(problem.severity == "error" for problem in outcome.problems)
        return before if refused else part.of(outcome.facts[slot])

    before: object = None
    before = asked(inputs)
    places = list(_parts(inputs))[:MAX_PROBES]
    sources = [source for source in places if _differ(before, asked(_probed(inputs, [source])))]
    sources += [
        source for source in _dims_of_known(inputs, sources) if _differ(before, asked(_probed(inputs, [source])))
    ]
    for equal in _groups(inputs, places):
        if not any(source in sources for source in equal) and _differ(before, asked(_probed(inputs, equal))):
            sources.extend(equal)
    if not sources:
        sources = [
            (at, FactPart("rank")) for at in _known_slots(inputs) if _differ(before, asked(_without(inputs, at)))
        ]
    return sorted(sources, key=lambda source: (source[0], source[1].kind, source[1].index))


def _differ(before: object, after: object) -> bool:
    return type(before) is not type(after) or (before is not after and before != after)


def _parts(inputs: Inputs) -> Iterator[Place]:
    """Elements where they are known, else dims: readers of elements depend little on how many there are."""
    for slot, fact in enumerate(inputs):
        if isinstance(fact, TensorFact) and fact.known is not None:
            for index in range(len(fact.known.items)):
                yield slot, FactPart("element", index)
        elif fact is not None:
            for axis in range(len(fact.shape or ())):
                yield slot, FactPart("dim", axis)


def _dims_of_known(inputs: Inputs, sources: Iterable[Place]) -> list[Place]:
    """Dims of the inputs whose elements are known and do not count."""
    seen = {slot for slot, _ in sources}
    return [
        (slot, FactPart("dim", axis))
        for slot, fact in enumerate(inputs)
        if slot not in seen and isinstance(fact, TensorFact) and fact.known is not None
        for axis in range(len(fact.shape or ()))
    ]


def _groups(inputs: Inputs, places: Iterable[Place]) -> Iterator[list[Place]]:
    """Places with the same dim, where there are several."""
    by_dim: dict[object, list[Place]] = {}
    for slot, part in places:
        if part.kind == "dim":
            by_dim.setdefault(part.of(inputs[slot]), []).append((slot, part))
    return (group for group in by_dim.values() if len(group) > 1)


def _probed(inputs: Inputs, places: Iterable[Place]) -> Inputs:
    """The inputs with one probe at all these places."""
    probed = list(inputs)
    for slot, part in places:
        fact = probed[slot]
        probe = symbol("probe", key=("probe", part.kind))
        if isinstance(fact, TensorFact) and part.kind == "element" and fact.known is not None:
            items = list(fact.known.items)
            items[part.index] = probe
            probed[slot] = TensorFact(
                fact.elem_type, fact.shape, KnownValue(fact.known.kind, fact.known.shape, tuple(items))
            )
        elif isinstance(fact, (TensorFact, SparseTensorFact)) and fact.shape is not None:
            dims = (*fact.shape[: part.index], probe, *fact.shape[part.index + 1 :])
            probed[slot] = type(fact)(fact.elem_type, dims)
    return tuple(probed)


def _known_slots(inputs: Inputs) -> list[int]:
    return [slot for slot, fact in enumerate(inputs) if fact is not None and fact is not UNKNOWN]


def _without(inputs: Inputs, slot: int) -> Inputs:
    fact = inputs[slot]
    open_ = TensorFact(fact.elem_type) if isinstance(fact, TensorFact) else UNKNOWN
    return (*inputs[:slot], open_, *inputs[slot + 1 :])
