"""Look for values that went wrong: the first NaN or infinity, numbers beyond float16, dead channels, saturation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onnxlab.analysis.compare.sides import RunSide, made_values
from onnxlab.ops import find_traits
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp

Kind = Literal["nan", "infinite", "beyond float16", "dead", "saturated"]

_LARGEST_HALF = 65504.0
_SATURATED = 0.5
"""Share of elements at an end of the range from which on a value counts as saturated."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of one value.

    Attributes:
        kind: kind of the fault.
        value, node: names of the value and of what makes it.
        count: number of elements with the fault, or of dead channels.
        total: number of elements or channels in all.
        first: index of the first such element, or the first dead channel.
        begins: whether no input of the node has the fault.
        channels: the first 32 dead channels.
    """

    kind: Kind
    value: str
    node: str
    count: int
    total: int
    first: tuple[int, ...]
    begins: bool = False
    channels: tuple[int, ...] = ()

    def __str__(self) -> str:
        unit = "channels" if self.kind == "dead" else "elements"
        begins = ", begins here" if self.begins else ""
        where = (
            f", channels {', '.join(map(str, self.channels))}" if self.channels else f", first at {list(self.first)}"
        )
        return f"{self.value} ({self.node}): {self.count:,} of {self.total:,} {unit} {self.kind}{where}{begins}"


@dataclass(frozen=True, slots=True)
class Hunt(metaclass=ShortHelp):
    """All findings of a run, in the order in which values are made. True where there are any."""

    findings: tuple[Finding, ...]
    values: int

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def first(self, kind: Kind | None = None) -> Finding | None:
        """Find the place where a fault begins.

        Args:
            kind: kind of the fault; None: any.

        Returns:
            Finding | None: the first one in the order in which values are made.

        Examples:
            >>> model.hunt().first("nan") is None
            True
        """
        return next((finding for finding in self.findings if kind in (None, finding.kind)), None)

    def __str__(self) -> str:
        if not self.findings:
            return f"nothing found in {self.values:,} values"
        return printable_lines([f"{len(self.findings):,} findings in {self.values:,} values", *map(str, self.findings)])


def hunt(side: RunSide, feeds: Mapping[str, Any]) -> Hunt:
    """Run once with every value of the main graph and look at each."""
    graph = side.graph
    order = list(made_values(graph))
    arrays = side.values(feeds, [graph.values[vid].name for vid in order])
    known = {**feeds, **arrays}
    findings: list[Finding] = []
    seen: dict[str, set[str]] = {"nan": _with(feeds, np.isnan), "infinite": _with(feeds, np.isinf)}
    for vid in order:
        name = graph.values[vid].name
        array = known.get(name)
        if not isinstance(array, np.ndarray) or not array.size or not _is_real(array):
            continue
        producer = graph.values[vid].producer
        node = graph.nodes[producer[0]] if producer else None
        label = graph.label(node) if node else ""
        reads = {graph.values[read].name for read in node.inputs if read} if node else set()
        for kind, bad in _bad_elements(array, find_traits(node.domain, node.op_type).saturates if node else None):
            begins = kind in seen and not reads & seen[kind]
            findings.append(_finding(kind, name, label, bad, begins))
            seen.setdefault(kind, set()).add(name)
        if (dead := _dead_channels(array)) is not None:
            at = np.flatnonzero(dead)
            channels = tuple(int(channel) for channel in at[:32])
            findings.append(Finding("dead", name, label, len(at), len(dead), (channels[0],), channels=channels))
    return Hunt(tuple(findings), len(order))


def _is_real(array: Any) -> bool:
    return array.dtype.kind == "f" or str(array.dtype) == "bfloat16"


def _with(feeds: Mapping[str, Any], test: Any) -> set[str]:
    return {
        name for name, array in feeds.items()
        if isinstance(array, np.ndarray) and _is_real(array) and bool(test(array.astype(np.float64)).any())
    }  # fmt: skip


def _bad_elements(array: Any, ends: tuple[float, float] | None) -> Iterator[tuple[Kind, Any]]:
    """(kind, which elements) of what is wrong with an array, whose elements saturate at these ends."""
    wide = array.astype(np.float64)
    sizes = np.abs(wide)
    finite = np.isfinite(wide)
    masks: list[tuple[Kind, Any]] = [("nan", np.isnan(wide)), ("infinite", np.isinf(wide))]
    if array.dtype.itemsize > 2:
        masks.append(("beyond float16", finite & (sizes > _LARGEST_HALF)))
    if ends is not None:
        low, high = ends
        at_ends = (wide <= low + 1e-6) | (wide >= high - 1e-6)
        if float(at_ends.mean()) >= _SATURATED:
            masks.append(("saturated", at_ends))
    yield from ((kind, bad) for kind, bad in masks if bad.any())


def _finding(kind: Kind, value: str, node: str, bad: Any, begins: bool) -> Finding:
    at = np.unravel_index(int(np.argmax(bad.reshape(-1))), bad.shape)
    return Finding(kind, value, node, int(bad.sum()), bad.size, tuple(int(position) for position in at), begins)


def _dead_channels(array: Any) -> Any:
    """The channels of an image, axis 1, that are zero throughout; None where none is, or all are."""
    if array.ndim < 3 or array.shape[1] < 2:
        return None
    axes = tuple(axis for axis in range(array.ndim) if axis != 1)
    dead = ~np.asarray(array).astype(bool).any(axis=axes)
    return dead if dead.any() and not dead.all() else None
