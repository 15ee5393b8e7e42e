"""Model-local functions: each distinct call (function, attributes, input facts) is walked once.

With the memo, thirty levels of functions that each call the level below twice cost thirty walks. Unknown dims that a
walk made belong to the walk; every call site gets symbols of its own for them, since two calls need not agree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from weakref import proxy

import onnx

from onnxlab.errors import Severity
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.native import hole
from onnxlab.infer.rules.operators import Operator, Problem
from onnxlab.infer.walk.body_walker import BodyWalker
from onnxlab.shapes import UNKNOWN, Dim, Fact, FactError, map_dims, replace_symbols
from onnxlab.shapes.expressions import Atom, symbol_atoms

if TYPE_CHECKING:
    from onnxlab.infer.walk.input_masks import Inputs

CallKey = tuple[int, bytes, "Inputs"]


@dataclass(slots=True, eq=False)
class FunctionCall:
    """A function walked with certain facts.

    Attributes:
        outputs: facts of its formal outputs.
        private: slots of the outputs whose dims have symbols that the walk made.
        inner: keys of the calls that the function makes itself, by node.
    """

    frame: FactFrame
    outputs: tuple[Fact, ...] = ()
    private: frozenset[int] = frozenset()
    inner: Mapping[int, CallKey] = field(default_factory=dict)


class Calls:
    """The memo of calls, and which ones are made.

    Attributes:
        made: {call of a frame: {node: call that it makes}}.
        changed: whether other calls are made than when this flag was last reset.
    """

    def __init__(self, walker: BodyWalker) -> None:
        self._walker: BodyWalker = proxy(walker)  # a proxy: the walker holds this object
        self.memo: dict[CallKey, FunctionCall] = {}
        self.made: dict[Hashable, dict[int, CallKey]] = {}
        self.changed = False
        self._active: list[int] = []

    def forget(self) -> None:
        """Drop all calls; to be called when a function changed."""
        self.memo.clear()
        self.made.clear()
        self.changed = True

    def infer(
        self, frame: FactFrame, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        """Facts of a call node's outputs."""
        operator.shared = False  # the memo of calls serves instead, and records the callers
        scope = self._walker.graph.scopes[operator.function]
        key = (scope.id, operator.given, inputs)
        self.made.setdefault(frame.call, {})[node.id] = key
        self.changed = True
        call = self.memo.get(key)
        if call is None:
            if refusal := self._refusal(scope):
                problems.append(refusal)
                return (UNKNOWN,) * len(operator.outputs)
            try:
                call = self._walk(scope, key, operator)
            except FactError as error:
                problems.append(Problem(error.severity, error.code, str(error)))
                return (UNKNOWN,) * len(operator.outputs)
            except RecursionError:  # the caller is itself deep inside of calls
                problems.append(Problem("warning", "too-deep", f"the calls inside {scope.name!r} nest too deep"))
                return (UNKNOWN,) * len(operator.outputs)
            self.memo[key] = call
        if len(inputs) > len(scope.inputs):
            expected, actual = str(len(scope.inputs)), str(len(inputs))
            message = f"it passes {actual} inputs to the function {scope.name!r}, which takes {expected}"
            problems.append(Problem("error", "arity", message, expected, actual, "remove inputs"))
        if len(operator.outputs) != len(call.outputs):
            problems.append(_output_mismatch(scope, len(operator.outputs)))
        if not call.private:
            return call.outputs
        return [
            as_seen_outside(fact, slot, partial(_own_part, key)) if slot in call.private else fact
            for slot, fact in enumerate(call.outputs)
        ]

    def _refusal(self, scope: Scope) -> Problem | None:
        if scope.id in self._active:
            return Problem(
                "error", "recursive-function", f"the function {scope.name!r} calls itself, which ONNX forbids"
            )
        return None

    def _walk(self, scope: Scope, key: CallKey, operator: Operator) -> FunctionCall:
        attributes = _attributes(scope.proto, operator.proto)
        attribute_key = b"\0".join(attributes[name].SerializeToString() for name in sorted(attributes))
        frame = FactFrame(key, attributes, attribute_key)
        for position, vid in enumerate(scope.inputs):
            frame.set(vid, (key[2][position] if position < len(key[2]) else None) or UNKNOWN)
        self._active.append(scope.id)
        try:
            self._walker.walk_inside(frame, scope)
        finally:
            self._active.pop()
        outputs = tuple(frame.facts.get(vid, UNKNOWN) for vid in scope.outputs)
        private = frozenset(slot for slot, fact in enumerate(outputs) if _holds_own(fact, key))
        return FunctionCall(frame, outputs, private, self.made.pop(key, {}))

    def forget_node(self, node: int) -> None:
        """Drop the call of a node; to be called when the node is gone or calls something else."""
        if self.made.get(None, {}).pop(node, None) is not None:
            self.changed = True

    def key(self, frame: FactFrame, node: int) -> CallKey | None:
        """The call that a node of a frame makes; None where it makes none."""
        calls = self.made.get(frame.call, {})
        around = self.memo.get(frame.call) if frame.call is not None else None  # type: ignore[call-overload]
        return calls.get(node) or (around.inner.get(node) if around is not None else None)

    def alive(self, frame: FactFrame) -> dict[CallKey, FunctionCall]:
        """The calls that a frame makes now, directly or not."""
        pending = list(self.made.get(frame.call, {}).values())
        calls: dict[CallKey, FunctionCall] = {}
        while pending:
            key = pending.pop()
            if key not in calls and key in self.memo:
                calls[key] = self.memo[key]
                pending.extend(calls[key].inner.values())
        return calls


def _output_mismatch(scope: Scope, count: int) -> Problem:
    """The problem of a call with another number of outputs than its function; with fewer, the rest is unused."""
    expected, actual = str(len(scope.outputs)), str(count)
    message = f"it has {actual} outputs, the function {scope.name!r} makes {expected}"
    severity: Severity = "error" if count > len(scope.outputs) else "info"
    return Problem(severity, "function-outputs", message, expected, actual, "name as many outputs as the function has")


def _attributes(function: onnx.FunctionProto, node: onnx.NodeProto) -> dict[str, onnx.AttributeProto]:
    """Attributes of a call by name: those given, else the function's defaults."""
    attributes = {attribute.name: attribute for attribute in function.attribute_proto}
    attributes.update((attribute.name, attribute) for attribute in node.attribute)
    return attributes


def _is_own(atom: Atom, key: CallKey) -> bool:
    """Whether a symbol was made by the walk of a call."""
    identity = atom.key
    return type(identity) is tuple and identity[0] == "unknown" and identity[2] == key


def _holds_own(fact: Fact, key: CallKey) -> bool:
    holds = False

    def look(dim: Dim) -> Dim:
        nonlocal holds
        holds = holds or any(_is_own(atom, key) for atom in symbol_atoms(dim))
        return dim

    map_dims(fact, look)
    return holds


def _own_part(key: CallKey, atom: Atom) -> Hashable | None:
    """The identity of a symbol among a walk's others; None for symbols from outside."""
    return atom.key[3:] if _is_own(atom, key) else None  # type: ignore[index]


def as_seen_outside(fact: Fact, slot: int, own_part: Callable[[Atom], Hashable | None]) -> Fact:
    """The fact with the symbols that a walk made itself replaced by holes of the calling node."""

    def fill(atom: Atom) -> Dim | None:
        identity = own_part(atom)
        return None if identity is None else hole(slot, identity, atom.minimum)

    return map_dims(fact, lambda dim: replace_symbols(dim, fill))
