"""Execution providers, in ONNX Runtime's words: they claim nodes and compile the parts they are given.

A provider in full:

    class Halver(Provider):
        name = "halver"

        def get_capability(self, view):
            return [SubgraphClaim((node.id,)) for node in view.nodes if node.op_type == "Halve"]

        def compile(self, part, view):
            return lambda context, *arrays: [array / 2 for array in arrays]

Nodes are assigned in the caller's order of preference, as maximal convex parts; the last provider takes all nodes that
are left. A compiled part is one callable (a `CompiledPart`, where it can do more than be called), or, of a `trusted`
provider, a list of steps. The executor runs steps one by one, so that the values between them can be watched and kept,
and a run can stop there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnxlab.execution.base.background import paced
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.limits import Repeated
from onnxlab.shapes import UNKNOWN, Fact


@dataclass(frozen=True, slots=True)
class SubgraphClaim:
    """Nodes (ids) that a provider can take; they may be split, and joined with other nodes that the provider claims."""

    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes assigned to a provider, in topological order, and the values that cross its border.

    `inputs` are values made outside, without constants; `outputs` are values read outside, or asked for by the run.
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
        repeat: `repeat(context, repetition, most, *arrays)` runs the part in a loop, at most `most` times, and returns
            a Repeated; None where the part has to be called for each iteration.
        places: `places(*arrays)` names the values inside the part that `look` can compute.
        look: `look(context, names, *arrays)` computes some of these, as a run computes them, and returns {name: array}.
        shares: `shares(context, *arrays)` times the steps of the part: [(nodes that run as one step, share of time)].
        state: the means by which the part runs now, and why it leaves nodes to another provider.
        ready: `ready(arrays)` makes what a call of these takes, in the background; None stands for an unknown array.
        again: `again(part, view, names)` makes the part anew after an edit that changed no more than attributes of
            nodes and the initializers `names`; None where it has to be compiled. An untouched part keeps its `call`.
        own_threads: whether the part needs no threads of BLAS.
        nodes: ids of the nodes of the part.
        names: of all values that these nodes make.
    """

    call: Callable[..., Any]
    quick: Callable[..., Any] | None = None
    bind: Callable[..., Callable[..., Any] | None] | None = None
    repeat: Callable[..., Repeated | None] | None = None
    places: Callable[..., Collection[str]] | None = None
    look: Callable[..., Mapping[str, Any]] | None = None
    shares: Callable[..., Sequence[tuple[tuple[Any, ...], float]]] | None = None
    state: Callable[[], PartState] | None = None
    ready: Callable[[Sequence[Any]], None] | None = None
    again: Callable[[Part, PartitionView, Collection[str]], CompiledPart | None] | None = None
    own_threads: bool = False
    nodes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartState:
    """The means by which a compiled part runs.

    Attributes:
        compiled: whether the part runs by its own kernels; otherwise the last provider runs it.
        compiling: whether these kernels are being compiled.
        reason: why nodes are left to another provider, "" where none are.
        nbytes: memory that a run of the part takes besides its inputs; None where that is not known.
    """

    compiled: bool
    compiling: bool = False
    reason: str = ""
    nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a run.

    Attributes:
        label: name in errors: the node's label, or that of the provider for a part.
        op: operator for errors, as "Conv" or "com.microsoft::Attention".
        node: id of the node, 0 for a part of several.
        call: takes arrays by position (None for an absent input), returns an array or a sequence of arrays.
        inputs, outputs: names, "" where absent.
        captures: names of outer values that the node's bodies read; they reach the bodies, not the call.
        context: whether `call` takes a RunContext first.
        constants: the outputs themselves, of a step that needs no call.
        size: estimate of the bytes of the outputs from the inputs, where outputs may be far larger; asked before the
            call.
        pure: whether equal inputs always make equal outputs, so that a step with constant inputs runs once.
        opsets: {domain: version} imported where the node stands.
        explain: `explain(inputs, fully=True)`, asked after a failure: the rule that the inputs break, "" if unknown.
        into: as `call` with an array in front that may be overwritten, the input at one of the places `in_place`.
        shown: converts inputs for display, where a run holds them in another type than the model declares.
        part: the compiled part that `call` belongs to, for a part of several nodes.
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
        visible: names that must be readable afterwards: outputs asked for.
        opsets: {domain: version} imported by the graph or function.
        constant: the array of an initializer that nothing overrides, None for any other name.
        fact: what inference knows of a name.
        stored: the initializers that are left in their file; these are not constants.
        reads: names that a node reads, captures of its bodies included.
        refusals: {node id: reason} of nodes that a provider does not claim (see `refuse`).
        scope: the compiler's own knowledge of the scope, for providers that run bodies and functions.
        notes: {provider: what it remembers from `get_capability` until `compile`}.
        written: the source of the answers, where calls of functions are inlined (see `cached_partition`).
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
    notes: dict[Any, Any] = field(default_factory=dict)
    written: Any = None

    def constants(self, nodes: Iterable[NodeView]) -> dict[str, Any]:
        """Arrays of the initializers that nodes read."""
        names = dict.fromkeys(name for node in paced(nodes) for name in node.inputs if name)
        return {name: array for name in paced(names) if (array := self.constant(name)) is not None}

    def refuse(self, node: NodeView, reason: str) -> None:
        """Tell people why a node is not claimed."""
        self.refusals[node.id] = reason


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The declarations of a provider about itself.

    Attributes:
        inlines: the provider sees the nodes of model-local functions in place of their calls.
        own_threads: the provider needs no threads of BLAS.
        background: runs do not wait for the provider: after a first run without it, a background thread calls its
            `prepare`, `get_capability` and `compile`.
        trusted: the parts of the provider do not write to their inputs, and their outputs need no check.
    """

    inlines: bool = False
    own_threads: bool = False
    background: bool = False
    trusted: bool = False


class Provider(ABC):
    """Something that can run nodes.

    Attributes:
        name: in plans and errors: "numpy", "onnxruntime".
        capabilities: declarations about the provider; a provider may set its own.
    """

    name: str
    capabilities: Capabilities = Capabilities()

    @abstractmethod
    def get_capability(self, view: PartitionView) -> Sequence[SubgraphClaim]:
        """Claim the nodes that the provider can take. Called once per plan, for each graph, body and function."""

    @abstractmethod
    def compile(self, part: Part, view: PartitionView) -> CompiledPart | Callable[..., Any] | list[Step]:
        """Compile a part. May raise UnsupportedOperatorError for a node that nothing implements."""

    def prepare(self) -> None:  # noqa: B027
        """Load what claiming and compiling takes; called in the background, and often."""

    def still(self, view: PartitionView, nodes: Collection[NodeView]) -> bool:
        """Whether it would claim the same nodes as before, where only `nodes`, or the data that they read, changed.

        `view.notes` are those of its claims.
        """
        return False
