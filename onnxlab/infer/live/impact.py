"""The impact of an edit in words: changed facts, and nodes that cannot accept theirs."""

from __future__ import annotations

from collections.abc import Mapping

from onnxlab.errors import Diagnostic
from onnxlab.infer.facts.policy import is_unknown
from onnxlab.printable import printable_lines
from onnxlab.shapes import Fact

MAX_LINES = 12
MAX_TEXT = 80


def impact_text(title: str, facts: Mapping[str, tuple[Fact, Fact]], refusal: Diagnostic | None) -> str:
    """A few lines: how many facts changed and in what way, the first of them, the first error."""
    if not facts and refusal is None:
        return f"{title}: no fact changed"
    counts: dict[str, int] = {}
    for old, new in facts.values():
        kind = _kind(old, new)
        counts[kind] = counts.get(kind, 0) + 1
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    lines = [f"{title}: {len(facts)} fact{'s' * (len(facts) != 1)} changed ({kinds or 'none'})"]
    names = list(facts)
    for name in names[:MAX_LINES]:
        old, new = facts[name]
        lines.append(f"  {name}: {_text(old, new)} → {_text(new, old)}")
    if len(facts) > MAX_LINES:
        lines.append(f"  … and {len(facts) - MAX_LINES} more, the last one {names[-1]}")
    if refusal is not None:
        lines.append(f"  first error: {refusal}")
    return printable_lines(lines)


def _kind(old: Fact, new: Fact) -> str:
    """The kind of a fact's change, in a word."""
    if old.dtype != new.dtype and new.dtype is not None and old.dtype is not None:
        return "of another type"
    if _known(new) != _known(old):
        return "became known" if _known(new) > _known(old) else "lost"
    if old.rank != new.rank:
        return "of another rank"
    return "resized" if old.shape != new.shape else "with other elements"


def _known(fact: Fact) -> int:
    """The degree to which a shape is known: 0 for no rank, 1 with unknown dims, 2 with a number or expression each."""
    if fact.shape is None:
        return 0
    return 1 if any(is_unknown(dim) for dim in fact.shape) else 2


def _text(fact: Fact, other: Fact) -> str:
    """The fact, cut short; with its elements where nothing else tells it from the other one."""
    known = getattr(fact, "known", None)
    text = f"{fact} = {known}" if known is not None and str(fact) == str(other) else str(fact)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
