"""Journals that are whole and say odd things, and some that are none: the model opens, and the others are offered."""

import contextlib
import json
import os
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import JournalWarning, OnnxlabError
from onnxlab.formats.journals import change_codec, recovery
from onnxlab.formats.journals import journal as journal_file
from onnxlab.formats.journals.journal import framed, records
from tests.formats.journals import crash

MAGIC = journal_file._MAGIC
ODD = (None, True, -1, 0, 2**70, 1e400, float("nan"), "", "\ud800", "x" * 5000, [], [[]], {}, {"bytes": 1},
       {"message": "onnx.NodeProto"}, [0, 10**9], ["body", [], 0, "then_branch", 5])  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "journals"


@pytest.fixture
def left(file: Path, folder: Path) -> Path:
    """The journal of a process that died after three edits, one of which it took back."""
    model = onnxlab.load(file)
    model.nodes[0].name = "precious"
    model.add_initializer("extra", np.arange(4.0))
    model.undo()
    model.add_output(model.nodes[0].outputs[0])
    (path,) = folder.iterdir()
    crash(model)
    return path


def opened(file: Path) -> tuple[onnxlab.Model, str]:
    """The model, and what the warnings say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = onnxlab.load(file)
    assert all(item.category is JournalWarning for item in caught)
    return model, "\n".join(str(item.message) for item in caught)


def rewritten(data: bytes, change: Callable[[list[bytes]], None]) -> bytes:
    """A journal with other records, framed as they must be."""
    payloads = records(data)
    change(payloads)
    return MAGIC + b"".join(map(framed, payloads))


def test_steps_before_an_odd_record_are_offered_and_the_journal_is_named(file: Path, left: Path) -> None:
    data = left.read_bytes()
    for odd in (
        b"garbage",
        b"[]",
        b"[" * 100_000,
        b"\x02\0\0\0[]",
        b"\x02\0\0\0{}",
        change_codec.pack({"kind": "redo"}, []),
    ):
        left.write_bytes(rewritten(data, lambda payloads, odd=odd: payloads.insert(2, odd)))
        model, warning = opened(file)
        assert re.search(rf"{left.name} cannot be read to its end: record 2 is none .*move it away", warning), odd[:20]
        (entry,) = model.files.recoverable
        assert len(entry.labels) == 1
        assert model.files.recover() == 1
        assert model.nodes[0].name == "precious"
        model.graph.journal.begin(None)  # type: ignore[attr-defined]
        assert not left.exists()


def test_an_odd_header_is_named_and_stays(file: Path, left: Path) -> None:
    data = left.read_bytes()
    for header in (b"garbage", b"[]", b"7", b"[" * 100_000, b"\xff"):
        left.write_bytes(rewritten(data, lambda payloads, header=header: payloads.__setitem__(0, header)))
        model, warning = opened(file)
        assert left.name in warning
        assert "record 0" in warning
        assert model.files.recoverable == ()
        assert left.exists()


def test_what_cannot_be_opened_is_named_and_hides_nothing(file: Path, left: Path, folder: Path) -> None:
    start = left.name.split("-")[0]
    (folder / f"{start}-1-aa.journal").mkdir()
    os.mkfifo(folder / f"{start}-2-aa.journal")
    (folder / f"{start}-3-aa.journal").symlink_to(f"{start}-3-aa.journal")
    model, warning = opened(file)
    assert len(re.findall(r"-[123]-aa\.journal cannot be read", warning)) == 3
    assert [entry.path for entry in model.files.recoverable] == [left]


def test_one_that_may_not_be_opened_is_named(file: Path, left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refusing(path: Any, *arguments: Any, **named: Any) -> int:
        if Path(path) == left:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refusing)
    model, warning = opened(file)
    assert left.name in warning
    assert "Permission denied" in warning
    assert model.files.recoverable == ()
    with pytest.raises(OnnxlabError, match="cannot be read: Permission denied"):
        recovery.replay(model.graph, recovery.Recovery(left, ("a",), 0.0))


def test_old_entries_that_are_no_journals_are_left_alone(file: Path, left: Path, folder: Path) -> None:
    for number in range(40):
        for suffix in ("", ".journal"):
            entry = folder / f"sub{number}{suffix}"
            entry.mkdir()
            os.utime(entry, (1e9, 1e9))
    stray = folder / "notes.txt"
    stray.write_text("mine")
    os.utime(stray, (1e9, 1e9))
    model, warning = opened(file)
    assert [entry.path for entry in model.files.recoverable] == [left]
    assert "sub" not in warning
    assert stray.exists()


def test_a_user_without_a_home(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONNXLAB_STATE_HOME")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: exec("raise RuntimeError('Could not determine home directory.')"))
    model = onnxlab.load(file)
    with pytest.warns(JournalWarning, match="no home folder; ONNXLAB_STATE_HOME says where"):
        model.nodes[0].name = "a"
    assert model.nodes[0].name == "a"


def mutants(data: bytes, seed: int, count: int) -> list[bytes]:
    """Journals with right checksums whose records have one place of their JSON, or some bytes, changed."""
    rng, journals = random.Random(seed), []
    whole = records(data)

    def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [way, *(place for key, item in items for place in places(item, (*way, key)))]

    for _ in range(count):
        number = rng.randrange(len(whole))
        record = whole[number]
        size = int.from_bytes(record[:4], "little") if number else 0
        head, rest = (record[4 : 4 + size], record[4 + size :]) if number else (record, b"")
        if rng.random() < 0.7:
            content = json.loads(head)
            way = rng.choice(places(content))
            if way:
                holder = content
                for key in way[:-1]:
                    holder = holder[key]
                if rng.random() < 0.2:
                    del holder[way[-1]]
                else:
                    holder[way[-1]] = rng.choice(ODD)
            else:
                content = rng.choice(ODD)
            head = json.dumps(content).encode()
        else:
            noisy = bytearray(head + rest)
            for _ in range(rng.randint(1, 4)):
                noisy[rng.randrange(len(noisy))] = rng.randrange(256)
            head, rest = bytes(noisy[: len(head)]), bytes(noisy[len(head) :])
        changed = (len(head).to_bytes(4, "little") if number else b"") + head + rest
        journals.append(
            rewritten(data, lambda payloads, number=number, changed=changed: payloads.__setitem__(number, changed))
        )
    return journals


@pytest.mark.parametrize("seed", range(4))
def test_mutants_with_right_checksums_open_and_are_made_or_refused(seed: int, file: Path, left: Path) -> None:
    data, original = left.read_bytes(), file.read_bytes()
    for mutant in mutants(data, seed, 106):
        left.write_bytes(mutant)
        model, _ = opened(file)
        for entry in model.files.recoverable:
            str(entry)
            with contextlib.suppress(OnnxlabError):
                model.files.recover(entry)
            while model.undo():
                pass
            assert model.to_bytes() == original
            break
        model.graph.journal.begin(None)  # type: ignore[attr-defined]
