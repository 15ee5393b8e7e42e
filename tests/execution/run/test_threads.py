"""Many threads, one model."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.changes import SetAttribute
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos.attributes import encode
from onnxlab.limits import Limits
from tests.execution.support.models import CHAIN, node, runner


def expected(x, alpha=None):
    a = np.maximum(x, 0) if alpha is None else np.where(x < 0, np.float32(alpha) * x, x)
    return -(a + x) * a


def test_eight_threads_with_their_own_inputs():
    run = runner(CHAIN)

    def many(seed):
        rng = np.random.default_rng(seed)
        wrong = 0
        for turn in range(60):
            x = rng.standard_normal((3 + seed, 4)).astype(np.float32)
            results = run.run({"x": x}, keep=turn % 2 == 0)["d"]
            wrong += not np.array_equal(results, expected(x))
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(many, range(8))) == 0


@pytest.mark.slow
def test_a_real_model_in_eight_threads(corpus, feeds):
    path = corpus["magika"]
    run = Runner(ModelGraph(onnx.load(path), path.parent))
    inputs = feeds("magika")
    expected_arrays = run.run(inputs, keep=False)

    def many(_):
        results = [run.run(inputs, keep=False) for _ in range(4)]
        return all(np.array_equal(f[name], expected_arrays[name]) for f in results for name in f)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(many, range(8)))


def test_edits_while_running_never_mix_versions():
    run = runner(CHAIN.replace("Relu (x)", "LeakyRelu <alpha = 0.0> (x)"))
    maker = node(run, "a")
    alphas = [0.0, 0.25, 0.5]
    x = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    allowed = [expected(x, alpha) for alpha in alphas]

    def edit():
        for turn in range(200):
            run.graph.apply(SetAttribute(maker, "alpha", encode("alpha", alphas[turn % 3])))

    def many(_):
        results = [run.run({"x": x})["d"] for _ in range(100)]
        return all(any(np.array_equal(f, w) for w in allowed) for f in results)

    with ThreadPoolExecutor(4) as pool:
        editing = pool.submit(edit)
        assert all(pool.map(many, range(3)))
        editing.result()
    np.testing.assert_array_equal(run.run({"x": x})["d"], allowed[199 % 3])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_runs_with_threads_of_its_own():
    run = runner("g (float[n] x) => (float[n] y) { y = Relu (x) }")
    feeds = {"x": np.ones(4_000_000, np.float32)}
    run.run(feeds, keep=False)  # leaves an idle worker, which a forked child does not have
    child = os.fork()
    if not child:
        results = run.run(feeds, keep=False, limits=Limits(deadline=20))
        os._exit(0 if results["y"][0] == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
