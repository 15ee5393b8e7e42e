"""Statistics of values over a data set, as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from onnxlab.analysis.datasets import histogram
from onnxlab.analysis.datasets.part import SampleCounts, SampleFailure
from onnxlab.analysis.datasets.tally import Tally
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import suggestion

_SHOWN = 20
Method = Literal["minmax", "percentile", "entropy"]


@dataclass(frozen=True, slots=True)
class ValueStatistics(metaclass=ShortHelp):
    """One value over all samples.

    Attributes:
        name: of the value.
        dtype: its element type; "list" and the like for what is no tensor.
        samples: number of samples that had the value.
        count: number of elements in all samples.
        minimum, maximum: over all elements but NaN; None without any.
        mean, std: of finite elements, None without any.
        nan, inf, zeros: numbers of such elements.
        worst: (sample, largest magnitude), the largest first.

    Examples:
        >>> images = [np.full((1, 1, 8, 8), number, np.float32) for number in range(5)]
        >>> onnxlab.statistics(model, images, values=["image"])["image"].mean
        2.0
    """

    name: str
    dtype: str
    samples: int
    count: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    nan: int
    inf: int
    zeros: int
    worst: tuple[tuple[int, float], ...]
    _bins: Any = field(repr=False, compare=False)

    @property
    def finite(self) -> int:
        """Elements that are neither NaN nor infinite.

        Examples:
            >>> image = np.full((1, 1, 8, 8), np.nan, np.float32)
            >>> onnxlab.statistics(model, [image], values=["image"])["image"].finite
            0
        """
        return self.count - self.nan - self.inf

    def quantile(self, share: float) -> float:
        """Find the number below which a share of the elements lies; off by less than 7 %.

        Args:
            share: from 0 to 1.

        Returns:
            float: NaN without finite elements.

        Raises:
            ValueError: the share is not from 0 to 1, or no histogram was counted.

        Examples:
            >>> images = [np.full((1, 1, 8, 8), number, np.float32) for number in range(5)]
            >>> onnxlab.statistics(model, images, values=["image"])["image"].quantile(1.0)
            4.0
        """
        if not 0 <= share <= 1:
            raise ValueError(f"a share is from 0 to 1; given {share!r}")
        if self._bins is None:
            raise ValueError(f"{self.name!r} was counted without a histogram")
        if not self.finite:
            return math.nan
        return histogram.quantile(self._bins, share, *self._ends())

    def _ends(self) -> tuple[float, float]:
        """The range of finite elements; where there are infinities, that of their bins."""
        low, high = histogram.edges()
        used = np.flatnonzero(histogram.ascending(self._bins))
        first, last = float(low[used[0]]), float(high[used[-1]])
        least, greatest = self.minimum, self.maximum
        return (
            least if least is not None and math.isfinite(least) else first,
            greatest if greatest is not None and math.isfinite(greatest) else last,
        )

    def histogram(self) -> list[tuple[float, float, int]]:
        """List the bins with elements: eight for each power of two, of both signs.

        Returns:
            list[tuple[float, float, int]]: lower and upper edge, and elements, in ascending order.

        Examples:
            >>> image = np.full((1, 1, 8, 8), 3.0, np.float32)
            >>> onnxlab.statistics(model, [image], values=["image"])["image"].histogram()
            [(3.0, 3.25, 64)]
        """
        if self._bins is None:
            return []
        counts, (low, high) = histogram.ascending(self._bins), histogram.edges()
        return [(float(low[at]), float(high[at]), int(counts[at])) for at in np.flatnonzero(counts)]

    def calibrated(self, method: Method = "minmax", *, percentile: float = 99.99) -> tuple[float, float]:
        """Choose the range that quantization should cover; it holds 0.

        Args:
            method: "minmax" covers everything; "percentile" covers this share at each end; "entropy" clips where
                quantization loses the least information.
            percentile: of finite elements, for that method.

        Returns:
            tuple[float, float]: lower and upper end.

        Raises:
            ValueError: there is no such method.

        Examples:
            >>> image = np.full((1, 1, 8, 8), 3.0, np.float32)
            >>> onnxlab.statistics(model, [image], values=["image"])["image"].calibrated()
            (0.0, 3.0)
        """
        if not self.finite:
            return 0.0, 0.0
        low, high = self._ends()
        if method == "percentile":
            rest = 1 - percentile / 100
            low, high = self.quantile(rest), self.quantile(1 - rest)
        elif method == "entropy":
            limit = histogram.least_divergence(self._bins, max(abs(low), abs(high)))
            low, high = max(low, -limit), min(high, limit)
        elif method != "minmax":
            raise ValueError(f"there is no method {method!r}; there are minmax, percentile and entropy")
        return min(low, 0.0), max(high, 0.0)


@dataclass(frozen=True, slots=True)
class DatasetStatistics(metaclass=ShortHelp):
    """Values of a model over a data set; print it, and ask for one by its name.

    Attributes:
        samples: number of samples that were counted.
        failed: samples that could not be used, by name of the exception.
        failures: the first of them.

    Examples:
        >>> table = onnxlab.statistics(model, [np.zeros((1, 1, 8, 8), np.float32)])
        >>> table["stem/relu_out"].count
        512
    """

    samples: int
    failed: Mapping[str, int]
    failures: tuple[SampleFailure, ...]
    _tally: Tally = field(repr=False)
    _channels: Tally = field(repr=False)
    _dtypes: Mapping[str, str] = field(repr=False)

    def __len__(self) -> int:
        return len(self._tally.names)

    def __iter__(self) -> Iterator[ValueStatistics]:
        return (entry_of(self._tally, place, self._dtypes) for place in range(len(self)))

    def __getitem__(self, name: str) -> ValueStatistics:
        """The statistics of a value by its name."""
        names = self._tally.names
        if name not in names:
            raise KeyError(f"{name!r} was not counted.{suggestion(name, names)}")
        return entry_of(self._tally, names.index(name), self._dtypes)

    def channels(self, name: str) -> list[ValueStatistics]:
        """Give the statistics of each channel of a value that was counted so.

        Args:
            name: of the value.

        Returns:
            list[ValueStatistics]: none where its channels were not counted.

        Examples:
            >>> image = np.zeros((1, 1, 8, 8), np.float32)
            >>> table = onnxlab.statistics(model, [image], ["stem/relu_out"], channels=["stem/relu_out"])
            >>> len(table.channels("stem/relu_out"))
            8
        """
        names = self._channels.names
        places = [place for place, channel in enumerate(names) if channel.rpartition("[")[0] == name]
        return [entry_of(self._channels, place, self._dtypes) for place in places]

    def ranges(self, method: Method = "minmax", *, percentile: float = 99.99) -> dict[str, tuple[float, float]]:
        """Calibrate: choose the range of every value, see `ValueStatistics.calibrated`.

        Args:
            method: "minmax", "percentile" or "entropy".
            percentile: for that method.

        Returns:
            dict[str, tuple[float, float]]: lower and upper end by name, of values with finite elements.

        Examples:
            >>> image = np.full((1, 1, 8, 8), 3.0, np.float32)
            >>> onnxlab.statistics(model, [image], ["image"]).ranges("percentile")
            {'image': (0.0, 3.0)}
        """
        return {entry.name: entry.calibrated(method, percentile=percentile) for entry in self if entry.finite}

    def __str__(self) -> str:
        """A line, failures, and a table of the values with the largest magnitudes."""
        entries = sorted(self, key=lambda entry: -max((size for _, size in entry.worst), default=-math.inf))
        lines = [f"{len(self):,} values over {self.samples:,} samples"]
        lines += failure_lines(self.failed, self.failures)
        words = " ".join(f"{word:>10}" for word in ("min", "max", "mean"))
        lines.append(f"{'value':36} {words} {'std':>9} {'99 %':>10} {'zeros':>6} {'NaN':>5} {'inf':>5} worst")
        for entry in entries[:_SHOWN]:
            numbers = (entry.minimum, entry.maximum, entry.mean)
            high = entry.quantile(0.99) if entry.finite and entry._bins is not None else None
            words = " ".join(f"{'' if number is None else f'{number:.4g}':>10}" for number in numbers)
            worst = f"#{entry.worst[0][0]}" if entry.worst else ""
            lines.append(
                f"{entry.name[-36:]:36} {words} {'' if entry.std is None else f'{entry.std:.3g}':>9} "
                f"{'' if high is None else f'{high:.4g}':>10} {entry.zeros / max(entry.count, 1):6.1%} {entry.nan:5} "
                f"{entry.inf:5} {worst}".rstrip()
            )
        if len(entries) > _SHOWN:
            lines.append(f"… and {len(entries) - _SHOWN:,} more")
        return printable_lines(lines)

    def as_dict(self) -> dict[str, Any]:
        """Give the table as JSON holds it; infinities are words.

        Returns:
            dict[str, Any]: all values.

        Examples:
            >>> onnxlab.statistics(model, [np.zeros((1, 1, 8, 8), np.float32)]).as_dict()["samples"]
            1
        """
        return {
            "schema": "onnxlab/statistics/1",
            "samples": self.samples,
            "failed": dict(self.failed),
            "failures": [str(failure) for failure in self.failures],
            "values": [row_of(entry) for entry in self],
        }

    def to_json(self) -> str:
        """Write the table as JSON.

        Returns:
            str: what `as_dict` gives.

        Examples:
            >>> onnxlab.statistics(model, [np.zeros((1, 1, 8, 8), np.float32)]).to_json()[:34]
            '{"schema": "onnxlab/statistics/1",'
        """
        return json.dumps(self.as_dict(), allow_nan=False)


def table_of(part: SampleCounts) -> DatasetStatistics:
    """The table of a part that `StatisticsJob` counted."""
    tallies = part.tallies
    return DatasetStatistics(
        part.used, dict(part.failed), tuple(part.failures), tallies["values"], tallies["channels"], dict(part.texts)
    )


def entry_of(tally: Tally, place: int, dtypes: Mapping[str, str]) -> ValueStatistics:
    """A row of a tally."""
    name, count, finite = tally.names[place], int(tally.count[place]), int(tally.finite[place])
    some = count > int(tally.nan[place])
    minimum, maximum = (float(end[place]) if some else None for end in (tally.minimum, tally.maximum))
    worst = [
        (int(at), float(size)) for at, size in zip(tally.worst_at[place], tally.worst[place], strict=True) if at >= 0
    ]
    return ValueStatistics(
        name,
        dtypes.get(name, dtypes.get(name.rpartition("[")[0], "")),
        int(tally.samples[place]),
        count,
        minimum,
        maximum,
        float(tally.mean[place]) if finite else None,
        math.sqrt(tally.m2[place] / finite) if finite else None,
        int(tally.nan[place]),
        int(tally.inf[place]),
        int(tally.zeros[place]),
        tuple(worst),
        None if tally.bins is None else tally.bins[place],
    )


def failure_lines(failed: Mapping[str, int], failures: tuple[SampleFailure, ...]) -> list[str]:
    """The number of samples that could not be used, and the first of them."""
    if not failed:
        return []
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in failed.items())
    more = sum(failed.values()) - len(failures[:3])
    return [
        f"not used: {kinds}",
        *(f"  {item}" for item in failures[:3]),
        *([f"  … and {more:,} more"] if more else []),
    ]


def number(value: float | None) -> float | str | None:
    """A number as JSON holds it."""
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def row_of(entry: ValueStatistics) -> dict[str, Any]:
    """A row for JSON."""
    names = ("minimum", "maximum", "mean", "std")
    shares = (0.01, 0.5, 0.99)
    quantiles = [
        number(entry.quantile(share)) if entry.finite and entry._bins is not None else None for share in shares
    ]
    return {
        "name": entry.name, "dtype": entry.dtype, "samples": entry.samples, "count": entry.count,
        **{name: number(getattr(entry, name)) for name in names},
        "nan": entry.nan, "inf": entry.inf, "zeros": entry.zeros,
        "quantiles": dict(zip(map(str, shares), quantiles, strict=True)),
        "worst": [[at, number(size)] for at, size in entry.worst],
    }  # fmt: skip
