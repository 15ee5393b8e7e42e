"""Requests of a page that change the model, its history or its file, and their answers."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from onnxlab.notebook.protocol.schema import ID, IDS, TEXT, VERSION, Method, Nothing, Parameter, optional


class Edited(TypedDict):
    """The effect of an edit."""

    version: int
    python: Annotated[str, 'The edit in Python, "" where nothing changed.']


class StepInfo(TypedDict):
    """An edit of the history, and the same in Python."""

    label: str
    python: str


class Steps(TypedDict):
    """The whole history, oldest first; `position` steps are done, and the first `dropped` cannot be undone any more."""

    steps: list[StepInfo]
    position: int
    dropped: int


class Uploaded(TypedDict):
    """The progress of an upload."""

    bytes: int


class Extracted(TypedDict):
    """A part of the model as a file; its bytes come as a buffer."""

    name: str
    python: str


class Unsaved(TypedDict):
    """Unsaved work: edits, oldest first, the fields of the file that they change, and notes."""

    path: str
    copy: Annotated[str, "The name that a copy would get."]
    edits: list[str]
    fields: list[str]
    more: Annotated[tuple[int, int], "Edits and fields that are not listed."]
    notes: list[str]


class Saved(TypedDict):
    """The file that was written."""

    path: str
    bytes: int


class Recovered(TypedDict):
    """The number of steps that were made again."""

    steps: int


class Opened(TypedDict):
    """The model that the view shows now, and the one before."""

    title: str
    former: str


COMMANDS: Mapping[str, Method] = {
    "edit": Method(
        {
            "edit": TEXT, "on": TEXT, "subject": Parameter(list[int], "a list of ids"),
            "parameters": Parameter(dict[str, object], "an object"), "version": VERSION,
        },
        Edited, "A row of the table of edits; `Edits` has their parameters.", edits=True,
    ),
    "undo": Method({"version": VERSION}, Edited, edits=True),
    "redo": Method({"version": VERSION}, Edited, edits=True),
    "go_to": Method({"position": ID, "version": VERSION}, Edited, edits=True),
    "history": Method({}, Steps, repeatable=True),
    "upload": Method(
        {"file": TEXT, "name": TEXT, "offset": ID, "data": TEXT}, Uploaded,
        "A piece of a file, base64; an edit that takes a file names it by its id.",
    ),
    "open": Method(
        {
            "file": optional(str, "the id of a file, or null for the model that the view showed before"),
            "nodes": optional(list[int], "a list of node ids, to show them as a model of their own"),
        },
        Opened, "Shows a file that was sent, or a part of the model, in the place of the model.", long=True,
    ),
    "apply_weights": Method(
        {"file": TEXT, "version": VERSION}, Edited,
        "Replaces initializers by the tensors of a file that have their names.", edits=True,
    ),
    "extract": Method(
        {"nodes": IDS}, Extracted,
        "Nodes as a model of their own, or for none the whole model; its bytes come as a buffer.",
    ),
    "unsaved": Method({}, Unsaved, "The changes that saving would make in the file.", repeatable=True),
    "save": Method(
        {"copy": optional(bool, "true or false"), "version": VERSION}, Saved,
        "Replaces the file, or writes a copy beside it, which the model belongs to from then on.",
    ),
    "recover": Method({}, Recovered),
    "discard": Method({}, Nothing),
}  # fmt: skip
