"""Saving: atomic whatever fails, together with its data, nothing rewritten that did not change."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import SaveError, SaveWarning
from onnxlab.formats import atomic, storage
from onnxlab.formats import source as sources
from onnxlab.formats.report import differences


def weights(count: int = 3, size: int = 2048) -> onnx.ModelProto:
    """MatMul-free model: `count` initializers of `size` floats, strings, a small one, one in float_data."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "xy")
    rng = np.random.default_rng(0)
    tensors = [numpy_helper.from_array(rng.random(size, np.float32), f"w{i}") for i in range(count)]
    tensors.append(helper.make_tensor("typed", TensorProto.FLOAT, [512], [0.5] * 512))
    tensors.append(helper.make_tensor("words", TensorProto.STRING, [200], [b"0123456789"] * 200))
    tensors.append(helper.make_tensor("small", TensorProto.FLOAT, [1], [1.0]))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "r")], "weights", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    graph = model.graph
    graph.MergeFromString(b"\xfa\x7f\x02hi")  # field 2047, unknown
    return model


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m" / "model.onnx"
    path.parent.mkdir()
    onnx.save(weights(), path)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def arrays(path: Path) -> dict[str, np.ndarray]:
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return {t.name: numpy_helper.to_array(t, str(path.parent)) for t in tensors}


# -- failures -----------------------------------------------------------------------------------------------------

CALLS = ("open", "write", "fsync", "replace", "link", "fchmod", "mkdir")


class Failure:
    """Lets the call fail that is made when `left` others that write, link or sync have been."""

    def __init__(self, left: int, code: int) -> None:
        self.left, self.code = left, code

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            if name != "open" or (len(args) > 1 and args[1] & os.O_WRONLY):
                self.left -= 1
                if self.left == -1:
                    raise OSError(self.code, os.strerror(self.code))
            return real(*args, **keywords)

        return call


def save_with_failure(
    model: onnxlab.Model, path: Path, options: dict[str, Any], failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> str | None:
    """The message of the SaveError, None where the save succeeded."""
    with monkeypatch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, failure.around(name, getattr(os, name)))
        try:
            model.save(path, **options)
        except SaveError as error:
            return str(error)
    return None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("case", ["in place", "elsewhere with data", "to data files"])
def test_whatever_call_fails_the_old_files_stay(
    case: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails the first call that writes, then the second, … until the save succeeds; nothing may change before."""
    source = tmp_path / "in"
    source.mkdir()
    onnx.save(weights(), source / "model.onnx", save_as_external_data=case == "elsewhere with data", location="d/w.bin"
              if (source / "d").mkdir() is None else "")  # fmt: skip
    target = tmp_path / "out"
    target.mkdir()
    (target / "model.onnx").write_bytes(b"precious")
    path = (source if case == "in place" else target) / "model.onnx"
    options = {"external_data": True, "shard_bytes": 9000} if case == "to data files" else {}
    model = onnxlab.load(source / "model.onnx")
    model.nodes[0].name = "renamed"
    model.graph.journal.begin(None)  # type: ignore[attr-defined]  # its failures stop no save
    before, failed = contents(tmp_path), 0
    while (message := save_with_failure(model, path, options, Failure(failed, code), monkeypatch)) is not None:
        assert os.strerror(code) in message
        assert contents(tmp_path) == before, f"call {failed} of {case}"
        assert sorted(p.name for p in tmp_path.rglob("*") if p.is_dir()) == ["d", "in", "out"], failed
        failed += 1
    assert failed >= 5
    assert onnx.load(path).graph.node[0].name == "renamed"
    assert not [name for name in contents(tmp_path) if name.endswith("tmp")]


_SAVER = """
import sys, onnxlab
model = onnxlab.load(sys.argv[1])
model.nodes[0].name = "a"
print("ready", flush=True)
while True:
    model.nodes[0].name = "b" if model.nodes[0].name == "a" else "a"
    model.save()
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(weights(8, 200_000), path)
    expected = arrays(path)
    rng = np.random.default_rng(1)
    process = None
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", _SAVER, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(float(rng.uniform(0, 0.05)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        loaded = arrays(path)
        assert all(np.array_equal(loaded[name], array) for name, array in expected.items())


def test_what_a_killed_save_left_goes_with_a_later_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = file.with_name(".model.onnx.0123abcd.onnxlab-tmp"), file.with_name(".model.onnx.fedc.onnxlab-tmp")
    old.touch()
    new.touch()
    model = onnxlab.load(file)
    model.nodes[0].name = "renamed"
    monkeypatch.setattr(atomic, "_ABANDONED", -1)  # the time of change cannot be set, so the limit is
    model.save()
    assert sorted(contents(file.parent)) == ["model.onnx"]


# -- conflicts ----------------------------------------------------------------------------------------------------


def test_a_file_changed_on_disk_is_not_overwritten(file: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "mine"
    onnx.save(weights(1), file)
    theirs = file.read_bytes()
    with pytest.raises(SaveError, match=r"changed on disk since it was loaded; save with overwrite=True, or under"):
        model.save()
    assert file.read_bytes() == theirs
    model.save(overwrite=True)
    assert onnx.load(file).graph.node[0].name == "mine"
    file.chmod(0o600)  # no change of content
    model.nodes[0].name = "again"
    model.save()
    model.save()


def test_a_change_during_the_save_is_noticed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "mine"
    real = os.fsync

    def meanwhile(descriptor: int) -> None:
        real(descriptor)
        file.write_bytes(b"theirs")

    monkeypatch.setattr("onnxlab.formats.atomic.os.fsync", meanwhile)
    with pytest.raises(SaveError, match="changed on disk"):
        model.save()
    assert contents(file.parent) == {"model.onnx": b"theirs"}


def test_a_file_that_is_gone_is_written_anew(file: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "mine"
    file.unlink()
    assert onnx.load(model.save()).graph.node[0].name == "mine"


# -- data files ---------------------------------------------------------------------------------------------------


def test_weights_go_to_a_data_file_and_strings_never(file: Path) -> None:
    expected = arrays(file)
    model = onnxlab.load(file)
    model.save(file.with_name("split.onnx"), external_data=True)
    saved = onnx.load(file.with_name("split.onnx"), load_external_data=False)
    outside = {t.name for t in saved.graph.initializer if t.data_location == TensorProto.EXTERNAL}
    assert outside == {"w0", "w1", "w2", "typed"}, "no strings, nothing below 1 KiB"
    assert saved.graph.SerializeToString().endswith(b"\xfa\x7f\x02hi"), "unknown fields stay"
    for name, array in arrays(file.with_name("split.onnx")).items():
        np.testing.assert_array_equal(array, expected[name])
    onnx.checker.check_model(str(file.with_name("split.onnx")))
    reloaded = onnxlab.load(file.with_name("split.onnx"))
    np.testing.assert_array_equal(reloaded.graph.array(reloaded.value("w1").id), expected["w1"])


def test_shards_hold_no_more_than_they_may(file: Path) -> None:
    model = onnxlab.load(file)
    model.save(file.with_name("s.onnx"), shard_bytes=20_000)
    shards = sorted(path for path in file.parent.iterdir() if ".data" in path.name or "-of-" in path.name)
    assert [path.name for path in shards] == ["s.onnx-00001-of-00002.data", "s.onnx-00002-of-00002.data"]
    assert all(path.stat().st_size <= 20_000 for path in shards)
    assert len(arrays(file.with_name("s.onnx"))) == 6


def test_data_that_did_not_change_is_not_written_again(file: Path) -> None:
    model = onnxlab.load(file)
    model.save(external_data=True)
    data = file.with_name("model.onnx.data")
    state, size = data.stat(), data.stat().st_size
    model.nodes[0].name = "renamed"
    model.save()
    assert file.stat().st_size < 4000
    model.save(external_data=True)
    assert data.stat() == state or (data.stat().st_mtime_ns, data.stat().st_ino) == (state.st_mtime_ns, state.st_ino)
    assert sorted(contents(file.parent)) == ["model.onnx", "model.onnx.data"]
    assert size >= 3 * 8192


def test_a_taken_name_is_not_written_over(file: Path) -> None:
    file.with_name("model.onnx.data").write_bytes(b"precious")
    model = onnxlab.load(file)
    with pytest.raises(SaveError, match="where a file is already; name another one"):
        model.save(external_data="model.onnx.data")
    model.save(external_data=True)
    assert sorted(contents(file.parent)) == ["model.onnx", "model.onnx.1.data", "model.onnx.data"]
    assert file.with_name("model.onnx.data").read_bytes() == b"precious"
    with pytest.raises(SaveError, match="the name of a file in the model's own folder"):
        model.save(external_data="../w.bin")


def test_what_protobuf_cannot_hold_goes_outside_by_itself(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "renamed"
    monkeypatch.setattr(sources, "LARGEST", 20_000)
    with pytest.warns(SaveWarning, match=r"model\.onnx would have 2 GiB or more.* data files beside it"):
        model.save()
    assert file.stat().st_size < 20_000
    model.nodes[0].name = "again"
    model.save()  # without a further argument
    assert onnx.load(file).graph.node[0].name == "again"
    monkeypatch.setattr(sources, "LARGEST", 100)
    with pytest.raises(SaveError, match="keep large weights in external data"):
        model.save(external_data=True)


def test_everything_into_one_file(file: Path, tmp_path: Path) -> None:
    expected = arrays(file)
    onnxlab.load(file).save(file.with_name("split.onnx"), external_data=True)
    model = onnxlab.load(file.with_name("split.onnx"))
    path = model.save(tmp_path / "one.onnx", external_data=False)
    assert not any(t.external_data for t in onnx.load(path, load_external_data=False).graph.initializer)
    model.nodes[0].name = "renamed"
    model.save()  # stays one file, and the data is still found
    for name, array in arrays(path).items():
        np.testing.assert_array_equal(array, expected[name])
    assert sorted(contents(tmp_path)) == sorted(["one.onnx", "m/model.onnx", "m/split.onnx", "m/split.onnx.data"])


def test_the_live_model_is_not_touched_by_moving_weights(file: Path) -> None:
    model = onnxlab.load(file)
    before = model.proto.SerializeToString()
    model.save(file.with_name("x.onnx"), external_data=True)
    assert model.proto.SerializeToString() == before


def test_names_that_are_no_utf8_survive_moving_weights(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"w0", b"\xff0").replace(b"weights", b"weight\xff"))
    model = onnxlab.load(file)
    data = model.save(file.with_name("split.onnx"), external_data=True).read_bytes()
    assert b"\xff0" in data
    assert b"weight\xff" in data
    back = onnxlab.load(file.with_name("split.onnx")).save(file.with_name("one.onnx"), external_data=False)
    assert b"\xff0" in back.read_bytes()


def test_unknown_fields_of_every_wire_type_survive_the_copy() -> None:
    unknown = (
        b"\xf8\x7f\x96\x01" + b"\xf9\x7f12345678" + b"\xfa\x7f\x02hi" + b"\xfd\x7f1234" + b"\xfb\x7f\x08\x01\xfc\x7f"
    )
    model = weights(1)
    data = model.SerializeToString() + unknown
    model = onnx.ModelProto.FromString(data)
    assert storage.detached(model, {}).SerializeToString() == model.SerializeToString()


# -- the report ---------------------------------------------------------------------------------------------------


def test_the_report_lists_exactly_what_changed(file: Path) -> None:
    model = onnxlab.load(file)
    assert model.files.save_report() == []
    model.nodes[0].name = "renamed"
    (difference,) = model.files.save_report()
    assert (difference.path, difference.old, difference.new) == ("graph.node[0].name", "r", "renamed")
    assert str(difference) == "graph.node[0].name: 'r' → 'renamed'"
    model.undo()
    assert model.files.save_report() == []
    model.add_node("Neg", ["y"], ["z"], "n")
    (difference,) = model.files.save_report()
    assert (difference.path, difference.old, difference.new.op_type) == ("graph.node[1]", None, "Neg")
    model.save()
    assert model.files.save_report() == []
    model.save(external_data=True)
    assert model.files.save_report() == [], "where the bytes lie is no difference"
    file.write_bytes(b"")
    with pytest.raises(SaveError, match="changed on disk"):
        model.files.save_report()


def test_the_report_tells_order_from_content() -> None:
    old = weights(3)
    new = onnx.ModelProto()
    new.CopyFrom(old)
    moved = onnx.TensorProto()
    moved.CopyFrom(new.graph.initializer[0])
    del new.graph.initializer[0]
    new.graph.initializer.insert(2, moved)
    new.graph.initializer[0].doc_string = "was w1"
    new.producer_name = ""
    assert [(d.path, d.old, d.new) for d in differences(old, new)] == [
        ("producer_name", None, "") if not old.HasField("producer_name") else ("producer_name", old.producer_name, ""),
        ("graph.initializer[1].doc_string", None, "was w1"),
        ("graph.initializer(order)", (0, 1, 2), (1, 2, 0)),
    ]
