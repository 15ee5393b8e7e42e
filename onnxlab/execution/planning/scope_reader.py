"""The protocol by which partitions and inlining read a compiler's scope: `compiler.py` has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from onnxlab.execution.base.provider import Provider
from onnxlab.graph.edit.snapshot import NodeView, ScopeView, Snapshot
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.shapes import Fact


class SnapshotReader(Protocol):
    """A snapshot, its providers, and the facts of its values."""

    snapshot: Snapshot
    providers: tuple[Provider, ...]
    fact: Callable[[int], Fact]
    watched: Mapping[int, tuple[tuple[str, int], ...]]
    stored: Mapping[int, LazyTensor]


class ScopeReader(Protocol):
    """A scope of a snapshot, with what may be asked about its names."""

    scope: ScopeView
    bindings: Mapping[str, Any]

    @property
    def compiler(self) -> SnapshotReader:
        """The compiler of the snapshot."""
        ...

    @property
    def ids(self) -> dict[str, int]:
        """{name: value id} of everything that can be read in the scope."""
        ...

    def constant(self, name: str) -> Any:
        """Array of an initializer, None for any other name."""

    def fact(self, name: str) -> Fact:
        """The inferred fact of a value of the scope."""
        ...

    def captures(self, node: NodeView) -> tuple[str, ...]:
        """Names of the scope that the bodies of a node read."""
        ...

    def reads(self, node: NodeView) -> tuple[str, ...]:
        """Names that a node reads, the captures of its bodies included."""
        ...
