"""Scopes to programs: the nodes that a run needs, partitioned, compiled by their providers, assembled.

A `Compiler` belongs to one snapshot. Bodies of If, Loop and Scan are compiled when they first run, so that a branch
that is never taken may hold operators that no provider implements; functions are compiled with their caller, once for
each set of attributes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from onnxlab.errors import LimitError, OnnxlabError, RunError
from onnxlab.execution.base import border
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import CompiledPart, Part, PartitionView, Provider, Step, part_step
from onnxlab.execution.planning.block_size import BlockSize
from onnxlab.execution.planning.cached_partition import StepCache
from onnxlab.execution.planning.inlining import Flattened, bound_attributes
from onnxlab.execution.planning.loop_carried import grown_inputs, invariant_inputs
from onnxlab.execution.planning.partition import Partition, partition
from onnxlab.execution.planning.passes.pass_list import NodeList, listed
from onnxlab.execution.planning.scope_names import ScopeNames, SnapshotReader
from onnxlab.execution.program.executor import ProgramBody
from onnxlab.execution.program.loop_body import LoopGrowth
from onnxlab.execution.program.program import Program, assemble
from onnxlab.graph.edit.snapshot import BodyRef, NodeView, ScopeView, Snapshot
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.infer.facts.policy import refined_by_type
from onnxlab.shapes import UNKNOWN, Fact

FactOf = Callable[[int], Fact]
Key = tuple[tuple[str, ...], tuple[str, ...]]
"""(names of feeds, names of outputs)."""

_PROGRAMS, _OTHERS = 32, 5  # kept per version of the model
_MAX_DEPTH = 60  # levels of nested calls of functions, as in inference: each takes ten of Python's frames


def unknown(value: int) -> Fact:
    """Facts for callers that have none."""
    return UNKNOWN


class Compiler(SnapshotReader):
    """Makes programs of one snapshot.

    Args:
        snapshot: what to run.
        providers: in order of preference; the last one takes the nodes that are left.
        fact: what inference knows of a value id.
        steps: steps of earlier snapshots of the same graph.
        watched: {scope of a body: ((name, value id), …)} of values in bodies that are asked for.
        stored: {value id: tensor} of initializers that are left in their file.
        version: of the graph.

    Attributes:
        facts: differs wherever a fact does; None where that is not known.
        programs: that were made, or stand in for those that are being made.
        others: compilers of the same snapshot: for feeds of certain shapes, and of stand-ins.
        checked: (feeds, outputs) for which programs were not refused.
    """

    steps: StepCache

    def __init__(
        self,
        snapshot: Snapshot,
        providers: Sequence[Provider],
        fact: FactOf = unknown,
        steps: StepCache | None = None,
        watched: Mapping[int, tuple[tuple[str, int], ...]] | None = None,
        stored: Mapping[int, LazyTensor] = MappingProxyType({}),
        version: int = -1,
    ) -> None:
        self.snapshot = snapshot
        self.providers = tuple(providers)
        self.fact = fact
        self.facts: object = None
        self.steps = StepCache() if steps is None else steps
        self.watched = watched or {}
        self.stored = stored
        self.version = version
        self.notes: dict[str, Any] = {}  # written by the code that runs the programs
        self.programs: Lru[Key, Program] = Lru("programs", _PROGRAMS)
        self.others: Lru[Any, Compiler] = Lru("compilers of the same snapshot", _OTHERS)
        self.checked: frozenset[Key] = frozenset()
        self._functions: dict[Any, ProgramBody] = {}
        self._depth = 0
        self.inlines = any(provider.capabilities.inlines for provider in self.providers)

    @property
    def main(self) -> ScopeCompiler:
        """The compiler of the main graph, made for each call since it refers to this one."""
        return ScopeCompiler(self, self.snapshot.main, {})

    @cached_property
    def block(self) -> int:
        """Channels of a block of images in blocks, 0 where the model allows for several sizes.

        Raises:
            RunError: parts of the model have blocks of different sizes.
        """
        evidence = BlockSize()
        for scope in self.snapshot.scopes.values():
            evidence.look(paced(scope.nodes), ScopeNames(self, scope, {}).fact)
        return evidence.size() or 0

    def forget(self) -> None:
        """Drop all programs, whose parts refer to this compiler, when no program will be asked for any more."""
        others = [*self.others.values()]
        for memory in (self.notes, self.programs, self.others, self._functions):
            memory.clear()
        for other in others:
            other.forget()

    def program(self, feeds: Sequence[str], outputs: Sequence[str]) -> Program:
        """The program of the main graph from `feeds` to `outputs`.

        Raises:
            UnsupportedOperatorError: nothing implements an operator that the outputs need.
            FeedError: an input that the outputs need is not fed.
        """
        return self.main.program(feeds, outputs)

    def carried(self, key: Key) -> Program | None:
        """The program that an earlier one becomes, where an edit of nodes and data left all else as it was."""
        known = self.steps.partition(self.main.fed(key[0]), (*key, self.providers))
        return None if known is None else known[2]

    def function(self, node: NodeView, attributes: Mapping[str, Any]) -> ProgramBody | None:
        """The model-local function that a node calls, with its attributes bound, or None if it calls none."""
        scope = self.snapshot.functions.get((node.domain, node.op_type, node.overload))
        return None if scope is None else self.bound(scope, attributes)

    def bound(self, scope: ScopeView, attributes: Mapping[str, Any]) -> ProgramBody:
        """A function with its attributes bound: one body per combination of attributes."""
        bindings = {**scope.attribute_defaults, **attributes}
        key = (scope.id, tuple((name, _hashable(bindings[name])) for name in sorted(bindings)))
        body = self._functions.get(key)
        if body is None:
            if self._depth > _MAX_DEPTH:
                raise _too_deep(scope)
            inner = ScopeCompiler(self, scope, bindings)
            body = self._functions[key] = inner.body(scope.inputs, ())
            self._depth += 1
            try:
                _ = body.program
            except BaseException as error:
                del self._functions[key]
                if isinstance(error, RecursionError):  # the caller may be deep inside of calls itself
                    raise _too_deep(scope) from None
                raise
            finally:
                self._depth -= 1
        return body


def _too_deep(scope: ScopeView) -> RunError:
    return RunError(f"function {scope.name} calls itself, or functions are nested more than {_MAX_DEPTH} deep")


class ScopeCompiler(ScopeNames):
    """The scope that a provider compiles for, with what it may ask about it."""

    compiler: Compiler

    def view(
        self, feeds: Iterable[str], outputs: Iterable[str], nodes: tuple[NodeView, ...] | None = None
    ) -> PartitionView:
        """The view of the nodes that a run needs, or of `nodes`."""
        fed = frozenset(feeds).difference(self.invariant)
        constant: Callable[[str], Any] = lambda name: None if name in fed else self.constant(name)  # noqa: E731
        if nodes is None:
            nodes = tuple([_apart(node, fed, self.ids) for node in paced(self.cone(fed, outputs))])
            if self.compiler.inlines:
                try:
                    return self._written_out(nodes, fed, outputs)
                except OnnxlabError:
                    raise
                except Exception as error:  # of faulty nodes: these stay as they are, and the run names them
                    warnings.warn(f"calls in {self.where} stay calls: {type(error).__name__}: {error}", stacklevel=2)
        return PartitionView(
            nodes, frozenset(outputs), self.scope.opsets, constant, self.reads, self.fact, self.stored(fed), scope=self
        )

    def _written_out(self, nodes: tuple[NodeView, ...], fed: frozenset[str], outputs: Iterable[str]) -> PartitionView:
        """The view in which calls of functions and decided Ifs are replaced by the nodes of their bodies."""
        flat = Flattened(self, nodes, fed)
        needed = tuple(self.needed(flat.nodes, outputs, fed))
        draft = NodeList(needed, fed.union(outputs), flat.constant, flat.fact,
                         self.scope.opsets.get("", 0), self)  # fmt: skip
        for node_pass in listed():
            draft = node_pass.run(draft)
        changed = draft.nodes != needed
        nodes = tuple(self.needed(draft.nodes, outputs, fed)) if changed else needed
        view = flat.view(self, nodes, frozenset(outputs))
        view.stored = self.stored(fed)
        if changed:  # passes may have made new constants
            view.constant, view.fact, view.written = draft.constant, draft.fact, None
        return view

    def _partitioned(self, key: tuple[Sequence[str], Sequence[str], Any]) -> tuple[PartitionView, Partition]:
        """The view of a run of (feeds, outputs, providers), and the provider of each of its nodes."""
        feeds, outputs, providers = key
        is_main = self.scope is self.compiler.snapshot.main
        if is_main and (known := self.compiler.steps.partition(self, key)) is not None:
            return known[:2]
        known_view = self.compiler.steps.view(self, feeds, outputs) if is_main and self.compiler.inlines else None
        view = known_view or self.view(feeds, outputs)
        plan = partition(view, providers)
        if is_main:
            self.compiler.steps.keep(self, key, view, plan)
        return view, plan

    def partition(self, feeds: Sequence[str], outputs: Sequence[str]) -> Partition:
        """The partition, without compiling anything; with the partitions of the bodies of its nodes."""
        plan = partition(self.view(feeds, outputs), self.compiler.providers)
        scopes = self.compiler.snapshot.scopes
        bodies = []
        for ref in (ref for part in plan.parts for node in part.nodes for ref in node.attributes.bodies):
            inner = ScopeCompiler(self.compiler, scopes[ref.scope], self.bindings)
            sources = (*inner.scope.inputs, *(name for name, _ in inner.scope.captures))
            bodies.append((inner.scope.path, inner.partition(sources, inner.scope.outputs)))
        return replace(plan, bodies=tuple(bodies))

    def program(self, feeds: Sequence[str], outputs: Sequence[str]) -> Program:
        """The program for these feeds and outputs."""
        key = tuple(feeds), tuple(outputs), self.compiler.providers
        view, plan = self.fed(feeds)._partitioned(key)
        providers = {provider.name: provider for provider in self.compiler.providers}
        steps: list[Step] = []
        for part in plan.parts:
            compiled = self._compiled(part, view, providers[part.provider])
            steps += compiled if isinstance(compiled, list) else [part_step(part, compiled)]
        is_main = self.scope is self.compiler.snapshot.main
        border = self._border(plan.parts, steps) if is_main else ()
        program = assemble(steps, feeds, outputs, partial(_constant, view), self.where, border)
        if is_main:
            self.compiler.steps.add(key, view.nodes, program)
        return program

    def _border(self, parts: Sequence[Part], steps: Iterable[Step]) -> list[str]:
        """Names of values that cross between parts, or that steps make which are not pure."""
        names = dict.fromkeys(name for part in parts for name in part.outputs) if len(parts) > 1 else {}
        names.update(dict.fromkeys(name for step in paced(steps) if not (step.pure or step.part or step.constants)
                                   for name in step.outputs))  # fmt: skip
        return [name for name in names if name in self.ids]

    def fed(self, feeds: Sequence[str]) -> ScopeCompiler:
        """This scope for one program: its bodies may take initializers that are not fed for constants."""
        held = self.scope.initializers
        constants = {*held.values()}.difference(map(held.get, feeds))
        return ScopeCompiler(self.compiler, self.scope, self.bindings, self.persistent | constants, self.invariant)

    def _compiled(self, part: Part, view: PartitionView, provider: Provider) -> CompiledPart | list[Step]:
        """A part compiled by its provider; where that fails, by the last provider, which takes every node."""
        last = self.compiler.providers[-1]
        try:
            return border.compiled(provider, part, view)
        except OnnxlabError as error:
            if provider is last or isinstance(error, LimitError):
                raise
            warnings.warn(f"{provider.name} claimed a part and failed to compile it: {error}", stacklevel=2)
            return border.compiled(last, part, view)

    @property
    def where(self) -> str:
        """The scope's name in messages."""
        return f"function {self.scope.name}" if self.scope.kind == "function" else self.scope.path or "the graph"

    def inner(self, ref: BodyRef) -> ProgramBody:
        """The body of a node of this scope."""
        scope = self.compiler.snapshot.scopes[ref.scope]
        owner = next((node for node in self.scope.nodes if ref in node.attributes.bodies), None)  # None in a function
        invariant = {} if owner is None else self._invariant(owner, scope)
        inner = ScopeCompiler(self.compiler, scope, self.bindings, self.persistent, invariant)
        inputs = tuple(name for name in scope.inputs if name not in scope.initializers)
        captures = tuple(name for name, value in scope.captures if value not in self.persistent)
        return inner.body(inputs, captures, owner)

    def _invariant(self, owner: NodeView, body: ScopeView) -> dict[str, int]:
        """Inputs of a body that hold the same initializer whenever it runs."""
        values = {
            carried: self.invariant.get(source, self.ids[source]) for carried, source in invariant_inputs(owner, body)
        }
        return {carried: value for carried, value in values.items() if value in self.persistent}

    def body(self, inputs: tuple[str, ...], captures: tuple[str, ...], owner: NodeView | None = None) -> ProgramBody:
        """This scope as a body of a node, or a function, that reads `captures` from outside."""
        facts = map(refined_by_type, map(self.compiler.fact, self.scope.output_ids), self.scope.output_types)
        watched = self.compiler.watched.get(self.scope.id, ())
        outputs, growth = list(self.scope.outputs), list[LoopGrowth]()
        if owner is not None and not self.compiler.watched and inputs == self.scope.inputs:
            for place, output, node in grown_inputs(owner, self.scope, self._captured_names()):
                outputs[output] = node.inputs[1]
                growth.append(LoopGrowth(
                    place, output, bound_attributes(node.attributes, self.bindings).get("axis", 1),  # as before opset 4
                    self._step_of(node),
                ))  # fmt: skip
        grown = {inputs[item.place] for item in growth}
        feeds = tuple([name for name in (*inputs, *captures) if name not in grown])

        def make() -> Program:
            return self.program(feeds, (*outputs, *(name for name, _ in watched)))

        return ProgramBody(inputs, self.scope.outputs, captures, tuple(facts), make,
                           [value for _, value in watched], growth)  # fmt: skip

    def _captured_names(self) -> Counter[str]:
        """{name: number of nodes of this scope whose bodies read it}."""
        return Counter(name for node in self.scope.nodes for name in self.captures(node))

    def _step_of(self, node: NodeView) -> Program:
        """A node alone as a program of the last provider."""
        provider, names = self.compiler.providers[-1], tuple(node.inputs)
        compiled = self._compiled(
            Part(provider.name, (node,), names, node.outputs), self.view(names, node.outputs, nodes=(node,)), provider
        )
        assert isinstance(compiled, list)
        return assemble(compiled, names, node.outputs, lambda name: None, self.where)


def _constant(view: PartitionView, name: str) -> Any:
    """The array of an initializer, read from its file if it was left there: a step needs it in memory."""
    array = view.constant(name)
    return np.asarray(view.stored[name]) if array is None and name in view.stored else array


def _apart(node: NodeView, fed: frozenset[str], names: Iterable[str]) -> NodeView:
    """The node, with other names than `names` for what the caller feeds, which no part is to make again."""
    return node if fed.isdisjoint(node.outputs) else replace(
        node, outputs=tuple([f"{max(names, key=len)}:{name}" if name in fed else name for name in node.outputs]),
        stamp=hash((node.stamp, *fed)),
    )  # fmt: skip


def _hashable(value: Any) -> Any:
    """A key for an attribute's value: equal for equal plain values; for other values, their identity."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (type(value), value) if isinstance(value, (int, float, str, bytes, BodyRef)) else id(value)
