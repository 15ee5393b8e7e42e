"""The parts of a picture of the model: nodes, values, groups, scopes, problems, and the state of its history."""

from typing import Annotated, Literal, NotRequired, TypedDict

from onnxlab.notebook.protocol.schema import WireInt, WireNumber

GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER, FORMAL, CONTROL = 1, 2, 4, 8, 16
FLAGS = {
    "GRAPH_INPUT": GRAPH_INPUT, "GRAPH_OUTPUT": GRAPH_OUTPUT, "INITIALIZER": INITIALIZER, "FORMAL": FORMAL,
    "CONTROL": CONTROL,
}  # fmt: skip
"""Bits of a value's flags. An initializer that older files list as an input too is only an initializer."""

Severity = Literal["error", "warning", "info"]


class Diagnostic(TypedDict):
    """A problem pinned to a node or a value (id 0: to neither)."""

    severity: Severity
    code: str
    message: str
    node: int
    value: int
    expected: str
    found: str
    hint: str


class History(TypedDict):
    """The labels of the steps that undo and redo would take (null: none), and where in the history the model stands."""

    undo: str | None
    redo: str | None
    length: int
    position: int
    recoverable: NotRequired[
        Annotated[
            str | None,
            "Edits that were never saved and can be made again; null where there are none, or the model was edited.",
        ]
    ]


class NodeRecord(TypedDict):
    """A node as it is drawn."""

    id: int
    name: Annotated[str, '"" when the file gives the node no name.']
    op: Annotated[str, '"Conv", or "com.microsoft::Gelu" outside the default domain.']
    category: str
    group: Annotated[int, "Group id, 0 at the top of its scope."]
    scope: int
    inputs: Annotated[list[int], "Value id per slot, 0 where an optional input or output is absent."]
    outputs: list[int]


class ValueRecord(TypedDict):
    """A value as it is drawn."""

    id: int
    name: str
    label: Annotated[str, 'The inferred fact, short: "1×64×112×112"; "" when nothing is known.']
    flags: int
    scope: int
    dtype: NotRequired[Annotated[str, 'Element type, "float32"; "" where it is unknown.']]


class GroupRecord(TypedDict):
    """A group of nodes."""

    id: int
    parent: Annotated[int, "Group id, 0 at the top."]
    name: str
    kind: str
    scope: int
    about: NotRequired[
        Annotated[str, 'The kind in the words of the field, "residual block"; "" where its name says it.']
    ]
    units: NotRequired[Annotated[int, "Number of units that follow one another in a stage; else 0."]]


class ScopeRecord(TypedDict):
    """The main graph, a body or a function."""

    id: int
    kind: Literal["graph", "subgraph", "function"]
    owner: Annotated[int, "The node whose attribute holds this subgraph, 0 for the main graph and functions."]
    attribute: str
    name: str
    inputs: list[int]
    outputs: list[int]


class OverlayNumbers(TypedDict):
    """Numbers to color nodes by, two columns; none: the boxes have their own colors."""

    kinds: NotRequired[
        Annotated[list[str], "The texts for which the numbers stand where they are places in a list, not sizes."]
    ]
    title: str
    unit: str
    nodes: list[int]
    numbers: list[WireNumber]


class Sections(TypedDict):
    """[offset, length] in int32 units of the sections of a snapshot's buffer."""

    node_id: tuple[int, int]
    node_op: tuple[int, int]
    node_group: tuple[int, int]
    node_scope: tuple[int, int]
    in_ptr: tuple[int, int]
    in_val: tuple[int, int]
    out_ptr: tuple[int, int]
    out_val: tuple[int, int]
    value_id: tuple[int, int]
    value_flags: tuple[int, int]
    value_scope: tuple[int, int]
    value_label: NotRequired[
        Annotated[tuple[int, int], "The places of values in `labels`, which are distinct ones where this is there."]
    ]


class Snapshot(TypedDict):
    """The whole model as strings and one little-endian Int32 buffer; sections give [offset, length] in int32 units."""

    version: int
    seq: int
    title: str
    path: str | None
    dirty: bool
    ops: list[str]
    categories: list[str]
    n: int
    m: int
    names: list[str]
    value_names: list[str]
    coded: NotRequired[
        Annotated[
            bool,
            "Names leave out what they share with the one before: their first character, from 0 on, says how much.",
        ]
    ]
    labels: list[str]
    types: NotRequired[
        Annotated[list[str], "The element types that go with the labels: value_label is a place in both."]
    ]
    groups: list[GroupRecord]
    scopes: list[ScopeRecord]
    diagnostics: list[Diagnostic]
    history: History
    overlay: NotRequired[OverlayNumbers | None]
    pinned: NotRequired[Annotated[list[int], "Values that are pinned."]]
    opsets: NotRequired[Annotated[dict[str, int], "Opset version by domain."]]
    shown: NotRequired[Annotated[int, "The number of times that the view showed another model before."]]
    former: NotRequired[Annotated[str, 'The name of the one before, "" for none.']]
    sections: Sections


class TensorPreview(TypedDict):
    """The first elements of a tensor."""

    dtype: str
    shape: list[int]
    preview: str


class Endpoint(TypedDict):
    """A node at the other end of a wire."""

    id: int
    label: str
    op: str


class UseEndpoint(Endpoint):
    """A reader, and the slot that reads."""

    slot: int


class ProducerEndpoint(Endpoint):
    """The maker of a value, and the slot there."""

    slot: NotRequired[int]


class Histogram(TypedDict):
    """The numbers of elements in equal parts between two numbers."""

    counts: list[int]
    low: WireNumber
    high: WireNumber


class Statistics(TypedDict):
    """Statistics of the elements of a value."""

    id: int
    name: str
    dtype: str
    shape: list[int] | None
    count: int
    min: WireNumber | None
    max: WireNumber | None
    mean: WireNumber | None
    std: WireNumber | None
    nan: int
    inf: int
    zeros: int
    histogram: Histogram | None


class TensorPicture(TypedDict):
    """Bytes [height, width, channels]: 0 not a number, 1 and 2 infinities, 3 to 255 from low to high."""

    height: int
    width: int
    channels: int
    low: WireNumber
    high: WireNumber


class TensorPart(TypedDict):
    """A part of two axes of a tensor; axis -1: the tensor has none. The picture's bytes come as a buffer."""

    id: int
    source: Annotated[
        Literal["stored", "pinned", "run", "stale"],
        '"stale": of the last run, and the model was edited above it since.',
    ]
    dtype: str
    shape: list[int]
    rows: int
    columns: int
    at: list[int]
    image: Annotated[bool, "Whether it may be looked at as an image."]
    cells: list[list[WireNumber | WireInt | str]]
    picture: TensorPicture | None
