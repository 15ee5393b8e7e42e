"""A single difference of two models."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Kind = Literal["added", "removed", "changed", "renamed", "moved"]
Subject = Literal[
    "node", "value", "initializer", "input", "output", "declaration", "annotation", "graph", "function", "opset",
    "metadata", "model",
]  # fmt: skip
Ignorable = Literal["names", "order", "docs", "metadata", "declarations", "weights", "attributes", "opsets", "producer",
                    "defaults"]  # fmt: skip

IGNORABLE: tuple[Ignorable, ...] = (
    "names", "order", "docs", "metadata", "declarations", "weights", "attributes", "opsets", "producer",
    "defaults",
)  # fmt: skip
"""What a comparison may leave out."""

_DOCS = "documentation"
_PRODUCER = frozenset(("producer_name", "producer_version", "domain", "model_version", "ir_version"))


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One difference.

    Attributes:
        kind: what happened to it.
        subject: what it happened to.
        a, b: its name or label in the first and second model, "" where it is in one alone.
        field: which part of it, as "attribute alpha" or "input 1".
        old, new: texts of the part, "" where there is none.
        scope: path of the graph or function, "" for the main graph.
        a_id, b_id: of the node or value in its model, 0 for none.
        besides: a further word that leaves the change out: "defaults" for an attribute that one model sets to its
            schema's default; in dumps of GE "declarations" for types of ports, "order" for places in the schedule.
    """

    kind: Kind
    subject: Subject
    a: str
    b: str
    field: str = ""
    old: str = ""
    new: str = ""
    scope: str = ""
    a_id: int = 0
    b_id: int = 0
    besides: Ignorable | None = None

    @property
    def ignored_as(self) -> Ignorable | None:
        """The word that leaves the change out, None where none does."""
        if self.kind in ("renamed", "moved"):
            return "names" if self.kind == "renamed" else "order"
        if self.field == _DOCS:
            return "docs"
        if self.field.startswith("metadata") or self.subject == "metadata":
            return "metadata"
        if self.subject == "initializer" and self.kind == "changed":
            return "weights"
        if self.subject == "declaration":
            return "declarations"
        if self.subject == "node" and self.field.startswith("attribute"):
            return "attributes"
        if self.subject == "opset":
            return "opsets"
        return "producer" if self.subject == "model" and self.field in _PRODUCER else None

    def is_ignored(self, words: Collection[Ignorable]) -> bool:
        """Whether one of some words leaves it out."""
        return self.ignored_as in words or self.besides in words

    @property
    def is_default(self) -> bool:
        """Whether the change is an attribute that one model sets to its schema's default."""
        return self.besides == "defaults"

    def __str__(self) -> str:
        name = self.b or self.a
        where = f" in {self.scope}" if self.scope else ""
        if self.kind == "renamed":
            return f"{self.subject} {self.a}{where}: renamed to {self.b}"
        field = f" {self.field}" if self.field else ""
        if not self.old and not self.new:
            return f"{self.subject} {name}{where}: {self.kind}{field}"
        if self.kind in ("added", "removed"):
            return f"{self.subject} {name}{where}: {self.kind}{field}: {self.new or self.old}"
        return f"{self.subject} {name}{where}:{field} {self.old or 'none'} → {self.new or 'none'}"
