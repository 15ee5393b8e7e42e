"""Explanations of dims: the way from a value back to a declaration, or to the operator that lost the dim.

`explain` walks from producer to producer, at each node asking its rule which parts of the inputs decide the part in
question (`provenance.py`); into bodies and functions and out again. `str()` of the answer is for people.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import onnx

from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import decode, kind_of
from onnxlab.infer.facts.policy import is_unknown
from onnxlab.infer.questions.provenance import FactPart, dependencies
from onnxlab.infer.questions.unknown_dims import loss
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator
from onnxlab.infer.walk.walker import Walker
from onnxlab.printable import printable_lines
from onnxlab.shapes import UNKNOWN, Expr, Fact, MapFact, OptionalFact, SequenceFact

MAX_STEPS = 400
MAX_LINES = 40


@dataclass(frozen=True, slots=True)
class ExplanationStep:
    """One value on the way.

    Attributes:
        value: id of the value; `name` its name, with brackets for the part: "flat[0]".
        node: id of the node that makes it, 0 for an input or initializer.
        what: what the part is: "batch*seq", "unknown".
        how: where the part comes from, as a phrase.
        lost: why the part is unknown, in the step that loses it; "" elsewhere.
        edits: labels of the edits that touched the value or its node, oldest first.
        sources: positions, in the explanation, of the steps that the part follows from.
        passes: whether the part is taken over from its sources as it is.
    """

    value: int
    name: str
    node: int
    what: str
    how: str
    lost: str = ""
    edits: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    passes: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps from a value back to where what is known of it comes from; the first is the value itself."""

    name: str
    fact: Fact
    steps: tuple[ExplanationStep, ...] = field(repr=False, default=())

    @property
    def losses(self) -> tuple[ExplanationStep, ...]:
        """The steps at which something was lost, the one nearest to the model's inputs last."""
        return tuple(step for step in self.steps if step.lost)

    @property
    def first_loss(self) -> ExplanationStep | None:
        """The first loss, seen from the model's inputs; None where nothing was lost."""
        return self.losses[-1] if self.losses else None

    @property
    def edits(self) -> tuple[str, ...]:
        """Labels of the edits on the way, each once."""
        return tuple(dict.fromkeys(label for step in self.steps for label in step.edits))

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.fact}"]
        if (first := self.first_loss) is not None:
            lines.append(f"  lost first at {first.name}: {first.lost}")
        passed: list[ExplanationStep] = []
        for number, step in enumerate(self.steps):
            if len(lines) > MAX_LINES:
                return printable_lines([*lines, f"  … and {len(self.steps) - number} more, see .steps"])
            if step.passes and not step.edits and not step.lost:
                passed.append(step)
                continue
            lines += [*_passed(passed), f"  {step.name} = {step.what}: {step.how}", *_notes(step)]
            passed = []
        return printable_lines([*lines, *_passed(passed)])

    def _repr_mimebundle_(self, **_options: object) -> dict[str, str]:
        return {"text/plain": str(self)}


def _passed(steps: list[ExplanationStep]) -> list[str]:
    """One line for values that take the dim over as it is."""
    if len(steps) <= 1:
        return [f"  {step.name} = {step.what}: {step.how}" for step in steps]
    return [f"  the same through {len(steps)} values, from {steps[0].name} back to {steps[-1].name}"]


def _notes(step: ExplanationStep) -> Iterable[str]:
    if step.lost:
        yield f"    lost here: {step.lost}"
    if step.edits:
        yield f"    edited by: {', '.join(step.edits)}"


def _has_no_dims(fact: Fact) -> bool:
    """Whether a fact is of a sequence, map or optional all of whose tensors have a known shape."""
    inner = fact
    while isinstance(inner, SequenceFact | MapFact | OptionalFact):
        inner = inner.elem
    return inner is not fact and inner.shape is not None


@dataclass(frozen=True, slots=True)
class _Spot:
    """A part of a value in a frame; `callers` are the calls that lead to the frame, the innermost last."""

    frame: FactFrame
    value: int
    part: FactPart
    callers: tuple[tuple[FactFrame, NodeRecord], ...] = ()


class Explainer:
    """Answers questions about the facts of one Walker's graph."""

    def __init__(self, graph: ModelGraph, walker: Walker, frame: FactFrame, edits: dict[int, list[str]]) -> None:
        self._graph = graph
        self._walker = walker
        self._frame = frame
        self._edits = edits

    def explain(self, value: int, axis: int | None = None) -> Explanation:
        """Explain why the dim of `axis` of a value, or all that is known of it, is what it is.

        Raises:
            NameLookupError: the value has no such axis.
        """
        start = self._frame_of(value)
        fact = start.frame.facts.get(value, UNKNOWN)
        parts = [FactPart("rank")]
        if fact.shape is not None:
            rank = len(fact.shape)
            if axis is not None and not -rank <= axis < rank:
                raise NameLookupError(f"{self._graph.values[value].name!r} is {fact}: it has no axis {axis}")
            parts = [FactPart("dim", index) for index in (range(rank) if axis is None else [axis % rank])] or parts
        roots = [_Spot(start.frame, value, part, start.callers) for part in parts]
        return Explanation(self._graph.values[value].name, fact, self._walk(roots))

    def _walk(self, roots: list[_Spot]) -> tuple[ExplanationStep, ...]:
        """The steps from these roots on, breadth first, each spot once."""
        places = {spot: number for number, spot in enumerate(roots)}
        pending, steps = deque(places), list[ExplanationStep]()
        while pending and len(steps) < MAX_STEPS:
            spot = pending.popleft()
            how, lost, sources, passes = self._origin(spot)
            numbers = []
            for source in sources:
                if source not in places:
                    places[source] = len(places)
                    pending.append(source)
                numbers.append(places[source])
            value = self._graph.values[spot.value]
            node = value.producers[0][0] if value.producers else 0
            edits = tuple(dict.fromkeys([*self._edits.get(spot.value, ()), *self._edits.get(node, ())]))
            shown = self._what(spot)
            steps.append(
                ExplanationStep(spot.value, self._name(spot), node, shown, how, lost, edits, tuple(numbers), passes)
            )
        return tuple(
            replace(step, sources=tuple(number for number in step.sources if number < len(steps))) for step in steps
        )

    # -- words ------------------------------------------------------------------------------------------------------

    def _name(self, spot: _Spot) -> str:
        name = self._graph.values[spot.value].name
        if spot.part.kind == "rank":
            return name
        return f"{name}[{spot.part.index}]" if spot.part.kind == "dim" else f"element {spot.part.index} of {name}"

    def _what(self, spot: _Spot) -> str:
        fact = spot.frame.facts.get(spot.value, UNKNOWN)
        if spot.part.kind == "rank":
            return str(fact)
        part = spot.part.of(fact)
        return "unknown" if part is None else str(part)

    def _label(self, node: NodeRecord) -> str:
        name = node.name
        return f"{node.op_type} {name!r}" if name else f"{self._graph.label(node)}"

    # -- one step ---------------------------------------------------------------------------------------------------

    def _origin(self, spot: _Spot) -> tuple[str, str, list[_Spot], bool]:
        """(how, why it is lost, where it comes from, whether it is only taken over)."""
        value = self._graph.values[spot.value]
        if value.producers:
            return self._made(spot, value)
        scope = self._graph.scopes[value.scope]
        if value.initializer is not None:
            return f"initializer of {scope.name!r}" if scope.name else "initializer", "", [], False
        if not value.is_input:
            return "no node makes it", "nothing in the model defines this value", [], False
        if scope.is_function and spot.callers:
            return self._from_caller(spot, scope.inputs.index(value.id))
        if scope.owner:
            return self._from_owner(spot, scope.inputs.index(value.id), self._graph.nodes[scope.owner])
        return self._declared(spot, value)

    def _declared(self, spot: _Spot, value: ValueRecord) -> tuple[str, str, list[_Spot], bool]:
        part = spot.part.of(spot.frame.facts.get(value.id))
        lost = ""
        if part is None or (isinstance(part, Expr) and is_unknown(part)):
            lost = "the input's elements are only known when the model runs"
            if spot.part.kind != "element":
                lost = f"the model declares no size here; give it one with value({value.name!r}).set_shape(…)"
        return "graph input", lost, [], False

    def _from_caller(self, spot: _Spot, position: int) -> tuple[str, str, list[_Spot], bool]:
        frame, node = spot.callers[-1]
        vid = node.inputs[position] if position < len(node.inputs) else 0
        sources = [_Spot(frame, vid, spot.part, spot.callers[:-1])] if vid else []
        return f"input {position} of the function, given by the call {self._label(node)}", "", sources, bool(sources)

    def _from_owner(self, spot: _Spot, position: int, owner: NodeRecord) -> tuple[str, str, list[_Spot], bool]:
        """A body's input: what the owner passes; Scan and SequenceMap pass slices."""
        at = position + (len(owner.inputs) - len(self._graph.scopes[self._graph.values[spot.value].scope].inputs))
        vid = owner.inputs[at] if owner.op_type == "Scan" and 0 <= at < len(owner.inputs) else 0
        if owner.op_type != "Scan" and position < len(owner.inputs):
            vid = owner.inputs[position]
        outer = _Spot(spot.frame, vid, spot.part, spot.callers)
        dim, theirs = self._dim(spot), self._dim(outer) if vid else None
        if vid and dim != theirs and spot.part.kind == "dim":  # the body gets slices: the dim of the next axis
            outer = _Spot(spot.frame, vid, FactPart("dim", spot.part.index + 1), spot.callers)
        same = bool(vid) and dim is not None and dim == self._dim(outer)
        how = f"input {position} of the body of {self._label(owner)}"
        return how, "" if same or vid else "it changes from iteration to iteration", [outer] if same else [], same

    def _dim(self, spot: _Spot) -> object:
        return spot.part.of(spot.frame.facts.get(spot.value))

    def _made(self, spot: _Spot, value: ValueRecord) -> tuple[str, str, list[_Spot], bool]:
        node_id, slot = value.producers[0]
        node = self._graph.nodes[node_id]
        operator = self._walker.catalogue.find(spot.frame, node)
        label = self._label(node)
        if not isinstance(operator, Operator):
            return f"the attribute of {label}", "", [], False
        if operator.function and (inside := self._inside_call(spot, node, slot, operator)):
            return f"output {slot} of the function that {label} calls", "", [inside], False
        if node.bodies:
            return self._from_bodies(spot, node, slot)
        if spot.part.kind == "rank" and _has_no_dims(spot.frame.facts.get(value.id, UNKNOWN)):
            return f"made by {label}; it has no dims of its own", "", [], False
        if spot.part.kind == "rank" and spot.part.of(spot.frame.facts.get(value.id)) is None:
            why, causes = loss(self._walker, spot.frame, node, operator, slot, spot.part)
            return f"made by {label}", why, [self._at(spot, node, *cause) for cause in causes], False
        places = dependencies(self._walker, spot.frame, node, operator, (slot, spot.part))
        why, causes = "", []
        if self._is_lost(spot, node_id):
            why, causes = loss(self._walker, spot.frame, node, operator, slot, spot.part)
        sources = [self._at(spot, node, at, part) for at, part in dict.fromkeys([*places, *causes])]
        same = [source.part.kind == spot.part.kind and self._dim(source) == self._dim(spot) for source in sources]
        passes = not why and bool(same) and all(same)
        return self._rule(label, node, spot, sources), why, sources, passes

    def _at(self, spot: _Spot, node: NodeRecord, slot: int, part: FactPart) -> _Spot:
        return _Spot(spot.frame, node.inputs[slot], part, spot.callers)

    def _is_lost(self, spot: _Spot, node: int) -> bool:
        """Whether a part is the unknown of this very node."""
        dim = self._dim(spot)
        if dim is None:
            return True
        if not isinstance(dim, Expr) or not is_unknown(dim):
            return False
        ((atom,),) = dim.terms
        key = atom.key
        return isinstance(key, tuple) and len(key) > 3 and key[3] == node

    def _rule(self, label: str, node: NodeRecord, spot: _Spot, sources: list[_Spot]) -> str:
        """A phrase: the operator, the sources of the dim, and the attributes that may matter to it."""
        names = ", ".join(dict.fromkeys(self._name(source) for source in sources))
        shown = [text for attribute in node.proto.attribute if (text := _shown(attribute))]
        attributes = f" ({', '.join(shown)})" if shown else ""
        return f"{label}{attributes}" + (f", from {names}" if names else ", by its attributes alone")

    def _inside_call(self, spot: _Spot, node: NodeRecord, slot: int, operator: Operator) -> _Spot | None:
        """The output of the function that a call returns."""
        key = self._walker.calls.key(spot.frame, node.id)
        call = self._walker.calls.memo.get(key) if key else None
        outputs = self._graph.scopes[operator.function].outputs
        if call is None or slot >= len(outputs):
            return None
        return _Spot(call.frame, outputs[slot], spot.part, (*spot.callers, (spot.frame, node)))

    def _from_bodies(self, spot: _Spot, node: NodeRecord, slot: int) -> tuple[str, str, list[_Spot], bool]:
        """The sources in bodies: both branches of an If; the body of a Loop, Scan or SequenceMap, carried starts."""
        sources: list[_Spot] = []
        shift = 1 if node.op_type == "Loop" else 0
        for body in (body for bodies in node.bodies.values() for body in bodies):
            outputs = self._graph.scopes[body].outputs
            if slot + shift < len(outputs):
                sources.append(_Spot(spot.frame, outputs[slot + shift], spot.part, spot.callers))
        if node.op_type == "Loop" and slot + 2 < len(node.inputs) and node.inputs[slot + 2]:
            sources.append(_Spot(spot.frame, node.inputs[slot + 2], spot.part, spot.callers))
        sources = [self._shifted(spot, source) for source in sources]
        dims = {self._dim(source) for source in sources}
        lost = "its bodies do not agree on it" if self._is_lost(spot, node.id) and len(dims) > 1 else ""
        if self._is_lost(spot, node.id) and not lost:
            lost = "it depends on how often the body runs"
        return f"{self._label(node)}, from {', '.join(self._name(source) for source in sources)}", lost, sources, False

    def _shifted(self, spot: _Spot, inner: _Spot) -> _Spot:
        """The spot in a body's output: where that output is stacked, its axes come after the new one."""
        outer_fact, inner_fact = spot.frame.facts.get(spot.value), inner.frame.facts.get(inner.value)
        if outer_fact is None or inner_fact is None or outer_fact.shape is None or inner_fact.shape is None:
            return inner
        more = len(outer_fact.shape) - len(inner_fact.shape)
        index = max(spot.part.index - max(more, 0), 0)
        kind = spot.part.kind if index < len(inner_fact.shape) else "rank"
        return _Spot(inner.frame, inner.value, FactPart(kind, index if kind != "rank" else 0), inner.callers)

    def _frame_of(self, value: int) -> _Spot:
        """The frame that knows a value: the model's, or inside a function that of the function's first call."""
        root = self._graph.root(self._graph.scopes[self._graph.values[value].scope])
        if root.is_function:
            for key, call in self._walker.calls.alive(self._frame).items():
                if key[0] == root.id:
                    return _Spot(call.frame, value, FactPart("rank"))
        return _Spot(self._frame, value, FactPart("rank"))


def _shown(attribute: onnx.AttributeProto) -> str:
    """`strides=[2, 2]`; nothing for tensors, graphs and long lists."""
    if kind_of(attribute) not in ("int", "ints", "string", "float"):
        return ""
    text = f"{attribute.name}={decode(attribute)}"
    return text if len(text) <= 40 else ""
