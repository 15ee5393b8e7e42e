"""Programs made in the background: who answers meanwhile, what edits, errors and forks do to them."""

import gc
import os
import threading
import warnings

import numpy as np
import onnx
import pytest

from onnxlab.execution.base import background
from onnxlab.execution.base.provider import Capabilities, SubgraphClaim
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning.background_compile import FallbackPrograms
from onnxlab.execution.planning.compiler import ScopeCompiler
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from tests.execution.planning.test_decided_branches import feeds as branch_feeds
from tests.execution.planning.test_decided_branches import model as branch_model
from tests.execution.planning.test_decided_branches import parts
from tests.execution.support.internals import compilers_for_shapes, fallbacks_of
from tests.execution.support.regions import Both, Eager, assert_close

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
    y = Add (x, w)
    z = Mul (y, y)
}
"""


class Slow(NumpyProvider):
    """NumPy as one part, which has to be waited for; notes the threads that it was asked in."""

    name = "slow"
    capabilities = Capabilities(background=True)

    def __init__(self):
        self.threads, self.may_go_on, self.begun, self.parts = [], threading.Event(), threading.Event(), 0
        self.may_go_on.set()

    def prepare(self):
        self.threads.append(threading.current_thread())

    def get_capability(self, view):
        return [SubgraphClaim(tuple(node.id for node in view.nodes))]

    def compile(self, part, view):
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.may_go_on.wait(60)
        steps = super().compile(part, view)
        held = {name: view.constant(name) for node in part.nodes for name in node.inputs if name not in part.inputs}

        def call(context, *arrays):
            self.parts += 1
            known = held | dict(zip(part.inputs, arrays, strict=True))
            for step in steps:
                known[step.outputs[0]] = step.call(*(known[name] for name in step.inputs))
            return [known[name] for name in part.outputs]

        return call


def made(text=TEXT, provider=None):
    graph = ModelGraph(onnx.parser.parse_model(text))
    slow = provider or Slow()
    runner = Runner(graph, Inference(graph).fact, [slow, NumpyProvider()])
    graph.followers.append(runner.invalidate)
    return graph, runner, slow


def run(runner, keep=False, outputs=None):
    x = np.random.default_rng().standard_normal(2, dtype=np.float32)
    results = runner.run({"x": x}, outputs, keep=keep)
    y = x + runner.graph.array(runner.graph.main.names["w"])
    for name, expected in (("y", y), ("z", y * y)):
        if name in results:
            np.testing.assert_allclose(results[name], expected, rtol=1e-6)


def run_and_wait(runner, **options):
    run(runner, **options)
    assert background.wait(60)


def weigh(graph, factor=2):
    value = graph.values[graph.main.names["w"]]
    edits.set_initializer(graph, value, graph.array(value.id) * np.float32(factor))


@pytest.mark.parametrize("keep", [False, True])
def test_a_fallback_answers_until_a_program_is_made_in_the_background(keep):
    _, runner, slow = made()
    run(runner, keep)
    assert background.wait(60)
    assert slow.parts == 0
    for number in range(1, 4):
        run(runner, keep)
        assert slow.parts == number
    run(runner, keep, ["y"])  # other outputs are another program
    assert slow.parts == 3
    assert background.wait(60)
    run(runner, keep, ["y"])
    assert slow.parts == 4
    assert threading.main_thread() not in slow.threads


def test_the_background_thread_rests_while_a_run_finds_out_what_its_inputs_make_stale(monkeypatch):
    _, runner, _ = made()
    runs, counts, before = set(), [], runner._requested

    def requested(*arguments):
        counts.append(len(runs))
        return before(*arguments)

    monkeypatch.setattr(background, "_runs", runs)
    monkeypatch.setattr(runner, "_requested", requested)
    run_and_wait(runner, keep=True)
    assert counts == [1]
    assert not runs


def test_the_nodes_of_a_stand_in_are_not_looked_for_again(monkeypatch):
    views, before = [], ScopeCompiler.view

    def viewed(scope, *arguments, **options):
        views.append(threading.current_thread())
        return before(scope, *arguments, **options)

    monkeypatch.setattr(ScopeCompiler, "view", viewed)
    graph, facts = ModelGraph(onnx.parser.parse_model(TEXT)), [0]
    slow = Slow()
    runner = Runner(graph, Inference(graph).fact, [slow, NumpyProvider()], facts=lambda: facts[0])
    graph.followers.append(runner.invalidate)
    run_and_wait(runner)
    assert views == [threading.main_thread()]
    run(runner)
    assert slow.parts == 1
    for number in range(2, 5):
        facts[0] = number  # other facts may mean other nodes
        weigh(graph)
        run_and_wait(runner)
        run(runner)
        assert len(views) == number
        assert slow.parts >= number
    run_and_wait(runner, outputs=["y"])
    assert len(views) == number + 1


@pytest.mark.parametrize("keep", [False, True])
def test_edits_while_a_program_is_made_are_seen_and_it_is_thrown_away(keep):
    graph, runner, slow = made()
    slow.may_go_on.clear()
    run(runner, keep)
    assert slow.begun.wait(60)
    weigh(graph)
    run(runner, keep)  # asks again
    slow.may_go_on.set()
    assert background.wait(60)
    assert slow.parts == 0
    run(runner, keep)
    assert slow.parts == 1


@pytest.mark.parametrize("keep", [False, True])
def test_after_an_edit_what_was_made_quickly_is_made_at_once(keep):
    graph, runner, slow = made()
    run(runner, keep)
    assert background.wait(60)
    times = fallbacks_of(runner).tier.took
    run(runner, keep)
    for whole, instead, ran in ((0.01, 0.0, 2), (0.5, 0.6, 3), (0.5, 0.1, 3)):
        weigh(graph)
        times.update({who: whole if len(who[0]) > 1 else instead for who in times})
        run(runner, keep)
        assert slow.parts == ran
    assert background.wait(60)
    run(runner, keep)
    assert slow.parts == 4


@pytest.mark.parametrize(("seconds", "ran"), [(1.0, 1), (3.0, 2)])
def test_after_an_edit_what_is_made_in_little_of_its_stand_ins_run_is_made_at_once(seconds, ran):
    graph, runner, slow = made()
    run_and_wait(runner)
    run(runner)
    fallbacks = fallbacks_of(runner)
    (key,) = fallbacks.tier.instead
    fallbacks.tier.instead[key] = seconds
    fallbacks.tier.took.update({who: 0.5 if len(who[0]) > 1 else 0.0 for who in fallbacks.tier.took})
    weigh(graph)
    run(runner)
    assert slow.parts == ran
    assert background.wait(60)


def test_no_run_is_answered_by_a_fallback_for_good(monkeypatch):
    _, runner, slow = made()
    original = FallbackPrograms.program

    def overtaken(self, *args):
        program = original(self, *args)
        self.begin()  # another thread's run ends here
        assert background.wait(60)
        return program

    monkeypatch.setattr(FallbackPrograms, "program", overtaken)
    run(runner)
    run(runner)
    assert slow.parts == 1


def test_what_cannot_be_prepared_is_told_once_and_done_without():
    class Broken(Slow):
        def prepare(self):
            raise OSError("no compiler here")

    graph, runner, slow = made(provider=Broken())
    with pytest.warns(UserWarning, match="no compiler here"):
        run_and_wait(runner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            run_and_wait(runner)
            weigh(graph)
    assert slow.parts == 0


@pytest.mark.slow
def test_nothing_is_made_for_a_model_that_is_gone():
    blocker = threading.Event()
    background.do(lambda: blocker.wait(60))
    _, runner, slow = made()
    run(runner)
    del runner, _
    gc.collect()
    blocker.set()
    assert background.wait(60)
    assert slow.threads == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_its_programs_made_too():
    _, runner, slow = made()
    slow.may_go_on.clear()
    run(runner)
    assert slow.begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test needs other threads
        child = os.fork()
    if child == 0:
        slow.may_go_on.set()
        run(runner, outputs=["z"])
        background.wait(60)
        run(runner, outputs=["z"])
        os._exit(slow.parts != 1)
    slow.may_go_on.set()
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert background.wait(60)


def test_threads_that_run_and_edit_get_right_values():
    graph, runner, slow = made()
    failed = []

    def work():
        try:
            for _ in range(50):
                x = np.ones(2, np.float32)
                y = runner.run({"x": x}, ["y"], keep=False)["y"] - x
                assert y[1] == 2 * y[0]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        weigh(graph, 2)
        weigh(graph, 0.5)
    for thread in threads:
        thread.join()
    assert not failed
    assert background.wait(60)
    run(runner)
    assert background.wait(60)
    run(runner)
    assert slow.parts > 0


def test_branches_that_shapes_decide_are_compiled_in_the_background():
    graph = ModelGraph(branch_model())
    fact = Inference(graph).fact
    hot, cold = Runner(graph, fact, [Eager(background=True), NumpyProvider()]), Runner(graph, fact)
    fed = branch_feeds(2, 1, 8)
    for _ in range(5):
        actual, expected = hot.run(fed, keep=False)["y"], cold.run(fed, keep=False)["y"]
        assert_close(actual, expected, 2e-6)
        assert background.wait(120)
    assert ("numba", True) in [(provider, "MatMul" in operators) for provider, operators in parts(hot)]
    (compiler,) = compilers_for_shapes(hot)
    assert len(compiler.programs) == 1


def test_weights_inside_a_compiled_part_are_seen_by_runs_that_keep_values():
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[4] x) => (float[4] z) <float[4] w = {1, 2, 3, 4}> { y = Mul (x, w)  z = Tanh (y) }
    """
    both = Both(onnx.parser.parse_model(text))
    both.hot.graph.followers.append(both.hot.invalidate)
    fed = {"x": np.full(4, 0.1, np.float32)}
    for _ in range(3):
        assert_close(both.hot.run(fed)["z"], both.cold.run(fed, keep=False)["z"], 2e-6)
        weigh(both.hot.graph)
