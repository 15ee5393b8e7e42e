"""Products of integers with ranges of each run: against onnxruntime, in bodies, of matrices read twice, and others."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import onnxlab
from tests.support.oracle import Oracle
from tests.transforms.quantization.test_static_int8 import fused, parsed
from tests.transforms.test_quantization import feeds_for, network, off

RNG = np.random.default_rng(0)
FEEDS = {"x": RNG.normal(size=(3, 32)).astype(np.float32)}


@pytest.mark.parametrize("body", [
    "y = MatMul(x, w)", "y = Gemm(x, w)", "y = Gemm<transB = 1>(x, w)", "y = Gemm(x, w, b)",
    "a = MatMul(x, w) c = Gemm<transB = 1>(a, w) y = MatMul(c, w)",
    "a = MatMul(x, w) c = MatMul(x, w) s = Add(a, c) y = Gemm(s, w, b)",
    "n = Neg(x) y = MatMul(n, w)",
])  # fmt: skip
def test_products_compute_as_onnxruntime_says(body: str, ort_run: Oracle, tmp_path: Any) -> None:
    weight = RNG.normal(size=(32, 32)) * np.geomspace(0.01, 10, 32)
    model = onnxlab.load(parsed(body, "float[n,32]", w=weight, b=RNG.normal(size=32)))
    start, before = model.to_bytes(), model.run(FEEDS)["y"]
    seen = model.quantize("int8_dynamic", dry_run=True)
    receipt = model.quantize("int8_dynamic", samples=[FEEDS])
    assert (receipt.nodes, receipt.bytes) == (seen.nodes, seen.bytes)
    assert [str(entry) for entry in receipt.applied] == [str(entry) for entry in seen.applied]
    assert len(receipt.applied) == body.count("MatMul") + body.count("Gemm")
    assert "w" not in {value.name for value in model.graph.values.values() if value.initializer is not None}
    for _ in range(3):
        now = model.run(FEEDS)["y"]
        assert off(now, before, ...) < 0.03
        np.testing.assert_allclose(now, ort_run(model.to_bytes(), FEEDS)["y"], rtol=1e-5, atol=1e-5)
    is_shared = len(receipt.applied) > 1  # by which 1.31 fails where it converts weights to uint8
    session, op_types = fused(model.to_bytes(), tmp_path, "0" if is_shared else "1")
    assert off(session.run(None, FEEDS)[0], before, ...) < 0.03
    assert not {"MatMul", "Gemm", "MatMulInteger"} & op_types.keys()
    assert not model.diagnostics
    model.undo()
    assert model.to_bytes() == start


def test_values_are_quantized_once_for_all_that_read_them() -> None:
    weights = {name: RNG.normal(size=(32, 32)) for name in ("q", "k", "v")}
    model = onnxlab.load(
        parsed("a = MatMul(x, q) b = MatMul(x, k) c = MatMul(x, v) y = Sum(a, b, c)", "float[n,32]", **weights)
    )
    model.quantize("int8_dynamic")
    assert Counter(node.op_type for node in model.nodes)["DynamicQuantizeLinear"] == 1


def test_bodies_compute_so_too_and_functions_do_not(ort_run: Oracle) -> None:
    for flag in (True, False):
        model, feeds = onnxlab.load(network()), feeds_for(flag)
        before = model.run(feeds)
        receipt = model.quantize("int8_dynamic")
        assert len(receipt.applied) == 4
        assert off(model.run(feeds), before) < 0.05
        assert off(model.run(feeds), ort_run(model.to_bytes(), feeds, ["logits", "label"])) < 1e-4
    model = onnxlab.load(network())
    model.make_function(["first_product", "add"], "Block")
    receipt = model.quantize("int8_dynamic")
    assert "it is in a function; inline it first" in {place.why for place in receipt.unfit}


def test_what_stays_and_why() -> None:
    def reasons(body: str, **weights: Any) -> set[str]:
        receipt = onnxlab.load(parsed(body, "float[n,32]", **weights)).quantize("int8_dynamic", verify=False)
        assert not receipt.applied
        return {place.why for place in receipt.unfit}

    big = RNG.normal(size=(32, 32))
    assert reasons("t = Transpose(x) y = MatMul(x, t)") == {"what it multiplies with is no constant matrix"}
    assert reasons("y = MatMul(x, w)", w=big[:, :4]) == {"its matrix is of fewer than 1,024 elements"}
    assert reasons("y = MatMul(x, w)", w=big * np.nan) == {"w: it has NaN or infinities, which int8 does not"}
    assert reasons("y = Gemm<alpha = 2.0>(x, w)", w=big) == {
        "it does more than multiply and add: transA, alpha or beta"
    }
    assert reasons("h = Cast<to = 11>(x) v = Cast<to = 11>(w) m = MatMul(h, v) y = Cast<to = 1>(m)", w=big) == {
        "h: it is float64, not float32"
    }


def test_names_of_nodes_stay_apart(ort_run: Oracle) -> None:
    """onnxruntime refuses two nodes of one name."""
    proto = parsed("a = Neg(x) b = Abs(a) y = MatMul(b, w)", "float[n,32]", w=RNG.normal(size=(32, 32)))
    for node, name in zip(proto.graph.node, ("b/DynamicQuantizeLinear", "y/Mul", "w/DequantizeLinear"), strict=True):
        node.name = name
    for form, options in (("int8_dynamic", {}), ("int8", {"calibrate": FEEDS}), ("int8_weights", {})):
        model = onnxlab.load(proto)
        model.quantize(form, **options)  # type: ignore[arg-type]
        names = [node.name for node in model.nodes]
        assert len(names) == len(set(names))
        assert ort_run(model.to_bytes(), FEEDS)["y"].shape == (3, 32)


def test_notes_of_a_product_go_to_what_takes_its_place() -> None:
    proto = parsed("y = MatMul(x, w)", "float[n,32]", w=RNG.normal(size=(32, 32)))
    proto.graph.node[0].doc_string = "logits"
    model = onnxlab.load(proto)
    assert not model.quantize("int8_dynamic").lost
    assert [node.doc_string for node in model.graph.proto.graph.node if node.doc_string] == ["logits"]


def test_inputs_of_one_number_have_a_scale(ort_run: Oracle) -> None:
    model = onnxlab.load(parsed("y = MatMul(x, w)", "float[n,32]", w=RNG.normal(size=(32, 32))))
    model.quantize("int8_dynamic")
    for number in (0.0, 3.0, -1e-30):
        feeds = {"x": np.full((2, 32), number, np.float32)}
        np.testing.assert_allclose(model.run(feeds)["y"], ort_run(model.to_bytes(), feeds)["y"], rtol=1e-5, atol=1e-5)


def test_weights_in_constants_are_taken() -> None:
    weight = numpy_helper.from_array(RNG.normal(size=(32, 32)).astype(np.float32), "w")
    proto = parsed("y = MatMul(x, w)", "float[n,32]")
    proto.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["w"], value=weight))
    model = onnxlab.load(proto)
    receipt = model.quantize("int8_dynamic")
    assert receipt.bytes[1] < 0.4 * receipt.bytes[0]
    assert "MatMulInteger" in {node.op_type for node in model.nodes}
