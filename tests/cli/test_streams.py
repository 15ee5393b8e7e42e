"""The standard streams of commands: closed, full, without a reader, in another encoding than UTF-8, or of any bytes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxlab import cli
from onnxlab.cli.base import exits
from tests.cli.conftest import Pipe, add_model

Capture = pytest.CaptureFixture[str]
MAIN = f"{sys.executable} -m onnxlab"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A line of the shell, in which $ONNXLAB is the command."""
    variables = os.environ | {"ONNXLAB": MAIN} | environment
    return subprocess.run(["bash", "-c", line], capture_output=True, check=False, env=variables, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(("line", "code"), [
    ("$ONNXLAB info {model} >&-", exits.DONE),
    ("$ONNXLAB info - <&-", exits.UNREADABLE),
    ("$ONNXLAB explain - <&-", exits.USAGE),
    ("$ONNXLAB convert {model} {model}.json <&- >&- 2>&-", exits.DONE),
    ("$ONNXLAB info {model} --json >/dev/full", exits.UNWRITABLE),
    ("$ONNXLAB info {model} >/dev/full", exits.UNWRITABLE),
    ("$ONNXLAB info none.onnx --json >/dev/full", exits.UNREADABLE),
    ("$ONNXLAB info none.onnx --json | true; exit ${{PIPESTATUS[0]}}", exits.UNREADABLE),
])  # fmt: skip
def test_a_stream_that_is_closed_or_full_is_no_fault(line: str, code: int, model: str) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        line, code = "exit 0", 0
    done = shell(line.format(model=model))
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"fault of onnxlab" not in done.stderr
    assert done.stderr.count(b"\n") == (1 if code and "2>&-" not in line else 0)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_what_an_encoding_lacks_is_escaped(encoding: str, tmp_path: Path) -> None:
    proto = add_model()
    proto.graph.node[0].name = "größe 大きさ 🙂"
    onnx.save(proto, tmp_path / "m.onnx")
    path = tmp_path / "m.onnx"
    words = shell(f"$ONNXLAB text {path}", PYTHONIOENCODING=encoding)
    assert words.returncode == 0, words.stderr
    assert rb"\u5927\u304d\u3055 \U0001f642" in words.stdout
    answer = shell(f"$ONNXLAB text {path} --json", PYTHONIOENCODING=encoding)
    assert "größe 大きさ 🙂" in "\n".join(json.loads(answer.stdout)["lines"])
    picture = shell(f"$ONNXLAB svg {path}", PYTHONIOENCODING=encoding)
    assert "大きさ" in picture.stdout.decode()


def test_bytes_that_are_no_text_are_no_known_message(pipe: Pipe, capsys: Capture) -> None:
    pipe(b"\x08\x90\xb2\xff")
    assert cli.main(["explain", "-"]) == exits.DIFFERENT
    assert "no message in this text is known" in capsys.readouterr().out


def test_what_a_statement_prints_is_no_part_of_the_answer(model: str, capsys: Capture) -> None:
    assert cli.main(["edit", model, "--json", "-e", "print('aside')"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["diff"]["equal"]
    assert printed.err == "aside\n"


def test_a_script_that_ends_the_program_is_refused(model: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "new.onnx"
    assert cli.main(["edit", model, "-e", "raise SystemExit(0)", "-o", str(target)]) == exits.USAGE
    assert "statement 1 failed: SystemExit: 0; nothing was changed" in capsys.readouterr().err
    assert not target.exists()


NINES = "9" * 5000


@pytest.mark.parametrize("words", [
    ["shapes", "{model}", f"n={NINES}"],
    ["edit", "{model}", "--dim", f"x[{NINES}]=1"],
    ["edit", "{model}", "--dim", f"x[0]={NINES}"],
    ["explain", "{model}", f"x[{NINES}]"],
    ["run", "{model}", "--seed", "-1"],
    ["diff", "{model}", "{model}", "--tolerance", "nan"],
    ["evaluate", "{model}", "{model}", "{samples}", "--at-most", "nan"],
    ["statistics", "{model}", "{samples}", "--ranges", "percentile", "--percentile", "101"],
])  # fmt: skip
def test_numbers_that_are_none_are_wrong_words(words: list[str], model: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "samples").mkdir()
    array = np.ones((1, 3), np.float32)
    np.savez(tmp_path / "samples" / "0.npz", x=array, y=array)
    places = {"model": model, "samples": str(tmp_path / "samples")}
    assert cli.main([word.format(**places) for word in words]) == exits.USAGE
    assert "fault of onnxlab" not in capsys.readouterr().err


def test_a_sample_that_cannot_be_used_is_no_small_error(model: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "samples").mkdir()
    array = np.ones((1, 3), np.float32)
    np.savez(tmp_path / "samples" / "0.npz", x=array, y=array)
    words = ["evaluate", model, model, str(tmp_path / "samples")]
    assert cli.main([*words, "--at-most", "0"]) == exits.DONE
    np.savez(tmp_path / "samples" / "1.npz", x=array)
    assert cli.main(words) == exits.DONE
    assert cli.main([*words, "--at-most", "0"]) == exits.DIFFERENT
    assert "1.npz" in capsys.readouterr().out


def test_inputs_are_read_from_regular_files_alone(model: str, capsys: Capture) -> None:
    assert cli.main(["run", model, f"x={os.devnull}"]) == exits.UNREADABLE
    assert "it is no regular file; give name=array.npy or arrays.npz" in capsys.readouterr().err
