"""A difference applied: to the model that it begins with, and to others."""

import random
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.analysis.diff import contents
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.patching import patch
from onnxlab.errors import EditError, OnnxlabError
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.analysis.diff.truth import edited, renamed_and_shuffled
from tests.graph.support.models import branches, chain, nameless, untidy
from tests.graph.support.random_edits import EDITS, Draw
from tests.graph.support.torture import torture
from tests.support import corpus

BASES = (branches, chain, torture, untidy)


def written(graph: ModelGraph) -> bytes:
    return graph.proto.SerializeToString(deterministic=True)


def randomly_edited(seed: int) -> tuple[ModelGraph, ModelGraph]:
    """A model, and one that up to twelve edits of every sort were made to."""
    rng, make, names = random.Random(seed), BASES[seed % len(BASES)], sorted(EDITS)
    b = ModelGraph(make())
    for number in range(rng.randint(1, 12)):
        try:
            EDITS[rng.choice(names)](Draw(b, (rng.randrange(9999), rng.randrange(9999), rng.randrange(9999)), number))
        except OnnxlabError:
            continue
    return ModelGraph(make()), b


def broken(seed: int) -> str:
    """The fault after the difference of two random models was applied and taken back, "" where there is none."""
    a, b = randomly_edited(seed)
    before = written(a)
    patch(a, Diff(a, b))
    if written(a) != written(b):
        return "bytes"
    if nameless(ModelGraph(onnx.ModelProto.FromString(written(b)))) != nameless(a):
        return "index"
    if before != written(b):
        a.undo()
    return "" if written(a) == before else "undo"


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_random_edits_are_made_again_to_the_byte(start: int) -> None:
    assert {seed: problem for seed in range(start, start + 20) if (problem := broken(seed))} == {}


@pytest.mark.parametrize("name", ["bert_base", "silero_vad_if", "functions_ts", "lstm_gru", "stft_audio"])
def test_models_become_each_other(name: str) -> None:
    a, rng = onnxlab.load(corpus.path(name)), random.Random(3)
    proto, _ = renamed_and_shuffled(edited(a.proto, 0.1, rng)[0], rng)
    b, before = onnxlab.load(proto), a.to_bytes()
    a.patch(onnxlab.diff(a, b))
    assert written(a.graph) == written(b.graph)
    assert a.history.labels == ["patch"]
    a.undo()
    assert a.to_bytes() == before


def test_a_third_model_gets_what_changed_and_keeps_what_it_has() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
    b.nodes["/stem/relu/Relu"].attributes["alpha"] = 0.2
    b.value("head.fc.weight").array = b.tensor("head.fc.weight")[:] * 2
    b.value("logits").insert_after("Neg")
    b.metadata["revision"] = "2"
    difference = onnxlab.diff(a, b)
    proto, table = renamed_and_shuffled(a.proto, random.Random(5))
    third = onnxlab.load(proto)
    third.metadata["mine"] = "kept"
    assert third.patch(difference) == []
    expected = onnxlab.load(renamed_and_shuffled(b.proto, random.Random(5))[0])
    image = np.random.default_rng(0).normal(size=(2, 1, 8, 8)).astype(np.float32)
    ours, theirs = (next(iter(model.run(image).values())) for model in (third, expected))
    np.testing.assert_array_equal(ours, theirs)
    assert dict(third.metadata) == {"mine": "kept", "revision": "2"}
    assert third.history.labels[-1] == "patch"
    assert [item for item in third.check() if item.severity == "error"] == []
    third.undo()
    assert table["logits"] in third.values or third.value(table["logits"])


def test_what_is_missing_is_refused_by_name() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/head/Softmax"].attributes["axis"] = 0
    difference = onnxlab.diff(a, b)
    other = onnxlab.load().extract("stem/relu_out")
    before = other.to_bytes()
    with pytest.raises(EditError, match=r"does not have: .*Softmax.*strict=False"):
        other.patch(difference)
    assert other.to_bytes() == before
    assert "/head/Softmax" in other.patch(difference, strict=False)


def test_a_difference_of_models_that_were_edited_since_is_refused() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes[0].name = "other"
    difference = onnxlab.diff(a, b)
    b.nodes[1].name = "another"
    with pytest.raises(EditError, match="edited after the difference was taken"):
        a.patch(difference)


def test_ignored_changes_are_not_made() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/stem/relu/Relu"].name = "renamed"
    b.nodes["/head/Softmax"].attributes["axis"] = 1
    a.patch(onnxlab.diff(a, b, ignore=["names"]))
    assert a.nodes["/head/Softmax"].attributes["axis"] == 1
    assert "/stem/relu/Relu" in [node.name for node in a.nodes]


def test_a_name_that_is_no_utf_8_is_written_as_its_bytes() -> None:
    data = chain().SerializeToString()
    other = data.replace(b"r_out", b"r_\xffut")
    model = onnxlab.load(data)
    assert model.patch(onnxlab.diff(onnxlab.load(data), onnxlab.load(other))) == []
    assert model.to_bytes() == other
    model.undo()
    assert model.to_bytes() == data


def test_an_output_without_a_name_is_taken_back() -> None:
    """A value that nothing makes stands where the new output, which has no name, would be."""
    before = "g (float[2] x) => (float[2] y) { h = Abs (x) a = Exp (u) y = Neg (a) }"
    after = "g (float[2] x) => (float[2] y) { u = Abs (x) a = Exp (u) y = Neg (a) }"
    a, b = (onnx.helper.make_model(onnx.parser.parse_graph(text)) for text in (before, after))
    b.graph.output.add()
    model, unchanged = onnxlab.load(a), a.SerializeToString(deterministic=True)
    model.patch(onnxlab.diff(model, onnxlab.load(b)))
    assert [output.name for output in model.proto.graph.output] == ["y", ""]
    model.undo()
    assert model.proto.SerializeToString(deterministic=True) == unchanged


@pytest.mark.parametrize("patched", ["documented", "odd"])
def test_a_text_that_stands_for_other_bytes_in_one_model_is_not_mixed_up(patched: str) -> None:
    proto = chain()
    data = proto.SerializeToString()
    plain, odd = onnxlab.load(data), onnxlab.load(data.replace(b"r_out", b"r_\xffut"))
    proto.graph.node[0].doc_string = r"r_\xffut"
    documented = onnxlab.load(proto)
    model, other = (documented, odd) if patched == "documented" else (odd, documented)
    before = model.to_bytes()
    with pytest.raises(EditError, match=r"r_\\\\xffut' stands for a string that is no UTF-8 in one"):
        model.patch(onnxlab.diff(plain, other))
    assert model.to_bytes() == before


def test_a_text_that_no_change_brings_stays_what_it_is() -> None:
    base = chain()
    base.graph.doc_string = "odd"
    a = base.SerializeToString().replace(b"odd", b"\xff\xfeo")
    b = a.replace(b"r_out", b"q_out")
    third = chain()
    third.graph.node[0].doc_string = r"\xff\xfeo"
    model = onnxlab.load(third)
    model.patch(onnxlab.diff(onnxlab.load(a), onnxlab.load(b)))
    assert "q_out" in [name for node in model.proto.graph.node for name in node.output]
    assert onnx.ModelProto.FromString(model.to_bytes()).graph.node[0].doc_string == r"\xff\xfeo"


def test_what_a_body_reads_in_place_of_a_removed_value_keeps_its_partner() -> None:
    """The body of one model reads the input that the other model's body reads a node of."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (bool c, float[N] x, float[N] z) => (float[N] y, float[N] w) {
        v = Softsign(x)
        y = If(c) <then_branch = t () => (float[N] a) { a = Neg(v) }, else_branch = e () => (float[N] b) { b = Abs(z) }>
        w = Add(x, z)
    }"""
    first, second, third = (onnxlab.Model(onnx.parser.parse_model(text)) for _ in range(3))
    second.remove(["v"], bypass=True)
    difference = onnxlab.diff(first, second)
    paired = difference.matching.values
    assert len(set(paired.values())) == len(paired), "no value has two partners"
    assert difference.of_kind("renamed") == ()
    third.node_at("", 2).set_input(1, "x")
    third.patch(difference)
    assert [value.name for value in third.inputs] == ["c", "x", "z"]
    assert third.node_at("If#0/then_branch", 0).inputs[0].name == "x"


TWO_READ = """<ir_version: 9, opset_import: ["" : 18]>
g (float[N] x, float[N] z, float[N] a) => (float[N] u, float[N] v, float[N] w) <float[1] k = {2.0}> {
    d = Sub(a, a)
    v = Mul(x, k)
    w = Add(v, z)
    u = Max(v, z)
}"""


@pytest.mark.parametrize("salt", range(8))
def test_inputs_are_themselves_where_their_names_are_kept(monkeypatch: pytest.MonkeyPatch, salt: int) -> None:
    """By structure alone, what reads the two inputs could tell that they were swapped; hashes have no part in it."""
    monkeypatch.setattr(contents, "hash", lambda item: hash((salt, item)), raising=False)
    first, second, third = (onnxlab.Model(onnx.parser.parse_model(TWO_READ)) for _ in range(3))
    second.value("u").producer.set_input(1, "x")
    difference = onnxlab.diff(first, second)
    assert [str(change) for change in difference] == ["node Max#3: input 1 z → x"]
    third.nodes[0].name = "another"
    third.patch(difference)
    assert [[value.name for value in node.inputs] for node in third.nodes[1:]] == [["x", "k"], ["v", "z"], ["v", "x"]]


def test_an_output_keeps_its_name_when_another_node_makes_it() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[N] x) => (float[N] y, float[N] w) {
        a = Tanh(x)
        y = Tanh(a)
        w = Neg(x)
    }"""
    first, second, third = (onnxlab.Model(onnx.parser.parse_model(text)) for _ in range(3))
    second.remove(["a"], bypass=True)
    third.nodes[2].name = "another"
    third.patch(onnxlab.diff(first, second))
    assert [value.name for value in third.outputs] == ["y", "w"]
    assert [node.op_type for node in third.nodes] == ["Tanh", "Neg"]


def test_what_no_change_brings_is_refused() -> None:
    twice, untrained = torture(), torture()
    twice.functions.append(twice.functions[0])
    untrained.training_info[0].ClearField("initialization")
    for other, says in ((twice, "has two functions of one name"), (untrained, "a training graph came or went")):
        model = onnxlab.Model(torture())
        before = model.to_bytes()
        with pytest.raises(EditError, match=says):
            model.patch(onnxlab.diff(model, other))
        assert model.to_bytes() == before


@pytest.mark.parametrize("to_itself", [True, False])
def test_a_model_that_changes_is_not_read_while_it_does(to_itself: bool) -> None:
    """A difference with ignored kinds, made to one of the two models that it was taken of."""
    first, second = onnxlab.load(), onnxlab.load()
    second.value("stem/relu_out").name = "renamed"
    second.value("logits").insert_after("Neg")
    second.remove("/block2/Add", bypass=True)
    second.add_initializer("extra", np.zeros(3, np.float32))
    difference = onnxlab.diff(first, second, ignore=["producer"])
    before = second.to_bytes()
    if to_itself:
        first.patch(difference)
        assert not onnxlab.diff(first, second, ignore=["producer", "order"])
    else:
        count = len(second.nodes)
        second.patch(difference, strict=False)
        assert len(second.nodes) <= count + 1
        second.undo()
        assert second.to_bytes() == before


def test_metadata_and_texts_of_nodes_and_graphs_are_patched() -> None:
    first, second, third = (onnxlab.load() for _ in range(3))
    second.nodes["/stem/relu/Relu"].metadata["scope"] = "stem"
    second.nodes["/stem/relu/Relu"].doc_string = "the first"
    second.graph_doc_string, second.graph_metadata["of"] = "all of it", "graph"
    third.nodes["/stem/relu/Relu"].metadata["own"] = "kept"
    third.patch(onnxlab.diff(first, second))
    assert dict(third.nodes["/stem/relu/Relu"].metadata) == {"own": "kept", "scope": "stem"}
    assert third.nodes["/stem/relu/Relu"].doc_string == "the first"
    assert (third.graph_doc_string, dict(third.graph_metadata)) == ("all of it", {"of": "graph"})


@pytest.mark.parametrize("is_third", [False, True])
def test_weights_in_files_of_another_folder_come_along(tmp_path: Path, is_third: bool) -> None:
    """Both models call their data file the same, so that a location alone would find the old weights."""
    models = []
    for number in range(2):
        proto = onnx.parser.parse_model(
            '<ir_version: 9, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) { a = Mul(x, w) y = Add(a, kept) }'
        )
        for name, first in (("w", number), ("kept", 5)):
            proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(first, first + 4, dtype="f4"), name))
        folder = tmp_path / str(number)
        folder.mkdir()
        words = {"save_as_external_data": True, "location": "data.bin", "size_threshold": 0}
        onnx.save(proto, folder / "m.onnx", **words)
        models.append(onnxlab.load(folder / "m.onnx"))
    first, second = models
    third = onnxlab.load(tmp_path / "0" / "m.onnx")
    if is_third:
        third.nodes[0].name = "another"
    before = third.to_bytes()
    third.patch(onnxlab.diff(first, second))
    np.testing.assert_array_equal(third.run({"x": np.ones(4, np.float32)})["y"], np.float32([6, 8, 10, 12]))
    assert third.proto.graph.initializer[1].HasField("data_location"), "equal data stay where they are"
    third.undo()
    assert third.to_bytes() == before
