"""Loss of a model in fewer bits: how far its outputs are off on normal inputs, and whether they are finite still."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxlab.errors import OnnxlabError
from onnxlab.transforms.receipt import Verdict
from onnxlab.transforms.verification import Case, Feeds, Judgment, RunModel, is_real


def cases(run: RunModel, feeds: Sequence[Feeds]) -> list[Case]:
    """The outputs of a model for inputs as they are."""
    recorded = []
    for inputs in feeds:
        try:
            recorded.append(Case("normal", inputs, run(inputs)))
        except OnnxlabError as error:
            recorded.append(Case("normal", inputs, {}, str(error)))
    return recorded


def judge(run: RunModel, before: Sequence[Case], at_most: float | None) -> Judgment:
    """Compare what a model makes now with what it made before: by how much, and at which output, it is off.

    Args:
        run: the model as it is now.
        before: cases of the model as it was.
        at_most: the largest accepted difference as part of an output's largest element; None for any that is finite.
    """
    worst, why, ran = -1.0, "", False
    for case in before:
        if case.failed:
            continue
        ran = True
        try:
            now = run(case.feeds)
        except OnnxlabError as error:
            return Judgment("different", f"it fails now: {error}", loss=np.inf)
        for name, old in case.outputs.items():
            share, words = _loss(old, now.get(name))
            if share == np.inf:
                return Judgment("different", f"{name} {words}", loss=np.inf)
            if share > worst:
                worst, why = share, f"{name} {words}"
    if not ran:
        return Judgment("not run", next((case.failed for case in before), "there was nothing to run"))
    if worst <= 0:
        return Judgment("bit equal")
    verdict: Verdict = "rounded" if at_most is None or worst <= at_most else "different"
    return Judgment(verdict, why, loss=worst)


def _loss(old: Any, new: Any) -> tuple[float, str]:
    """The difference of an output as part of its largest element, or of its elements; in words. inf: no such output."""
    if isinstance(old, dict) and isinstance(new, dict) and [*old] == [*new]:
        old, new = [*old.values()], [*new.values()]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return max((_loss(*pair) for pair in zip(old, new, strict=True)), default=(0.0, ""))
    if isinstance(old, float) and isinstance(new, float):  # of a map
        old, new = np.asarray(old), np.asarray(new)
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray):
        return (0.0, "") if repr(old) == repr(new) else (1.0, "is another one")
    if old.dtype != new.dtype or old.shape != new.shape:
        return np.inf, f"is {new.dtype}{list(new.shape)}, and was {old.dtype}{list(old.shape)}"
    if not is_real(old.dtype):
        differs = np.count_nonzero(old != new)
        return differs / max(old.size, 1), f"differs in {differs:,} of {old.size:,} elements"
    wide, other = old.astype(np.float64), new.astype(np.float64)
    finite = np.isfinite(wide)
    lost = np.count_nonzero(finite & ~np.isfinite(other))
    if lost:
        return np.inf, f"has {lost:,} NaN or infinities that it had not"
    peak = float(np.max(np.abs(wide[finite]), initial=0.0)) or 1.0
    off = float(np.max(np.abs(wide[finite] - other[finite]), initial=0.0)) / peak
    percent = f"{100 * off:.2g}" if off < 1 / 10 else f"{100 * off:.0f}"
    return off, f"is off by up to {percent} % of its largest element"
