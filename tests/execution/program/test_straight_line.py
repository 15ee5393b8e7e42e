"""Short runs written out: the lines that are there, and what ends them."""

import numpy as np
import pytest

from onnxlab.errors import LimitError
from onnxlab.execution.base.provider import CompiledPart, Step
from onnxlab.execution.program.program import assemble
from onnxlab.execution.program.straight_line import Line, Output, straight_line


def program(*steps, feeds=("x",), outputs=("y",)):
    return assemble(steps, feeds, outputs, {"w": np.array([2.0], np.float32)}.get)


def step(call, inputs, outputs, **options):
    return Step("a node", "Op", options.pop("node", 1), call, tuple(inputs), tuple(outputs), **options)


def written(program, *lines):
    """The function of a program, with other calls in place of those of its steps."""
    lines = lines or [Line(instruction, instruction.call) for instruction in program.instructions]
    return straight_line(lines, program.feed_slots, program.output_slots, program.template)


X = np.array([3.0], np.float32)


def test_values_go_from_step_to_step():
    run = written(program(
        step(np.multiply, ["x", "w"], ["a"]),
        step(lambda a: (a + 1, a + 2), ["a"], ["b", "c"]),
        step(lambda b, none, c: [b, none, c], ["b", "", "c"], ["y"]),
        outputs=("y", "b", "x", "w"),
    ))  # fmt: skip
    listed, b, x, w = run([X], [9])
    assert [listed[0].tolist(), listed[1], listed[2].tolist()] == [[7.0], None, [8.0]]
    assert b.tolist() == [7.0]
    assert x is X
    assert w.tolist() == [2.0]


def test_outputs_by_name_belong_to_the_caller():
    whole = program(step(np.multiply, ["x", "w"], ["a"]), step(np.ravel, ["a"], ["y"]))
    lines = [Line(instruction, instruction.call) for instruction in whole.instructions]
    names = {"a": True, "y": False, "x": False, "w": False}
    outputs = [Output(name, whole.slots[name], fresh) for name, fresh in names.items()]
    results, (again,) = straight_line(lines, whole.feed_slots, [whole.slots["a"]], whole.template, outputs)([X], [9])
    assert {name: array.tolist() for name, array in results.items()} == {"a": [6.0], "y": [6.0], "x": [3.0], "w": [2.0]}
    assert results["a"] is again
    assert all(array.base is None for array in results.values())
    assert not np.shares_memory(results["x"], X)
    assert not np.shares_memory(results["y"], again)


def test_numbers_of_numpy_become_arrays():
    (y,) = written(program(step(np.sum, ["x"], ["y"])))([X], [9])
    assert type(y) is np.ndarray
    assert y.shape == ()


@pytest.mark.parametrize("large", [np.zeros(1 << 17), [np.zeros(1 << 17)]], ids=["array", "sequence"])
@pytest.mark.parametrize("outputs", [("y",), ("y", "z")])
def test_what_is_large_ends_it(large, outputs):
    run = written(program(step(lambda x: (large, x)[: len(outputs)], ["x"], outputs)))
    with pytest.raises(LimitError):
        run([X], [9])


def test_an_output_that_is_missing_ends_it():
    run = written(program(step(lambda x: (x,), ["x"], ["y", "z"])))
    with pytest.raises(LimitError, match="missing"):
        run([X], [9])


def test_a_size_is_asked_before_the_call():
    def call(x):
        raise AssertionError("it is not called")

    run = written(program(step(call, ["x"], ["y"], size=lambda x: 1 << 20)))
    with pytest.raises(LimitError):
        run([X], [9])


@pytest.mark.parametrize("outputs", [("y",), ("y", "z")])
def test_a_part_that_cannot_do_without_is_called_with_a_context(outputs):
    contexts = []

    def own(context, x):
        contexts.append(context)
        return [x + number for number in range(len(outputs))]

    part = CompiledPart(own, quick=lambda x: None)
    compiled = program(step(own, ["x"], outputs, node=0, context=True, part=part), outputs=outputs)
    (instruction,) = compiled.instructions
    line = Line(instruction, instruction.quick, lambda captured, left: (captured, left))
    values = written(compiled, line)([X], [9])
    assert [value.tolist() for value in values] == [[3.0], [4.0]][: len(outputs)]
    assert contexts == [((), [9])]
