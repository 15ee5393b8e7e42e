"""Names and inputs of nodes as columns of numbers: noted while a model is read, searched for all at once."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from onnxlab.graph.index.rows import Numbers, Rows
from onnxlab.graph.protos import wire_format

_SCANS = 64
"""Searches for readers by a scan over all inputs, before the inputs are sorted by value."""

_LOOKUPS = 1000
"""Names that are searched for by a scan: building a table of all names takes as long as this many scans."""

_ROWS = 20
"""Nodes whose entries in the table of names take as long as one scan."""

_LEAST = 16
"""Names that are searched for by a scan in scopes of few nodes."""

_BITS = 20
"""Bits of a count of inputs or outputs in a number that also holds others."""


class Notes:
    """Columns in the making.

    Attributes:
        nodes: ids, ascending.
        reads: ids of the inputs of all nodes by slot, 0 for an absent one.
        ends: number of the inputs of each node and those before it.
        names: the hash of each node's name as the file has it.
        odd: ids of a node's outputs by the node's id, where they are not one new value for each slot.
        rows: (first, behind the last) row of each scope's nodes, by the scope's id.
        last: the greatest id of an output of each scope's nodes, by the scope's id.
    """

    def __init__(self) -> None:
        self.nodes = array("q")
        self.reads = array("q")
        self.ends = array("q")
        self.names = array("q")
        self.odd: dict[int, list[int]] = {}
        self.rows: dict[int, tuple[int, int]] = {}
        self.last: dict[int, int] = {}

    def enter(self, scope: int, nodes: Collection[int], last: int) -> None:
        """Enter the ids of the nodes of a scope, whose reads and names were noted, and the last id given in it."""
        first = len(self.nodes)
        self.nodes.frombytes(np.fromiter(nodes, np.int64, len(nodes)).tobytes())
        self.rows[scope] = first, len(self.nodes)
        self.last[scope] = last


class Columns(NamedTuple):
    """A row for each node.

    Attributes:
        nodes: ids, ascending.
        starts: positions in `inputs` where the inputs of each node begin, then the end of the last node's.
        inputs: ids of values by slot, 0 for an absent one.
        names: the hash of each node's name.
        makes: number of each node's outputs, whose ids follow the node's own.
        odd: ids of a node's outputs by the node's id, where they are not one new value for each slot.
        rows: (first, behind the last) row of each scope's nodes, by the scope's id.
    """

    nodes: Numbers
    starts: Numbers
    inputs: Numbers
    names: Numbers
    makes: Numbers
    odd: dict[int, list[int]]
    rows: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, notes: Notes) -> Columns:
        """The columns of all nodes."""
        nodes, names, ends, reads = (
            np.frombuffer(column, np.int64) for column in (notes.nodes, notes.names, notes.ends, notes.reads)
        )
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        makes = np.diff(nodes, append=0) - 1
        for scope, (first, end) in notes.rows.items():
            if end > first:
                makes[end - 1] = notes.last[scope] - nodes[end - 1]
        return cls(nodes, starts, reads, names, makes, notes.odd, notes.rows)

    def of_scope(self, scope: int) -> Rows:
        """The inputs and outputs of the nodes of a scope."""
        first, end = self.rows[scope]
        nodes, makes = self.nodes[first:end], self.makes[first:end].copy()
        strange = [node for node in self.odd if end > first and nodes[0] <= node <= nodes[-1]]
        rows = nodes.searchsorted(strange)
        makes[rows] = [len(self.odd[node]) for node in strange]
        begins = np.cumsum(makes) - makes
        outputs = np.repeat(nodes + 1 - begins, makes) + np.arange(makes.sum())
        for node, begin in zip(strange, begins[rows].tolist(), strict=True):
            outputs[begin : begin + len(self.odd[node])] = self.odd[node]
        starts = self.starts[first : end + 1]
        return Rows(nodes, self.inputs[starts[0] : starts[-1]], np.diff(starts), outputs, makes)

    def arities(self) -> Numbers:
        """One number for each scope, count of inputs and of outputs, by row; below 0 where a slot may be empty.

        The number is below 0, too, where a count is too large for its bits.
        """
        counts = np.diff(self.starts)
        scopes = np.zeros(len(counts), np.int64)
        for scope, (first, end) in self.rows.items() if len(self.rows) > 1 else ():
            scopes[first:end] = scope
        codes = (scopes << 2 * _BITS) + (counts << _BITS) + self.makes
        codes[(counts | self.makes) >> _BITS > 0] = -1
        codes[self.starts.searchsorted(np.flatnonzero(self.inputs == 0), "right") - 1] = -1
        codes[self.nodes.searchsorted(list(self.odd))] = -1
        return codes


class Search:
    """Answers from columns of before any edit."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._lookups = 0
        self._scans = 0
        self._order: Numbers | None = None
        self._sorted: Numbers | None = None

    def called(self, scope: int, name: str) -> list[int] | None:
        """Ids of nodes of a scope that may have a name, all that have it among them; None after many questions."""
        self._lookups += 1
        columns = self._columns
        if self._lookups > _LOOKUPS or scope not in columns.rows:
            return None
        first, end = columns.rows[scope]
        if self._lookups > max(_LEAST, (end - first) // _ROWS):
            return None
        key = wire_format.node_name(name.encode(errors="replace").decode())
        rows = np.flatnonzero(columns.names[first:end] == hash(key))
        return columns.nodes[rows + first].tolist()  # type: ignore[no-any-return]

    def readers(self, value: int) -> list[tuple[int, int]]:
        """(node id, input slot) wherever a value is read, in the order of the nodes."""
        nodes, starts, inputs = self._columns[:3]
        if self._order is None or self._sorted is None:
            self._scans += 1
            places = np.flatnonzero(inputs == value)
            if self._scans > _SCANS:
                self._order = np.argsort(inputs, kind="stable")
                self._sorted = inputs[self._order]
        else:
            first, end = self._sorted.searchsorted((value, value + 1)).tolist()
            places = self._order[first:end]
        rows = starts.searchsorted(places, "right") - 1
        return list(zip(nodes[rows].tolist(), (places - starts[rows]).tolist(), strict=True))
