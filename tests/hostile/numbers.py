"""Random regions and operators by NumPy, Numba and onnxruntime, on NaN, infinities, huge and subnormal numbers.

NumPy and Numba have to agree on everything. onnxruntime is asked only where all inputs are finite and below 1e18: ONNX
does not say what a maximum, a loss or a recurrent network makes of NaN, and kernels of onnxruntime differ in it.
"""

import numpy as np

import onnxlab
from tests.execution.support.random_regions import Drawing
from tests.hostile import judge
from tests.hostile.bases import plain_cases
from tests.hostile.divergence import LARGE, close, is_special
from tests.hostile.feeds import extreme, special
from tests.hostile.rounding import is_amplified
from tests.hostile.trial import Broken, limits

WEIGHT = 14


def preload():
    plain_cases()


def trial(case):
    if case.chance(0.5):
        region(case)
    else:
        operator(case)


def region(case):
    """A drawing of `tests/execution/compiled`, on usual or special numbers."""
    odd = case.chance(0.5)
    seed = case.upto(2**31)
    drawing = Drawing(seed, nodes=3 + case.upto(9), special=odd)
    case.lines.append(f"# Drawing({seed}, special={odd})")
    feeds = dict(drawing.feeds)
    compare(case, case.file(drawing.model().SerializeToString()), feeds, "a region", odd)


def operator(case):
    """One of onnx's cases with other numbers, in one of the dtypes that it takes."""
    base = case.pick([base for base in plain_cases() if not base.is_halves_in_steps])
    odd = case.chance(0.7)
    feeds = {name: changed(case, array, odd) for name, array in base.feeds.items()}
    case.lines.append(f"# {base.name}")
    compare(case, case.file(base.data), feeds, base.name, odd)


def changed(case, array, odd):
    if array.dtype.kind == "f" and case.chance(0.7):
        with np.errstate(all="ignore"):
            array = (case.rng.standard_normal(array.shape) * case.pick((1, 1, 100, 1e-3))).astype(array.dtype)
    if not odd:
        return array
    return special(case, array) if array.dtype.kind == "f" else extreme(case, array) if case.chance(0.2) else array


def compare(case, path, feeds, name, odd):
    """NumPy against onnxruntime, Numba against NumPy."""
    from tests.execution.support.regions import Eager
    from tests.hostile.mutants import parsed

    model = case.call("model = onnxlab.load('m.onnx')", onnxlab.load, path)
    proto = parsed(path.read_bytes())
    if model is None or not judge.is_comparable(proto):
        return
    np.savez(case.folder / "feeds.npz", **feeds)
    cold = case.call("cold = model.run(feeds)", model.run, feeds, limits=limits())
    if cold is None:
        return
    line = "hot = model.run(feeds, providers=[NumbaProvider(background=False, precise=True, least=0), 'numpy'])"
    provider = Eager(1 + case.upto(1), precise=case.chance(0.5))
    hot = case.call(line, model.run, feeds, providers=[provider, "numpy"], limits=limits())
    if hot is None:
        raise Broken("number", f"refused by numba, not by numpy: {name}")
    plain = not any(map(is_special, feeds.values()))
    least = max(judge.least(proto), judge.underflows(proto, feeds))
    for output, expected in cold.items():
        if not plain and getattr(expected, "dtype", np.dtype("f4")).kind in "iu":
            continue  # NaN and infinity as integers are not defined
        if problem := difference(hot[output], expected, odd, least):
            if is_amplified(proto, feeds, output, lambda array: difference(array, expected, odd, least)):  # noqa: B023
                return
            raise Broken(
                "number",
                f"numba: {problem} by {name}",
                f"{output}: {judge.shown(hot[output])} for {judge.shown(expected)}",
            )
    if not plain or not all(array.size for array in feeds.values()):  # the mean of nothing is not defined
        return
    if judge.rounds_scores(proto, feeds) or judge.overflows(proto, feeds) or judge.quantizes_by_zero(feeds):
        return
    theirs = oracle(case, path, feeds, list(cold))
    for output, expected in theirs.items():
        if problem := difference(cold[output], expected, odd, least):
            if is_amplified(proto, feeds, output, lambda array: difference(array, cold[output], odd, least)):  # noqa: B023
                return
            raise Broken(
                "number",
                f"numpy: {problem} by {name}",
                f"{output}: {judge.shown(cold[output])} for {judge.shown(expected)}",
            )


def oracle(case, path, feeds, names):
    """Outputs by onnxruntime; none where it does not take the model or the inputs."""
    case.asking("onnxruntime")
    reference, _ = judge.session(path)
    if reference is None:
        return {}
    try:
        arrays = reference.run(names, {name: np.array(array, order="C", copy=None) for name, array in feeds.items()})
    except Exception:
        return {}
    case.oracle = False
    return dict(zip(names, arrays, strict=True))


def difference(actual, expected, odd, least=1e-30):
    """The difference; with special numbers elements above LARGE need only be large or not finite on both sides."""
    if odd and isinstance(expected, np.ndarray) and expected.dtype.kind == "f" and isinstance(actual, np.ndarray):
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return "another shape or dtype"
        with np.errstate(all="ignore"):
            plain = (np.abs(actual.astype(np.float64)) < LARGE) & (np.abs(expected.astype(np.float64)) < LARGE)
            same = plain | ~(
                (np.abs(actual.astype(np.float64)) < LARGE) | (np.abs(expected.astype(np.float64)) < LARGE)
            )
        if not same.all():
            return "other places of large numbers"
        return close(actual[plain], expected[plain], "", least)
    return close(actual, expected, "", least)
