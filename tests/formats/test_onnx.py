"""Reading and writing model files: bytes, mode and links kept, and each kind of bad input named."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onnxlab.errors import LoadError, SaveError
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats import saving
from tests.support.corpus import NAMES, Corpus


def small_model(name: str = "g") -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    return helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], name, [x], [y]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(small_model().SerializeToString())
    return path


# -- reading ------------------------------------------------------------------------------------------------------


def test_reads_paths_bytes_and_protos(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, source = onnx_format.read(file)
    assert model == small_model()
    assert (source.path, source.base_dir, source.original()) == (file, file.parent, file.read_bytes())
    model, source = onnx_format.read(file.read_bytes())
    assert (source.path, source.base_dir, source.original()) == (None, None, file.read_bytes())
    assert onnx_format.read(model) == (model, onnx_format.Source())  # type: ignore[attr-defined]
    assert onnx_format.read(model)[0] is model
    monkeypatch.chdir(file.parent)
    assert onnx_format.read("model.onnx")[1].path == file


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_keeps_every_byte(name: str, corpus: Corpus, tmp_path: Path) -> None:
    model, source = onnx_format.read(corpus[name])
    data = corpus[name].read_bytes()
    assert source.original() == data
    assert model.SerializeToString() == data
    saved = saving.write(model, tmp_path / "copy.onnx", source)
    assert (tmp_path / "copy.onnx").read_bytes() == data
    assert saved.original() == data


def test_newer_versions_and_unknown_fields_are_tolerated_and_kept() -> None:
    model = small_model()
    model.ir_version = 999
    model.opset_import[0].version = 999
    data = model.SerializeToString() + b"\xfa\x7f\x02hi"  # field 2047
    model, _ = onnx_format.read(data)
    assert model.ir_version == 999
    assert model.SerializeToString() == data


def test_a_model_without_ir_version_still_loads() -> None:
    model = small_model()
    model.ClearField("ir_version")
    assert onnx_format.read(model.SerializeToString())[0].graph.node[0].op_type == "Relu"


def write_bad(path: Path, kind: str) -> None:
    whole = small_model("a" * 100).SerializeToString()
    contents = {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "truncated before the graph": b"\x08\x0a\x12\x04test",
        "random": b"\xde\xad\xbe\xef" * 64,
        "random that parses": b"\x3a\x00",
        "unknown fields only": b"\xfa\x7f\x02hi",
        "text": b"hello, this is no model\nat all\n",
        "text with a cut character": "ü".encode() * 4096,
        "web page": b"<!DOCTYPE html><html><body>Sign in</body></html>",
        "git-lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "declares 2 GiB": b"\x08\x0a\x3a\x80\x80\x80\x80\x08" + b"\0" * 50,
        "zip": b"PK\x03\x04" + b"\0" * 50,
        "safetensors": b"\x10\0\0\0\0\0\0\0" + b'{"a":{}}',
        "nested too deep": nested(120),
        "damaged inside": b"\x08\x0a\x3a\x03\xff\xff\xff",
        "damaged at the end": whole + b"\x07",
    }
    path.write_bytes(contents[kind])


def nested(depth: int) -> bytes:
    """A model of If nodes within each other, in bytes: protobuf itself refuses to build it."""

    def field(number: int, content: bytes) -> bytes:
        length, size = b"", len(content)
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    graph = b""
    for _ in range(depth):
        graph = field(1, field(4, b"If") + field(5, field(6, graph)))  # node, op_type, attribute, g
    return b"\x08\x0a" + field(7, graph)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("empty", "it is empty"),
        ("truncated", r"it is cut off: its graph needs [\d,]+ bytes and only [\d,]+ are there"),
        ("truncated before the graph", "no graph, only ir_version, producer_name: it is cut off or no ONNX model"),
        ("random", "its bytes are no protobuf message of that kind"),
        ("random that parses", "not an ONNX model, only an empty graph"),
        ("unknown fields only", "not an ONNX model"),
        ("text", "a text file, not an ONNX model; it begins with 'hello, this is no model'"),
        ("text with a cut character", "a text file"),
        ("web page", "a web page, not a model"),
        ("git-lfs", "a git-lfs pointer, not the model: fetch it with `git lfs pull`"),
        ("declares 2 GiB", "its graph declares 2,147,483,648 bytes .* external data"),
        ("zip", "a zip archive"),
        ("safetensors", "it is no safetensors file: its header should have 16 bytes"),
        ("nested too deep", "nested deeper than protobuf's 100 levels"),
        ("damaged inside", "it is damaged inside"),
        ("damaged at the end", "it is damaged after its"),
    ],
)
def test_each_bad_file_is_told_apart(kind: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    write_bad(path, kind)
    with pytest.raises(LoadError, match=message) as by_path:
        onnx_format.read(path)
    assert "bad.onnx" in str(by_path.value)
    with pytest.raises(LoadError, match=message):
        onnx_format.read(path.read_bytes())


def test_missing_files_name_what_is_close(file: Path) -> None:
    with pytest.raises(LoadError, match=r"no such file; did you mean model\.onnx\?"):
        onnx_format.read(file.with_name("modle.onnx"))
    with pytest.raises(LoadError, match="nothing is fetched from the network; download the file"):
        onnx_format.read("https://example.com/m.onnx")
    with pytest.raises(LoadError, match="there is no folder"):
        onnx_format.read(file.parent / "gone" / "model.onnx")
    (file.parent / "dangling").symlink_to("nowhere")
    with pytest.raises(LoadError, match="a symbolic link to nowhere, which does not exist"):
        onnx_format.read(file.parent / "dangling")


def test_a_folder_lists_its_models(file: Path) -> None:
    with pytest.raises(LoadError, match=r"it is a folder; give one of the models in it: model\.onnx"):
        onnx_format.read(file.parent)
    (file.parent / "empty").mkdir()
    with pytest.raises(LoadError, match="it is a folder; give the path of a model file"):
        onnx_format.read(file.parent / "empty")


def test_devices_and_pipes_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(LoadError, match=r"^cannot load [^:]*: it is no regular file$"):
            onnx_format.read(path)


def test_a_file_of_2_gib_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 31)  # sparse: takes no space
    with pytest.raises(LoadError, match=r"2,147,483,648 bytes, and protobuf cannot read .* external data"):
        onnx_format.read(path)


def test_an_unreadable_file_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(onnx_format.os, "open", refuse)  # type: ignore[attr-defined]  # root may read everything
    with pytest.raises(LoadError, match="no permission to read it"):
        onnx_format.read(file)


def test_other_types_and_names_are_refused(file: Path) -> None:
    with pytest.raises(LoadError, match="a path, bytes or a ModelProto, not from GraphProto"):
        onnx_format.read(small_model().graph)
    with pytest.raises(LoadError, match="its name has a NUL character"):
        onnx_format.read("a\0b")


# -- the original bytes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: (path.write_bytes(bytes(len(path.read_bytes()))), os.utime(path, ns=(1, 1))),
        lambda path: (path.rename(path.with_name("old")), shutil.copy2(path.with_name("old"), path)),
        lambda path: path.unlink(),
    ],
)
def test_original_is_none_once_the_file_changed(file: Path, change: Callable[[Path], object]) -> None:
    source = onnx_format.read(file)[1]
    assert source.original() is not None
    change(file)
    assert source.original() is None


UNSORTED = b"\x3a\x02\x12\x00\x08\x08"  # the graph before ir_version: protobuf writes it the other way round


def test_original_survives_that_an_edit_was_saved_over_it(file: Path) -> None:
    file.write_bytes(UNSORTED)
    model, source = onnx_format.read(file)
    assert model.SerializeToString() != UNSORTED
    model.graph.name = "edited"
    source = saving.write(model, file, source)
    assert onnx.load(file).graph.name == "edited"
    assert source.original() == UNSORTED
    source = saving.write(model, file, source, UNSORTED)
    assert file.read_bytes() == source.original() == UNSORTED


# -- writing ------------------------------------------------------------------------------------------------------


def test_keeps_mode_and_symbolic_link(file: Path) -> None:
    file.chmod(0o640)
    link = file.with_name("link.onnx")
    link.symlink_to(file.name)
    saving.write(small_model("new"), link)
    assert link.is_symlink()
    assert onnx.load(file).graph.name == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(entry.name for entry in file.parent.iterdir()) == ["link.onnx", "model.onnx"]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    saving.write(small_model(), tmp_path / "new.onnx")
    (tmp_path / "plain").touch()
    assert (tmp_path / "new.onnx").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("call", ["fsync", "replace", "write"])
def test_a_failure_leaves_everything_as_it_was(file: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(f"onnxlab.formats.atomic.os.{call}", full)
        with pytest.raises(SaveError, match="No space left on device; nothing was changed"):
            saving.write(small_model("new"), file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_an_interrupt_leaves_everything_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = file.read_bytes()
    monkeypatch.setattr("onnxlab.formats.atomic.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        saving.write(small_model("new"), file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_targets_that_cannot_be(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SaveError, match="it is a folder; give the name of a file in it"):
        saving.write(small_model(), file.parent)
    with pytest.raises(SaveError, match=r"the folder .*gone does not exist"):
        saving.write(small_model(), file.parent / "gone" / "model.onnx")
    os.mkfifo(file.with_name("pipe"))
    with pytest.raises(SaveError, match="no regular file"):
        saving.write(small_model(), file.with_name("pipe"))
    monkeypatch.setattr("onnxlab.formats.atomic.os.access", lambda *_: False)  # root may write everywhere
    with pytest.raises(SaveError, match="it is read-only"):
        saving.write(small_model(), file)


# -- external data ------------------------------------------------------------------------------------------------


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """in/model.onnx with its weights in in/data/w.bin."""
    path = tmp_path / "in" / "model.onnx"
    (path.parent / "data").mkdir(parents=True)
    (path.parent / "data" / "w.bin").write_bytes(bytes(range(8)))
    model = small_model()
    tensor = model.graph.initializer.add(name="w", dims=[2], data_type=1, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="data/w.bin")
    path.write_bytes(model.SerializeToString())
    (tmp_path / "out").mkdir()
    return path


def test_external_data_goes_along(external: Path, tmp_path: Path) -> None:
    model, source = onnx_format.read(external)
    for _ in range(2):  # the second time the data is there already
        source = saving.write(model, tmp_path / "out" / "copy.onnx", source)
        assert (tmp_path / "out" / "data" / "w.bin").read_bytes() == bytes(range(8))
        assert source.base_dir == tmp_path / "out"
    assert onnx.load(tmp_path / "out" / "copy.onnx").graph.initializer[0].raw_data == bytes(range(8))


def test_other_data_is_never_overwritten(external: Path, tmp_path: Path) -> None:
    other = tmp_path / "out" / "data" / "w.bin"
    other.parent.mkdir()
    other.write_bytes(b"precious")
    with pytest.raises(SaveError, match=r"another file is already; move it away or save into another folder"):
        saving.write(*onnx_format.read(external)[:1], tmp_path / "out" / "m.onnx", onnx_format.read(external)[1])
    assert other.read_bytes() == b"precious"
    assert not (tmp_path / "out" / "m.onnx").exists()


def test_model_and_data_are_saved_together_or_not_at_all(
    external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = onnx_format.read(external)
    renamed = os.replace

    def second_fails(temporary: str, target: Path) -> None:
        if target.name == "m.onnx":
            raise OSError(5, "Input/output error")
        renamed(temporary, target)

    monkeypatch.setattr("onnxlab.formats.atomic.os.replace", second_fails)
    with pytest.raises(SaveError, match="Input/output error"):
        saving.write(model, tmp_path / "out" / "m.onnx", source)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_missing_data_stops_a_copy_but_not_a_save_in_place(external: Path, tmp_path: Path) -> None:
    model, source = onnx_format.read(external)
    (external.parent / "data" / "w.bin").unlink()
    with pytest.raises(SaveError, match=r"tensor 'w' has its data in 'data/w\.bin', which is not in"):
        saving.write(model, tmp_path / "out" / "m.onnx", source)
    model.graph.name = "edited"
    saving.write(model, external, source)
    assert onnx.load(external, load_external_data=False).graph.name == "edited"


def test_data_outside_of_the_folder_is_not_carried(external: Path, tmp_path: Path) -> None:
    model, source = onnx_format.read(external)
    model.graph.initializer[0].external_data[0].value = "../secret"
    (tmp_path / "secret").write_bytes(b"12345678")
    with pytest.raises(SaveError, match="goes up with"):
        saving.write(model, tmp_path / "out" / "m.onnx", source)


def test_a_proto_without_a_folder_needs_its_data_in_place(external: Path, tmp_path: Path) -> None:
    model = onnx.load(external, load_external_data=False)
    saving.write(model, external.with_name("again.onnx"))
    with pytest.raises(SaveError, match="load the model by its path"):
        saving.write(model, tmp_path / "out" / "m.onnx")
