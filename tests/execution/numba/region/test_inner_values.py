"""Values inside regions: in memory that the region's own plan uses, and that later values replace."""

import numpy as np
import pytest

from onnxlab.execution.numba.region.region import Region
from tests.execution.run.test_values_on_demand import blocks, both
from tests.execution.support.internals import plans_of, programs_of
from tests.execution.support.regions import Recipe, assert_close


@pytest.mark.parametrize(("kernel", "inner"), [(1, 8), (1, 1500), (3, 40)])
def test_values_that_others_replace_in_memory_are_there_to_be_looked_at(kernel: int, inner: int) -> None:
    rng, recipe = np.random.default_rng(14), Recipe()

    def convolved(value: str, channels: int, columns: int, size: int = 1) -> str:
        weights = rng.standard_normal((columns, channels, size, size), dtype=np.float32) / channels**0.5
        return recipe.node("Conv", value, recipe.constant(weights), pads=[size // 2] * 4)

    x = rng.standard_normal((2, 40, 24, 24), dtype=np.float32)
    value = convolved(recipe.input("x", x), 40, 40)
    for _ in range(3):
        hidden = recipe.node("Relu", convolved(value, 40, inner))
        value = recipe.node("Relu", recipe.node("Add", value, convolved(hidden, inner, 40, kernel)))
    model, names = recipe.model(recipe.node("GlobalAveragePool", value)), [node.output[0] for node in recipe.nodes]
    hot, cold = both(model)
    hot.run({"x": x}, keep="border")
    cold.run({"x": x})
    (region,) = [instruction.call for program in programs_of(hot) for instruction in program.instructions]
    (plan,) = plans_of(region).values()
    assert sum(buffer.is_replaced for buffer in plan.trace.buffers) == 3
    for name in reversed(names):
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)
        hot.run({"x": x}, keep="border")
    hot.on_demand.keep_all()
    for name in names:
        assert_close(hot.on_demand.value(name), cold.value(name), 1e-5)


def test_looks_use_the_memory_of_runs() -> None:
    model, feeds, names = blocks(np.random.default_rng(12))
    hot, _ = both(model)
    hot.run(feeds, keep="border")
    hot.on_demand.value(names[3])
    (region,) = [instruction.call for program in programs_of(hot) for instruction in program.instructions]
    (plan,) = plans_of(region).values()
    assert isinstance(region, Region)
    inner = region.inner_values([feeds["x"]])
    assert inner is not None
    assert inner.plan is plan
