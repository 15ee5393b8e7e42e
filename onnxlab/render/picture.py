"""A model folded until it fits on a page: boxes, frames and edges as plain data, before any layout."""

import re
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from onnxlab.garbage_collection import AGED, PATIENCE, no_collection
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.index.rows import Numbers
from onnxlab.graph.protos import ge_dump
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.ops import find_traits
from onnxlab.render.categories import category
from onnxlab.render.drawn_scope import DrawnScope, drawn_scope
from onnxlab.render.repeats import operators_of, repeats_of
from onnxlab.render.words import shorten, title_of

if TYPE_CHECKING:
    from onnxlab.model import Model

MAX_BOXES = 120
"""Boxes of a picture, inputs and outputs of the graph apart."""
MAX_TERMINALS = 12
"""Inputs or outputs that are drawn one by one; more are drawn as one box."""
MAX_LABEL = 22
"""Characters at an edge."""
MOST_COMPARED = 100_000
"""Nodes of the largest graph whose groups are compared with each other."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class DrawnBox:
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

    The label is the shape of the first value, "" where another edge of the same value says it. The edge is a capture
    where bodies read all of its values from an outer graph, or where all of them are control edges of a GE dump.
    """

    source: int
    target: int
    label: str
    is_capture: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """An open group, a node with bodies, or one of the bodies."""

    key: int
    parent: int
    title: str


@dataclass(slots=True)
class Picture:
    """Boxes and edges to lay out; boxes are in topological order."""

    boxes: list[DrawnBox] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)


@no_collection(most=PATIENCE * AGED)
def picture(model: "Model", max_boxes: int = MAX_BOXES, hierarchy: Hierarchy | None = None) -> Picture:
    """The main graph, or the function that is all it calls, folded until at most `max_boxes` boxes show.

    Constants and initializers are left out.

    The bodies of If, Loop and the like are drawn in a frame around their node where there is room for them.

    Args:
        hierarchy: groups that are up to date; used where their top level is small enough, else groups are
            computed anew.
    """
    with model.graph.lock:
        drawn = drawn_scope(model.graph)
        if hierarchy is None or hierarchy.width(drawn.scope.id) > max_boxes:
            hierarchy = Hierarchy(max_boxes)
            hierarchy.refresh(model.graph.index, lazily={drawn.scope.id: drawn.wires})
        return _Painter(model, max_boxes, hierarchy, drawn).paint()


class _Painter:
    """Draws a graph; what is known of its nodes is in arrays by place in topological order."""

    def __init__(self, model: "Model", max_boxes: int, hierarchy: Hierarchy, drawn: DrawnScope) -> None:
        self._model = model
        self._graph = model.graph
        self._scope, self._weights = drawn.scope, drawn.weights
        self._hierarchy = hierarchy
        self._wires = wires = drawn.wires
        self._is_dump = model.graph.is_ge_dump
        self._constants = drawn.constants
        self._drawn = np.flatnonzero(~self._constants.in_scope)
        self._open = dict.fromkeys(self._unfold(max_boxes))
        self._folded = self._folded_groups()
        self._runs = self._alike_groups() if len(wires.order) <= MOST_COMPARED else {}
        self._folded = {group: self._runs.get(box, (box,))[0] for group, box in self._folded.items()}
        self._keys: dict[tuple[str, int], int] = {}
        self._max_boxes = max_boxes
        self._key_at = np.zeros(len(wires.order), np.int64)  # the key of each node's box, by place; 0 where none is
        self._inputs: dict[int, int] = {}  # the box of each input of the graph
        self._given: dict[int, int] = {}  # the box of each value in bodies that are drawn
        self._boxes: dict[int, int] = {}  # the box of each value of the main graph that another box reads
        self._inside: list[tuple[NodeRecord, int]] = []  # the nodes in bodies that are drawn, each with its box
        self._opened: set[int] = set()
        self._makers_of: dict[int, tuple[int, ...]] = {}
        self._picture = Picture()

    def _maker(self, value: int) -> int:
        """The place of the node of the main graph that makes a value, -1 where none does."""
        return int(self._wires.made_by(np.array([value], np.int64))[0])

    def paint(self) -> Picture:
        self._terminals("input", self._scope.inputs)
        self._put()
        for place in self._wires.owners:
            if key := int(self._key_at[place]):
                self._open_bodies(self._record(place), key)
        self._connect()
        self._terminals("output", self._scope.outputs)
        groups = self._hierarchy.groups
        frames = [groups[group] for group in self._open]
        self._picture.frames[:0] = [
            Frame(self._key("frame", group.id), self._frame(group.parent), title_of(group)) for group in frames
        ]
        return self._picture

    def _put(self) -> None:
        """Put each node that is drawn into a box: its own, or that of the outermost folded group around it."""
        if not self._drawn.size:
            return
        homes = self._homes()[self._drawn]
        outermost = np.zeros(int(homes.max()) + 1, np.int64)
        for group, folded in self._folded.items():
            if group < len(outermost):
                outermost[group] = folded
        shown = outermost[homes]
        shown = np.where(shown > 0, shown, ~self._drawn)
        first = np.flatnonzero(np.diff(shown, prepend=shown[0] + 1))  # of each run of nodes in one box
        runs = shown[first].tolist()
        key_of: dict[int, int] = {}
        for box, home in dict(zip(runs, homes[first].tolist(), strict=True)).items():
            if box > 0:
                key_of[box] = key = self._key("group", box)
                self._picture.boxes.append(self._group(key, box))
            else:
                ident = int(self._wires.order[~box])
                key_of[box] = key = self._key("node", ident)
                self._picture.boxes.append(self._node(key, ident, home))
        self._key_at[self._drawn] = np.repeat([key_of[box] for box in runs], np.diff(first, append=len(shown)))

    def _homes(self) -> Numbers:
        return self._hierarchy.homes(self._scope.id, self._wires.order)

    def _record(self, place: int) -> NodeRecord:
        return self._graph.nodes[int(self._wires.order[place])]

    # -- bodies -------------------------------------------------------------------------------------------

    def _open_bodies(self, node: NodeRecord, key: int) -> None:
        """Draw what is in the bodies of a node around its box, if all of it fits and the box is the node's own.

        Edges from a body's inputs begin at the node's box; edges from the node's outputs begin at the boxes in its
        bodies.
        """
        graph, picture = self._graph, self._picture
        bodies = [graph.scopes[scope] for scopes in node.bodies.values() for scope in scopes]
        orders = [
            [
                inner
                for inner in map(graph.nodes.__getitem__, graph.index.topological(body))
                if inner not in self._constants
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
            self._given.update(dict.fromkeys(body.inputs, key))
            for inner in order:
                home = self._hierarchy.group_of[inner.id]
                box = replace(self._node(self._key("node", inner.id), inner.id, home), frame=frame.key)
                picture.boxes.append(box)
                self._given.update((value, box.key) for value in inner.outputs if value)
                self._inside.append((inner, box.key))
        for inner in chain.from_iterable(orders):
            if inner.bodies:
                self._open_bodies(inner, self._key("node", inner.id))
        self._hand_out(node, bodies)

    def _hand_out(self, node: NodeRecord, bodies: list[Scope]) -> None:
        """Let a node's outputs come from the boxes in its bodies that compute them."""
        first = find_traits(node.domain, node.op_type).first_result
        for slot, value in enumerate(node.outputs):
            if first is None or not value:
                continue
            results = [body.outputs[slot + first] for body in bodies if slot + first < len(body.outputs)]
            makers = [maker for result in results for maker in self._makers(result)]
            if makers:
                self._makers_of[value] = tuple(dict.fromkeys(makers))

    def _makers(self, value: int) -> tuple[int, ...]:
        """The boxes that a value comes from: more than one where it is the result of an If."""
        several = self._makers_of.get(value)
        if several is None:
            box = self._box_of(value)
            several = (box,) if box else ()
        return several

    def _box_of(self, value: int) -> int:
        """The box that makes a value, 0 where none does."""
        box = self._given.get(value) or self._boxes.get(value)
        if not box:
            maker = self._maker(value)
            box = (int(self._key_at[maker]) if maker >= 0 else 0) or self._inputs.get(value, 0)
        return box

    # -- folding ------------------------------------------------------------------------------------------

    def _unfold(self, max_boxes: int) -> list[int]:
        """Groups to open, outer ones first, while the picture stays small; those that add least first.

        Groups that look alike ("layer.0", "layer.1", of one size) open together or not at all; so do stages.
        """
        hierarchy = self._hierarchy
        inner, direct = self._contents()
        shown = direct[0] + len(inner.get(0, ()))
        opened, level = [], inner.get(0, [])
        while level:
            if hierarchy.divide(level):
                inner, direct = self._contents()
            following: list[int] = []
            alike: dict[tuple[str, int], list[int]] = {}
            growth = {ident: direct[ident] + len(inner.get(ident, ())) - 1 for ident in level}
            for ident in level:
                group = hierarchy.groups[ident]
                looks = ("", 0) if group.kind == "stage" else (_DIGITS.sub("#", group.name), growth[ident])
                alike.setdefault(looks, []).append(ident)
            for added, same in sorted((sum(map(growth.__getitem__, same)), same) for same in alike.values()):
                if shown + added <= max_boxes:
                    shown += added
                    opened += same
                    following += [child for ident in same for child in inner.get(ident, ())]
            level = following
        return opened

    def _contents(self) -> tuple[dict[int, list[int]], list[int]]:
        """The groups directly in each group, and how many nodes are drawn there; 0 is the top."""
        groups, inner = self._hierarchy.groups, dict[int, list[int]]()
        for group in groups.values():
            if group.scope == self._scope.id:
                inner.setdefault(group.parent, []).append(group.id)
        most = max(groups, default=0)
        return inner, np.bincount(self._homes()[self._drawn], minlength=most + 1).tolist()

    def _folded_groups(self) -> dict[int, int]:
        """The outermost folded group around the nodes directly in each group, where there is one."""
        outermost: dict[int, int] = {}
        for group in reversed(self._hierarchy.groups.values()):  # outer groups first
            if group.parent in outermost:
                outermost[group.id] = outermost[group.parent]
            elif group.id not in self._open:
                outermost[group.id] = group.id
        return outermost

    def _alike_groups(self) -> dict[int, tuple[int, str]]:
        """Map each folded group of a run with equal operators to the run's first group and the run's name."""
        looks = operators_of(self._hierarchy, self._contents()[0], self._graph.nodes)
        return repeats_of(self._hierarchy, dict.fromkeys(self._folded.values()), looks)

    # -- boxes --------------------------------------------------------------------------------------------

    def _key(self, kind: str, ident: int) -> int:
        return self._keys.setdefault((kind, ident), len(self._keys) + 1)

    def _frame(self, group: int) -> int:
        return self._key("frame", group) if group else 0

    def _node(self, key: int, ident: int, home: int) -> DrawnBox:
        node = self._graph.nodes[ident]
        family = category(node.domain, node.op_type, function_key(node.proto) in self._graph.index.functions)
        frame = self._frame(home)
        name = node.name.rpartition("/")[2]
        return DrawnBox(key, family, frame, shorten(node.op_type), shorten(name), self._graph.label(node))

    def _group(self, key: int, ident: int) -> DrawnBox:
        group = self._hierarchy.groups[ident]
        title = shorten(self._runs[ident][1]) if ident in self._runs else title_of(group)
        words = group.about or f"{group.size} nodes"
        return DrawnBox(key, "group", self._frame(group.parent), title, words, self._hierarchy.path(ident))

    def _is_weight(self, value: ValueRecord) -> bool:
        return value.initializer is not None or value.id in self._weights

    def _terminals(self, family: str, values: list[int]) -> None:
        """Boxes for the graph's own inputs or outputs, with their edges."""
        records = [self._graph.values[value] for value in dict.fromkeys(values)]
        records = [record for record in records if family == "output" or not self._is_weight(record)]
        if self._is_dump:  # inputs and outputs of a dump are names of nodes, which are drawn
            return
        if len(records) > MAX_TERMINALS:
            key = self._key(family, 0)
            self._picture.boxes.append(
                DrawnBox(key, family, 0, f"{len(records)} {family}s", "", f"{len(records)} {family}s")
            )
            ends = [(record, key) for record in records]
        else:
            ends = [(record, self._key(family, record.id)) for record in records]
            self._picture.boxes += [
                DrawnBox(key, family, 0, shorten(record.name), shorten(str(self._model.fact(record.id))), record.name)
                for record, key in ends
            ]
        edges: dict[tuple[int, int], None] = {}
        for record, key in ends:
            if family == "input":
                self._inputs[record.id] = key
            else:
                edges.update(((source, key), None) for source in self._makers(record.id))
        self._picture.edges += [Edge(source, target, "") for source, target in edges]

    def _connect(self) -> None:
        """One edge for all values between two boxes; a body's reads count as its owner's."""
        joined: dict[tuple[int, int], dict[int, bool]] = {}
        read = self._read_of_others()
        for place in sorted({*read, *self._wires.owners}):
            self._join(self._record(place), int(self._key_at[place]), read.get(place, []), joined)
        for node, key in self._inside:
            self._join(node, key, [value for value in node.inputs if value], joined)
        labeled: set[tuple[int, int]] = set()
        for (source, target), values in joined.items():
            first = next(iter(values))
            label = shorten(self._model.fact(first).label(), MAX_LABEL)
            is_news = label != "?" and (source, first) not in labeled
            labeled.add((source, first))
            self._picture.edges.append(Edge(source, target, label if is_news else "", all(values.values())))

    def _read_of_others(self) -> dict[int, list[int]]:
        """Values that nodes read from other boxes, by place: most edges of a folded picture lie inside of one box."""
        wires, key_at = self._wires, self._key_at
        source, target = np.where(wires.makers < 0, 0, key_at[wires.makers]), key_at[wires.readers]
        is_other = (source != target) & (source > 0)
        if special := [*self._inputs, *self._given, *self._makers_of]:
            is_other |= np.isin(wires.reads, special)
        at = np.flatnonzero(is_other & (target > 0))
        self._boxes.update(zip(wires.reads[at].tolist(), source[at].tolist(), strict=True))
        read_at: dict[int, list[int]] = {}
        for place, value in zip(wires.readers[at].tolist(), wires.reads[at].tolist(), strict=True):
            read_at.setdefault(place, []).append(value)
        return read_at

    def _join(
        self, node: NodeRecord, target: int, read: list[int], joined: dict[tuple[int, int], dict[int, bool]]
    ) -> None:
        """Note what a node reads from other boxes: whether each value is a capture, by value and pair of boxes."""
        captured = self._graph.index.captures(node) if node.bodies and node.id not in self._opened else []
        lines = [(value, True) for value in captured] + [(value, self._is_dashed(value, node)) for value in read]
        for value, is_capture in lines:
            for source in self._makers(value):
                if source != target:
                    values = joined.setdefault((source, target), {})
                    values[value] = is_capture and values.get(value, True)

    def _is_dashed(self, value: int, node: NodeRecord) -> bool:
        """Whether an edge leads into a body, or is a control edge."""
        record = self._graph.values[value]
        return record.scope != node.scope or (self._is_dump and ge_dump.is_control(record.name))
