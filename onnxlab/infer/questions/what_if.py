"""Shapes and memory for given sizes of the symbols, without touching the model.

The graph is inferred again from its inputs with numbers for their symbols, in a frame of its own. This decides also
what a symbol leaves open (a branch, a broadcast, a count of iterations), and finds sizes that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from onnxlab.argument_types import expect, plain
from onnxlab.errors import Diagnostic, NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.questions.memory import Liveness, nbytes
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.walker import Walker
from onnxlab.limits import format_bytes
from onnxlab.printable import printable_lines
from onnxlab.shapes import Dim, Expr, Fact, map_dims, replace_symbols
from onnxlab.shapes.expressions import Atom, symbol_atoms

SHOWN = 8


@dataclass(frozen=True, slots=True)
class Sized:
    """The values of a model with numbers for its symbols. Names are those of the main graph.

    Attributes:
        dims: the sizes that were given, by symbol.
        facts: facts of every value of the main graph, by name.
        nbytes: bytes of each value, by name; None where its size is not known, or it is no dense tensor of numbers.
        weights: bytes of initializers and constants.
        total: bytes of all other values of known size together.
        peak: the most bytes of values, inputs included and weights apart, that live at once; see `memory.py`.
        peak_at: label of the node that runs at the peak, "" where there is none.
        largest: names of the values that take most, largest first, weights apart.
        open: names of values with a dim, or a rank, that these numbers do not decide.
        refused: the errors of nodes that cannot accept these sizes.
    """

    dims: Mapping[str, int]
    facts: Mapping[str, Fact] = field(repr=False)
    nbytes: Mapping[str, int | None] = field(repr=False)
    weights: int
    total: int
    peak: int
    peak_at: str
    largest: tuple[str, ...]
    open: tuple[str, ...]
    refused: tuple[Diagnostic, ...]

    @property
    def shapes(self) -> dict[str, tuple[Dim, ...] | None]:
        """By name, the dims of every value: ints but for the values in `open`; None for an unknown rank."""
        return {name: fact.shape for name, fact in self.facts.items()}

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.dims.items()) or "no sizes given"
        at = f" at {self.peak_at}" if self.peak_at else ""
        least = "at least " if self.open else ""
        lines = [
            f"{sizes}: values {least}{format_bytes(self.total)}, {least}{format_bytes(self.peak)} at once{at}; "
            f"weights {format_bytes(self.weights)}"
        ]
        lines += [f"  {name}: {self.facts[name]}, {format_bytes(self.nbytes[name] or 0)}" for name in self.largest]
        for name in self.open[:SHOWN]:
            lines.append(f"  not decided: {name} is {self.facts[name]}")
        if len(self.open) > SHOWN:
            lines.append(f"  … and {len(self.open) - SHOWN} more that are not decided")
        return printable_lines([*lines, *(f"  {refusal}" for refusal in self.refused)])


def with_dims(graph: ModelGraph, policy: Policy, dims: Mapping[str, int]) -> Sized:
    """Infer the main graph with numbers for the symbols of its inputs.

    Raises:
        NameLookupError: no input has a symbol of this name; the message lists those that there are.
        ValueError: a size is not an int from 0 on.
    """
    with graph.lock:
        return _sized(*inferred(graph, policy, dims), dims)


def inferred(graph: ModelGraph, policy: Policy, dims: Mapping[str, int]) -> tuple[Walker, FactFrame]:
    """Infer the main graph as `with_dims` does.

    Returns:
        tuple[Walker, Frame]: the walker of this inference, and the facts of all values.

    Raises:
        NameLookupError, ValueError: as `with_dims`.
    """
    with graph.lock:
        walker, frame = Walker(graph, policy), FactFrame()
        facts = _input_facts(walker)
        dims = _checked(dims, sorted({atom.name for fact in facts.values() for atom in _symbols(fact)}))

        def size(atom: Atom) -> Dim | None:
            return dims.get(atom.name)

        for vid, fact in facts.items():
            frame.set(vid, map_dims(fact, lambda dim: replace_symbols(dim, size)))
        walker.walk_scope(frame, graph.main)
        return walker, frame


def input_facts(graph: ModelGraph, policy: Policy) -> dict[int, Fact]:
    """The declared facts of the model's inputs, by value id, with the symbols to which `with_dims` gives sizes."""
    with graph.lock:
        return _input_facts(Walker(graph, policy))


def _input_facts(walker: Walker) -> dict[int, Fact]:
    graph = walker.graph
    return {vid: walker.sources.fact(graph.values[vid]) for vid in graph.main.inputs}


def _symbols(fact: Fact) -> Iterator[Atom]:
    for dim in fact.shape or ():
        yield from symbol_atoms(dim)


def sizes_of(dims: Mapping[str, int] | None, named: Mapping[str, int]) -> dict[str, int]:
    """Sizes of symbols that are given in a mapping or by name; raises TypeError where it is no mapping."""
    expect(dims, (Mapping, type(None)), "dims", "a mapping of symbols to sizes, as {'batch': 8}")
    return {**(dims or {}), **named}


def _checked(dims: Mapping[str, int], known: list[str]) -> dict[str, int]:
    sizes = {name: plain(size) for name, size in dims.items()}
    for name, size in sizes.items():
        if name not in known:
            symbols = f"they have {', '.join(known)}" if known else "all their dims are numbers"
            raise NameLookupError(f"no input of the model has a symbolic dim {name!r}; {symbols}")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError(f"{name}={size!r}: a dim is an int from 0 on")
    return sizes


def _sized(walker: Walker, frame: FactFrame, dims: Mapping[str, int]) -> Sized:
    graph, liveness = walker.graph, Liveness(walker)
    names = {vid: name for name, vid in graph.main.names.items() if vid in frame.facts}
    counts = {vid: nbytes(frame.facts[vid]) for vid in names}
    weights = {vid for vid in names if graph.values[vid].initializer is not None}
    for node in (graph.nodes[node] for node in graph.main.node_ids):
        if liveness.is_constant(frame, node):
            weights.update(node.outputs)
    values = {vid: count for vid, count in counts.items() if count and vid not in weights}
    memory = liveness.measure(frame, graph.main)
    frames = [frame, *(call.frame for call in walker.calls.alive(frame).values())]
    problems = [problem for frame_of_call in frames for problem in walker.diagnostics(frame_of_call)]
    return Sized(
        dict(dims),
        {name: frame.facts[vid] for vid, name in names.items()},
        {name: counts[vid] for vid, name in names.items()},
        sum(counts.get(vid) or 0 for vid in weights),
        sum(values.values()),
        memory.peak,
        graph.label(graph.nodes[memory.at]) if memory.at else "",
        tuple(names[vid] for vid in sorted(values, key=lambda vid: -values[vid])[:SHOWN]),
        tuple(name for vid, name in names.items() if is_open(frame.facts[vid])),
        tuple(problem for problem in problems if problem.severity == "error"),
    )


def is_open(fact: Fact) -> bool:
    """Whether a tensor has a dim that is no number; containers vary by nature, a value of unknown kind is open."""
    return fact.shape is None or any(isinstance(dim, Expr) for dim in fact.shape)
