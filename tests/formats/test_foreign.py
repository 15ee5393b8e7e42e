r"""Strings that are no UTF-8: in any field, a model opens, is checked, inferred, drawn, edited, and saved as it was."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.analysis import check as checks
from onnxlab.errors import SaveWarning
from onnxlab.formats import foreign
from onnxlab.formats.report import differences
from onnxlab.notebook.session.session import Session
from tests.formats.journals import crash, reopened


def model() -> onnx.ModelProto:
    """A model with a text of its own in every sort of string field: the texts in capitals, and the names."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["DIM", 3]) for name in "xy")
    x.type.denotation = "DENOTATION"
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["h"], [op], f"in_{op}")], f"{op}_GRAPH", [], [onnx.ValueInfoProto(name=op)]
        )
        for op in ("Neg", "Abs")
    ]
    nodes = [
        helper.make_node("Add", ["x", "w"], ["h"], "outer/ADDED", doc_string="NODE_DOC"),
        helper.make_node("If", ["c"], ["k"], "CHOICE", then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Flatten", ["k"], ["l"], "FLAT", axis=1),
        helper.make_node("FUNCTION", ["l"], ["y"], "CALL", domain="DOMAIN", alpha="text"),
    ]
    nodes[0].metadata_props.add(key="NODE_KEY", value="NODE_VALUE")
    w, c = (
        helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3]),
        helper.make_tensor("c", TensorProto.BOOL, [], [1]),
    )
    info = helper.make_tensor_value_info("h", TensorProto.FLOAT, ["DIM", 3], "VALUE_DOC")
    graph = helper.make_graph(nodes, "GRAPH", [x], [y], [w, c], "GRAPH_DOC", [info])
    graph.quantization_annotation.add(tensor_name="h").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("DOMAIN", 1)]
    function = helper.make_function(
        "DOMAIN", "FUNCTION", ["f_in"], ["f_out"], [helper.make_node("Relu", ["f_in"], ["f_out"], "RELU")], imports[:1],
        ["alpha"],
    )  # fmt: skip
    proto = helper.make_model(
        graph, opset_imports=imports, functions=[function], producer_name="PRODUCER", ir_version=10
    )
    proto.metadata_props.add(key="KEY", value="VALUE")
    return proto


PLACES = (
    ("DIM", "DENOTATION", "NODE_DOC", "h", "KEY", "VALUE"),
    ("Neg", "in_Neg", "Neg_GRAPH", "x", "NODE_KEY", "NODE_VALUE"),
    ("Add", "If", "then_branch", "Flatten", "axis", "FUNCTION"),
    ("outer/ADDED", "CHOICE", "FLAT", "CALL", "DOMAIN", "alpha"),
    ("VALUE_DOC", "GRAPH", "GRAPH_DOC", "SCALE_TENSOR", "PRODUCER", "y"),
    ("f_in", "f_out", "RELU", "Relu", "w", "k", "c"),
)


def spoilt(*places: str) -> bytes:
    r"""The model with these texts as \xff… instead, wherever they stand."""
    data = model().SerializeToString()
    for text in places:
        whole = bytes([len(text)]) + text.encode()
        assert whole in data, text
        data = data.replace(whole, bytes([len(text)]) + b"\xff" * len(text))
    return data


@pytest.mark.parametrize("places", PLACES, ids="-".join)
def test_such_a_model_is_opened_looked_at_edited_and_saved(places: tuple[str, ...], tmp_path: Path) -> None:
    data = spoilt(*places)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    opened = onnxlab.load(path)
    assert opened.to_bytes() == data
    messages = [problem.message for problem in opened.check() if problem.code == "no-utf8"]
    assert sorted(messages) == sorted(
        f"a string of the model is no UTF-8 and shown as {shown!r}" for shown in opened._source.strings
    )
    assert {len(text) for text in opened._source.strings.values()} == set(map(len, places))
    assert [str(opened.fact(ident)) for ident in opened.graph.values]
    assert "</svg>" in opened.to_svg()
    for suffix in (".textproto", ".json", ".onnxtxt"):
        assert opened.to_text(suffix)
    answers: list[object] = []
    session = Session(opened, lambda message, buffers=(): answers.append(message))
    for number, ident in enumerate(opened.graph.nodes):
        session.receive({"id": number, "method": "inspect", "params": {"node": ident}})
    session.close()
    assert "'internal'" not in str(answers)
    opened.nodes[0].doc_string = "edited"
    opened.save()
    assert [change.path for change in differences(onnx.load(path), onnx.ModelProto.FromString(data))] == [
        "graph.node[0].doc_string"
    ]
    opened.undo()
    assert onnx.ModelProto.FromString(opened.to_bytes()) == onnx.ModelProto.FromString(data)


def test_verdicts_stay_those_of_the_checker() -> None:
    for place in ("h", "CHOICE", "GRAPH", "KEY", "NODE_DOC"):
        onnx.checker.check_model(onnx.ModelProto.FromString(spoilt(place)))
        assert not list(checks.errors(onnxlab.check(spoilt(place), types=False)))


def test_a_new_name_mends() -> None:
    opened = onnxlab.load(spoilt("h", "CHOICE"))
    opened.value(r"\xff").name = "good"
    opened.nodes[r"\xff\xff\xff\xff\xff\xff"].name = "better"
    assert foreign.replace(onnx.ModelProto.FromString(opened.to_bytes())) == {}
    assert opened.graph.proto.graph.node[1].attribute[0].g.node[0].input == ["good"]


def test_stand_ins_are_no_other_strings_of_the_model() -> None:
    proto = model()
    proto.graph.node[0].name, proto.graph.node[1].name = r"\xff", r"\xff_1"
    data = proto.SerializeToString().replace(b"\x04FLAT", b"\x04\xff\xffAT").replace(b"\x01l", b"\x01\xff")
    opened = onnxlab.load(data)
    assert opened._source.strings == {r"\xff_2": b"\xff", r"\xff\xffAT": b"\xff\xffAT"}
    opened.nodes[0].doc_string = ""
    assert opened.to_bytes() != data
    opened.undo()
    opened._source = opened._source.__class__(strings=opened._source.strings)
    assert opened.to_bytes() == data, "without the original bytes too"


def test_a_proto_and_a_part_of_it_and_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = spoilt("h")
    opened = onnxlab.Model(onnx.ModelProto.FromString(data))
    assert opened.to_bytes() == data
    assert b"\xff" in opened.extract([r"\xff"]).to_bytes()
    monkeypatch.setattr(foreign, "_LARGE", 10)
    assert onnxlab.load(data)._source.strings == {r"\xff": b"\xff"}
    assert onnxlab.load(model().SerializeToString())._source.strings == {}


@pytest.mark.parametrize("text", ["GOOD", "BAD!"])
@pytest.mark.parametrize("place", ["name", "doc_string", "key"])
def test_a_large_one_is_searched_without_its_weights(text: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = model()
    weights = helper.make_tensor("TEXT" if place == "name" else "big", TensorProto.FLOAT, [1000], bytes(4000), raw=True)
    if place == "doc_string":
        weights.doc_string = "TEXT"
    elif place == "key":
        weights.metadata_props.add(key="TEXT", value="TEXT")
    proto.graph.initializer.insert(0, weights)
    data = proto.SerializeToString()
    bad = data.replace(b"TEXT", text.encode().replace(b"BAD!", b"\xffAD!"))
    assert bytes(4000) not in foreign._slim(data)
    assert onnx.ModelProto.FromString(foreign._slim(data)).graph.initializer[0].dims == [1000]
    monkeypatch.setattr(foreign, "_LARGE", 10)
    assert (onnxlab.load(bad)._source.strings == {}) == (text == "GOOD")


def test_each_of_many_strings_is_looked_at_not_the_last_alone() -> None:
    for place in ("NODE_VALUE", "outer/ADDED", "Neg_GRAPH", "x", "DIM"):
        assert onnxlab.load(spoilt(place))._source.strings


def test_groups_are_searched_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    group = b"\xa3\x06\x08\x01\xa4\x06"  # field 100, which is unknown, begins and ends
    data = model().SerializeToString() + group
    assert foreign._slim(data) == data
    monkeypatch.setattr(foreign, "_LARGE", 10)
    assert onnxlab.load(data)._source.strings == {}
    assert onnxlab.load(spoilt("h") + group)._source.strings


def test_text_says_that_it_holds_stand_ins(tmp_path: Path) -> None:
    with pytest.warns(SaveWarning, match=r"a text holds UTF-8 only, so it has '\\\\xff' as shown here"):
        onnxlab.load(spoilt("h")).save(tmp_path / "model.textproto")
    assert onnxlab.load(tmp_path / "model.textproto").value(r"\xff")


def test_strings_that_a_patch_brings_survive_a_crash(tmp_path: Path) -> None:
    path = onnxlab.Model(model()).save(tmp_path / "m.onnx")
    opened, other = onnxlab.load(path), onnxlab.load(spoilt("NODE_DOC", "KEY"))
    opened.patch(onnxlab.diff(opened, other))
    opened.nodes[1].doc_string = "more"
    expected = opened.to_bytes()
    assert b"\xff" in expected
    assert rb"\xff" not in expected
    crash(opened)
    again = reopened(path)
    assert again.files.recover() == 2
    assert again.to_bytes() == expected
    crash(again)
    third = reopened(path)
    assert third.files.recover() == 2
    assert third.to_bytes() == expected


@pytest.mark.parametrize("places", [(), *PLACES], ids="-".join)
def test_few_messages_with_long_lists_are_not_parsed_again(
    places: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    proto = onnx.ModelProto.FromString(spoilt(*places))
    proto.graph.node.add(op_type="LongList").attribute.add(name="long", floats=[1] * 10_000)
    data = proto.SerializeToString()
    expected = foreign.replace(onnx.ModelProto.FromString(data), data)
    assert bool(expected) is bool(places)
    monkeypatch.setattr(foreign, "_LONG", 10_000)
    monkeypatch.setattr(foreign, "_is_utf8", lambda _: pytest.fail("parsed again"))
    assert foreign.replace(onnx.ModelProto.FromString(data), data) == expected


def test_many_messages_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = model()
    proto.graph.node.extend([onnx.NodeProto(op_type="Relu")] * foreign._FEW)
    parsed: list[bytes] = []
    monkeypatch.setattr(foreign, "_LONG", 1000)
    monkeypatch.setattr(foreign, "_is_utf8", lambda data: not parsed.append(data))
    data = proto.SerializeToString()
    assert foreign.replace(proto, data) == {}
    assert parsed == [data]
