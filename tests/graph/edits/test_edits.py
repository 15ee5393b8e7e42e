"""Edits: each is one step, refused as a whole with a sentence that helps, and undone to the same bytes and ids."""

import numpy as np
import onnx
import pytest

from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import RenameValue
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node, Nodes, Value
from tests.graph.support.models import branches, chain, nameless, state, tensor


@pytest.fixture
def graph() -> ModelGraph:
    return ModelGraph(chain())


def value(graph: ModelGraph, name: str) -> Value:
    return Value(graph, graph.resolve_value(name))


def check_undo(graph: ModelGraph, before: bytes, index: object) -> None:
    """Undo takes back bytes and ids, redo the edit; the index is what a rebuild would give."""
    after = graph.proto.SerializeToString()
    assert nameless(graph) == nameless(ModelGraph(onnx.ModelProto.FromString(after)))
    while graph.undo():
        pass
    assert graph.proto.SerializeToString() == before
    assert state(graph) == index
    while graph.redo():
        pass
    assert graph.proto.SerializeToString() == after


def test_attribute_is_set_and_undone(graph: ModelGraph) -> None:
    before, index = graph.proto.SerializeToString(), state(graph)
    conv = Nodes(graph)["c"]
    conv.attributes["strides"] = [1, 1]
    assert conv.attributes["strides"] == [1, 1]
    assert list(conv.proto.attribute[1].ints) == [1, 1], "the attribute keeps its place"
    check_undo(graph, before, index)


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        (
            "strides",
            "abc",
            "attribute 'strides' of Conv takes a list of integers; got 'abc' (str). The old value stays.",
        ),
        ("strides", [1, 1.5], "takes a list of integers; got 1.5 (float)"),
        ("group", 2.0, "takes an integer; got 2.0 (float)"),
        ("group", 2**63, "takes an integer"),
        ("auto_pad", "SAME", "is one of NOTSET, SAME_UPPER, SAME_LOWER, VALID; got 'SAME'"),
        ("stride", [1, 1], "Conv has no attribute 'stride'"),
    ],
)
def test_wrong_attribute_is_refused(graph: ModelGraph, name: str, wrong: object, says: str) -> None:
    before = graph.proto.SerializeToString()
    with pytest.raises(EditError) as error:
        Nodes(graph)["c"].attributes[name] = wrong
    assert says in str(error.value)
    assert graph.proto.SerializeToString() == before
    assert not graph.history.labels


def test_unknown_attribute_suggests(graph: ModelGraph) -> None:
    with pytest.raises(EditError, match="Did you mean 'strides'"):
        Nodes(graph)["c"].attributes["stride"] = [1, 1]


def test_removing_a_read_node_is_refused_and_bypass_joins(graph: ModelGraph) -> None:
    before, index = graph.proto.SerializeToString(), state(graph)
    with pytest.raises(EditError, match="'r_out' is read by a but nothing makes it"):
        Nodes(graph)["r"].remove()
    assert graph.proto.SerializeToString() == before
    assert state(graph) == index
    Nodes(graph)["r"].remove(bypass=True)
    assert [node.name for node in Nodes(graph)] == ["c", "a"]
    assert list(graph.proto.graph.node[1].input) == ["c_out", "c_out"], "parallel edges"
    check_undo(graph, before, index)


def test_bypass_keeps_the_name_of_a_graph_output(graph: ModelGraph) -> None:
    before, index = graph.proto.SerializeToString(), state(graph)
    output = value(graph, "r_out").id
    Nodes(graph)["a"].remove(bypass=True)
    assert graph.values[output].name == "y", "what made the input makes the output now, and is the same value"
    assert [out.name for out in graph.proto.graph.output] == ["y"]
    check_undo(graph, before, index)


def test_rename_value_reaches_captures_and_outputs() -> None:
    graph = ModelGraph(branches())
    before, index = graph.proto.SerializeToString(), state(graph)
    value(graph, "h").name = "hidden"
    assert graph.nodes[graph.resolve_node("if/then/inner/then/neg")].proto.input[0] == "hidden"
    assert graph.nodes[graph.resolve_node("if/else/exp")].proto.input[0] == "hidden"
    check_undo(graph, before, index)


@pytest.mark.parametrize("name", [{}, {"name": ""}])
@pytest.mark.parametrize("field", ["output", "input", "initializer", "sparse_initializer", "value_info"])
def test_a_name_that_was_absent_is_absent_again(field: str, name: dict[str, str]) -> None:
    graph = onnx.GraphProto(node=[onnx.NodeProto(op_type="Neg", input=["x"], output=["y"])])
    graph.output.add(**name if field == "value_info" else {"name": "y"})
    if field == "sparse_initializer":
        graph.sparse_initializer.add().values.MergeFrom(onnx.TensorProto(**name))
        graph.sparse_initializer.add()
    else:
        getattr(graph, field).add(**name)
    model = ModelGraph(onnx.ModelProto(ir_version=10, graph=graph))
    before, index = model.proto.SerializeToString(), state(model)
    model.apply(RenameValue(model.main.names[""], "new"))
    check_undo(model, before, index)


def test_rename_to_a_name_in_use_anywhere_inside_is_refused() -> None:
    graph = ModelGraph(branches())
    with pytest.raises(EditError, match="'deep_out' already"):
        value(graph, "h").name = "deep_out"


def test_a_cycle_is_refused_by_name(graph: ModelGraph) -> None:
    before = graph.proto.SerializeToString()
    with pytest.raises(EditError, match="c would depend on itself: it would read what a makes, which depends on c"):
        Nodes(graph)["c"].set_input(0, "y")
    with pytest.raises(EditError, match="depend on itself"):
        Nodes(graph)["r"].set_input(0, "r_out")
    assert graph.proto.SerializeToString() == before


def test_a_second_producer_is_refused(graph: ModelGraph) -> None:
    with pytest.raises(EditError, match="'r_out' is made by n and r; every value has one producer"):
        edits.add_node(graph, onnx.helper.make_node("Neg", ["x"], ["r_out"], name="n"))


def test_a_rewire_moves_the_fewest_nodes() -> None:
    names = [f"n{number}" for number in range(6)]
    nodes = [onnx.helper.make_node("Relu", ["x"], [f"{name}_out"], name=name) for name in names]
    graph = ModelGraph(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [tensor("x")], [tensor("n0_out")])))
    Nodes(graph)["n1"].set_input(0, "n4_out")
    order = [node.name for node in Nodes(graph)]
    assert order.index("n4") < order.index("n1")
    assert order == ["n0", "n4", "n1", "n2", "n3", "n5"]


def test_an_edit_fails_as_a_whole(graph: ModelGraph) -> None:
    before, index = graph.proto.SerializeToString(), state(graph)

    def interrupted() -> None:
        with graph.edit("two things"):
            Nodes(graph)["c"].attributes["group"] = 1
            value(graph, "r_out").name = "renamed"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert graph.proto.SerializeToString() == before
    assert state(graph) == index
    assert graph.transaction is None


def test_a_failed_part_can_be_caught_inside_an_edit(graph: ModelGraph) -> None:
    with graph.edit("try"):
        Nodes(graph)["c"].attributes["group"] = 1
        with pytest.raises(EditError):
            Nodes(graph)["c"].attributes["group"] = "x"
    assert graph.history.labels == ["try"]
    assert Nodes(graph)["c"].attributes["group"] == 1


def test_changing_an_operator_drops_what_it_does_not_know(graph: ModelGraph) -> None:
    before, index = graph.proto.SerializeToString(), state(graph)
    relu = Nodes(graph)["r"]
    relu.op_type = "LeakyRelu"
    relu.attributes["alpha"] = 0.2
    relu.op_type = "Sigmoid"
    assert len(relu.attributes) == 0
    check_undo(graph, before, index)


def test_shape_initializer_and_output_edits(graph: ModelGraph) -> None:
    before, index = graph.proto.SerializeToString(), state(graph)
    value(graph, "x").set_shape([None, 3, "h", 16])
    dims = graph.proto.graph.input[0].type.tensor_type.shape.dim
    assert [dim.WhichOneof("value") for dim in dims] == [None, "dim_value", "dim_param", "dim_value"]
    value(graph, "w").array = np.ones((4, 3, 3, 3), np.float16)
    assert value(graph, "w").array.shape == (4, 3, 3, 3)
    edits.add_output(graph, graph.values[graph.resolve_value("r_out")])
    edits.remove_output(graph, graph.values[graph.resolve_value("y")])
    check_undo(graph, before, index)


def test_a_shape_is_a_list(graph: ModelGraph) -> None:
    before = graph.proto.SerializeToString()
    for wrong in ("N,3", 3, None):
        with pytest.raises(EditError, match="a shape is a list of dims, as in"):
            value(graph, "x").set_shape(wrong)
    assert graph.proto.SerializeToString() == before


def test_handles_survive_undo_and_removal(graph: ModelGraph) -> None:
    relu = Nodes(graph)["r"]
    relu.remove(bypass=True)
    assert repr(relu) == f"<Node {relu.id} (removed)>"
    with pytest.raises(NameLookupError, match="not in the model any more"):
        _ = relu.name
    graph.undo()
    assert relu.name == "r"
    assert relu == Nodes(graph)["r"]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", "an empty name means no node"),
        ("relu", "no node is called 'relu'"),
        (7, "no node at position 7: the graph has 3 nodes"),
        (None, "looked up by position or name"),
    ],
)
def test_lookups_say_what_would_do(graph: ModelGraph, key: object, says: str) -> None:
    with pytest.raises(NameLookupError) as error:
        Nodes(graph)[key]
    assert says in str(error.value)


def test_a_repeated_name_lists_positions(graph: ModelGraph) -> None:
    graph.proto.graph.node[1].name = "c"
    graph = ModelGraph(graph.proto)
    with pytest.raises(NameLookupError, match="2 nodes are called 'c', at positions 0, 1"):
        Nodes(graph)["c"]
    assert Nodes(graph)["r_out"].op_type == "Relu"


def test_paths_reach_into_scopes() -> None:
    graph = ModelGraph(branches())
    assert Node(graph, graph.resolve_node("if/then/inner/else_branch/abs")).op_type == "Abs"
    assert Nodes(graph)["if/else/exp"].scope == "if/else_branch"
    assert Nodes(graph)["local::Twice/add"].op_type == "Add"
    assert value(graph, "local::Twice/out").producer == Nodes(graph)["local::Twice/add"]
