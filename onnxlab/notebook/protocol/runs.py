"""Runs that a page asks for, and their results: numbers, tensors, colors."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from onnxlab.notebook.protocol.records import Statistics, TensorPart
from onnxlab.notebook.protocol.schema import FLAG, ID, Method, Nothing, WireInt, WireNumber, optional

_NUMBER = optional(int, "a number from 0")
_AXIS = optional(int, "an axis from 0")


class GivenInput(TypedDict):
    """The source of an input of a run: `text` holds numbers or JSON, `file` is the id of an upload."""

    how: Literal["random", "zeros", "ones", "last", "text", "file"]
    text: NotRequired[str]
    file: NotRequired[str]


class RunResult(TypedDict):
    """The result of a run."""

    run: int
    seconds: float
    values: list[Statistics]


class ProfileTable(TypedDict):
    """The time of each node in the fastest of some runs, in columns; `provider` is a place in `providers`, or -1."""

    seconds: float
    runs: int
    nodes: list[int]
    ms: list[float]
    flops: list[WireInt]
    moved: Annotated[list[WireInt], "Bytes read and written."]
    least: Annotated[list[float], "Milliseconds that the machine needs at least, by its measured roofline."]
    arithmetic: Annotated[list[bool], "Whether that is for the arithmetic; else it is for the memory."]
    providers: list[str]
    provider: list[int]


class Pinned(TypedDict):
    """The values that are pinned."""

    pinned: list[int]


class FoundBox(TypedDict):
    """A box of a detector: left, top, right, bottom as shares of the image; class -1: none is told."""

    corners: list[WireNumber]
    score: WireNumber
    label: int


class FoundBoxes(TypedDict):
    """The boxes of a detector, the highest scores first."""

    image: Annotated[int, "The input that they lie on."]
    layout: Annotated[str, "The layout in which the numbers were read."]
    layouts: Annotated[list[str], "The other layouts in which they may be read."]
    count: Annotated[int, "All of them, sent or not."]
    boxes: list[FoundBox]


class Stopped(TypedDict):
    """Whether there was a run to stop."""

    stopped: bool


RUNS: Mapping[str, Method] = {
    "run": Method(
        {
            "nodes": optional(list[int], "a list of node ids, or null for all"),
            "seed": optional(int, "an integer from 0"),
            "inputs": optional(dict[str, GivenInput], "an object that says how each input is made"),
            "sizes": optional(dict[str, int], "an object of sizes by the names of dims"),
            "deadline": optional(int, "seconds, 0 for no end, or null for those of the view"),
        },
        RunResult, long=True,
    ),
    "stop": Method({"run": ID}, Stopped),
    "profile": Method({}, ProfileTable, "Runs the model node by node and colors the boxes by time.", long=True),
    "overlay": Method(
        {"by": optional(str, "the name of a measure, or null for none")}, Nothing, long=True
    ),
    "tensor": Method(
        {
            "value": ID, "rows": _AXIS, "columns": _AXIS, "at": optional(list[int], "a list of indices"),
            "top": _NUMBER, "left": _NUMBER, "height": _NUMBER, "width": _NUMBER, "pixels": _NUMBER,
            "picture": optional(str, "heat, image or spectrogram, or null for none"),
        },
        TensorPart, repeatable=True,
    ),
    "boxes": Method(
        {"value": ID, "item": _NUMBER, "layout": optional(str, "a layout, or null for the likeliest")},
        FoundBoxes, "Boxes in the output of a detector.", repeatable=True,
    ),
    "pin": Method({"value": ID, "on": FLAG}, Pinned, "A value stays what it was in the last run."),
}  # fmt: skip
