"""Watches of a model as the page lists, adds and removes them."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict

from onnxlab.notebook.protocol.schema import ID, TEXT, Method, optional

WatchState = Literal["holds", "fails", "unknown"]


class WatchInfo(TypedDict):
    """A watch and what came of it."""

    name: Annotated[str, 'Name of the value or node, "*" for every value.']
    text: str
    state: WatchState
    why: str
    values: Annotated[list[int], "The values that fail, or the subject where none does; not all of many."]


class WatchList(TypedDict):
    """All watches, in the order in which they were added."""

    watches: list[WatchInfo]
    refused: Annotated[list[str], "The watches of the model's file that cannot be read."]
    measures: Annotated[list[str], "The measures that an expression may ask for."]


WATCHING: Mapping[str, Method] = {
    "watches": Method({}, WatchList, repeatable=True),
    "watch": Method(
        {"value": optional(int, "a value id, or null for every value"), "text": TEXT}, WatchList,
        "Watches a value by an expression.",
    ),
    "unwatch": Method({"place": ID}, WatchList, "Forgets a watch by its place."),
}  # fmt: skip
