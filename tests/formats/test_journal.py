"""The crash journal: no acknowledged edit is lost, whatever happens to the process or the journal."""

import errno
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError, JournalWarning
from onnxlab.formats.journals import change_codec, journal, recovery
from tests.formats.journals import crash, random_edits, reopened
from tests.graph.edit.test_absent_fields import MODELS, blank, edited
from tests.graph.support.models import branches, chain


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's journals; everything is kept there, as after a crash."""
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "last_value", None, raising=False)
    return tmp_path / "state" / "journals"


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
    with pytest.warns(
        JournalWarning, match=r"model\.onnx: \d+ edits? of .* (was|were) never saved; model\.files\.recover"
    ):
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
        payloads = journal.records(data[:cut])
        assert payloads == whole[: sum(end <= cut for end in ends)]
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
    first, second = onnxlab.load(file), onnxlab.load(file)
    first.nodes[0].name = "one"
    second.nodes[0].name = "two"
    assert len(list(folder.iterdir())) == 2
    assert reopened(file).files.recoverable == (), "their owners are alive"
    crash(first)
    (offered,) = reopened(file).files.recoverable
    again = reopened(file)
    assert again.files.recover(offered) == 1
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


@pytest.mark.parametrize("seed", range(15))
def test_edits_of_models_whose_texts_are_absent_come_back(seed: int, tmp_path: Path) -> None:
    rng, path = random.Random(seed), tmp_path / "blank.onnx"
    path.write_bytes(blank(rng.choice(MODELS)(), rng, 0.12).SerializeToString())
    model = onnxlab.load(path)
    before = model.to_bytes()
    edited(model, rng)
    after, steps = model.to_bytes(), len(model.history.labels)
    crash(model)
    again = reopened(path)
    assert bool(again.files.recoverable) == bool(steps)
    if steps:
        again.files.recover()
        assert again.to_bytes() == after
        again.undo(to=0)
    assert again.to_bytes() == before
