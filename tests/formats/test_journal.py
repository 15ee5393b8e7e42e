"""The crash journal: no acknowledged edit is lost, whatever happens to the process or the journal."""

import contextlib
import dataclasses
import errno
import inspect
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import EditError, JournalWarning
from onnxlab.formats.journals import change_codec, journal, recovery
from onnxlab.graph import edits
from onnxlab.graph.edit import changes
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.graph.support.models import branches, chain


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's journals; everything is kept there, as after a crash."""
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "last_value", None, raising=False)
    return tmp_path / "state" / "journals"


def crash(model: onnxlab.Model) -> None:
    """What the death of the process does: the lock goes, and nothing is tidied up."""
    holder = model.graph.journal._holder  # type: ignore[attr-defined]
    if holder.file:
        os.close(holder.file._descriptor)
        holder.file._descriptor, holder.file = -1, None


def reopened(path: Path) -> onnxlab.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JournalWarning)
        return onnxlab.load(path)


def random_edits(model: onnxlab.Model, count: int, seed: int = 0) -> Iterator[bytes]:
    """`count` commits of every sort, undo and redo among them; yields the model's bytes after each."""
    rng, graph = random.Random(seed), model.graph
    done = 0
    while done < count:
        node = graph.nodes[rng.choice(list(graph.nodes))]
        value = graph.values[rng.choice(list(graph.values))]
        choices: list[Any] = [
            lambda node=node: edits.rename_node(graph, node, f"n{graph.version}"),
            lambda value=value: edits.rename_value(graph, value, f"v{graph.version}"),
            lambda node=node: edits.remove_nodes(graph, [node], True),
            lambda node=node, value=value: edits.set_input(graph, node, 0, value.name),
            lambda value=value: edits.add_node(
                graph, helper.make_node("Neg", [value.name], [f"o{graph.version}"]), graph.scopes[value.scope]
            ),
            lambda: graph.apply(changes.SetField(("model", 0), "producer_name", f"p{graph.version}")),
            lambda: graph.apply(
                changes.SetInitializer(graph.main.id, "w", numpy_helper.from_array(np.ones(graph.version + 1), "w"))
            ),
            model.undo,
            model.redo,
        ]
        version = graph.version
        with contextlib.suppress(EditError, ValueError, IndexError):
            rng.choice(choices)()
        if graph.version > version:
            done += 1
            yield model.to_bytes()


# -- nothing is lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [branches, chain])
def test_after_a_crash_every_edit_is_there_and_can_be_undone(make: Any, seed: int, file: Path) -> None:
    onnx.save(make(), file)
    model = onnxlab.load(file)
    original = model.to_bytes()
    last = list(random_edits(model, 40, seed))[-1]
    labels = model.history.labels
    crash(model)
    if not labels:
        return
    with pytest.warns(JournalWarning, match=r"model\.onnx: \d+ edits? of .* were never saved; model\.files\.recover"):
        again = onnxlab.load(file)
    assert again.files.recoverable[0].labels == tuple(labels)
    again.files.recover()
    assert again.to_bytes() == last
    assert again.history.labels == labels
    assert again.files.recoverable == ()
    while again.undo():
        pass
    assert again.to_bytes() == original
    while again.redo():
        pass


_EDITOR = """
import sys, onnxlab
model = onnxlab.load(sys.argv[1])
for number in range(1000):
    model.nodes[0].name = f"name {number}"
    print(number, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_kill_after_each_edit_loses_none(file: Path) -> None:
    for count in (1, 2, 5):
        process = subprocess.Popen(
            [sys.executable, "-c", _EDITOR, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(count):
            assert int(process.stdout.readline()) == number
            if number + 1 < count:
                process.stdin.write(b"\n")
        process.kill()
        process.communicate()
        model = reopened(file)
        assert model.files.recover() == count
        assert model.nodes[0].name == f"name {count - 1}"
        model.graph.journal.begin(None)  # type: ignore[attr-defined]


def test_a_journal_cut_or_damaged_anywhere_gives_its_longest_valid_part(file: Path, folder: Path) -> None:
    model = onnxlab.load(file)
    states = [model.to_bytes(), *random_edits(model, 6)]
    (path,) = folder.iterdir()
    crash(model)
    data = path.read_bytes()
    whole = journal.records(data)
    position = len(journal._MAGIC)
    ends = []
    for record in whole:
        position += 12 + len(record)
        ends.append(position)
    for cut in range(len(data) + 1):
        found = journal.records(data[:cut])
        assert found == whole[: sum(end <= cut for end in ends)]
        damaged = journal.records(data[:cut] + b"\xff" * 20 + data[cut + 20 :])
        assert damaged == whole[: len(damaged)]
    for number, end in enumerate(ends[1:], 1):
        path.write_bytes(data[: end + 5])
        again = reopened(file)
        if again.files.recoverable:
            again.files.recover()
            assert again.to_bytes() == states[number]
            again.graph.journal.begin(None)  # type: ignore[attr-defined]


# -- when there is a journal, and when not --------------------------------------------------------------------------


def test_what_is_saved_or_discarded_leaves_no_journal(file: Path, folder: Path) -> None:
    model = onnxlab.load(file)
    assert not folder.exists(), "nothing is written before the first edit"
    model.nodes[0].name = "a"
    (path,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    model.save()
    assert list(folder.iterdir()) == []
    model.nodes[0].name = "b"
    crash(model)
    again = reopened(file)
    again.files.discard()
    assert again.files.recoverable == ()
    assert list(folder.iterdir()) == []
    with pytest.raises(EditError, match="no edits of this file"):
        again.files.recover()


def test_edits_after_a_save_and_undo_past_it(file: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    model.nodes[1].name = "b"
    model.nodes[0].name = "c"
    model.save()
    model.undo()
    model.undo()
    model.redo()
    model.nodes[1].name = "d"
    model.undo()
    model.redo()
    model.undo()
    model.undo()
    expected = model.to_bytes()
    crash(model)
    again = reopened(file)
    again.files.recover()
    assert again.to_bytes() == expected


def test_a_journal_of_other_content_waits(file: Path, folder: Path) -> None:
    data = file.read_bytes()
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    crash(model)
    onnx.save(chain(), file)
    assert reopened(file).files.recoverable == ()
    file.write_bytes(data)  # another inode and time, but the same content
    (waiting,) = reopened(file).files.recoverable
    assert len(waiting.labels) == 1


def test_a_crash_right_after_the_file_was_replaced_offers_nothing(file: Path, folder: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    model.graph.journal.announce(model.to_bytes())  # type: ignore[attr-defined]
    file.write_bytes(model.to_bytes())
    crash(model)
    assert reopened(file).files.recoverable == ()
    assert list(folder.iterdir()) == []


def test_models_without_a_file_have_no_journal(folder: Path) -> None:
    model = onnxlab.load()
    model.nodes[0].name = "a"
    assert not folder.exists()


def test_it_can_be_switched_off(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLAB_JOURNAL", "off")
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    assert not folder.exists()


def test_recovery_wants_the_model_as_it_was_loaded(file: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    crash(model)
    again = reopened(file)
    again.nodes[0].name = "b"
    with pytest.raises(EditError, match="undo yours first, or load it anew"):
        again.files.recover()
    again.undo()
    assert again.files.recover() == 1


# -- two on one file ------------------------------------------------------------------------------------------------


def test_two_models_of_one_file_have_a_journal_each(file: Path, folder: Path) -> None:
    one, two = onnxlab.load(file), onnxlab.load(file)
    one.nodes[0].name = "one"
    two.nodes[0].name = "two"
    assert len(list(folder.iterdir())) == 2
    assert reopened(file).files.recoverable == (), "their owners are alive"
    crash(one)
    (found,) = reopened(file).files.recoverable
    again = reopened(file)
    assert again.files.recover(found) == 1
    assert again.nodes[0].name == "one"


def test_a_fork_leaves_its_parents_journal_alone(file: Path, folder: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "parent"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    child = os.fork()
    if child == 0:
        model.nodes[0].name = "child"
        model.graph.journal._holder.at_end()  # type: ignore[attr-defined]
        os._exit(0)
    os.waitpid(child, 0)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


# -- failures -------------------------------------------------------------------------------------------------------


def test_a_full_disk_costs_a_warning_and_no_edit(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "first"

    def full(descriptor: int, data: bytes | memoryview) -> int:
        written = real(descriptor, bytes(data)[:7])
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written

    real = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.warns(JournalWarning, match="No space left on device; the journal tries again with the next edit"):
            model.nodes[0].name = "second"
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # once is enough
            model.nodes[0].name = "third"
    (path,) = folder.iterdir()
    assert len(journal.records(path.read_bytes())) == 2
    model.nodes[0].name = "fourth"
    expected = model.to_bytes()
    crash(model)
    again = reopened(file)
    assert again.files.recover() == 4
    assert again.to_bytes() == expected


def test_a_state_folder_that_cannot_be_made(file: Path, folder: Path) -> None:
    folder.parent.write_text("in the way")
    model = onnxlab.load(file)
    with pytest.warns(JournalWarning, match="Not a directory"):
        model.nodes[0].name = "a"
    assert model.nodes[0].name == "a"


def test_a_file_that_changed_before_the_first_edit(file: Path, folder: Path) -> None:
    model = onnxlab.load(file)
    onnx.save(chain(), file)
    with pytest.warns(JournalWarning, match="changed on disk since it was loaded; edits are not protected until"):
        model.nodes[0].name = "a"
    model.save(overwrite=True)
    model.nodes[0].name = "b"
    assert len(list(folder.iterdir())) == 1


def test_an_interrupt_while_it_is_written_takes_the_edit_back(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    before = model.to_bytes(), next(folder.iterdir()).read_bytes()

    def interrupted(descriptor: int, data: bytes | memoryview) -> int:
        real(descriptor, bytes(data)[:9])
        raise KeyboardInterrupt

    real = os.write
    for attempt in (lambda: setattr(model.nodes[0], "name", "b"), model.undo):
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                attempt()
        assert (model.to_bytes(), next(folder.iterdir()).read_bytes()) == before
    model.nodes[0].name = "c"
    crash(model)
    assert reopened(file).files.recover() == 2


def test_what_cannot_be_written_down_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(file)
    monkeypatch.setattr(change_codec, "FIELDS", {})
    with pytest.warns(JournalWarning, match="no form for the change SetField; edits are not protected until"):
        model.nodes[0].name = "a"
    assert model.nodes[0].name == "a"


# -- the codec ------------------------------------------------------------------------------------------------------


def all_changes() -> set[type]:
    """Every change that there is: the dataclasses that have an `apply`."""
    return {
        kind for _, kind in inspect.getmembers(changes, inspect.isclass)
        if dataclasses.is_dataclass(kind) and hasattr(kind, "apply")
    }  # fmt: skip


def test_every_change_has_a_form_and_every_field_of_it() -> None:
    assert set(change_codec.FIELDS) == all_changes()
    for kind, fields in change_codec.FIELDS.items():
        assert list(fields) == [field.name for field in dataclasses.fields(kind)], kind
        left_out = {name for name, how in fields.items() if how is None}
        assert left_out <= {"ids", "image", "images"}, "only ids may be left out"


def same_field(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same_field, one, other))
    return bool(one == other) and type(one) is type(other)


@pytest.mark.parametrize("seed", range(3))
def test_changes_come_back_as_they_were(seed: int, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a body, a function and a training graph, each inverse included."""
    model = reopened(file)
    seen = []

    def note(change: changes.Change) -> None:
        graph = model.graph
        head, (packed,) = change_codec.unpack(change_codec.pack({"kind": "edit"}, [change_codec.encode(graph, change)]))
        assert head == {"kind": "edit"}
        again = change_codec.decode(graph, packed)
        for name, how in change_codec.FIELDS[type(change)].items():
            if how:
                assert same_field(getattr(again, name), getattr(change, name)), (change, name)
        seen.append(type(change))

    monkeypatch.setattr(model.graph.journal, "note", note)
    monkeypatch.setattr(model.graph.journal, "knows", lambda kind: False)
    monkeypatch.setattr(model.graph.journal, "append", lambda *_: None)
    for _ in random_edits(model, 60, seed):
        pass
    assert len(set(seen)) >= 6


def test_odd_values_survive() -> None:
    graph = ModelGraph(branches())
    odd = [
        changes.SetField(("model", 0), "doc_string", None),
        changes.SetField(("model", 0), "metadata_props", (onnx.StringStringEntryProto(key="ключ"),)),
        changes.SetField(("model", 0), "model_version", -(2**63)),
        changes.InsertFormal(graph.index.function_ids[0], "input", 0, "name"),
        changes.InsertEntry(
            graph.main.id, "sparse_initializer", 0,
            onnx.SparseTensorProto(dims=[3], values=onnx.TensorProto(name="s", dims=[0], data_type=TensorProto.FLOAT)),
        ),
    ]  # fmt: skip
    for change in odd:
        _, (note,) = change_codec.unpack(change_codec.pack({}, [change_codec.encode(graph, change)]))
        assert change_codec.decode(graph, note) == change


def test_a_note_that_does_not_fit_is_refused() -> None:
    graph = ModelGraph(branches())
    note = change_codec.encode(graph, changes.RemoveNode(graph.main.node_ids[-1]))
    with pytest.raises(onnxlab.OnnxlabError, match="does not fit the model"):
        change_codec.decode(ModelGraph(onnx.ModelProto(graph=onnx.GraphProto(name="empty"))), note)
    with pytest.raises(onnxlab.OnnxlabError, match="Unheard"):
        change_codec.decode(graph, ("Unheard", [], []))


def test_old_journals_of_other_files_go(file: Path, folder: Path) -> None:
    model = onnxlab.load(file)
    model.nodes[0].name = "a"
    crash(model)
    (path,) = folder.iterdir()
    other = path.with_name("0" * 24 + "-1-2.journal")
    other.write_bytes(path.read_bytes())
    os.utime(other, (0, 0))
    reopened(file)
    assert list(folder.iterdir()) == [path]
    assert journal.FORMAT == 1
    assert recovery._KEPT_DAYS >= 30
