"""Growth of a matching along wires: what a matched node reads and makes, what reads a matched value."""

from __future__ import annotations

from collections import deque

from onnxlab.analysis.diff.vertices import MADE, NODE, STORED, Vertices


class Growth:
    """A matching of vertices that grows from each pair that is entered.

    Attributes:
        partner: of each vertex the other model's, -1 where it has none.
    """

    def __init__(self, vertices: Vertices) -> None:
        self._vertices = vertices
        self.partner = [-1] * len(vertices)
        self._labels = vertices.strict
        self._is_strict = True
        self._queue: deque[tuple[int, int]] = deque()

    @property
    def is_strict(self) -> bool:
        """Whether attributes and elements have to be equal."""
        return self._is_strict

    def loosen(self) -> None:
        """From now on operators and types are enough; what is matched grows anew."""
        self._is_strict, self._labels = False, self._vertices.loose
        self._queue.extend(
            (vertex, other) for vertex, other in enumerate(self.partner) if 0 <= vertex < self._vertices.first
        )
        self._queue = deque((vertex, other) for vertex, other in self._queue if other >= 0)
        self._run()

    def enter(self, vertex: int, other: int) -> bool:
        """Match two vertices, and what follows from it; False where one has a partner, or wires contradict."""
        if not self._fits(vertex, other):
            return False
        self._take(vertex, other)
        self._run()
        return True

    def force(self, vertex: int, other: int) -> bool:
        """Match two vertices whatever they are, and what follows from it; False where one has a partner."""
        if self.partner[vertex] >= 0 or self.partner[other] >= 0:
            return False
        self._take(vertex, other)
        self._run()
        return True

    def is_grounded(self, vertex: int, other: int) -> bool:
        """Whether a wire of two vertices leads to a pair on either side."""
        vertices, partner = self._vertices, self.partner
        if vertices.kinds[vertex] == NODE:
            for ours, theirs in (
                *zip(vertices.inputs[vertex], vertices.inputs[other], strict=False),
                *zip(vertices.outputs[vertex], vertices.outputs[other], strict=False),
            ):
                if ours >= 0 and partner[ours] == theirs and vertices.kinds[ours] != STORED:
                    return True
            return False
        (maker, slot), (its, where) = vertices.maker[vertex], vertices.maker[other]
        if maker >= 0 and partner[maker] == its and slot == where:
            return True
        readers = vertices.readers[other]
        return any((partner[node], slot) in readers for node, slot in vertices.readers[vertex] if partner[node] >= 0)

    def _take(self, vertex: int, other: int) -> None:
        self.partner[vertex], self.partner[other] = other, vertex
        self._queue.append((vertex, other))

    def _fits(self, vertex: int, other: int) -> bool:
        vertices, partner = self._vertices, self.partner
        if partner[vertex] >= 0 or partner[other] >= 0 or vertices.kinds[vertex] != vertices.kinds[other]:
            return False
        kind = vertices.kinds[vertex]
        if kind == NODE:
            return not self._contradicts(vertex, other)
        if kind == MADE:
            (maker, slot), (its, where) = vertices.maker[vertex], vertices.maker[other]
            return slot == where and (
                (maker < 0 and its < 0) or partner[maker] in (its, -1 if self._may(maker, its) else its)
            )
        return True

    def _may(self, maker: int, other: int) -> bool:
        """Whether two nodes that make values could be matched."""
        partner = self.partner
        return (
            maker >= 0
            and other >= 0
            and partner[maker] < 0
            and partner[other] < 0
            and (self._labels[maker] == self._labels[other])
        )

    def _contradicts(self, vertex: int, other: int) -> bool:
        """Whether wires of two nodes lead to vertices with other partners: any where strict, else the most of them."""
        vertices, partner = self._vertices, self.partner
        against = agree = 0
        for ours, theirs in (
            *zip(vertices.inputs[vertex], vertices.inputs[other], strict=False),
            *zip(vertices.outputs[vertex], vertices.outputs[other], strict=False),
        ):
            if ours >= 0 and theirs >= 0:
                if partner[ours] == theirs:
                    agree += 1
                elif partner[ours] >= 0 or partner[theirs] >= 0:
                    against += 1
        return against > 0 if self._is_strict else against > agree

    def _run(self) -> None:
        queue, kinds = self._queue, self._vertices.kinds
        while queue:
            vertex, other = queue.popleft()
            if kinds[vertex] == NODE:
                self._from_node(vertex, other)
            else:
                self._from_value(vertex, other)

    def _from_node(self, vertex: int, other: int) -> None:
        vertices, partner = self._vertices, self.partner
        for ours, theirs in zip(vertices.outputs[vertex], vertices.outputs[other], strict=False):
            if ours >= 0 and theirs >= 0 and partner[ours] < 0 and partner[theirs] < 0:
                self._take(ours, theirs)
        for ours, theirs in zip(vertices.inputs[vertex], vertices.inputs[other], strict=False):
            if ours < 0 or theirs < 0 or partner[ours] >= 0 or partner[theirs] >= 0:
                continue
            kind = vertices.kinds[ours]
            if kind != vertices.kinds[theirs]:
                continue
            if kind == MADE:
                (maker, slot), (its, where) = vertices.maker[ours], vertices.maker[theirs]
                if slot == where and self._may(maker, its) and not self._contradicts(maker, its):
                    self._take(ours, theirs)
                    self._take(maker, its)
            elif self._labels[ours] == self._labels[theirs] and (
                kind != STORED or self._is_strict or self._is_alone(ours, theirs)
            ):
                self._take(ours, theirs)

    def _is_alone(self, vertex: int, other: int) -> bool:
        """Whether two stored values of other elements have equally many readers: one can have become the other."""
        return len(self._vertices.readers[vertex]) == len(self._vertices.readers[other])

    def _from_value(self, vertex: int, other: int) -> None:
        vertices, partner = self._vertices, self.partner
        (maker, slot), (its, where) = vertices.maker[vertex], vertices.maker[other]
        if slot == where and self._may(maker, its) and not self._contradicts(maker, its):
            self._take(maker, its)
        readers, theirs = vertices.readers[vertex], vertices.readers[other]
        if not readers or not theirs or len(readers) > 64 or len(theirs) > 64:
            return  # a value that many nodes read does not tell them apart
        labels = self._labels
        if len(readers) == 1 == len(theirs):
            (reader, at), (like, its_slot) = readers[0], theirs[0]
            if at == its_slot and self._may(reader, like) and not self._contradicts(reader, like):
                self._take(reader, like)
            return
        by_label: dict[tuple[int, int], list[int]] = {}
        for side, uses in enumerate((readers, theirs)):
            for reader, at in uses:
                if partner[reader] < 0:
                    by_label.setdefault((labels[reader], at), []).append(reader if not side else ~reader)
        for pair in by_label.values():
            if len(pair) == 2 and pair[0] >= 0 > pair[1]:
                reader, like = pair[0], ~pair[1]
                if partner[reader] < 0 and partner[like] < 0 and not self._contradicts(reader, like):
                    self._take(reader, like)
