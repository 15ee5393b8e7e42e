"""Proof by execution: a model before and after a rewrite, run on inputs of several kinds and compared.

Verification is a test, not a proof: it finds differences that show on the inputs tried. Kinds of inputs matter more
than their number: a NaN that is dropped does not show on normal numbers, a missing clip only on large ones.

Two orders of the same sums differ by rounding, and a model may amplify the difference. The amplification is measured:
each case is run a second time with inputs that are off by a rounding, and ten times the change of an output is noise.
Where an output differs by more, the model is also run with every result of a node off by a rounding: differences of
nearly equal numbers and divisions by small ones amplify roundings that changed inputs do not show.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from onnxlab.errors import LimitError, OnnxlabError
from onnxlab.printable import printable
from onnxlab.transforms.receipt import VERDICTS, Verdict

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any]
RunModel = Callable[[Feeds], Mapping[str, Any]]

KINDS: Final = ("normal", "positive", "large", "tiny", "integers", "zeros", "special")
"""Kinds of inputs; integer tensors are the same in all kinds, since they may be sizes and indices."""

_NOISE: Final = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}
"""Difference relative to the peak of an output up to which two orders of the same sums may differ, by dtype."""


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs of one kind and the outputs of the model for them.

    Attributes:
        kind: one of KINDS, or "other sizes".
        feeds, outputs: arrays by name.
        failed: why the run failed, "" where it did not.
        noise: by output, how much it changes for inputs that are off by a rounding.
        endless: whether the run reached its limits, as a loop does that does not end on these inputs.
    """

    kind: str
    feeds: Feeds
    outputs: Mapping[str, Any]
    failed: str = ""
    noise: Mapping[str, float] = field(default_factory=dict)
    endless: bool = False


@dataclass(frozen=True, slots=True)
class Judgment:
    """The verdict of all cases, and the first case that differs: in words, as inputs, its kind.

    Where precision is lost, `loss` is the largest difference as part of an output's largest element.
    """

    verdict: Verdict
    why: str = ""
    feeds: Feeds = field(default_factory=dict)
    kind: str = ""
    loss: float = 0.0

    def __str__(self) -> str:
        return printable(self.verdict + (f": {self.why}" if self.why else ""))


def kinds_of(feeds: Feeds) -> Iterator[tuple[str, Feeds]]:
    """Inputs of every kind, made of normal ones."""
    for kind in KINDS:
        yield kind, {name: _of_kind(kind, array, place) for place, (name, array) in enumerate(feeds.items())}


def _of_kind(kind: str, value: Any, offset: int) -> Any:
    """An input turned into a kind; `offset` gives each input other places of NaN and infinities."""
    if not isinstance(value, np.ndarray) or not is_real(value.dtype) or kind == "normal":
        return value
    if kind == "zeros":
        return np.zeros_like(value)
    if kind == "positive":
        return np.abs(value)
    if kind == "integers":
        return (np.round(4 * value) / 2).astype(value.dtype)  # halves too: they show modes of rounding
    if kind == "special":
        array = value.copy()
        flat = array.reshape(-1)
        for place, number in enumerate((np.nan, np.inf, -np.inf, -0.0)):
            if flat.size > 3 * place + offset % 3:
                flat[3 * place + offset % 3] = number
        return array
    return (value * (1e4 if kind == "large" else 1e-6)).astype(value.dtype)


def is_real(dtype: "np.dtype[Any]") -> bool:
    """Whether elements are floating-point numbers."""
    return dtype.kind == "f" or str(dtype) == "bfloat16"


def cases(run: RunModel, feeds: list[Feeds], all_kinds: bool = False) -> list[Case]:
    """The outputs of a model for the first set of inputs, turned into every kind, and for the others as they are.

    Args:
        run: the model.
        feeds: sets of inputs.
        all_kinds: whether all sets are turned into every kind.
    """
    recorded = []
    usual: dict[str, float] = {}
    for number, normal in enumerate(feeds):
        chosen = kinds_of(normal) if number == 0 or all_kinds else iter([("other sizes", normal)])
        for kind, inputs in chosen:
            case = case_of(run, kind, inputs)
            peaks = {name: _peak(case.outputs[name]) for name in case.noise}
            if kind == "normal":
                usual = {name: case.noise[name] / (peak or 1.0) for name, peak in peaks.items()}
            elif kind == "integers":  # whole numbers are on the steps of step functions, where noise would be too large
                most = {name: 4 * usual.get(name, 0.0) * peak for name, peak in peaks.items()}
                case = replace(case, noise={name: min(case.noise[name], most[name]) for name in most})
            recorded.append(case)
    return recorded


def case_of(run: RunModel, kind: str, feeds: Feeds) -> Case:
    """The outputs of a model for some inputs, and their change where inputs are off by a rounding."""
    try:
        outputs = run(feeds)
        return Case(kind, feeds, outputs, noise=_noise(outputs, run(_off_by_a_rounding(feeds))))
    except LimitError as error:
        return Case(kind, feeds, {}, f"on {kind} inputs: {error}", endless=True)
    except OnnxlabError as error:
        return Case(kind, feeds, {}, str(error))


def with_noise(runs: Sequence[RunModel], before: list[Case]) -> list[Case]:
    """Cases with the noise of runs in which every result of a node is off by a rounding.

    Args:
        runs: the model as it was, off by a rounding in several ways.
        before: cases of the model as it was.
    """
    return [replace(case, noise=_most_noise(runs, case)) for case in before]


def _most_noise(runs: Sequence[RunModel], case: Case) -> dict[str, float]:
    most = dict(case.noise)
    for run in runs if not case.failed else ():
        try:
            noise = _noise(case.outputs, run(case.feeds))
        except OnnxlabError:
            continue  # a rounding changed a size, so that this run measures nothing
        most = {name: max(most.get(name, 0.0), noise.get(name, 0.0)) for name in most.keys() | noise.keys()}
    return most


def judge_with_noise(
    run: RunModel, before: list[Case], rounded: Callable[[], Sequence[RunModel]], zero_signs: bool = False
) -> Judgment:
    """Judge, and where an output differs judge again with the noise of all results of nodes.

    Args:
        run: the model as it is now.
        before: cases of the model as it was.
        rounded: a function that returns runs of the model as it was, off by a rounding.
        zero_signs: whether the sign of a zero counts.
    """
    judged = judge(run, before, zero_signs)
    if judged.verdict in ("different", "finite inputs only"):
        judged = judge(run, with_noise(rounded(), before), zero_signs)
    return judged


def _off_by_a_rounding(feeds: Feeds) -> Feeds:
    """The same inputs, with every other element of floats replaced by the next larger number."""
    moved = {}
    for name, value in feeds.items():
        moved[name] = value
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            flat = value.reshape(-1).copy()
            flat[::2] = np.nextafter(flat[::2], np.array(np.inf, value.dtype))
            moved[name] = flat.reshape(value.shape)
    return moved


def _noise(outputs: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, float]:
    """The largest difference between two runs in each output, among finite numbers."""
    largest = {}
    for name, array in outputs.items():
        other = others.get(name)
        if not isinstance(array, np.ndarray) or not isinstance(other, np.ndarray) or not is_real(array.dtype):
            continue
        if array.shape == other.shape:
            with np.errstate(invalid="ignore"):
                differs = np.abs(array.astype(np.float64) - other.astype(np.float64))
            largest[name] = float(np.max(differs[np.isfinite(differs)], initial=0.0))
    return largest


def _peak(array: Any) -> float:
    wide = np.abs(np.asarray(array).astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0.0))


def judge(run: RunModel, before: list[Case], zero_signs: bool = False) -> Judgment:
    """Compare what a model makes now with what it made before, case by case.

    Args:
        run: the model as it is now.
        before: cases of the model as it was.
        zero_signs: whether the sign of a zero counts.
    """
    worst = Judgment("not run")
    for case in before:
        if case.failed:
            continue
        verdict, why = _compare(run, case, zero_signs)
        if verdict == "different" and case.kind == "special":
            verdict = "finite inputs only"
        if VERDICTS.index(verdict) > VERDICTS.index(worst.verdict):
            worst = Judgment(verdict, why, case.feeds, case.kind)
    if worst.verdict == "not run":
        return Judgment("not run", next((case.failed for case in before if case.failed), "there was nothing to run"))
    return worst


def reacts(run: RunModel, before: list[Case]) -> bool:
    """Whether other inputs change the outputs by more than 100 times the tolerance; else nothing can be tested."""
    case = next((case for case in before if not case.failed and case.kind == "normal"), None)
    if case is None:
        return False
    rng = np.random.default_rng(7)
    others = {name: _others(rng, value) for name, value in case.feeds.items()}
    try:
        now = run(others)
    except OnnxlabError:
        return True  # whether the model runs depends on the inputs, so it reacts
    return any(_same(old, now.get(name), 0.0, times=100.0) == "different" for name, old in case.outputs.items())


def _others(rng: np.random.Generator, value: Any) -> Any:
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    if is_real(value.dtype):
        return np.asarray(rng.normal(size=value.shape)).astype(value.dtype)
    return rng.permutation(value.reshape(-1)).reshape(value.shape)


def _compare(run: RunModel, case: Case, zero_signs: bool) -> tuple[Verdict, str]:
    try:
        now = run(case.feeds)
    except OnnxlabError as error:
        return "different", f"on {case.kind} inputs it fails: {error}"
    worst: Verdict = "bit equal"
    for name, old in case.outputs.items():
        if name not in now:
            return "different", f"{name} is no output any more"
        same = _same(old, now[name], 10 * case.noise.get(name, 0.0), zero_signs=zero_signs)
        if same == "different":
            return same, f"{name} differs on {case.kind} inputs{_place(old, now[name])}"
        if same != "bit equal":
            worst = same
    return worst, ""


def _same(old: Any, new: Any, measured: float, times: float = 1.0, zero_signs: bool = False) -> Verdict:
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray):
        return "bit equal" if _plain(old) == _plain(new) else "different"
    if old.dtype != new.dtype or old.shape != new.shape:
        return "different"
    if old.dtype == object or not (is_real(old.dtype) or old.dtype.kind == "c"):
        return "bit equal" if np.array_equal(old, new) else "different"
    if old.tobytes() == new.tobytes():
        return "bit equal"
    wide, other = (array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) for array in (old, new))
    finite = np.isfinite(wide)
    odd = np.array_equal(wide[~finite], other[~finite], equal_nan=True)
    if not np.array_equal(finite, np.isfinite(other)) or not odd:
        return "different"
    if zero_signs and _other_zeros(wide, other):
        return "different"
    peak = float(np.max(np.abs(wide[finite]), initial=0.0))
    noise = max(times * _NOISE.get(str(old.dtype), 1e-5) * peak, measured)
    return "equal within noise" if np.all(np.abs(wide[finite] - other[finite]) <= noise) else "different"


def _other_zeros(array: Array, other: Array) -> bool:
    """Whether a zero of one array has another sign in the other one."""
    zeros = (array == 0) & (other == 0)
    return array.dtype.kind == "f" and bool(np.any(np.signbit(array[zeros]) != np.signbit(other[zeros])))


def _plain(value: Any) -> Any:
    """A sequence, map or optional as nested Python objects that can be compared; NaN equals itself."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist() if value.dtype == object else value.tobytes()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return repr(value)


def _place(old: Any, new: Any) -> str:
    """The place of the largest difference of two arrays, in words."""
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray) or old.shape != new.shape:
        return ""
    differs = ~((old == new) | ((old != old) & (new != new)))
    if not differs.any():
        return ""
    if old.dtype.kind in "fiub" or is_real(old.dtype):
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(old.astype(np.float64) - new.astype(np.float64))
        differs = np.where(differs, np.where(np.isfinite(apart), apart, np.inf), -1.0)
    at = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(differs)), old.shape))
    return f" at {list(at)}: {old[at]} before, {new[at]} now"
