"""Counts of some samples in a row: tallies by name, and samples that could not be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxlab.analysis.datasets.tally import Tally

_SHOWN = 20
"""Failures that are kept with their messages; the others are counted."""

_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class SampleFailure:
    """A sample that could not be used.

    Attributes:
        index: its place in the data set, from 0 on.
        label: name of its file, "" where it has none.
        kind: name of the exception.
        message: what it said.
    """

    index: int
    label: str
    kind: str
    message: str

    def __str__(self) -> str:
        called = f" ({self.label})" if self.label else ""
        return f"sample {self.index}{called}: {self.message}"


@dataclass(slots=True)
class SampleCounts:
    """Counts of some samples.

    Attributes:
        tallies: tallies by name.
        seen: number of samples, those that failed included.
        failed: how many failed, by name of the exception.
        failures: the first of them.
        texts: by name, the element type of a value, and further notes of jobs.
    """

    tallies: dict[str, Tally]
    seen: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    failures: list[SampleFailure] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def used(self) -> int:
        """Samples that were counted."""
        return self.seen - sum(self.failed.values())

    def fail(self, index: int, label: str, error: BaseException) -> None:
        """Count a sample that could not be used."""
        kind, message = type(error).__name__, str(error)[:_LONGEST]
        self.failed[kind] = self.failed.get(kind, 0) + 1
        if len(self.failures) < _SHOWN:
            self.failures.append(SampleFailure(index, label, kind, message))

    def merge(self, other: SampleCounts) -> None:
        """Add the part of the samples that come next."""
        for name, tally in self.tallies.items():
            tally.merge(other.tallies[name], self.seen)
        for failure in other.failures[: _SHOWN - len(self.failures)]:
            place = failure.index + self.seen
            self.failures.append(SampleFailure(place, failure.label, failure.kind, failure.message))
        for kind, count in other.failed.items():
            self.failed[kind] = self.failed.get(kind, 0) + count
        self.texts = {**other.texts, **self.texts}
        self.seen += other.seen

    def arrays(self) -> dict[str, Any]:
        """Everything as arrays, for a file."""
        notes = {
            "seen": self.seen,
            "failed": self.failed,
            "failures": [[item.index, item.label, item.kind, item.message] for item in self.failures],
            "texts": self.texts,
        }
        arrays = {
            f"{name}.{key}": array for name, tally in self.tallies.items() for key, array in tally.state().items()
        }
        return {**arrays, "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8)}

    def take(self, arrays: Mapping[str, Any]) -> None:
        """Become what the arrays of a file say.

        Raises:
            ValueError, KeyError, TypeError: the arrays were not made by `arrays`.
        """
        notes = json.loads(np.asarray(arrays["notes"]).tobytes())
        for name, tally in self.tallies.items():
            prefix = f"{name}."
            state = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
            self.tallies[name] = Tally.of_state(tally.names, state)
        self.seen, self.failed = int(notes["seen"]), {str(kind): int(count) for kind, count in notes["failed"].items()}
        self.failures = [SampleFailure(int(index), *map(str, words)) for index, *words in notes["failures"]]
        self.texts = {str(name): str(text) for name, text in notes["texts"].items()}
