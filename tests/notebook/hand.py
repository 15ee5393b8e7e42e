"""A page without a browser that makes edits by names, and the models that it edits."""

import base64
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.graph.edits import EDITS
from onnxlab.notebook.session.session import Session


def small() -> onnx.ModelProto:
    """x → Conv(w) → Relu → y, with a Constant added on the way."""
    weight = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Constant", [], ["one"], "one", value_float=1.0),
        helper.make_node("Add", ["c", "one"], ["a"], "add"),
        helper.make_node("Relu", ["a"], ["y"], "relu"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ENDS]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


ENDS = (("x", ["n", 3, 8, 8]), ("y", None))


def wide() -> onnx.ModelProto:
    """`small` with a table, a call, a dead node, an input that no node reads, a node out of order, and a training."""
    proto = small()
    graph = proto.graph
    table = helper.make_tensor("", TensorProto.INT64, [2, 2], [1, 2, 3, 4])
    graph.node.extend(
        [
            helper.make_node("Constant", [], ["table"], "table", value=table),
            helper.make_node("Twice", ["a"], ["twice"], "call", domain="local"),
            helper.make_node("Neg", ["late"], ["dead"], "dead"),
            helper.make_node("Neg", ["c"], ["late"], "late"),
        ]
    )
    graph.value_info.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, ["n", 4, 8, None]))
    graph.input.append(helper.make_tensor_value_info("spare", TensorProto.FLOAT, [1]))
    graph.initializer.append(numpy_helper.from_array(np.arange(6, dtype=np.float16).reshape(2, 3), "unused"))
    imports = [helper.make_opsetid("", 21)]
    body = [helper.make_node("Add", ["v", "v"], ["w"])]
    proto.functions.append(helper.make_function("local", "Twice", ["v"], ["w"], body, imports))
    proto.opset_import.append(helper.make_opsetid("local", 1))
    steps = [numpy_helper.from_array(np.float32(0), "count")]
    ends = [helper.make_tensor_value_info("next", TensorProto.FLOAT, [])]
    negated = [helper.make_node("Neg", ["count"], ["next"], "negated")]
    proto.training_info.add().algorithm.CopyFrom(helper.make_graph(negated, "algorithm", [], ends, steps))
    return proto


def piece() -> bytes:
    """Another model: in → Abs → out."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("in", "out")]
    graph = helper.make_graph([helper.make_node("Abs", ["in"], ["out"])], "piece", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()


def typed(dtype: str, shape: list[Any], numbers: Any) -> dict[str, Any]:
    """An array as a form gives it."""
    return {"dtype": dtype, "shape": shape, "numbers": numbers}


def inserted(connect: list[str], feed: list[str], prefix: str = "", outputs: bool = True) -> dict[str, Any]:
    """The parameters that put `piece` into a model."""
    return {"file": "piece.onnx", "connect": connect, "feed": feed, "prefix": prefix, "outputs": outputs}


RAMP = np.linspace(0, 1, 4, dtype=np.float32)
FILES = {"piece.onnx": piece(), "ramp.npy": b""}


class Hand:
    """A session with the replies that it sent."""

    def __init__(self, model: onnxlab.Model) -> None:
        self.model = model
        self.sent: list[dict[str, Any]] = []
        self.session = Session(model, lambda content, buffers: self.sent.append(content))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.session.receive({"id": 7, "method": method, "params": params})
        return next(message for message in reversed(self.sent) if "id" in message)

    def edit(self, edit: str, on: str, subject: list[str], parameters: dict[str, Any]) -> dict[str, Any]:
        """An edit with names for ids."""
        find = self.model.value if on == "value" else self.model.nodes.__getitem__
        ids = [find(name).id for name in subject]
        kinds = {name: parameter.kind for name, parameter in EDITS[edit].parameters.items()}
        for name, argument in parameters.items():
            if isinstance(argument, dict) and "file" in argument:
                self.send_file(argument["file"])
            elif kinds[name] == "model_file":
                self.send_file(argument)
        on_wire = {
            name: self.model.value(argument).id
            if kinds[name] in ("value", "value?")
            else [self.model.value(parameter).id for parameter in argument]
            if kinds[name] == "values"
            else argument
            for name, argument in parameters.items()
        }
        return self.ask("edit", edit=edit, on=on, subject=ids, parameters=on_wire)

    def send_file(self, name: str, piece: int = 100) -> None:
        """Send a file as the page does: piece by piece."""
        data = FILES[name]
        for start in range(0, len(data), piece):
            part = base64.b64encode(data[start : start + piece]).decode()
            assert "result" in self.ask("upload", file=name, name=name, offset=start, data=part)
