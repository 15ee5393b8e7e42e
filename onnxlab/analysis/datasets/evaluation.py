"""Errors of one model against another over a data set, as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxlab.analysis.datasets.part import SampleCounts, SampleFailure
from onnxlab.analysis.datasets.table import ValueStatistics, entry_of, failure_lines, number
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import suggestion

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ErrorStatistics:
    """The error of a value over all samples.

    Attributes:
        name: of the value in the reference.
        relative: largest difference ÷ peak, a number for each sample: its mean, quantiles and worst samples.
        difference: of all elements, other less reference.
        sqnr: signal to noise over all samples in dB, infinite where they are equal.
    """

    name: str
    relative: ValueStatistics
    difference: ValueStatistics
    sqnr: float

    @property
    def worst(self) -> tuple[tuple[int, float], ...]:
        """(sample, relative error), the worst first."""
        return self.relative.worst


@dataclass(frozen=True, slots=True)
class Evaluation(metaclass=ShortHelp):
    """One model against another over a data set; print it, and ask for a value by its name.

    Attributes:
        samples: number of samples that were compared.
        errors: of each value.
        metrics: by name, a number for each sample: its mean, quantiles and extremes.
        failed: samples that could not be used, by name of the exception.
        failures: the first of them.

    Examples:
        >>> image = np.zeros((1, 1, 8, 8), np.float32)
        >>> onnxlab.evaluate(model, model, [image], metric="top1").metrics["top1"].mean
        1.0
    """

    samples: int
    errors: tuple[ErrorStatistics, ...]
    metrics: Mapping[str, ValueStatistics]
    failed: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[SampleFailure, ...] = ()

    def __len__(self) -> int:
        return len(self.errors)

    def __iter__(self) -> Iterator[ErrorStatistics]:
        return iter(self.errors)

    def __getitem__(self, name: str) -> ErrorStatistics:
        """The error of a value of the reference, by its name."""
        for entry in self.errors:
            if entry.name == name:
                return entry
        raise KeyError(f"{name!r} was not compared.{suggestion(name, [entry.name for entry in self.errors])}")

    @property
    def worst_error(self) -> float:
        """The largest relative error of any value in any sample.

        Examples:
            >>> onnxlab.evaluate(model, model, [np.zeros((1, 1, 8, 8), np.float32)]).worst_error
            0.0
        """
        return max((size for entry in self.errors for _, size in entry.worst[:1]), default=0.0)

    def __str__(self) -> str:
        """A line, failures, metrics, and a table of the values that are furthest off."""
        lines = [f"{len(self):,} values over {self.samples:,} samples", *failure_lines(self.failed, self.failures)]
        for name, metric in self.metrics.items():
            if metric.mean is not None:
                lines.append(f"{name}: mean {metric.mean:.6g}, from {metric.minimum:.6g} to {metric.maximum:.6g}")
        lines.append(
            f"{'value':36} {'mean err':>9} {'median':>9} {'99 %':>9} {'worst':>9} {'SQNR dB':>8} worst samples"
        )
        order = sorted(self.errors, key=lambda entry: -max((size for _, size in entry.worst), default=-math.inf))
        for entry in order[:_SHOWN]:
            relative = entry.relative
            quantiles = [relative.quantile(share) if relative.finite else math.inf for share in (0.5, 0.99)]
            worst = ", ".join(f"#{index}" for index, size in entry.worst[:3] if size > 0)
            mean = math.inf if relative.mean is None or relative.inf else relative.mean
            top = entry.worst[0][1] if entry.worst else 0.0
            lines.append(
                f"{entry.name[-36:]:36} {mean:9.2e} {quantiles[0]:9.2e} {quantiles[1]:9.2e} {top:9.2e} "
                f"{entry.sqnr:8.1f} {worst}".rstrip()
            )
        if len(order) > _SHOWN:
            lines.append(f"… and {len(order) - _SHOWN:,} more")
        return printable_lines(lines)

    def as_dict(self) -> dict[str, Any]:
        """Give the evaluation as JSON holds it; infinities are words.

        Returns:
            dict[str, Any]: metrics and all values.

        Examples:
            >>> onnxlab.evaluate(model, model, [np.zeros((1, 1, 8, 8), np.float32)]).as_dict()["worst_error"]
            0.0
        """
        return {
            "schema": "onnxlab/evaluation/1",
            "samples": self.samples,
            "worst_error": number(self.worst_error),
            "failed": dict(self.failed),
            "failures": [str(failure) for failure in self.failures],
            "metrics": {name: _numbers(entry) for name, entry in self.metrics.items()},
            "values": [
                {
                    "name": entry.name,
                    **_numbers(entry.relative),
                    "sqnr": number(entry.sqnr),
                    "worst": [[at, number(size)] for at, size in entry.worst],
                }
                for entry in self.errors
            ],
        }

    def to_json(self) -> str:
        """Write the evaluation as JSON.

        Returns:
            str: what `as_dict` gives.

        Examples:
            >>> onnxlab.evaluate(model, model, [np.zeros((1, 1, 8, 8), np.float32)]).to_json()[:34]
            '{"schema": "onnxlab/evaluation/1",'
        """
        return json.dumps(self.as_dict(), allow_nan=False)


def _numbers(entry: ValueStatistics) -> dict[str, Any]:
    quantiles = {str(share): number(entry.quantile(share)) if entry.finite else None for share in (0.5, 0.99)}
    return {
        "mean": number(entry.mean),
        "min": number(entry.minimum),
        "max": number(entry.maximum),
        "quantiles": quantiles,
    }


def evaluation_of(part: SampleCounts) -> Evaluation:
    """The evaluation of a part that `EvaluationJob` counted."""
    reference, difference = part.tallies["reference"], part.tallies["difference"]
    relative, metrics = part.tallies["relative"], part.tallies["metrics"]
    errors = []
    for place, name in enumerate(relative.names):
        signal, noise = (
            float(tally.m2[place] + tally.finite[place] * tally.mean[place] ** 2) for tally in (reference, difference)
        )
        sqnr = math.inf if not noise else 10 * math.log10(signal / noise) if signal else -math.inf
        if int(relative.inf[place]):
            sqnr = -math.inf
        errors.append(ErrorStatistics(name, entry_of(relative, place, {}), entry_of(difference, place, {}), sqnr))
    by_name = {name: entry_of(metrics, place, {}) for place, name in enumerate(metrics.names)}
    return Evaluation(part.used, tuple(errors), by_name, dict(part.failed), tuple(part.failures))
