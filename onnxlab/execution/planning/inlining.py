"""Inline calls of functions, Ifs whose condition is known or whose branches are short, and Constant nodes.

Inlining is for partitions only: the model is never changed. It lets a provider make regions of nodes across calls.
A call stays as it is where its nodes would mean something else outside: at other opset versions, with bodies of their
own, or where functions call each other in a cycle; also where there would be too many nodes. An If stays where names of
its branch mean something else outside. Where both branches of an If take next to no time and cannot fail, both are
computed and a Where chooses: one part runs what would be a part before the If, one in each branch and one behind.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import count
from math import inf
from types import MappingProxyType
from typing import Any

import onnx

from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Part, PartitionView
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.graph.edit.snapshot import AttributeRef, BodyRef, NodeView, ScopeView, SnapshotAttributes
from onnxlab.graph.protos import attributes as codec
from onnxlab.ops import find_traits
from onnxlab.shapes import Fact, TensorFact

_DEEPEST = 32  # calls within calls
_LONGEST = 40  # characters of a label of a call in a call: errors list labels, and calls may be nested a thousand deep
_SHORT = 8  # nodes of a branch that is computed although the other is taken
_ELEMENTS = 1 << 12  # largest number of elements of a value in it
_WORK = 1 << 15  # most multiplications of a node in it
_WHERE = 9  # version of ai.onnx since which Where is there
_MOST = 100_000  # nodes of functions in one scope: nested functions with two calls each double them at every level


def truth(fact: Fact) -> bool | None:
    """The value of a condition; None where that is not known."""
    known = fact.value if isinstance(fact, TensorFact) else None
    return bool(known.reshape(())) if known is not None and known.size == 1 else None


def _is_alike(a: Fact, b: Fact) -> bool:
    """Whether values of two branches have one shape and one element type, and are few numbers."""
    same = isinstance(a, TensorFact) and isinstance(b, TensorFact) and a.elem_type == b.elem_type and a.shape == b.shape
    return same and 0 < _numbers(a) <= _ELEMENTS


def _numbers(fact: Fact) -> float:
    """The number of elements of a floating-point value of a known shape, infinity for any other value."""
    dtype, nbytes = (fact.dtype, fact.nbytes()) if isinstance(fact, TensorFact) else (None, None)
    return nbytes // dtype.itemsize if dtype is not None and dtype.kind == "f" and isinstance(nbytes, int) else inf


def _is_total(node: NodeView, fact: Callable[[int], Fact]) -> bool:
    """Whether a node cannot fail, whatever the elements of its inputs are, and takes next to no time."""
    row, sizes = find_traits(node.domain, node.op_type), [_numbers(fact(value)) for value in node.output_ids]
    if row.shape != "shapes" or row.random or node.attributes.bodies or max(sizes) > _ELEMENTS:
        return False
    if node.op_type in ("MatMul", "Gemm") and not node.domain:
        return sizes[0] * _numbers(fact(node.input_ids[0])) <= _WORK
    return row.category in ("elementwise", "activation")


class Fixed(dict[str, Any]):
    """Attributes of a node that the model does not have, or has with others.

    Args:
        attributes: all of them.
        of_node: those of the model's node.
    """

    bodies = ()

    def __init__(self, attributes: Mapping[str, Any], of_node: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(attributes)
        self._of_node: Any = of_node

    def proto(self, name: str) -> onnx.AttributeProto:
        """The message of an attribute."""
        return self._of_node.proto(name) if self._of_node.get(name) is self[name] else codec.encode(name, self[name])


def bound_attributes(attributes: SnapshotAttributes, bindings: Mapping[str, Any]) -> Fixed:
    """The attributes of a node in a function, with references replaced by attributes of the call."""
    values = {name: attributes[name] for name in attributes}
    referred = {name: bindings.get(value.name) for name, value in values.items() if isinstance(value, AttributeRef)}
    return Fixed({name: value for name, value in (values | referred).items() if value is not None}, attributes)


class Flattened:
    """The nodes of a scope with calls and decided Ifs replaced, and without those that only hold or repeat a constant.

    Args:
        scope: of the nodes.
        nodes: in topological order.
        fed: names that are fed: the nodes that make them stay as they are.

    Attributes:
        nodes: in topological order; nodes from functions have ids below 0, nodes from branches keep their ids.
        constants, facts: answers to views' questions so far.
    """

    def __init__(self, scope: ScopeNames, nodes: tuple[NodeView, ...], fed: Container[str] = ()) -> None:
        self._scope = scope
        self._given = fed
        self._held: dict[str, NodeView | str] = {}  # the Constant node, or the initializer that an Identity repeats
        self._repeating: dict[str, list[str]] = {}  # by initializer
        self._functions = scope.compiler.snapshot.functions
        self._ids = count(-1, -1)
        self._calls = count(1)
        self._values: dict[str, int] = {}  # value ids: in functions, one for all calls; and in branches
        self._initializers: dict[str, int] = {}  # of branches
        self._fitting: dict[ScopeView, bool] = {}
        self._sizes: dict[tuple[ScopeView, int], int] = {}  # of functions, called at a depth
        self._left = _MOST
        self.constants: dict[str, Any] = {}
        self.facts: dict[str, Fact] = {}
        self.nodes: list[NodeView] = []
        for node in paced(nodes):
            self._add(node, scope.bindings, 0)

    @cached_property
    def _taken(self) -> set[str]:
        """Names that mean something in the scope or in a branch."""
        return set(self._scope.ids)

    def constant(self, name: str) -> Any:
        """The array of an initializer or Constant node, None for any other name."""
        if name not in self.constants:
            self.constants[name] = self._array(name)
        return self.constants[name]

    def _array(self, name: str) -> Any:
        if name in self._given:
            return None
        held = self._held.get(name)
        if not isinstance(held, NodeView):
            return self._initializer(name if held is None else held)
        if held.outputs[0] != name:
            return self.constant(held.outputs[0])
        scope: Any = self._scope
        step = scope.compiler.steps.get(held) or (last := scope.compiler.providers[-1]).compile(
            Part(last.name, (held,), (), held.outputs),
            PartitionView((held,), frozenset(), scope.scope.opsets, scope.constant, scope.reads, scope=scope),
        )[0]  # fmt: skip
        return step.constants[0]

    def of(self, scope: ScopeNames | None) -> Flattened:
        """This for a scope of the same names and nodes, apart from changed nodes that are not inlined."""
        other = copy(self)
        other._scope = scope  # type: ignore[assignment]  # None where no questions will be asked
        other.constants, other.facts = {**self.constants}, {**self.facts}
        return other

    def view(self, scope: ScopeNames, nodes: tuple[NodeView, ...], visible: frozenset[str]) -> PartitionView:
        """The view of some of the nodes."""
        opsets, reads = scope.scope.opsets, scope.reads
        return PartitionView(nodes, visible, opsets, self.constant, reads, self.fact, scope=scope, written=self)

    def repeating(self, names: Iterable[str]) -> set[str]:
        """Names that repeat one of these initializers."""
        return {repeating for name in names for repeating in self._repeating.get(name, ())}

    def _initializer(self, name: str) -> Any:
        value = self._initializers.get(name)
        return self._scope.constant(name) if value is None else self._scope.compiler.snapshot.array(value)

    def _holds(self, node: NodeView) -> bool:
        """Whether a node only holds or repeats a constant; notes which."""
        if node.domain or node.op_type not in ("Constant", "Identity") or node.outputs[0] in self._given:
            return False
        if node.op_type == "Identity":
            source = node.inputs[0]
            if source not in self._held and (source in self._given or self._initializer(source) is None):
                return False
            held = self._held[node.outputs[0]] = self._held.get(source, source)
            if isinstance(held, str):
                self._repeating.setdefault(held, []).append(node.outputs[0])
            return True
        dense = any(name.startswith("value") for name in node.attributes)
        if dense:
            self._held[node.outputs[0]] = node
        return dense

    def fact(self, name: str) -> Fact:
        """The inferred fact of a name; for a name made in a function, the fact that holds for all calls."""
        if name not in self.facts:
            value = self._values.get(name)
            self.facts[name] = self._scope.fact(name) if value is None else self._scope.compiler.fact(value)
        return self.facts[name]

    def _add(self, node: NodeView, bindings: Mapping[str, Any], depth: int) -> None:
        if self._holds(node):
            return
        if node.op_type == "If" and self._opened(node, bindings, depth):
            return
        called = self._called(node, depth)
        if called is None or (depth == 0 and self._size(called, 1) > self._left):
            self.nodes.append(node)
            return
        if depth == 0:
            self._left -= self._size(called, 1)
        attributes = {**called.attribute_defaults, **bound_attributes(node.attributes, bindings)}
        names = dict(zip(called.inputs, (*node.inputs, *[""] * len(called.inputs)), strict=False))
        number = next(self._calls)
        names.update(zip(called.outputs, node.outputs, strict=False))
        for inner in called.nodes:
            self._add(self._renamed_node(inner, names, number, node, attributes), attributes, depth + 1)

    def _called(self, node: NodeView, depth: int) -> ScopeView | None:
        """The function whose nodes can stand in the place of a call, None for any other node."""
        called = self._functions.get((node.domain, node.op_type, node.overload))
        if called is None or depth > _DEEPEST or len(node.inputs) > len(called.inputs):
            return None
        if called not in self._fitting:
            self._fitting[called] = self._fits(called)
        return called if self._fitting[called] else None

    def _size(self, called: ScopeView, depth: int) -> int:
        """The number of nodes and calls that are inlined for a call of a function."""
        size = self._sizes.get((called, depth))
        if size is None:
            inner = [self._called(node, depth) for node in called.nodes]
            size = 1 + sum(1 if function is None else self._size(function, depth + 1) for function in inner)
            self._sizes[called, depth] = size
        return size

    def _opened(self, node: NodeView, bindings: Mapping[str, Any], depth: int) -> bool:
        """Replace an If by the branch that it takes, or by both and a choice; False where it has to stay."""
        branches = [node.attributes.get(name) for name in ("else_branch", "then_branch")]
        bodies = [body for body in branches if isinstance(body, BodyRef)]
        if node.domain or self._scope.compiler.watched or len(bodies) < 2 or not node.inputs:
            return False
        condition = self.fact(node.inputs[0])
        way = truth(condition)
        scopes = [self._scope.compiler.snapshot.scopes[body.scope] for body in bodies]
        if way is not None:
            if self._can_open(node, scopes[way]):
                self._open(node, scopes[way], node.outputs, bindings, depth)
                return True
            return False
        if not (self._is_choice(node, condition, scopes) and all(self._can_open(node, branch) for branch in scopes)):
            return False
        results = [tuple([f"{name} of branch {number} of {node.label}" for name in node.outputs]) for number in (0, 1)]
        for branch, names in zip(scopes, results, strict=True):
            self._open(node, branch, names, bindings, depth)
        attributes: Any = Fixed({})
        for place, name in enumerate(node.outputs):
            otherwise, then = results[0][place], results[1][place]
            ids = node.input_ids[0], self._values[then], self._values[otherwise]
            self.nodes.append(replace(
                node, id=next(self._ids), op_type="Where", since_version=_WHERE, attributes=attributes, input_ids=ids,
                inputs=(node.inputs[0], then, otherwise), outputs=(name,), output_ids=(node.output_ids[place],),
            ))  # fmt: skip
        return True

    def _is_choice(self, node: NodeView, condition: Fact, branches: Sequence[ScopeView]) -> bool:
        """Whether branches cannot fail, take next to no time, and make values that a Where can choose from."""
        is_scalar = isinstance(condition, TensorFact) and condition.shape == ()
        if not is_scalar or "" in node.outputs or self._scope.scope.opsets.get("", 0) < _WHERE:
            return False
        fact = self._scope.compiler.fact
        pairs = [[fact(value) for value in branch.output_ids] for branch in branches]
        if len({len(facts) for facts in pairs}) > 1 or not all(map(_is_alike, *pairs)):
            return False
        produced = [{name for inner in branch.nodes for name in inner.outputs} for branch in branches]
        names = [produced[number] | branch.initializers.keys() for number, branch in enumerate(branches)]
        short = names[0].isdisjoint(names[1]) and all(len(branch.nodes) <= _SHORT for branch in branches)
        return short and all(_is_total(inner, fact) for branch in branches for inner in branch.nodes)

    def _can_open(self, node: NodeView, branch: ScopeView) -> bool:
        """Whether the nodes of a branch can stand in the place of its If."""
        produced = {name for inner in branch.nodes for name in inner.outputs}
        read = {name for inner in branch.nodes for name in self._scope.captures(inner)}
        outputs = set(branch.outputs)
        plain = len(outputs) == len(node.outputs) == len(branch.outputs)
        plain = plain and outputs <= produced and outputs.isdisjoint(read)
        free = self._taken.isdisjoint(produced) and self._taken.isdisjoint(branch.initializers)
        fed = any(name in self._given for name in (*node.outputs, *produced))
        return plain and free and not fed

    def _open(
        self, node: NodeView, branch: ScopeView, results: Sequence[str], bindings: Mapping[str, Any], depth: int
    ) -> None:
        """Add the nodes of a branch in the place of its If; `results` are the names of its outputs there."""
        names = {inner: outer or f"{inner} of {node.label}" for inner, outer in
                 zip(branch.outputs, results, strict=True)}  # fmt: skip
        self._initializers.update(branch.initializers)
        self._values.update(branch.initializers)
        self._taken.update(branch.initializers)
        for inner in branch.nodes:
            self._taken.update(inner.outputs)
            self._taken.discard("")
            outputs = tuple(names.get(name, name) for name in inner.outputs)
            self._values.update((name, value) for name, value in zip(outputs, inner.output_ids, strict=True) if name)
            inputs = tuple(names.get(name, name) for name in inner.inputs)
            label = f"{branch.path}/{inner.label}"
            self._add(replace(inner, label=label, inputs=inputs, outputs=outputs), bindings, depth)

    def _fits(self, called: ScopeView) -> bool:
        """Whether the function's nodes mean the same in the scope of the call."""
        opsets = self._scope.scope.opsets
        used = {inner.domain for inner in called.nodes}
        same = all(called.opsets.get(domain) == opsets.get(domain) for domain in used if domain in called.opsets)
        produced = [name for inner in called.nodes for name in inner.outputs]  # an output may be an input passed on
        plain = set(called.outputs) <= set(produced) and len(set(called.outputs)) == len(called.outputs)
        return same and plain and not any(inner.attributes.bodies for inner in called.nodes)

    def _renamed_node(
        self, inner: NodeView, names: dict[str, str], number: int, call: NodeView, bindings: Mapping[str, Any]
    ) -> NodeView:
        for name, value in zip(inner.outputs, inner.output_ids, strict=True):
            if name and not names.get(name):  # an output of the call has a fact of its own
                names[name] = outer = f"{name} of call {number}"
                self._values[outer] = value
        label = f"{call.label}/{inner.label}"
        if call.id < 0 and len(label) > _LONGEST:
            label = f"{label[: _LONGEST // 3]}…{label[-_LONGEST // 2 :]}"
        return replace(
            inner,
            id=next(self._ids),
            label=label,
            inputs=tuple(names.get(name, name) for name in inner.inputs),
            outputs=tuple(names.get(name, name) for name in inner.outputs),
            attributes=bound_attributes(inner.attributes, bindings),  # type: ignore[arg-type]
        )
