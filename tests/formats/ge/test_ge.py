"""Dumps of GE: three texts written by the rules of the format, and what is wrong with others."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import onnxlab
from onnxlab.errors import EditError, LoadError, RunError
from onnxlab.formats.ge_stages import stages
from onnxlab.graph.protos import ge_dump

HERE = Path(__file__).parent
BEGIN, INFERRED, BUILD = sorted(HERE.glob("*.pbtxt"))


def edges(model: onnxlab.Model) -> set[tuple[Any, ...]]:
    """(producer, port, consumer, slot among its data inputs, -1 for a control edge)."""
    references = set()
    for source, target, (_, slot), attributes in model.nx.edges(keys=True, data=True):
        reference = ge_dump.split(attributes["name"])
        assert reference is not None
        reader = model.node(target)
        place = -1 if attributes["kind"] == "control" else slot
        references.add((model.node(source).name, reference.port, reader.name, place))
    return references


COUNTS = {BEGIN: (8, 5, 3, 2), INFERRED: (6, 3, 0, 2), BUILD: (7, 9, 1, 1)}
"""By file: nodes, data edges, control edges, unconnected inputs."""


def counts(model: onnxlab.Model) -> tuple[int, int, int, int]:
    """The counts in the order of COUNTS."""
    kinds = Counter(edge["kind"] for *_, edge in model.nx.edges(data=True))
    unconnected = sum(not name for node in model.proto.graph.node for name in node.input)
    return len(model.nodes), kinds["data"], kinds["control"], unconnected


@pytest.mark.parametrize("path", COUNTS, ids=["begin", "inferred", "build"])
def test_nodes_and_edges(path: Path) -> None:
    model = onnxlab.load(path)
    assert counts(model) == COUNTS[path]
    assert not model.check()
    assert not model.diagnostics


def test_ports_and_slots_are_told_apart() -> None:
    assert edges(onnxlab.load(BUILD)) == {
        ("args0", 0, "split", 0),
        ("axis", 0, "split", 1),
        ("split", 2, "cast", 0),
        ("split", 0, "add", 0),
        ("cast", 0, "add", 1),
        ("split", -1, "add", -1),
        ("add", 0, "twice", 0),
        ("add", 0, "twice", 1),
        ("twice", 0, "Node_Output", 0),
        ("add", 0, "Node_Output", 1),
    }


def test_types_are_those_of_the_descriptors() -> None:
    model = onnxlab.load(BEGIN)
    assert str(model.fact("w:0")) == "float32[4,3,3,3]"
    assert str(model.fact("k:0")) == "int32[]"
    assert str(model.fact("x:0")).endswith(",3,8,8]")
    conv = model.node("net/conv:1").proto
    descriptor = ge_dump.descriptor(conv, "input", 0)
    assert (descriptor.dtype, descriptor.layout, descriptor.origin_layout) == ("DT_FLOAT", "NC1HWC0", "NCHW")
    assert any("NC1HWC0" in text for _, text in ge_dump.details(conv))
    assert str(onnxlab.load(INFERRED).fact("x:0")) == "float32[?]"


@pytest.mark.parametrize("path", [BEGIN, INFERRED, BUILD], ids=["begin", "inferred", "build"])
def test_the_text_comes_back(path: Path, tmp_path: Path) -> None:
    model = onnxlab.load(path)
    assert model.save(tmp_path / "same.pbtxt").read_bytes() == path.read_bytes()
    first = next(node for node in model.nodes if node.outputs)
    first.name = "another"
    model.save(tmp_path / "edited.pbtxt")
    assert not onnxlab.load(tmp_path / "edited.pbtxt").check()
    model.undo()
    assert model.save(tmp_path / "undone.pbtxt").read_bytes() == path.read_bytes()


def test_references_follow_the_name_of_a_node() -> None:
    model = onnxlab.load(BUILD)
    before = edges(model)
    model.node("split").name = "halves"
    renamed = {tuple("halves" if part == "split" else part for part in edge) for edge in before}
    assert edges(model) == renamed
    model.node("Node_Output").name = "end"
    assert model.proto.graph.output[0].name == "end"
    model.undo()
    assert model.proto.graph.output[0].name == "Node_Output"


def test_a_dump_is_neither_run_nor_checked_as_onnx() -> None:
    model = onnxlab.load(BEGIN)
    with pytest.raises(RunError, match="dump of GE, whose operators only that engine runs"):
        model.run()


def test_control_edges_are_dashed_and_inputs_are_nodes() -> None:
    from onnxlab.render.picture import picture

    drawn = picture(onnxlab.load(BUILD))
    names = {box.key: box.tip for box in drawn.boxes}
    assert len(drawn.boxes) == 7
    dashed = [(names[edge.source], names[edge.target]) for edge in drawn.edges if edge.is_capture]
    assert dashed == []  # data and control go the same way here
    drawn = picture(onnxlab.load(BEGIN))
    names = {box.key: box.tip for box in drawn.boxes}
    assert {(names[edge.source], names[edge.target]) for edge in drawn.edges if edge.is_capture}


def test_unknown_fields_are_shown_and_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "new.pbtxt"
    path.write_text(BUILD.read_text().replace('op_type: "ge:Cast"', 'op_type: "ge:Cast"\n    stream_of_ge { a: 3 }'))
    model = onnxlab.load(path)
    assert len(model.nodes) == 7
    with pytest.raises(EditError, match=r"fields that onnx\.proto lacks .* it is only shown"):
        model.node("cast").name = "other"
    assert model.save(tmp_path / "copy.pbtxt").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('input: "cast:0"', 'input: "gone:0"', "ge-reference"),
        ('input: "cast:0"', 'input: "cast:1"', "ge-reference"),
        ('input: "cast:0"', 'input: "cast"', "ge-reference"),
        ('output: "twice:0"', 'output: "twice:0"\n    output: "twice:1"', "ge-unread"),
        ('name: "twice"', 'name: "add"', "ge-name"),
    ],
)
def test_what_does_not_hold_is_said(old: str, new: str, code: str) -> None:
    text = BUILD.read_text()
    assert old in text
    assert code in {problem.code for problem in onnxlab.load(text.replace(old, new).encode()).check()}


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("a:0", ("a", 0)), ("a:b:3", ("a:b", 3)), ("a:-1", ("a", -1)), ("", None), ("a", None), ("a:x", None),
        ("a:-2", None), ("a:٣", None), ("a:" + "9" * 5000, None),
    ],
)  # fmt: skip
def test_references_are_split_at_the_last_colon(text: str, reference: tuple[str, int] | None) -> None:
    assert ge_dump.split(text) == reference


def test_text_of_a_dump_that_cannot_be_read() -> None:
    with pytest.raises(LoadError, match="protobuf text of a GE dump"):
        onnxlab.load(b'producer_name: "GE"\ngraph { node {')
    with pytest.raises(LoadError, match="GE dump without a graph"):
        onnxlab.load(b'producer_name: "GE"\n')


def test_the_stages_of_a_folder(tmp_path: Path) -> None:
    assert [stage.name for stage in stages(HERE)] == ["PreRunBegin", "AfterInfershape", "Build"]
    with pytest.raises(LoadError, match="it has no ge_onnx_"):
        stages(tmp_path)
    with pytest.raises(LoadError, match="no folder"):
        stages(tmp_path / "gone")


def test_two_stages_are_compared() -> None:
    text = BUILD.read_text().replace('name: "cast"', 'name: "cast2"').replace("cast:0", "cast2:0")
    difference = onnxlab.diff(BUILD, text.replace("ge:Mul", "ge:Square").encode())
    changes = {str(change) for change in difference.changes}
    assert changes == {
        "node cast: renamed to cast2", "value cast:0: renamed to cast2:0", "node twice: operator ge:Mul → ge:Square",
    }  # fmt: skip
    assert not onnxlab.diff(stages(HERE)[0], BEGIN)


def test_a_stage_is_patched_into_the_one_before() -> None:
    before, after = stages(HERE)[:2]
    difference = onnxlab.diff(before, after)
    model = onnxlab.load(before)
    assert model.patch(difference) == []
    assert not onnxlab.diff(model, after)
    model.undo()
    assert not onnxlab.diff(model, before)


def test_descriptors_and_the_schedule_can_be_left_out() -> None:
    before, after = stages(HERE)[:2]
    whole = onnxlab.diff(before, after)
    fields = {change.field for change in whole.changes}
    assert {"attribute id", "attribute input_desc_dtype:0", "attribute stream_id"} <= fields
    left = onnxlab.diff(before, after, ignore=["declarations", "order"])
    assert {change.field for change in left.changes if change.field.startswith("attribute")} == {
        "attribute index", "attribute stream_id",
    }  # fmt: skip
    assert onnxlab.diff(before, after, ignore=["attributes"]).changes


def test_values_of_dumps_are_not_compared() -> None:
    with pytest.raises(RunError, match=r"neither model runs: .*ge:Data"):
        onnxlab.compare(BUILD, BUILD)
