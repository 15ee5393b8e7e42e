"""Runs on made-up inputs that no call asked for: within limits, since a loop may not end on them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onnxlab.errors import LimitError
from onnxlab.execution.run.runner import Runner
from onnxlab.limits import Limits

_SECONDS: Final = 30.0
_ITERATIONS: Final = 100_000
_QUICK: Final = 0.5  # seconds: a run that fails at once, for want of memory say, costs nothing


def trial_limits(times: float = 1) -> Limits:
    """The limits of one run, `times` the usual ones; of bytes, those of any run."""
    return Limits(iterations=max(1, int(times * _ITERATIONS)), deadline=times * _SECONDS)


@dataclass(slots=True)
class TrialRuns:
    """Runs of a model on made-up inputs: each that reaches the limits halves those of the next ones.

    So all together take about twice the time of one, however many of them do not end.

    Args:
        runner: of the model.
        times: how many times the usual limits the next run may take: more for a model that is compared with another.
    """

    runner: Runner
    times: float = 1

    def __call__(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """The outputs for inputs; values that are kept stay as they are.

        Raises:
            FeedError, RunError, LimitError: as of a run.
        """
        limits = trial_limits(self.times)
        began = time.perf_counter()
        try:
            return self.runner.run(dict(feeds), outputs, keep=False, seed=0, strict=False, limits=limits)
        except LimitError:
            if time.perf_counter() - began > _QUICK:
                self.times /= 2
            raise
