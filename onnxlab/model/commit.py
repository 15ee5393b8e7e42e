"""`Commit`: what one edit did, as followers of a Model hear of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.commits import CommitKind
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer.live.impact import blast_radius
from onnxlab.shapes import Fact


@dataclass(frozen=True, slots=True)
class Commit:
    """One edit, undo or redo with its effects.

    Attributes:
        version: the model's version after the edit.
        fact_ids: {value id: (fact before, fact after)} for every value whose type, shape or known value changed.
        facts: the same by the value's name, with the path of its scope in front where it is not in the main graph.
        touched: ids of what was added, changed and removed.
        first_refusal: the problem of the first node that cannot accept the change; None where all do.
        origin: the source of the edit (a view's session), or None.
    """

    version: int
    label: str
    kind: CommitKind
    fact_ids: Mapping[int, tuple[Fact, Fact]]
    facts: Mapping[str, tuple[Fact, Fact]]
    touched: Touched
    origin: Any = None
    first_refusal: Diagnostic | None = None

    def __str__(self) -> str:
        """Effects of the edit on facts, in topological order, and the first node that refuses one."""
        text = blast_radius(f"{self.kind} {self.label!r}", self.facts, self.first_refusal)
        count = len(self.touched.declared)
        return f"{text}\n  {count} declaration{'s' * (count != 1)} changed" if count else text

    def __repr__(self) -> str:
        return f"<Commit {self.version}: {self.kind} {self.label!r}, {len(self.facts)} facts changed>"
