"""Rewriting: nodes that are left, against onnxsim and ONNX Runtime; what is computed afterwards; time; wrong rules.

    python -m bench transforms

Constant is not counted; functions are inlined on both sides. Outputs are those of onnxruntime without optimization,
before and after, on the inputs of the corpus. Times are processor times, the least of repeats, in one process.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnxruntime

import onnxlab
from bench.measure import Figure, Line, Row
from onnxlab.execution.run.runner import Runner
from onnxlab.transforms import verification
from onnxlab.transforms.live_matches import LiveMatches
from onnxlab.transforms.metadata_transfer import statements
from onnxlab.transforms.passes import worklist
from onnxlab.transforms.pipeline import count_nodes
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rounding import rounded_runs
from onnxlab.transforms.rules import built_in_rules
from onnxlab.transforms.rules.rule import Rule
from tests.support import corpus
from tests.support.defects import defects, named
from tests.support.regions import region
from tests.support.rewriting import rewriting_of
from tests.transforms.test_standard_rules import EXAMPLES, proto_of
from tests.transforms.test_wrong_rules import WRONG, is_refused

TOLERANCE = 1e-4
"""Difference relative to the peak of an output from which on it counts as broken."""

TIMED = "swin_s"
REGIONS = 1000


def rows() -> Iterator[Line]:
    """Nodes, broken outputs, names that are kept, and time."""
    warnings.simplefilter("ignore")
    yield from _corpus()
    yield from _optimized()
    yield from _speed()
    yield from _matching()
    yield from _trust()


# -- the corpus ------------------------------------------------------------------------------------------------------


def _corpus() -> Iterator[Line]:
    ours = theirs = broken = optimized = refused = unreported = 0
    shares = []
    for name in corpus.NAMES:
        model, path = onnxlab.load(corpus.path(name)), corpus.path(name)
        values = {value.name for value in model.graph.values.values()}
        words = statements(model.graph)
        receipt = model.simplify()
        refused += len(receipt.refused)
        listed = {(loss.key, loss.text) for loss in receipt.lost}
        unreported += len(words.keys() - statements(model.graph).keys() - listed)
        broken += not _computes_the_same(name, path, model)
        left = {value.name for value in model.graph.values.values()}
        shares.append(len(left & values) / max(len(left), 1))
        count = _nodes(_by_onnxsim(path))
        if count is not None:
            optimized += 1
            ours, theirs = ours + (_nodes(model.proto) or 0), theirs + count
        print(f"  {name}: {receipt.nodes}, {receipt.verdict}, onnxsim {count}", flush=True)
    yield Figure(f"nodes that simplify leaves of {optimized} models", ours, at_most=theirs, note=f"onnxsim: {theirs}")
    yield Figure("models that onnxruntime computes otherwise", broken, at_most=0, note=f"of {len(corpus.NAMES)}")
    yield Figure("applications that were taken back", refused, at_most=0)
    yield Figure("losses that no receipt told", unreported, at_most=0)
    yield Figure("names of what stays that were there before", float(np.median(shares)), at_least=0.95, note="median")


def _optimized() -> Iterator[Line]:
    """Nodes that `optimize` leaves with com.microsoft, against ONNX Runtime's extended level; times of runs."""
    ours = theirs = optimized = 0
    numpy_ratios: dict[str, float] = {}
    runtime_ratios: dict[str, float] = {}
    for name in corpus.NAMES:
        path = corpus.path(name)
        model, feeds = onnxlab.load(path), corpus.inputs(name, path)
        before = _least(5, _run, model, feeds)
        model.optimize(microsoft=True, verify=False)
        numpy_ratios[name] = _least(5, _run, model, feeds) / before
        runtime_ratios[name] = _ratio_in_onnxruntime(path, model, feeds)
        extended = _by_onnxruntime(path)
        if extended is not None:
            optimized, theirs, ours = optimized + 1, theirs + (_nodes(extended) or 0), ours + (_nodes(model.proto) or 0)
        print(
            f"  {name}: NumPy {numpy_ratios[name]:.2f}, onnxruntime {runtime_ratios[name]:.2f} of the time before",
            flush=True,
        )
    yield Figure(f"nodes that optimize leaves of {optimized} models", ours, at_most=theirs,
                 note=f"ONNX Runtime, extended: {theirs}")  # fmt: skip
    for ratios, runtime, most in ((numpy_ratios, "NumPy", 0.9), (runtime_ratios, "onnxruntime", 1.0)):
        worst = max(ratios, key=lambda name: ratios[name])
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        yield Figure(f"time of a run with {runtime} after optimize", mean, at_most=most,
                     note=f"geometric mean of the ratios; worst {worst} {ratios[worst]:.2f}")  # fmt: skip


def _ratio_in_onnxruntime(path: Path, model: onnxlab.Model, feeds: dict[str, Any]) -> float:
    """Time of a run in onnxruntime with all its optimizations, of an optimized model against the file; in turn."""
    saved = model.save(path.with_name("optimized_here.onnx"))
    try:
        runs = [_session_run(file, feeds) for file in (path, saved)]
    finally:
        for written in path.parent.glob("optimized_here.onnx*"):
            written.unlink()
    times = [[_least(5, run) for run in runs] for _ in range(3)]
    return min(after for _, after in times) / min(before for before, _ in times)


def _session_run(path: Path, feeds: dict[str, Any]) -> Callable[[], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    fed = {name: array for name, array in feeds.items() if name in names}
    session.run(None, fed)
    return lambda: session.run(None, fed)


def _run(model: onnxlab.Model, feeds: dict[str, Any]) -> None:
    Runner(model.graph, model.inference.fact).run(dict(feeds), keep=False, strict=False)


def _nodes(model: onnx.ModelProto | None) -> int | None:
    """Nodes of a model with its functions inlined, those in bodies included, Constant not counted."""
    if model is None:
        return None
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return count_nodes(onnxlab.Model(model).graph)


def _by_onnxsim(path: Path) -> onnx.ModelProto | None:
    """The model after onnxsim, None where it is not installed or fails."""
    try:
        import onnxsim

        model = onnx.load(path)
        simplified, _ = onnxsim.simplify(onnx.inliner.inline_local_functions(model) if model.functions else model)
    except Exception:
        return None
    return simplified  # type: ignore[no-any-return]


def _by_onnxruntime(path: Path) -> onnx.ModelProto | None:
    """The model after ONNX Runtime's extended level, None where it refuses the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    target = path.with_name("optimized.onnx")
    options.optimized_model_filepath = str(target)
    try:
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return onnx.load(target)
    except Exception:
        return None
    finally:
        for written in path.parent.glob("optimized.onnx*"):
            written.unlink()


def _computes_the_same(name: str, path: Path, model: onnxlab.Model) -> bool:
    feeds = corpus.inputs(name, path)
    saved = model.save(path.with_name("simplified.onnx"))
    try:
        before, after = _outputs(path, feeds), _outputs(saved, feeds)
    finally:
        for written in path.parent.glob("simplified.onnx*"):
            written.unlink()
    return all(_is_same(array, other) for array, other in zip(before, after, strict=True))


def _outputs(path: Path, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: array for name, array in feeds.items() if name in names}))


def _is_same(array: Any, other: Any) -> bool:
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        return bool(np.array_equal(np.asarray(array), np.asarray(other)))
    peak = float(np.nanmax(np.abs(array), initial=0.0))
    return array.shape == other.shape and bool(np.allclose(array, other, rtol=0, atol=TOLERANCE * peak, equal_nan=True))


# -- time ------------------------------------------------------------------------------------------------------------


def _least(repeats: int, run: Callable[..., Any], *arguments: Any) -> float:
    """The least processor time of a few calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run(*arguments)
        best = min(best, time.process_time() - start)
    return best


def _speed() -> Iterator[Line]:
    """Time on the corpus's largest graph; onnxsim checks nothing by default."""
    path = corpus.path(TIMED)
    plain = theirs = float("inf")
    for _ in range(3):
        model = onnxlab.load(path)
        plain = min(plain, _least(1, lambda subject: subject.simplify(verify=False), model))
        proto = onnx.load(path)
        theirs = min(theirs, _least(1, _by_onnxsim_of, proto))
    model = onnxlab.load(path)
    verified = _least(1, model.simplify)
    if theirs < float("inf"):
        yield Row(f"simplify {TIMED}", plain, theirs, "onnxsim", 1.0)
        yield Row(f"simplify {TIMED}, verified", verified, theirs, "onnxsim", 10.0)


def _by_onnxsim_of(proto: onnx.ModelProto) -> None:
    import onnxsim

    onnxsim.simplify(proto)


def _matching() -> Iterator[Line]:
    """The whole table over a graph of 12,000 nodes, the reason at one node, and matching again after an edit."""
    model = onnxlab.load(corpus.path("deep_chain_12k"))
    rules = worklist.Rules(built_in_rules.STANDARD)

    def all_nodes(held: Rewriting) -> None:
        for node in held.nodes():
            makers = worklist.makers_of(held, node)
            for rule in rules.of(node):
                if isinstance(rule, Rule):
                    rule.find(held, node, makers)

    yield Figure("12,000 nodes × the whole table", _least(3, lambda: all_nodes(rewriting_of(model))), "s", at_most=0.25)
    swin = onnxlab.load(corpus.path(TIMED))
    nodes = [node for node in swin.nodes if node.op_type in ("Add", "Mul", "Div")][:200]
    worst = max(_least(2, swin.why_not, node, "gelu") for node in nodes)
    yield Figure("why a rule does not apply at a node", 1000 * worst, "ms", at_most=5, note=f"worst of {len(nodes)}")
    worst = max(_least(3, swin.near_misses, node) for node in nodes)
    yield Figure("what almost applies at a node", 1000 * worst, "ms", at_most=5, note=f"worst of {len(nodes)}")
    live = swin.matches()
    live.counts  # noqa: B018 (the first look is at all nodes)
    seconds = [_matched_again(live, node) for node in nodes[::5]]
    yield Figure("matching again after an edit", 1000 * float(np.median(seconds)), "ms", at_most=5,
                 note=f"of {len(seconds)}; worst {1000 * max(seconds):.2g}, where all shapes change")  # fmt: skip


def _matched_again(live: LiveMatches, node: Any) -> float:
    """Time to know where rules match after an operator became another one; the least of two such edits."""
    times = []
    for op_type in ("Max", "Min"):
        node.op_type = op_type
        times.append(_least(1, lambda: live.counts))
    return min(times)


# -- trust -----------------------------------------------------------------------------------------------------------


def _trust() -> Iterator[Line]:
    caught = sum(is_refused(name) for name in WRONG)
    yield Figure("wrong rewrites that are refused", caught, at_least=len(WRONG), note=f"of {len(WRONG)}")
    total = missed = 0
    for rule in built_in_rules.STANDARD:
        if isinstance(rule, Rule):
            reasons = [named(defect, rule) for defect in defects(proto_of(EXAMPLES[rule.name]), rule)]
            total, missed = total + len(reasons), missed + sum(map(bool, reasons))
    yield Figure("planted near misses that are named", (total - missed) / total, at_least=0.95, note=f"of {total}")
    different = sum(_differs(seed) for seed in range(REGIONS))
    yield Figure("random regions that compute otherwise", different, at_most=0, note=f"of {REGIONS}")


def _differs(seed: int) -> bool:
    """Whether the standard set changes what a random region computes."""
    proto = region(seed)
    model = onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString()))
    before = onnxlab.load(proto)
    cases = verification.cases(before.run, [before.sample_inputs(seed=seed)])
    model.optimize("layout", microsoft=True, verify=False)
    judged = verification.judge_with_noise(model.run, cases, lambda: rounded_runs(before.graph, before.inference.fact))
    return judged.verdict in ("different", "finite inputs only")
