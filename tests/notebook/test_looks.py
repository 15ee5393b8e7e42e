"""Values that the last run left unkept, looked at in the page."""

import numpy as np

import onnxlab
from tests.notebook.conftest import Page


def first_inside(model: onnxlab.Model) -> int:
    """The id of a value that a run does not keep."""
    store = model.runner.store
    return next(value for node in model.graph.nodes.values() for value in node.outputs if value not in store)


def test_a_value_inside_a_part_is_computed_when_the_page_asks(model: onnxlab.Model, page: Page) -> None:
    model.run(model.sample_inputs())
    inside = first_inside(model)
    shown = page.ask("tensor", value=inside, height=1, width=1)
    assert shown["source"] == "run"
    assert model.runner.store.fresh(inside)
    name = model.graph.values[inside].name
    assert shown["shape"] == list(np.shape(model.values[name]))


def test_a_value_that_is_pinned_is_computed_first(model: onnxlab.Model, page: Page) -> None:
    model.run(model.sample_inputs())
    inside = first_inside(model)
    assert page.ask("pin", value=inside, on=True)["pinned"] == [inside]


def test_before_a_run_there_is_nothing_to_look_at(model: onnxlab.Model, page: Page) -> None:
    inside = model.graph.nodes[next(iter(model.graph.nodes))].outputs[0]
    assert page.refused("tensor", value=inside, height=1, width=1)["code"] == "nothing"
