"""Inputs and outputs of the nodes of one scope as arrays, for questions about all wires of very many nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from onnxlab.graph.index.records import NodeRecord

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Rows(NamedTuple):
    """A row for each node of a scope, in the order of the file.

    Attributes:
        nodes: ids.
        reads: ids of all inputs, node by node and slot by slot, 0 for an absent one.
        arities: number of input slots of each node.
        made: ids of all outputs, node by node and slot by slot, 0 for an absent one.
        makes: number of output slots of each node.
    """

    nodes: Numbers
    reads: Numbers
    arities: Numbers
    made: Numbers
    makes: Numbers

    @classmethod
    def of(cls, nodes: Sequence[NodeRecord]) -> Rows:
        """The rows of these nodes."""
        ids = np.fromiter([node.id for node in nodes], np.int64, len(nodes))
        return cls(ids, *_flat([node.inputs for node in nodes]), *_flat([node.outputs for node in nodes]))


def _flat(lists: list[list[int]]) -> tuple[Numbers, Numbers]:
    """All entries of lists, and how many each has."""
    counts = np.fromiter(map(len, lists), np.int64, len(lists))
    return np.fromiter(chain.from_iterable(lists), np.int64, int(counts.sum())), counts
