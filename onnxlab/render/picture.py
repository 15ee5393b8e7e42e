"""A model folded until it fits on a page: boxes, frames and edges as plain data, before any layout."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from onnxlab.garbage_collection import AGED, PATIENCE, no_collection
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos import ge_dump
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.ops import find_traits
from onnxlab.render.categories import category

if TYPE_CHECKING:
    from onnxlab.model import Model

MAX_BOXES = 120
"""Boxes of a picture, inputs and outputs of the graph apart."""
MAX_TERMINALS = 12
"""Inputs or outputs that are drawn one by one; more are drawn as one box."""
MAX_TEXT = 32
"""Characters of a line in a box."""
MAX_LABEL = 22
"""Characters at an edge."""


_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Box:
    """A node, a folded group, or an input or output of the graph.

    Attributes:
        key: opaque; the same in every picture of the same state.
        family: of `categories`, or "group", "input", "output".
        frame: key of the open group around it, 0 at the top.
        title, subtitle: lines of text as they are in the model, shortened.
        tip: the whole name.
    """

    key: int
    family: str
    frame: int
    title: str
    subtitle: str
    tip: str


@dataclass(frozen=True, slots=True)
class Edge:
    """One or several values from one box to another.

    The label is the shape of the first value, "" where another edge of the same value says it. It is a capture where
    bodies read all of its values from outside of themselves, or where all of them are control edges of a GE dump.
    """

    source: int
    target: int
    label: str
    is_capture: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """An open group, a node with bodies, or one of these."""

    key: int
    parent: int
    title: str


@dataclass(slots=True)
class Picture:
    """Boxes and edges to lay out; boxes are in topological order."""

    boxes: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)


@no_collection(most=PATIENCE * AGED)
def picture(model: "Model", max_boxes: int = MAX_BOXES, hierarchy: Hierarchy | None = None) -> Picture:
    """The main graph, folded until at most `max_boxes` boxes show. Constants and initializers are left out.

    The bodies of If, Loop and the like are drawn in a frame around their node where there is room for them.

    Args:
        hierarchy: groups that are up to date; taken where their top is small enough, else groups are found
            anew.
    """
    with model.graph.lock:
        if hierarchy is None or hierarchy.width(model.graph.main.id) > max_boxes:
            hierarchy = Hierarchy(max_boxes)
            hierarchy.refresh(model.graph.index)
        return _Painter(model, max_boxes, hierarchy).paint()


class _Painter:
    def __init__(self, model: "Model", max_boxes: int, hierarchy: Hierarchy) -> None:
        self._model = model
        self._graph = model.graph
        self._scope: Scope = model.graph.main
        self._hierarchy = hierarchy
        self._fixed: set[int] = set()
        self._is_dump = ge_dump.is_dump(model.graph.header)
        order = map(model.graph.nodes.__getitem__, model.graph.index.topological(self._scope))
        self._order = [node for node in order if not self._is_constant(node)]
        self._open = dict.fromkeys(self._unfold(max_boxes))
        self._folded = self._folded_groups()
        self._keys: dict[tuple[str, int], int] = {}
        self._max_boxes = max_boxes
        self._opened: set[int] = set()
        self._makers_of: dict[int, tuple[int, ...]] = {}
        self._picture = Picture()

    def _is_constant(self, node: NodeRecord) -> bool:
        """Whether a node reads nothing but weights, and what it makes is read: its reader's own business.

        Producers are asked before their readers.
        """
        if self._is_dump:  # whose inputs and weights are nodes
            return False
        values, fixed = self._graph.values, self._fixed
        for value in node.inputs:
            if value and value not in fixed and values[value].initializer is None:
                return False
        made = [value for value in node.outputs if value]
        if node.bodies or any(values[value].is_output for value in made):
            return False
        fixed.update(made)
        return True

    def paint(self) -> Picture:
        box_of: dict[int, int] = {}
        self._terminals("input", self._scope.inputs, box_of)
        homes = [self._shown(node.id) for node in self._order]
        for kind, ident in dict.fromkeys(homes):
            key = self._key(kind, ident)
            self._picture.boxes.append(self._node(key, ident) if kind == "node" else self._group(key, ident))
        keys = [self._keys[home] for home in homes]
        for node, key in zip(self._order, keys, strict=True):
            for value in node.outputs:
                box_of[value] = key
        box_of.pop(0, None)  # outputs that are left out
        for node, key in zip(tuple(self._order), tuple(keys), strict=True):
            if node.bodies:
                self._open_bodies(node, key, keys, box_of)
        self._connect(keys, box_of)
        self._terminals("output", self._scope.outputs, box_of)
        groups = self._hierarchy.groups
        frames = [groups[group] for group in self._open]
        self._picture.frames[:0] = [
            Frame(self._key("frame", group.id), self._frame(group.parent), shorten(group.name)) for group in frames
        ]
        return self._picture

    # -- bodies -------------------------------------------------------------------------------------------

    def _open_bodies(self, node: NodeRecord, key: int, keys: list[int], box_of: dict[int, int]) -> None:
        """Draw what is in the bodies of a node around its box, if all of it fits and the box is the node's own.

        What a body is handed comes from the node's box; what the node gives comes from the boxes in its bodies.
        """
        graph, picture = self._graph, self._picture
        bodies = [graph.scopes[scope] for scopes in node.bodies.values() for scope in scopes]
        orders = [
            [
                inner
                for inner in map(graph.nodes.__getitem__, graph.index.topological(body))
                if not self._is_constant(inner)
            ]
            for body in bodies
        ]
        place = next((place for place, box in enumerate(picture.boxes) if box.key == key), -1)
        total = sum(map(len, orders))
        if picture.boxes[place].family == "group" or not total or len(picture.boxes) + total > self._max_boxes:
            return
        self._opened.add(node.id)
        around = Frame(self._key("host", node.id), picture.boxes[place].frame, shorten(graph.label(node)))
        picture.frames.append(around)
        picture.boxes[place] = replace(picture.boxes[place], frame=around.key)
        for body, order in zip(bodies, orders, strict=True):
            frame = Frame(self._key("body", body.id), around.key, body.attribute)
            picture.frames.append(frame)
            box_of.update(dict.fromkeys(body.inputs, key))
            for inner in order:
                box = replace(self._node(self._key("node", inner.id), inner.id), frame=frame.key)
                picture.boxes.append(box)
                box_of.update((value, box.key) for value in inner.outputs if value)
                self._order.append(inner)
                keys.append(box.key)
        for inner in chain.from_iterable(orders):
            if inner.bodies:
                self._open_bodies(inner, self._key("node", inner.id), keys, box_of)
        self._hand_out(node, bodies, box_of)

    def _hand_out(self, node: NodeRecord, bodies: list[Scope], box_of: dict[int, int]) -> None:
        """Let a node's outputs come from the boxes in its bodies that compute them."""
        first = find_traits(node.domain, node.op_type).first_result
        for slot, value in enumerate(node.outputs):
            if first is None or not value:
                continue
            made = [body.outputs[slot + first] for body in bodies if slot + first < len(body.outputs)]
            makers = [maker for result in made for maker in self._makers(result, box_of)]
            if makers:
                self._makers_of[value] = tuple(dict.fromkeys(makers))

    def _makers(self, value: int, box_of: Mapping[int, int]) -> tuple[int, ...]:
        """The boxes that a value comes from: more than one where it is the result of an If."""
        several = self._makers_of.get(value)
        if several is None:
            several = (box_of[value],) if value in box_of else ()
        return several

    # -- folding ------------------------------------------------------------------------------------------

    def _unfold(self, max_boxes: int) -> list[int]:
        """Groups to open, outer ones first, while the picture stays small; those that add least first.

        Groups that look alike ("layer.0", "layer.1", of one size) open together or not at all.
        """
        groups = {ident: group for ident, group in self._hierarchy.groups.items() if group.scope == self._scope.id}
        inner: dict[int, list[int]] = {}
        for group in groups.values():
            inner.setdefault(group.parent, []).append(group.id)
        direct: dict[int, int] = {}
        for node in self._order:
            home = self._hierarchy.group_of[node.id]
            direct[home] = direct.get(home, 0) + 1
        added = {ident: direct.get(ident, 0) + len(inner.get(ident, ())) - 1 for ident in groups}
        shown = direct.get(0, 0) + len(inner.get(0, ()))
        opened, level = [], inner.get(0, [])
        while level:
            following: list[int] = []
            alike: dict[tuple[str, int], list[int]] = {}
            for ident in level:
                alike.setdefault((_DIGITS.sub("#", groups[ident].name), added[ident]), []).append(ident)
            for (_, each), same in sorted(alike.items(), key=lambda item: item[0][1] * len(item[1])):
                if shown + each * len(same) <= max_boxes:
                    shown += each * len(same)
                    opened += same
                    following += [child for ident in same for child in inner.get(ident, ())]
            level = following
        return opened

    def _folded_groups(self) -> dict[int, tuple[str, int]]:
        """The outermost folded group around what is directly in each group, where one is."""
        found: dict[int, tuple[str, int]] = {}
        for group in reversed(self._hierarchy.groups.values()):  # outer groups first
            if group.parent in found:
                found[group.id] = found[group.parent]
            elif group.id not in self._open:
                found[group.id] = ("group", group.id)
        return found

    def _shown(self, node: int) -> tuple[str, int]:
        """The box that a node is drawn in: its own, or that of the outermost folded group around it."""
        return self._folded.get(self._hierarchy.group_of[node]) or ("node", node)

    # -- boxes --------------------------------------------------------------------------------------------

    def _key(self, kind: str, ident: int) -> int:
        return self._keys.setdefault((kind, ident), len(self._keys) + 1)

    def _frame(self, group: int) -> int:
        return self._key("frame", group) if group else 0

    def _node(self, key: int, ident: int) -> Box:
        node = self._graph.nodes[ident]
        family = category(node.domain, node.op_type, function_key(node.proto) in self._graph.index.functions)
        frame = self._frame(self._hierarchy.group_of[ident])
        name = node.name.rpartition("/")[2]
        return Box(key, family, frame, shorten(node.op_type), shorten(name), self._graph.label(node))

    def _group(self, key: int, ident: int) -> Box:
        group = self._hierarchy.groups[ident]
        title = f"{shorten(group.name)} ×{group.units}" if group.units else shorten(group.name)
        words = group.about or f"{group.size} nodes"
        return Box(key, "group", self._frame(group.parent), title, words, self._hierarchy.path(ident))

    def _terminals(self, family: str, values: list[int], box_of: dict[int, int]) -> None:
        """Boxes for the graph's own inputs or outputs, with their edges."""
        records = [self._graph.values[value] for value in dict.fromkeys(values)]
        records = [record for record in records if family == "output" or record.initializer is None]
        if self._is_dump:  # whose inputs and outputs are names of nodes, which are drawn
            return
        if len(records) > MAX_TERMINALS:
            key = self._key(family, 0)
            self._picture.boxes.append(
                Box(key, family, 0, f"{len(records)} {family}s", "", f"{len(records)} {family}s")
            )
            ends = [(record, key) for record in records]
        else:
            ends = [(record, self._key(family, record.id)) for record in records]
            self._picture.boxes += [
                Box(key, family, 0, shorten(record.name), shorten(str(self._model.fact(record.id))), record.name)
                for record, key in ends
            ]
        edges: dict[tuple[int, int], None] = {}
        for record, key in ends:
            if family == "input":
                box_of[record.id] = key
            else:
                edges.update(((source, key), None) for source in self._makers(record.id, box_of))
        self._picture.edges += [Edge(source, target, "") for source, target in edges]

    def _connect(self, keys: list[int], box_of: Mapping[int, int]) -> None:
        """One edge for all values between two boxes; a body's reads count as its owner's.

        Args:
            keys: the box of each node, in order.
            box_of: the box that makes each value.
        """
        found: dict[tuple[int, int], dict[int, bool]] = {}
        for node, target in zip(self._order, keys, strict=True):
            if node.bodies and node.id not in self._opened:
                for value in self._graph.index.captures(node):
                    self._join(value, target, True, box_of, found)
            for value in node.inputs:
                # Most lines of a folded picture lie inside of one box.
                if box_of.get(value, target) != target or value in self._makers_of:
                    self._join(value, target, self._is_dashed(value, node), box_of, found)
        told: set[tuple[int, int]] = set()
        for (source, target), values in found.items():
            first = next(iter(values))
            label = shorten(self._model.fact(first).label(), MAX_LABEL)
            is_news = label != "?" and (source, first) not in told
            told.add((source, first))
            self._picture.edges.append(Edge(source, target, label if is_news else "", all(values.values())))

    def _is_dashed(self, value: int, node: NodeRecord) -> bool:
        """Whether a line is one into a body, or of control."""
        record = self._graph.values[value]
        return record.scope != node.scope or (self._is_dump and ge_dump.is_control(record.name))

    def _join(
        self, value: int, target: int, capture: bool, box_of: Mapping[int, int],
        found: dict[tuple[int, int], dict[int, bool]],
    ) -> None:  # fmt: skip
        for source in self._makers(value, box_of):
            if source != target:
                values = found.setdefault((source, target), {})
                values[value] = capture and values.get(value, True)


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """At most `limit` characters on one line, cut in the middle, where names differ least."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    head = limit // 2 - 1
    return f"{text[:head]}…{text[head + 1 - limit :]}"
