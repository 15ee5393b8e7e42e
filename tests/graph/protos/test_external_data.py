"""External data: read where it is allowed to be, refused everywhere else."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxlab.errors import LoadError
from onnxlab.graph.protos import external_data, tensors
from tests.support.corpus import Corpus

DATA = np.arange(8, dtype=np.float32)


def external(location: str, **entries: object) -> TensorProto:
    """A float32[8] tensor "w" that says its data is in `location`."""
    tensor = TensorProto(name="w", dims=[8], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """model/ with w.bin (4 bytes of something, then DATA), and secret.bin beside model/."""
    inside = tmp_path / "model"
    (inside / "deep").mkdir(parents=True)
    (inside / "w.bin").write_bytes(b"----" + DATA.tobytes())
    (inside / "deep" / "w.bin").write_bytes(DATA.tobytes())
    (inside / "longer.bin").write_bytes(DATA.tobytes() + b"more")
    (tmp_path / "secret.bin").write_bytes(DATA.tobytes())
    return inside


@pytest.mark.parametrize(
    "tensor",
    [
        external("w.bin", offset=4, length=32),
        external("longer.bin"),
        external("./w.bin", offset=4),
        external("deep/w.bin"),
        external("deep/w.bin", length=32, checksum="x", unknown="y"),
    ],
)
def test_reads_what_the_entries_say(tensor: TensorProto, folder: Path) -> None:
    array = tensors.to_array(tensor, folder)
    np.testing.assert_array_equal(array, DATA)
    assert not array.flags.writeable


def test_reads_all_of_a_real_model_as_onnx_does(corpus: Corpus) -> None:
    path = corpus["llama12_dyn_ext"]
    lazy, full = onnx.load(path, load_external_data=False), onnx.load(path)
    assert sum(map(external_data.is_external, lazy.graph.initializer)) == 86
    for ours, theirs in zip(lazy.graph.initializer, full.graph.initializer, strict=True):
        np.testing.assert_array_equal(tensors.to_array(ours, path.parent), numpy_helper.to_array(theirs))
    assert external_data.locations(lazy) == {"model.onnx.data": "emb.weight"}


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (external("../secret.bin"), r"'\.\./secret\.bin', which goes up"),
        (external("deep/../w.bin"), "goes up"),
        (external("/etc/passwd"), "absolute path"),
        (external("gone.bin"), "which is not in .*: put the file beside the model"),
        (external("deep"), "no regular file"),
        (external("w.bin/x"), "cannot be reached through plain folders"),
        (external(""), "not in which file"),
        (external("."), "no file name"),
        (external("a\0b"), "no file name"),
        (external("w.bin", offset=5, length=32), r"bytes 5 to 37 of 'w\.bin', which has only 36"),
        (external("w.bin", offset=2**63), "which has only 36"),
        (external("w.bin", length=33), "said to hold 33 bytes of it, its type and shape take 32"),
        (external("w.bin", offset=-1), "the offset .* is '-1', not a whole number"),
        (external("w.bin", length="1_0"), "the length .* is '1_0'"),
    ],
)
def test_everything_else_is_refused(tensor: TensorProto, message: str, folder: Path) -> None:
    with pytest.raises(LoadError, match=message):
        tensors.to_array(tensor, folder)


def test_links_inside_are_followed_and_links_out_refused(folder: Path) -> None:
    (folder / "inner").symlink_to("deep/w.bin")
    np.testing.assert_array_equal(tensors.to_array(external("inner"), folder), DATA)
    (folder / "out").symlink_to("../secret.bin")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    for location in ("out", "up/secret.bin"):
        with pytest.raises(LoadError, match=r"leads out of .* by a symbolic link"):
            tensors.to_array(external(location), folder)
    with pytest.raises(LoadError, match="loop"):
        tensors.to_array(external("loop"), folder)


def test_the_folder_itself_may_be_reached_by_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    np.testing.assert_array_equal(tensors.to_array(external("deep/w.bin"), tmp_path / "alias"), DATA)


def test_a_link_put_in_after_the_check_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "later").symlink_to("../secret.bin")
    monkeypatch.setattr(external_data, "confined", lambda *_: Path("later"))
    with pytest.raises(LoadError, match="cannot be reached through plain folders"):
        tensors.to_array(external("later"), folder)


def test_hard_links_are_refused(folder: Path) -> None:
    os.link(folder.parent / "secret.bin", folder / "hard")
    with pytest.raises(LoadError, match="more than one hard link"):
        tensors.to_array(external("hard"), folder)


def test_a_fifo_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(LoadError, match="no regular file"):
        tensors.to_array(external("pipe"), folder)


def test_without_a_folder_nothing_is_read() -> None:
    with pytest.raises(LoadError, match="load the model by its path"):
        tensors.to_array(external("w.bin"))


def test_a_file_cut_off_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stat:
        st_size, st_mode, st_nlink = 10**6, 0o100644, 1

    monkeypatch.setattr(external_data.os, "fstat", lambda descriptor: Stat)  # type: ignore[attr-defined]
    with pytest.raises(LoadError, match="has only 36"):
        tensors.to_array(external("w.bin", offset=8), folder)


def test_all_tensors_finds_every_corner() -> None:
    def named(name: str) -> TensorProto:
        return numpy_helper.from_array(np.zeros(1, np.int64), name)

    sparse = helper.make_sparse_tensor(named("sparse"), named("indices"), [1])
    body = helper.make_graph([helper.make_node("Constant", [], ["c"], value=named("body"))], "b", [], [])
    node = helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body, extra=[named("list")])
    model = helper.make_model(
        helper.make_graph([node], "g", [], [], [named("init")], sparse_initializer=[sparse]),
        functions=[
            helper.make_function(
                "d", "f", [], ["c"], [helper.make_node("Constant", [], ["c"], sparse_value=sparse)], []
            )
        ],
    )
    model.training_info.add().algorithm.initializer.append(named("training"))
    names = sorted(tensor.name for tensor in external_data.all_tensors(model))
    assert names == sorted(["init", "body", "body", "list", "training"] + 2 * ["sparse", "indices"])
