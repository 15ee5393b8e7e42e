"""Facts of the corpus and of random models, and whether they are true of real runs."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Figure, Line
from bench.models import CORPUS
from tests.infer.live.test_coverage import DEPENDS_ON_DATA, coverage
from tests.infer.live.test_truth import corpus_contradictions, optimized, random_contradictions
from tests.infer.support.hostile_models import MODELS
from tests.support import conformance
from tests.support.corpus import NAMES, inputs
from tests.support.oracle import Oracle

RANDOM_MODELS = 2000


def rows() -> Iterator[Line]:
    """Coverage of the corpus, contradictions to onnxruntime, and onnx's own tests where ONNX_CHECKOUT tells where."""
    yield from covered()
    yield corpus_truth()
    yield optimized_truth()
    yield from random_truth()
    yield from hostile()
    if "ONNX_CHECKOUT" in os.environ:
        yield onnx_tests(os.environ["ONNX_CHECKOUT"])


def covered() -> Iterator[Figure]:
    """Means over the models, and the models below 95 % that nothing explains."""
    shares = {name: coverage(CORPUS[name]) for name in NAMES}
    ranks = [100 * rank for rank, _ in shares.values()]
    dims = [100 * known for _, known in shares.values()]
    note = f"mean of {len(shares)} models, no value_info"
    yield Figure("values of known rank", sum(ranks) / len(ranks), "%", at_least=99.5, note=note)
    yield Figure("values whose dims follow from the inputs", sum(dims) / len(dims), "%", at_least=97, note=note)
    low = {name for name, (_, known) in shares.items() if known < 0.95}
    yield Figure(
        "models below 95 % of dims without a reason",
        len(low - set(DEPENDS_ON_DATA)),
        at_most=0,
        note=", ".join(sorted(low)),
    )


def corpus_truth() -> Figure:
    """Count facts of the corpus that contradict ONNX Runtime's values."""
    wrong, runs = 0, 0
    for name in NAMES:
        ort_run = Oracle()  # of one model: together they would keep some gigabytes of arrays
        contradictions, count = corpus_contradictions(CORPUS[name], inputs(name, CORPUS[name]), ort_run, twice=True)
        wrong, runs = wrong + len(contradictions), runs + count
    return Figure("facts that a run of the corpus contradicts", wrong, at_most=0, note=f"{runs} runs of {len(NAMES)}")


def optimized_truth() -> Figure:
    """The corpus as ONNX Runtime's optimizer writes it: fused, quantized and in blocks, as this processor likes it."""
    wrong, runs, refused = 0, 0, 0
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = optimized(CORPUS[name], Path(folder), everything=True)
                contradictions, count = corpus_contradictions(path, inputs(name, CORPUS[name]), Oracle(), twice=True)
            except Exception:  # of onnxruntime, which may not read what it wrote
                refused += 1
                continue
            wrong, runs = wrong + len(contradictions), runs + count
    note = f"{runs} runs of {len(NAMES) - refused}; onnxruntime refuses {refused} more"
    return Figure("facts that a run of an optimized model contradicts", wrong, at_most=0, note=note)


def random_truth() -> Iterator[Figure]:
    """Count facts of random models that contradict ONNX Runtime's values."""
    contradictions: list[list[str]] = []
    seeds = 0
    while len(contradictions) < RANDOM_MODELS and seeds < 2 * RANDOM_MODELS:
        wrong = random_contradictions(seeds)
        seeds += 1
        if wrong is not None:
            contradictions.append(wrong)
    note = f"{len(contradictions)} models, each at two sizes; onnxruntime refuses {seeds - len(contradictions)} more"
    yield Figure("facts that a run of a random model contradicts", sum(map(len, contradictions)), at_most=0, note=note)


def hostile() -> Iterator[Figure]:
    """Each hostile model in a process of its own: facts, and both modes of the drop-in."""
    measures = {name: alone(name) for name in MODELS}
    slowest, largest = (max(measures, key=lambda name: measures[name][which]) for which in (0, 1))
    note = f"of {len(MODELS)} hostile models, inferred three ways"
    yield Figure("the slowest answer", measures[slowest][0], "s", at_most=2, note=f"{note}: {slowest}")
    memory = "the most memory, Python and onnx included"
    yield Figure(memory, measures[largest][1], "MB", at_most=500, note=f"{note}: {largest}")


def alone(name: str) -> tuple[float, float]:
    """Seconds and megabytes of one hostile model."""
    command = [sys.executable, "-m", "bench.inference_hostile", name]
    seconds, megabytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(megabytes)


def onnx_tests(checkout: str) -> Figure:
    """Count onnx's own inference tests that fail without a listed reason."""
    failed, total = conformance.unexplained(checkout)
    return Figure(
        "onnx's inference tests that fail without a reason", failed, at_most=0, note=f"of {total} that onnx passes"
    )
