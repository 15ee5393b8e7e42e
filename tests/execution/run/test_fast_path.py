"""Short runs that are made again without asking anew: the same answers, refusals and freshness as others."""

import numpy as np
import pytest

from onnxlab.errors import FeedError, RunError
from onnxlab.graph.edit.changes import SetField
from tests.execution.support.internals import current_programs
from tests.execution.support.models import node, runner

TEXT = """
g (float["n", 2] x, float["n", 2] w) => (float["n", 2] y, float["n", 2] z) {
    y = Add (x, w)
    z = Mul (y, y)
}
"""


def pairs(rows):
    return {name: np.full((rows, 2), number, np.float32) for number, name in enumerate("xw", 1)}


def ready(run):
    compiler, _ = current_programs(run)
    return {key: list(program.accepted) for key, program in compiler.ready.items()}


def test_the_second_run_is_ready():
    run = runner(TEXT)
    for rows in (3, 3, 1, 0):
        results = run.run(pairs(rows), keep=False)
        assert results["z"].tolist() == [[9, 9]] * rows
    assert run.run(pairs(3), ["y"], keep=False).keys() == {"y"}
    assert sorted(map(len, ready(run).values())) == [1, 3]


def test_what_does_not_fit_is_refused_as_ever():
    run = runner(TEXT)
    for _ in range(2):
        run.run(pairs(3), keep=False)
        for wrong in (pairs(3) | {"w": np.ones((2, 2), np.float32)}, pairs(3) | {"w": np.ones((3, 2))}, {"x": None}):
            with pytest.raises((FeedError, RunError)):
                run.run(wrong, keep=False)


def test_lists_are_converted_each_time():
    run = runner(TEXT)
    for number in range(3):
        assert run.run({"x": [[number, 0]], "w": [[0, 0]]}, keep=False)["y"].tolist() == [[number, 0]]
    assert ready(run) == {(("x", "w"), None): []}


def test_results_belong_to_the_caller():
    run = runner("g (float[n] x) => (float[n] y, float[n] z) { y = Identity (x)  z = Identity (y) }")
    x = np.ones(4, np.float32)
    for _ in range(3):
        results = run.run({"x": x}, keep=False)
        for array in results.values():
            array += 1
    assert x.tolist() == [1] * 4


def test_pins_and_edits_are_seen():
    run = runner(TEXT)
    for _ in range(2):
        run.run(pairs(1), keep=False)
    run.pin("y", np.zeros((1, 2), np.float32))
    assert run.run(pairs(1), keep=False)["z"].tolist() == [[0, 0]]
    run.unpin()
    assert run.run(pairs(1), keep=False)["z"].tolist() == [[9, 9]]
    run.graph.apply(SetField(("node", node(run, "z")), "op_type", "Sub"))
    assert run.run(pairs(1), keep=False)["z"].tolist() == [[0, 0]]
