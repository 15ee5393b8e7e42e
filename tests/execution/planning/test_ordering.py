"""Orders of runs that keep nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxlab.execution.base.provider import Step
from onnxlab.execution.planning.passes.ordering import by_liveness, peak
from onnxlab.limits import Limits
from tests.execution.support.models import runner

MEGA = 1 << 20


def step(name, *inputs, pure=True):
    return Step(name, "Op", 1, abs, inputs, (name,), pure=pure)


def test_branches_run_one_after_the_other():
    wide = [step(f"big{i}", "x") for i in range(4)] + [step(f"small{i}", f"big{i}") for i in range(4)]
    steps = [*wide, step("y", *(f"small{i}" for i in range(4)))]
    sizes = {current.outputs[0]: 8 * MEGA if "big" in current.outputs[0] else 16 for current in steps}
    ordered = by_liveness(steps, ["y"], sizes.get)
    assert [current.label for current in ordered[:4]] == ["big0", "small0", "big1", "small1"]
    assert peak(steps, frozenset("y"), sizes) > 32 * MEGA
    assert peak(ordered, frozenset("y"), sizes) < 9 * MEGA
    assert by_liveness(steps, ["y"], lambda name: None) == steps
    assert by_liveness(steps, ["y"], lambda name: 8) == steps


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_found_can_run_and_needs_no_more(data):
    steps, sizes = [], {}
    for number in range(data.draw(st.integers(2, 14))):
        names = [current.outputs[0] for current in steps]
        inputs = data.draw(st.lists(st.sampled_from([*names, "x"]), max_size=3))
        steps.append(step(f"v{number}", *inputs, pure=data.draw(st.booleans())))
        sizes[f"v{number}"] = data.draw(st.integers(0, 40)) * MEGA
    outputs = data.draw(st.lists(st.sampled_from(list(sizes)), min_size=1))
    ordered = by_liveness(steps, outputs, sizes.get)
    assert sorted(current.label for current in ordered) == sorted(current.label for current in steps)
    available = {"x"}
    for current in ordered:
        assert available.issuperset(current.inputs)
        available.update(current.outputs)
    assert [current for current in ordered if not current.pure] == [current for current in steps if not current.pure]
    assert peak(ordered, frozenset(outputs), sizes) <= peak(steps, frozenset(outputs), sizes)


def test_a_run_holds_less_and_gives_the_same():
    count = 6
    nodes = "\n".join(f"e{i} = Exp (x)" for i in range(count))
    nodes += "\n" + "\n".join(f"s{i} = ReduceSum <keepdims = 0> (e{i})" for i in range(count))
    names = ", ".join(f"s{i}" for i in range(count))
    run = runner(f"g (float[4000000] x) => (float y) {{ {nodes} y = Sum ({names}) }}")
    x = np.full(4_000_000, 0.5, np.float32)  # 16 MB
    actual = run.run({"x": x}, keep=False, limits=Limits(bytes=40_000_000))["y"]
    np.testing.assert_allclose(actual, count * 4e6 * np.exp(0.5), rtol=1e-4)
