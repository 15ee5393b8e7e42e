"""Command lines of random words: a documented code, one line, no fault of onnxlab, and what is read stays as it is."""

import argparse
import io
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnxlab import cli
from onnxlab.cli.base import exits
from tests.cli.conftest import add_model
from tests.cli.table import HOSTILE_NAME
from tests.support.docs_pages import verbs

NOT_HERE = {"show", "warm", "mcp", "git"}
"""Those that start programs or write settings."""
LEFT_OUT = {"-h", "--help", "--debug", "--color", "--dask", "--engine", "--trust"}
MODELS = ("good.onnx", "broken.onnx", "evil.onnx", "empty.onnx", "text.onnx")
WORDS = (
    *MODELS, "folder", "none.onnx", "", "-", "x=x.npy", "x=bad.npy", "x.npy", "y=none.npy", "n=3", "n=-1", "n=1e9",
    "n=99999999999999999999", "script.py", "syntax.py", "samples", "z", "add", "Relu(x) => x", "garbage =>", "a\0b",
    "\ud800", "1", "-1", "nan", "x[0]=N", "x[9]=3", "z=w", "out.svg", "out.npz", "out.txt", "/nowhere/x", "*", "numpy",
    "bogus", "%s", "{0}",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(add_model(), "good.onnx")
    onnx.save(add_model(4), "broken.onnx")
    evil = add_model()
    evil.graph.node[0].name = HOSTILE_NAME
    onnx.save(evil, "evil.onnx")
    onnx.save(onnx.ModelProto(), "empty.onnx")
    Path("text.onnx").write_text("hello")
    Path("folder").mkdir()
    np.save("x.npy", np.zeros((1, 3), np.float32))
    np.save("bad.npy", np.array(["a"], dtype=object), allow_pickle=True)
    Path("script.py").write_text("model.nodes[0].name = 'q'")
    Path("syntax.py").write_text("def (")
    Path("samples").mkdir()
    np.savez("samples/0.npz", x=np.ones((1, 3), np.float32), y=np.ones((1, 3), np.float32))
    return tmp_path


def command(generator: random.Random, name: str, verb: argparse.ArgumentParser) -> list[str]:
    """A command line that is likely to parse in part; none of its own outputs overwrites a model."""
    words = [name]

    def word_for(action: argparse.Action) -> str:
        if action.choices and generator.random() < 0.9:
            return str(generator.choice(list(action.choices)))
        if action.dest in ("model", "a", "b") and generator.random() < 0.85:
            return generator.choice(MODELS)
        chosen = generator.choice(WORDS)
        return "new.onnx" if action.dest == "output" and chosen in MODELS else chosen

    actions: list[Any] = list(verb._actions)
    words += [word_for(action) for action in actions if not action.option_strings and generator.random() < 0.9]
    for _ in range(generator.randrange(4)):
        action = generator.choice([action for action in actions if action.option_strings])
        if not LEFT_OUT & set(action.option_strings):
            words += [generator.choice(action.option_strings), *([] if action.nargs == 0 else [word_for(action)])]
    return words


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_odd_words_end_well(
    seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    generator = random.Random(seed)
    names = sorted(set(verbs()) - NOT_HERE)
    read = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for _ in range(120):
        name = generator.choice(names)
        words = command(generator, name, verbs()[name])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(read[folder / "good.onnx"])))
        code = cli.main(words)
        printed = capfd.readouterr()
        assert code in exits.MEANINGS, words
        assert "fault of onnxlab" not in printed.err, (words, printed.err)
        assert "\x1b" not in printed.out + printed.err, words
        if code not in (exits.DONE, exits.DIFFERENT):
            assert printed.err.startswith("onnxlab: "), words
        assert {path: path.read_bytes() for path in read} == read, words
    assert os.getcwd() == str(folder)
