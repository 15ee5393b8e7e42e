"""Ended sessions leave a warning for edits that nothing would make again, else only an offer."""

import builtins
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import onnxlab
from onnxlab.errors import JournalWarning
from onnxlab.formats.journals import journal as journal_file
from onnxlab.formats.journals import recovery
from onnxlab.graph.edit.changes import SetField

RENAME = "model.nodes[0].name = 'a'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "journals"


def session(file: Path, *lines: str, interactive: bool = True) -> None:
    """Run lines on `model` in a fork, which then ends as the interpreter does; where interactive, as IPython's does."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        vars(sys).pop("last_value", None)
        if interactive:
            vars(builtins)["__IPYTHON__"] = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = onnxlab.load(file)
        by_hand = SetField(("model", 0), "producer_name", "me")
        names = {"model": model, "by_hand": lambda: model.graph.apply(by_hand, label="by hand", origin="a view")}
        try:
            exec("\n".join(lines), {"os": os, "sys": sys, **names})
        except SystemExit:
            pass
        except BaseException as error:
            sys.last_value = error
        model.graph.journal._holder.at_end()  # type: ignore[attr-defined]
    finally:
        os._exit(0)


def silent(file: Path) -> onnxlab.Model:
    """The model, opened without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return onnxlab.load(file)


def warned(file: Path) -> onnxlab.Model:
    with pytest.warns(JournalWarning, match=r"(was|were) never saved; model\.files\.recover\(\)"):
        return onnxlab.load(file)


@pytest.mark.slow
def test_a_program_that_ends_by_itself_leaves_no_journal(file: Path, folder: Path) -> None:
    script = "import sys, onnxlab; model = onnxlab.load(sys.argv[1]); model.nodes[0].name = 'a'; {}"
    for ending, left in (("", 0), ("1 / 0", 1)):
        subprocess.run([sys.executable, "-c", script.format(ending), str(file)], stderr=subprocess.PIPE, check=False)
        assert len(list(folder.iterdir())) == left, ending


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "1 / 0"])
def test_what_python_did_in_a_session_that_ended_is_offered_without_a_word(ending: str, file: Path) -> None:
    session(file, RENAME, ending)
    model = silent(file)
    assert [(offered.labels, offered.urgent) for offered in model.files.recoverable] == [(("rename t1 to a",), False)]
    assert model.files.recover() == 1
    assert model.nodes[0].name == "a"


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("lines", [("by_hand()",), (RENAME, "by_hand()", "model.nodes[0].name = 'b'")])
def test_what_was_done_by_hand_is_told(lines: tuple[str, ...], interactive: bool, file: Path) -> None:
    session(file, *lines, interactive=interactive)
    assert warned(file).files.recover() == len(lines)


@pytest.mark.parametrize("interactive", [True, False])
def test_a_death_is_told(interactive: bool, file: Path) -> None:
    session(file, RENAME, "os.kill(os.getpid(), 9)", interactive=interactive)
    assert warned(file).files.recover() == 1


def test_a_journal_without_its_last_byte_has_no_end(file: Path, folder: Path) -> None:
    session(file, RENAME)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    for cut in range(1, len(data) - sum(12 + len(record) for record in journal_file.records(data)[:-1]) - 15):
        path.write_bytes(data[:-cut])
        assert warned(file).files.recoverable[0].labels == ("rename t1 to a",)


def test_what_was_recovered_counts_as_done_by_hand(file: Path) -> None:
    """No code makes it again: that says `model.files.recover()`, and the journal is gone."""
    session(file, RENAME)
    session(file, "model.files.recover()")
    assert warned(file).files.recover() == 1


def test_recovered_edits_stay_where_no_journal_takes_them(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(file, RENAME)
    monkeypatch.setenv("ONNXLAB_JOURNAL", "off")
    assert silent(file).files.recover() == 1
    assert len(list(folder.iterdir())) == 1
    assert silent(file).files.recover() == 1


def test_runs_of_the_same_code_leave_one_journal(file: Path, folder: Path) -> None:
    session(file, RENAME)
    session(file, RENAME)
    session(file, RENAME, "model.nodes[1].name = 'b'")
    session(file, "model.nodes[1].name = 'other'")
    model = silent(file)
    assert [len(offered.labels) for offered in model.files.recoverable] == [2, 1]
    assert len(list(folder.iterdir())) == 2
    assert model.files.recover() == 1, "the newest"
    assert model.nodes[1].name == "other"


def test_what_is_told_is_what_recover_takes(file: Path) -> None:
    session(file, "by_hand()")
    session(file, RENAME)
    model = warned(file)
    assert [offered.urgent for offered in model.files.recoverable] == [False, True]
    model.files.recover()
    assert model.history.labels == ["by hand"]
    session(file, RENAME)
    assert len(model.files.recoverable) == 1


def test_what_is_offered_without_a_word_goes_after_a_week(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(file, RENAME)
    session(file, "by_hand()")
    now = time.time()
    monkeypatch.setattr(recovery.time, "time", lambda: now + 6 * 86400)  # type: ignore[attr-defined]
    assert len(warned(file).files.recoverable) == 2
    monkeypatch.setattr(recovery.time, "time", lambda: now + 8 * 86400)  # type: ignore[attr-defined]
    assert [offered.urgent for offered in warned(file).files.recoverable] == [True]
    assert len(list(folder.iterdir())) == 1


def test_a_fork_that_ends_says_nothing_in_its_parents_journal(file: Path, folder: Path) -> None:
    session(file, RENAME, "if os.fork(): os.wait(), os.kill(os.getpid(), 9)")
    assert warned(file).files.recover() == 1


@pytest.mark.slow
def test_a_notebook_run_again_says_nothing(file: Path) -> None:
    """In a real kernel, which nbclient shuts down."""
    code = f"import onnxlab\nmodel = onnxlab.load({os.fspath(file)!r})\n{RENAME}"
    for run in range(2):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        NotebookClient(notebook, timeout=120).execute()
        assert notebook.cells[0].outputs == [], run
        assert len(silent(file).files.recoverable) == 1
