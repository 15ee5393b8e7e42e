"""The cost of a run: operations and bytes of every node and group, against the limits of the machine.

A node that does few operations for each byte that it moves waits for memory, however fast the processor is; one that
does many waits for arithmetic. The machine's roofline says which, and how long the node takes at least.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxlab.analysis.cost.counting import OperationCounter
from onnxlab.analysis.cost.roofline import Roofline
from onnxlab.analysis.profile import format_count, format_seconds
from onnxlab.analysis.sizes import chosen_sizes, described, refusals
from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.questions.what_if import inferred
from onnxlab.limits import format_bytes
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp

_SHOWN = 10
_GROUPS = 6

Bound = Literal["arithmetic", "memory", "nothing"]


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a node, a group, an operator or a model.

    Attributes:
        label: its name.
        nodes: how many nodes are in it.
        flops: operations.
        read, written: bytes; 0 for a view.
        least: seconds that the nodes take at least on the machine, one after the other.
        seconds: measured seconds, None where nothing was measured.
    """

    label: str
    nodes: int
    flops: int
    read: int
    written: int
    least: float
    seconds: float | None = None

    @property
    def nbytes(self) -> int:
        """Bytes read and written."""
        return self.read + self.written

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.nbytes if self.nbytes else 0.0

    @property
    def share_of_roofline(self) -> float | None:
        """The least time as a part of the measured one; None where that was not measured."""
        return self.least / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class NodeWork(Work):
    """The work of a node of the main graph, its bodies included.

    Attributes:
        node: its id.
        op: its operator, with the domain where that is not ONNX's.
        group: path of the group that it is in, "" for none.
        bound: what the node waits for.
    """

    node: int = 0
    op: str = ""
    group: str = ""
    bound: Bound = "nothing"


@dataclass(frozen=True, slots=True)
class Cost(metaclass=ShortHelp):
    """The cost of a run, node by node in the order of the schedule.

    Attributes:
        dims: the size of each symbol.
        assumed: symbols among them for which a size was assumed.
        nodes: the nodes of the main graph.
        roofline: what the machine can do.
        open: labels of nodes with an unknown size; they are not counted in full.
        iterating: labels of nodes whose body counts once, since nothing tells how often it runs.
        refused: what nodes cannot accept with these sizes.

    Examples:
        >>> model.cost(batch=1).total.nodes
        24
    """

    dims: Mapping[str, int]
    assumed: tuple[str, ...]
    nodes: tuple[NodeWork, ...] = field(repr=False)
    roofline: Roofline
    open: tuple[str, ...]
    iterating: tuple[str, ...]
    refused: tuple[Diagnostic, ...]

    @property
    def total(self) -> Work:
        """Everything together.

        Examples:
            >>> model.cost(batch=1).total.flops
            279858
        """
        return _sum("total", self.nodes)

    def heaviest(self, count: int = _SHOWN) -> list[NodeWork]:
        """Choose the nodes that take longest: those measured, else by the least that the machine needs for them.

        Args:
            count: how many.

        Returns:
            list[NodeWork]: the longest first.

        Examples:
            >>> len(model.cost(batch=1).heaviest(3))
            3
        """
        return sorted(self.nodes, key=lambda work: (-(work.seconds or 0.0), -work.least))[:count]

    def by_group(self, depth: int = 1) -> list[Work]:
        """Add the nodes of each group up.

        Args:
            depth: how many levels of groups, from the outermost.

        Returns:
            list[Work]: the group that takes longest first; nodes in no group are "".

        Examples:
            >>> sorted((work.label, work.nodes) for work in model.cost(batch=1).by_group())
            [('block1', 7), ('block2', 8), ('head', 6), ('stem', 3)]
        """
        return self._sums("/".join(work.group.split("/")[:depth]) for work in self.nodes)

    def by_operator(self) -> list[Work]:
        """Add the nodes of each operator up.

        Returns:
            list[Work]: the operator that takes longest first.

        Examples:
            >>> model.cost(batch=1).by_operator()[0].label
            'Conv'
        """
        return self._sums(work.op for work in self.nodes)

    def _sums(self, keys: Iterable[str]) -> list[Work]:
        parts: dict[str, list[NodeWork]] = {}
        for key, work in zip(keys, self.nodes, strict=True):
            parts.setdefault(key, []).append(work)
        sums = [_sum(key, works) for key, works in parts.items()]
        return sorted(sums, key=lambda work: (-(work.seconds or 0.0), -work.least))

    def __str__(self) -> str:
        """A headline, and tables of groups and of the heaviest nodes."""
        total = self.total
        waiting = sum(work.least for work in self.nodes if work.bound == "memory")
        lines = [
            f"{described(self.dims, self.assumed)}{format_count(total.flops)}FLOP, {format_bytes(total.nbytes)} moved, "
            f"{total.intensity:.1f} FLOP per byte",
            f"machine: {self.roofline}",
            f"at least {format_seconds(total.least)}, {waiting / (total.least or 1):.0%} of it waiting for memory"
            + _measured(total),
        ]
        groups = [work for work in self.by_group() if work.label]
        if len(groups) > 1:
            lines += _table("group", groups[:_GROUPS])
        lines += _table("node", self.heaviest())
        if self.iterating:
            lines.append(f"bodies that count once: {', '.join(self.iterating[:_SHOWN])}")
        if self.open:
            lines.append(f"sizes not known, not counted whole: {', '.join(self.open[:_SHOWN])}")
        return printable_lines([*lines, *map(str, self.refused)])

    def as_dict(self) -> dict[str, Any]:
        """Give the cost as JSON holds it.

        Returns:
            dict[str, Any]: the total, groups and all nodes.

        Examples:
            >>> model.cost(batch=1).as_dict()["total"]["flops"]
            279858
        """
        return {
            "schema": "onnxlab/cost/1",
            "dims": dict(self.dims),
            "assumed": list(self.assumed),
            "roofline": {
                "flops": self.roofline.flops, "bandwidth": self.roofline.bandwidth,
                "cached": self.roofline.cached, "threads": self.roofline.threads,
            },
            "total": _row(self.total),
            "groups": [_row(work) for work in self.by_group()],
            "nodes": [{**_row(work), "op": work.op, "group": work.group, "bound": work.bound} for work in self.nodes],
            "open": list(self.open),
            "iterating": list(self.iterating),
            "refused": [str(refusal) for refusal in self.refused],
        }  # fmt: skip

    def to_json(self) -> str:
        """Write the cost as JSON.

        Returns:
            str: what `as_dict` gives.

        Examples:
            >>> model.cost(batch=1).to_json()[:28]
            '{"schema": "onnxlab/cost/1",'
        """
        return json.dumps(self.as_dict())


def cost(
    graph: ModelGraph,
    policy: Policy,
    dims: Mapping[str, int],
    arrays: Mapping[str, Any],
    roof: Roofline,
    seconds: Mapping[int, float] | None = None,
) -> Cost:
    """The cost of the main graph.

    Args:
        dims, arrays: sizes of symbols, and inputs that tell others; see `chosen_sizes`.
        roof: what the machine can do.
        seconds: measured seconds of nodes, by id; None where nothing was measured.

    Raises:
        NameLookupError: no input has a symbol of a name that is given.
        ValueError: a size is not an int from 0 on.
    """
    with graph.lock:
        sizes, assumed = chosen_sizes(graph, policy, dims, arrays)
        walker, frame = inferred(graph, policy, sizes)
        counter, hierarchy = OperationCounter(walker), Hierarchy()
        hierarchy.refresh(graph.index)
        works = []
        for ident in graph.index.topological(graph.main):
            node = graph.nodes[ident]
            count = counter.node(frame, node)
            least = roof.seconds(count.flops, count.read + count.written)
            works.append(
                NodeWork(
                    graph.label(node), 1, *count, least, None if seconds is None else seconds.get(ident, 0.0),
                    ident, f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
                    hierarchy.path(hierarchy.group_of.get(ident, 0)), _bound(count.flops, least, roof),
                )
            )  # fmt: skip
        refused = refusals(walker, frame)
    return Cost(sizes, assumed, tuple(works), roof, tuple(counter.open), tuple(counter.iterating), refused)


def _bound(flops: int, least: float, roof: Roofline) -> Bound:
    if not least:
        return "nothing"
    return "arithmetic" if flops / roof.flops >= least else "memory"


def _sum(label: str, works: Iterable[Work]) -> Work:
    parts = list(works)
    measured = [work.seconds for work in parts if work.seconds is not None]
    return Work(
        label,
        sum(work.nodes for work in parts),
        sum(work.flops for work in parts),
        sum(work.read for work in parts),
        sum(work.written for work in parts),
        sum(work.least for work in parts),
        sum(measured) if measured else None,
    )


def _table(title: str, works: Iterable[Work]) -> list[str]:
    rows = list(works)
    timed = any(work.seconds is not None for work in rows)
    head = f"{title:36} {'FLOP':>8} {'moved':>9} {'FLOP/B':>7} {'at least':>9}"
    lines = [f"{head} {'took':>9} {'of roof':>7}" if timed else head]
    for work in rows:
        bound = getattr(work, "bound", "")
        line = (
            f"{work.label[-36:]:36} {format_count(work.flops):>8} {format_bytes(work.nbytes):>9} {work.intensity:7.1f} "
            f"{format_seconds(work.least):>9}"
        )
        if timed:
            share = work.share_of_roofline
            line += f" {format_seconds(work.seconds or 0.0):>9} {'' if share is None else f'{share:.0%}':>7}"
        lines.append(f"{line}  {bound}".rstrip())
    return lines


def _measured(total: Work) -> str:
    share = total.share_of_roofline
    return "" if share is None else f"; took {format_seconds(total.seconds or 0.0)}, {share:.0%} of the roofline"


def _row(work: Work) -> dict[str, Any]:
    names = ("label", "nodes", "flops", "read", "written", "intensity", "least", "seconds")
    return {name: getattr(work, name) for name in names}
