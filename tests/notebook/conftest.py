"""A page without a browser: what a session sends is kept, what it is asked is answered at once."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.graph.handles.handles import Value
from onnxlab.notebook.session.session import Session


def edit(edit_name: str, /, *subject: Any, on: str = "", **parameters: Any) -> dict[str, Any]:
    """The parameters of a request "edit": of handles or ids, by default those of a node."""
    ids = [getattr(subject_part, "id", subject_part) for subject_part in subject]
    kind = (
        "value" if any(isinstance(subject_part, Value) for subject_part in subject) else "node" if subject else "model"
    )
    return {"edit": edit_name, "on": on or kind, "subject": ids, "parameters": parameters}


class Page:
    """The far side of a session: `ask` returns the reply, `events` holds what came besides."""

    def __init__(self, model: onnxlab.Model) -> None:
        self.model = model
        self.events: list[dict[str, Any]] = []
        self.replies: dict[int, dict[str, Any]] = {}
        self.buffers: dict[int, list[bytes]] = {}
        self.arrived = threading.Condition()
        self.last = 0
        self.session = Session(model, self._take)

    def _take(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        content = json.loads(json.dumps(content, allow_nan=False))
        with self.arrived:
            if "event" in content:
                self.events.append(content)
            else:
                assert content["id"] not in self.replies, "a request got two replies"
                self.replies[content["id"]] = content
                self.buffers[content["id"]] = buffers
            self.arrived.notify_all()

    def send(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self.last += 1
        self.session.receive({"id": self.last, "method": method, "params": params})
        return self.last

    def wait(self, request: int) -> dict[str, Any]:
        """The reply to a request."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: request in self.replies, timeout=100), "no reply within 100 s"
        return self.replies[request]

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request; an error fails the test."""
        reply = self.wait(self.send(method, **params))
        assert "error" not in reply, reply
        return reply["result"]

    def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """The error of a request that must be refused without any effect."""
        before, seen = self.model.to_bytes(), len(self.events)
        reply = self.wait(self.send(method, **params))
        assert "result" not in reply, reply
        assert self.model.to_bytes() == before
        assert [event for event in self.events[seen:] if event["event"] == "commit"] == []
        return reply["error"]


@pytest.fixture
def model() -> onnxlab.Model:
    """x: float32[n, 3, 8, 8] -> conv -> relu -> {pool, identity}; with names in two scopes."""
    weight = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="/stem/conv", strides=[1, 1], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="/stem/relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="/head/pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["y"], name="/head/flatten"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", None])],
        [weight],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return onnxlab.load(proto)


@pytest.fixture
def page(model: onnxlab.Model) -> Iterator[Page]:
    """A page that shows the model."""
    opened = Page(model)
    yield opened
    opened.session.close()
