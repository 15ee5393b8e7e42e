"""The structural difference of two models: what is matched, what changed, what came and went."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

from onnxlab.analysis.diff.change import IGNORABLE, Ignorable, ModelChange
from onnxlab.analysis.diff.identical import field_changes, identical, same_places
from onnxlab.analysis.diff.listing import Listing
from onnxlab.analysis.diff.matching import Fingerprints, GraphMatching, match
from onnxlab.analysis.diff.regions import ChangedRegion, regions
from onnxlab.argument_types import several, tolerance_of
from onnxlab.garbage_collection import no_collection
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp

_SHOWN = 200
"""Changes that a text lists of each kind."""

_SHORT = ("renamed", "moved")
_FEW = 20
"""Renamings and moves that a text lists; the others are counted."""


class Diff(metaclass=ShortHelp):
    """The difference of two models. True where there is one that was not to be ignored.

    Attributes:
        a, b: the graphs that were compared. A graph that is edited later is another model.
        ignored: what was left out.
        tolerance: how far stored tensors may be apart to count as equal.
    """

    def __init__(
        self,
        a: ModelGraph,
        b: ModelGraph,
        ignore: Collection[Ignorable] = (),
        tolerance: float = 0.0,
        fingerprints: Fingerprints | None = None,
    ) -> None:
        words: list[Any] = several(ignore, str, "ignore", f"words out of {', '.join(IGNORABLE)}")
        if unknown := set(words) - set(IGNORABLE):
            raise ValueError(f"cannot ignore {', '.join(sorted(unknown))}; there are {', '.join(IGNORABLE)}")
        self.a, self.b = a, b
        self.ignored, self.tolerance = frozenset(words), tolerance_of(tolerance)
        self._fingerprints = fingerprints
        self._is_same = identical(a, b)
        self.versions = (a.version, b.version)

    @cached_property
    def matching(self) -> GraphMatching:
        """Pairs of ids of nodes, values and scopes.

        Examples:
            >>> len(onnxlab.diff(model, model).matching.nodes)
            24
        """
        with no_collection():
            return same_places(self.a, self.b) if self._is_same else match(self.a, self.b, self._fingerprints)

    @cached_property
    def changes(self) -> tuple[ModelChange, ...]:
        """Everything that differs and is not ignored.

        Examples:
            >>> other = onnxlab.load()
            >>> other.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
            >>> print(onnxlab.diff(model, other).changes[0])
            node /stem/relu/Relu: operator Relu → Sigmoid
        """
        if self._is_same:
            return ()
        with no_collection():
            listed = list(Listing((self.a, self.b), self.matching, self.tolerance).changes())
            if not listed and not self.ignored and not self.tolerance:
                listed += field_changes(self.a.proto, self.b.proto)
            return tuple(change for change in listed if not change.is_ignored(self.ignored))

    @cached_property
    def regions(self) -> tuple[ChangedRegion, ...]:
        """Nodes of one model that others of the other model stand for: "these five became that one".

        Examples:
            >>> simpler = onnxlab.load()
            >>> receipt = simpler.simplify()
            >>> print(onnxlab.diff(model, simpler).regions[0].text)
            Conv, BatchNormalization (at /stem/conv/Conv) became Conv (at /stem/conv/Conv)
        """
        return () if self._is_same else tuple(regions(self.a, self.b, self.matching))

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes of each kind.

        Examples:
            >>> onnxlab.diff(model, model).counts
            {}
        """
        return dict(Counter(change.kind for change in self.changes))

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Any:
        return iter(self.changes)

    def of_kind(self, *kinds: str) -> tuple[ModelChange, ...]:
        """Choose the changes of some kinds.

        Args:
            kinds: "added", "removed", "changed", "renamed", "moved".

        Returns:
            tuple[Change, ...]: in the order in which they stand.

        Examples:
            >>> onnxlab.diff(model, model).of_kind("added")
            ()
        """
        return tuple(change for change in self.changes if change.kind in kinds)

    # -- as text ----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """One line of counts, then a line for each region and change."""
        lines = [self._headline()]
        lines += [f"  {region.text}" for region in self.regions[:_SHOWN]]
        marks = {"removed": "-", "added": "+", "changed": "~", "renamed": "=", "moved": ">"}
        for kind, listed, more in self._listed():
            lines += [f"{marks[kind]} {change}" for change in listed]
            if more:
                lines.append(f"{marks[kind]} and {more:,} more {kind}")
        return printable_lines(lines)

    def to_markdown(self) -> str:
        """Write the difference as Markdown: a table of counts and a list for each kind.

        Returns:
            str: names are in code spans, so that nothing in them is markup.

        Examples:
            >>> onnxlab.diff(model, model).to_markdown()
            '**The models are equal.**'
        """
        lines = [f"**{self._headline()}**"]
        if self.regions:
            lines += ["", "### Regions", "", *(f"* {_code(region.text)}" for region in self.regions[:_SHOWN])]
        for kind, listed, more in self._listed():
            lines += ["", f"### {kind.capitalize()}", "", *(f"* {_code(str(change))}" for change in listed)]
            if more:
                lines.append(f"* and {more:,} more")
        return printable_lines(lines)

    def as_dict(self) -> dict[str, Any]:
        """Give the difference as JSON holds it.

        Returns:
            dict[str, Any]: all changes and regions, and the pairs of names by which values were matched.

        Examples:
            >>> onnxlab.diff(model, model).as_dict()["equal"]
            True
        """
        names = ("kind", "subject", "a", "b", "field", "old", "new", "scope")
        a, b = self.a, self.b
        return {
            "schema": "onnxlab/diff/1",
            "equal": not self,
            "counts": self.counts,
            "matched": {"nodes": len(self.matching.nodes), "values": len(self.matching.values)},
            "regions": [
                {"before": [a.label(a.nodes[ident]) for ident in region.before],
                 "after": [b.label(b.nodes[ident]) for ident in region.after], "text": region.text}
                for region in self.regions
            ],
            "changes": [{name: getattr(change, name) for name in names} for change in self.changes],
        }  # fmt: skip

    def to_json(self) -> str:
        """Write the difference as JSON.

        Returns:
            str: what `as_dict` gives.

        Examples:
            >>> onnxlab.diff(model, model).to_json()[:28]
            '{"schema": "onnxlab/diff/1",'
        """
        return json.dumps(self.as_dict(), ensure_ascii=True, allow_nan=False)

    def _headline(self) -> str:
        if not self.changes:
            left = f" but for {', '.join(sorted(self.ignored))}" if self.ignored and not self._is_same else ""
            return f"The models are equal{left}."
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        total = max(len(self.a.nodes), 1)
        return f"{counts}; {len(self.matching.nodes):,} of {total:,} nodes matched"

    def _listed(self) -> Iterable[tuple[str, tuple[ModelChange, ...], int]]:
        """(kind, what is shown of it, how many more there are)."""
        for kind in ("removed", "added", "changed", "renamed", "moved"):
            changes = self.of_kind(kind)
            shown = _FEW if kind in _SHORT else _SHOWN
            if changes:
                yield kind, changes[:shown], max(0, len(changes) - shown)

    def __repr__(self) -> str:
        return f"<Diff: {self._headline()}>"


def _code(text: str) -> str:
    """A code span whatever the text holds: its fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in text.replace("`", " ` ").split(" ") if set(run) == {"`"}), default=0)
    fence = "`" * (text.count("`") + 1 if longest else 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"
