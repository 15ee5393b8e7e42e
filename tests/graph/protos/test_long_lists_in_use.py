"""Long lists in inference, in runs, and in what views send and print."""

import gc
import json
import threading

import numpy as np
import onnx
import onnxruntime
import pytest

import onnxlab
from onnxlab.graph.protos.attributes import decode, kind_of
from onnxlab.graph.protos.long_lists import LONG
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.infer import Inference
from onnxlab.infer.facts.policy import Policy
from onnxlab.notebook.panels.inspector import Inspector
from onnxlab.ops.base import prepared_constants
from tests.graph.support.long_lists import KINDS, attribute, custom, forest


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_shapes_and_runs_are_onnxruntimes(kind: str) -> None:
    proto = forest(kind=kind)
    model = onnxlab.load(proto)
    assert str(model.fact("y")) == "float32[n,3]"
    assert not model.diagnostics
    x = np.random.default_rng(5).normal(size=(7, 4)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for array, theirs in zip(model.run({"x": x}).values(), session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(array, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_onnx_says_the_same_of_what_is_cut_off(kind: str) -> None:
    graph = onnxlab.load(forest(kind=kind)).graph
    inference = Inference(graph, policy=Policy(cross_check=True))
    (operator,) = inference._walker.catalogue.by_node.values()
    assert not inference.diagnostics
    assert sum(len(attribute_proto.ints) for attribute_proto in operator.proto.attribute) < 20  # type: ignore[union-attr]


def test_a_wrong_type_of_a_long_list_is_told_in_short() -> None:
    proto = forest()
    wrong = next(
        attribute_proto for attribute_proto in proto.graph.node[0].attribute if attribute_proto.name == "nodes_values"
    )
    wrong.CopyFrom(onnx.AttributeProto(name="nodes_values", type=KINDS["ints"], ints=range(LONG + 1)))
    (problem,) = onnxlab.load(proto).diagnostics
    assert problem.code == "attribute-type"
    assert len(problem.message) < 200


def test_an_edit_keeps_the_other_lists_and_drops_the_forest_made_of_the_old_one() -> None:
    model = onnxlab.load(forest())
    node, x = model.nodes["forest"], np.ones((2, 4), np.float32)
    before = model.run({"x": x}, exact=True)["y"]
    held = node.attributes["nodes_modes"]
    remembered = len(prepared_constants._remembered)
    for scale in (2, 3, 4):
        node.attributes["target_weights"] = np.asarray(node.attributes["target_weights"]) * scale
        after = model.run({"x": x}, exact=True)["y"]
    np.testing.assert_allclose(after, before * 24, rtol=1e-4)
    assert node.attributes["nodes_modes"] is held
    gc.collect()
    assert len(prepared_constants._remembered) <= remembered + 1


def test_compiled_plans_of_earlier_states_keep_no_forests() -> None:
    model = onnxlab.load(forest())
    node, x = model.nodes["forest"], np.ones((2, 4), np.float32)
    remembered = len(prepared_constants._remembered)
    for scale in range(2, 12):
        node.attributes["target_weights"] = np.asarray(node.attributes["target_weights"]) / scale
        model.run({"x": x})
        assert model.compiled.wait(timeout=300)
        model.run({"x": x + scale})
    gc.collect()
    # Of the nodes that a cached partition began with, and of the last two.
    assert len(prepared_constants._remembered) <= remembered + 3


def test_a_type_that_is_left_out_is_still_read() -> None:
    proto = attribute("ints", np.arange(LONG + 1))
    proto.ClearField("type")
    assert kind_of(proto) == "ints"
    assert decode(proto) == list(range(LONG + 1))


def test_no_view_sends_or_prints_more_than_a_preview() -> None:
    model = onnxlab.load(forest())
    (node,) = model.graph.nodes.values()
    inspector = Inspector(model.graph, model.inference.fact, Hierarchy(model.graph))
    rows = {row["name"]: row for row in inspector.node(node.id, [])["attributes"]}
    row = rows["nodes_modes"]
    assert row["value"][:2] == ["BRANCH_LEQ", "LEAF"]
    assert row["value"][-1] == "… 6,300 items"
    assert not row["editable"]
    assert len(json.dumps(rows)) < 20_000
    assert len(repr(model.nodes["forest"].attributes)) < 2_000
    assert len(str(model.explain("y"))) < 2_000


def test_a_snapshot_of_another_thread_never_sees_half_an_edit() -> None:
    model = onnxlab.load(custom("ints", np.zeros(LONG + 9, np.int64)))
    node, mixed, done = model.nodes[0], [], threading.Event()

    def look() -> None:
        while not done.is_set():
            value = model.graph.snapshot().main.nodes[0].attributes["a"]
            readings = (np.asarray(value), np.asarray(value[:]), np.array(list(value)))
            mixed.extend(reading for reading in readings if reading.min() != reading.max())

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(100):
        node.attributes["a"] = attribute("ints", np.full(LONG + 9, number))
    done.set()
    thread.join()
    assert not mixed
