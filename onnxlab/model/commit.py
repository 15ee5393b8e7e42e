"""`Commit`: what one edit did, as followers of a Model hear of it."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.commits import CommitKind
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer.live.impact import impact_text
from onnxlab.shapes import Fact


@dataclass(frozen=True, slots=True)
class Commit:
    """One edit, undo or redo with its effects.

    Attributes:
        version: the model's version after the edit.
        fact_ids: {value id: (fact before, fact after)} for every value whose type, shape or known value changed.
        facts: the same by the value's name, with the path of its scope in front where it is not in the main graph.
        touched: ids of what was added, changed and removed.
        first_error: the problem of the first node that cannot accept the change; None where all do.
        origin: the source of the edit (a view's session), or None.
    """

    version: int
    label: str
    kind: CommitKind
    fact_ids: Mapping[int, tuple[Fact, Fact]]
    facts: Mapping[str, tuple[Fact, Fact]]
    touched: Touched
    origin: Any = None
    first_error: Diagnostic | None = None

    @property
    def first_refusal(self) -> Diagnostic | None:
        """The old name of `first_error`."""
        warnings.warn("first_refusal is now first_error", DeprecationWarning, stacklevel=2)
        return self.first_error

    def __str__(self) -> str:
        """Effects of the edit on facts, in topological order, and the first node that refuses one."""
        text = impact_text(f"{self.kind} {self.label!r}", self.facts, self.first_error)
        count = len(self.touched.declared)
        return f"{text}\n  {count} declaration{'s' * (count != 1)} changed" if count else text

    def __repr__(self) -> str:
        return f"<Commit {self.version}: {self.kind} {self.label!r}, {len(self.facts)} facts changed>"
