"""Readers of each node of a scope, and nodes that depend on weights alone: arrays by topological position.

Look-ups one by one take more than ten times as long for a million nodes as for 100,000, since each look-up is a cache
miss. Arrays are read in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Protocol

import numpy as np

from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.index.rows import Numbers, Rows


class Connections(Protocol):
    """The members of a model that are read here: its Index has them."""

    nodes: dict[int, NodeRecord]
    values: dict[int, ValueRecord]
    scopes: dict[int, Scope]

    @property
    def may_say_paths(self) -> bool:
        """Whether names or metadata of nodes may say where these belong."""

    def topological(self, scope: Scope) -> list[int]:
        """The ids of a scope's nodes in topological order."""

    def rows(self, scope: Scope) -> Rows:
        """The inputs and outputs of the nodes of a scope, in the order of the file."""


class Readers:
    """The positions of the readers of each node, in the order of the file; may repeat.

    Args:
        readers: (position in the third array where each node's readers begin, their number, all readers), or a list of
            readers for each node.
    """

    def __init__(self, readers: tuple[Numbers, Numbers, Numbers] | list[list[int]]) -> None:
        self._given = readers

    @cached_property
    def lists(self) -> list[list[int]]:
        """A list for each."""
        if isinstance(self._given, list):
            return self._given
        begins, _, readers = self._given
        flat = readers.tolist()
        return [flat[begin:end] for begin, end in pairwise([*begins.tolist(), len(flat)])]

    @cached_property
    def columns(self) -> tuple[Numbers, Numbers, Numbers]:
        """The beginnings of the readers of each node among all, their numbers, and all readers."""
        if not isinstance(self._given, list):
            return self._given
        counts = np.fromiter(map(len, self._given), np.int64, len(self._given))
        readers = np.fromiter(chain.from_iterable(self._given), np.int64, int(counts.sum()))
        return np.cumsum(counts) - counts, counts, readers


class Wires:
    """The wires of the nodes of a scope, among each other and from outside.

    Args:
        graph: the model's index.

    Attributes:
        order: ids of the nodes in topological order; in other arrays, a node is its place in this order.
        reads: ids of all inputs, slot by slot, in the order of the file; 0 for absent ones.
        readers: the node of each entry of `reads`.
        makers: the first node that computes each entry of `reads`, -1 where no node of the scope does.
    """

    def __init__(self, graph: Connections, scope: Scope) -> None:
        rows = graph.rows(scope)
        place = np.arange(len(rows.nodes))
        self.order = rows.nodes
        if scope.backward:
            self.order = np.array(graph.topological(scope), np.int64)
            by_id = np.argsort(self.order)
            place = by_id[self.order[by_id].searchsorted(rows.nodes)]
        self._graph = graph
        self._place = place
        self._note_makers(rows, sort=bool(scope.backward))
        self.reads = rows.reads
        self.readers = np.repeat(place, rows.arities)
        self.makers = self.made_by(self.reads)

    def _note_makers(self, rows: Rows, sort: bool) -> None:
        """Note the first maker of each value, by its id less the least one."""
        values, makers = rows.made, np.repeat(self._place, rows.makes)
        if not values.all():
            values, makers = values[values != 0], makers[values != 0]
        if sort:
            by_place = np.argsort(makers, kind="stable")
            values, makers = values[by_place], makers[by_place]
        self._least = int(values.min()) if values.size else 0
        self._makers = np.full(int(values.max()) - self._least + 1 if values.size else 0, -1, np.int64)
        self._makers[values[::-1] - self._least] = makers[::-1]  # reversed: the first maker is written last

    def made_by(self, values: Numbers) -> Numbers:
        """The first node that makes each of some values, -1 where that is none of the scope."""
        places = values - self._least
        inside = (places >= 0) & (places < len(self._makers))
        if inside.all():
            return self._makers[places]
        makers = np.full(len(values), -1, np.int64)
        makers[inside] = self._makers[places[inside]]
        return makers

    @cached_property
    def owners(self) -> list[int]:
        """The nodes with graphs in them."""
        ids = [scope.owner for scope in self._graph.scopes.values() if scope.owner]
        return np.flatnonzero(np.isin(self.order, ids)).tolist() if ids else []

    def consumers(self, read_inside: Callable[[NodeRecord], Iterable[int]]) -> Readers:
        """The readers of each node; what is read inside of a node's bodies counts as read by it.

        Args:
            read_inside: returns the values that the nodes in the bodies of a node read.
        """
        makers, readers = self.makers, self.readers
        if self.owners:
            nodes = self._graph.nodes
            inside = [list(read_inside(nodes[ident])) for ident in self.order[self.owners].tolist()]
            values = np.fromiter(chain.from_iterable(inside), np.int64, sum(map(len, inside)))
            row_of = np.empty_like(self._place)
            row_of[self._place] = np.arange(len(self._place))
            readers = np.concatenate((readers, np.repeat(self.owners, list(map(len, inside)))))
            in_file = np.argsort(row_of[readers], kind="stable")  # after the inputs of the node itself
            makers, readers = np.concatenate((makers, self.made_by(values)))[in_file], readers[in_file]
        return self._by_maker(makers, readers)

    def _by_maker(self, makers: Numbers, readers: Numbers) -> Readers:
        is_here = makers >= 0
        if not is_here.all():
            makers, readers = makers[is_here], readers[is_here]
        counts = np.bincount(makers, minlength=len(self.order))
        return Readers((np.cumsum(counts) - counts, counts, readers[np.argsort(makers, kind="stable")]))

    def fed_by(
        self, is_source: Callable[[int], bool], may: Callable[[int], bool], stored: Sequence[int] = ()
    ) -> bytearray:
        """Whether each node reads nothing but sources, and what such nodes before it make.

        Args:
            is_source: whether a value that no node of the scope computes is a source, by the value's id.
            may: whether a node that reads nothing but sources counts as a source.
            stored: ids of values to which `is_source` applies although a node of the scope computes them.
        """
        makers = np.where(np.isin(self.reads, stored), -1, self.makers) if stored else self.makers
        outside = (makers < 0) & (self.reads != 0)
        values, which = np.unique(self.reads[outside], return_inverse=True)
        is_given = np.fromiter(map(is_source, values.tolist()), bool, len(values))
        never = np.zeros(len(self.order), bool)
        never[self.readers[outside][~is_given[which]]] = True
        never[self.readers[makers >= self.readers]] = True  # on a cycle
        waits = np.bincount(self.readers[makers >= 0], minlength=len(self.order))
        fed = bytearray(len(self.order))
        ready = [node for node in np.flatnonzero(~never & (waits == 0)).tolist() if may(node)]
        begins, counts, readers = self._by_maker(makers, self.readers).columns if ready else (waits, waits, waits)
        left: dict[int, int] = {}
        while ready:
            node = ready.pop()
            fed[node] = True
            for reader in readers[begins[node] : begins[node] + counts[node]].tolist():
                left[reader] = left.get(reader, int(waits[reader])) - 1
                if not left[reader] and not never[reader] and may(reader):
                    ready.append(reader)
        return fed
