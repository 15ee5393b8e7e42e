"""Values that a run left unkept, looked at afterwards: by the part that makes them, from what was kept."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxlab
from onnxlab.errors import LimitError, NotComputedError, RunError
from onnxlab.execution.base import blas
from onnxlab.execution.numba.plan import checkpoints
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numba.region import inner_values, region
from onnxlab.execution.numba.region.region import Region
from onnxlab.execution.program import constant_folding
from onnxlab.execution.run import noted_runs, values_on_demand
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.values_on_demand import AllValues
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from onnxlab.limits import Limits
from tests.execution.support.internals import By, plans_of, programs_of
from tests.execution.support.models import runner
from tests.execution.support.regions import Eager, Recipe, assert_close


def blocks(rng: np.random.Generator, layers: int = 3) -> tuple[Any, dict[str, Any], list[str]]:
    """Convolutions with a residual each; the model, feeds, and the names of all that the nodes make."""
    recipe = Recipe()
    x = rng.standard_normal((1, 8, 12, 12), dtype=np.float32)
    value = recipe.input("x", x)
    for _ in range(layers):
        weights = rng.standard_normal((8, 8, 3, 3), dtype=np.float32) / 8
        hidden = recipe.node("Relu", recipe.node("Conv", value, recipe.constant(weights), pads=[1, 1, 1, 1]))
        gate = recipe.node("Sigmoid", recipe.node("Mul", hidden, hidden))
        value = recipe.node("Add", recipe.node("Mul", gate, hidden), value)
    end = recipe.node("ReduceMean", value, recipe.constant(np.array([2, 3])), keepdims=0)
    return recipe.model(end), {"x": x}, [name for node in recipe.nodes for name in node.output]


def both(model: Any, **options: Any) -> tuple[By, Runner]:
    """A runner by compiled parts and one node by node, of one model and with stores of their own."""
    graph = ModelGraph(model)
    base = Runner(graph, Inference(graph).fact)
    graph.followers.append(base.invalidate)
    return By(base, [Eager(**options), "numpy"]), Runner(graph, Inference(graph).fact)


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of records, of all, of the runs that copied values inside of parts."""
    ran: list[int] = []
    passed = inner_values.CopyingCourse.passed

    def noting(self: Any, record: int, *others: Any) -> None:
        ran.append(record)
        passed(self, record, *others)

    monkeypatch.setattr(inner_values.CopyingCourse, "passed", noting)
    return ran


def test_every_value_is_that_of_a_run_node_by_node() -> None:
    model, feeds, names = blocks(np.random.default_rng(0))
    hot, cold = both(model)
    hot.run(feeds, keep="border")
    cold.run(feeds)
    assert len(hot.store) == 2, "the input and the output are kept, nothing else"
    for name in names:
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)


def test_a_value_takes_no_more_of_its_part_than_leads_to_it(pieces: list[int]) -> None:
    model, feeds, names = blocks(np.random.default_rng(1))
    hot, _ = both(model)
    hot.run(feeds, keep="border")
    middle = names[len(names) // 2]
    hot.on_demand.value(middle)
    (region,) = [instruction.call for program in programs_of(hot) for instruction in program.instructions]
    assert isinstance(region, Region)
    (plan,) = plans_of(region).values()
    assert 0 < max(pieces) < plan.records
    before = len(pieces)
    assert hot.on_demand.value(middle) is hot.on_demand.value(middle)
    assert len(pieces) == before, "what was looked at is kept"


@pytest.mark.parametrize("rate", [0.0, 1e12])
def test_outputs_of_short_runs_are_kept_where_copies_add_nothing(
    rate: float, pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_runs, "_BRIEF", 0.0)
    monkeypatch.setattr(noted_runs, "_RATE", rate)
    model, feeds, names = blocks(np.random.default_rng(11))
    hot, cold = both(model)
    cold.run(feeds)
    for _ in range(4):
        outputs = hot.run(feeds, keep="border")
    outputs[names[-1]][:] = 7  # the caller's own
    assert_close(hot.on_demand.value(names[-1]), cold.value(names[-1]), 1e-5)
    assert bool(pieces) is (rate == 0)


def test_many_looks_take_no_more_than_all_at_once(pieces: list[int]) -> None:
    model, feeds, names = blocks(np.random.default_rng(2), layers=12)
    hot, _ = both(model)
    hot.run(feeds, keep="border")
    looks = [hot.on_demand.value(name) for name in names]
    assert len(looks) == len(names)
    assert pieces.count(0) <= 4, "runs of the part"


def test_what_was_fed_may_be_written_to_afterwards() -> None:
    model, feeds, names = blocks(np.random.default_rng(3))
    hot, cold = both(model)
    x = feeds["x"].copy()
    for _ in range(3):
        outputs = hot.run({"x": x}, keep="border")
    x[:] = 0
    for array in outputs.values():
        array[:] = 7
    cold.run(feeds)
    for name in (names[4], names[-1]):
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)


def test_the_same_inputs_again_are_not_copied_and_stay_out_of_the_outputs() -> None:
    """Also where an output is an input: outputs are memory of their own, whatever the store keeps."""
    recipe = Recipe()
    same = recipe.node("Identity", recipe.input("x", np.zeros(64, np.float32)))
    graph = ModelGraph(recipe.model(same, recipe.node("Neg", same)))
    run = Runner(graph, Inference(graph).fact)
    x = np.arange(64, dtype=np.float32)
    run.run({"x": x.copy()}, keep="border", limits=Limits())
    first = run.value("x")
    for turn in range(3):
        results = run.run({"x": x.copy()}, keep="border", limits=Limits())
        assert run.value("x") is first
        for sign, array in zip((1, -1), results.values(), strict=True):
            np.testing.assert_array_equal(array, x * sign)
            array[:] = turn
    np.testing.assert_array_equal(run.value("x"), x)
    other = x + 1
    run.run({"x": other}, keep="border", limits=Limits())
    other[:] = 0
    np.testing.assert_array_equal(run.value("x"), x + 1)


def test_inputs_beyond_the_budget_are_neither_copied_nor_kept() -> None:
    model, feeds, names = blocks(np.random.default_rng(8))
    graph = ModelGraph(model)
    base = Runner(graph, Inference(graph).fact, keep_bytes=1000)
    outputs = base.run(feeds, keep="border", by=base.by(["numpy"]))
    assert outputs
    assert len(base.store) == 0
    with pytest.raises(NotComputedError):
        base.value(names[3])


def test_other_inputs_leave_nothing_of_those_before() -> None:
    model, feeds, names = blocks(np.random.default_rng(4))
    hot, cold = both(model)
    hot.run(feeds, keep="border")
    hot.on_demand.keep_all()
    others = {"x": feeds["x"] + 1}
    hot.run(others, keep="border")
    ids = {record.name: value for value, record in hot.graph.values.items()}
    assert {*hot.store} <= {ids["x"], ids[names[-1]]}, "the input, and the output where it was worth a copy"
    cold.run(others)
    for name in names[::3]:
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)


def test_all_values_of_other_inputs_take_no_second_room() -> None:
    model, feeds, names = blocks(np.random.default_rng(10))
    hot, cold = both(model)
    hot.run(feeds, keep="border")
    hot.on_demand.keep_all()
    before = weakref.ref(hot.store.get(hot.graph.main.names[names[3]]))
    others = {"x": feeds["x"] * np.float32(2)}
    hot.run(others, keep="border")
    hot.store.let_go()
    assert before() is None
    hot.on_demand.keep_all()
    assert len(hot.store) == len(names) + 1
    cold.run(others)
    for name in names:
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)
    hot.run(others, keep="border")
    hot.store.let_go()
    assert len(hot.store) == len(names) + 1, "of the same inputs"


def test_all_values_are_by_one_program_whether_or_not_a_run_kept_its_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = list[Any]()
    monkeypatch.setattr(noted_runs, "_BRIEF", 0.0)
    monkeypatch.setattr(
        values_on_demand, "AllValues", lambda program: (programs.append(program), AllValues(program))[1]
    )
    model, feeds, names = blocks(np.random.default_rng(12))
    hot, cold = both(model)
    for turn in range(6):
        monkeypatch.setattr(noted_runs, "_RATE", 1e12 * (turn % 2))
        feeds = {"x": feeds["x"] + np.float32(1)}
        hot.run(feeds, keep="border")
        hot.on_demand.keep_all()
    assert len(programs) == 1
    assert constant_folding.known_fold(programs[0]) is not None
    cold.run(feeds)
    for name in names:
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1 / 3, 40_000])
def test_halves_are_halves_and_infinite_where_they_are_too_large(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe()
    x = np.linspace(-2, 2, 64, dtype=np.float16).reshape(4, 16)
    w = recipe.constant(np.eye(16, dtype=np.float16) * np.float16(scale))
    hidden = recipe.node("Relu", recipe.node("MatMul", recipe.input("x", x), w))
    hot, cold = both(recipe.model(recipe.node("Mul", hidden, hidden)))
    for _ in range(2):  # the second run takes no time for compilation
        hot.run({"x": x}, keep="border", limits=Limits())
    cold.run({"x": x})
    monkeypatch.delattr(blas, "limited")  # compiled code alone, which needs nothing set for NumPy
    value = hot.on_demand.value(hidden)
    assert value.dtype == np.float16
    assert np.isinf(value).any() == (scale > 1)
    assert_close(value.astype(np.float32), cold.value(hidden).astype(np.float32), 2e-3)


def test_pins_hold_whatever_runs() -> None:
    model = onnxlab.load(blocks(np.random.default_rng(5))[0])
    feeds, pinned = model.sample_inputs(), np.full((1, 8, 12, 12), 2, np.float32)
    names = [node.outputs[0].name for node in model.nodes if node.op_type == "Relu"]
    expected = {}
    for providers in (None, ["numpy"], ["numba", "numpy"], [NumbaProvider(background=False, least=0)]):
        model.unpin()
        free = model.run(feeds, providers=providers)
        model.pin(names[1], pinned)
        (held,) = model.run(feeds, providers=providers).values()
        assert not np.allclose(held, *free.values())
        np.testing.assert_array_equal(model.values[names[1]], pinned)
        expected.setdefault("y", held)
        assert_close(held, expected["y"], 1e-5)


def test_a_deadline_ends_a_look() -> None:
    model, feeds, names = blocks(np.random.default_rng(6))
    hot, _ = both(model)
    hot.run(feeds, keep="border")
    with pytest.raises(LimitError):
        hot.on_demand.value(names[3], Limits(deadline=0.0))
    assert hot.on_demand.value(names[3]).shape == (1, 8, 12, 12)


def test_before_any_run_there_is_nothing() -> None:
    model = onnxlab.load(blocks(np.random.default_rng(7))[0])
    assert (len(model.values), list(model.values), "v3" in model.values) == (0, [], False)
    with pytest.raises(NotComputedError, match="has not been run yet"):
        model.values["v3"]
    model.run(model.sample_inputs())
    assert "v3" in model.values
    assert dict(model.values).keys() == {name for name, _ in model.values.items()} == {*model.values}


def test_a_failing_node_is_named_when_it_is_looked_at() -> None:
    run = runner("""g (float[2] x, int64[1] s) => (float[2] y, float[n] z) { y = Relu (x)
        w = Reshape (x, s) z = Neg (w) }""")
    run.run({"x": np.ones(2, np.float32), "s": np.array([5])}, ["y"], keep="border")
    with pytest.raises(RunError, match="Reshape"):
        run.value("w")


EDITS = [
    lambda graph: scale(graph, "c0", 1.5),
    lambda graph: scale(graph, "c1", -1),
    lambda graph: scale(graph, "c2", 0.5),
    lambda graph: graph.undo() if graph.history.labels else None,
]


def scale(graph: ModelGraph, name: str, factor: float) -> None:
    """Other weights."""
    record = graph.values[graph.main.names[name]]
    array = graph.array(record.id)
    assert array is not None
    edits.set_initializer(graph, record, array * np.float32(factor))


@contextmanager
def notes_in_every_run() -> Iterator[None]:
    """Runs of microseconds note states too, which takes longer than they do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onnxlab.execution.numba.plan.plan._LONG", 0)
        patch.setattr(checkpoints, "_ALWAYS", 1e9)
        patch.setattr(region, "_UNCOUNTED", -1)
        yield


def noted(hot: By) -> list[int]:
    """The records before which states are noted in every run, of the only part."""
    (part,) = [instruction.call for program in programs_of(hot) for instruction in program.instructions]
    (plan,) = plans_of(part).values()
    return [int(plan.trace.firsts[step]) for step in plan.cheap]


def test_looks_and_the_first_edit_go_on_from_what_a_run_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, looked = list[int](), list[int]()
    begin = checkpoints.ResumedRun.begin
    monkeypatch.setattr(
        checkpoints.ResumedRun, "begin", lambda self, *args: (begun.append(self.first), begin(self, *args))[1]
    )
    with notes_in_every_run():
        model, feeds, names = blocks(np.random.default_rng(9), layers=8)
        hot, cold = both(model)
        for factor in (1, 2):
            feeds = {"x": feeds["x"] * np.float32(factor)}
            hot.run(feeds, keep="border")
        steps = noted(hot)
        assert len(steps) > 2
        for number, name in enumerate(names[::5]):
            feeds = {"x": feeds["x"] + np.float32(number)}
            hot.run(feeds, keep="border", limits=Limits())  # by the part, not as one of microseconds
            cold.run(feeds)
            begun.clear()
            assert_close(hot.on_demand.value(name), cold.value(name), 1e-4)
            looked += begun
        assert max(looked) == max(steps)
        begun.clear()
        for graph in (hot.graph, cold.graph):
            scale(graph, "c5", 1.5)
        ours, theirs = (run.run(feeds, keep="border")[names[-1]] for run in (hot, cold))
        assert_close(ours, theirs, 1e-5)
        assert begun[0] in steps, "the first edit of all"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 20), st.booleans())
@pytest.mark.slow
def test_any_row_of_runs_edits_and_looks_tells_the_values_of_the_model_as_it_is(
    steps: list[int], seed: int, noting: bool
) -> None:
    with notes_in_every_run() if noting else nullcontext():
        check_row(steps, seed)


def check_row(steps: list[int], seed: int) -> None:
    """Runs, edits and looks in a row, and all values at the end."""
    model, feeds, names = blocks(np.random.default_rng(seed), layers=3)
    graph = ModelGraph(model)
    base = Runner(graph, Inference(graph).fact)
    graph.followers.append(base.invalidate)
    hot = By(base, [Eager(), "numpy"])
    hot.run(feeds, keep="border")
    for step in steps:
        if step < len(EDITS):
            EDITS[step](graph)
        elif step == 4:
            hot.run(keep="border")
        elif step == 5:
            feeds = {"x": feeds["x"] * np.float32(0.5) + np.float32(0.1)}
            hot.run(feeds, keep="border")
        elif step == 6:
            base.on_demand.keep_all()
        elif step == 7:
            base.run(feeds, names[:4])
        else:
            base.value(names[(seed + step) % len(names)])
    fresh = Runner(graph, Inference(graph).fact)
    fresh.run(feeds)
    for name in names:
        assert_close(base.value(name), fresh.value(name), 1e-4)
    for name, array in hot.run(feeds, keep="border").items():
        assert_close(array, fresh.value(name), 1e-4)
