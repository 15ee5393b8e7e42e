"""Caches derived from the protos and the index, dropped where a change makes them stale."""

from typing import Any, Protocol

import numpy as np

from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.state.names import Names


class Views(Protocol):
    """A cache of what snapshots show of nodes and scopes."""

    def forget_node(self, node: NodeRecord) -> None:
        """Drop what is known of a node."""

    def forget_scope(self, scope: int) -> None:
        """Drop what is known of a scope."""

    def forget_data(self, value: int) -> None:
        """Drop what is known of a value's elements."""

    def forget_all(self) -> None:
        """Drop everything."""


class Caches:
    """The caches of one graph; the changes say what they touch, by way of `ChangeTracker`.

    Attributes:
        keeps: whether anything was kept or viewed yet that has to be told.
        kept: what inference keeps of nodes beside the records, by whatever tells one from another, put there by
            `keep`; told with `forget_node(id)`, `forget_scope(id)` and `forget_value(id)` (of an initializer) what
            changes, and dropped when the meaning of all nodes may.
        arrays: data of initializers by value id, decoded once.
        opsets: version by domain that each root scope imports, by its id.
        views: what snapshots keep, None before there is any.
    """

    def __init__(self, names: Names) -> None:
        self.keeps = False
        self.kept: dict[Any, Any] = {}
        self.arrays: dict[int, np.ndarray[Any, Any]] = {}
        self.opsets: dict[int, dict[str, int]] = {}
        self.views: Views | None = None
        self.forget_name = names.forget

    def keep(self, key: Any, thing: Any) -> None:
        """Put into `kept` what is to be told of edits from now on."""
        self.kept[key] = thing
        self.keeps = True

    def forget_node(self, node: NodeRecord) -> None:
        """Drop what is known of a node."""
        if self.views is not None:
            self.views.forget_node(node)
        for kept in self.kept.values():
            kept.forget_node(node.id)

    def forget_all_nodes(self) -> None:
        """Drop what is known of any node."""
        if self.views is not None:
            self.views.forget_all()
        self.opsets.clear()
        self.kept.clear()

    def forget_scope(self, scope: int) -> None:
        """Drop what is known of a scope."""
        for kept in self.kept.values():
            kept.forget_scope(scope)
        if self.views is not None:
            self.views.forget_scope(scope)

    def forget_data(self, scope: int, value: int) -> None:
        """Drop what is cached of the data of an initializer of a scope."""
        self.forget_array(value)
        for kept in self.kept.values():
            kept.forget_scope(scope)
        if self.views is not None:
            self.views.forget_data(value)

    def forget_array(self, value: int) -> None:
        """Drop the array of a value and what was derived from it."""
        self.arrays.pop(value, None)
        for kept in self.kept.values():
            kept.forget_value(value)
