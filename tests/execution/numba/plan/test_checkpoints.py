"""Runs after edits that begin with what the run before noted: bit by bit what a fresh provider gives."""

import threading
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onnxlab
from onnxlab.errors import RunStopped
from onnxlab.execution.numba.plan import checkpoints, plan
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from onnxlab.graph.edits import bypassing
from onnxlab.limits import Limits
from tests.execution.numba.plan.test_weight_packing import WEIGHTS, network
from tests.execution.support.internals import programs_of
from tests.execution.support.random_regions import Drawing
from tests.execution.support.regions import Eager, Recipe

begun = []  # first records of the runs that take checkpoints


@contextmanager
def noting_everything():
    """Every run is worth it, before every step a state may be noted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onnxlab.execution.numba.plan.plan._LONG", 0)
        patch.setattr(checkpoints, "_SPANS", 1000)
        patch.setattr(checkpoints, "_SHARE", 1e9)
        before = checkpoints.ResumedRun.begin
        patch.setattr(
            checkpoints.ResumedRun, "begin", lambda self, *args: (begun.append(self.first), before(self, *args))[1]
        )
        yield


@pytest.fixture(scope="module", autouse=True)
def short_runs_too():
    with noting_everything():
        yield


class Edited:
    """A model whose runner outlives edits, and feeds that may change in place."""

    def __init__(self, proto, feeds, threads=1):
        self.model = onnxlab.load(proto)
        self.graph = self.model.graph
        self.threads = threads
        self.feeds = feeds
        self.pins = {}
        self.runner = self.fresh()
        self.check()

    def fresh(self):
        return Runner(self.graph, self.model.inference.fact, (Eager(self.threads), NumpyProvider()))

    def check(self):
        begun.clear()
        ours = self.runner.run(self.feeds, keep=False)
        first_records, begun[:] = begun[:], []
        fresh = self.fresh()
        for name, array in self.pins.items():
            fresh.pin(name, array)
        assert str(self.runner.partition()) == str(fresh.partition()), "what was judged before the edit still holds"
        theirs = fresh.run(self.feeds, keep=False)
        assert not begun, "a fresh provider has no run to go on from"
        for name, array in theirs.items():
            np.testing.assert_array_equal(ours[name], array, err_msg=name)
            if isinstance(ours[name], np.ndarray) and ours[name].dtype.kind == "f":
                ours[name][...] = np.nan  # the caller may write to its own array
        return first_records

    def weigh(self, name, rng):
        value = next(value for value in self.graph.values.values() if value.name == name)
        before = self.graph.array(value.id)
        edits.set_initializer(self.graph, value, rng.standard_normal(before.shape).astype(before.dtype))

    def node(self, op_type):
        return next((node for node in self.graph.nodes.values() if node.op_type == op_type), None)


@pytest.fixture
def edited():
    rng = np.random.default_rng(5)
    return Edited(network(rng), {"image": rng.standard_normal((1, 16, 14, 14), dtype=np.float32)})


def test_only_what_an_edit_reaches_is_run_again(edited):
    rng = np.random.default_rng(1)
    edited.weigh("deep", rng)
    assert edited.check() == [0], "the first edit notes"
    for name in ("q", "deep"):
        edited.weigh(name, rng)
        (first,) = edited.check()
        assert first > 0
    edited.weigh("wide", rng)
    assert edited.check() == [1], "behind the image's copy in another layout"
    assert edited.check() == [], "without an edit all is run"


def test_other_feeds_are_run_from_the_start(edited):
    rng = np.random.default_rng(2)
    edited.weigh("q", rng)
    edited.check()
    edited.weigh("q", rng)
    edited.feeds["image"][0, 3, 2, 1] += 1
    assert edited.check() == [0]
    edited.weigh("q", rng)
    edited.feeds["image"] = edited.feeds["image"].copy()
    assert edited.check() != [0], "equal arrays are as good as the same"


EDITS = st.one_of(
    st.tuples(st.just("weigh"), st.sampled_from((*WEIGHTS, "bias", "scale", "shift", "row"))),
    st.tuples(st.just("alpha"), st.sampled_from(("LeakyRelu", "Gemm"))),
    st.tuples(st.just("rewire"), st.just("")),
    st.tuples(st.just("retype"), st.sampled_from((np.float16, np.float32, np.float64, np.int8, np.int64))),
    st.tuples(st.just("bypass"), st.sampled_from(("Relu", "LeakyRelu"))),
    st.tuples(st.sampled_from(("undo", "redo")), st.just("")),
)
FEEDS = st.sampled_from(("same", "same", "same", "in place", "other", "larger", "pinned"))


def edit(edited, kind, target, rng):
    if kind == "weigh":
        edited.weigh(target, rng)
    elif kind == "alpha" and edited.node(target) is not None:
        edits.set_attribute(edited.graph, edited.node(target), "alpha", float(rng.uniform(0.1, 0.9)))
    elif kind == "retype":  # the inputs of the Cast to float32
        value = next(value for value in edited.graph.values.values() if value.name == "half")
        edits.set_initializer(edited.graph, value, (rng.standard_normal((24, 24)) * 3).astype(target))
    elif kind == "rewire":  # the joined products change places
        met = edited.node("Mul")
        edits.set_inputs(edited.graph, met, [edited.graph.values[value].name for value in reversed(met.inputs)])
    elif kind == "bypass" and edited.node(target) is not None:
        with edited.graph.edit("bypass"):
            bypassing.bypass_node(edited.graph, edited.node(target))
    elif kind in ("undo", "redo"):
        getattr(edited.graph, kind)()


def feed(edited, kind, rng):
    image = edited.feeds["image"]
    if edited.pins:
        edited.runner.unpin()
        edited.pins.clear()
    if kind == "pinned" and len(image) == 1:
        edited.pins["v3"] = rng.standard_normal((1, 16, 6, 6), dtype=np.float32)
        edited.runner.pin("v3", edited.pins["v3"])
    elif kind == "in place":
        image[0, :, 3] *= rng.standard_normal()
    elif kind in ("other", "larger"):
        edited.feeds["image"] = rng.standard_normal((2 if kind == "larger" else 1, 16, 14, 14), dtype=np.float32)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.lists(EDITS, min_size=1, max_size=3), FEEDS), min_size=3, max_size=7),
    st.sampled_from((1, 2)),
    st.integers(0, 99),
)
def test_random_edits_give_what_a_fresh_provider_gives(rounds, threads, seed):
    rng = np.random.default_rng(seed)
    proto = network(rng)
    edited = Edited(proto, {"image": rng.standard_normal((1, 16, 14, 14), dtype=np.float32)}, threads)
    for steps, feeds in rounds:
        for kind, target in steps:
            edit(edited, kind, target, rng)
        feed(edited, feeds, rng)
        edited.check()


@pytest.mark.parametrize("chunk", range(4))
def test_edits_of_random_regions(chunk):
    later = 0
    for seed in range(chunk * 10, chunk * 10 + 10):
        later += resumed(seed)
    assert later > 6


def resumed(seed, rounds=4):
    """The number of runs after edits of constants in a drawn network that began later than with the first record."""
    rng = np.random.default_rng(seed)
    drawing = Drawing(seed, nodes=6 + seed % 9)
    edited = Edited(drawing.model(), drawing.feeds, 1 + seed % 2)
    held = [value for value in edited.graph.values.values() if edited.graph.array(value.id) is not None]
    floats = [value for value in held if edited.graph.array(value.id).dtype == np.float32]
    first_records = []
    for _ in range(rounds if floats else 0):
        value = floats[rng.integers(len(floats))]
        edits.set_initializer(edited.graph, value, edited.graph.array(value.id) * np.float32(rng.uniform(0.5, 1.5)))
        first_records += edited.check()
    return sum(first > 0 for first in first_records)


def test_outputs_on_the_way_are_brought_back():
    rng = np.random.default_rng(3)
    recipe = Recipe()
    x = recipe.input("x", np.zeros((5, 24), np.float32))
    early = recipe.node("Tanh", recipe.node("MatMul", x, recipe.constant(rng.random((24, 24), np.float32))))
    late = recipe.node("MatMul", early, recipe.constant(rng.random((24, 8), np.float32)))
    edited = Edited(recipe.model(early, late), {"x": rng.random((5, 24), np.float32)})
    for _ in range(3):
        edited.weigh("c1", rng)
        first_records = edited.check()
    assert first_records[0] > 0


def test_parts_that_numpy_separates_go_on_each_by_itself():
    rng = np.random.default_rng(4)
    recipe = Recipe()
    x = recipe.input("x", np.zeros((5, 24), np.float32))
    x = recipe.node("MatMul", x, recipe.constant(rng.random((24, 24), np.float32)))
    x = recipe.node("CumSum", x, recipe.constant(np.array(1)))
    x = recipe.node("MatMul", x, recipe.constant(rng.random((24, 8), np.float32)))
    edited = Edited(recipe.model(x), {"x": rng.random((5, 24), np.float32)})
    edited.weigh("c2", rng)
    assert edited.check() == [0, 0]
    edited.weigh("c2", rng)
    assert max(edited.check()) > 0


def test_threads_that_run_after_an_edit_do_not_disturb_each_other(edited):
    rng = np.random.default_rng(6)
    feeds = [{"image": rng.standard_normal((1, 16, 14, 14), dtype=np.float32)} for _ in range(3)]
    for name in ("q", "deep", "q", "k"):
        edited.weigh(name, rng)
        results = [None] * 9

        def work(number, results=results):
            results[number] = edited.runner.run(feeds[number % 3], keep=False)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fresh = edited.fresh()
        for number, outputs in enumerate(results):
            for key, array in fresh.run(feeds[number % 3], keep=False).items():
                np.testing.assert_array_equal(outputs[key], array)  # type: ignore[index]


def test_a_budget_without_room_for_notes_is_no_reason_to_fail(edited, monkeypatch):
    edited.weigh("q", np.random.default_rng(7))
    needed = []
    reserve = Limits.reserve
    monkeypatch.setattr(Limits, "reserve", lambda self, n, text="": (needed.append(self.held + n), reserve(self, n))[1])
    begun.clear()
    edited.runner.run(edited.feeds, keep=False)
    noted = max(needed)
    edited.weigh("q", np.random.default_rng(8))
    begun.clear()
    edited.feeds["image"] += 1
    edited.runner.run(edited.feeds, keep=False, limits=Limits(bytes=noted - 1000))
    assert not begun


def test_a_run_that_was_stopped_leaves_the_notes_of_before(edited, monkeypatch):
    rng = np.random.default_rng(9)
    edited.weigh("q", rng)
    edited.check()
    edited.weigh("narrow", rng)
    (pasts, *_) = [region._packed.shared.pasts for region in regions(edited.runner)]
    before = list(pasts.values())

    def stop(self, record, arena, outputs):
        raise RunStopped("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.ResumedRun, "passed", stop)
        with pytest.raises(RunStopped):
            edited.runner.run(edited.feeds, keep=False)
    assert list(pasts.values()) == before
    edited.weigh("deep", rng)
    assert edited.check()[0] > 0
    assert pasts.nbytes <= checkpoints._LEAST


def test_a_run_after_an_edit_takes_over_the_memory_of_the_runs_before(edited, monkeypatch):
    rng, new = np.random.default_rng(10), []
    frame = plan.PlanFrame.__init__
    monkeypatch.setattr(plan.PlanFrame, "__init__", lambda self, *args: (new.append(args), frame(self, *args))[1])
    for name in ("q", "deep", "wide"):
        edited.weigh(name, rng)
        edited.graph.undo()
        edited.graph.redo()
        edited.runner.run(edited.feeds, keep=False)
    assert not new
    edited.check()
    assert len(new) == 1, "a fresh provider has none to take over"


def test_inputs_that_are_kept_anyway_are_not_copied_again(edited):
    rng, (name,) = np.random.default_rng(11), edited.feeds
    edited.runner.run(edited.feeds, keep="border")
    edited.weigh("q", rng)
    edited.runner.run(edited.feeds, keep="border")
    (pasts, *_) = [region._packed.shared.pasts for region in regions(edited.runner)]
    held = {id(array) for past in pasts.values() for array in past.inputs}
    stored = edited.runner.value(name)
    assert id(stored) in held
    assert stored is not edited.feeds[name]
    assert not stored.flags.writeable
    edited.feeds[name] *= 2  # of the caller alone
    edited.weigh("q", rng)
    assert edited.check() == [0]


def regions(runner):
    programs = programs_of(runner)
    return [
        instruction.call
        for program in programs
        for instruction in program.instructions
        if hasattr(instruction.call, "_packed")
    ]
