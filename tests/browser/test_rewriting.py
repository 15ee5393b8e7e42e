"""Rewriting in the widget: what would go and come is seen before, one place or all are made, or none; patterns."""

import onnx.parser

from tests.browser.support.lab import Lab, Widget

CHAIN = """<ir_version: 9, opset_import: ["" : 18]> g (float[n,4] x) => (float[n,4] y)
    <float[4,4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}, float[4] b = {1,2,3,4}>
    { m = MatMul(x, w) h = Add(m, b) i = Mul(h, h) k = MatMul(i, w) y = Add(k, b) }"""
OPERATORS = "print(json.dumps([node.op_type for node in model.nodes]))"


def marks(widget: Widget) -> tuple[int, int]:
    """The numbers of nodes to be removed and of places to be added, as screen readers read them."""
    items = widget.get("outline").locator('[role="treeitem"]').all_text_contents()
    return sum("would go" in text for text in items), sum("would come: + Gemm" in text for text in items)


def test_rewrites_are_seen_before_they_are_made(lab: Lab) -> None:
    path = lab.jupyter.folder / "chain.onnx"
    onnx.save(onnx.parser.parse_model(CHAIN), path)
    load = f"import json, onnxlab\nmodel = onnxlab.load({str(path)!r})\nview = onnxlab.show(model, height=620)"
    lab.open("rewriting.ipynb", [load, "view"])
    lab.run_all()
    widget = lab.widget()
    widget.wait_drawn()
    widget.get("rewrites-open").click()
    widget.get("rewrite-matmul_add").wait_for()
    assert widget.get("rewrites-nodes").inner_text() == "5 to 3 nodes"
    assert marks(widget) == (4, 2)
    widget.get("rewrite-matmul_add").get_by_text("matmul_add").click()
    widget.get("rewrite-next").click()
    widget.get("rewrite-next").click()
    assert widget.get("rewrite-number").inner_text() == "2 of 2"
    assert marks(widget) == (2, 1)
    widget.get("rewrite-here").click()
    widget.wait("h => h.store.history.position === 1")
    assert lab.python(OPERATORS) == ["MatMul", "Add", "Mul", "Gemm"]
    widget.get("rewrites-receipt").get_by_text("outputs:").wait_for()
    widget.get("rewrites-nodes").get_by_text("4 to 3 nodes").wait_for()  # the other place is listed anew
    assert marks(widget) == (2, 1)
    widget.press("Control+z")
    widget.wait("h => h.store.history.position === 0")
    widget.get("rewrites-nodes").get_by_text("5 to 3 nodes").wait_for()
    widget.get("rewrites-all").click()
    widget.wait("h => h.store.history.position === 1")
    assert lab.python(OPERATORS) == ["Gemm", "Mul", "Gemm"]
    widget.press("Control+z")
    widget.wait("h => h.store.history.position === 0")

    widget.evaluate("h => h.app.picked.show([...h.store.nodes.keys()].slice(0, 2))")
    widget.get("pattern-ask").click()
    widget.get("pattern-find").click()
    widget.get("pattern-count").wait_for()
    assert widget.get("pattern-count").inner_text() == "2 places"
    widget.get("pattern-replacement").fill("Gemm(x, b, b2)")
    widget.get("pattern-preview").click()
    widget.get("rewrites-nodes").wait_for()
    assert marks(widget) == (4, 2)
    widget.get("rewrites-none").click()
    widget.get("rewrites-table").wait_for(state="detached")
    assert marks(widget) == (0, 0)
    assert lab.python(OPERATORS) == ["MatMul", "Add", "Mul", "MatMul", "Add"]


def test_a_model_in_fewer_bits_is_seen_measured_made_and_undone(lab: Lab) -> None:
    load = "import json, onnxlab\nmodel = onnxlab.load()\nview = onnxlab.show(model, height=620)"
    lab.open("quantizing.ipynb", [load, "view"])
    lab.run_all()
    widget = lab.widget()
    widget.wait_drawn()
    widget.get("quantize-open").click()
    widget.get("rewrite-int8_weights").wait_for()
    assert widget.get("rewrites-nodes").inner_text() == "24 to 26 nodes, 22.7 kB to 12.5 kB"
    widget.get("rewrites-measure").click()
    widget.get("rewrite-int8_weights").get_by_text("probabilities is off by up to").wait_for()
    widget.get("rewrites-level").select_option("bfloat16")
    widget.get("rewrite-bfloat16").wait_for()
    assert widget.get("rewrites-staying").locator("summary").inner_text() == "7 places stay as before"
    widget.get("rewrites-level").select_option("float16")
    widget.get("rewrite-float16").wait_for()
    widget.get("rewrites-all").click()
    widget.wait("h => h.store.history.position === 1")
    widget.get("rewrites-receipt").get_by_text("probabilities is off by up to").wait_for()
    assert lab.python("print(json.dumps(str(model.fact('logits').dtype)))") == "float16"
    widget.get("rewrites-undo").click()
    widget.wait("h => h.store.history.position === 0")
    widget.get("rewrite-float16").wait_for()
    assert lab.python("print(json.dumps(str(model.fact('logits').dtype)))") == "float32"
