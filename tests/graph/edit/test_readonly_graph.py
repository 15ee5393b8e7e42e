"""A graph for one look knows what one that lasts knows, and is one as soon as it is edited."""

import contextlib
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, parser

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.readonly_graph import ReadOnlyGraph
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.readonly_index import GlanceIndex
from onnxlab.graph.protos import wire_format
from onnxlab.infer.walk.operator_catalogue import signature
from tests.graph.support.models import branches
from tests.graph.support.random_edits import EDITS, Draw
from tests.graph.support.torture import torture
from tests.support import corpus

NESTED = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (bool c, float[N] x, float[N] later) => (float[N] y, float[N] x2) {
    early = Add (late, x)
    late = Relu (later)
    y = If (c) <then_branch = a () => (float[N] t) { t = local.twice (x) },
                else_branch = b () => (float[N] early) { unused = Neg (late) }>
    x2 = Identity (nowhere)
}
<opset_import: ["" : 21], domain: "local"> twice (v) => (w) { w = Add (v, v) }
"""


def everything(index: Index) -> dict[str, Any]:
    """All that an index knows, in its order."""
    return {
        "values": [
            (v.id, v.name, v.scope, v.producers, list(v.uses), v.formal_outputs, v.is_input, bool(v.info))
            for v in index.values.values()
        ],
        "nodes": [(n.id, n.scope, n.label, n.inputs, n.outputs, dict(n.bodies)) for n in index.nodes.values()],
        "scopes": [(s.id, s.kind, s.names, s.inputs, s.outputs, s.backward, s.owner) for s in index.scopes.values()],
        "rest": (index.unsorted, index.undefined, index.functions),
    }


@pytest.mark.parametrize("name", ["silero_vad_if", "functions_ts", "nested", "torture"])
def test_it_knows_what_an_index_knows(name: str) -> None:
    builders = {"nested": lambda: parser.parse_model(NESTED), "torture": torture}
    model = builders[name]() if name in builders else onnx.load(corpus.path(name), load_external_data=False)
    glance = GlanceIndex(model)
    for ident, known in glance.signatures.items():
        assert known == signature(glance.nodes[ident].proto.SerializeToString(), False)
        assert not glance.nodes[ident].bodies
    for ident, attributes in glance.attributes.items():
        assert attributes == glance.nodes[ident].proto.attribute[:]
        assert not glance.nodes[ident].inputs
    assert everything(glance) == everything(Index(model))


few_names = st.lists(st.sampled_from(["", "x", "w", *"abcdefgh"]), max_size=3)


@given(st.lists(st.tuples(few_names, few_names, st.sampled_from(["Neg", "Constant", "If"])), max_size=9), st.data())
def test_names_may_be_absent_repeated_or_made_later(
    rows: list[tuple[list[str], list[str], str]], data: st.DataObject
) -> None:
    body = helper.make_graph([helper.make_node("Add", ["a", "x"], ["b"])], "body", [], [])
    nodes = [
        helper.make_node(op_type, inputs, outputs, **({"then_branch": body} if op_type == "If" else {}))
        for inputs, outputs, op_type in rows
    ]
    inputs = [onnx.ValueInfoProto(name=name) for name in data.draw(st.sampled_from([["x"], ["x", ""]]))]
    weights = [helper.make_tensor("w", onnx.TensorProto.FLOAT, [], [1.0])]
    model = onnx.ModelProto(graph=helper.make_graph(nodes, "g", inputs, [], weights))
    few = partial(wire_format.heads, most=data.draw(st.sampled_from([1, 2, 5])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire_format, "heads", few)
        glance = GlanceIndex(model)
    index = Index(model)
    rows_read, rows_known = glance.rows(glance.main), index.rows(index.main)
    assert all(map(np.array_equal, rows_read, rows_known))
    assert everything(glance) == everything(index)


@pytest.mark.parametrize("model", [branches, torture])
@pytest.mark.parametrize("seed", range(15))
def test_edits_find_a_whole_index(model: Callable[[], onnx.ModelProto], seed: int) -> None:
    glance, graph = ReadOnlyGraph(model()), ModelGraph(model())
    assert glance.met.signatures
    source = random.Random(seed)
    for count, name in enumerate(source.choices(sorted(EDITS), k=6)):
        numbers = (source.randrange(10_000), source.randrange(10_000), source.randrange(10_000))
        for edited in (glance, graph):
            with contextlib.suppress(EditError):
                EDITS[name](Draw(edited, numbers, count))
        assert glance.proto.SerializeToString() == graph.proto.SerializeToString()
        assert everything(glance.index) == everything(graph.index)
    assert not glance.met.signatures
    glance.travel(0)
    graph.travel(0)
    assert everything(glance.index) == everything(graph.index)


def test_a_model_read_in_one_pass_is_edited_as_any_other() -> None:
    nodes = "".join(f"v{number + 1} = Neg(v{number}) " for number in range(300))
    text = f'<ir_version: 8, opset_import: ["" : 18]> g (float[2] v0) => (float[2] v300) {{ {nodes} }}'
    data = onnx.parser.parse_model(text).SerializeToString()
    model = onnxlab.load(data)
    assert isinstance(model.graph.index, GlanceIndex)
    assert not model.graph.index.signatures, "what the first inference asked for is let go of"
    value = model.nodes[3].outputs[0]
    model.nodes[3].remove(bypass=True)
    model.undo()
    anew = Index(onnx.ModelProto.FromString(data))
    assert {ident: value_record.uses for ident, value_record in model.graph.values.items()} == {
        ident: value_record.uses for ident, value_record in anew.values.items()
    }
    assert model.graph.values[value.id].producers == anew.values[value.id].producers


def test_uses_that_were_changed_are_not_written_down_anew() -> None:
    index = GlanceIndex(onnxlab.load().proto)
    value = next(value for value in index.values.values() if value.producers and value.uses)
    value.uses.clear()
    value.producers = []
    index.write_down(value, "uses")
    index.write_down(value, "producers")
    assert (value.uses, value.producers) == ({}, [])
