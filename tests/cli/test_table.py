"""Verb × (good, broken, missing, hostile, stdin, JSON, over its own input); every verb of the grammar is here."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnxlab import cli
from onnxlab.cli.base import environment
from tests.cli.conftest import Pipe, add_model
from tests.cli.table import HOSTILE_NAME, OTHERS, TABLE, Row
from tests.support.docs_pages import verbs

every_verb = pytest.mark.parametrize("verb", TABLE)
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def samples(tmp_path: Path) -> str:
    folder = tmp_path / "samples"
    folder.mkdir()
    np.savez(folder / "0.npz", x=np.ones((1, 3), np.float32), y=np.ones((1, 3), np.float32))
    return str(folder)


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    """A model with names that a terminal would obey and a browser would run."""
    proto = add_model()
    proto.producer_name = proto.graph.name = HOSTILE_NAME
    proto.graph.node[0].name = HOSTILE_NAME
    proto.graph.node[0].doc_string = HOSTILE_NAME
    proto.graph.output[0].name = proto.graph.node[0].output[0] = HOSTILE_NAME
    path = tmp_path / "hostile.onnx"
    onnx.save(proto, path)
    return str(path)


def words_of(verb: str, model: str, samples: str, output: str = "z") -> list[str]:
    words = {"model": model, "same": model, "samples": samples, "output": output}
    return [verb, *(word.format(**words) if word.startswith("{") else word for word in TABLE[verb].words)]


def writing(verb: str, words: list[str], target: str) -> list[str]:
    """The command with a file to be written."""
    assert TABLE[verb].output is not None
    return [*words, *filter(None, (TABLE[verb].output[0],)), target]


def test_every_verb_is_in_the_table() -> None:
    assert set(verbs()) == set(TABLE) | OTHERS


@every_verb
def test_good(verb: str, model: str, samples: str, capsys: Capture) -> None:
    before = Path(model).read_bytes()
    assert cli.main(words_of(verb, model, samples)) == TABLE[verb].good
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert printed.err == ""
    assert Path(model).read_bytes() == before
    assert {path.name for path in Path(model).parent.iterdir()} == {"add.onnx", "samples"}


@every_verb
def test_broken(verb: str, broken: str, samples: str, capsys: Capture) -> None:
    assert cli.main(words_of(verb, broken, samples)) == TABLE[verb].broken
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert "fault of onnxlab" not in printed.err
    if TABLE[verb].broken > 1:
        assert printed.err.startswith("onnxlab: ")
        assert "add" in printed.err or "sample" in printed.err


@every_verb
def test_missing(verb: str, tmp_path: Path, samples: str, capsys: Capture) -> None:
    assert cli.main(words_of(verb, str(tmp_path / "none.onnx"), samples)) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"onnxlab: cannot load {tmp_path / 'none.onnx'}: there is no such file\n"


@pytest.mark.slow
@every_verb
@pytest.mark.parametrize(
    "content", [b"", b"\x08\x0a\x3a\xff\xff\xff\xff\x0fcut", b"version https://git-lfs.github.com/spec/v1\n"]
)
def test_no_model(verb: str, content: bytes, tmp_path: Path, samples: str, capsys: Capture) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(content)
    assert cli.main(words_of(verb, str(path), samples)) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"onnxlab: cannot load {path}: ")
    assert printed.err.count("\n") == 1


@every_verb
@pytest.mark.parametrize("json_flag", [(), ("--json",)])
def test_hostile(verb: str, json_flag: tuple[str, ...], hostile: str, samples: str, capsys: Capture) -> None:
    assert cli.main([*words_of(verb, hostile, samples, HOSTILE_NAME), *json_flag]) == TABLE[verb].hostile
    printed = capsys.readouterr()
    assert not {"\x1b", "\u202e", "\x07"} & set(printed.out + printed.err)
    if verb == "svg" and not json_flag:
        assert "<script>" not in printed.out


@every_verb
def test_standard_input(verb: str, model: str, samples: str, pipe: Pipe, capsys: Capture) -> None:
    words = words_of(verb, "-", samples)
    if words.count("-") > 1:
        pipe(Path(model).read_bytes())
        assert cli.main(words) == 2
        assert "only one of the two can be -" in capsys.readouterr().err
        words[1] = model
    pipe(Path(model).read_bytes())
    assert cli.main(words) == TABLE[verb].good
    assert capsys.readouterr().out.strip()
    pipe(b"no model at all, but text")
    assert cli.main(words) == 3
    assert capsys.readouterr().err.startswith("onnxlab: cannot load these 25 bytes: ")


@every_verb
def test_json(verb: str, model: str, broken: str, samples: str, capsys: Capture) -> None:
    assert cli.main([*words_of(verb, model, samples), "--json"]) == TABLE[verb].good
    answer = strict(capsys.readouterr().out)
    assert answer["schema"] == f"onnxlab/{TABLE[verb].schema or f'{verb}/1'}"
    assert cli.main([*words_of(verb, "none.onnx", samples), "--json"]) == 3
    printed = capsys.readouterr()
    error = strict(printed.out)
    assert (error["schema"], error["code"], error["error"]) == ("onnxlab/error/1", 3, "LoadError")
    assert printed.err == f"onnxlab: {error['message']}\n"
    code = cli.main([*words_of(verb, broken, samples), "--json"])
    assert code == TABLE[verb].broken
    assert strict(capsys.readouterr().out)["schema"] == ("onnxlab/error/1" if code > 1 else answer["schema"])


def strict(text: str) -> Any:
    """The one JSON object of an answer, without NaN."""
    assert text.count("\n") == 1

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


@every_verb
def test_quiet(verb: str, model: str, samples: str, capsys: Capture) -> None:
    assert cli.main([*words_of(verb, model, samples), "-q"]) == TABLE[verb].good
    printed = capsys.readouterr()
    assert (printed.out == "") == (verb not in ("svg", "report"))  # these files are the answer
    assert printed.err == ""


WRITERS = [verb for verb, row in TABLE.items() if row.output]


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITERS)
def test_over_its_own_input(verb: str, model: str, samples: str, tmp_path: Path, capsys: Capture) -> None:
    row = TABLE[verb]
    odd = tmp_path / f"odd{suffix(row)}"  # a model whose name promises what is written
    odd.write_bytes(Path(model).read_bytes())
    (tmp_path / "alias").symlink_to(odd)
    for target in (model, str(odd), str(tmp_path / "alias")):
        source = str(odd)
        before = odd.read_bytes(), Path(model).read_bytes()
        code = cli.main(writing(verb, words_of(verb, source, samples), target))
        printed = capsys.readouterr().err
        assert (odd.read_bytes(), Path(model).read_bytes()) == before or (verb in MODELS and target == model)
        if verb not in MODELS or target != model:
            assert code == 5
            assert "is read from there" in printed or "ends in .svg" in printed or "whose name ends in" in printed


MODELS = {verb for verb, row in TABLE.items() if row.output and row.output[1] == ".onnx"}
"""Those whose output is a model: one model may take another's place."""


def suffix(row: Row) -> str:
    assert row.output is not None
    return row.output[1]


@pytest.mark.parametrize("verb", WRITERS)
def test_over_a_file_of_another_kind(verb: str, model: str, samples: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / f"notes{suffix(TABLE[verb])}"
    for content in (b"my notes\n", b"%PDF-1.7 \x00\x01\x02\xff"):
        target.write_bytes(content)
        assert cli.main(writing(verb, words_of(verb, model, samples), str(target))) == 5
        assert "a file is there that is not a" in capsys.readouterr().err
        assert target.read_bytes() == content


@pytest.mark.parametrize("verb", WRITERS)
def test_into_a_folder_that_is_not_there(verb: str, model: str, samples: str, capsys: Capture) -> None:
    target = f"/nowhere/x{suffix(TABLE[verb])}"
    assert cli.main(writing(verb, words_of(verb, model, samples), target)) == 5
    assert "the folder /nowhere does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("verb", WRITERS)
def test_written_files_and_standard_output_are_alike(
    verb: str, model: str, samples: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(environment, "available_memory", lambda: 1 << 33)  # other programs change it, and reports tell
    target = tmp_path / f"out{suffix(TABLE[verb])}"
    words = words_of(verb, model, samples)
    for _ in range(2):  # to a new file, then over a file of its kind
        assert cli.main(writing(verb, words, str(target))) == 0
    capfdbinary.readouterr()
    assert cli.main(writing(verb, words, "-")) == 0
    written, piped = target.read_bytes(), capfdbinary.readouterr().out
    if suffix(TABLE[verb]) == ".npz":
        assert piped.startswith(b"PK")
    else:
        assert piped.rstrip(b"\n") == written.rstrip(b"\n")
    assert cli.main([*writing(verb, words, "-"), "--json"]) == 2
