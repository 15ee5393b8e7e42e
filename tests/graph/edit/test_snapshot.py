"""Snapshots: what a run sees stays as it was, and unchanged nodes are not viewed again."""

import numpy as np
import pytest

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Nodes, Value
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.attributes import AttributeRef, BodyRef
from tests.graph.support.models import branches, chain


def test_edits_do_not_reach_a_snapshot() -> None:
    graph = ModelGraph(chain())
    before = graph.snapshot()
    weight = graph.resolve_value("w")
    Nodes(graph)["c"].attributes["strides"] = [1, 1]
    Value(graph, weight).array = np.zeros((4, 3, 1, 1), np.float32)
    Nodes(graph)["r"].remove(bypass=True)
    after = graph.snapshot()
    assert [node.name for node in before.main.nodes] == ["c", "r", "a"]
    assert before.main.nodes[0].attributes["strides"] == [2, 2], "decoded after the edit, from the old message"
    assert before.array(weight)[0, 0, 0, 0] == 0.5
    assert [node.name for node in after.main.nodes] == ["c", "a"]
    assert after.main.nodes[0].attributes["strides"] == [1, 1]
    assert after.array(weight)[0, 0, 0, 0] == 0


def test_only_what_was_touched_is_viewed_again() -> None:
    graph = ModelGraph(chain())
    before = graph.snapshot()
    assert graph.snapshot() is before
    Nodes(graph)["c"].attributes["group"] = 1
    after = graph.snapshot()
    assert after.main.nodes[0].stamp != before.main.nodes[0].stamp
    assert after.main.nodes[1] is before.main.nodes[1]


def test_other_data_leaves_all_views_as_they_are() -> None:
    graph = ModelGraph(chain())
    weight, before = graph.resolve_value("w"), graph.snapshot()
    old = before.array(weight)

    def data(number: float) -> np.ndarray:
        Value(graph, weight).array = np.full((4, 3, 1, 1), number, np.float32)
        return graph.snapshot().array(weight)

    assert data(1).max() == 1
    assert graph.snapshot().main is before.main
    assert graph.snapshot().other_tensors(before) == [weight]
    assert data(2).max() == 2
    assert graph.snapshot().other_tensors(before) == [weight], "two edits later"

    def taken_back() -> None:
        with graph.edit("taken back"):
            assert data(3).max() == 3
            raise KeyError

    with pytest.raises(KeyError):
        taken_back()
    assert graph.snapshot().array(weight).max() == 2
    graph.undo()
    graph.undo()
    np.testing.assert_array_equal(graph.snapshot().array(weight), old)
    with graph.edit("more than data"):
        data(4)
        Value(graph, weight).name = "other"
    assert graph.snapshot().main.initializers["other"] == weight
    assert graph.snapshot().array(weight).max() == 4


def test_scopes_captures_and_functions() -> None:
    graph = ModelGraph(branches())
    snapshot = graph.snapshot()
    body = snapshot.main.nodes[1].attributes["then_branch"]
    assert isinstance(body, BodyRef)
    assert [name for name, _ in snapshot.scopes[body.scope].captures] == ["flag", "h"]
    function = snapshot.functions["local", "Twice", ""]
    assert function.inputs == ("v",)
    assert function.opsets == {"": 20}
    assert snapshot.main.nodes[0].since_version == 0, "a function, not an operator"
    assert snapshot.scopes[body.scope].opsets[""] == 20


def test_an_attribute_of_a_function_is_a_reference() -> None:
    proto = branches()
    attribute = proto.functions[0].node[0].attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "axis", "outer_axis", 2
    snapshot = ModelGraph(proto).snapshot()
    assert snapshot.functions["local", "Twice", ""].nodes[0].attributes["axis"] == AttributeRef("outer_axis", "int")


def test_an_unsorted_file_is_viewed_in_topological_order() -> None:
    proto = chain()
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    graph = ModelGraph(proto)
    assert [node.name for node in graph.snapshot().main.nodes] == ["c", "r", "a"]
    assert [node.name for node in Nodes(graph)] == ["a", "r", "c"], "the file's order stays"
    Nodes(graph)["r"].attributes  # noqa: B018 - reading does not sort either
    assert graph.proto.graph.node[0].name == "a"


def test_sparse_initializers_are_read_dense() -> None:
    import onnx
    from onnx import TensorProto, helper

    values = helper.make_tensor("s", TensorProto.FLOAT, [2], [5.0, 7.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [2], [1, 5]), [2, 3])
    nodes = [helper.make_node("Identity", ["s"], ["y"])]
    graph_proto = onnx.GraphProto(name="g", node=nodes, sparse_initializer=[sparse])
    graph = ModelGraph(helper.make_model(graph_proto))
    array = graph.array(graph.resolve_value("s"))
    assert array is not None
    assert array.tolist() == [[0, 5, 0], [0, 0, 7]]
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


GIVEN = {
    "fortran": np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
    "strided": np.arange(24, dtype=np.int64)[::-2],
    "swapped": np.arange(4, dtype=">f4"),
    "scalar": np.array(-0.0),
    "half": np.array([np.nan, 1, -np.inf], np.float16),
    "empty": np.zeros((0, 3), np.uint8),
    "flags": np.array([True, False]),
    "large": np.zeros(1 << 19, np.float32),
}


@pytest.mark.parametrize("array", GIVEN.values(), ids=GIVEN)
def test_an_array_that_was_given_is_known_as_it_is_stored(array: np.ndarray) -> None:
    graph, copy = ModelGraph(chain()), array.copy("K")
    weight = Value(graph, graph.resolve_value("w"))
    old = graph.array(weight.id)
    weight.array = copy
    if copy.size:
        copy[...] = 1
    known, stored = graph.array(weight.id), tensors.to_array(graph.values[weight.id].initializer)
    assert known is not None
    assert (known.dtype, known.shape, known.tobytes()) == (stored.dtype, stored.shape, stored.tobytes())
    assert known.dtype.isnative
    assert not known.flags.writeable
    graph.undo()
    np.testing.assert_array_equal(graph.array(weight.id), old)
