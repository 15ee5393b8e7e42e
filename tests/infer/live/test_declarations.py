"""Declarations follow what an edit makes of the facts: in the same step, exactly undone, and nothing else."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import EditError, JournalWarning
from onnxlab.graph.edit.changes import RemoveEntry, SetTypes
from onnxlab.graph.state.graph_state import GraphState
from onnxlab.infer import Inference
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.model import Model


def info(name: str, dims: Any, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def declared() -> onnx.ModelProto:
    """x[4,8] → Relu → MatMul(w) → If(Neg, then Abs) → call of Twice → y[4,16]; all values are declared, everywhere."""
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = [helper.make_node("Neg", ["b"], [f"{name}_n"]), helper.make_node("Abs", [f"{name}_n"], [f"{name}_o"])]
        ends = [info(f"{name}_o", [4, 16])]
        branches[name] = helper.make_graph(inner, name, [], ends, value_info=[info(f"{name}_n", [4, 16])])
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "relu"),
        helper.make_node("MatMul", ["a", "w"], ["b"], "matmul"),
        helper.make_node("If", ["yes"], ["c"], "if", **branches),
        helper.make_node("Twice", ["c"], ["y"], "call", domain="local"),
    ]
    stored = [numpy_helper.from_array(np.ones((8, 16), np.float32), "w")]
    ends = [info("x", [4, 8]), info("yes", [], TensorProto.BOOL)]
    values = [info("a", [4, 8]), info("b", [4, 16]), info("c", [4, 16])]
    values[0].doc_string = "after relu"
    graph = helper.make_graph(nodes, "g", ends, [info("y", [4, 16])], stored, value_info=values)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    body = [helper.make_node("Neg", ["v"], ["u"]), helper.make_node("Add", ["u", "u"], ["w"])]
    function = helper.make_function("local", "Twice", ["v"], ["w"], body, imports[:1], value_info=[info("u", [4, 16])])
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)


def types(model: Model) -> dict[str, str]:
    """All declared types but those of inputs of the model, by value."""
    types_by_name = {}
    for value in model.graph.values.values():
        for place in model.graph.declared_at(value):
            kind = place.info.type.tensor_type
            dims = [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else "?") for dim in kind.shape.dim]
            types_by_name[value.name] = f"{kind.elem_type}{dims}"
    return types_by_name


def runs(model: Model, feeds: dict[str, np.ndarray]) -> np.ndarray:
    onnx.checker.check_model(model.proto, full_check=True)
    session = onnxruntime.InferenceSession(model.to_bytes(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def test_a_dim_that_becomes_dynamic_is_so_everywhere() -> None:
    model = onnxlab.load(declared())
    before = model.to_bytes()
    model.value("x").set_dim(0, "N")
    assert set(types(model).values()) == {"1['N', 8]", "1['N', 16]"}
    assert model.diagnostics == []
    assert runs(model, {"x": np.ones((3, 8), np.float32), "yes": np.array(True)}).shape == (3, 16)
    assert len(model.history.labels) == 1
    after = model.to_bytes()
    model.undo()
    assert model.to_bytes() == before
    model.redo()
    assert model.to_bytes() == after
    assert model.value("a").doc_string == "after relu"


def to_half(model: Model) -> None:
    with model.edit("half"):
        model.value("x").set_dtype("float16")
        model.value("w").array = np.ones((8, 16), np.float16)


def test_another_dtype_is_declared_and_told() -> None:
    model = onnxlab.load(declared())
    before = model.to_bytes()
    to_half(model)
    assert set(types(model).values()) == {"10[4, 8]", "10[4, 16]"}
    assert model.history.labels == ["half (output y: float32 → float16)"]
    assert runs(model, {"x": np.ones((4, 8), np.float16), "yes": np.array(True)}).dtype == np.float16
    assert "9 declarations changed" in str(model.last_change)
    model.undo()
    assert model.to_bytes() == before


@pytest.mark.parametrize("edit", [to_half, lambda model: model.value("x").set_shape(["a", 8])])
def test_script_and_journal_have_it(edit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    onnx.save(declared(), tmp_path / "m.onnx")
    model = onnxlab.load(tmp_path / "m.onnx")
    edit(model)
    scope: dict[str, Any] = {}
    exec(model.history.to_python(), scope)
    copy = onnxlab.load(declared())
    scope["replay"](copy)
    assert copy.to_bytes() == model.to_bytes()
    assert copy.history.labels == model.history.labels
    after, path = model.to_bytes(), model.graph.journal.path  # type: ignore[attr-defined]
    assert path is not None
    journal = path.read_bytes()
    model.undo(to=0)
    model.save()
    path.write_bytes(journal)
    with pytest.warns(JournalWarning):
        (recoverable,) = onnxlab.load(tmp_path / "m.onnx").files.recoverable
    with pytest.warns(JournalWarning):
        again = onnxlab.load(tmp_path / "m.onnx")
    again.graph.completer = None  # the journal has the whole edit
    assert again.files.recover(recoverable) == 1
    assert again.to_bytes() == after


def test_what_no_edit_changed_stays_as_it_was_declared() -> None:
    proto = declared()
    proto.graph.value_info[0].type.tensor_type.shape.dim[0].dim_value = 5
    proto.graph.value_info[1].type.tensor_type.elem_type = TensorProto.DOUBLE
    model = onnxlab.load(proto)
    before = model.to_bytes()
    model.nodes["relu"].name = "other"
    model.nodes["other"].name = "relu"
    assert model.to_bytes() == before
    model.value("w").array = np.ones((8, 6), np.float32)
    assert (types(model)["a"], types(model)["b"]) == ("1[5, 8]", "11[4, 6]")


def test_an_unknown_fact_leaves_the_declaration_alone() -> None:
    model = onnxlab.load(declared())
    model.opsets["com.example"] = 1
    model.nodes["relu"].replace("Mystery", "com.example")
    assert types(model)["b"] == "1[4, 16]"
    model.undo()
    model.value("w").array = np.ones((9, 16), np.float32)  # MatMul refuses
    assert types(model)["b"] == "1[4, 16]"


def test_a_size_that_is_known_no_more_is_not_stated() -> None:
    model = onnxlab.load(declared())
    model.value("x").set_dim(0, None)
    assert set(types(model).values()) == {"1['?', 8]", "1['?', 16]"}
    assert runs(model, {"x": np.ones((3, 8), np.float32), "yes": np.array(True)}).shape == (3, 16)


def test_names_of_dims_follow_only_where_they_agreed() -> None:
    proto = declared()
    for value_info in (proto.graph.input[0], *proto.graph.value_info, proto.graph.output[0]):
        value_info.type.tensor_type.shape.dim[0].dim_param = "N"
    proto.graph.value_info[1].type.tensor_type.shape.dim[0].dim_param = "mine"
    model = onnxlab.load(proto)
    model.value("x").set_dim(0, "M")
    types_by_name = types(model)
    assert (types_by_name["a"], types_by_name["b"], types_by_name["y"]) == ("1['M', 8]", "1['mine', 16]", "1['M', 16]")
    model.value("x").set_dim(0, 7)
    types_by_name = types(model)
    assert (types_by_name["a"], types_by_name["b"], types_by_name["y"]) == ("1[7, 8]", "1['mine', 16]", "1[7, 16]")


def test_bodies_of_loops_are_declared_anew_with_their_inputs() -> None:
    model = onnxlab.load(
        onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x, int64 n, bool go) => (float[4] y) {
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
                d = Identity (c)  w = Neg (v) }>
        }""")
    )
    before = model.to_bytes()
    model.value("x").set_dtype("float16")
    types_by_name = types(model)
    assert (types_by_name["v"], types_by_name["w"], types_by_name["y"]) == ("10[4]", "10[4]", "10[4]")
    feeds = {"x": np.ones(4, np.float16), "n": np.array(3), "go": np.array(True)}
    assert runs(model, feeds).tolist() == [-1.0] * 4
    model.undo()
    assert model.to_bytes() == before


def test_declarations_that_are_believed_stay() -> None:
    model = onnxlab.load(declared())
    model.inference.policy = Policy(prefer="declared")
    model.value("x").set_dim(0, "N")
    assert types(model)["a"] == "1[4, 8]"
    model = onnxlab.load(declared())
    model.inference.policy = Policy(prefer="refine")
    model.value("x").set_dim(0, "N")
    assert types(model)["a"] in ("1['N', 8]", "1[4, 8]")


class Full:
    """A journal that refuses everything."""

    def note(self, change: object) -> None: ...

    def knows(self, kind: str) -> bool:
        return False

    def append(self, *arguments: object) -> None:
        raise RuntimeError("full")


def test_an_edit_that_fails_after_it_was_completed_leaves_no_fact() -> None:
    model = onnxlab.load(declared())
    before, facts = model.to_bytes(), dict(model.inference.facts)
    journal, model.graph.journal = model.graph.journal, Full()
    with pytest.raises(RuntimeError, match="full"):
        model.value("x").set_dim(0, "N")
    model.graph.journal = journal
    assert model.to_bytes() == before
    assert {vid: fact for vid, fact in model.inference.facts.items() if facts[vid] is not fact} == {}
    model.value("x").set_dim(0, "M")
    assert dict(model.inference.facts) == dict(Inference(model.graph).facts)


def test_a_completer_that_fails_costs_no_edit() -> None:
    model = onnxlab.load(declared())

    class Broken:
        def complete(self, transaction: object, touched: object) -> None:
            raise RuntimeError("broken")

        def abandon(self) -> None: ...

    model.graph.completer = Broken()
    with pytest.warns(UserWarning, match="broken"):
        model.value("x").set_dim(0, "N")
    assert str(model.fact("y")) == "float32[N,16]"
    assert model.graph.completer is None


def test_refresh_store_and_drop() -> None:
    proto = declared()
    del proto.graph.value_info[2]
    proto.graph.value_info[0].type.tensor_type.shape.dim[0].dim_value = 5
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    proto.functions[0].value_info[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    model = onnxlab.load(proto)
    before = model.to_bytes()
    changed = model.declarations("refresh")
    assert str(changed[0]) == "a: float32[5,8] → float32[4,8]"
    assert {change.value for change in changed} == {"a", "y", "local::Twice/u"}
    assert types(model)["y"] == "1[4, 16]"
    assert model.declarations("refresh") == []
    assert len(model.history.labels) == 1
    stored = model.declarations("store")
    assert {change.value for change in stored} == {"c", "local::Twice/w"}
    produced = {vid for vid, value in model.graph.values.items() if value.producers}
    assert all(model.graph.values[vid].info is not None for vid in produced if not _is_function_output(model, vid))
    onnx.checker.check_model(model.proto, full_check=True)
    dropped = {change.value for change in model.declarations("drop")}
    assert dropped >= {"a", "b", "c", "if/then_branch/then_branch_n", "local::Twice/u"}
    assert [entry.name for entry in model.proto.graph.value_info] == ["a"]  # its documentation stays
    assert not model.proto.graph.value_info[0].HasField("type")
    onnx.checker.check_model(model.proto, full_check=True)
    scope: dict[str, Any] = {}
    exec(model.history.to_python(), scope)
    copy = onnxlab.load(before)
    scope["replay"](copy)
    assert copy.to_bytes() == model.to_bytes()
    model.undo(to=0)
    assert model.to_bytes() == before
    with pytest.raises(EditError, match="'refresh', 'store', 'drop'"):
        model.declarations("forget")


def _is_function_output(model: Model, vid: int) -> bool:
    value = model.graph.values[vid]
    return model.graph.scopes[value.scope].is_function and value.is_output


def test_only_values_whose_fact_changed_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:

    model = onnxlab.load(declared())
    seen = []
    places = GraphState.declared_at
    monkeypatch.setattr(GraphState, "declared_at", lambda self, value: seen.append(value.name) or places(self, value))
    model.nodes["call"].name = "again"
    model.nodes["relu"].op_type = "Abs"
    assert seen == []
    model.nodes["if"].name = "other"
    assert seen == []


def test_what_only_declarations_say_follows_them() -> None:
    """Of the outputs of an unknown operator, and in a body around it."""
    proto = declared()
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    proto.graph.node[0].op_type, proto.graph.node[0].domain = "Mystery", "com.example"
    model = onnxlab.load(proto)
    assert str(model.fact("y")) == "float32[4,16]"
    model.declarations("drop")
    assert [entry.name for entry in model.proto.graph.value_info] == ["a"]
    assert dict(model.inference.facts) == dict(Inference(model.graph).facts)
    model.graph.apply(RemoveEntry(model.graph.main.id, "value_info", 0))
    assert str(model.fact("a")) == "?"
    assert {vid: str(fact) for vid, fact in model.inference.facts.items()} == {
        vid: str(fact) for vid, fact in Inference(model.graph).facts.items()
    }
    model.undo()
    assert str(model.fact("y")) == "float32[4,16]"


def test_declarations_are_stored_in_the_order_of_the_nodes_whatever_was_undone() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { a = Relu (x) b = Neg (a) c = Abs (b) y = Exp (c) }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    for node in list(model.nodes)[:3]:  # each value leaves and comes back
        node.outputs[0].name += "_other"
        model.undo()
    model.declarations("store")
    assert [info.name for info in model.proto.graph.value_info] == ["a", "b", "c"]


BYPASSED = {
    "another element type": ("y = Cast <to = 7> (r)", "int64[N, 4] y", "float32[N,4]"),
    "another rank": ("y = Flatten <axis = 0> (r)", "float[1, k] y", "float32[N,4]"),
    "another size": ("y = Concat <axis = 1> (r, r)", "float[N, 8] y", "float32[N,4]"),
    "a sequence of maps": ("y = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2, 3]> (r)", "seq(map(int64, float)) y",
                           "float32[N,4]"),
    "a sequence": ("y = SequenceConstruct (r)", "seq(float[N, 4]) y", "float32[N,4]"),
    "an optional": ("y = Optional (r)", "optional(float[N, 4]) y", "float32[N,4]"),
}  # fmt: skip


@pytest.mark.parametrize("name", BYPASSED)
def test_a_value_that_takes_over_an_output_declares_its_own_type(name: str) -> None:
    node, output, expected = BYPASSED[name]
    text = f"""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
        g (float[N, 4] x) => ({output}) {{ r = Relu (x) {node} }}"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    before = model.to_bytes()
    model.nodes["y"].remove(bypass=True)
    assert str(fact_of_type(model.proto.graph.output[0].type, lambda axis: axis)) == expected
    assert not model.diagnostics
    onnxruntime.InferenceSession(model.to_bytes())
    after = model.to_bytes()
    model.undo()
    assert model.to_bytes() == before
    model.redo()
    assert model.to_bytes() == after


def test_a_wrong_declaration_of_another_output_stays_when_one_is_taken_over() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x) => (int64[4] y, int64[9] wrong) { r = Relu (x) wrong = Abs (x) y = Cast <to = 7> (r) }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    model.nodes["y"].remove(bypass=True)
    assert types(model) == {"y": "1[4]", "wrong": "7[9]"}
    assert model.history.all_labels == ["bypass Cast#2 (output y: int64 → float32)"]


def test_a_type_that_a_change_gives_an_input_is_inferred_from() -> None:
    model = onnxlab.load(declared())
    new = info("x", [2, 8]).type.SerializeToString()
    with model.edit("a change") as edit:
        edit.apply(SetTypes(model.graph.main.id, "input", (0,), (new,)))
    assert str(model.fact("y")) == "float32[2,16]"
    assert types(model)["y"] == "1[2, 16]"
    model.undo()
    assert types(model)["y"] == "1[4, 16]"


def test_a_rewrite_keeps_the_declared_sizes_of_an_output_that_it_joins_to_an_equal_value() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N] x, int64[2] s) => (float[2, 3] y) { r = Reshape (x, s) y = Identity (r) }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    copy = onnxlab.load(onnx.parser.parse_model(text))
    model.simplify()
    assert [node.op_type for node in model.nodes] == ["Reshape"]
    assert types(model) == {"y": "1[2, 3]"}
    namespace = dict[str, Any](__name__="script")
    exec(model.history.to_python(), namespace)
    namespace["replay"](copy)
    assert copy.to_bytes() == model.to_bytes()
