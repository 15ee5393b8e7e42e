"""Requests of a page with two models side by side, and their answers."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict

from onnxlab.notebook.protocol.records import TensorPart
from onnxlab.notebook.protocol.runs import GivenInput, Stopped
from onnxlab.notebook.protocol.schema import FLAG, ID, TEXT, Method, Nothing, WireNumber, optional

_NUMBER = optional(int, "a number from 0")
_AXIS = optional(int, "an axis from 0")

ChangeKind = Literal["added", "removed", "changed", "renamed", "moved"]


class ChangeInfo(TypedDict):
    """One difference: what happened to what, and the ids of nodes and values that it is about."""

    kind: ChangeKind
    subject: str
    name: str
    text: Annotated[str, "All of it."]
    field: str
    old: str
    new: str
    a_nodes: list[int]
    b_nodes: list[int]
    a_value: int
    b_value: int


class RegionInfo(TypedDict):
    """Nodes of the first model, and those of the second that stand for them."""

    a_nodes: list[int]
    b_nodes: list[int]
    text: str


class PairedColumns(TypedDict):
    """Ids of what is paired, in two columns of equal length."""

    a: list[int]
    b: list[int]


class SideColors(TypedDict):
    """Nodes that differ, and for each the place of its kind in `kinds`."""

    nodes: list[int]
    kinds: list[int]


class ErrorColumns(TypedDict):
    """Errors of values of the second side against the first, in the order in which the first side makes them."""

    a: list[int]
    b: Annotated[list[int], "0: recorded values."]
    relative: list[WireNumber]
    noise: Annotated[list[WireNumber], "The part that roundings explain."]
    local: Annotated[list[WireNumber], "Error of the node alone that makes the value; [] where it was not asked for."]
    sqnr: list[WireNumber]
    cosine: list[WireNumber]
    first: Annotated[list[list[int]], "Index of the first element that is off, [] for none."]
    problems: Annotated[list[str], 'The reasons why two values cannot be compared by element, "" where they can.']
    guilty: Annotated[list[int], "Places of those whose own node is off, the furthest first."]
    diverges: Annotated[int, "Place of the first that roundings do not explain, -1 for none."]


class PairInfo(TypedDict):
    """The shared state of the views of two models."""

    headline: str
    names: tuple[str, str]
    sides: Annotated[int, "1: the other side is recorded values."]
    nodes: PairedColumns
    values: PairedColumns
    scopes: PairedColumns
    changes: list[ChangeInfo]
    counts: Annotated[dict[str, int], "Number of all changes, by kind."]
    more: Annotated[int, "Changes that are not listed."]
    regions: list[RegionInfo]
    kinds: list[str]
    colors: tuple[SideColors, SideColors]
    errors: ErrorColumns | None
    stale: Annotated[bool, "A model was edited since the values were compared."]


class Counterpart(TypedDict):
    """A model that the view can be compared with."""

    id: str
    kind: Literal["state", "model", "file"]
    title: str
    about: str


class CounterpartList(TypedDict):
    """The models that the view can be compared with."""

    counterparts: list[Counterpart]


class PairedRow(TypedDict):
    """A part of two nodes: what it is in each, "" where one lacks it."""

    part: str
    a: str
    b: str
    differs: bool
    weights: Annotated[str, "The distance of the stored numbers."]


class PairedNodes(TypedDict):
    """Two nodes side by side."""

    rows: list[PairedRow]


PAIRS: Mapping[str, Method] = {
    "pair": Method(
        {"again": FLAG}, PairInfo, "The differences now; `again`: values are compared anew.",
        repeatable=True, long=True, recorded="",
    ),
    "paired_tensor": Method(
        {
            "value": ID, "of": TEXT, "rows": _AXIS, "columns": _AXIS,
            "at": optional(list[int], "a list of indices"), "top": _NUMBER, "left": _NUMBER, "height": _NUMBER,
            "width": _NUMBER, "pixels": _NUMBER,
        },
        TensorPart, 'A value of the first model that was compared: "a", "b", or their "difference".',
        repeatable=True, long=True,
    ),
    "paired_nodes": Method(
        {"a": optional(int, "the id of a node, or null"), "b": optional(int, "the id of a node, or null")},
        PairedNodes, "A node of each model, part by part.", repeatable=True, long=True,
    ),
    "compare_values": Method(
        {
            "local": FLAG, "seed": optional(int, "an integer from 0"),
            "inputs": optional(dict[str, GivenInput], "an object that says how each input is made"),
            "sizes": optional(dict[str, int], "an object of sizes by the names of dims"),
            "deadline": optional(int, "seconds, 0 for no end, or null for those of the view"),
        },
        PairInfo, "Runs both models on inputs of the first; `local`: each node on those of its partner too.", long=True,
    ),
    "stop_comparing": Method({}, Stopped, "Ends the runs of `compare_values`."),
    "counterparts": Method({}, CounterpartList, repeatable=True, long=True),
    "compare": Method(
        {"counterpart": optional(str, "the id of a counterpart"), "file": optional(str, "the id of a file")},
        Nothing, "Shows the view's model and another side by side, in the place of the view.", long=True,
    ),
}  # fmt: skip
