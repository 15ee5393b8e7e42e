"""Calibration: the ranges of the values that are to be stored in 8 bits, from runs on inputs as they come in use.

Values are measured as a run makes them, one at a time, so that memory stays that of a run, however many inputs come.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import numpy as np

from onnxlab import dtypes
from onnxlab.argument_types import expect
from onnxlab.errors import FeedError, TransformError
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import trial_limits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.ops import find_traits
from onnxlab.shapes import TensorFact

Array = np.ndarray[Any, Any]

RangeName = Literal["minmax", "percentile", "mse"]
"""Ways to choose a range: all numbers; all but one in ten thousand; the one that loses least by squares."""

ActivationType = Literal["uint8", "int8"]
"""Types of values: uint8 with a zero point, or int8 around zero."""

MOST_VERIFIED: Final = 4
"""Inputs of calibration on which the model is compared, where no others are given."""

_HALF: Final = 2048  # bins of a histogram on either side of zero
_LEAST: Final = -100  # exponent of the smallest range of a histogram
_TAIL: Final = 0.5e-4  # part of the elements that "percentile" cuts on either side
_LEVELS: Final = 255
_SHARES: Final = np.linspace(1.0, 0.2, 41)  # of the whole range, tried by "mse"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Ranges of values, and how numbers within them become integers.

    Attributes:
        ranges: (least, largest) number by the name of a value of the main graph; NaN where it had no finite range.
        activations: the type of values.
        reduce_range: whether weights are of 7 bits, for processors that add pairs of products in 16 bits.
        feeds: the first inputs, to compare outputs on.
    """

    ranges: Mapping[str, tuple[float, float]]
    activations: ActivationType = "uint8"
    reduce_range: bool = False
    feeds: tuple[Mapping[str, Any], ...] = ()


def calibrated(
    graph: ModelGraph, inference: Inference, feeds: Any, ranges: str, activations: str, reduce_range: bool
) -> Calibration:
    """Run a model on inputs and measure the values that int8 can hold.

    Args:
        graph: the model.
        inference: its facts.
        feeds: one {input: array}, or any number of them; they are read once, in turn.
        ranges: how a range is chosen, see RangeName.
        activations: the type of values.
        reduce_range: whether weights are of 7 bits.

    Raises:
        TransformError: a word is unknown, or there are no inputs.
        FeedError, RunError: the model does not run on an input.
    """
    for word, known, name in ((ranges, RangeName, "ranges"), (activations, ActivationType, "activations")):
        if word not in get_args(known):
            raise TransformError(f"{name} is {word!r}: expected one of {', '.join(get_args(known))}")
    reduce_range = expect(reduce_range, bool, "reduce_range", "True or False")
    with graph.lock:
        names = list(_names(graph, inference))
    measured, first = _measured(Runner(graph, inference.fact), names, _each(feeds), ranges != "minmax")
    pick = _PICKS[ranges]
    chosen = {name: pick(measure) for name, measure in measured.items()}
    return Calibration(chosen, activations, reduce_range, first)  # type: ignore[arg-type]


def _measured(
    runner: Runner, names: list[str], feeds: Iterator[Mapping[str, Any]], counted: bool
) -> tuple[dict[str, "_Measure"], tuple[Mapping[str, Any], ...]]:
    """Measures of some values over all runs, and the first few inputs."""
    measures, first = {name: _Measure(counted) for name in names}, list[Mapping[str, Any]]()
    ordered = [*measures.values()]
    for number, sample in enumerate(feeds):
        try:
            runner.hand(sample, names, lambda place, array: ordered[place].take(array), seed=0, limits=trial_limits(20))
        except FeedError as error:
            raise FeedError(f"input {number} of the calibration does not fit the model: {error}") from error
        if number < MOST_VERIFIED:
            first.append(sample)
    if not first:
        raise TransformError("calibrate has no inputs: give some, as they come in use, as {name: array}")
    return measures, tuple(first)


def _each(feeds: Any) -> Iterator[Mapping[str, Any]]:
    """The inputs, one by one. Raises TypeError for what is none."""
    several: Iterable[Any] = [feeds] if isinstance(feeds, Mapping) else feeds
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise TypeError(f"calibrate is {type(feeds).__name__}: expected {{input: array}}, or any number of them")
    for sample in several:
        yield expect(sample, Mapping, "an entry of calibrate", "{input: array}")


def _names(graph: ModelGraph, inference: Inference) -> Collection[str]:
    """The float32 values of the main graph that operators with integers read or make."""
    names = dict[str, None]()
    for ident in graph.main.order():
        node = graph.nodes[ident]
        if not find_traits(node.domain, node.op_type).int8:
            continue
        for vid in (*node.inputs, *node.outputs):
            value = graph.values[vid] if vid else None
            fact = inference.fact(vid) if vid else None
            if value is None or not isinstance(fact, TensorFact) or fact.elem_type != dtypes.FLOAT:
                continue
            if value.initializer is None or value.is_input:
                names[value.name] = None
    return names


@dataclass(slots=True)
class _Measure:
    """The least and the largest element of all arrays of a value, and how many lie between.

    The bins cover -2^exponent to 2^exponent: where a larger number comes, two bins become one, so that no array has
    to be kept or measured twice.
    """

    counted: bool
    low: float = math.inf
    high: float = -math.inf
    is_finite: bool = True
    zeros: int = 0
    exponent: int = _LEAST
    counts: Array = field(default_factory=lambda: np.zeros(2 * _HALF, np.int64))

    def take(self, array: Any) -> None:
        if not isinstance(array, np.ndarray) or not array.size or not self.is_finite:
            return
        low, high = float(array.min()), float(array.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            self.is_finite = False
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.counted:
            self._count(array.reshape(-1), max(abs(low), abs(high)))

    def _count(self, flat: Array, peak: float) -> None:
        while math.ldexp(1.0, self.exponent) < peak:
            pairs = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.zeros_like(self.counts)
            self.counts[_HALF // 2 : _HALF // 2 + _HALF] = pairs
            self.exponent += 1
        bins = np.floor(flat * np.float32(_HALF * math.ldexp(1.0, -self.exponent)))
        places = np.clip(bins.astype(np.int32) + _HALF, 0, 2 * _HALF - 1)
        self.counts += np.bincount(places, minlength=2 * _HALF)
        self.zeros += flat.size - int(np.count_nonzero(flat))

    @property
    def edges(self) -> Array:
        """The borders of the bins."""
        return np.arange(-_HALF, _HALF + 1) * (math.ldexp(1.0, self.exponent) / _HALF)


def _whole(measure: _Measure) -> tuple[float, float]:
    """All numbers; NaN where some were not finite; zeros where there were none."""
    if not measure.is_finite:
        return math.nan, math.nan
    return (measure.low, measure.high) if measure.low <= measure.high else (0.0, 0.0)


def _percentile(measure: _Measure) -> tuple[float, float]:
    """All numbers but the outermost ones on either side."""
    low, high = _whole(measure)
    total = int(measure.counts.sum())
    if not total:
        return low, high
    below, edges = np.cumsum(measure.counts), measure.edges
    first = int(np.searchsorted(below, _TAIL * total, side="right"))
    last = int(np.searchsorted(below, (1 - _TAIL) * total))
    return max(low, float(edges[first])), min(high, float(edges[min(last, 2 * _HALF - 1) + 1]))


def _least_squares(measure: _Measure) -> tuple[float, float]:
    """The range whose steps and cut ends lose least, by the sum of squares."""
    low, high = _whole(measure)
    if not measure.counts.any():
        return low, high
    low, high = min(low, 0.0), max(high, 0.0)  # zero is always in the range
    highs = high * _SHARES
    high = float(highs[np.argmin([_lost(measure, low, end) for end in highs])])
    lows = low * _SHARES
    return float(lows[np.argmin([_lost(measure, end, high) for end in lows])]), high


def _lost(measure: _Measure, low: float, high: float) -> float:
    """The squares of what rounding to levels of a range loses; zeros lose nothing."""
    edges = measure.edges
    centers = (edges[1:] + edges[:-1]) / 2
    beyond = centers - np.clip(centers, low, high)
    inside = int(measure.counts[beyond == 0].sum()) - measure.zeros
    step = (high - low) / _LEVELS
    return float(np.dot(measure.counts, beyond * beyond)) + max(inside, 0) * step * step / 12


_PICKS: Final[Mapping[str, Callable[[_Measure], tuple[float, float]]]] = {
    "minmax": _whole, "percentile": _percentile, "mse": _least_squares,
}  # fmt: skip
