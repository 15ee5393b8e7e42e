"""Requests of a page about rewriting: rules that apply, nodes that go and come, patterns; and applying rules."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from onnxlab.notebook.protocol.schema import FLAG, ID, IDS, TEXT, VERSION, Method, Parameter, WireInt, optional

_RULES = Parameter(list[str], "a list of rules")
_PROTECT = optional(list[str], "a list of names")


class RewritePlace(TypedDict):
    """A match of a rule, and its effect on nodes."""

    at: Annotated[int, "The node in whose place it is; 0: none."]
    label: str
    what: str
    going: Annotated[list[int], "Nodes that go."]
    coming: Annotated[list[str], "Operators of the nodes that come and stay."]


class RewriteInfo(TypedDict):
    """A rule or pass that applies somewhere."""

    rule: str
    key: Annotated[str, "Key by which it is applied alone."]
    doc: str
    count: int
    places: list[RewritePlace]
    by_place: Annotated[bool, "Whether it can be applied at one place alone."]


class Rewrites(TypedDict):
    """The effect of optimizing or quantizing; `nodes` and bytes of tensors before and after."""

    rules: list[RewriteInfo]
    nodes: tuple[int, int]
    bytes: tuple[WireInt, WireInt]
    staying: Annotated[list[str], "Nodes and weights that quantizing leaves as they are, and why."]


class RewriteGain(TypedDict):
    """The gain of a rule or pass alone: nodes and bytes less, and the verdict of running before and after."""

    key: str
    nodes: int
    bytes: WireInt
    peak: Annotated[WireInt, "Bytes alive at the peak of a run, by the shapes."]
    seconds: Annotated[dict[str, float], "Seconds of a run, by provider."]
    verdict: str


class RewriteGains(TypedDict):
    """The gain of each rule alone, the most nodes first."""

    gains: list[RewriteGain]


class NearMissInfo(TypedDict):
    """The result of a rule at a node; `why` is empty where it applies."""

    rule: str
    doc: str
    why: str
    progress: Annotated[float, "The part of its pattern that matched, from 0 to 1."]


class NearMisses(TypedDict):
    """Rules that apply at a node, or almost do, the nearest first."""

    rules: list[NearMissInfo]


class PatternText(TypedDict):
    """Nodes as a pattern."""

    pattern: str


class PatternPlaces(TypedDict):
    """The matches of a pattern: nodes, the outermost of each match first."""

    count: int
    places: list[list[int]]


class Rewritten(TypedDict):
    """The effect of a rewrite: matches that changed, what was taken back, and notes of the model that were lost."""

    version: int
    python: str
    applied: int
    nodes: tuple[int, int]
    bytes: tuple[WireInt, WireInt]
    verdict: Annotated[str, "The verdict of running the model before and after."]
    refused: list[str]
    unfit: Annotated[list[str], "Places that a rule matches and where its replacement cannot stand: why."]
    lost: list[str]


REWRITING: Mapping[str, Method] = {
    "rewrites": Method(
        {"level": TEXT, "rules": _RULES, "microsoft": FLAG, "protect": _PROTECT}, Rewrites,
        "The effect of optimizing to a level, of quantizing to a form, or of some rules: texts, or keys of rules.",
        repeatable=True, long=True,
    ),
    "gains": Method(
        {"level": TEXT, "microsoft": FLAG}, RewriteGains, "The gain of each rule of a level alone, measured by runs.",
        repeatable=True, long=True,
    ),
    "near_misses": Method({"node": ID}, NearMisses, repeatable=True),
    "pattern": Method(
        {"nodes": IDS, "numbers": FLAG}, PatternText,
        "Nodes as a pattern, with constants as they are (`numbers`) or as any constant.", repeatable=True,
    ),
    "pattern_places": Method({"pattern": TEXT}, PatternPlaces, repeatable=True),
    "rewrite": Method(
        {
            "level": TEXT, "rules": _RULES, "microsoft": FLAG, "version": VERSION,
            "at": optional(int, "a node, or null for all places"), "protect": _PROTECT,
            "at_most": optional(int, "thousandths of an output's largest element that quantizing may lose"),
        },
        Rewritten,
        "Optimizes, quantizes to a form, or applies rules alone; the model is run before and after.",
        long=True, edits=True,
    ),
}  # fmt: skip
