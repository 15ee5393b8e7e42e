"""Rewrites as the page asks for them: what would go and come, by place, by rule, all; gains, patterns, near misses."""

import re
from pathlib import Path
from typing import Any, get_args

import onnx.parser
import pytest

import onnxlab
from onnxlab.transforms.quantization.forms import FormName
from tests.notebook.conftest import Page

TEXT = """<ir_version: 9, opset_import: ["" : 18]> g (float[b,4] x) => (float[b,4] y)
    { a = Relu(x) c = Relu(a) d = Identity(c) y = Neg(d) }"""

CHAIN = """<ir_version: 9, opset_import: ["" : 18]> g (float[n,4] x) => (float[n,4] y)
    <float[4,4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}, float[4] b = {1,2,3,4}>
    { m = MatMul(x, w) h = Add(m, b) i = Mul(h, h) k = MatMul(i, w) y = Add(k, b) }"""


def asked(page: Page, **params: Any) -> Any:
    return page.ask("rewrites", **{"level": "basic", "rules": [], "microsoft": False, **params})


def done(page: Page, **params: Any) -> Any:
    return page.ask("rewrite", **{"level": "basic", "rules": [], "microsoft": False, **params})


def test_a_page_sees_what_would_be_done_and_does_it() -> None:
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    page = Page(model)
    preview = asked(page)
    rules = {rule["rule"]: rule for rule in preview["rules"]}
    assert preview["nodes"] == [4, 2]
    assert rules["relu_again"]["count"] == 1
    outer = model.nodes[1].id
    assert rules["relu_again"]["places"][0]["at"] == outer
    assert rules["identity"]["places"][0] == {
        "at": model.nodes[2].id, "label": "Identity#1", "what": "the output of Identity equals its input",
        "going": [model.nodes[2].id], "coming": [],
    }  # fmt: skip
    assert model.version == 0
    once = done(page, rules=["relu_again"])
    assert (once["applied"], once["nodes"], once["verdict"]) == (1, [4, 3], "bit equal")
    assert once["python"] == "model.rewrite(['relu_again'])"
    assert done(page)["nodes"] == [3, 2]
    assert model.history.labels == ["rewrite", "optimize"]
    page.session.close()


def test_nodes_are_counted_with_constants_as_everywhere_in_the_page() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[b,4] x) => (float[b,4] y)
        { one = Constant <value = float {1.0}> () a = Add(x, one) c = Identity(a) y = Neg(c) }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    page = Page(model)
    assert len(list(model.nodes)) == 4
    assert asked(page, rules=["identity"])["nodes"] == [4, 3]
    assert done(page, rules=["identity"])["nodes"] == [4, 3]
    page.session.close()


def test_nodes_that_go_are_told_from_operators_that_come() -> None:
    model = onnxlab.load(onnx.parser.parse_model(CHAIN))
    page = Page(model)
    ids = [node.id for node in model.nodes]
    rules = {rule["key"]: rule for rule in asked(page)["rules"]}
    gemms = rules["matmul_add"]["places"]
    assert [(place["at"], sorted(place["going"]), place["coming"]) for place in gemms] == [
        (ids[1], [ids[0], ids[1]], ["Gemm"]),
        (ids[4], [ids[3], ids[4]], ["Gemm"]),
    ]
    assert rules["matmul_add"]["by_place"]
    receipt = done(page, rules=["matmul_add"], at=ids[4])
    assert receipt["applied"] == 1
    assert [node.op_type for node in model.nodes] == ["MatMul", "Add", "Mul", "Gemm"]
    assert receipt["python"].startswith("model.rewrite(['matmul_add'], nodes=[")
    page.session.close()


def test_what_is_protected_stays() -> None:
    model = onnxlab.load(onnx.parser.parse_model(CHAIN))
    page = Page(model)
    (rule,) = asked(page, protect=["h"])["rules"]
    assert (rule["key"], rule["count"]) == ("matmul_add", 1)
    once = done(page, protect=["h"])
    assert once["python"] == "model.optimize('basic', protect=['h'])"
    assert [node.op_type for node in model.nodes] == ["MatMul", "Add", "Mul", "Gemm"]
    assert asked(page, rules=["matmul_add"], protect=["h"])["rules"] == []
    page.session.close()


def test_what_comes_and_goes_again_is_not_told() -> None:
    model = onnxlab.load(onnx.parser.parse_model(TEXT.replace("d = Identity(c) y = Neg(d)", "y = Neg(c)")))
    leaky = onnxlab.rule("Relu(x) => LeakyRelu(x, alpha=0.0)", name="leaky")
    joined = onnxlab.rule("Neg(LeakyRelu(x)) => Abs(x)", name="joined")
    first, second, third = model.rewrite([leaky, joined], dry_run=True).applied
    assert (first.rule, first.given, first.at) == ("leaky", ("LeakyRelu",), model.nodes[0])
    assert (second.rule, second.given, second.at) == ("leaky", (), model.nodes[1])
    assert [node.op_type for node in second.taken] == ["Relu"]
    assert (third.rule, third.given, third.at) == ("joined", ("Abs",), model.nodes[2])
    assert [node.op_type for node in third.taken] == ["Neg"]
    assert model.version == 0


def test_a_pass_is_applied_alone() -> None:
    text = TEXT.replace("y = Neg(d)", "e = Neg(c) y = Sub(d, e)").replace("d = Identity(c)", "d = Neg(c)")
    page = Page(onnxlab.load(onnx.parser.parse_model(text)))
    rules = {rule["rule"]: rule for rule in asked(page)["rules"]}
    assert rules["common subexpression"]["key"] == "duplicates"
    assert not rules["common subexpression"]["by_place"]
    assert done(page, rules=["duplicates"])["nodes"] == [5, 4]
    page.session.close()


def test_a_page_tries_a_rule_of_its_own() -> None:
    page = Page(onnxlab.load(onnx.parser.parse_model(CHAIN)))
    nodes = [node.id for node in page.model.nodes][:2]
    pattern = page.ask("pattern", nodes=nodes, numbers=True)["pattern"]
    assert pattern == "Add(MatMul(x, b:const), b2:const)"
    places = page.ask("pattern_places", pattern=pattern)
    assert places["count"] == 2
    assert sorted(places["places"][0]) == nodes
    rule = f"{pattern} => Gemm(x, b, b2)"
    assert [place["coming"] for place in asked(page, rules=[rule])["rules"][0]["places"]] == [["Gemm"], ["Gemm"]]
    assert done(page, rules=[rule])["nodes"] == [5, 3]
    refused = page.refused("rewrites", level="", rules=["Add(x => x"], microsoft=False)
    assert "a comma or a closing parenthesis was expected" in refused["message"]
    assert page.refused("pattern", nodes=[10**6], numbers=True)["code"] == "gone"
    assert "no node is selected" in page.refused("pattern", nodes=[], numbers=True)["message"]
    page.session.close()


def test_no_file_is_read_that_a_page_names(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    page = Page(onnxlab.load(onnx.parser.parse_model(TEXT)))
    for method in ("rewrites", "rewrite"):
        refused = page.refused(method, level="basic", rules=[str(path)], microsoft=False)
        assert refused["code"] == "invalid"
    assert not (tmp_path / "ran").exists()
    page.session.close()


def test_gains_are_measured_rule_by_rule() -> None:
    page = Page(onnxlab.load(onnx.parser.parse_model(CHAIN)))
    gains = {gain["key"]: gain for gain in page.ask("gains", level="basic", microsoft=False)["gains"]}
    gain = gains["matmul_add"]
    assert gain["nodes"] == 2
    assert gain["verdict"] in ("bit equal", "equal within noise")
    assert set(gain["seconds"]) == {"numpy", "onnxruntime"}
    assert isinstance(gain["peak"], int)
    assert page.model.version == 0
    page.session.close()


def test_rules_near_a_node_say_what_is_in_the_way() -> None:
    page = Page(onnxlab.load(onnx.parser.parse_model(TEXT)))
    first, last = page.model.nodes[1].id, page.model.nodes[3].id
    rules = {rule["rule"]: rule["why"] for rule in page.ask("near_misses", node=first)["rules"]}
    assert rules["relu_again"] == ""
    rules = {rule["rule"]: rule["why"] for rule in page.ask("near_misses", node=last)["rules"]}
    assert rules["neg_neg"] == "Identity#2 is Identity, not Neg"
    assert page.refused("near_misses", node=10**6)["code"] == "gone"
    assert page.refused("rewrites", level="other", rules=[], microsoft=False)["code"] == "invalid"
    page.session.close()


def test_forms_in_fewer_bits_are_seen_measured_and_made() -> None:
    model = onnxlab.load()
    page = Page(model)
    preview = asked(page, level="int8_weights")
    (rule,) = preview["rules"]
    assert (rule["key"], rule["count"], rule["by_place"]) == ("int8_weights", 2, False)
    assert rule["places"][0]["coming"] == ["DequantizeLinear"]
    assert rule["places"][0]["at"] == model.nodes["/block2/conv1/Conv"].id  # the weight has no box of its own
    assert preview["nodes"] == [24, 26]
    assert preview["bytes"][1] < 0.6 * preview["bytes"][0]
    (gain,) = page.ask("gains", level="int8_weights", microsoft=False)["gains"]
    assert gain["verdict"].startswith("rounded: probabilities is off by up to")
    assert model.version == 0
    receipt = done(page, rules=["int8_weights"], protect=["/block2/conv1/Conv"])
    assert receipt["python"] == "model.quantize('int8_weights', protect=['/block2/conv1/Conv'])"
    assert receipt["nodes"] == [24, 25]
    assert receipt["verdict"].startswith("rounded: ")
    stays = asked(page, level="bfloat16")["staying"]
    assert "/stem/conv/Conv: Conv has no bfloat16 before ai.onnx 22" in stays
    page.session.close()


@pytest.mark.parametrize(("level", "rules"), [("int8_weights", []), ("basic", ["int8_weights"]), ("basic", [])])
def test_a_place_is_not_left_out_silently_where_everything_would_be_changed(level: str, rules: list[str]) -> None:
    model = onnxlab.load()
    page = Page(model)
    refused = page.refused(
        "rewrite", level=level, rules=rules, microsoft=False, protect=None, at_most=None,
        at=model.nodes["/block2/conv1/Conv"].id, version=model.version,
    )  # fmt: skip
    assert (refused["code"], refused["message"]) == ("invalid", "Only rules are applied at one node.")
    assert model.version == 0
    page.session.close()


def test_a_form_that_the_opset_lacks_is_refused_with_a_way_out() -> None:
    text = TEXT.replace('"" : 18', '"" : 12')
    page = Page(onnxlab.load(onnx.parser.parse_model(text)))
    refused = page.refused("rewrites", level="int8_weights", rules=[], microsoft=False)
    assert "convert it first: model.convert_opset(13)" in refused["message"]
    page.session.close()


def test_int8_takes_its_ranges_from_the_last_run() -> None:
    model = onnxlab.load()
    page = Page(model)
    refusal = page.refused("rewrites", level="int8", rules=[], microsoft=False)
    assert (refusal["code"], refusal["hint"]) == ("invalid", "Run the model on inputs as they come in use first.")
    model.run(model.sample_inputs())
    (rule,) = asked(page, level="int8")["rules"]
    assert (rule["key"], rule["by_place"]) == ("int8", False)
    receipt = done(page, level="int8", rules=[], at_most=500)
    assert receipt["python"] == "model.quantize('int8', calibrate=[model.runner.last_inputs()], at_most=0.5)"
    assert receipt["applied"] == rule["count"]
    page.ask("undo")
    receipt = done(page, level="int8_weights", rules=[], at_most=1)
    assert receipt["applied"] + len(receipt["refused"]) == 2
    assert len(receipt["refused"])
    page.session.close()


def test_the_page_offers_the_forms_that_there_are() -> None:
    source = (Path(__file__).parents[2] / "widgets/src/panels/edit/rewrite_table.tsx").read_text()
    (table,) = re.findall(r"const FORMS.*?= \{(.*?)\};", source, re.DOTALL)
    assert tuple(re.findall(r"(\w+):", table)) == get_args(FormName)
