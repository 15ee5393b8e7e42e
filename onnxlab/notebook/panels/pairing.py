"""Two models side by side: what the page is told of their difference, and of values that were compared."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from onnxlab.analysis.compare.comparison import ComparedValue
from onnxlab.analysis.compare.sides import RunSide
from onnxlab.analysis.diff.change import ModelChange
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits
from onnxlab.model.differences import compare, fixed_sizes
from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff
from onnxlab.notebook.panels import run_inputs
from onnxlab.notebook.panels.paired_nodes import NodePair, compared
from onnxlab.notebook.panels.tensor_views import tensor_part
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, number
from onnxlab.notebook.protocol.uploads import Uploads
from onnxlab.printable import printable

LISTED = 1500
"""Changes of each kind, and regions, that are sent to the page."""
ORDER = ("changed", "added", "removed", "renamed", "moved")
"""Kinds of changes in the order of the list, the most important first."""
KINDS = ("changed", "renamed", "added", "fused", "removed")
"""Kinds of nodes by which both graphs are colored; for a node of several kinds the latest one counts."""
OF = ("a", "b", "difference")
DEADLINE = 60.0
"""Seconds that each run of a comparison may take by default."""


def alone(model: Any, **params: Any) -> JSON:
    """Refuse a question about two models where a view shows one."""
    raise ProtocolError("nothing", "This view shows one model.", "In Python: onnxlab.diff(a, b).view()")


def elsewhere(model: Any, **params: Any) -> JSON:
    """Refuse to compare in a view that cannot show two models in its place."""
    raise ProtocolError("refused", "This view cannot show a second model.", "In Python: onnxlab.diff(a, b).view()")


class Pairing:
    """The shared state of the views of two models.

    Args:
        subject: the difference or the comparison that is shown.
        names: what both models are called; default: their own names.

    Attributes:
        models: both models; the second one is None where the other side is recorded values.
    """

    def __init__(self, subject: ModelDiff | ModelComparison, names: tuple[str, str] | None = None) -> None:
        self._names = names
        self._limits: Limits | None = None
        self.comparison = subject if isinstance(subject, ModelComparison) else None
        self.models: tuple[Any, Any] = (0, 0)
        self._diff: Diff | None = None
        self._ignored: frozenset[Any] = frozenset()
        self._tolerance = 0.0
        if isinstance(subject, ModelDiff):
            self.models, self._diff = subject.models(), subject
            self._ignored, self._tolerance = subject.ignored, subject.tolerance
        elif subject.compared is not None:
            self.models = subject.compared.models
        self._arrays: tuple[int, tuple[Any, Any]] | None = None

    def pair(self, again: bool) -> JSON:
        """The current differences; with `again`, values are compared anew where a model was edited."""
        comparison = self.comparison
        if again and comparison is not None and comparison.compared is not None:
            self.comparison = comparison = comparison.compared.again()
            self._arrays = None
        a, b = self.models
        if b is None:
            return {**self._recorded(), **self._errors(GraphMatching())}
        with a.graph.lock, b.graph.lock:
            diff = self._current()
            names = tuple(map(printable, self._names or (a.name, b.name)))
            return {"sides": 2, "names": names, **_differences(diff), **self._errors(diff.matching)}

    def nodes(self, a: int | None, b: int | None) -> JSON:
        """A node of each model beside the other, part by part.

        Raises:
            ProtocolError: the other side is recorded values.
            NameLookupError: a node is not in its model any more.
        """
        first, second = self.models
        if second is None:
            raise ProtocolError("nothing", "The other side is recorded values: it has no nodes.")
        with first.graph.lock, second.graph.lock:
            read = NodePair(self.models, (a or 0, b or 0), self._current().matching.values).read()
        return compared(read)

    def compare_values(
        self, uploads: Uploads, local: bool, seed: int | None, inputs: Any, sizes: Any, deadline: int | None
    ) -> JSON:
        """Run both models on inputs of the first, as `onnxlab.compare` does, and tell what differs.

        Raises:
            ProtocolError: the other side is recorded values, or a comparison is under way.
            FeedError, EditError, RunError: inputs that do not fit, or models that do not run.
        """
        a, b = self.models
        if b is None or self._limits is not None:
            raise ProtocolError("refused", "A comparison is under way." if b else "The other side is recorded values.")
        self._limits = Limits(deadline=DEADLINE if deadline is None else deadline or None)
        try:
            feeds = run_inputs.feeds(a, uploads, inputs, {**fixed_sizes(a, b), **(sizes or {})}, seed or 0)
            self.comparison = compare(a, b, feeds, local=local, limits=self._limits)
            self._arrays = None
        finally:
            self._limits = None
        return self.pair(again=False)

    def stop_comparing(self) -> JSON:
        """End the runs of a comparison under way."""
        limits = self._limits
        if limits is not None:
            limits.stop.set()
        return {"stopped": limits is not None}

    def _current(self) -> Diff:
        """The difference of both models as they are now."""
        a, b = (model.graph for model in self.models)
        diff = self._diff
        if diff is None or diff.a is not a or diff.b is not b or diff.versions != (a.version, b.version):
            diff = self._diff = Diff(a, b, self._ignored, self._tolerance)
        return diff

    def _recorded(self) -> JSON:
        empty: JSON = {"a": [], "b": []}
        colors: JSON = {"nodes": [], "kinds": []}
        return {
            "headline": "", "names": (printable(self.models[0].name), "recorded values"), "sides": 1, "nodes": empty,
            "values": empty, "scopes": empty, "changes": [], "counts": {}, "more": 0, "regions": [], "kinds": [],
            "colors": (colors, colors),
        }  # fmt: skip

    def _errors(self, matching: GraphMatching) -> JSON:
        comparison = self.comparison
        if comparison is None or comparison.compared is None:
            return {"errors": None, "stale": False}
        side = comparison.compared.b
        its = side.graph if isinstance(side, RunSide) else None
        columns = _columns(comparison, comparison.compared.a.graph, its)
        headline = str(comparison).splitlines()[0]
        return {"errors": columns, "stale": not comparison.compared.is_current, "headline": headline}

    def tensor(self, value: int, of: str, **place: Any) -> tuple[JSON, list[bytes]]:
        """A part of a compared value: of one side, or of the difference.

        Raises:
            ProtocolError: the value was not compared, a model was edited since, or the sides cannot be subtracted.
        """
        if of not in OF:
            raise ProtocolError("malformed", f"paired_tensor: of is one of {', '.join(OF)}, got {of!r}")
        arrays = self._computed(value)
        source = _difference(*arrays) if of == "difference" else arrays[OF.index(of)]
        return tensor_part(value, "run", source, picture="heat", **place)

    def _computed(self, value: int) -> tuple[Any, Any]:
        """Both sides of a value; those of the last value are kept, since a page requests three pictures of a value."""
        if self._arrays is not None and self._arrays[0] == value:
            return self._arrays[1]
        comparison = self.comparison
        record = self.models[0].graph.values.get(value)
        if comparison is None or record is None:
            raise ProtocolError("nothing", "Values were not compared.", "In Python: onnxlab.compare(a, b).view()")
        try:
            arrays = comparison.arrays(record.name)
        except (KeyError, EditError) as error:
            raise ProtocolError("nothing", str(error.args[0])) from None
        self._arrays = value, arrays
        return arrays


def _differences(diff: Diff) -> JSON:
    matching, changes = diff.matching, diff.changes
    kinds = _kinds(diff)
    listed = [change for kind in ORDER for change in diff.of_kind(kind)[:LISTED]]
    return {
        "headline": str(diff).splitlines()[0],
        **{name: _pairs(getattr(matching, name)) for name in ("nodes", "values", "scopes")},
        "changes": [_change(diff, change) for change in listed],
        "counts": diff.counts,
        "more": len(changes) - len(listed),
        "regions": [
            {"a_nodes": list(region.before), "b_nodes": list(region.after), "text": printable(region.text)}
            for region in diff.regions[:LISTED]
        ],
        "kinds": list(KINDS),
        "colors": tuple({"nodes": list(side), "kinds": [*map(KINDS.index, side.values())]} for side in kinds),
    }


def _pairs(ids: Mapping[int, int]) -> JSON:
    return {"a": list(ids), "b": list(ids.values())}


def _change(diff: Diff, change: ModelChange) -> JSON:
    nodes = [_nodes(graph, change, ident) for graph, ident in ((diff.a, change.a_id), (diff.b, change.b_id))]
    is_node = change.subject == "node"
    return {
        "kind": change.kind, "subject": change.subject, "name": printable(change.b or change.a),
        "text": printable(str(change)), "field": printable(change.field), "old": printable(change.old),
        "new": printable(change.new), "a_nodes": nodes[0], "b_nodes": nodes[1],
        "a_value": 0 if is_node else change.a_id, "b_value": 0 if is_node else change.b_id,
    }  # fmt: skip


def _nodes(graph: ModelGraph, change: ModelChange, ident: int) -> list[int]:
    """The nodes of a side that show a change: the node itself, the maker of a value, or the readers of one without."""
    if change.subject == "node":
        return [ident] if ident else []
    value = graph.values.get(ident)
    if value is None:
        return []
    makers = [producer for producer, _ in value.producers]
    return makers or list(dict.fromkeys(reader for reader, _ in value.uses))


def _kinds(diff: Diff) -> tuple[dict[int, str], dict[int, str]]:
    """By side, the kind of each node that differs; renamed nodes do not count where the models' names differ anyway."""
    sides: tuple[dict[int, str], dict[int, str]] = ({}, {})

    def enter(kind: str, nodes: Iterable[Iterable[int]]) -> None:
        for side, idents in zip(sides, nodes, strict=True):
            for ident in idents:
                if ident not in side or KINDS.index(side[ident]) < KINDS.index(kind):
                    side[ident] = kind

    for change in diff.changes:
        if change.kind == "moved" or change.is_default or (change.kind == "renamed" and not diff.matching.names_agree):
            continue
        if change.subject == "node":
            enter(change.kind, ([change.a_id] if change.a_id else [], [change.b_id] if change.b_id else []))
        elif change.subject == "initializer":
            touched = (_nodes(graph, change, ident) for graph, ident in ((diff.a, change.a_id), (diff.b, change.b_id)))
            enter("changed", touched)
    for region in diff.regions:
        for side, idents in zip(sides, (region.before, region.after), strict=True):
            side.update(dict.fromkeys(idents, "fused"))
    return sides


def _columns(comparison: ModelComparison, graph: ModelGraph, other: ModelGraph | None) -> JSON:
    """The entries whose values the models still have, in columns."""
    entries: list[tuple[int, int, ComparedValue]] = []
    for entry in comparison:
        ours = graph.main.names.get(entry.a, 0)
        theirs = other.main.names.get(entry.b, 0) if other is not None else 0
        if ours and (theirs or other is None):
            entries.append((ours, theirs, entry))
    places = {id(entry): place for place, (_, _, entry) in enumerate(entries)}
    listed = [entry for _, _, entry in entries]
    has_local = any(entry.local is not None for entry in listed)
    first = comparison.first
    return {
        "a": [ours for ours, _, _ in entries],
        "b": [theirs for _, theirs, _ in entries],
        "relative": [number(entry.error.relative) for entry in listed],
        "noise": [number(entry.noise) for entry in listed],
        "local": [number(entry.local.relative if entry.local else 0.0) for entry in listed] if has_local else [],
        "sqnr": [number(entry.error.sqnr) for entry in listed],
        "cosine": [number(entry.error.cosine) for entry in listed],
        "first": [list(entry.error.first) for entry in listed],
        "problems": [printable(entry.error.problem) for entry in listed],
        "guilty": [places[id(entry)] for entry in comparison.guilty if id(entry) in places],
        "diverges": places.get(id(first), -1),
    }


def _difference(array: Any, other: Any) -> Any:
    if not isinstance(array, np.ndarray) or not isinstance(other, np.ndarray):
        raise ProtocolError("nothing", "One of the sides is no tensor.")
    if array.shape != other.shape:
        raise ProtocolError("nothing", f"The shapes differ: {list(array.shape)} and {list(other.shape)}.")
    if array.dtype.kind in "OSU" or other.dtype.kind in "OSU":
        raise ProtocolError("nothing", "Texts have no difference.")
    wide: Any = np.complex128 if "c" in (array.dtype.kind, other.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        return other.astype(wide) - array.astype(wide)
