"""Ctrl-C during a run: back within a second, nothing mixed up."""

import itertools
import random
import signal
import threading
import time

import numpy as np
import pytest

from onnxlab.graph.edit.changes import SetAttribute
from onnxlab.graph.protos.attributes import encode
from tests.execution.base.test_bounds import FEEDS, endless
from tests.execution.support.models import fastest, node, runner, value

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread only"
)


@pytest.fixture(autouse=True)
def python_handles_sigint():
    """The workers of pytest-xdist ignore SIGINT; a notebook's kernel and a shell do not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_after(seconds):
    """SIGINT for this process, as Ctrl-C and Jupyter's stop button send it."""
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()
    return timer


def test_an_endless_loop_gives_the_prompt_back():
    run = endless()

    def attempt():
        interrupt_after(0.2)
        with pytest.raises(KeyboardInterrupt):
            run.run(FEEDS)

    assert fastest(attempt) < 1.0
    assert len(run.store) == 0


def test_a_long_kernel_gives_the_prompt_back():
    run = runner("g (float[n, n] x) => (y) { a = MatMul (x, x) b = MatMul (a, x) c = MatMul (b, x) y = MatMul (c, x) }")
    x = np.ones((4000, 4000), np.float32)

    def attempt():
        interrupt_after(0.1)
        with pytest.raises(KeyboardInterrupt):
            run.run({"x": x})

    assert fastest(attempt) < 1.0


@pytest.mark.slow
def test_at_random_moments_the_store_stays_right():
    """Runs, edits and interrupts: whatever was cut off, the next run is what a fresh one gives."""
    names = [f"v{i}" for i in range(40)]
    nodes = "\n".join(f"{b} = LeakyRelu <alpha = 0.5> ({a})" for a, b in itertools.pairwise(names))
    run = runner(f"g (float[64, 64] v0) => (float[64, 64] v39) {{ {nodes} }}")
    rng = random.Random(0)
    arrays = np.random.default_rng(0)
    interrupted = 0
    for _ in range(200):
        x = arrays.standard_normal((64, 64)).astype(np.float32)
        try:
            timer = interrupt_after(rng.uniform(0, 0.004))
            alpha = rng.uniform(0.1, 0.9)
            run.graph.apply(SetAttribute(node(run, rng.choice(names[1:])), "alpha", encode("alpha", alpha)))
            run.run({"v0": x}, [rng.choice(names)])
            timer.join()
            time.sleep(0.001)  # Python delivers a signal a moment after it was raised
        except KeyboardInterrupt:
            interrupted += 1
        expected = run.run({"v0": x}, names, keep=False)
        results = run.run({"v0": x}, names)
        assert all(np.array_equal(expected[name], results[name]) for name in names)
    assert interrupted > 50
    assert run.store.fresh(value(run, "v39"))
