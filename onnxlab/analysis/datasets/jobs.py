"""Jobs over samples: what is run for each, and what is counted. A job is sent to workers, a part comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from onnxlab.analysis.compare.sides import whose
from onnxlab.analysis.datasets.metrics import Metric, measured
from onnxlab.analysis.datasets.part import SampleCounts
from onnxlab.analysis.datasets.samples import label_of, sample_of
from onnxlab.analysis.datasets.sessions import Payload, SampleRunner, session
from onnxlab.analysis.datasets.tally import SampleTally, Tally, numbers_of
from onnxlab.errors import FeedError, LoadError, RunError, RunStopped, UnsupportedOperatorError
from onnxlab.execution.program.run_observers import Take

Models = Mapping[str, Payload]

_OF_THE_SAMPLE = (LoadError, FeedError, RunError, OSError, ValueError, TypeError, ArithmeticError, MemoryError)


class Job(Protocol):
    """A task over samples."""

    @property
    def digest(self) -> str:
        """Names the job and its models, to tell whether a checkpoint is of it."""

    def start(self) -> SampleCounts:
        """A part of no samples."""

    def count(
        self,
        part: SampleCounts,
        sessions: Sequence[SampleRunner],
        feeds: dict[str, Any],
        target: Any,
        index: int,
        whole: bool,
    ) -> None:
        """Run one sample and count it.

        Args:
            whole: count the sample only after it ran to the end, so that the part is unchanged where this raises.

        Raises:
            HalfCountedError: some values of the sample were counted, and others cannot be computed.
        """

    def sessions(self, models: Models) -> list[SampleRunner]:
        """The models of the job in this process."""


class HalfCountedError(Exception):
    """A sample of which some values are counted cannot be run to the end."""


def run_chunk(job: Job, models: Models, items: Iterable[Any]) -> SampleCounts:
    """Count some samples in a row. A sample that cannot be used is noted, and the next one is taken.

    Values are counted as they are computed. Where a sample fails halfway, the whole chunk is counted once more, each
    sample only after all of its values were computed: the numbers are the same.

    Raises:
        UnsupportedOperatorError: the model cannot run at all.
    """
    sessions, samples = job.sessions(models), list(items)
    try:
        return _counted(job, sessions, samples, whole=False)
    except HalfCountedError:
        return _counted(job, sessions, samples, whole=True)


def _counted(job: Job, sessions: Sequence[SampleRunner], samples: Sequence[Any], whole: bool) -> SampleCounts:
    part = job.start()
    for index, item in enumerate(samples):
        try:
            feeds, target = sample_of(item, sessions[0].inputs)
            job.count(part, sessions, feeds, target, index, whole)
        except (UnsupportedOperatorError, RunStopped):
            raise
        except _OF_THE_SAMPLE as error:
            part.fail(index, label_of(item), error)
        part.seen += 1
    return part


@dataclass(frozen=True, slots=True)
class StatisticsJob:
    """Statistics of values of one model.

    Attributes:
        model: digest of its payload.
        names: of the values.
        channels: axis and number of channels of each value whose channels are counted too.
        providers: as of `Model.run`.
    """

    model: str
    names: tuple[str, ...]
    channels: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    providers: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """Names the job."""
        return repr((self.model, self.names, sorted(self.channels.items()), self.providers))

    def start(self) -> SampleCounts:
        """A part of no samples."""
        places = [f"{name}[{place}]" for name, (_, size) in self.channels.items() for place in range(size)]
        return SampleCounts({"values": Tally(self.names), "channels": Tally(places, histograms=False)})

    def sessions(self, models: Models) -> list[SampleRunner]:
        """The one model."""
        return [session(models[self.model], self.providers)]

    def count(
        self,
        part: SampleCounts,
        sessions: Sequence[SampleRunner],
        feeds: dict[str, Any],
        target: Any,
        index: int,
        whole: bool,
    ) -> None:
        """Run one sample and count its values."""
        values, channels = part.tallies["values"].sample(index), part.tallies["channels"].sample(index)
        first = self._first_channels()
        texts = None if len(part.texts) == len(self.names) else part.texts

        def take(place: int, value: Any) -> None:
            name = self.names[place]
            values.put(place, value)
            if name in first:
                for row, numbers in enumerate(_by_channel(value, *self.channels[name]), first[name]):
                    channels.put(row, numbers)
            if texts is not None:
                texts.setdefault(name, type_of(value))

        if whole:
            arrays = sessions[0].run(feeds, self.names)
            for place, name in enumerate(self.names):
                take(place, arrays.get(name))
        else:
            self._hand(sessions[0], feeds, take, values)
        values.finish()
        channels.finish()

    def _hand(self, model: SampleRunner, feeds: dict[str, Any], take: Take, values: SampleTally) -> None:
        try:
            model.hand(feeds, self.names, take)
        except Exception as error:
            if values.is_empty:
                raise
            raise HalfCountedError from error

    def _first_channels(self) -> dict[str, int]:
        """The row of the first channel of each value whose channels are counted."""
        sizes = [size for _, size in self.channels.values()]
        return dict(zip(self.channels, accumulate(sizes, initial=0), strict=False))


def type_of(value: Any) -> str:
    """Element type of an array, or what else a value is."""
    if value is None:
        return "none"
    return str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__


def _by_channel(array: Any, axis: int, size: int) -> list[Any]:
    """The elements of each channel; None for each where the array has not so many."""
    if not isinstance(array, np.ndarray) or not -array.ndim <= axis < array.ndim or array.shape[axis] != size:
        return [None] * size
    return list(np.ascontiguousarray(np.moveaxis(array, axis, 0)).reshape(size, -1))


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """Errors of one model against another.

    Attributes:
        a, b: digests of their payloads: the reference and the other.
        pairs: names of values in both.
        inputs: name in the second model of each input of the first.
        metrics: further measures of the outputs, by name.
        outputs: pairs of names of the outputs that metrics get.
        providers, b_providers: providers of the reference and of the other model.
    """

    a: str
    b: str
    pairs: tuple[tuple[str, str], ...]
    inputs: Mapping[str, str]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    outputs: tuple[tuple[str, str], ...] = ()
    providers: tuple[str, ...] | None = None
    b_providers: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """Names the job; of a metric its name alone is known."""
        names = sorted(self.metrics)
        return repr((self.a, self.b, self.pairs, sorted(self.inputs.items()), names, self.providers, self.b_providers))

    def start(self) -> SampleCounts:
        """A part of no samples."""
        names = [name for name, _ in self.pairs]
        return SampleCounts(
            {
                "reference": Tally(names, histograms=False),
                "difference": Tally(names),
                "relative": Tally(names),
                "metrics": Tally(list(self.metrics)),
            }
        )

    def sessions(self, models: Models) -> list[SampleRunner]:
        """The reference and the other."""
        return [session(models[self.a], self.providers), session(models[self.b], self.b_providers)]

    def count(
        self,
        part: SampleCounts,
        sessions: Sequence[SampleRunner],
        feeds: dict[str, Any],
        target: Any,
        index: int,
        whole: bool,
    ) -> None:
        """Run one sample by both models and count the errors."""
        names = dict.fromkeys([*self.pairs, *self.outputs])
        with whose("the first model"):
            first_values = sessions[0].run(feeds, [name for name, _ in names])
        renamed = {self.inputs[name]: array for name, array in feeds.items() if name in self.inputs}
        with whose("the second model"):
            its = sessions[1].run(renamed, [name for _, name in names])
        numbers = measured(
            self.metrics, {name: first_values[name] for name, _ in self.outputs},
            {name: its[other] for name, other in self.outputs}, target,
        )  # fmt: skip
        errors = [_error(first_values.get(name), its.get(other)) for name, other in self.pairs]
        part.tallies["reference"].add([reference for reference, _, _ in errors], index)
        part.tallies["difference"].add([difference for _, difference, _ in errors], index)
        part.tallies["relative"].add([relative for _, _, relative in errors], index)
        if numbers:
            part.tallies["metrics"].add([np.float64(number) for number in numbers], index)


def _error(reference: Any, other: Any) -> tuple[Any, Any, Any]:
    """(reference, difference, largest difference ÷ peak) in float64; infinite where they are no pair."""
    left, right = numbers_of(reference), numbers_of(other)
    if left is None or right is None or left.shape != right.shape or np.shape(reference) != np.shape(other):
        same = left is None and right is None and bool(np.array_equal(reference, other))
        return None, None, np.float64(0.0 if same else np.inf)
    wide = left.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = right.astype(np.float64) - wide
    # NaN or an infinity on both sides is no difference
    difference[(np.isnan(wide) & np.isnan(right.astype(np.float64))) | (wide == right)] = 0.0
    finite = np.abs(wide[np.isfinite(wide)])
    peak, largest = float(finite.max(initial=0.0)), float(np.abs(difference).max(initial=0.0))
    relative = largest / peak if peak else (0.0 if largest == 0 else np.inf)
    return wide, difference, np.float64(np.inf if np.isnan(relative) else relative)


Progress = Callable[[int, int | None, str], None]
"""progress(samples done, samples in all or None, a note)."""
