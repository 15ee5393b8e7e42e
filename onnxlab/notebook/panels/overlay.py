"""Numbers of nodes that a view colors its boxes by: what Python gives, or what was measured of the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onnxlab.analysis.computable_values import keep_computable
from onnxlab.analysis.profile import profile
from onnxlab.analysis.statistics import Statistics, statistics
from onnxlab.graph.protos import glow_dialect
from onnxlab.limits import Limits
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, number

if TYPE_CHECKING:
    from onnxlab.model import Model

Numbers = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Overlay:
    """Numbers by node id, of which those from 0 are shown, with their title and unit.

    Attributes:
        kinds: names of kinds, where each number is a place in this list.
    """

    title: str
    unit: str
    numbers: Numbers
    kinds: tuple[str, ...] = ()

    def on_wire(self) -> JSON:
        """The overlay in the page's form."""
        values = [number(float(value)) for value in self.numbers.values()]
        payload: JSON = {"title": self.title, "unit": self.unit, "nodes": list(self.numbers), "numbers": values}
        return {**payload, "kinds": list(self.kinds)} if self.kinds else payload


Measure = Callable[["Model", Mapping[int, Statistics], Limits | None], Overlay]


def measured(model: "Model", by: str, summaries: Mapping[int, Statistics], limits: Limits | None = None) -> Overlay:
    """The overlay of one of MEASURES.

    Args:
        summaries: statistics of the values of the last run, by value id.
        limits: limits of runs of the model.

    Raises:
        ProtocolError: there is no such measure, or nothing was run yet for `range`.
        RunError: a run of the model, for `time`, `memory` and `flops`, failed.
    """
    if by not in MEASURES:
        raise ProtocolError("malformed", f"overlay: there is nothing like {by!r}; there are {', '.join(MEASURES)}")
    return MEASURES[by](model, summaries, limits)


def _profiled(title: str, unit: str, field: str) -> Measure:
    def measure(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
        numbers: dict[int, float] = {}
        for entry in profile(model.runner, runs=1, limits=limits).entries:
            numbers[entry.node] = numbers.get(entry.node, 0.0) + float(getattr(entry, field))
        return Overlay(title, unit, numbers)

    return measure


def _parameters(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
    values = model.graph.values
    numbers: dict[int, float] = {}
    for ident, node in model.graph.nodes.items():
        shapes = [model.fact(value).shape for value in node.inputs if value and values[value].initializer is not None]
        total = 0
        for shape in shapes:
            size = 1
            for dim in shape or ():
                size *= dim if isinstance(dim, int) else 1
            total += size
        if total:
            numbers[ident] = float(total)
    return Overlay("parameters", "", numbers)


def _range(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
    """The largest magnitude among each node's results in the last run; results that were not kept are computed.

    The title says how many cannot be computed since a node fails.
    """
    store = model.runner.store
    if not store.in_use:
        raise ProtocolError("nothing", "The model was not run yet, so no inputs are known.", "Run it once.")
    failed = keep_computable(model.runner, limits)
    state, numbers = store.current(), dict[int, float]()
    for ident, array in state.arrays.items():
        record = model.graph.values.get(ident)
        if record is None or not record.producer or not state.fresh(ident) or not isinstance(array, np.ndarray):
            continue
        summary = summaries.get(ident) or statistics(array)
        ends = [abs(float(end)) for end in (summary.minimum, summary.maximum) if end is not None]
        if ends:
            maker = record.producer[0]
            numbers[maker] = max(numbers.get(maker, 0.0), *ends)
    return Overlay(f"largest magnitude ({len(failed)} failed)" if failed else "largest magnitude", "", numbers)


def _provider(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
    """The provider that ran each node last, and whether it is compiled by now; before a run, the one that would."""
    nodes = model.graph.nodes
    kinds = {
        node: f"{part.provider}, {part.state}" if part.state else part.provider
        for part in model.compiled.parts
        for node in part.nodes
        if node in nodes
    }
    kinds = kinds or {node.id: part.provider for part in model.partition().parts for node in part.nodes}
    names = list(dict.fromkeys(kinds.values()))
    kernels = model.compiled.kernels
    title = f"provider ({kernels})" if kernels.under_way else "provider"
    return Overlay(title, "", {node: float(names.index(kind)) for node, kind in kinds.items()}, tuple(names))


def _partition(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
    """The partition of each node: those that Glow's metadata lists come first, then others that nodes name."""
    inside = {node.id: name for node in model.graph.nodes.values() if (name := glow_dialect.partition_of(node.proto))}
    if not inside:
        raise ProtocolError("nothing", "No node of this model says which partition it is in.", "Glow's dialect does.")
    listed = [part.name for part in glow_dialect.partitions(model.metadata)]
    names = list(dict.fromkeys([*listed, *inside.values()]))
    return Overlay("partition", "", {node: float(names.index(name)) for node, name in inside.items()}, tuple(names))


def _least(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
    """The least time of each node, computed from facts without a run."""
    works = model.cost().nodes
    return Overlay("least time by the roofline", "s", {work.node: work.least for work in works})


def _bound(model: "Model", summaries: Mapping[int, Statistics], limits: Limits | None) -> Overlay:
    kinds = ("arithmetic", "memory")
    bounds = {work.node: work.bound for work in model.cost().nodes if work.bound in kinds}
    return Overlay("waits for", "", {node: float(kinds.index(bound)) for node, bound in bounds.items()}, kinds)


MEASURES: Mapping[str, Measure] = {
    "time": _profiled("time", "s", "seconds"),
    "memory": _profiled("bytes written", "B", "written"),
    "flops": _profiled("floating-point operations", "FLOP", "flops"),
    "least": _least,
    "bound": _bound,
    "parameters": _parameters,
    "range": _range,
    "provider": _provider,
    "partition": _partition,
}
