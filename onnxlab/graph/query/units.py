"""Units of a model where names tell none: layers, blocks and stages, found in how nodes are wired.

A row with many nodes side by side is cut where one value is live (`unit_cuts.py`). Nodes that only finish a unit (an
activation, a normalization) stay with it; successive, similar units of one resolution become a stage. Groups from names
are kept: such a group is one box of the row.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain

from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.query.hierarchy_levels import Box, BoxRow, Level, inner_first, members, size_of
from onnxlab.graph.query.node_roles import BESIDE, SOURCE, TRUNK, heavy_operators, parameter_dims, roles
from onnxlab.graph.query.unit_cuts import Pattern, joined, narrow_places, repeated
from onnxlab.graph.query.unit_families import gather_families
from onnxlab.graph.query.unit_repeats import Unit, repeats_of
from onnxlab.graph.query.unit_words import MIXED, POOLS, SINGLE, common_name, describe, normalizes, summed_up
from onnxlab.ops import layer_operators

LEAST_ROW = 10
"""Least number of nodes side by side that are put into units."""
LARGEST_SCOPE = 60_000
"""Scopes of more nodes are cut by number alone (`hierarchy_cuts.py`)."""
LEAST_STAGE, LEAST_MEAN = 2, 3
"""Least number of units in a stage, and least mean over the stages of a row: fewer units are shown one by one."""
MOST_ABSORBED, LEAST_BESIDE = 2, 3
"""Most nodes that join the one group that they finish; least number of nodes beside groups that form a group."""
SHARED = -1
"""Number of the unit of nodes beside the trunk that several units read."""
TINY = 8
"""Most nodes of a group that becomes part of the unit around it."""


@cache
def _beginners() -> frozenset[str]:
    """Operators that begin a unit when they stand in a chain; others finish the one before them."""
    return heavy_operators() | frozenset(POOLS) | frozenset(SINGLE) - {"Softmax", "LogSoftmax"} | {"Gather"}


@cache
def _strided() -> frozenset[str]:
    """Operators that may change the resolution."""
    return layer_operators("convolution") | frozenset(POOLS)


class UnitFinder:
    """Finds the units of one scope.

    Args:
        level: the scope's nodes, by position.
        nodes: the records of these nodes, in the same order.
        known: keys of the earlier boxes.
    """

    def __init__(
        self,
        level: Level,
        nodes: Sequence[NodeRecord],
        by_id: Mapping[int, NodeRecord],
        values: Mapping[int, ValueRecord],
        known: Container[object] = (),
    ) -> None:
        self._level = level
        self._known = known
        self._nodes = nodes
        self._by_id = by_id
        self._values = values
        self._roles, self._heavy = roles(nodes, values, level.sources)

    def group(self, top: Box) -> None:
        """Put the boxes of every long row below `top` into units and stages."""
        if not any(self._heavy):
            return
        stack = [top]
        while stack:
            box = stack.pop()
            stack.extend(box.children)
            if len(self._shown(box.nodes)) >= LEAST_ROW and any(map(self._heavy.__getitem__, members(box))):
                self._split(box)
            self._stages(box)
            gather_families(self._level, box, self._known)
        for box in inner_first(top):
            self._describe(box)

    # -- units -----------------------------------------------------------------------------------------------

    def _split(self, box: Box) -> None:
        row = self._level.row(box)
        units = self._units(box, row)
        if len(units) < 2 or len(units) > 0.9 * len(row.heads):
            return
        box.children = []
        direct: list[int] = []
        for unit in units:
            direct += self._place(box, row, unit)
        box.nodes = sorted(direct)

    def _place(self, box: Box, row: BoxRow, unit: Unit) -> list[int]:
        """Put a unit into its box: as a box of its own or into its one group; returns what stands in it directly."""
        inner = [row.boxes[place] for place in unit.places if place in row.boxes]
        if len(unit.places) > 1 and all(size_of(box_of_unit) <= TINY for box_of_unit in inner):
            return self._wrap(box, row, unit, inner)
        nodes = sorted(chain.from_iterable(row.nodes[place] for place in unit.places if place not in row.boxes))
        if len(inner) == 1 and len(self._shown(nodes)) <= MOST_ABSORBED:
            inner[0].nodes = sorted([*inner[0].nodes, *nodes])
            nodes = []
        box.children += inner
        direct: list[int] = []
        parts = [nodes] if not inner else self._around(nodes, inner)
        for part in parts:
            shown = self._shown(part)
            if len(shown) < 2 or (inner and len(shown) < LEAST_BESIDE):
                direct += part
                continue
            first = next((node for node in part if self._roles[node] == TRUNK), shown[0])
            box.children.append(Box((box.key, "unit", self._nodes[first].id), self._name(part), part, kind="unit"))
        return direct

    def _wrap(self, box: Box, row: BoxRow, unit: Unit, inner: list[Box]) -> list[int]:
        """Make a box of a unit, with the small groups in it, where it is more than one box; returns what is in none."""
        nodes = sorted(chain.from_iterable(row.nodes[place] for place in unit.places if place not in row.boxes))
        inside = sorted(chain(nodes, *map(members, inner)))
        if len(inner) + len(self._shown(nodes)) < LEAST_STAGE:
            box.children += inner
            return nodes
        first = next((node for node in inside if self._roles[node] == TRUNK), inside[0])
        key = (box.key, "unit", self._nodes[first].id)
        box.children.append(Box(key, self._name(inside), nodes, inner, kind="unit"))
        return []

    def _around(self, nodes: Sequence[int], inner: Sequence[Box]) -> list[list[int]]:
        """The boxes before all of some boxes, and the rest."""
        behind = set(chain.from_iterable(map(members, inner)))
        before: list[int] = []
        after: list[int] = []
        seen = set(nodes)
        for node in sorted(behind | seen):
            if node in behind:
                behind.update(self._level.consumers[node])
            if node in seen:
                (after if node in behind else before).append(node)
        before = self._with_sources(before, after)
        return [before, after] if len(inner) == 1 else [before, *([node] for node in after)]

    def _with_sources(self, before: list[int], after: list[int]) -> list[int]:
        """Take sources that something behind the boxes reads out of what is before them."""
        read = set(after)
        for node in reversed(before):
            if self._roles[node] == SOURCE and not read.isdisjoint(self._level.consumers[node]):
                read.add(node)
        after += sorted(read.difference(after))
        after.sort()
        return [node for node in before if node not in read]

    def _shown(self, nodes: Sequence[int]) -> list[int]:
        return [node for node in nodes if self._roles[node] != SOURCE]

    def _units(self, box: Box, row: BoxRow) -> list[Unit]:
        trunk, homes = self._trunk(row)
        starts = narrow_places(*self._readers(row, trunk))
        units = [
            self._unit(row, trunk[start:end]) for start, end in zip(starts, [*starts[1:], len(trunk)], strict=True)
        ]
        units = self._glued(row, units)
        units = self._separable(row, units)
        pattern = repeated([unit.ops for unit in units])
        if pattern is None:
            units = self._layers(row, units)
        else:
            bounds = self._joined(box, row, units, pattern)
            units = [
                self._unit(row, [place for unit in units[low:high] for place in unit.places])
                for low, high in zip(bounds, [*bounds[1:], len(units)], strict=True)
            ]
        return self._with_sides(row, units, homes)

    def _joined(self, box: Box, row: BoxRow, units: list[Unit], pattern: Pattern) -> list[int]:
        """The starts of what repeats: where most of it began before an edit, which may have broken the first one."""
        kinds, known, nodes = [unit.ops for unit in units], self._known, self._nodes
        heads = [self._members(row, unit.places[0]) for unit in units]
        began = [any((box.key, "unit", nodes[node].id) in known for node in head) for head in heads]
        turns = [joined(kinds, pattern.turned(by)) for by in range(len(pattern.kinds) if any(began) else 1)]
        return max(turns, key=lambda bounds: sum(began[bound] for bound in bounds) / len(bounds))

    def _layers(self, row: BoxRow, units: list[Unit]) -> list[Unit]:
        """An attention and the MLP right behind it are one layer of a transformer."""
        words = [describe(Counter(unit.ops), unit.depthwise) for unit in units]
        layers: list[Unit] = []
        for number, unit in enumerate(units):
            if number and words[number - 1 : number + 1] == ["attention", "MLP"]:
                unit = self._unit(row, layers.pop().places + unit.places)
            layers.append(unit)
        return layers

    def _trunk(self, row: BoxRow) -> tuple[list[int], list[int]]:
        """Places with something of the trunk, and the others."""
        trunk: list[int] = []
        others: list[int] = []
        for place, nodes in enumerate(row.nodes):
            on_trunk = place in row.boxes or any(self._roles[node] == TRUNK for node in nodes)
            (trunk if on_trunk else others).append(place)
        return trunk, others

    def _readers(self, row: BoxRow, trunk: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
        """By index along the trunk what reads each of it; and what reads each input of the scope."""
        index_of: dict[int, int] = {}
        for index, place in enumerate(trunk):
            nodes = members(row.boxes[place]) if place in row.boxes else row.nodes[place]
            index_of.update((node, index) for node in nodes)
        readers: list[set[int]] = [set() for _ in trunk]
        readers_of_input: dict[int, set[int]] = {}
        for node, index in index_of.items():
            if self._roles[node] != TRUNK:
                continue
            for value in self._nodes[node].inputs:
                if value and not self._values[value].producers and self._values[value].initializer is None:
                    readers_of_input.setdefault(value, set()).add(index)
            for reader in self._level.consumers[node]:
                other = index_of.get(reader, index)
                if other > index and self._roles[reader] == TRUNK:
                    readers[index].add(other)
        return [sorted(indices) for indices in readers], [sorted(indices) for indices in readers_of_input.values()]

    def _unit(self, row: BoxRow, places: list[int]) -> Unit:
        ops: list[str] = []
        depthwise, halves = 0, False
        for place in places:
            for node in self._members(row, place):
                if self._roles[node] != TRUNK:
                    continue
                record = self._nodes[node]
                ops.append(record.op_type)
                if record.op_type in layer_operators("convolution"):
                    dims = self._dims(record)
                    depthwise += len(dims) > 1 and dims[1] == 1 and dims[0] > 1
                if record.op_type in _strided():
                    halves |= any(
                        stride > 1
                        for attribute in record.proto.attribute
                        if attribute.name == "strides"
                        for stride in attribute.ints
                    )
        return Unit(list(places), tuple(ops), depthwise, halves)

    def _members(self, row: BoxRow, place: int) -> list[int]:
        return sorted(members(row.boxes[place])) if place in row.boxes else sorted(row.nodes[place])

    def _dims(self, record: NodeRecord) -> tuple[int, ...]:
        return parameter_dims(record.inputs[1], self._by_id, self._values) if len(record.inputs) > 1 else ()

    def _glued(self, row: BoxRow, units: list[Unit]) -> list[Unit]:
        """Activations, normalizations and the like stay with what they finish."""
        glued: list[Unit] = []
        for unit in units:
            begins = not normalizes(unit.ops) and any(op in _beginners() for op in unit.ops)
            begins = begins or any(place in row.boxes for place in unit.places)
            if begins or not glued:
                glued.append(unit)
            else:
                glued[-1] = self._unit(row, glued[-1].places + unit.places)
        if len(glued) > 1 and not any(op in _beginners() for op in glued[0].ops) and not _has_box(row, glued[0]):
            glued[:2] = [self._unit(row, glued[0].places + glued[1].places)]
        return glued

    def _separable(self, row: BoxRow, units: list[Unit]) -> list[Unit]:
        """A depthwise convolution in a chain takes the convolutions with it that widen and narrow the channels."""
        merged: list[Unit] = []
        place = 0
        while place < len(units):
            unit = units[place]
            if unit.depthwise and unit.convolutions == 1:
                parts = [unit]
                if merged and merged[-1].convolutions == 1 and not merged[-1].depthwise and not merged[-1].pools:
                    parts.insert(0, merged.pop())
                while (
                    place + 1 < len(units)
                    and not units[place + 1].depthwise
                    and parts[-1].convolutions + len(parts) < 5
                ):
                    following = units[place + 1]
                    if _has_box(row, following) or following.convolutions == 0 or following.pools:
                        break
                    parts.append(following)
                    place += 1
                    if following.convolutions == 1:
                        break
                unit = self._unit(row, [place_of_part for part in parts for place_of_part in part.places])
            merged.append(unit)
            place += 1
        return merged

    def _with_sides(self, row: BoxRow, units: list[Unit], others: Sequence[int]) -> list[Unit]:
        """Put what is beside the trunk to the unit that reads it first, or, where several units do, into a unit."""
        unit_of = {place: number for number, unit in enumerate(units) for place in unit.places}
        place_of = {node: place for place in range(len(row.heads)) for node in self._members(row, place)}
        shared: list[int] = []
        alone: list[Unit] = []
        for place in reversed(others):
            reading = {
                unit_of[place_of[reader]]
                for node in row.nodes[place]
                for reader in self._level.consumers[node]
                if place_of.get(reader, place) != place and place_of[reader] in unit_of
            }
            is_own = len(reading) == 1 and not _has_box(row, units[min(reading)]) if reading else False
            if (not is_own and self._is_before(row, place)) or reading == {SHARED}:
                unit_of[place] = SHARED
                shared.append(place)
            elif not reading:
                alone.append(Unit([place], ()))
            else:
                number = min(reading)
                unit_of[place] = number
                units[number].places.append(place)
        for unit in units:
            unit.places.sort()
        return [*([Unit(sorted(shared), ())] if shared else []), *units, *alone]

    def _is_before(self, row: BoxRow, place: int) -> bool:
        """Whether what stands at a place comes of inputs alone."""
        return not any(self._behind[node] for node in row.nodes[place])

    @cached_property
    def _behind(self) -> list[bool]:
        """Whether a node is on the trunk or reads something of it, at any distance."""
        behind = [role == TRUNK for role in self._roles]
        for node, readers in enumerate(self._level.consumers):
            if behind[node]:
                for reader in readers:
                    behind[reader] = True
        return behind

    # -- stages ----------------------------------------------------------------------------------------------

    def _stages(self, box: Box) -> None:
        """Put like units that follow one another at one resolution into a stage, where there are several stages."""
        if len(box.children) < 2 * LEAST_MEAN:
            return
        row = self._level.row(box)
        units = [self._unit(row, [place]) for place in range(len(row.heads))]
        runs = repeats_of([unit if place in row.boxes else None for place, unit in enumerate(units)])
        runs = [run for run in runs if len(run) >= LEAST_STAGE]
        if len(runs) < 2 or sum(map(len, runs)) < LEAST_MEAN * len(runs):
            return
        for number, run in enumerate(runs, start=1):
            inner = [row.boxes[place] for place in run]
            stage = Box((box.key, "stage", inner[0].key), f"stage {number}", [], inner, kind="stage", units=len(run))
            staged = set(map(id, inner))
            box.children = [child for child in box.children if id(child) not in staged]
            box.children.append(stage)

    # -- words -----------------------------------------------------------------------------------------------

    def _name(self, nodes: Sequence[int]) -> str:
        """The common part of the names of a unit's parameters, else its operators."""
        if all(self._roles[node] != TRUNK for node in nodes):
            ops = {self._nodes[node].op_type for node in nodes}
            return "shape arithmetic" if ops.isdisjoint(layer_operators("comparison")) else "mask"
        stored = [
            self._values[value].name
            for node in nodes
            for value in self._nodes[node].inputs
            if value and self._values[value].initializer is not None
        ]
        count = Counter(self._nodes[node].op_type for node in nodes if self._roles[node] != SOURCE)
        return common_name(stored) or describe(count, self._depthwise(nodes)) or self._plain(nodes)

    def _plain(self, nodes: Sequence[int]) -> str:
        """For nodes that have no word: the operators that most of them are."""
        ops = Counter(self._nodes[node].op_type for node in self._shown(nodes))
        return " · ".join(op for op, _ in ops.most_common(2))

    def _depthwise(self, nodes: Sequence[int]) -> int:
        count = 0
        for node in nodes:
            if self._nodes[node].op_type in layer_operators("convolution"):
                dims = self._dims(self._nodes[node])
                count += len(dims) > 1 and dims[1] == 1 and dims[0] > 1
        return count

    def _describe(self, box: Box) -> None:
        """Say what a box is, unless its name says it."""
        nodes = [node for node in members(box) if self._roles[node] != SOURCE]
        if box.kind == "stage":
            words = Counter(child.about or child.name for child in box.children)
            box.about = words.most_common(1)[0][0]
            return
        if nodes and all(self._roles[node] == BESIDE for node in nodes):
            box.about = "" if box.kind == "unit" else "shape arithmetic"
            return
        about = describe(Counter(self._nodes[node].op_type for node in nodes), self._depthwise(nodes))
        if about in MIXED:
            about = summed_up([child.about for child in box.children]) or about
        box.about = "" if about == box.name else about


def _has_box(row: BoxRow, unit: Unit) -> bool:
    return any(place in row.boxes for place in unit.places)
