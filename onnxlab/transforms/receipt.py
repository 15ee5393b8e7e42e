"""What rewriting did: each application of a pass, what was lost, and what running both models said."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from onnxlab.printable import printable_lines

Verdict = Literal["bit equal", "equal within noise", "finite inputs only", "different", "not run"]
"""What running the model before and after on the same inputs said."""


@dataclass(frozen=True, slots=True)
class Application:
    """One place at which a pass changed something.

    Attributes:
        rule: name of the pass.
        place: the node or value, as the model calls it.
        what: what was done, in words.
    """

    rule: str
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one call of `simplify` did; it is one step of the history.

    Attributes:
        applied: each application, in order.
        nodes: how many nodes the main graph had before and has now, Constant not counted.
        lost: names of removed nodes with what they said of themselves: documentation, metadata.
        refused: by pass, why it was taken back: what differed, and for which inputs.
        verdict: what running both models said of all that stayed.
    """

    applied: tuple[Application, ...] = ()
    nodes: tuple[int, int] = (0, 0)
    lost: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict = "not run"

    @property
    def counts(self) -> dict[str, int]:
        """How often each pass was applied."""
        return dict(Counter(each.rule for each in self.applied))

    def __str__(self) -> str:
        before, after = self.nodes
        lines = [f"{before} nodes before, {after} now; outputs: {self.verdict}"]
        lines += [f"  {count} × {rule}" for rule, count in sorted(self.counts.items(), key=lambda item: -item[1])]
        lines += [f"  taken back: {rule}: {why}" for rule, why in self.refused.items()]
        if self.lost:
            shown = ", ".join(self.lost[:8]) + (f" and {len(self.lost) - 8} more" if len(self.lost) > 8 else "")
            lines.append(f"  documentation or metadata of removed nodes lost: {shown}")
        return printable_lines(lines)

    def as_dict(self) -> dict[str, object]:
        """The receipt for a file, as JSON holds it."""
        return {
            "schema": "onnxlab/receipt/1",
            "nodes": list(self.nodes),
            "verdict": self.verdict,
            "applied": [{"rule": each.rule, "place": each.place, "what": each.what} for each in self.applied],
            "lost": list(self.lost),
            "refused": dict(self.refused),
        }
