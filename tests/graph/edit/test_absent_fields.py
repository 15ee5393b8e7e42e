"""Edits of models whose optional texts are absent or empty: undo, redo and the script give the same bytes."""

import random
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import SetAttribute
from onnxlab.model import Model
from tests.analysis.mutations import calls
from tests.graph.edits.test_structure_edits import blocks, nested
from tests.graph.support.composite_edits import COMPOSITE, Pick
from tests.graph.support.models import branches, chain, state, untidy
from tests.graph.support.random_edits import EDITS, Draw
from tests.graph.support.torture import messages, torture

MODELS = (branches, untidy, chain, torture, blocks, nested, calls)
LEFT_OUT = ("extract_changes_nothing",)  # it asserts that the part is valid


def blank(model: onnx.ModelProto, rng: random.Random, share: float) -> onnx.ModelProto:
    """Take texts of a model away, or empty them."""
    for message in [*messages(model)]:
        for field in message.DESCRIPTOR.fields:
            if field.type != field.TYPE_STRING or field.is_repeated or field.containing_oneof:
                continue
            if isinstance(message, onnx.AttributeProto) and field.name == "name":
                continue  # a node's attributes are told apart by them
            chance = rng.random()
            if chance < share:
                message.ClearField(field.name)
            elif chance < 2 * share:
                setattr(message, field.name, "")
    return model


def edited(model: Model, rng: random.Random) -> None:
    """Up to five edits, each of which is made or leaves everything as it was."""
    composite = sorted(COMPOSITE.keys() - LEFT_OUT)
    for count in range(1, rng.randint(2, 6)):
        numbers = (rng.randrange(10_000), rng.randrange(10_000), rng.randrange(10_000))
        before, index = model.to_bytes(), state(model.graph)
        try:
            with model.edit("edit"):
                if rng.random() < 0.5:
                    name = rng.choice(composite)
                    if model.graph.nodes:
                        COMPOSITE[name](Pick(model, numbers, count))
                else:
                    EDITS[rng.choice(sorted(EDITS))](Draw(model.graph, numbers, count))
        except EditError:
            assert model.to_bytes() == before
            assert state(model.graph) == index


@pytest.mark.parametrize(
    "seed", [*range(60), 80, 124, 127, 318, 331, 487, 556, 757, 843, 983, 1327, 1579, 44840, 45614]
)
def test_nothing_is_lost_where_texts_are_absent(seed: int) -> None:
    rng = random.Random(seed)
    _nothing_is_lost(blank(rng.choice(MODELS)(), rng, rng.choice([0.03, 0.12, 0.3])).SerializeToString(), rng)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_where_graphs_are_absent(seed: int) -> None:
    rng = random.Random(seed)
    proto = rng.choice((branches, torture, blocks, nested))()
    for attribute in [message for message in messages(proto) if isinstance(message, onnx.AttributeProto)]:
        if attribute.HasField("g") and rng.random() < 0.4:
            attribute.ClearField("g")
    for node in proto.graph.node:
        if rng.random() < 0.2:
            node.attribute.add(name="more", type=onnx.AttributeProto.GRAPH)
    _nothing_is_lost(proto.SerializeToString(), rng)


def _nothing_is_lost(data: bytes, rng: random.Random) -> None:
    model = Model(onnx.ModelProto.FromString(data))
    before, index = model.to_bytes(), state(model.graph)
    edited(model, rng)
    after, steps = model.to_bytes(), len(model.history.labels)
    model.undo(to=0)
    assert model.to_bytes() == before
    assert state(model.graph) == index
    model.undo(to=steps)
    assert model.to_bytes() == after
    copy, namespace = Model(onnx.ModelProto.FromString(data)), dict[str, Any](__name__="script")
    exec(model.history.to_python(), namespace)
    namespace["replay"](copy)
    assert copy.to_bytes() == after


def test_a_body_that_returns_what_nothing_makes_comes_back_with_the_same_ids() -> None:
    proto = branches()
    body = next(a for a in proto.graph.node[1].attribute if a.name == "then_branch").g
    body.output[0].name = "nowhere"
    model = Model(proto)
    before, index = model.to_bytes(), state(model.graph)
    with pytest.raises(EditError, match="lacks the required attribute"):
        model.graph.apply(SetAttribute(model.nodes[1].id, "then_branch", None))
    assert (model.to_bytes(), state(model.graph)) == (before, index)


def _repeated_functions() -> onnx.ModelProto:
    model = calls()
    model.functions.append(model.functions[0])
    return model


def test_the_script_finds_the_second_of_two_functions_of_one_name() -> None:
    model = Model(_repeated_functions())
    scope = model.graph.scopes[model.graph.index.function_ids[-1]]
    assert model.graph.names.find_scope(model.graph.names.scope_path(scope, telling=True)) is scope
    first = model.graph.scopes[model.graph.index.function_ids[0]]
    assert model.graph.names.find_scope(model.graph.scope_path(scope)) is first


def test_a_value_of_a_function_that_calls_itself_cannot_become_an_output() -> None:
    body = [
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Again", ["b"], ["c"], domain="local"),
    ]
    again = helper.make_function("local", "Again", ["a"], ["c"], body, [helper.make_opsetid("", 18)])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Again", ["x"], ["y"], domain="local")], "g", ends[:1], ends[1:])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = Model(helper.make_model(graph, functions=[again], opset_imports=imports))
    before = model.to_bytes()
    with pytest.raises(EditError, match="local::Again calls itself"):
        model.add_output(model.value_at("local::Again", "b"))
    assert model.to_bytes() == before


def test_a_conversion_leaves_documentation_in_bodies() -> None:
    model = Model(branches())
    body = next(a for a in model.proto.graph.node[1].attribute if a.name == "then_branch")
    for attribute in body.g.node[0].attribute:
        attribute.doc_string = "inside"
    model.convert_opset(model.opsets[""] + 1)
    (attribute,) = [a for a in model.proto.graph.node[1].attribute if a.name == "then_branch"]
    assert {a.doc_string for a in attribute.g.node[0].attribute} == {"inside"}


@pytest.mark.parametrize("length", [1, 3])
def test_a_circle_of_functions_is_not_inlined_without_end(length: int) -> None:
    names = [f"F{number}" for number in range(length)]
    functions = [
        helper.make_function(
            "local", name, ["p"], ["q"], [helper.make_node(after, ["p"], ["q"], "inner", domain="local")],
            [helper.make_opsetid("local", 1)],
        )
        for name, after in zip(names, [*names[1:], names[0]], strict=True)
    ]  # fmt: skip
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("F0", ["x"], ["y"], "call", domain="local")], "g", [x], [y])
    model = Model(helper.make_model(graph, functions=functions, opset_imports=[helper.make_opsetid("local", 1)]))
    before = model.to_bytes()
    with pytest.raises(EditError, match="local::F0 calls itself"):
        model.inline("call", nested=True)
    assert model.to_bytes() == before
    assert model.inline("call") == 1


@pytest.mark.parametrize("arguments", [{}, {"call": "call", "nested": True}])
def test_functions_that_double_at_each_level_are_not_inlined_without_end(arguments: dict[str, Any]) -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    functions = [helper.make_function("local", "F0", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opsets)]
    for level in range(40):
        twice = [helper.make_node(f"F{level}", [p], [q], domain="local") for p, q in ("ab", "bc")]
        functions.append(helper.make_function("local", f"F{level + 1}", ["a"], ["c"], twice, opsets))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("F40", ["x"], ["y"], "call", domain="local")], "g", [x], [y])
    model = Model(helper.make_model(graph, functions=functions, opset_imports=opsets))
    before = model.to_bytes()
    with pytest.raises(EditError, match="would become 1,099,511,627,776 nodes"):
        model.inline(**arguments)
    assert model.to_bytes() == before
    assert model.inline("call") == 1
