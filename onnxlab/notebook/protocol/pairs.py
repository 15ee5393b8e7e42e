"""Requests of a page with two models side by side, and their answers."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict

from onnxlab.notebook.protocol.records import TensorPart
from onnxlab.notebook.protocol.schema import FLAG, ID, TEXT, Method, WireNumber, optional

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
}  # fmt: skip
