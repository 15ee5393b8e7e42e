"""Choice by measurement: the quicker way is found and remembered, and either way is right."""

import numpy as np
import pytest

from onnxlab.execution.numba.plan import autotune
from onnxlab.execution.numba.plan.copies import emit_copy
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, assert_close, check


@pytest.fixture
def forgotten(monkeypatch):
    monkeypatch.setattr(autotune, "_found", {})


def copies(count):
    def emit(builder):
        views = [builder.allocate((1 << 16,), np.float32) for _ in range(2)]
        for _ in range(count):
            emit_copy(builder, *views)

    return emit


def test_the_fastest_way_is_remembered(forgotten):
    tried = []
    ways = {"many": copies(400), "one": copies(1), "several": copies(100)}
    ways = {name: lambda builder, name=name, emit=emit: (tried.append(name), emit(builder))
            for name, emit in ways.items()}  # fmt: skip
    assert autotune.remembered("key") is None
    assert [autotune.fastest("key", ways) for _ in range(2)] == ["one", "one"]
    assert autotune.remembered("key") == "one"
    assert sorted(tried) == ["many", "one", "several"]


def convolution(size, channels=33, out_channels=48):
    rng = np.random.default_rng(0)
    recipe = Recipe()
    x = rng.standard_normal((2, channels, size, size), dtype=np.float32)
    weights = rng.standard_normal((out_channels, channels, 3, 3), dtype=np.float32) / 20
    y = recipe.node("Conv", recipe.input("x", x), recipe.constant(weights), pads=[1, 1, 1, 1])
    return recipe.model(recipe.node("Relu", recipe.node("Add", y, y))), {"x": x}


def test_a_convolution_is_measured_once_and_right_either_way(forgotten, monkeypatch):
    model, feeds = convolution(9)
    check(model, feeds, 1e-5)
    (key,) = autotune._found
    records = {}
    for way in ("winograd", "direct"):
        monkeypatch.setitem(autotune._found, key, way)
        both = Both(model)
        ours, theirs = both.run(feeds)
        for name, expected in theirs.items():
            assert_close(ours[name], expected, 1e-5)
        (plan,) = plans_of(both.regions()[0]).values()
        records[way] = plan.records
    assert records["winograd"] == records["direct"] + 2


def test_nothing_is_measured_while_a_run_waits(forgotten):
    model, feeds = convolution(9)
    both = Both(model)
    both.run(feeds)
    (region,) = both.regions()
    autotune._found.clear()
    plans_of(region).clear()
    from onnxlab.execution.numba.plan import engine

    region._bind(list(feeds.values()), engine.ready_address)
    assert not autotune._found


def test_what_is_small_is_not_measured(forgotten):
    model, feeds = convolution(4, 8, 8)
    check(model, feeds, 1e-5)
    assert not autotune._found
