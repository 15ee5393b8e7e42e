"""Files beside models, and names under which models are written: nothing is destroyed by a wrong word."""

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab import cli
from onnxlab.errors import LoadError, SaveError, SaveWarning
from onnxlab.formats import atomic, kinds, output, textual
from tests.graph.support.models import chain

Write = Callable[[onnxlab.Model, Any], Any]
MADE: dict[str, Write] = {".svg": onnxlab.Model.to_svg, ".html": onnxlab.Model.to_html, ".png": onnxlab.Model.to_png}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(chain(), path)
    return path


@pytest.fixture(params=MADE)
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# -- what is made of models ---------------------------------------------------------------------------------------


def test_nothing_but_its_own_kind_is_written_over(file: Path, suffix: str, tmp_path: Path) -> None:
    model, write = onnxlab.load(file), MADE[suffix]
    target = tmp_path / f"out{suffix}"
    target.write_bytes(b"")
    for _ in range(2):  # to a new file, then over a file of its kind
        write(model, target)
    before = target.read_bytes()
    for name, data in (("other.PDF", b""), (f"taken{suffix}", file.read_bytes()), (f"text{suffix}", b"my notes")):
        other = tmp_path / name
        other.write_bytes(data)
        with pytest.raises(SaveError, match=r"whose name ends in|a file is there that is not an?"):
            write(model, other)
        assert other.read_bytes() == data
    write(model, tmp_path / "no_suffix")
    assert len((tmp_path / "no_suffix").read_bytes()) == len(before)


def test_the_model_itself_is_not_written_over_by_any_name(file: Path, suffix: str, tmp_path: Path) -> None:
    content = file.read_bytes()
    odd = file.with_name(f"odd{suffix}")
    shutil.copy(file, odd)
    hard, soft = tmp_path / f"hard{suffix}", tmp_path / f"soft{suffix}"
    os.link(odd, hard)
    soft.symlink_to(odd)
    model = onnxlab.load(odd)
    for name in (odd, hard, soft):
        with pytest.raises(SaveError, match=rf"odd\{suffix} is read from there; give another name"):
            MADE[suffix](model, name)
    with pytest.raises(SaveError, match="whose name ends in"):
        MADE[suffix](model, file)
    assert file.read_bytes() == odd.read_bytes() == content


def test_a_failure_half_way_leaves_what_was_there(
    file: Path, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, target = onnxlab.load(file), tmp_path / f"out{suffix}"
    MADE[suffix](model, target)
    before = target.read_bytes()

    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "write_all", full)
    with pytest.raises(SaveError, match="No space left on device; nothing was changed"):
        MADE[suffix](model, target)
    assert target.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["model.onnx", target.name])


def test_every_kind_knows_its_own(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    np.savez(tmp_path / "empty.npz")
    for name in ("a.npz", "empty.npz"):
        assert output.check(tmp_path / name, kinds.ARRAYS) == tmp_path / name
    (tmp_path / "b.svg").write_bytes(b'\xef\xbb\xbf<?xml version="1.0"?><!-- by hand --><svg/>')
    (tmp_path / "b.html").write_bytes(b"\n<!DOCTYPE HTML><HTML><body></body></HTML>")
    output.write(tmp_path / "b.svg", b"<svg/>", kinds.SVG)
    output.write(tmp_path / "b.html", b"<html/>", kinds.PAGE)
    with pytest.raises(SaveError, match=r"a file is there that is not an SVG picture"):
        output.write(tmp_path / "a.npz", b"<svg/>", kinds.FileKind("an SVG picture", (".npz",), kinds.SVG.fits))


# -- the command line ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["svg", "model.onnx", "-o", "model.onnx"],
        ["svg", "model.onnx", "-o", "hard.svg"],
        ["svg", "model.onnx", "-o", "soft.png"],
        ["svg", "model.onnx", "-o", "hard.html"],
        ["svg", "model.onnx", "-o", "new.pdf"],
        ["svg", "model.onnx", "-o", "new"],
        ["run", "model.onnx", "--save", "model.onnx"],
        ["run", "model.onnx", "--save", "hard.npz"],
        ["run", "model.onnx", "--save", "new.npy"],
        ["run", "model.onnx", "x=x.npy", "--save", "x.npz"],
        ["run", "model.onnx", "feeds.npz", "--save", "feeds.npz"],
        ["run", "model.onnx", "feeds.npz", "--save", "soft_feeds.npz"],
        ["run", "model.onnx", "--save", "no/folder.npz"],
    ],
)
def test_no_command_destroys_what_it_reads(
    arguments: list[str],
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((2, 3), np.float32))
    os.link("x.npy", "x.npz")
    np.savez("feeds.npz", x=np.ones((2, 3), np.float32))
    for suffix in (".svg", ".html", ".npz"):
        os.link(file, f"hard{suffix}")
    for name, link in ((file, "soft.png"), ("feeds.npz", "soft_feeds.npz")):
        Path(link).symlink_to(name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert cli.main(arguments) == 5
    assert capsys.readouterr().err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# -- models -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["m.safetensors", "m.PT2", "m.pdf", "m.svg", "m.npz", "m.txt", "m.onnx.gz", "m.py", "m.tflite"]
)
def test_a_model_is_not_written_under_the_suffix_of_another_format(name: str, file: Path, tmp_path: Path) -> None:
    model = onnxlab.load(file)
    for write in (model.save, lambda path: onnxlab.save(chain(), path)):
        with pytest.raises(
            SaveError, match=r"is (the suffix of another format than ONNX|only read); .*(\.onnx|model\.)"
        ):
            write(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_suffixes_that_say_nothing_else_are_fine(file: Path, tmp_path: Path) -> None:
    model = onnxlab.load(file)
    for name in ("m", "m.pb", "m.v2", "m.ONNX", "m.model"):
        assert model.save(tmp_path / name).read_bytes() == file.read_bytes()


def test_a_file_that_has_such_a_name_is_saved_in_place(file: Path, tmp_path: Path) -> None:
    misnamed = tmp_path / "m.tflite"
    shutil.copy(file, misnamed)
    model = onnxlab.load(misnamed)
    model.nodes[0].name = "renamed"
    model.save()
    assert onnx.load(misnamed, format="protobuf").graph.node[0].name == "renamed"


def documented() -> onnx.ModelProto:
    """A model with what ONNX text leaves out."""
    proto = chain()
    proto.graph.node[0].doc_string = "why"
    proto.domain = "org.example"
    return proto


@pytest.mark.parametrize("written", [".textproto", ".json", ".onnx"])
@pytest.mark.parametrize("name", ["m.onnxtxt", "m.onnx", "m.json", "m.textproto"])
def test_the_format_that_was_read_is_written(written: str, name: str, tmp_path: Path) -> None:
    path, proto = tmp_path / name, documented()
    text = textual.text_of(proto, written).encode() if written != ".onnx" else proto.SerializeToString()
    path.write_bytes(text)
    model = onnxlab.load(path)
    model.nodes[0].name = "renamed"
    proto.graph.node[0].name = "renamed"
    expected = textual.text_of(proto, written).encode() if written != ".onnx" else proto.SerializeToString()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is lost, so nothing is said
        assert model.save().read_bytes() == expected
        assert model.save(tmp_path / f"copy{path.suffix}").read_bytes() == expected
        link = tmp_path / "link.pb"
        link.symlink_to(path)
        assert onnxlab.load(link).save(path).read_bytes() == expected
    model.undo()
    assert model.save().read_bytes() == text


def test_another_suffix_asks_for_another_format(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(textual.text_of(documented(), ".textproto"))
    model = onnxlab.load(path)
    assert model.save(tmp_path / "m.onnx").read_bytes() == documented().SerializeToString()
    assert model.save(tmp_path / "m.json").read_text() == textual.text_of(documented(), ".json")


def test_weights_taken_in_are_text_in_a_text(tmp_path: Path) -> None:
    big = onnxlab.load(chain())
    big.add_initializer("big", np.arange(1000, dtype=np.float32))
    big.save(tmp_path / "m.onnx", external_data=True)
    path = onnxlab.load(tmp_path / "m.onnx").save(tmp_path / "m.json", external_data=False)
    assert path.read_text().startswith("{")
    assert np.asarray(onnxlab.load(path).tensor("big"))[999] == 999


def test_weights_and_model_do_not_take_each_others_place(tmp_path: Path) -> None:
    model = onnxlab.load(chain())
    model.add_initializer("big", np.arange(1000, dtype=np.float32))
    with pytest.raises(SaveError, match="name another one"):
        model.save(tmp_path / "m.onnx", external_data="m.onnx")
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "m.onnx", external_data="w.bin")
    with pytest.raises(SaveError, match="the weights of this model are in it"):
        onnxlab.load(tmp_path / "m.onnx").save(tmp_path / "w.bin")
    assert (tmp_path / "w.bin").stat().st_size == 4000


def test_a_hard_link_that_keeps_the_old_content_is_told(file: Path, tmp_path: Path) -> None:
    old = file.read_bytes()
    os.link(file, tmp_path / "other.onnx")
    model = onnxlab.load(file)
    model.nodes[0].name = "renamed"
    with pytest.warns(
        SaveWarning, match=r"model\.onnx has another name \(a hard link\), which keeps the old"
    ) as caught:
        model.save()
    assert caught[0].filename == __file__
    assert (tmp_path / "other.onnx").read_bytes() == old
    assert onnxlab.load(file).nodes[0].name == "renamed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.nodes[0].name = "again"
        model.save()


# -- paths --------------------------------------------------------------------------------------------------------


def test_paths_that_are_none(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    model = onnxlab.load(file)
    long, loop = tmp_path / ("a" * 300), tmp_path / "a"
    for path, words in (
        (f"{tmp_path}/x\0y", "NUL"), (long, "too long"), (loop, "lead back to themselves|levels of symbolic"),
        (tmp_path / "a" / "m", "lead back to themselves|levels of symbolic|there is no folder"),
        ("~no-user-of-this-name/x", "no folder|does not exist"), ("", "empty"), ("\ud800", "surrogate"),
        (f"{file}/x", "no folder|does not exist"), (f"{tmp_path}/{'d/' * 3000}x", "too long|no folder|does not exist"),
    ):  # fmt: skip
        with pytest.raises(LoadError, match=words):
            onnxlab.load(path)
        for write in (model.save, model.to_svg, model.to_html, lambda path: onnxlab.save(chain(), path)):
            with pytest.raises(SaveError, match=words):
                write(path)
    for nothing in (5, 1.5, object()):
        with pytest.raises(LoadError):
            onnxlab.load(nothing)
        for write in (model.save, model.to_svg, model.to_html):
            with pytest.raises(SaveError, match=r"a path is a str or a pathlib\.Path, not"):
                write(nothing)
    assert loop.is_symlink()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(LoadError, match="the working folder is gone"):
        onnxlab.load("m.onnx")
    with pytest.raises(SaveError, match="the working folder is gone"):
        model.save("m.onnx")
