"""The record of rewriting: each application of a rule or pass, lost notes, and the verdict of running both models."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from onnxlab.graph.handles.handles import Node
from onnxlab.printable import printable_lines
from onnxlab.transforms.metadata_transfer import MetadataLoss

Verdict = Literal["bit equal", "equal within noise", "rounded", "finite inputs only", "different", "not run"]
"""The result of comparing a model before and after, run on the same inputs."""

VERDICTS: tuple[Verdict, ...] = (
    "not run",
    "bit equal",
    "equal within noise",
    "rounded",
    "finite inputs only",
    "different",
)
"""From best to worst, after "not run"."""


_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Application:
    """One place at which a rule or pass changed something.

    Attributes:
        rule: the name of the rule or pass.
        place: the node or value, as the model calls it.
        what: what was done, in words.
        value: the name of a value that identifies the place.
        verdict: the verdict on this application alone, "not run" where it was judged with all others.
        taken: in a preview, the nodes that would be removed.
        given: in a preview, operators of the nodes that would be inserted.
        at: in a preview, the node at whose place they would be, None where there is none.
    """

    rule: str
    place: str
    what: str
    value: str = ""
    verdict: Verdict = "not run"
    taken: tuple[Node, ...] = ()
    given: tuple[str, ...] = ()
    at: Node | None = None

    def __str__(self) -> str:
        return f"{self.rule}: {self.place}: {self.what}"


@dataclass(frozen=True, slots=True)
class RefusedRewrite:
    """An application, or a whole rule, that was taken back.

    Attributes:
        rule: the name of the rule.
        place: the node or value, "" for all places.
        why: what differs, in words.
        feeds: the smallest inputs found that show the difference, by name.
        value: the name of a value that identifies the place.
    """

    rule: str
    place: str
    why: str
    feeds: Mapping[str, Any] = field(default_factory=dict)
    value: str = ""

    def __str__(self) -> str:
        return f"{self.rule}{f' at {self.place}' if self.place else ''}: {self.why}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The effect of one call of `simplify`, `optimize`, `rewrite` or `quantize`; it is one step of the history.

    Attributes:
        applied: each application, in order.
        nodes: how many nodes the graphs had before and have now, Constant not counted.
        lost: documentation, metadata and quantization of tensors that the model has no more.
        refused: applications that were taken back: what differed, and for which inputs.
        verdict: the verdict on all applications that stayed.
        note: what limits the verdict, "" where nothing does.
        unfit: of rules that the user wrote, the places that match and where the replacement cannot stand: why; of
            `quantize`, the nodes and weights that stay as they are.
        constants: how many Constant nodes the graphs had besides, and have now.
        bytes: how many bytes the stored tensors took before and take now.
    """

    applied: tuple[Application, ...] = ()
    nodes: tuple[int, int] = (0, 0)
    lost: tuple[MetadataLoss, ...] = ()
    refused: tuple[RefusedRewrite, ...] = ()
    verdict: Verdict = "not run"
    note: str = ""
    unfit: tuple[RefusedRewrite, ...] = ()
    constants: tuple[int, int] = (0, 0)
    bytes: tuple[int, int] = (0, 0)

    @property
    def counts(self) -> dict[str, int]:
        """The number of applications of each rule, the most frequent first."""
        return dict(Counter(application.rule for application in self.applied).most_common())

    def __str__(self) -> str:
        before, after = self.nodes
        besides = f", besides {self.constants[0]} Constants, now {self.constants[1]}" if any(self.constants) else ""
        lines = [f"{before} nodes before, {after} now{besides}; outputs: {self.verdict}"]
        if self.bytes[0] != self.bytes[1]:
            lines.append(f"  {self.bytes[0]:,} bytes of tensors before, {self.bytes[1]:,} now")
        lines += [f"  {self.note}"] * bool(self.note)
        lines += [f"  {count} × {rule}" for rule, count in self.counts.items()]
        lines += [f"  taken back: {refusal}" for refusal in self.refused]
        lines += [f"  not applied: {place}" for place in self.unfit[:_SHOWN]]
        if len(self.unfit) > _SHOWN:
            lines.append(f"  and {len(self.unfit) - _SHOWN} more places where a rule matches and cannot be applied")
        lines += [f"  lost: {loss}" for loss in self.lost[:_SHOWN]]
        if len(self.lost) > _SHOWN:
            lines.append(f"  and {len(self.lost) - _SHOWN} more lines of documentation and metadata of what went")
        return printable_lines(lines)

    def as_dict(self) -> dict[str, object]:
        """The receipt for a file, as JSON holds it."""
        return {
            "schema": "onnxlab/receipt/3",
            "nodes": list(self.nodes),
            "constants": list(self.constants),
            "bytes": list(self.bytes),
            "verdict": self.verdict,
            "note": self.note,
            "applied": [
                {"rule": entry.rule, "place": entry.place, "what": entry.what, "verdict": entry.verdict}
                for entry in self.applied
            ],
            "lost": [{"of": loss.of, "key": loss.key, "text": loss.text} for loss in self.lost],
            "refused": [{"rule": entry.rule, "place": entry.place, "why": entry.why} for entry in self.refused],
            "unfit": [{"rule": entry.rule, "place": entry.place, "why": entry.why} for entry in self.unfit],
        }
