"""Other sizes, tried where an edit made a dim dynamic: only the node that refuses them is reported."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.infer.live import size_trials as trials
from onnxlab.model import Model
from onnxlab.notebook.session.session import Session


def fixed(target: tuple[int, ...] = (1, 16), output: Any = ("N", 16)) -> Model:
    """x[1,4,2,2] → Relu → Reshape to `target` → y."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 2, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, output)
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Reshape", ["a", "s"], ["y"], "reshape")]
    stored = [numpy_helper.from_array(np.array(target), "s")]
    graph = helper.make_graph(nodes, "g", [x], [y], stored)
    return onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def codes(model: Model) -> list[str]:
    return [problem.code for problem in model.check()]


def test_a_node_that_holds_the_old_size_is_told() -> None:
    model = fixed()
    assert codes(model) == []
    model.value("x").set_dim(0, "N")
    problems = {problem.code: problem for problem in model.check()}
    refusal = problems["refuses-size"]
    assert model.graph.nodes[refusal.node].name == "reshape"
    assert "with N=2" in refusal.message
    assert (refusal.severity, refusal.expected, refusal.found) == ("warning", "32 elements", "16 elements")
    assert "keep the size fixed" in refusal.hint
    output = problems["output-fixed"]
    assert (output.expected, output.found, model.graph.values[output.value].name) == ("N", "1", "y")
    assert [problem for problem in model.check() if problem.code == "refuses-size"] == [
        problem for problem in model.diagnostics if problem.code == "refuses-size"
    ]


def test_it_goes_when_it_is_mended_and_with_undo() -> None:
    model = fixed()
    model.value("x").set_dim(0, "N")
    model.value("s").array = np.array([-1, 16])
    assert codes(model) == []
    model.undo()
    assert codes(model) == ["output-fixed", "refuses-size"]
    model.undo()
    assert codes(model) == []
    model.redo()
    assert codes(model) == ["output-fixed", "refuses-size"]


def test_dims_without_a_name_are_tried_too() -> None:
    model = fixed(output=[None, None])
    model.value("x").set_shape([None, 4, 2, 2])
    assert codes(model) == ["refuses-size"]


def test_sizes_are_multiples_of_the_old_one() -> None:
    """Sizes that have to be divisible stay so."""
    ends = (("x", [12, 2]), ("y", [None, 8]))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ends)
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(np.array([-1, 8]), "s")])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    model.value("x").set_dim(0, "N")
    assert codes(model) == []


def test_an_output_that_varies_and_is_declared_not_to() -> None:
    proto = fixed((-1, 16), (1, 16)).proto
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    model = onnxlab.load(proto)
    (problem,) = model.check()
    assert (problem.code, problem.expected, problem.found) == ("output-dynamic", "1", "N")
    model.declarations("refresh")
    assert model.check() == []


def test_the_page_hears_of_it_without_asking() -> None:
    model = fixed()
    heard = threading.Event()
    sent: list[Any] = []

    def send(message: Any, buffers: list[bytes]) -> None:
        sent.append(message)
        if message.get("event") == "diagnostics":
            heard.set()

    session = Session(model, send)
    model.value("x").set_dim(0, "N")
    assert heard.wait(10)
    (event,) = [message for message in sent if message.get("event") == "diagnostics"]
    assert "refuses-size" in {problem["code"] for problem in event["diagnostics"]}
    session.close()
    assert model.trial.on_found == []


def test_without_threads_a_check_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    model = fixed()
    model.value("x").set_dim(0, "N")
    assert "refuses-size" not in [problem.code for problem in model.diagnostics]
    assert "refuses-size" in codes(model)


def test_an_edit_meanwhile_makes_it_void_and_costs_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_PAUSE", 0.001)
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], f"n{i}") for i in range(20_000)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in ("v0", "v20000")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    model.value("v0").set_dim(0, "N")
    slowest = 0.0
    for number in range(50):
        time.sleep(0.002)
        before = time.perf_counter()
        model.nodes[0].name = f"first{number}"
        slowest = max(slowest, time.perf_counter() - before)
    assert slowest < 0.5
    model.trial.finish()
    assert model.trial.diagnostics == []
    assert model.trial.is_done()


def test_the_budget_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.0)
    model = fixed()
    model.value("x").set_dim(0, "N")
    assert codes(model) == ["output-fixed"]
    assert model.trial.is_done()


def test_refusals_that_were_there_before_are_not_told_again() -> None:
    model = fixed((-1, 16))
    model.add_initializer("w", np.ones(3, np.float32))
    model.insert_node(helper.make_node("Add", ["a", "w"], ["sum"], "add"), 1)
    before = codes(model)
    model.value("x").set_dim(0, "N")
    assert codes(model) == before != []


def test_a_model_without_references_is_not_kept() -> None:
    import gc
    import weakref

    model = fixed()
    model.value("x").set_dim(0, "N")
    gone = weakref.ref(model.trial)
    del model
    gc.collect()
    until = time.monotonic() + 5
    while gone() is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert gone() is None
