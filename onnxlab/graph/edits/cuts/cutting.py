"""Cut a model in place: end it at some of its values, or let it start at others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, RemoveNode, SetOutputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.cleaning import remove_stored, unused_initializers
from onnxlab.graph.edits.extraction import Declaration
from onnxlab.graph.edits.formals import declare_output, remove_input, remove_output
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import ValueRecord
from onnxlab.graph.query.cones import ancestors, descendants, readers


def label_of(arguments: Mapping[str, Any]) -> str:
    """The words of the history for a cut: "end at boxes, scores", "start at hidden"."""
    words = []
    for verb, side in (("end", arguments.get("outputs")), ("start", arguments.get("inputs"))):
        if side:
            names = [getattr(value, "name", str(value)) for value in side[:3]]
            words.append(f"{verb} at {', '.join(names)}{', …' if len(side) > 3 else ''}")
    return " and ".join(words) or "cut"


@dataclass(frozen=True, slots=True)
class Cut:
    """The changes of a cut of the main graph; all ids.

    Attributes:
        outputs: values that become outputs, besides the outputs that remain.
        inputs: values that become inputs.
        nodes: nodes that are removed.
        lost_outputs: outputs that are removed, since they depend on removed nodes or values.
        lost_inputs: inputs that no remaining node reads.
        siblings: those of `outputs` and `inputs` that were not asked for, but cross the same border.
    """

    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    nodes: tuple[int, ...]
    lost_outputs: tuple[int, ...]
    lost_inputs: tuple[int, ...]
    siblings: tuple[int, ...]


def plan_cut(
    graph: ModelGraph, outputs: Sequence[ValueRecord] = (), inputs: Sequence[ValueRecord] = (), siblings: bool = True
) -> Cut:
    """The changes that `cut` would make.

    Raises:
        EditError: as of `cut`.
    """
    return _Planner(graph, outputs, inputs).plan(siblings)


@recorded
def cut(
    graph: ModelGraph,
    outputs: Sequence[ValueRecord] = (),
    inputs: Sequence[ValueRecord] = (),
    siblings: bool = True,
    declaration: Declaration | None = None,
) -> list[ValueRecord]:
    """End the model at some values and let it start at others; outputs that do not depend on those stay.

    Nodes, inputs and stored tensors on which no output depends any longer are removed. Returns the new outputs and
    inputs.

    Args:
        outputs: values of the main graph that become outputs; nodes that depend on them are removed.
        inputs: values of the main graph that become inputs; nodes that computed only them are removed.
        siblings: whether other values that cross the same border become outputs or inputs too.
        declaration: returns the inferred declaration of a value id, for new outputs and inputs.

    Raises:
        EditError: no value was given, one is not computed by a node of the main graph, or nothing would change.
    """
    planned = plan_cut(graph, list(dict.fromkeys(outputs)), list(dict.fromkeys(inputs)), siblings)  # each value once
    declare = declaration or (lambda vid: graph.values[vid].info)
    declared = {vid: declare(vid) for vid in (*planned.outputs, *planned.inputs)}
    unused = {value.id for value in unused_initializers(graph)}
    names = {vid: graph.values[vid].name for vid in declared}
    with graph.edit():
        for vid in planned.outputs:
            declare_output(graph, graph.values[vid], declared[vid])
        for vid in planned.lost_outputs:
            remove_output(graph, graph.values[vid])
        for vid in planned.inputs:
            _take_from_maker(graph, graph.values[vid], set(planned.nodes))
        remove_in_turn(graph, planned.nodes)
        for vid in planned.inputs:
            _declare_input(graph, names[vid], declared[vid])
        for vid in planned.lost_inputs:
            remove_input(graph, graph.values[vid])
        remove_stored(graph, [value for value in unused_initializers(graph) if value.id not in unused])
    return [graph.values[graph.main.names[name]] for name in names.values()]


@recorded
def remove_behind(graph: ModelGraph, value: ValueRecord) -> Cut:
    """Remove all nodes that depend on a value, and the outputs that they compute; the value itself stays.

    Raises:
        EditError: nothing depends on the value, or no output would be left.
    """
    planned = plan_behind(graph, value)
    with graph.edit():
        for vid in planned.lost_outputs:
            remove_output(graph, graph.values[vid])
        remove_in_turn(graph, planned.nodes)
    return planned


def plan_behind(graph: ModelGraph, value: ValueRecord) -> Cut:
    """The changes that `remove_behind` would make. Raises EditError as that does."""
    _check(graph, [value], computed=False)
    behind = _behind(graph, [value])
    if not behind:
        raise EditError(f"no node depends on {value.name!r}, so there is nothing behind it to remove")
    lost = [vid for vid in graph.main.outputs if _maker(graph, vid) in behind]
    if len(lost) == len(graph.main.outputs):
        raise EditError(
            f"no output of the model would be left: all depend on {value.name!r}; "
            f"end the model there instead, model.cut({value.name!r})"
        )
    return Cut((), (), tuple(behind), tuple(lost), (), ())


def remove_in_turn(graph: ModelGraph, nodes: Iterable[int]) -> None:
    """Remove nodes, the last of the file first."""
    with graph.edit() as edit:
        for node in sorted(nodes, key=lambda ident: -graph.index.rank(graph.nodes[ident])):
            edit.apply(RemoveNode(node))


# -- what goes ---------------------------------------------------------------------------------------------------------


class _Planner:
    """The parts of a graph on both sides of a cut."""

    def __init__(self, graph: ModelGraph, outputs: Sequence[ValueRecord], inputs: Sequence[ValueRecord]) -> None:
        if not outputs and not inputs:
            raise EditError("a cut needs a value: give those that the model shall end at, or those to start at")
        _check(graph, [*outputs, *inputs])
        self.graph = graph
        self.ends = [value.id for value in outputs]
        self.starts = [value.id for value in inputs]
        self.behind = _behind(graph, outputs) - self._needed(self.ends, set())
        self.fed = _behind(graph, [graph.values[vid] for vid in graph.main.inputs if not graph.values[vid].initializer])

    def plan(self, siblings: bool) -> Cut:
        graph, outputs = self.graph, self.graph.main.outputs
        lost = [vid for vid in outputs if _maker(graph, vid) in self.behind]
        remaining = [vid for vid in outputs if vid not in set(lost)]
        ends = list(dict.fromkeys([*self.ends, *(self._crossing_end() if siblings and self.behind else ())]))
        new = [vid for vid in ends if vid not in set(outputs)]
        starts = list(self.starts)
        if siblings and starts:
            starts += self._crossing_start([*remaining, *ends])
        needed = self._needed([*remaining, *ends], set(starts))
        going = (self._needed(outputs, set()) | self.behind) - needed
        going |= descendants(graph, going) - needed  # dead nodes may read removed values
        if not going and not starts:
            names = ", ".join(graph.values[vid].name for vid in (*self.ends, *self.starts))
            raise EditError(f"nothing would go: all that the model computes is needed on this side of {names} too")
        named = {*self.ends, *self.starts}
        crossing = [vid for vid in (*new, *starts) if vid not in named]
        unread = self._unread(going, {*remaining, *ends})
        return Cut(tuple(new), tuple(starts), tuple(going), tuple(lost), tuple(unread), tuple(crossing))

    def _needed(self, values: Iterable[int], known: set[int]) -> set[int]:
        """Nodes that values are computed by, where some values are given."""
        graph = self.graph
        needed: set[int] = set()
        waiting = [vid for vid in values if vid not in known]
        while waiting:
            maker = _maker(graph, waiting.pop())
            if not maker or maker in needed:
                continue
            needed.add(maker)
            node = graph.nodes[maker]
            read = [*node.inputs, *graph.index.captures(node)] if node.bodies else node.inputs
            waiting += [vid for vid in read if vid and vid not in known]
        return needed

    def _crossing_end(self) -> Iterable[int]:
        """Values that only what goes reads, made by what stays of what the model is given."""
        for node in sorted(self.fed - self.behind):
            for vid in self.graph.nodes[node].outputs:
                used = set(readers(self.graph, self.graph.values[vid])) if vid else set()
                if used and used <= self.behind:
                    yield vid

    def _crossing_start(self, targets: Sequence[int]) -> list[int]:
        """Values besides the starts that lead from what the starts are computed by to what stays."""
        graph = self.graph
        makers = {maker for vid in self.starts if (maker := _maker(graph, vid))}
        before = makers | ancestors(graph, makers)
        on = _behind(graph, [graph.values[vid] for vid in self.starts])
        before -= self._needed(
            [vid for vid in targets if _maker(graph, vid) not in on and vid not in self.starts], set()
        )
        before -= on
        crossing = []
        for node in sorted(before & self.fed):
            for vid in graph.nodes[node].outputs:
                used = set(readers(graph, graph.values[vid])) if vid else set()
                if vid not in self.starts and used - before - self.behind:
                    crossing.append(vid)
        return crossing

    def _unread(self, going: set[int], outputs: set[int]) -> Iterable[int]:
        """Inputs of the model that only what goes reads."""
        for vid in self.graph.main.inputs:
            value = self.graph.values[vid]
            used = set(readers(self.graph, value))
            if used and used <= going and vid not in outputs and value.initializer is None:
                yield vid


def _check(graph: ModelGraph, values: Iterable[ValueRecord], computed: bool = True) -> None:
    for value in values:
        if value.scope != graph.main.id:
            where = graph.scope_path(graph.scopes[value.scope])
            raise EditError(f"{value.name!r} is inside {where}; a model is cut at values of its main graph")
        if computed and not value.producer:
            role = "an initializer" if value.initializer is not None else "an input"
            raise EditError(f"{value.name!r} is {role}; a model is cut at values that its nodes compute")


def _behind(graph: ModelGraph, values: Iterable[ValueRecord]) -> set[int]:
    """The nodes that depend on values."""
    first = {reader for value in values for reader in readers(graph, value)}
    return first | descendants(graph, first)


def _maker(graph: ModelGraph, value: int) -> int:
    producer = graph.values[value].producer
    return producer[0] if producer else 0


# -- the changes -------------------------------------------------------------------------------------------------------


def _take_from_maker(graph: ModelGraph, value: ValueRecord, going: set[int]) -> None:
    """Let a node that stays make another value in the place of one that becomes an input."""
    assert value.producer is not None
    node, slot = graph.nodes[value.producer[0]], value.producer[1]
    if node.id in going:
        return
    names = list(node.proto.output)
    names[slot] = FreshNames(graph, graph.main).value(f"{value.name}_unused")
    graph.apply(SetOutputs(node.id, tuple(names)))


def _declare_input(graph: ModelGraph, name: str, declared: onnx.ValueInfoProto | None) -> None:
    info = onnx.ValueInfoProto()
    if declared is not None:
        info.CopyFrom(declared)
    info.name = name
    graph.apply(InsertFormal(graph.main.id, "input", len(graph.main.inputs), info))
