"""A node of one model beside its partner of another: attributes, inputs with the numbers of weights, outputs."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from onnxlab.analysis.diff import texts
from onnxlab.analysis.diff.contents import constant_of
from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.notebook.protocol.messages import JSON
from onnxlab.printable import printable

MOST_ROWS = 200
"""Rows that are sent of a node."""

_BLOCK = 1 << 20
"""Elements that are compared at a time."""

Row = tuple[str, str, str, bool]
Weights = tuple[JSON, Any, Any]


class NodePair:
    """A node of each of two models, read while both are locked; one of them may be absent.

    Args:
        models: both models.
        idents: ids of the nodes, 0 for none.
        partners: by id of a value of the first model, that of the second which stands for it.
    """

    def __init__(self, models: Sequence[Any], idents: tuple[int, int], partners: Any) -> None:
        self._models = models
        self._graphs: list[ModelGraph] = [model.graph for model in models]
        self._partners = partners
        self._nodes = [self._node(graph, ident) for graph, ident in zip(self._graphs, idents, strict=True)]

    def read(self) -> tuple[list[JSON], list[Weights]]:
        """Rows of both nodes, and the weights whose numbers are to be compared, each with its row."""
        rows: list[JSON] = []
        weights: list[Weights] = []
        for part, a, b, differs in (*self._operator(), *self._attributes()):
            rows.append(_row(part, a, b, differs))
        for part, slots in (("input", self._slots("inputs")), ("output", self._slots("outputs"))):
            for slot, pair in enumerate(slots):
                row = self._value_row(f"{part} {slot}", pair)
                rows.append(row)
                if part == "input" and (arrays := self._stored(pair)) is not None:
                    weights.append((row, *arrays))
        return rows[:MOST_ROWS], weights

    @staticmethod
    def _node(graph: ModelGraph, ident: int) -> NodeRecord | None:
        if ident and ident not in graph.nodes:
            raise NameLookupError(f"node {ident} is not in the model any more")
        return graph.nodes.get(ident)

    def _operator(self) -> Iterator[Row]:
        a, b = (f"{node.domain}.{node.op_type}".removeprefix(".") if node else "" for node in self._nodes)
        yield "operator", a, b, a != b
        a, b = (node.name if node else "" for node in self._nodes)
        if a or b:
            yield "name", a, b, a != b

    def _attributes(self) -> Iterator[Row]:
        ours, theirs = (
            {attribute.name: attribute for attribute in node.proto.attribute} if node else {} for node in self._nodes
        )
        for name in dict.fromkeys((*ours, *theirs)):
            a, b = ours.get(name), theirs.get(name)
            same = a is not None and b is not None and a.SerializeToString() == b.SerializeToString()
            yield name, texts.attribute_text(a), texts.attribute_text(b), not same

    def _slots(self, side: str) -> Iterator[tuple[int, int]]:
        ours, theirs = (getattr(node, side) if node else [] for node in self._nodes)
        return zip_longest(ours, theirs, fillvalue=0)

    def _value_row(self, part: str, pair: tuple[int, int]) -> JSON:
        a, b = (self._value_text(place, ident) for place, ident in enumerate(pair))
        types = [self._fact(place, ident) for place, ident in enumerate(pair)]
        linked = self._partners.get(pair[0], 0) == pair[1] or pair == (0, 0)
        return _row(part, a, b, not linked or types[0] != types[1])

    def _value_text(self, place: int, ident: int) -> str:
        return f"{self._graphs[place].values[ident].name} {self._fact(place, ident)}" if ident else ""

    def _fact(self, place: int, ident: int) -> str:
        return str(self._models[place].inference.fact(ident)) if ident else ""

    def _stored(self, pair: tuple[int, int]) -> tuple[Any, Any] | None:
        """Arrays that both sides store of a value; None where one stores nothing."""
        graphs = zip(self._graphs, pair, strict=True)
        stored = [constant_of(graph, graph.values[ident]) if ident else None for graph, ident in graphs]
        if stored[0] is None or stored[1] is None:
            return None
        a, b = (texts.array_of(graph, message) for graph, message in zip(self._graphs, stored, strict=True))
        return a, b


def _row(part: str, a: str, b: str, differs: bool) -> JSON:
    return {"part": printable(part), "a": printable(a), "b": printable(b), "differs": differs, "weights": ""}


def compared(read: tuple[list[JSON], list[Weights]]) -> JSON:
    """The rows of a pair, with the numbers of its weights, which are compared after the models' locks were let go."""
    rows, weights = read
    for row, a, b in weights:
        text = weight_text(a, b)
        row["weights"], row["differs"] = text, row["differs"] or bool(text)
    return {"rows": rows}


def weight_text(a: Any, b: Any) -> str:
    """The distance of two stored tensors in words, "" where they are equal."""
    if a is None or b is None:
        return "too large to be compared here, or unreadable"
    if a.shape != b.shape:
        return f"the shapes differ: {list(a.shape)} and {list(b.shape)}"
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        return "" if np.array_equal(a, b) else "other texts"
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return ""
    count, largest, peak = _apart(a.reshape(-1), b.reshape(-1))
    if not count:
        return "equal numbers" if a.dtype != b.dtype else "equal numbers in other bits"
    share = f", {largest / peak:.2g} of the largest" if peak else ""
    return f"{count:,} of {a.size:,} elements differ, by at most {largest:.3g}{share}"


def _apart(a: Any, b: Any) -> tuple[int, float, float]:
    """The number of elements that differ, their largest difference, the largest magnitude of the first."""
    wide: Any = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    count, largest, peak = 0, 0.0, 0.0
    for start in range(0, a.size, _BLOCK):
        ours, theirs = a[start : start + _BLOCK], b[start : start + _BLOCK]
        with np.errstate(all="ignore"):
            first, second = ours.astype(wide), theirs.astype(wide)
            unlike = ours != theirs if a.dtype == b.dtype else first != second
            unlike &= ~(np.isnan(first) & np.isnan(second))
            off = np.abs(second - first)[unlike]
        count += int(np.count_nonzero(unlike))
        largest = max(largest, float(np.where(np.isnan(off), np.inf, off).max(initial=0.0)))
        peak = max(peak, float(np.abs(first[np.isfinite(first)]).max(initial=0.0)))
    return count, largest, peak
