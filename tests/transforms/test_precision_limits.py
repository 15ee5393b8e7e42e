"""Numbers, roles of weights and masks that fewer bits would break, and a bound of loss that many weights share."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.transforms import verified_rewrites
from tests.transforms.test_quantization import ALL, network, off


def stored_product(weights: np.ndarray, **protos: Any) -> onnx.ModelProto:
    """A product with a stored weight, and a Relu behind it."""
    text = f"""<ir_version: {protos.pop("ir_version", 9)}, opset_import: ["" : 18]>
        g (float[n,{weights.shape[0]}] x) => (float[n,m] y) {{ a = MatMul(x, w) y = Relu(a) }}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), "w"))
    return proto


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("level", range(2))
def test_int8_weights_run_in_every_mode_of_onnxruntime(level: int) -> None:
    model = onnxlab.load(stored_product(normal(64, 64)))
    model.quantize("int8_weights")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", str(level))
    session = onnxruntime.InferenceSession(model.to_bytes(), options, providers=["CPUExecutionProvider"])
    feeds = {"x": normal(2, 64)}
    assert off({"logits": session.run(None, feeds)[0]}, {"logits": model.run(feeds)["y"]}) < 0.01


def test_int8_holds_the_largest_float() -> None:
    weights = np.zeros((64, 64), np.float32)
    weights[:, 0] = np.finfo(np.float32).max
    model = onnxlab.load(stored_product(weights))
    assert model.quantize("int8_weights", verify=False).applied
    assert np.isfinite(model.run({"x": np.eye(2, 64, dtype=np.float32)}, ["w"])["w"]).all()


@pytest.mark.parametrize(
    ("form", "numbers", "why"),
    [
        ("float16_weights", (np.nan, 1e5), "it reaches 1e+05, and float16 ends at 65504"),
        ("float16", (-np.inf, -1e5), "w: it reaches -1e+05, and float16 ends at 65504"),
        ("bfloat16_weights", (-3.4028235e38,), "it reaches -3.4e+38, and bfloat16 ends at 3.3895e+38"),
        ("bfloat16", (-3.4028235e38,), "w: it reaches -3.4e+38, and bfloat16 ends at 3.3895e+38"),
    ],
)
def test_numbers_beyond_a_type_are_seen_beside_others(form: Any, numbers: tuple[float, ...], why: str) -> None:
    weights = normal(64, 64)
    weights[0, : len(numbers)] = numbers
    receipt = onnxlab.load(stored_product(weights)).quantize(form, dry_run=True)
    assert why in [place.why for place in receipt.unfit]


@pytest.mark.parametrize("form", ["float16_weights", "float16"])
def test_weights_that_would_all_be_zero_stay(form: Any) -> None:
    receipt = onnxlab.load(stored_product(np.full((64, 64), 1e-30))).quantize(form, dry_run=True)
    assert any("it reaches 1e-30, which is 0 in float16" in place.why for place in receipt.unfit)


def test_weights_of_old_ir_versions_are_stored_in_half() -> None:
    proto = stored_product(normal(64, 64), ir_version=3)
    proto.graph.input.append(helper.make_tensor_value_info("w", 1, [64, 64]))
    model = onnxlab.load(proto)
    receipt = model.quantize("float16")
    assert receipt.bytes == (4 * 64 * 64, 2 * 64 * 64)
    assert [value.name for value in model.inputs] == ["x"]
    assert model.value("w").array.dtype == np.float16
    onnx.checker.check_model(onnx.load_from_string(model.to_bytes()), full_check=True)


@pytest.mark.parametrize("form", [form for form in ALL if form.endswith("weights")])
def test_weights_that_training_updates_stay(form: Any) -> None:
    proto = stored_product(normal(64, 64))
    info = proto.training_info.add()
    info.algorithm.CopyFrom(onnx.parser.parse_graph("step () => (float[64,64] after) { after = Mul(w, w) }"))
    info.update_binding.add(key="w", value="after")
    receipt = onnxlab.load(proto).quantize(form, dry_run=True)
    assert [str(place) for place in receipt.unfit] == [f"{form} at w: training reads or updates it in float32"]


def test_weights_that_a_node_quantizes_stay() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[n,64] x) => (float[n,64] y)
        <float scale = {0.03}, int8 zero = {0}>
        { q = QuantizeLinear(w, scale, zero) d = DequantizeLinear(q, scale, zero) y = MatMul(x, d) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(normal(64, 64), "w"))
    (place,) = onnxlab.load(proto).quantize("int8_weights").unfit
    assert place.why == "it is quantized by a node already; store the result of that: model.fold()"


@pytest.mark.parametrize("form", [form for form in ALL if form.endswith("weights")])
@pytest.mark.parametrize("rewrite_call", ["simplify", "optimize", "fold"])
def test_simplifying_keeps_weights_small(form: Any, rewrite_call: str) -> None:
    model = onnxlab.load(stored_product(normal(64, 64)))
    after = model.quantize(form).bytes[1]
    assert getattr(model, rewrite_call)().bytes[1] == after


def test_the_bytes_of_lists_of_numbers_count() -> None:
    proto = stored_product(normal(64, 64))
    del proto.graph.initializer[:]
    numbers = helper.make_node("Constant", [], ["list"], value_floats=[*map(float, normal(4096))])
    sizes = helper.make_node("Constant", [], ["sizes"], value_ints=[64, 64])
    nodes = [numbers, sizes, helper.make_node("Reshape", ["list", "sizes"], ["w"]), *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert onnxlab.load(proto).quantize("float16_weights").bytes == (16384 + 16, 8192 + 16)


@pytest.mark.parametrize("form", ["int8_weights", "float16"])
def test_a_bound_that_many_weights_share_keeps_those_that_fit(form: Any) -> None:
    rng, names = np.random.default_rng(0), [f"t{number}" for number in range(41)]
    nodes = [helper.make_node("MatMul", [name, f"w{name}"], [after]) for name, after in pairwise(names)]
    weights = [
        numpy_helper.from_array((rng.normal(size=(32, 32)) / 5.6).astype(np.float32), f"w{name}") for name in names
    ]
    graph = helper.make_graph(
        nodes, "products", [helper.make_tensor_value_info("t0", 1, ["n", 32])],
        [helper.make_tensor_value_info("t40", 1, ["n", 32])], weights[:-1],
    )  # fmt: skip
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    feeds = {"t0": normal(3, 32)}
    before, loose = model.run(feeds, exact=True), off_after(model, form, feeds)
    receipt = model.quantize(form, at_most=loose / 6, samples=[feeds])
    assert receipt.verdict == "rounded"
    assert 0 < len(receipt.applied) < 32
    assert len(receipt.applied) + len(receipt.refused) == 40
    losses = [float(str(refusal).split("up to ")[1].split(" %")[0]) for refusal in receipt.refused]
    assert losses == sorted(losses, reverse=True)
    assert off(model.run(feeds, exact=True), before, "t40") <= loose / 6


@pytest.mark.parametrize("most", [128, 4])
def test_what_costs_most_is_taken_back(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight in the midst has elements far beyond the others; it is measured alone, or with its neighbors."""
    monkeypatch.setattr(verified_rewrites, "MOST_MEASURED", most)
    rng, weights = np.random.default_rng(0), {}
    for number in range(12):
        weights[f"w{number}"] = (rng.normal(size=(32, 32)) / 5.6).astype(np.float32)
    weights["w6"][:, 5] = weights["w8"][9] = 0  # so that what is there in the next one, or before, is of no use
    weights["w7"][5] = weights["w7"][:, 9] = 400  # and each channel of both axes has one
    body = " ".join(f"a{number} = Tanh(t{number}) t{number + 1} = MatMul(a{number}, w{number})" for number in range(12))
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[n,32] t0) => (float[n,32] t12) {{ {body} }}'
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    receipt = onnxlab.load(proto).quantize("int8_weights", at_most=0.2, samples=[{"t0": normal(3, 32)}])
    places = [refusal.place for refusal in receipt.refused]
    assert "w7" in places
    assert len(places) <= (3 if most == 4 else 2)
    assert receipt.verdict == "rounded"
    assert ("with what is next to it" if most == 4 else "alone, t12 is off") in str(receipt.refused[0])


def off_after(model: onnxlab.Model, form: Any, feeds: Mapping[str, Any]) -> float:
    """The difference that a form makes in a model, which is left as it was."""
    before = model.run(feeds, exact=True)
    model.quantize(form, samples=[feeds])
    share = off(model.run(feeds, exact=True), before, "t40")
    model.undo()
    return share


MASKED = """<ir_version: 9, opset_import: ["" : 18]> g (float[n,64] x, bool[n,64] seen) => (float[n,64] y)
    <float zero = {0}, float least = {-3.4028235e38}>
    { a = Relu(x) scores = MatMul(a, w) MASK sum = Add(scores, wide) share = Softmax(sum) y = MatMul(share, w) }"""


@pytest.mark.parametrize("form", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "mask",
    [
        "wide = Where(seen, zero, least)",
        "mask = Where(seen, zero, least) wide = Identity(mask)",
        "hidden = Not(seen) number = Cast<to = 1>(hidden) wide = Mul(number, least)",
        "dims = Shape(x) all = ConstantOfShape<value = float[1] {-3.4e38}>(dims) wide = Where(seen, zero, all)",
    ],
)
def test_rows_that_a_mask_hides_make_no_nan(form: Any, mask: str) -> None:
    proto = onnx.parser.parse_model(MASKED.replace("MASK", mask))
    proto.graph.initializer.append(numpy_helper.from_array(normal(64, 64), "w"))
    model = onnxlab.load(proto)
    feeds = {"x": normal(2, 64), "seen": np.array([[True] * 64, [False] * 64])}
    before = model.run(feeds)
    receipt = model.quantize(form)
    assert model.fact("a").dtype != np.float32  # what is behind the mask alone stays
    assert "wide reaches beyond " + form in [place.why for place in receipt.unfit]
    assert off(model.run(feeds, exact=True), before, "y") < 0.05


def test_calls_of_functions_say_what_to_do_and_get_no_casts() -> None:
    model = onnxlab.load(network())
    model.make_function(["first_product", "add"], "Block")
    model.insert_node(helper.make_node("Identity", ["second"], ["alias"]), 0)
    receipt = model.quantize("float16", protect=["second_product"])
    assert {place.why for place in receipt.unfit if "Block" in place.place} == {"it is a function; inline it first"}
    assert not any("unknown" in place.why for place in receipt.unfit)
    assert not [node for node in model.nodes if node.op_type == "Cast" and node.inputs[0].name == "alias"]


def test_a_transpose_and_a_product_in_float16_do_not_end_the_process() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[5,2,64] x) => (float[2,5,64] y)
        { a = Relu(x) turned = Transpose<perm = [1, 0, 2]>(a) product = MatMul(turned, w) y = Neg(product) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(normal(64, 64), "w"))
    model = onnxlab.load(proto)
    (suggested,) = model.suggest(level="float16")
    assert suggested.verdict == "rounded"
    feeds = {"x": normal(5, 2, 64)}
    before = model.run(feeds)
    model.quantize("float16")
    assert off(model.run(feeds, providers=["onnxruntime"]), before, "y") < 0.01


@pytest.mark.parametrize("form", [form for form in ALL if form.endswith("weights")])
def test_what_a_preview_takes_back_changes_no_byte_of_the_next_call(form: Any) -> None:
    branches = [
        helper.make_graph(
            [helper.make_node("Constant", [], [f"{name}{number}"], value=numpy_helper.from_array(normal(64, 64)))
             for number in range(3)]
            + [helper.make_node("Sum", [f"{name}{number}" for number in range(3)], [f"{name}_sum"])],
            name, [], [helper.make_tensor_value_info(f"{name}_sum", 1, [64, 64])],
        )
        for name in ("then", "other")
    ]  # fmt: skip
    choice = helper.make_node("If", ["flag"], ["y"], then_branch=branches[0], else_branch=branches[1])
    ends = [helper.make_tensor_value_info("flag", 9, [])], [helper.make_tensor_value_info("y", 1, [64, 64])]
    graph = helper.make_graph([choice], "g", *ends)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    straight, after_preview = (onnxlab.load(onnx.load_from_string(proto.SerializeToString())) for _ in range(2))
    straight.quantize(form)
    after_preview.quantize(form, dry_run=True)
    after_preview.quantize(form)
    assert straight.to_bytes() == after_preview.to_bytes()
