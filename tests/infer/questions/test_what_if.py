"""Shapes with numbers for symbols are those of a real run; memory by liveness is that of a brute force."""

import numpy as np
import onnx
import pytest

from onnxlab import Model
from onnxlab.errors import NameLookupError
from tests.infer.support.models import parsed, shape_chain

CHAIN = """
    agraph (float[batch, 8] x) => (float[?, ?] y)
    { a = Relu(x)  b = Concat <axis = 1> (a, a)  c = Neg(b)  d = Add(c, b)  y = ReduceSum(d) }
"""


def model(text: str) -> Model:
    return Model(parsed(text).proto)


@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (2, 5)])
def test_shapes_are_those_of_a_run(batch: int, seq: int) -> None:
    loaded = Model(shape_chain().proto)
    before, version = dict(loaded.inference.facts), loaded.version
    sized = loaded.with_dims(batch=batch, seq=seq)
    names = ["dims", "rows", "target", "flat", "m", "y", "f", "w"]
    feeds = {
        "x": np.ones((batch, seq, 64), np.float32), "flag": np.array(True), "n": np.array(2),
        "kernel": np.ones((64, 32), np.float32),
    }  # fmt: skip
    results = loaded.run(feeds, names)
    assert {name: sized.shapes[name] for name in names} == {name: results[name].shape for name in names}
    assert {name: sized.nbytes[name] for name in names} == {name: results[name].nbytes for name in names}
    assert dict(loaded.inference.facts) == before
    assert loaded.version == version


def test_the_peak_is_that_of_a_brute_force() -> None:
    sized = model(CHAIN).with_dims(batch=2)
    row = 2 * 8 * 4
    live = [
        {"x", "a"}, {"x", "a", "b"}, {"x", "b", "c"}, {"x", "b", "c", "d"}, {"x", "d", "y"},
    ]  # fmt: skip
    sizes = {"x": row, "a": row, "b": 2 * row, "c": 2 * row, "d": 2 * row, "y": 4}
    assert {name: sized.nbytes[name] for name in sizes} == sizes
    assert sized.peak == max(sum(sizes[name] for name in alive) for alive in live)
    assert sized.peak_at == "Add#3"
    assert sized.total == sum(sizes.values())
    assert sized.weights == 0


def test_what_stays_open_is_said() -> None:
    sized = Model(shape_chain().proto).with_dims(seq=3)
    assert "flat" in sized.open
    assert str(sized.facts["flat"]) == "float32[3*batch,64]"
    assert "kernel" not in sized.open
    assert "not decided: x is float32[batch,3,64]" in str(sized)
    assert sized.nbytes["flat"] is None


def test_sizes_that_do_not_fit_are_refused() -> None:
    text = "agraph (float[a, 3] x, float[b, 3] z) => (float[?, ?] y) { y = Add(x, z) }"
    assert model(text).with_dims(a=2, b=2).refused == ()
    (refused,) = model(text).with_dims(a=2, b=5).refused
    assert "do not broadcast" in refused.message


def test_unknown_names_list_those_that_there_are() -> None:
    with pytest.raises(NameLookupError, match=r"'bacth'; they have batch$"):
        model(CHAIN).with_dims(bacth=3)
    with pytest.raises(ValueError, match="an int from 0 on"):
        model(CHAIN).with_dims(batch=-1)


def test_dims_without_a_name_go_by_the_name_that_is_shown() -> None:
    loaded = model("agraph (float[?, 4] x) => (float[?, ?] y) { y = Relu(x) }")
    assert loaded.with_dims({"x.0": 7}).shapes["y"] == (7, 4)


def test_functions_that_call_each_other_in_a_circle_end() -> None:
    imports = '["" : 17, "f" : 1]'
    text = f"<ir_version: 9, opset_import: {imports}> g (float[2] x) => (float[2] y) {{ y = f.A (x) }}"
    for name, other in ("AB", "BA"):
        text += f'<opset_import: {imports}, domain: "f"> {name} (a) => (b) {{ b = f.{other} (a) }}'
    assert Model(onnx.parser.parse_model(text)).with_dims({}).peak >= 8


def test_weights_bodies_and_calls_are_counted() -> None:
    loaded = model("""
        agraph (float[n] x, bool flag) => (float[?] y) <float[4] w = {1, 2, 3, 4}>
        {
            y = If (flag) <
                then_branch = then () => (t) { t1 = Concat <axis = 0> (x, x) t = Slice(t1, s, e) },
                else_branch = other () => (o) { o = Neg(x) }
            >
            s = Constant <value_ints = [0]> ()
            e = Constant <value_ints = [1]> ()
        }
    """)
    sized = loaded.with_dims(n=100)
    assert sized.weights == 16 + 8 + 8
    assert sized.peak >= 100 * 4 + 200 * 4
    calls = Model(shape_chain().proto).with_dims(batch=1, seq=1)
    assert calls.peak > 0
    assert calls.refused == ()
