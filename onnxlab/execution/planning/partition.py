"""The partition of nodes among providers: maximal convex parts, in the caller's order of preference.

A set of nodes is convex when no path leaves it and comes back, so that it can run in one go. Nodes of one provider
are grouped by the largest number of provider changes on a path to them. Along an edge that number never falls, and it
rises where the provider changes, so each group is convex and the groups form no cycle. Groups of one provider that no
path through another group separates are then joined.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from numbers import Integral

from onnxlab.errors import OnnxlabError
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Part, PartitionView, Provider, SubgraphClaim
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.limits import format_bytes
from onnxlab.printable import printable_lines
from onnxlab.shapes import Dim

_MAX_JOINED = 400  # parts beyond which joining is not tried: its time grows with the number of pairs


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a provider left a node to those that follow it."""

    node: int
    label: str
    provider: str
    reason: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that one part makes and another reads; `nbytes` is None where its size is unknown."""

    name: str
    source: int
    targets: tuple[int, ...]
    nbytes: Dim | None


@dataclass(frozen=True, slots=True)
class Partition:
    """The plan: parts in an order in which they can run, what crosses between them, and why nodes were refused.

    `bodies` holds (path, partition) of every body of its nodes. A body belongs to the provider that has its node, but
    the nodes of the body are partitioned by themselves.
    """

    parts: tuple[Part, ...]
    crossings: tuple[Crossing, ...]
    refusals: tuple[Refusal, ...]
    bodies: tuple[tuple[str, Partition], ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes that cross between parts, of the values whose size is known."""
        return sum(crossing.nbytes for crossing in self.crossings if isinstance(crossing.nbytes, int))

    def __str__(self) -> str:
        lines = []
        for number, part in enumerate(self.parts):
            first, last = part.nodes[0].label, part.nodes[-1].label
            span = first if len(part.nodes) == 1 else f"{first} … {last}"
            lines.append(f"{number:4}  {part.provider:12} {len(part.nodes):6} nodes  {span}")
        unknown = sum(not isinstance(crossing.nbytes, int) for crossing in self.crossings)
        also = f" and {unknown} of unknown size" if unknown else ""
        lines.append(f"{len(self.crossings)} values cross between parts: {format_bytes(self.nbytes)}{also}")
        reasons: dict[tuple[str, str], list[str]] = {}
        for refusal in self.refusals:
            reasons.setdefault((refusal.provider, refusal.reason), []).append(refusal.label)
        for (provider, reason), labels in reasons.items():
            more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
            lines.append(f"{provider} left {', '.join(labels[:3])}{more}: {reason}")
        for path, body in self.bodies:
            lines += [f"in {path}:", *(f"    {line}" for line in str(body).split("\n"))]
        return printable_lines(lines)


def partition(view: PartitionView, providers: Sequence[Provider]) -> Partition:
    """Assign every node of the view.

    Args:
        view: the nodes that a run needs.
        providers: in order of preference; the last one takes the nodes that are left.

    Raises:
        ValueError: no provider is given.
    """
    if not providers:
        raise ValueError("a run needs at least one provider")
    if len(providers) == 1:
        groups = [(providers[0].name, list(view.nodes))] if view.nodes else []
        return Partition(parts_of(view, groups), (), ())
    graph = _Graph(view)
    refusals: list[Refusal] = []
    for order, provider in enumerate(providers[:-1]):
        view.refusals.clear()
        for claim in _claims(provider, view):
            graph.assign(order, _in_memory(claim, view) if view.stored else claim.nodes)
        free = set(graph.free())
        refusals += [
            Refusal(node.id, node.label, provider.name, view.refusals.get(node.id, "not claimed"))
            for node in paced(view.nodes)
            if node.id in free
        ]
    graph.assign(len(providers) - 1, graph.free())
    groups = [(providers[order].name, [view.nodes[index] for index in members]) for order, members in graph.groups()]
    parts = parts_of(view, groups)
    return Partition(parts, tuple(_crossings(view, parts)), tuple(refusals))


def _claims(provider: Provider, view: PartitionView) -> Sequence[SubgraphClaim]:
    """The claims of a provider: none where it fails; the error is then the reason for all its refusals."""
    try:
        claims = list(provider.get_capability(view))
        for claim in claims:
            if not _is_claim(claim):
                raise TypeError(f"a claim is a SubgraphClaim of ids of nodes, given {claim!r:.80}")
        return claims
    except OnnxlabError:
        raise
    except Exception as error:
        reason = f"{provider.name} failed when it was asked for its nodes ({type(error).__name__}: {error})"
        warnings.warn(f"{reason}; they go to the providers after it", stacklevel=2)
        view.refusals.update((node.id, reason) for node in paced(view.nodes))
        return ()


def _in_memory(claim: SubgraphClaim, view: PartitionView) -> list[int]:
    """The nodes of a claim but for those that read weights from files, which only the last provider runs."""
    large = {node.id for node in paced(view.nodes) if not view.stored.keys().isdisjoint(node.inputs)}
    reason = "it reads a weight that is left in its file, since the model is larger than memory"
    view.refusals.update(dict.fromkeys(large.intersection(claim.nodes), reason))
    return [node for node in claim.nodes if node not in large]


def _is_claim(claim: object) -> bool:
    """Whether a claim is well-formed: providers may be a user's."""
    return (
        isinstance(claim, SubgraphClaim)
        and isinstance(claim.nodes, Collection)
        and all(isinstance(node, Integral) for node in paced(claim.nodes))
    )


class _Graph:
    """The nodes of a view by index, with the provider of each."""

    def __init__(self, view: PartitionView) -> None:
        self.index = {node.id: index for index, node in enumerate(view.nodes)}
        nodes = view.nodes
        maker = {name: index for index, node in enumerate(paced(nodes)) for name in node.outputs if name}
        # In a cycle a node reads what a later one makes: the run tells of it.
        self.sources = [sorted({maker[name] for name in view.reads(node) if maker.get(name, index) < index})
                        for index, node in enumerate(paced(nodes))]  # fmt: skip
        self.provider = [-1] * len(view.nodes)

    def free(self) -> list[int]:
        """Ids of the nodes without a provider, in order."""
        return [node for node, index in self.index.items() if self.provider[index] < 0]

    def assign(self, order: int, nodes: Iterable[int]) -> None:
        """Give those of some nodes to a provider that have none."""
        for index in (self.index[node] for node in nodes if node in self.index):
            if self.provider[index] < 0:
                self.provider[index] = order

    def groups(self) -> list[tuple[int, list[int]]]:
        """(provider, node indices in order) of every part, in an order in which they can run."""
        if len(set(self.provider)) == 1:
            return [(self.provider[0], list(range(len(self.provider))))]
        level: list[int] = []
        grouped: dict[tuple[int, int], list[int]] = {}
        for index, kind in enumerate(paced(self.provider)):
            level.append(max((level[s] + (self.provider[s] != kind) for s in self.sources[index]), default=0))
            grouped.setdefault((kind, level[index]), []).append(index)
        return self._joined([(kind, indices) for (kind, _), indices in grouped.items()])

    def _joined(self, groups: list[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
        """Join groups of one provider that no path through a third one separates; then order them."""
        home = {index: number for number, (_, members) in enumerate(groups) for index in members}
        needs = {
            number: {home[source] for index in members for source in self.sources[index]} - {number}
            for number, (_, members) in enumerate(groups)
        }
        changed = len(groups) <= _MAX_JOINED
        while changed:  # a group that was joined may have stood between two others
            changed = False
            for late in [*needs]:
                alike = [early for early in needs if early < late and groups[early][0] == groups[late][0]]
                free = (early for early in alike if not _separated(needs, early, late))
                early = next(free, None)
                if early is not None:
                    changed = True
                    groups[early][1].extend(groups[late][1])
                    needs[early] = (needs[early] | needs.pop(late)) - {early, late}
                    for sources in needs.values():
                        if late in sources:
                            sources.discard(late)
                            sources.add(early)
        return [(groups[number][0], sorted(groups[number][1])) for number in _topological(needs)]


def _separated(needs: dict[int, set[int]], first: int, second: int) -> bool:
    """Whether a path leads from one group to the other, in either direction, through a third."""
    return any(_leads(needs, *pair) for pair in ((first, second), (second, first)))


def _leads(needs: dict[int, set[int]], early: int, late: int) -> bool:
    """Whether a path leads from `early` to `late` through another group."""
    seen: set[int] = set()
    waiting = [source for source in needs[late] if source != early]
    while waiting:
        group = waiting.pop()
        if group == early:
            return True
        if group not in seen:
            seen.add(group)
            waiting.extend(needs[group])
    return False


def _topological(needs: dict[int, set[int]]) -> list[int]:
    """Keys, each after those that it needs, the least of those that may follow first."""
    sorter, order, ready = TopologicalSorter(needs), list[int](), list[int]()
    sorter.prepare()
    while sorter.is_active():
        for key in sorter.get_ready():
            heappush(ready, key)
        order.append(heappop(ready))
        sorter.done(order[-1])
    return order


def parts_of(view: PartitionView, groups: Sequence[tuple[str, Sequence[NodeView]]]) -> tuple[Part, ...]:
    """The groups with the values that cross their borders."""
    readers: dict[str, set[int]] = {}
    for number, (_, nodes) in enumerate(groups):
        for node in paced(nodes):
            for name in view.reads(node):
                readers.setdefault(name, set()).add(number)
    parts = []
    for number, (provider, nodes) in enumerate(groups):
        outputs_of_part = dict.fromkeys(name for node in paced(nodes) for name in node.outputs if name)
        read = dict.fromkeys(name for node in paced(nodes) for name in view.reads(node) if name not in outputs_of_part)
        inputs = tuple(name for name in paced(read) if name not in view.stored and view.constant(name) is None)
        outputs = tuple(
            name for name in paced(outputs_of_part) if name in view.visible or readers.get(name, set()) - {number}
        )
        parts.append(Part(provider, tuple(nodes), inputs, outputs))
    return tuple(parts)


def _crossings(view: PartitionView, parts: Iterable[Part]) -> list[Crossing]:
    readers: dict[str, list[int]] = {}
    maker: dict[str, int] = {}
    for number, part in enumerate(parts):
        for name in part.inputs:
            readers.setdefault(name, []).append(number)
        maker.update((name, number) for name in part.outputs)
    crossings = []
    for name, targets in readers.items():
        if name in maker:
            crossings.append(Crossing(name, maker[name], tuple(targets), view.fact(name).nbytes()))
    return crossings
