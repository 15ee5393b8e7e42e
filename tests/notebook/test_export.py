"""The page without a kernel: whole, inert, and with the answers that a session gives."""

import base64
import gzip
import json
import re
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.notebook.session.session import Session
from onnxlab.notebook.widgets import html_page


def recorded(page: str) -> dict:
    """The model as a page holds it."""
    match = re.search(r'<script type="text/plain" id="model">([A-Za-z0-9+/=]*)</script>', page)
    assert match
    return json.loads(gzip.decompress(base64.b64decode(match[1])))


def test_a_page_answers_as_a_kernel_does(model: onnxlab.Model, tmp_path: Path) -> None:
    page = model.to_html(tmp_path / "model.html").read_text(encoding="utf-8")
    held = recorded(page)
    sent: list[dict] = []
    session = Session(model, lambda content, buffers: sent.append(json.loads(json.dumps(content))))
    for node in model.graph.nodes:
        session.receive({"id": node, "method": "inspect", "params": {"node": node}})
        assert held["answers"]["inspect"][str(node)] == sent[-1]["result"]
        session.receive({"id": node, "method": "doc", "params": {"node": node}})
        answers = held["answers"]["doc"]
        answer = answers[str(node)]
        assert (answers[answer] if isinstance(answer, str) else answer) == sent[-1]["result"]
    for value in model.graph.values:
        session.receive({"id": value, "method": "value", "params": {"value": value}})
        assert held["answers"]["value"][str(value)] == sent[-1]["result"]
    session.close()
    assert held["answers"]["hello"][""]["can"] == {"edit": False, "run": False, "save": False}


def test_a_page_fetches_nothing_and_no_text_of_the_model_is_markup(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    node = helper.make_node("Relu", ["x"], [evil], name=evil)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", evil)]
    proto = helper.make_model(helper.make_graph([node], evil, ends[:1], ends[1:]))
    page = onnxlab.load(proto).to_html(tmp_path / "evil.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 3
    assert "<img" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=["']?https?:""", page)


def test_a_large_model_is_drawn_without_details(model: onnxlab.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_page, "INSPECTED", 1)
    held = recorded(html_page.page(model, "", ""))
    assert held["answers"]["inspect"] == {}
    assert held["answers"]["snapshot"][""]["n"] == len(model.graph.nodes)


def test_missing_data_leaves_a_value_without_statistics(tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="gone.bin")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    (tmp_path / "m.onnx").write_bytes(
        helper.make_model(helper.make_graph([node], "g", [x], [y], [weight])).SerializeToString()
    )
    model = onnxlab.load(tmp_path / "m.onnx")
    held = recorded(model.to_html(tmp_path / "m.html").read_text(encoding="utf-8"))
    assert held["answers"]["value"][str(model.value("w").id)]["statistics"] is None
