"""Scopes as compilers read them: names, constants and facts, and what outputs need of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Provider
from onnxlab.graph.edit.snapshot import NodeView, ScopeView, Snapshot
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.shapes import UNKNOWN, Fact


class SnapshotReader:
    """A snapshot, its providers, and what is known of its values."""

    snapshot: Snapshot
    providers: tuple[Provider, ...]
    fact: Callable[[int], Fact]
    facts: object
    steps: Any  # the StepCache, which knows scopes
    watched: Mapping[int, tuple[tuple[str, int], ...]]
    stored: Mapping[int, LazyTensor]

    @cached_property
    def ids(self) -> dict[str, int]:
        """{name: value id} of everything that can be read in the main graph."""
        return value_ids(self.snapshot.main)

    @cached_property
    def names(self) -> dict[int, str]:
        """{value id: name} of everything that can be read in the main graph."""
        return {value: name for name, value in self.ids.items()}


class ScopeNames:
    """The names of a graph, body or function of a snapshot.

    Attributes:
        compiler: of the snapshot.
        scope: the graph, body or function.
        bindings: values of the attributes of the function that the scope is in.
        persistent: of a body: ids of outer initializers that no feed replaces, so that they are constants of the body.
        invariant: of a body: {input: id of the persistent initializer that it always holds}.
    """

    def __init__(
        self,
        compiler: SnapshotReader,
        scope: ScopeView,
        bindings: Mapping[str, Any],
        persistent: frozenset[int] = frozenset(),
        invariant: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.scope = scope
        self.bindings = bindings
        self.persistent = persistent
        self.invariant = invariant
        self.compiler = compiler
        self._captured = {name: value for name, value in scope.captures if value in persistent} | {**invariant}

    @cached_property
    def ids(self) -> dict[str, int]:
        """{name: value id} of everything that can be read in this scope."""
        return self.compiler.ids if self.scope is self.compiler.snapshot.main else value_ids(self.scope)

    def constant(self, name: str) -> Any:
        """Array of an initializer, None for any other name and for an initializer that is left in its file."""
        value = self.scope.initializers.get(name, self._captured.get(name))
        return None if value is None or value in self.compiler.stored else self.compiler.snapshot.array(value)

    def initializers_of(self, values: Iterable[int]) -> set[str]:
        """The names of those of these values that are initializers of the main graph."""
        initializers, names = self.compiler.snapshot.main.initializers, self.compiler.names
        return {name for value in values if initializers.get(name := names.get(value, "")) == value}

    def stored(self, fed: Container[str]) -> Mapping[str, LazyTensor]:
        """The initializers that are left in their file and not fed."""
        stored = self.compiler.stored
        if not stored:  # the case of nearly all models
            return {}
        names = self.scope.initializers.items()
        return {name: stored[value] for name, value in names if value in stored and name not in fed}

    def fact(self, name: str) -> Fact:
        """The inferred fact of a value of this scope."""
        value = self.ids.get(name)
        return UNKNOWN if value is None else self.compiler.fact(value)

    def captures(self, node: NodeView) -> tuple[str, ...]:
        """Names of this scope that the bodies of a node read."""
        scopes = self.compiler.snapshot.scopes
        return tuple(dict.fromkeys(name for ref in node.attributes.bodies for name, _ in scopes[ref.scope].captures))

    def reads(self, node: NodeView) -> tuple[str, ...]:
        """Names that a node reads, the captures of its bodies included."""
        if node.attributes.bodies:
            return tuple(name for name in (*node.inputs, *self.captures(node)) if name)
        return tuple(filter(None, node.inputs)) if "" in node.inputs else node.inputs

    def cone(self, feeds: Iterable[str], outputs: Iterable[str]) -> list[NodeView]:
        """The nodes that `outputs` need where `feeds` are given, in topological order."""
        return self.needed(self.scope.nodes, outputs, set(feeds))

    def needed(self, nodes: Sequence[NodeView], outputs: Iterable[str], fed: Container[str]) -> list[NodeView]:
        """The nodes in topological order that `outputs` need where the names of `fed` are fed."""
        return self._demand(nodes, outputs, fed.__contains__)[0]

    def border(self, outputs: Iterable[str], fed: Callable[[str], bool], missing: bool = False) -> list[str]:
        """Names at which a walk back from `outputs` ends: the fed ones, or with `missing` those that are not fed."""
        nodes, read = self._demand(self.scope.nodes, outputs, fed)
        if not missing:
            return [name for name in read if fed(name)]
        produced = {name for node in nodes for name in node.outputs}
        return [name for name in read if not fed(name) and name not in produced]

    def between(self, outputs: Iterable[str], fed: Callable[[str], bool]) -> tuple[list[str], list[str]]:
        """The fed names at which a walk back from `outputs` ends, and all that the nodes on the way make."""
        nodes, read = self._demand(self.scope.nodes, outputs, fed)
        results = [name for node in nodes for name in node.outputs if name and not fed(name)]
        return [name for name in read if fed(name)], results

    def _demand(
        self, nodes: Sequence[NodeView], outputs: Iterable[str], fed: Callable[[str], bool]
    ) -> tuple[list[NodeView], dict[str, None]]:
        """The nodes on a walk back from `outputs`, in topological order, and all names that the walk met."""
        read = dict.fromkeys(outputs)
        needed = {name for name in read if not fed(name)}
        picked = []
        for node in paced(reversed(nodes)) if needed else ():
            if not needed.isdisjoint(node.outputs):
                picked.append(node)
                for name in self.reads(node):
                    if name not in read:
                        read[name] = None
                        if not fed(name):
                            needed.add(name)
        picked.reverse()
        return picked, read


def value_ids(scope: ScopeView) -> dict[str, int]:
    """{name: value id} of everything that can be read in a scope."""
    ids = dict(scope.captures)
    ids.update(zip(scope.inputs, scope.input_ids, strict=True))
    ids.update(scope.initializers)
    for node in paced(scope.nodes):
        ids.update(zip(node.outputs, node.output_ids, strict=True))
    ids.pop("", None)
    return ids
