import gc
import weakref

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxlab import garbage_collection
from onnxlab.errors import FeedError, NameLookupError, NotComputedError
from onnxlab.execution.base.array_memory import same
from onnxlab.execution.base.value_store import StoreState
from onnxlab.execution.program import executor
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import SetAttribute, SetField
from tests.execution.support.internals import By, programs_of
from tests.execution.support.models import CHAIN, node, runner, value

X = np.array([[-1, 2, 3, -4]], np.float32)


class Calls:
    """Counts kernel calls by the operator's name."""

    def __init__(self, run, monkeypatch):
        self.made = []
        original = executor.execute

        def execute(program, frame, run, observer=None, rows=None, border=None):
            rows = [*(program.rows if rows is None else rows)]
            self.made += [row[0].step.op for row in rows]
            return original(program, frame, run, observer, rows, border)

        monkeypatch.setattr(executor, "execute", execute)

    def take(self):
        operators, self.made = self.made, []
        return operators


@pytest.fixture
def run():
    return runner(CHAIN)


@pytest.fixture
def calls(run, monkeypatch):
    return Calls(run, monkeypatch)


def test_values_stay_and_nothing_runs_twice(run, calls):
    run.run({"x": X})
    assert calls.take() == ["Relu", "Add", "Neg", "Mul"]
    np.testing.assert_array_equal(run.store.get(value(run, "a")), np.maximum(X, 0))
    assert not run.store.get(value(run, "a")).flags.writeable
    run.run({"x": X}, ["c"])
    assert calls.take() == []


def test_a_feed_changed_in_place_is_noticed(run, calls):
    x = X.copy()
    run.run({"x": x})
    calls.take()
    x[0, 0] = 9
    assert run.run({"x": x})["d"][0, 0] == -162
    assert len(calls.take()) == 4


def test_other_inputs_make_what_was_not_run_stale(run):
    run.run({"x": X})
    run.run({"x": 2 * X}, ["a"])
    assert run.store.fresh(value(run, "a"))
    assert not run.store.fresh(value(run, "d"))
    np.testing.assert_array_equal(run.run({"x": 2 * X})["d"], 4 * run.run({"x": X}, keep=False)["d"])


def test_without_feeds_the_last_inputs_are_used(run):
    first = run.run({"x": X})["d"]
    np.testing.assert_array_equal(run.run()["d"], first)


def test_a_run_of_other_inputs_makes_what_is_asked_for_alone(run, calls):
    run.run({"x": X})
    calls.take()
    run.run({"x": 2 * X}, ["a"])
    assert calls.take() == ["Relu"]
    assert run.store.fresh(value(run, "a"))


def test_after_an_edit_only_the_dirty_cone_runs(calls, monkeypatch):
    run = runner("""
    g (float[4] x) => (float[4] c, float[4] d) {
        a = LeakyRelu <alpha = 0.5> (x)
        b = Exp (x)
        c = Neg (a)
        d = Abs (b)
    }""")
    x = np.array([-2, 1, 2, 3], np.float32)
    run.run({"x": x})
    calls.take()
    change(run, "a", "alpha", 0.25)
    assert not run.store.fresh(value(run, "c"))
    assert run.store.fresh(value(run, "d"))
    assert run.run()["c"].tolist() == [0.5, -1, -2, -3]
    assert calls.take() == ["LeakyRelu", "Neg"]
    run.graph.undo()
    assert run.run()["c"].tolist() == [1, -1, -2, -3]


def test_a_constant_that_is_edited_reaches_its_readers(calls):
    run = runner("g (float[2] x) => (float[2] y) { k = Constant <value_float = 2.0> () y = Mul (x, k) }")
    assert run.run({"x": [1.0, 2.0]})["y"].tolist() == [2, 4]
    change(run, "k", "value_float", 3.0)
    assert run.run()["y"].tolist() == [3, 6]
    calls.take()
    run.run()
    assert calls.take() == []


def test_an_initializer_that_is_replaced_reaches_its_readers():
    run = runner("g (float[2] x) => (float[2] z) <float[2] w = {2, 3}> { y = Mul (x, w) z = Neg (y) }")
    ones = np.ones(2, np.float32)
    assert run.run({"x": ones})["z"].tolist() == [-2, -3]
    weights = run.graph.values[value(run, "w")]
    for new in (5, 7):
        edits.set_initializer(run.graph, weights, np.full(2, new, np.float32))
        assert run.run()["z"].tolist() == [-new, -new]
    run.graph.undo()
    assert run.run()["z"].tolist() == [-5, -5]


@pytest.mark.parametrize("keep", [True, "border"])
@pytest.mark.parametrize("between", ["nothing", "the last inputs", "the same", "others"])
def test_an_input_that_undo_brings_back_has_its_array(keep, between):
    run = runner("g (float[2] x, float[2] u) => (float[2] z) { y = Mul (x, u) z = Neg (y) }")
    x, u = np.array([[1, 2], [3, 4]], np.float32)
    run.run({"x": x, "u": u}, keep=keep)
    run.store.current()
    reader, removed = run.graph.nodes[node(run, "y")], run.graph.values[value(run, "u")]
    edits.set_input(run.graph, reader, 1, "x")
    edits.remove_input(run.graph, removed)
    run.store.current()
    assert "u" not in run.last_inputs()
    feeds = {"nothing": {}, "the last inputs": None, "the same": {"x": x}, "others": {"x": 2 * x}}[between]
    if between != "nothing":
        square = (2 * x if between == "others" else x) ** 2
        np.testing.assert_array_equal(run.run(feeds, keep=keep)["z"], -square)
    run.graph.undo()
    run.graph.undo()
    if between == "others":
        with pytest.raises(FeedError, match="needed and not fed: 'u'"):
            run.run(keep=keep)
    else:
        np.testing.assert_array_equal(run.run(keep=keep)["z"], -x * u)


def test_a_new_input_does_not_get_the_array_of_a_removed_one_of_its_name():
    run = runner("g (float[2] x, float[2] u) => (float[2] z) { z = Neg (x) }")
    run.run({"x": np.ones(2, np.float32), "u": np.ones(2, np.float32)})
    edits.remove_input(run.graph, run.graph.values[value(run, "u")])
    edits.add_input(run.graph, helper.make_tensor_value_info("u", TensorProto.FLOAT, [2]))
    assert list(run.last_inputs()) == ["x"]


def test_an_edit_inside_a_branch_makes_its_owner_stale():
    run = runner("""
    g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] t1) { t1 = LeakyRelu <alpha = 0.5> (x) },
            else_branch = e () => (float[2] e1) { e1 = Neg (x) }
        >
    }""")
    assert run.run({"c": True, "x": [-2.0, 4.0]})["y"].tolist() == [-1, 4]
    inner = next(n for n in run.graph.nodes.values() if n.op_type == "LeakyRelu")
    change_node(run, inner.id, "alpha", 0.25)
    assert not run.store.fresh(value(run, "y"))
    assert run.run()["y"].tolist() == [-0.5, 4]


def test_what_if_runs_leave_the_store_alone(run):
    run.run({"x": X})
    before = dict(run.store.current().arrays)
    run.run({"b": X, "a": X})
    run.run({"x": 3 * X}, keep=False)
    run.run_nodes([node(run, "d")], {"a": X})
    assert run.store.current().arrays == before


def test_a_what_if_takes_from_the_last_run_what_it_cannot_change(run):
    run.run({"x": X})
    twos = np.full_like(X, 2)
    np.testing.assert_array_equal(run.run({"b": twos})["d"], -2 * np.maximum(X, 0))  # a is unchanged
    assert [len(program.instructions) for program in programs_of(run)] == [4, 2]  # Neg and Mul
    np.testing.assert_array_equal(run.run({"a": twos}, ["c"])["c"], -(twos + X))
    run.store.clear()
    with pytest.raises(FeedError, match="these inputs are needed and not fed: 'x'"):
        run.run({"b": twos})


def test_a_pin_stands_in_for_a_producer_until_it_goes(run):
    run.run({"x": X})
    run.store.pin(value(run, "b"), np.ones_like(X))
    np.testing.assert_array_equal(run.run({"x": X})["d"], -np.maximum(X, 0))
    run.store.unpin(value(run, "b"))
    np.testing.assert_array_equal(run.run({"x": X})["d"], -(np.maximum(X, 0) + X) * np.maximum(X, 0))


def test_an_edit_during_a_run_drops_what_the_run_would_keep(run):
    began, version = run.store.current(), run.graph.version
    run.run({"x": X})
    assert not run.store.merge(version, began, StoreState())


def test_an_edit_during_the_very_first_run_drops_it_too(run):
    began, version = run.store.current(), run.graph.version
    run.graph.apply(SetField(("node", node(run, "a")), "op_type", "Neg"))
    assert not run.store.merge(version, began, StoreState(arrays={value(run, "a"): X}, has_run=True))
    assert len(run.store) == 0


def test_evicted_values_are_made_again(calls):
    run = runner("g (float[n] x) => (float[n] d) { a = Exp (x) b = Neg (a) c = Abs (b) d = Sqrt (c) }",
                 keep_bytes=1_000_000)  # fmt: skip
    x = np.linspace(0, 1, 100_000, dtype=np.float32)  # each value takes 400 kB
    first = run.run({"x": x})["d"]
    assert run.store.nbytes <= 1_000_000
    assert len(run.store) < 5
    np.testing.assert_array_equal(run.run({"x": x}, ["b"])["b"], -np.exp(x))
    np.testing.assert_array_equal(run.run({"x": x})["d"], first)


def test_clear_forgets(run):
    run.run({"x": X})
    run.store.clear()
    assert len(run.store) == 0
    assert not run.store.fresh(value(run, "d"))


def test_same_compares_bits():
    nan = np.array([np.nan, 1], np.float32)
    assert same(nan, nan.copy())
    assert not same(nan, nan.astype(np.float64))
    assert not same(np.array([0.0]), np.array([-0.0]))
    assert same([np.ones(2)], [np.ones(2)])
    assert same(np.array(["a"], object), np.array(["a"], object))
    assert same(np.ones((2, 3), np.complex128)[:, ::2], np.ones((2, 2), np.complex128))


def change(run, output, name, new):
    change_node(run, node(run, output), name, new)


def change_node(run, node_id, name, new):
    from onnxlab.graph.protos.attributes import encode

    run.graph.apply(SetAttribute(node_id, name, encode(name, new)))


def test_what_a_selection_makes_is_kept_where_its_inputs_are(run, calls):
    run.run({"x": X}, ["b"])
    calls.take()
    results = run.run_nodes([node(run, "c"), node(run, "d")])
    assert calls.take() == ["Neg", "Mul"]
    assert run.store.fresh(value(run, "d"))
    np.testing.assert_array_equal(run.run()["d"], results["d"])
    assert calls.take() == []


def test_pins_hold_in_every_kind_of_run(run):
    ones = np.ones_like(X)
    expected = -np.maximum(X, 0)
    run.pin("b", ones)
    np.testing.assert_array_equal(run.run({"x": X})["d"], expected)
    np.testing.assert_array_equal(run.run({"x": X}, keep=False)["d"], expected)
    np.testing.assert_array_equal(run.run_nodes([node(run, "c")])["c"], -ones)
    np.testing.assert_array_equal(run.run({"x": X, "b": 2 * ones}, ["c"])["c"], -2 * ones)
    ones[:] = 7  # the pin is a copy
    np.testing.assert_array_equal(run.run({"x": X}, ["b"])["b"], np.ones_like(X))
    run.unpin("b")
    np.testing.assert_array_equal(run.run({"x": X})["d"], run.run({"x": X}, keep=False)["d"])
    with pytest.raises(NameLookupError, match="'b' is not pinned; pinned are: none"):
        run.unpin("b")
    with pytest.raises(FeedError, match="takes float32"):
        run.pin("b", np.ones(2, np.int64))


def test_an_edit_of_a_weight_runs_its_cone_in_the_same_plan():
    run = runner("g (float[2] x) => (float[2] z) <float[2] w = {2, 3}> { y = Mul (x, w) z = Neg (y) q = Abs (x) }")
    run.run({"x": [1.0, 1.0]})
    (before,) = programs_of(run)
    edits.set_initializer(run.graph, run.graph.values[value(run, "w")], np.full(2, 5, np.float32))
    assert run.run()["z"].tolist() == [-5, -5]
    (after,) = programs_of(run)
    assert after.slots is before.slots
    run.graph.apply(SetField(("node", node(run, "z")), "op_type", "Abs"))
    assert run.run()["z"].tolist() == [5, 5]


@pytest.mark.parametrize("place", [0, 1, 2, 511, 512, 4000, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex128, np.int64])
def test_a_difference_is_seen_wherever_it_is(place, dtype):
    old = (np.arange(4096) % 1000).astype(dtype).reshape(64, 64)
    for turned in (old, old.T, old[::-1]):
        new = turned.copy()
        assert same(turned, new)
        new.flat[place] += 1
        assert not same(turned, new)


def test_zeros_of_either_sign_differ_and_no_number_equals_itself():
    zeros, nothing = np.zeros(1000, np.float32), np.full(1000, np.nan, np.float32)
    assert not same(zeros, -zeros)
    assert same(nothing, nothing.copy())


@pytest.mark.slow
def test_what_dropped_models_kept_goes_before_others_keep_as_much(monkeypatch):
    monkeypatch.setattr(garbage_collection, "HELD", 40 * X.nbytes)
    monkeypatch.setattr(garbage_collection, "_held", 0)
    seen = []
    for _ in range(30):
        loaded = runner(CHAIN)
        loaded.run({"x": X})
        seen.append(weakref.ref(loaded.store))
    assert sum(store() is not None for store in seen) < 25
    gc.collect()


@pytest.mark.parametrize("providers", [["numpy"], ["numba", "numpy"], ["onnxruntime"]])
def test_pins_and_values_are_the_same_by_any_provider(run, providers):
    run.run({"x": X})
    run.pin("b", np.ones_like(X))
    np.testing.assert_array_equal(run.run({"x": X}, keep=False, by=run.by(providers))["d"], -np.maximum(X, 0))
    run.unpin("b")
    expected = -(np.maximum(X, 0) + X) * np.maximum(X, 0)
    np.testing.assert_array_equal(run.run({"x": X}, keep=False, by=run.by(providers))["d"], expected)


def test_other_providers_hear_that_a_function_changed():
    run = runner("""
        g (float[2] x) => (float[2] y) { y = local.f (x) }
        <opset_import: ["" : 21], domain: "local"> f (a) => (b) { b = Neg (a) }
    """)
    other = By(run, ["numpy"])
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(other.run({"x": x}, keep=False)["y"], -x)
    scope = run.graph.scopes[run.graph.index.function_ids[0]]
    edits.set_operator(run.graph, run.graph.nodes[scope.node_ids[0]], "Relu")
    np.testing.assert_array_equal(other.run({"x": x}, keep=False)["y"], np.maximum(x, 0))


def test_a_value_below_an_edit_is_computed_again_when_it_is_asked_for(run, calls):
    with pytest.raises(NotComputedError, match="'d' has not been computed: the model has not been run yet"):
        run.value("d")
    run.run({"x": X})
    calls.take()
    edits.set_operator(run.graph, run.graph.nodes[node(run, "b")], "Mul")
    np.testing.assert_array_equal(run.store.get(value(run, "c")), -(np.maximum(X, 0) + X))
    np.testing.assert_array_equal(run.value("c"), -(np.maximum(X, 0) * X))
    assert calls.take() == ["Mul", "Neg"]
    assert run.store.fresh(value(run, "c"))
    assert not run.store.fresh(value(run, "d"))
    assert run.value("c") is run.store.get(value(run, "c"))


def test_a_selection_below_an_edit_reads_what_the_graph_makes_now(run):
    run.run({"x": X})
    edits.set_operator(run.graph, run.graph.nodes[node(run, "a")], "Abs")
    np.testing.assert_array_equal(run.run_nodes([node(run, "c")])["c"], -(np.abs(X) + X))
    edits.set_operator(run.graph, run.graph.nodes[node(run, "a")], "Neg")
    results = run.run_nodes([node(run, "b"), node(run, "d")], {"x": 2 * X})  # c follows from the last inputs
    np.testing.assert_array_equal(results["b"], -X + 2 * X)
    np.testing.assert_array_equal(results["d"], 0 * X)


def test_a_pin_makes_stale_what_depends_on_it_and_holds_for_inputs_too(run):
    run.run({"x": X})
    run.pin("b", np.ones_like(X))
    assert [name for name in "xabcd" if not run.store.fresh(value(run, name))] == ["b", "c", "d"]
    np.testing.assert_array_equal(run.value("d"), -np.maximum(X, 0))
    run.unpin()
    np.testing.assert_array_equal(run.value("d"), -(np.maximum(X, 0) + X) * np.maximum(X, 0))
    run.pin("x", -X)
    np.testing.assert_array_equal(run.value("a"), np.maximum(-X, 0))
    np.testing.assert_array_equal(run.run()["d"], -(np.maximum(-X, 0) - X) * np.maximum(-X, 0))
