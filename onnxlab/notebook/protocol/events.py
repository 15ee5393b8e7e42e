"""Events that the kernel sends by itself, numbered, so that a page that missed one asks for a snapshot."""

from typing import Annotated, Literal, NotRequired, TypedDict

from onnxlab.notebook.protocol.records import (
    Diagnostic,
    GroupRecord,
    History,
    NodeRecord,
    OverlayNumbers,
    ScopeRecord,
    ValueRecord,
)


class CommitEvent(TypedDict):
    """The changes of an edit, an undo or a redo."""

    event: Literal["commit"]
    seq: int
    version: int
    label: str
    kind: Literal["edit", "undo", "redo"]
    nodes: list[NodeRecord]
    removed_nodes: list[int]
    values: list[ValueRecord]
    removed_values: list[int]
    facts: Annotated[
        tuple[list[int], list[str], list[str]], "Value ids, their new labels and their element types: columns."
    ]
    groups: list[GroupRecord] | None
    scopes: list[ScopeRecord] | None
    diagnostics: list[Diagnostic]
    history: History
    dirty: bool
    path: NotRequired[str | None]
    opsets: NotRequired[Annotated[dict[str, int], "Opset version by domain."]]
    refusal: NotRequired[Annotated[Diagnostic | None, "The first node that cannot accept what the edit changed."]]
    python: NotRequired[Annotated[str, "The edit in Python."]]
    origin: Annotated[str | None, "Session of the view that made the edit, null when it came from Python."]


class ProgressEvent(TypedDict):
    """The progress of a run."""

    event: Literal["progress"]
    seq: int
    run: int
    done: int
    total: int
    node: str


class DiagnosticsEvent(TypedDict):
    """All problems, where the background found others than the last commit told."""

    event: Literal["diagnostics"]
    seq: int
    diagnostics: list[Diagnostic]


class HistoryEvent(TypedDict):
    """The model was saved, or its recoverable edits are others."""

    event: Literal["history"]
    seq: int
    history: History
    dirty: bool
    path: NotRequired[str | None]
    opsets: NotRequired[dict[str, int]]


class ClosedEvent(TypedDict):
    """Python closed the view."""

    event: Literal["closed"]
    seq: int


class OpenedEvent(TypedDict):
    """The view shows another model from now on; `former` is the name of the one before."""

    event: Literal["opened"]
    seq: int
    title: str
    former: str


class OverlayEvent(OverlayNumbers):
    """Other numbers to color nodes by."""

    event: Literal["overlay"]
    seq: int


EVENTS = (OverlayEvent, CommitEvent, ProgressEvent, DiagnosticsEvent, HistoryEvent, OpenedEvent, ClosedEvent)
