import os
import re
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import onnxlab.ops
from onnxlab import ops
from onnxlab.execution.base import blas
from onnxlab.execution.base.provider import Capabilities, Provider, Step, SubgraphClaim
from onnxlab.execution.numpy.provider import NumpyProvider
from tests.execution.support.models import CHAIN, runner


@pytest.fixture(autouse=True)
def nothing_runs():
    """Wait for the kernel of a run that a test before this one left: it goes on, and holds the number of threads."""
    until = time.monotonic() + 60
    while blas._active:
        assert time.monotonic() < until
        time.sleep(0.01)


def threads():
    return [library.get_num_threads() for library in blas.libraries()]


def seen_in_a_run(**options):
    """BLAS threads while a node is run."""
    seen = []

    class Looker(Provider):
        name = "looker"

        def get_capability(self, view):
            return [SubgraphClaim(tuple(node.id for node in view.nodes))]

        def compile(self, part, view):
            return lambda context, *arrays: (seen.append(threads()), list(arrays))[1]

    providers = [Looker(), NumpyProvider()]
    run = runner("g (float[1] x) => (float[1] y) { y = Relu (x) }", providers=providers, **options)
    for _ in range(2):
        run.run({"x": np.ones(1, np.float32)}, keep=False)
    return seen


def test_runs_use_one_thread_and_put_back_what_was():
    before = threads()
    assert seen_in_a_run() == [[1] * len(before)] * 2
    assert threads() == before


def test_runs_leave_blas_alone_where_asked():
    before = threads()
    assert seen_in_a_run(threads=0) == [before] * 2


def test_a_lower_limit_stays():
    with threadpool_limits(1, "blas"):
        assert seen_in_a_run(threads=3) == [[1] * len(threads())] * 2


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is only one core")
def test_runs_that_end_in_any_order_are_counted():
    before = threads()
    first, second = threading.Event(), threading.Event()

    def hold(until):
        with blas.limited(1):
            assert until.wait(100)

    holders = [threading.Thread(target=hold, args=[event]) for event in (first, second)]
    for holder in holders:
        holder.start()
        while set(threads()) != {1}:
            time.sleep(0.001)
    first.set()
    holders[0].join()
    assert set(threads()) == {1}
    with blas.limited(2):
        assert threads() == [min(2, count) for count in before]
    assert set(threads()) == {1}
    second.set()
    holders[1].join()
    assert threads() == before


def test_one_thread_beside_a_provider_with_its_own():
    class Threaded(NumpyProvider):
        capabilities = Capabilities(own_threads=True)

    assert runner(CHAIN, threads=2).programs.threads == 2
    assert runner(CHAIN, threads=2, providers=[Threaded(), NumpyProvider()]).programs.threads == 1
    assert runner(CHAIN, threads=0, providers=[Threaded(), NumpyProvider()]).programs.threads == 0


def test_modules_that_multiply_are_listed():
    """By their sources: `@`, the functions of NumPy that end in BLAS, bodies, and imports of modules that multiply."""
    folder = Path(onnxlab.ops.__file__).parent
    calls = re.compile(
        r"\w\)? @ \w|\b(matmul|einsum|tensordot)\(|\.dot\(|ctx\.run\(|ops\.onnx\.\w+\.(conv|matmul) import"
    )
    files = [file for file in folder.rglob("*.py") if calls.search(file.read_text())]
    modules = {".".join(file.relative_to(folder).with_suffix("").parts) for file in files}
    assert len(modules) > 20
    assert {name for name in modules if not name.endswith("_rules")} <= blas.MULTIPLYING


def test_what_cannot_reach_blas_is_known():
    assert not blas.may_use(np.add)
    assert blas.may_use(lambda x: x)
    assert blas.may_use(ops.find_kernel("", "If", 21).function)
    assert not blas.may_use(ops.find_kernel("ai.onnx.ml", "TreeEnsembleClassifier", 3).function)


@pytest.mark.parametrize("op_type", ["LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier"])
def test_kernels_bound_to_attributes_are_known_by_the_module_that_registers_them(op_type):
    entry = ops.find_kernel("ai.onnx.ml", op_type, 1)
    step = Step("a node", f"ai.onnx.ml::{op_type}", 1, entry.of({"coefficients": [0.0] * 5000}), ("x",), ("y",))
    assert blas.may_use(entry.function)
    assert blas.used_by(step)
    assert blas.is_shared(step, [])
    few = entry.of({"coefficients": [0.0] * 40})
    assert not blas.is_shared(Step("a node", op_type, 1, few, ("x",), ("y",)), [])
    assert not blas.may_use(ops.find_kernel("ai.onnx.ml", "Scaler", 1).of({"scale": [1.0]}))


def test_products_of_few_elements_are_left_to_the_caller_s_thread():
    def step(op_type, **attributes):
        call = partial(ops.find_kernel("", op_type, 21).function, **attributes)
        return Step("a node", op_type, 1, call, ("x", "w"), ("y",))

    assert not blas.is_shared(step("MatMul"), [np.zeros((64, 64))])
    assert blas.is_shared(step("MatMul"), [np.zeros((64, 65))])
    assert blas.is_shared(step("MatMul", weights=[0.0] * 5000), [])
    assert not blas.is_shared(step("ReduceSum"), [np.zeros((64, 65))])
    assert blas.used_by(step("ReduceMean"))
    assert not blas.used_by(step("ReduceSum"))
