"""Values of random operators, and what they make, looked at after a run: those that the run used."""

from typing import Any

import numpy as np
import pytest

from onnxlab.graph import edits
from tests.execution.support.internals import By
from tests.execution.support.models import node, runner
from tests.execution.support.regions import Eager

RANDOM = """
g (float[64] x) => (float[64] y) {
    r = RandomNormalLike (x)
    a = Add (r, x)
    b = Relu (a)
    y = Neg (b)
}
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_what_was_drawn_at_random_is_what_the_run_used(compiled: bool) -> None:
    run = runner(RANDOM)
    hot = By(run, [Eager(), "numpy"] if compiled else ["numpy"])
    for _ in range(3):
        output = hot.run({"x": np.zeros(64, np.float32)}, keep="border")["y"]
        np.testing.assert_array_equal(run.value("b"), -output)
        np.testing.assert_array_equal(np.maximum(run.value("r"), 0), -output)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_an_output_drawn_at_random_is_that_of_the_run_after_short_runs_too(compiled: bool, at_once: bool) -> None:
    run = runner("g (float[4] x) => (float[4] y, float[4] r) { r = RandomUniformLike (x) y = Add (r, x) q = Neg (r) }")
    hot = By(run, [Eager(), "numpy"] if compiled else ["numpy"])
    for turn in range(6):
        outputs = hot.run({"x": np.full(4, turn, np.float32)}, keep="border")
        if at_once:
            run.on_demand.keep_all()
        np.testing.assert_array_equal(run.value("q"), -outputs["r"])
        for name, array in outputs.items():
            np.testing.assert_array_equal(run.value(name), array)


@pytest.mark.parametrize("order", [("z", "r", "w"), ("w", "z", "r"), ("all",), ("z", "all"), ("w", "edit", "r")])
def test_random_values_that_no_output_needs_are_drawn_once(order: tuple[str, ...]) -> None:
    """Seen: each look drew its own numbers, so that values of one run contradicted each other."""
    run = runner("g (float[9] x) => (float[9] y) { y = Neg (x) r = RandomNormalLike (x) z = Add (x, r) w = Exp (z) }")
    By(run, [Eager(), "numpy"]).run({"x": np.ones(9, np.float32)}, keep="border")
    for name in order:
        if name == "edit":
            edits.set_operator(run.graph, run.graph.nodes[node(run, "y")], "Abs")
        elif name == "all":
            run.on_demand.keep_all()
        else:
            run.value(name)
    np.testing.assert_array_equal(run.value("z"), run.value("r") + 1)
    np.testing.assert_allclose(run.value("w"), np.exp(run.value("z")), rtol=1e-6)


@pytest.mark.parametrize("first", ["z", "r", "w", "all"])
def test_looks_of_two_threads_agree(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: of two looks under way at once, each drew its own numbers, and only those of one were kept."""
    run = runner("g (float[9] x) => (float[9] y) { y = Neg (x) r = RandomNormalLike (x) z = Add (x, r) w = Exp (z) }")
    By(run, [Eager(), "numpy"]).run({"x": np.ones(9, np.float32)}, keep="border")
    run.store.current()
    merge, others = run.store.merge, list[Any]()

    def merge_later(*arguments: Any) -> bool:
        if not others:  # another look ends before this one does
            others.append(None)
            others[0] = run.value("z")
        return merge(*arguments)

    monkeypatch.setattr(run.store, "merge", merge_later)
    looked = {} if first == "all" else {first: run.value(first)}
    if first == "all":
        run.on_demand.keep_all()
    looked = {"r": run.value("r"), "w": run.value("w"), "z": others[0], **looked}
    np.testing.assert_allclose(looked["r"], looked["z"] - 1, atol=1e-6)
    np.testing.assert_allclose(looked["w"], np.exp(looked["z"]), rtol=1e-5)


@pytest.mark.parametrize("keep", [True, "border"])
def test_a_selection_with_a_seed_draws_by_it(keep: Any) -> None:
    """Seen: after a run of the whole graph, the values of that were returned for every seed."""
    run = runner(RANDOM)
    By(run, ["numpy"]).run({"x": np.zeros(64, np.float32)}, keep=keep, seed=1)
    nodes, before = [node(run, "r"), node(run, "a")], run.value("r")
    np.testing.assert_array_equal(run.run_nodes(nodes)["r"], before)  # without a seed, those of the last run
    first, other, again = (run.run_nodes(nodes, seed=seed) for seed in (1, 2, 1))
    np.testing.assert_array_equal(first["r"], again["r"])
    assert not np.array_equal(first["r"], other["r"])
    np.testing.assert_array_equal(run.value("y"), -np.maximum(again["a"], 0))  # what depends on them follows


def test_a_selection_with_a_seed_reads_random_values_of_the_last_run() -> None:
    run = runner("g (float[9] x) => (float[9] y) { r = RandomNormalLike (x) s = RandomUniformLike (r) y = Add (r, s) }")
    run.run({"x": np.zeros(9, np.float32)}, seed=1)
    before = run.value("r")
    first, other = (run.run_nodes([node(run, "s"), node(run, "y")], seed=seed) for seed in (1, 2))
    assert not np.array_equal(first["s"], other["s"])
    np.testing.assert_array_equal(other["y"], before + other["s"])
    np.testing.assert_array_equal(run.value("r"), before)


@pytest.mark.parametrize("nodes", [False, True])
def test_looks_after_another_seed_are_of_its_numbers(nodes: bool) -> None:
    """Seen: what only looks ask for was computed from the random values of the run before."""
    run = runner("g (float[9] x) => (float[9] y) { r = RandomNormalLike (x) y = Add (x, r) z = Exp (r) }")
    By(run, [Eager(), "numpy"]).run({"x": np.ones(9, np.float32)}, keep="border")
    run.value("y")
    if nodes:
        run.run_nodes([node(run, "r")], seed=1)
    else:
        run.run(None, seed=1)
    np.testing.assert_allclose(run.value("z"), np.exp(run.value("r")), rtol=1e-6)
