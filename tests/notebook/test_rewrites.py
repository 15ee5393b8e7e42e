"""Rewrites as the page asks for them: what would be done, one rule, all, and rules that almost fit."""

import onnx.parser

import onnxlab
from tests.notebook.conftest import Page

TEXT = """<ir_version: 9, opset_import: ["" : 18]> g (float[b,4] x) => (float[b,4] y)
    { a = Relu(x) c = Relu(a) d = Identity(c) y = Neg(d) }"""


def test_a_page_sees_what_would_be_done_and_does_it() -> None:
    model = onnxlab.load(onnx.parser.parse_model(TEXT))
    page = Page(model)
    preview = page.ask("rewrites", level="basic")
    rules = {rule["rule"]: rule for rule in preview["rules"]}
    assert preview["nodes"] == [4, 2]
    assert rules["relu_again"]["count"] == 1
    assert rules["relu_again"]["nodes"] == [model.nodes[1].id]
    assert rules["relu_again"]["alone"]
    assert model.version == 0
    done = page.ask("rewrite", level="basic", rules=["relu_again"])
    assert (done["applied"], done["nodes"], done["verdict"]) == (1, [4, 3], "bit equal")
    assert done["python"] == "model.rewrite(['relu_again'])"
    assert page.ask("rewrite", level="basic", rules=[])["nodes"] == [3, 2]
    assert model.history.labels == ["rewrite", "optimize"]
    page.session.close()


def test_rules_near_a_node_say_what_is_in_the_way() -> None:
    page = Page(onnxlab.load(onnx.parser.parse_model(TEXT)))
    first, last = page.model.nodes[1].id, page.model.nodes[3].id
    rules = {rule["rule"]: rule["why"] for rule in page.ask("near_misses", node=first)["rules"]}
    assert rules["relu_again"] == ""
    rules = {rule["rule"]: rule["why"] for rule in page.ask("near_misses", node=last)["rules"]}
    assert rules["neg_neg"] == "Identity#2 is Identity, not Neg"
    assert page.refused("near_misses", node=10**6)["code"] == "gone"
    assert page.refused("rewrites", level="other")["code"] == "invalid"
    page.session.close()
