"""The memory of a run, node by node: bytes alive over the schedule, the peak, and what is alive there.

Sizes come from facts, with numbers for the symbols of the inputs. The schedule is that of the file. Temporary memory of
a kernel is not included, nor what an allocator rounds up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from onnxlab.analysis.memory.buffers import MemoryBuffer, Share, ValueSizes, plan
from onnxlab.analysis.memory.drawing import area, sparkline
from onnxlab.analysis.sizes import chosen_sizes, described, refusals
from onnxlab.argument_types import expect
from onnxlab.errors import Diagnostic, NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer import Inference
from onnxlab.infer.questions.memory import Liveness, nbytes
from onnxlab.infer.questions.what_if import inferred
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.limits import format_bytes
from onnxlab.ops import find_traits
from onnxlab.printable import printable_lines
from onnxlab.shapes import Expr, Fact
from onnxlab.shapes.arithmetic import sole_atom
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import suggestion

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class MemoryStep:
    """A node of the schedule.

    Attributes:
        node: its id.
        label: its name, or operator and position.
        alive: bytes alive while it runs.
        inside: of these, bytes that its bodies, or the function that it calls, hold.
    """

    node: int
    label: str
    alive: int
    inside: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that stays from one node to another.

    Attributes:
        values: names of the values in it; several where they share it.
        nbytes: its size.
        maker: label of the node that makes it, "" for an input of the model.
        last: label of the last node that needs it.
        first_step, last_step: positions of both in the schedule, -1 for an input.
    """

    values: tuple[str, ...]
    nbytes: int
    maker: str
    last: str
    first_step: int
    last_step: int

    def __str__(self) -> str:
        others = f" (and {len(self.values) - 1} that share it)" if len(self.values) > 1 else ""
        return f"{self.values[0]}{others}: {format_bytes(self.nbytes)}, {self.maker or 'input'} → {self.last}"


@dataclass(frozen=True, slots=True)
class MemoryTimeline(metaclass=ShortHelp):
    """Bytes alive over the schedule of a model.

    Attributes:
        dims: the size of each symbol.
        assumed: symbols among them for which a size was assumed.
        steps: the nodes in the order in which they run, each with the bytes alive.
        allocations: all memory that values take.
        weights: bytes of initializers and constants, which are not in the curve.
        inputs: bytes of the model's inputs, which are.
        open: names of values of unknown size: they count as 0 bytes.
        refused: what nodes cannot accept with these sizes.

    Examples:
        >>> model.memory(batch=8).peak
        51200
    """

    dims: Mapping[str, int]
    assumed: tuple[str, ...]
    steps: tuple[MemoryStep, ...] = field(repr=False)
    allocations: tuple[Allocation, ...] = field(repr=False)
    weights: int
    inputs: int
    open: tuple[str, ...]
    refused: tuple[Diagnostic, ...]

    @property
    def curve(self) -> tuple[int, ...]:
        """Bytes alive at each step.

        Examples:
            >>> model.memory(batch=1).curve[:2]
            (2304, 4352)
        """
        return tuple(step.alive for step in self.steps)

    @property
    def peak(self) -> int:
        """The most bytes alive at once.

        Examples:
            >>> model.memory(batch=1).peak
            6400
        """
        return max(self.curve, default=0)

    @property
    def peak_step(self) -> int:
        """The position of the first step at which the peak is reached.

        Examples:
            >>> memory = model.memory(batch=1)
            >>> memory.steps[memory.peak_step].label
            '/block1/bn1/BatchNormalization'
        """
        return self.curve.index(self.peak) if self.steps else 0

    def alive(self, step: int | str | None = None) -> list[Allocation]:
        """List what is alive while a node runs.

        Args:
            step: position in the schedule or label of a node; None: at the peak.

        Returns:
            list[Allocation]: the largest first.

        Raises:
            NameLookupError: the schedule has no such node.

        Examples:
            >>> print(model.memory(batch=1).alive()[0])
            stem/bn_out (and 1 that share it): 2.0 kB, /stem/bn/BatchNormalization → /block1/Add
        """
        position = self._position(step)
        alive = [
            allocation for allocation in self.allocations if allocation.first_step <= position <= allocation.last_step
        ]
        return sorted(alive, key=lambda allocation: -allocation.nbytes)

    def _position(self, step: int | str | None) -> int:
        if step is None:
            return self.peak_step
        if isinstance(step, str):
            labels = [entry.label for entry in self.steps]
            if step not in labels:
                raise NameLookupError(f"no node of the schedule is called {step!r}.{suggestion(step, labels)}")
            return labels.index(step)
        if not 0 <= step < len(self.steps):
            raise NameLookupError(f"there is no step {step}; the schedule has {len(self.steps)}, from 0 on")
        return step

    def __str__(self) -> str:
        """A headline, the curve in a line, and what is alive at the peak."""
        at = f" at {self.steps[self.peak_step].label}" if self.steps else ""
        peak = f"{'at least ' if self.open else ''}{format_bytes(self.peak)}{at}"
        lines = [
            f"{described(self.dims, self.assumed)}peak {peak}; "
            f"inputs {format_bytes(self.inputs)}, weights {format_bytes(self.weights)} besides",
            sparkline(self.curve),
        ]
        alive = self.alive() if self.steps else []
        lines += [f"  {allocation}" for allocation in alive[:_SHOWN]]
        if len(alive) > _SHOWN:
            rest = sum(allocation.nbytes for allocation in alive[_SHOWN:])
            lines.append(f"  … and {len(alive) - _SHOWN} more, {format_bytes(rest)}")
        if self.steps and (inside := self.steps[self.peak_step].inside):
            lines.append(f"  inside of {self.steps[self.peak_step].label}: {format_bytes(inside)}")
        if self.open:
            more = " …" if len(self.open) > _SHOWN else ""
            lines.append(f"  of unknown size, not counted: {', '.join(self.open[:_SHOWN])}{more}")
        return printable_lines([*lines, *(f"  {refusal}" for refusal in self.refused)])

    def to_svg(self) -> str:
        """Draw the curve.

        Returns:
            str: an SVG document.

        Examples:
            >>> model.memory(batch=1).to_svg()[:4]
            '<svg'
        """
        peak = self.peak_step
        label = f"{format_bytes(self.peak)} at {self.steps[peak].label}" if self.steps else "nothing runs"
        return area(self.curve, [step.label for step in self.steps], peak, label)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def as_dict(self) -> dict[str, Any]:
        """Give the timeline as JSON holds it.

        Returns:
            dict[str, Any]: sizes, steps, and what is alive at the peak.

        Examples:
            >>> model.memory(batch=1).as_dict()["peak"]
            6400
        """
        return {
            "schema": "onnxlab/memory/1",
            "dims": dict(self.dims),
            "assumed": list(self.assumed),
            "peak": self.peak,
            "peak_at": self.steps[self.peak_step].label if self.steps else "",
            "inputs": self.inputs,
            "weights": self.weights,
            "open": list(self.open),
            "steps": [{"node": step.label, "alive": step.alive, "inside": step.inside} for step in self.steps],
            "at_peak": [
                {
                    "values": list(allocation.values),
                    "nbytes": allocation.nbytes,
                    "maker": allocation.maker,
                    "last": allocation.last,
                }
                for allocation in (self.alive() if self.steps else ())
            ],
            "refused": [str(refusal) for refusal in self.refused],
        }

    def to_json(self) -> str:
        """Write the timeline as JSON.

        Returns:
            str: what `as_dict` gives.

        Examples:
            >>> model.memory(batch=1).to_json()[:30]
            '{"schema": "onnxlab/memory/1",'
        """
        return json.dumps(self.as_dict())


def timeline(
    graph: ModelGraph,
    inference: Inference,
    dims: Mapping[str, int],
    arrays: Mapping[str, Any],
    *,
    share: Share = "live",
    order: Sequence[int] = (),
) -> MemoryTimeline:
    """The memory of the main graph.

    Args:
        dims: sizes of symbols.
        arrays: arrays of inputs, which tell other sizes; the remaining ones are those of made-up inputs, with a batch
            of 1.
        share: how values share memory.
        order: ids of all nodes in an order in which they can run; default: that of the file.

    Raises:
        NameLookupError: no input has a symbol of a name that is given.
        ValueError: a size is not an int from 0 on, or there is no such way to share.
    """
    ways = get_args(Share)
    if expect(share, str, "share", f"one of {', '.join(ways)}") not in ways:
        raise ValueError(f"share is {share!r:.80}: expected one of {', '.join(ways)}")
    with graph.lock:
        policy = inference.policy
        sizes, assumed = chosen_sizes(graph, policy, dims, arrays)
        walker, frame = inferred(graph, policy, sizes)
        nodes = [graph.nodes[ident] for ident in order or graph.index.topological(graph.main)]
        measured = _Schedule(graph, Liveness(walker), frame, nodes, inference.fact).measure(share)
        return MemoryTimeline(sizes, assumed, *measured, refused=refusals(walker, frame))


class _Schedule:
    """The nodes of the main graph in an order, with the sizes of what they make."""

    def __init__(
        self,
        graph: ModelGraph,
        liveness: Liveness,
        frame: FactFrame,
        nodes: Sequence[NodeRecord],
        fact: Callable[[int], Fact],
    ) -> None:
        self._graph, self._liveness, self._frame, self._fact = graph, liveness, frame, fact
        constants = {node.id for node in nodes if liveness.is_constant(frame, node)}
        self._nodes = [node for node in nodes if node.id not in constants]
        stored = {vid for vid in graph.main.names.values() if graph.values[vid].initializer is not None}
        stored.update(vid for ident in constants for vid in graph.nodes[ident].outputs if vid)
        self._stored = frozenset(stored)
        self._open: dict[int, None] = {}
        self._told = self._shapes_told()

    def _shapes_told(self) -> set[int]:
        """Values whose shapes the model declares, or follow from those of inputs without computing elements."""
        graph, held = self._graph, self._stored
        known_values = {0, *held, *graph.main.inputs}
        known_values.update(vid for vid in graph.main.names.values() if graph.values[vid].info is not None)
        for node in self._nodes:
            source = find_traits(node.domain, node.op_type).shape
            needed = {"shapes": node.inputs, "sizes": node.inputs[:1]}.get(source)
            if held.issuperset(filter(None, node.inputs)):
                known_values.update(node.outputs)
            if needed is None or not known_values.issuperset(needed):
                continue
            if source == "shapes" or held.issuperset(filter(None, node.inputs[1:])):
                known_values.update(node.outputs)
        return known_values

    def _nbytes(self, vid: int) -> int:
        fact = self._frame.facts.get(vid)
        count = None if fact is None else nbytes(fact)
        if count is None:
            self._open[vid] = None
        return count or 0

    def _shape(self, vid: int) -> Any:
        """Element type and dims of a tensor, None where some are neither numbers nor names that the model declares.

        These are what ONNX Runtime compares before it knows sizes; it does no arithmetic with names.
        """
        fact = self._fact(vid)
        if (
            not fact.shape
            or vid not in self._told
            or not all(isinstance(dim, int) or _is_declared(dim) for dim in fact.shape)
        ):
            return None
        return fact.dtype, fact.shape

    def measure(self, share: Share) -> tuple[tuple[MemoryStep, ...], tuple[Allocation, ...], int, int, tuple[str, ...]]:
        """Steps, allocations, bytes of weights and of inputs, and names of values of unknown size."""
        graph = self._graph
        inputs = [vid for vid in graph.main.inputs if vid not in self._stored]
        weights = sum(self._nbytes(vid) for vid in self._stored)
        values = ValueSizes(
            self._nbytes, self._shape, self._last_reads(), inputs, frozenset(graph.main.outputs), self._stored
        )
        buffers = plan(self._nodes, values, share)
        change = [0] * (len(self._nodes) + 1)
        for buffer in buffers:
            change[max(buffer.first, 0)] += buffer.nbytes
            change[buffer.last + 1] -= buffer.nbytes
        steps, alive = [], 0
        for node, difference in zip(self._nodes, change, strict=False):
            alive += difference
            inner = self._liveness.inside(self._frame, node)
            self._open.update(dict.fromkeys(inner.unknown))
            steps.append(MemoryStep(node.id, graph.label(node), alive + inner.peak, inner.peak))
        allocations = tuple(self._allocation(buffer) for buffer in buffers if buffer.nbytes)
        names = tuple(graph.values[vid].name for vid in self._open)
        return tuple(steps), allocations, weights, sum(self._nbytes(vid) for vid in inputs), names

    def _last_reads(self) -> dict[int, int]:
        """By value, the position of its last reader, those in bodies included; outputs and inputs stay to the end."""
        graph, end = self._graph, len(self._nodes) - 1
        places = {node.id: position for position, node in enumerate(self._nodes)}
        last = dict.fromkeys((vid for vid in (*graph.main.outputs, *graph.main.inputs) if vid), end)
        for node in self._nodes:
            for vid in node.outputs:
                if vid and vid not in last:
                    readers = (
                        graph.index.owner_in(graph.nodes[use], graph.main.id) for use, _ in graph.values[vid].uses
                    )
                    last[vid] = max([places[node.id], *(places.get(reader, 0) for reader in readers)])
        return last

    def _allocation(self, buffer: MemoryBuffer) -> Allocation:
        label = self._graph.label
        names = tuple(self._graph.values[vid].name for vid in buffer.values)
        maker = label(self._nodes[buffer.first]) if buffer.first >= 0 else ""
        last = label(self._nodes[buffer.last]) if self._nodes else ""
        return Allocation(names, buffer.nbytes, maker, last, buffer.first, buffer.last)


def _is_declared(dim: Expr) -> bool:
    """Whether a dim is a single dim_param."""
    atom = sole_atom(dim)
    return atom is not None and not atom.function and atom.key == atom.name
