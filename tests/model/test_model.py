"""The main job on real models, without a front end: open, look, edit, watch shapes, run, undo, save."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError, FeedError, NameLookupError, SaveError
from onnxlab.graph.handles.handles import Node
from tests.support.corpus import NAMES, Corpus


def test_the_job(tmp_path: Path) -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    conv = model.nodes["/block2/conv1/Conv"]
    conv.attributes["strides"] = [1, 1]
    assert model.fact("block2/conv1_out").shape[1:] == (16, 8, 8)
    old, new = model.last_change.facts["block2/conv1_out"]
    assert (str(old), str(new)) == ("float32[batch,16,4,4]", "float32[batch,16,8,8]")
    assert any(diagnostic.node == model.nodes["/block2/Add"].id for diagnostic in model.diagnostics), "8x8 plus 4x4"
    model.undo()
    assert model.to_bytes() == before
    assert not model.diagnostics
    model.redo()
    assert model.fact("block2/conv1_out").shape[1:] == (16, 8, 8)
    model.undo()
    path = model.save(tmp_path / "out.onnx")
    assert path.read_bytes() == before


def test_it_recognizes_digits() -> None:
    model = onnxlab.load()
    rng = np.random.default_rng(0)
    image = rng.random((3, 1, 8, 8), np.float32)
    result = model.run({"image": image}, outputs=["probabilities", "stem/relu_out"])
    assert list(result) == ["probabilities", "stem/relu_out"]
    assert result["probabilities"].sum(1) == pytest.approx(np.ones(3), abs=1e-5)
    assert model.values["stem/relu_out"].shape == (3, 8, 8, 8)
    part = model.subgraph(["/stem/conv/Conv", "/stem/relu/Relu", "/stem/bn/BatchNormalization"]).run()
    np.testing.assert_array_equal(part["stem/relu_out"], result["stem/relu_out"])


def test_values_below_an_edit_are_those_of_the_model_as_it_is() -> None:
    model = onnxlab.load()
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    assert model.values.get("probabilities") is None
    before = model.run({"image": image})["probabilities"]
    assert "probabilities" in model.values
    assert model.values.get("no such value", 7) == 7
    model.nodes["/stem/relu/Relu"].op_type = "Neg"
    assert model.values.is_stale("probabilities")
    np.testing.assert_array_equal(model.values.get("probabilities", stale=True), before)
    part = model.subgraph(["/block1/Add"]).run()["block1/add_out"]
    again = onnxlab.load(model.to_bytes()).run({"image": image}, outputs=["block1/add_out", "probabilities"])
    np.testing.assert_array_equal(part, again["block1/add_out"])
    np.testing.assert_array_equal(model.values["probabilities"], again["probabilities"])
    assert not model.values.is_stale("probabilities")


def test_a_model_with_one_input_takes_its_array_alone() -> None:
    model = onnxlab.load()
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    expected = model.run({"image": image})["probabilities"]
    np.testing.assert_allclose(model.run(image)["probabilities"], expected, atol=1e-6)
    np.testing.assert_allclose(model.run(image.tolist(), "probabilities")["probabilities"], expected, atol=1e-6)
    actual = model.run(image, "probabilities", providers=["numpy"])["probabilities"]
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    with pytest.raises(FeedError, match=r"as \{name: array\}; given float32\[1,1,8,8\]"):
        model.subgraph(["/block1/Add"]).run(image)
    two = onnxlab.Model(onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] a, float[2] b) => (float[2] y) { y = Add (a, b) }'
    ))  # fmt: skip
    with pytest.raises(FeedError, match=r"the inputs are 'a' float32\[2\], 'b' float32\[2\]"):
        two.run(np.ones(2, np.float32))


def test_a_selection_makes_up_no_value_that_nothing_makes() -> None:
    model = onnxlab.Model(onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] a) => (float[2] y) { y = Add (a, nope) }'
    ))  # fmt: skip
    with pytest.raises(FeedError, match="'nope' is read and nothing makes it"):
        model.subgraph([0]).run()


@pytest.mark.parametrize("outputs", ["probs", ["probs"], ["stem/relu_ou"], [3], 3, [["a"]]])
@pytest.mark.parametrize("providers", [None, ["numpy"]])
def test_an_output_that_is_not_there_is_refused_with_what_there_is(outputs: Any, providers: list[str] | None) -> None:
    image = np.zeros((1, 1, 8, 8), np.float32)
    with pytest.raises(NameLookupError, match=r"outputs are 'probabilities'|Did you mean|by name, as outputs="):
        onnxlab.load().run({"image": image}, outputs, providers=providers)


@pytest.mark.parametrize("providers", [None, ["numpy"], ["numba", "numpy"], ["onnxruntime"]])
def test_a_pin_holds_for_every_provider(providers: list[str] | None) -> None:
    model = onnxlab.load()
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    free = model.run({"image": image}, ["probabilities", "logits"])
    pinned = np.zeros_like(free["logits"])
    pinned[0, 0] = 9
    model.pin("logits", pinned)
    assert free["probabilities"].argmax() != 0
    assert model.run({"image": image}, providers=providers)["probabilities"].argmax() == 0
    assert model.run(providers=providers)["probabilities"].argmax() == 0


def test_a_subgraph_never_run_makes_up_its_inputs() -> None:
    part = onnxlab.load().subgraph(["/block1/Add"]).run()
    assert part["block1/add_out"].dtype == np.float32
    assert part["block1/add_out"].shape[1:] == (8, 8, 8)


def test_several_changes_are_one_step() -> None:
    model = onnxlab.load()
    with model.edit("swap activation"):
        model.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
        model.nodes["/stem/relu/Relu"].attributes["alpha"] = 0.2
    assert model.history.labels == ["swap activation"]
    model.undo()
    assert model.nodes["/stem/relu/Relu"].op_type == "Relu"


def test_errors_help() -> None:
    model = onnxlab.load()
    with pytest.raises(NameLookupError, match="Did you mean '/stem/conv/Conv'"):
        model.nodes["/stem/conv/Con"]
    with pytest.raises(EditError, match="takes a list of integers"):
        model.nodes["/stem/conv/Conv"].attributes["strides"] = "no"
    with pytest.raises(FeedError, match="image"):
        model.run({"imge": np.zeros((1, 1, 8, 8), np.float32)})
    with pytest.raises(NameLookupError, match="no value is called"):
        model.fact("nothing")


def test_subscribers_hear_of_commits_and_a_broken_one_is_cut_off() -> None:
    model = onnxlab.load()
    heard: list[str] = []
    unsubscribe = model.subscribe(lambda commit: heard.append(commit.label))

    def broken(commit: object) -> None:
        raise RuntimeError("broken")

    model.subscribe(broken)
    with pytest.warns(UserWarning, match="was cut off"):
        model.nodes["/stem/conv/Conv"].name = "first"
    model.undo()
    unsubscribe()
    model.redo()
    assert heard == ["rename /stem/conv/Conv to first"] * 2


def bypassed(model: onnxlab.Model, node: Node) -> bool:
    """Whether a node could be removed with bypass: a constant cannot, nor can one with several outputs in use."""
    try:
        model.remove([node], bypass=True)
    except EditError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_is_byte_identical(name: str, corpus: Corpus, tmp_path: Path) -> None:
    """Load then save, and change then undo then save, give the file's own bytes, external data included."""
    original = Path(corpus[name]).read_bytes()
    model = onnxlab.load(corpus[name])
    assert model.save(tmp_path / "same.onnx").read_bytes() == original
    model = onnxlab.load(corpus[name])
    facts = {vid: model.fact(vid) for vid in model.graph.values}
    node = model.nodes[len(model.nodes) // 2]
    node.name = "renamed"
    next(value for value in node.outputs if value).name = "renamed_output"
    middle = [*model.nodes[len(model.nodes) // 2 :], *model.nodes]
    any(bypassed(model, other) for other in middle)
    assert model.proto.SerializeToString() != original
    while model.undo():
        pass
    assert model.proto.SerializeToString() == original
    assert {vid: model.fact(vid) for vid in model.graph.values} == facts
    saved = model.save(tmp_path / "undone.onnx")
    assert saved.read_bytes() == original
    for tensor in onnx.external_data_helper._get_all_tensors(onnx.load(saved, load_external_data=False)):
        if onnx.external_data_helper.uses_external_data(tensor):
            info = onnx.external_data_helper.ExternalDataInfo(tensor)
            assert (tmp_path / info.location).read_bytes() == (Path(corpus[name]).parent / info.location).read_bytes()


@pytest.mark.parametrize("name", ["resnet50", "minilm_int8"])
def test_values_equal_onnxruntime(
    name: str,
    corpus: Corpus,
    feeds: Callable[[str], dict[str, np.ndarray]],
    ort_run: Callable[..., dict[str, np.ndarray]],
) -> None:
    """DESIGN's oracle: float32 within 1e-4 of the largest magnitude, int8-dynamic within 2e-3."""
    inputs = feeds(name)
    ours = onnxlab.load(corpus[name]).run(inputs)
    theirs = ort_run(corpus[name], inputs)
    tolerance = 2e-3 if "int8" in name else 1e-4
    assert ours.keys() == theirs.keys()
    for key, expected in theirs.items():
        assert ours[key].dtype == expected.dtype
        np.testing.assert_allclose(ours[key], expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_the_model_that_comes_along_is_not_saved_over() -> None:
    with pytest.raises(SaveError, match=r"say where to save it"):
        onnxlab.load().save()
