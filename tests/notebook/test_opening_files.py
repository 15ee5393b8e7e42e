"""Files that the page sends: what they are, opened in the place of the model, inserted, or applied as weights."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import OnnxlabError
from tests.notebook.conftest import Page
from tests.support.samples import FORMATS, ort_pairs, samples


def small() -> onnx.ModelProto:
    """x → Gemm(w, b) → y."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("x", "y")]
    weights = [
        numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in (("w", (4, 4)), ("b", (4,)))
    ]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], "gemm")], "g", ends[:1], ends[1:], weights
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


@pytest.fixture
def page() -> Page:
    return Page(onnxlab.load(small()))


def send(page: Page, name: str, data: bytes) -> str:
    """Upload a file; returns the id by which requests name it."""
    half = len(data) // 2
    page.ask("upload", file=name, name=name, offset=0, data=base64.b64encode(data[:half]).decode())
    page.ask("upload", file=name, name=name, offset=half, data=base64.b64encode(data[half:]).decode())
    return name


def archive(**arrays: Any) -> bytes:
    np.savez(data := io.BytesIO(), **arrays)
    return data.getvalue()


def weights(tmp_path: Path, suffix: str, **arrays: np.ndarray) -> bytes:
    """A file of weights of some arrays."""
    model = onnxlab.load(onnx.helper.make_model(helper.make_graph([], "g", [], []), ir_version=10))
    for name, array in arrays.items():
        model.add_initializer(name, array)
    return model.files.save_weights(tmp_path / f"weights{suffix}").read_bytes()


GE = FORMATS / "ge"
FULL = {"w": np.full((4, 4), 2, np.float32), "b": np.full(4, 3, np.float32)}


def files() -> dict[str, tuple[bytes, str, int]]:
    """A file of each format: its bytes, the title of the format, and how many nodes it has."""
    ort = next(stored for _, stored in ort_pairs().values())
    torch = samples("pt2/torch")
    return {
        "m.onnx": (small().SerializeToString(), "ONNX", 1),
        "m.json": (onnxlab.load(small()).save(Path("m.json")).read_bytes(), "JSON", 1),
        "m.textproto": (onnxlab.load(small()).save(Path("m.textproto")).read_bytes(), "protobuf text", 1),
        "m.ort": (ort, "ORT format", len(onnxlab.load(ort).nodes)),
        "state": (samples("training/artifacts")["checkpoint_opt.ckpt"], "a training checkpoint", 0),
        "module.pt2": (
            torch["conv.pt2"] if "conv.pt2" in torch else (FORMATS / "pt2" / "module.pt2").read_bytes(),
            "a torch.export archive",
            -1,
        ),
        "w.npz": (archive(**FULL), "an .npz archive", 0),
    }


def test_a_file_of_each_format_opens_in_the_place_of_the_model(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = page.model
    for name, (data, title, nodes) in files().items():
        offer = page.ask("file", file=send(page, name, data))
        assert (offer["title"], offer["refused"]) == (title, ""), name
        assert nodes in (offer["nodes"], -1)
        assert page.ask("open", file=name)["title"] == name
        event = page.events[-1]
        assert (event["event"], event["title"]) == ("opened", name)
        assert page.ask("snapshot")["n"] == offer["nodes"]
        assert page.session.model is not first
        assert not page.session.model.dirty
    assert first.version == 0


def test_the_model_that_was_shown_before_comes_back_with_its_edits(page: Page) -> None:
    first = page.model
    first.nodes[0].name = "renamed"
    page.ask("open", file=send(page, "m.onnx", small().SerializeToString()))
    second = page.session.model
    second.nodes[0].name = "other"
    assert page.events[-1]["event"] == "commit"
    seen = len(page.events)
    first.nodes[0].name = "again"
    assert len(page.events) == seen, "the view follows only what it shows"
    assert page.ask("open", file=None) == {"title": first.name, "former": "m.onnx"}
    assert page.session.model is first
    assert page.ask("snapshot")["history"]["length"] == 2
    page.ask("open", file=None)
    assert page.session.model is second


def test_without_another_model_there_is_no_way_back(page: Page) -> None:
    assert page.refused("open", file=None)["code"] == "nothing"
    assert "was sent" in page.refused("open", file="never")["message"]


def test_a_model_is_opened_after_it_was_inserted(page: Page) -> None:
    file = send(page, "m.onnx", small().SerializeToString())
    page.ask(
        "edit",
        edit="insert_model",
        on="model",
        subject=[],
        parameters={"file": file, "connect": [], "feed": [], "prefix": "in_"},
    )
    page.ask("open", file=file)
    assert [node.name for node in page.session.model.nodes] == ["gemm"]
    page.session.model.nodes[0].name = "renamed"
    page.session.model.add_node("Relu", ["y"])
    assert page.ask("file", file=file)["nodes"] == 1, "the file itself is as it was sent"


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".ckpt"])
def test_weights_are_applied_as_one_step(page: Page, tmp_path: Path, suffix: str) -> None:
    file = send(page, f"w{suffix}", weights(tmp_path, suffix, **FULL))
    preview = page.ask("file", file=file)["weights"]
    assert preview == {"replaced": 2, "missing": [], "extra": [], "misfits": [], "more": [0, 0, 0]}
    before = page.model.to_bytes()
    edited = page.ask("apply_weights", file=file)
    assert edited["python"] == f"model.files.load_weights('w{suffix}')"
    assert [step["label"] for step in page.ask("history")["steps"]] == [f"load weights from w{suffix}"]
    for name, array in FULL.items():
        np.testing.assert_array_equal(np.asarray(page.model.tensor(name)), array)
    page.ask("undo")
    assert page.model.to_bytes() == before


def test_missing_extra_and_misshapen_weights_are_shown_before(page: Page, tmp_path: Path) -> None:
    other = {"w": np.ones((4, 4), np.float32), "head.bias": np.ones(2, np.float32)}
    file = send(page, "w.safetensors", weights(tmp_path, ".safetensors", **other))
    preview = page.ask("file", file=file)["weights"]
    assert (preview["replaced"], preview["missing"], preview["extra"]) == (1, ["b"], ["head.bias"])
    assert page.ask("apply_weights", file=file)["python"] == "model.files.load_weights('w.safetensors', strict=False)"
    np.testing.assert_array_equal(np.asarray(page.model.tensor("w")), other["w"])
    file = send(page, "odd.npz", archive(w=np.ones((2, 8), np.float32), b=FULL["b"]))
    preview = page.ask("file", file=file)["weights"]
    assert preview["misfits"] == ["w: the model has the shape [4, 4], the file [2, 8]"]
    version = page.model.version
    assert "do not fit" in page.refused("apply_weights", file=file)["message"]
    assert page.model.version == version


def test_weights_of_another_model_are_refused(page: Page) -> None:
    file = send(page, "w.npz", archive(q=np.ones(3)))
    assert page.ask("file", file=file)["weights"]["replaced"] == 0
    assert "has the name of a tensor" in page.refused("apply_weights", file=file)["message"]
    assert page.model.version == 0
    assert not page.ask("file", file=send(page, "m.onnx", small().SerializeToString()))["weights"]
    assert "m.onnx holds no weights" in page.refused("apply_weights", file="m.onnx")["message"]
    whole = archive(**FULL)
    cut = send(page, "cut.npz", whole[: len(whole) // 2])
    assert page.refused("apply_weights", file=cut)["message"].startswith("cut.npz is no .npz file that can be read")


def test_names_of_files_never_become_paths(page: Page, tmp_path: Path) -> None:
    for name in ("../../etc/w.npz", "/w.npz", "\0", "a" * 5000, ".", "..", "w\n.npz"):
        page.ask("upload", file="id", name=name, offset=0, data=base64.b64encode(archive(**FULL)).decode())
        assert page.ask("file", file="id")["weights"]["replaced"] == 2


def test_files_of_torch_are_left_to_a_cell(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONNXLAB_TORCH_PYTHON", raising=False)
    script = samples("pt2/torch")["traced.pt"]
    offer = page.ask("file", file=send(page, "traced.pt", script))
    assert offer["title"] == "TorchScript"
    assert offer["refused"] == "traced.pt: it is TorchScript, and loading it runs code that is in it."
    assert offer["torch"] == "onnxlab.show(onnxlab.load('traced.pt', trust=True, inputs=['float32[N,3,224,224]']))"
    assert "is not installed: pip install 'onnxlab[torch]'" in offer["note"]
    assert "runs code that is in it" in page.refused("open", file="traced.pt")["message"]
    program = (FORMATS / "pt2" / "module.pt2").read_bytes()
    offer = page.ask("file", file=send(page, "module.pt2", program))
    assert (offer["refused"], offer["torch"]) == ("", "onnxlab.show(onnxlab.load('module.pt2', trust=True))")


def test_what_is_no_model_says_what_it_is(page: Page) -> None:
    offer = page.ask("file", file=send(page, "notes.txt", b"hello"))
    assert offer["refused"].startswith("notes.txt: ")
    assert (offer["title"], offer["arrays"], offer["weights"]) == ("", 0, None)
    np.save(array := io.BytesIO(), np.ones(3))
    offer = page.ask("file", file=send(page, "a.npy", array.getvalue()))
    assert (offer["arrays"], offer["weights"]) == (1, None)
    index = b'{"weight_map": {"a": "model-00001-of-00002.safetensors"}}'
    offer = page.ask("file", file=send(page, "model.safetensors.index.json", index))
    assert "model.files.load_weights(path) in a cell" in offer["refused"]
    outside = small()
    outside.graph.initializer[0].CopyFrom(onnx.TensorProto(name="w", data_type=1, dims=[4, 4], data_location=1))
    outside.graph.initializer[0].external_data.add(key="location", value="w.bin")
    offer = page.ask("file", file=send(page, "m.onnx", outside.SerializeToString()))
    assert "files beside it" in offer["note"]


def test_a_widget_shows_another_model() -> None:
    first, second = onnxlab.load(small()), onnxlab.load(small())
    view = onnxlab.show(first, selection=["gemm"], bookmarks=["gemm"])
    view.show_model(second, "second")
    assert (view.model, view.title, view.selection, view.bookmarks) == (second, "second", (), ())
    view.selection = ["gemm"]
    first.nodes[0].remove(bypass=True)
    assert view.selection == (second.nodes[0],), "an edit of the other model is none of its business"
    second.nodes[0].remove(bypass=True)
    assert view.selection == ()
    assert first.view() is not view
    view.close()
    with pytest.raises(OnnxlabError, match="closed"):
        view.show_model(first)
