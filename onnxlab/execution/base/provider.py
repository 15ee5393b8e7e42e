"""Execution providers, in ONNX Runtime's words: they claim nodes and compile the parts they are given.

A provider in full:

    class Halver(Provider):
        name = "halver"

        def get_capability(self, view):
            return [SubgraphClaim((node.id,)) for node in view.nodes if node.op_type == "Halve"]

        def compile(self, part, view):
            return lambda context, *arrays: [array / 2 for array in arrays]

Nodes are assigned in the caller's order of preference, as maximal convex parts; the last provider takes whatever is
left. A compiled part is one callable (a `CompiledPart`, where it can do more than be called), or a list of steps that
the executor runs one by one, so that the values in between can be watched, kept and stopped at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.limits import Repeated
from onnxlab.shapes import UNKNOWN, Fact


@dataclass(frozen=True, slots=True)
class SubgraphClaim:
    """Nodes (ids) that a provider can take.

    With `whole`, all of them or none: they become one part, or stay with the providers that follow. Otherwise they
    may be split, and joined with others that the provider claims.
    """

    nodes: tuple[int, ...]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes assigned to a provider, in topological order, and the values that cross its border.

    `inputs` are values made outside, constants left out; `outputs` are those read outside or asked for.
    """

    provider: str
    nodes: tuple[NodeView, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPart:
    """A part as its provider runs it.

    Attributes:
        call: `call(context, *arrays in the order of part.inputs)` returns arrays in the order of part.outputs.
        quick: as `call` without a context; returns None where it has to be called with one.
        bind: `bind(*arrays)` returns a `quick` for arrays of these shapes alone, None where there is none.
        repeat: `repeat(context, repetition, most, *arrays)` runs it in a loop, `most` times if nothing ends it before,
            and returns what is Repeated; None where it has to be called for each iteration.
        places: `places(*arrays)` names the values inside that `look` can tell.
        look: `look(context, names, *arrays)` computes some of these, as a run computes them, and returns {name: array}.
        shares: `shares(context, *arrays)` times its steps: [(the nodes that run as one step, their part of its time)].
        state: what it runs by now, in words, and why it leaves something to others.
        own_threads: whether it needs no threads of BLAS.
        nodes: ids of its nodes.
        names: of all that they make.
    """

    call: Callable[..., Any]
    quick: Callable[..., Any] | None = None
    bind: Callable[..., Callable[..., Any] | None] | None = None
    repeat: Callable[..., Repeated | None] | None = None
    places: Callable[..., Collection[str]] | None = None
    look: Callable[..., Mapping[str, Any]] | None = None
    shares: Callable[..., Sequence[tuple[tuple[Any, ...], float]]] | None = None
    state: Callable[[], PartState] | None = None
    own_threads: bool = False
    nodes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartState:
    """The means by which a compiled part runs.

    Attributes:
        compiled: whether its own kernels answer; otherwise the last provider does in its place.
        compiling: whether they are being made.
        reason: why something is left to another provider, "" where nothing is.
        nbytes: what a run of it takes besides its inputs; None where that is not known.
    """

    compiled: bool
    compiling: bool = False
    reason: str = ""
    nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a run.

    Attributes:
        label: what to name in errors: the node's label, or the provider's for a part.
        op: operator for errors, as "Conv" or "com.microsoft::Attention".
        node: id of the node, 0 for a part of several.
        call: takes arrays by position (None for an absent input), returns an array or a sequence of arrays.
        inputs, outputs: names, "" where absent.
        captures: names of outer values that the node's bodies read; they reach the bodies, not the call.
        context: whether `call` takes a RunContext first.
        constants: the outputs themselves, of a step that needs no call.
        size: bytes of the outputs, from the inputs, where they may dwarf these; asked before the call.
        pure: whether equal inputs always make equal outputs, so that what constants make is made once.
        opsets: {domain: version} imported where the node stands.
        explain: `explain(inputs, fully=True)`, asked after a failure: which rule they break, "" where it cannot tell.
        into: as `call` with an array in front that may be overwritten, the input at one of the places `in_place`.
        shown: what people are shown of the inputs, where a run holds them in another type than the model says.
        part: what `call` belongs to, for a part of several nodes.
    """

    label: str
    op: str
    node: int
    call: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    captures: tuple[str, ...] = ()
    context: bool = False
    constants: tuple[Any, ...] | None = None
    size: Callable[..., int] | None = None
    pure: bool = False
    opsets: Mapping[str, int] = field(default_factory=dict)
    explain: Callable[..., str] | None = None
    shown: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None
    into: Callable[..., Any] | None = None
    in_place: tuple[int, ...] = ()
    part: CompiledPart | None = None


def part_step(part: Part, compiled: CompiledPart) -> Step:
    """The step that runs a part as a whole."""
    label = f"{part.provider} part from {part.nodes[0].label} to {part.nodes[-1].label}"
    names = tuple([name for node in part.nodes for name in node.outputs if name])
    compiled = replace(compiled, nodes=tuple([node.id for node in part.nodes]), names=names)
    return Step(label, part.provider, 0, compiled.call, part.inputs, part.outputs, context=True, part=compiled)


@dataclass(slots=True)
class PartitionView:
    """A scope as providers see it: the nodes that a run needs, and what is known about their values.

    Attributes:
        nodes: in topological order; a node's own bodies are its provider's business (`reads` tells what they capture).
        visible: names that must be readable afterwards: outputs asked for, and everything when values are kept.
        keep: whether values are kept: then a step may run again without those before it, after an edit.
        opsets: {domain: version} imported by the graph or function.
        constant: the array of an initializer that nothing overrides, None for any other name.
        fact: what inference knows of a name.
        stored: the initializers that are left in their file, which are no constants.
        reads: names that a node reads, captures of its bodies included.
        refusals: {node id: reason}; a provider says here why it leaves a node (see `refuse`).
        scope: the compiler's own knowledge of the scope, for providers that run bodies and functions.
        notes: what a provider, the key, remembers from its claims until it compiles.
        written: what the answers come from, where calls are written out (see `cached_partition`).
    """

    nodes: tuple[NodeView, ...]
    visible: frozenset[str]
    opsets: Mapping[str, int]
    constant: Callable[[str], Any]
    reads: Callable[[NodeView], tuple[str, ...]]
    fact: Callable[[str], Fact] = lambda name: UNKNOWN
    stored: Mapping[str, LazyTensor] = field(default_factory=dict)
    refusals: dict[int, str] = field(default_factory=dict)
    scope: Any = None
    keep: bool = False
    notes: dict[Any, Any] = field(default_factory=dict)
    written: Any = None

    def refuse(self, node: NodeView, reason: str) -> None:
        """Tell people why a node is not claimed."""
        self.refusals[node.id] = reason


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The declarations of a provider about itself.

    Attributes:
        inlines: it is shown the nodes of model-local functions in place of their calls.
        own_threads: it needs no threads of BLAS.
        background: it is not waited for: after a run that had to do without it, a background thread calls its
            `prepare`, and then has it claim and compile.
        trusted: its parts write to no array that they are given, and what they return need not be checked.
    """

    inlines: bool = False
    own_threads: bool = False
    background: bool = False
    trusted: bool = False


class Provider(ABC):
    """Something that can run nodes.

    Attributes:
        name: in plans and errors: "numpy", "onnxruntime".
        capabilities: what it declares; a provider may set its own.
    """

    name: str
    capabilities: Capabilities = Capabilities()

    @abstractmethod
    def get_capability(self, view: PartitionView) -> Sequence[SubgraphClaim]:
        """Says which nodes it can take. Called once per plan, for each graph, body and function."""

    @abstractmethod
    def compile(self, part: Part, view: PartitionView) -> CompiledPart | Callable[..., Any] | list[Step]:
        """Makes a part runnable. May raise: UnsupportedOperatorError for a node that nothing implements."""

    def prepare(self) -> None:  # noqa: B027
        """Load what claiming and compiling takes; called in the background, and often."""

    def still(self, view: PartitionView, nodes: Collection[NodeView]) -> bool:
        """Whether it would claim as before, where only these nodes, or the data that they read, are others.

        `view.notes` are those of its claims.
        """
        return False
