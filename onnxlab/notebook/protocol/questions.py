"""Requests of a page about the model as it is, and their answers."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from onnxlab.notebook.protocol.records import (
    Diagnostic,
    Endpoint,
    ProducerEndpoint,
    Snapshot,
    Statistics,
    TensorPreview,
    UseEndpoint,
)
from onnxlab.notebook.protocol.schema import FLAG, ID, IDS, TEXT, Method, Nothing, WireInt, WireNumber, optional

_NODE = optional(int, "a node id, or null")
_VALUE = optional(int, "a value id, or null")


AttributeType = Literal[
    "int", "float", "string", "ints", "floats", "strings", "tensor", "tensors", "graph", "graphs", "sparse_tensor",
    "sparse_tensors", "type_proto", "type_protos", "undefined",
]  # fmt: skip
AttributeValue = WireNumber | WireInt | list[WireNumber | WireInt | str] | TensorPreview | None


class Hello(TypedDict):
    """The version and the abilities of the kernel."""

    protocol: int
    session: str
    can: dict[str, bool]
    probe: NotRequired[Any]
    version: NotRequired[Annotated[int, "The model's version, so that a page that lost the last event learns of it."]]


class AttributeInfo(TypedDict):
    """An attribute of a node, or one that its operator has."""

    name: str
    type: AttributeType
    value: AttributeValue
    set: Annotated[bool, "False: the node does not carry the attribute and the schema's default holds."]
    required: bool
    default: AttributeValue
    doc: str
    choices: list[str] | None
    editable: bool
    reference: Annotated[
        str | None, "Inside a function: the name of the function's attribute that this one takes its value from."
    ]


class InputInfo(TypedDict):
    """An input of a node: its slot and value."""

    slot: int
    formal: str
    value: int
    name: str
    label: str
    initializer: bool
    producer: Endpoint | None


class OutputInfo(TypedDict):
    """An output of a node: its slot and value."""

    slot: int
    formal: str
    value: int
    name: str
    label: str
    uses: list[UseEndpoint]


class BodyInfo(TypedDict):
    """A body of a node."""

    attribute: str
    scope: int


class NodeInfo(TypedDict):
    """All about a node."""

    id: int
    name: str
    label: str
    op_type: str
    domain: str
    since_version: int | None
    path: str
    summary: str
    attributes: list[AttributeInfo]
    inputs: list[InputInfo]
    outputs: list[OutputInfo]
    bodies: list[BodyInfo]
    metadata: dict[str, str]
    doc_string: str
    notes: dict[str, str]
    diagnostics: list[Diagnostic]


class Documentation(TypedDict):
    """The documentation of an operator."""

    title: str
    text: str
    since_version: int | None
    deprecated: bool


class ValueInfo(TypedDict):
    """All about a value."""

    id: int
    name: str
    label: str
    kind: str
    producer: ProducerEndpoint | None
    uses: list[UseEndpoint]
    notes: dict[str, str]
    initializer: TensorPreview | None
    statistics: Statistics | None


class ExplanationStep(TypedDict):
    """One value on the way; `node` makes it (0: none), `passes` where it only takes the dim over."""

    value: int
    node: int
    name: str
    what: str
    how: str
    lost: str
    edits: list[str]
    passes: bool


class Explanation(TypedDict):
    """The reason for a dim: `steps` lead from the value back; `lost` is the one that lost it first, -1 for none."""

    name: str
    fact: str
    text: str
    steps: list[ExplanationStep]
    lost: int


class About(TypedDict):
    """Notes of a node, a value or the model on itself."""

    doc_string: str
    metadata: dict[str, str]
    graph_doc_string: NotRequired[Annotated[str, "Documentation of the graph; of the model only."]]
    fields: NotRequired[dict[str, str | int]]


class FormatInfo(TypedDict):
    """The statements of the format of the file on the whole model."""

    title: str
    uninferred: Annotated[str, 'The reason why nothing is inferred, "" where it is.']
    pairs: dict[str, str]
    columns: list[str]
    rows: list[list[str]]
    more: Annotated[int, "Rows that are not listed."]


class WeightPreview(TypedDict):
    """The effect of applying a file of weights; of each list the first, and the number of the others."""

    replaced: int
    missing: Annotated[list[str], "Initializers that the file does not have."]
    extra: Annotated[list[str], "Tensors of the file that the model does not have."]
    misfits: Annotated[list[str], "Initializers that have another shape or type in the file, and which."]
    more: tuple[int, int, int]


class OfferedValue(TypedDict):
    """An input or output of a model that may be inserted, and its type."""

    name: str
    label: str


class FileOffer(TypedDict):
    """The kind of a file that was sent, and the ways to use it."""

    title: Annotated[str, 'Title of its format, "" where that is not known.']
    nodes: int
    initializers: int
    inputs: list[OfferedValue]
    outputs: list[OfferedValue]
    refused: Annotated[str, 'The reason why it does not open as a model, "" where it does.']
    note: Annotated[str, "The missing parts of it."]
    arrays: Annotated[int, "Arrays that an input or an initializer may take one of."]
    weights: WeightPreview | None
    torch: Annotated[str, 'The cell in which torch converts it, since that runs what is in it; "" for most.']


class Elements(TypedDict):
    """All elements of a small tensor."""

    dtype: str
    shape: list[int]
    numbers: Annotated[list[WireNumber | str | bool], "In row-major order."]


class OperatorInfo(TypedDict):
    """An operator that a node may be."""

    op: Annotated[str, '"Conv", or "com.microsoft::Gelu" outside the default domain.']
    summary: str
    inputs: Annotated[tuple[int, int], "Least and largest number of inputs."]
    category: str


class Operators(TypedDict):
    """Operators that the model's opsets have."""

    operators: list[OperatorInfo]


class Targets(TypedDict):
    """The places to which a value may be wired, by node id: free input slots, or the reason against it."""

    allowed: dict[str, list[int]]
    refused: dict[str, str]


class AttributeNames(TypedDict):
    """Names of attributes, the most frequent first, and how many nodes set each."""

    names: list[str]
    counts: list[int]


class AttributeColumn(TypedDict):
    """The distinct texts of an attribute, and for each node that has it, or its default, the place of its text."""

    texts: list[str]
    nodes: list[int]
    places: list[int]


class CutPreview(TypedDict):
    """The effect of a cut: ids of nodes, names of values; `siblings` are ids of corresponding values."""

    nodes: list[int]
    kept: Annotated[int, "Nodes of a part that is cut out."]
    stored: Annotated[int, "Initializers of a part that is cut out."]
    outputs: list[str]
    inputs: list[str]
    lost_outputs: list[str]
    lost_inputs: list[str]
    siblings: list[int]


class Copies(TypedDict):
    """Nodes in other places, copy by copy."""

    copies: list[list[int]]


class Costs(TypedDict):
    """Floating-point operations by node, two columns; dims of unknown size count one."""

    nodes: list[int]
    flops: list[WireInt]


class Blocks(TypedDict):
    """Ids of groups that are equal, class by class."""

    blocks: list[list[int]]


class FeatureUse(TypedDict):
    """The number of tests of a feature by trees, and their least and largest threshold."""

    feature: int
    splits: int
    low: WireNumber
    high: WireNumber


class TreesInfo(TypedDict):
    """An ensemble of trees."""

    count: int
    splits: int
    leaves: int
    depth: Annotated[list[int], "Depth of the lowest and of the highest tree."]
    features: Annotated[list[FeatureUse], "The most used first."]
    more: Annotated[int, "Features that are not listed."]
    tree: int
    text: Annotated[str, "The tree, a line for each split and leaf."]


class AliveInfo(TypedDict):
    """Memory that is held, and the values that share it."""

    values: list[int]
    nbytes: WireInt


class MemoryCurve(TypedDict):
    """Bytes alive while nodes run, in columns, each the most of one or several steps; nothing was run for it."""

    dims: dict[str, int]
    assumed: Annotated[list[str], "Dims whose size was not given."]
    steps: Annotated[int, "Nodes that run."]
    nodes: Annotated[list[int], "The node of each column."]
    alive: list[WireInt]
    peak: WireInt
    peak_node: int
    weights: WireInt
    inputs: WireInt
    at_peak: list[AliveInfo]
    more: Annotated[int, "The number of values that are alive at the peak and not listed."]
    values: Annotated[list[int], "Inputs and outputs."]
    labels: Annotated[list[str], "Their shapes with these sizes."]
    open: Annotated[int, "Values of unknown size, which are not counted."]
    refused: Annotated[list[str], "The refusals of nodes with these sizes."]


QUESTIONS: Mapping[str, Method] = {
    "hello": Method({}, Hello, repeatable=True, recorded=""),
    "probe": Method({"ok": FLAG}, Nothing, "Whether binary buffers arrive.", repeatable=True),
    "snapshot": Method({}, Snapshot, repeatable=True, recorded=""),
    "inspect": Method({"node": ID}, NodeInfo, repeatable=True, recorded="node"),
    "doc": Method({"node": ID}, Documentation, repeatable=True, recorded="node"),
    "value": Method({"value": ID}, ValueInfo, repeatable=True, recorded="value"),
    "explain": Method(
        {"value": ID, "axis": optional(int, "an axis from 0, or null for all")}, Explanation, repeatable=True
    ),
    "about": Method(
        {"node": _NODE, "value": _VALUE}, About,
        "The notes of a node, a value, or without either the model on itself.", repeatable=True, recorded="",
    ),
    "file": Method({"file": TEXT}, FileOffer, "The kind of a file that was sent.", repeatable=True),
    "format": Method({}, FormatInfo, repeatable=True, recorded=""),
    "check": Method({}, Nothing, "Problems by ONNX's rules, which come as an event.", repeatable=True, long=True),
    "elements": Method(
        {"node": _NODE, "name": optional(str, "the name of an attribute"), "value": _VALUE}, Elements,
        "All elements of a small tensor: of an initializer, or of a node's attribute.", repeatable=True,
    ),
    "operators": Method(
        {"value": _VALUE}, Operators, "All operators, or those whose first input may read a value.", repeatable=True
    ),
    "operator_doc": Method({"op": TEXT}, Documentation, repeatable=True),
    "targets": Method({"value": ID, "nodes": IDS}, Targets, repeatable=True),
    "attribute_names": Method({}, AttributeNames, repeatable=True, recorded=""),
    "attribute_column": Method({"name": TEXT}, AttributeColumn, repeatable=True, recorded="name"),
    "cut_preview": Method(
        {"outputs": IDS, "inputs": IDS, "part": IDS, "siblings": FLAG, "behind": FLAG}, CutPreview,
        "The effect of ending the model at values, of starting it at others, or of cutting nodes out.", repeatable=True,
    ),
    "copies": Method(
        {"nodes": IDS}, Copies, "The corresponding nodes in every copy of the block.", repeatable=True
    ),
    "trees": Method({"node": ID, "tree": optional(int, "a number from 0")}, TreesInfo, repeatable=True),
    "memory": Method(
        {"sizes": optional(dict[str, int], "an object of sizes by the names of dims")}, MemoryCurve,
        "The memory of a run for sizes of dims.", repeatable=True, long=True,
    ),
    "costs": Method({}, Costs, repeatable=True, recorded=""),
    "blocks": Method({}, Blocks, repeatable=True, recorded=""),
}  # fmt: skip
