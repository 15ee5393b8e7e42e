"""Messages in Python of a browser, where JavaScript's null is an object of its own, at any depth."""

import pytest

import onnxlab
from onnxlab.notebook.protocol import messages
from onnxlab.notebook.protocol.messages import ProtocolError, parse


class JsNull:
    """The null of Pyodide."""

    def __repr__(self) -> str:
        return "jsnull"


RUN = {"id": 1, "method": "run", "params": {"nodes": JsNull(), "inputs": {"a": [JsNull(), 1]}}}


def test_null_of_javascript_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProtocolError, match="no JSON"):
        parse(RUN)  # elsewhere NaN is no JSON
    monkeypatch.setattr(messages, "_NULLS", (JsNull,))
    plain = messages._plain(RUN)
    assert plain["params"] == {"nodes": None, "inputs": {"a": [None, 1]}}
    assert parse({**RUN, "params": {"nodes": JsNull(), "seed": 1}}).params["nodes"] is None


def test_a_run_of_all_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_NULLS", (JsNull,))
    view = onnxlab.show(onnxlab.load())
    sent: list[dict[str, object]] = []
    view.send = lambda content, buffers=None: sent.append(content)
    view._receive(view, {"id": 7, "method": "explain", "params": {"value": 2, "axis": JsNull()}}, [])
    assert [content["id"] for content in sent if "result" in content] == [7]
    view.close()
