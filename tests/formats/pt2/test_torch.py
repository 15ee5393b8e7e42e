"""Conversion by torch: graphs equal to torch's own, outputs too with torch installed, and refusals without it."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import onnxlab
from onnxlab import cli
from onnxlab.errors import LoadError
from onnxlab.formats.pt2.converting import VARIABLE
from tests.support.samples import samples

MODULE = Path(__file__).with_name("module.pt2")
PROGRAMS = json.loads(samples("pt2/torch")["programs.json"])
INPUTS = {"traced": ["float32[N,3,8,8]"], "scripted": ["float32[N,3,8,8]"], "loop": ["float32[3]", "int64[]"]}
FAKE = '''
"""Stands in for torch: it writes what it was asked instead of a model."""
import json, os, sys
__version__ = "0"
float32 = int64 = type("dtype", (), {"is_floating_point": False})
def ones(dims, dtype): return dims
def from_numpy(array): return array
def manual_seed(number): pass
class Argument:
    def __init__(self, name, type): self.name, self.type = name, type
    def has_default_value(self): return False
class Module:
    schema = type("S", (), {"arguments": [Argument("self", "M"), Argument("x", "Tensor")]})
    forward = property(lambda self: self)
    def eval(self): return self
class jit:
    def load(path, map_location): return Module()
class onnx:
    def export(module, arguments, path, **said):
        if os.environ.get("FAKE") == "crash": os._exit(7)
        if os.environ.get("FAKE") == "error": raise ValueError("no \\x1b[31mway\\nmore lines")
        if os.environ.get("FAKE") != "nothing":
            open(path, "wb").write(open(os.environ["FAKE"], "rb").read())
'''


def part(name: str) -> bytes:
    return MODULE.read_bytes() if name == "module" else samples("pt2/torch")[f"{name}.pt2"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_and_edges_are_those_of_torch_itself(name: str) -> None:
    calls = [
        {
            "target": f"{node.domain}.{node.op_type}.{node.overload}".removeprefix("higher_order.").rstrip("."),
            "reads": sorted({value for value in node.input if value}),
            "makes": sorted(value for value in node.output if value),
        }
        for node in onnxlab.load(part(name)).proto.graph.node
    ]
    assert calls == PROGRAMS[name]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    model = onnxlab.load().save(tmp_path / "made.onnx")
    monkeypatch.setenv("FAKE", str(model))
    return model


def script() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("m/data/0", bytes(200_000))
        archive.writestr("m/code/__torch__.py", "x")
    return data.getvalue()


def test_a_script_is_converted_where_it_is_trusted(fake: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(script())
    for source in (path, script()):
        model = onnxlab.load(source, trust=True, inputs=["float32[3]"])
        assert model.proto == onnxlab.load(fake).proto
        assert model.path is None, "saving it must not write over torch's file"
    assert "torch" not in sys.modules
    target = tmp_path / "m.onnx"
    assert cli.main(["convert", str(path), str(target), "--trust", "--input", "float32[3]"]) == 0
    assert onnxlab.load(target).proto == model.proto


def test_nothing_runs_where_it_is_not_trusted(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    with pytest.raises(LoadError, match=r"it is TorchScript, and loading it runs code .* trust=True"):
        onnxlab.load(script())
    assert len(onnxlab.load(MODULE).nodes) == 5
    assert onnxlab.load(onnxlab.load().proto, trust=True).nodes
    assert onnxlab.load(fake, trust=True).path == fake


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("crash", r"torch ended without an answer \(exit code 7\)"),
        ("error", r"torch does not convert it: ValueError: no .{1,8}\[31mway$"),
        ("nothing", "torch wrote no model of it"),
    ],
)
def test_what_goes_wrong_in_torch_is_said(fake: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str) -> None:
    monkeypatch.setenv("FAKE", how)
    with pytest.raises(LoadError, match=words) as error:
        onnxlab.load(script(), trust=True, inputs=["float32[3]"])
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], r"it takes 1 inputs \(x: Tensor\).* got 0, as in inputs="),
        (["float32(3)"], r"'float32\(3\)' is no type such as"),
        (["nothing[3]"], r"'nothing\[3\]' has no type that is known"),
        (["float16[3]"], "torch has no type float16"),
        ([object()], "the input 0 is a object; give an array"),
    ],
)
def test_inputs_that_say_nothing_are_refused(fake: Path, inputs: list[object], words: str) -> None:
    with pytest.raises(LoadError, match=words):
        onnxlab.load(script(), trust=True, inputs=inputs)


def test_inputs_that_nothing_asks_for_are_refused(tmp_path: Path) -> None:
    """Seen: `inputs` was ignored without a word for all files but TorchScript."""
    path = onnxlab.load().save(tmp_path / "m.onnx")
    for source, trust, words in (
        (path, False, r"m\.onnx: inputs= \(--input\) gives a TorchScript file .*this is ONNX: leave it out"),
        (path.read_bytes(), True, "this is ONNX"),
        (onnxlab.load().proto, True, "this is a ModelProto"),
        (None, False, "this is ONNX"),
        (part("module"), False, r"this is a torch\.export archive"),
        (part("module"), True, "a torch.export archive itself holds the types of its inputs"),
        (script(), False, "it is TorchScript, and loading it runs code"),
    ):
        with pytest.raises(LoadError, match=words):
            onnxlab.load(source, trust=trust, inputs=["float32[3]"])
    assert cli.main(["convert", str(path), str(tmp_path / "n.onnx"), "--input", "float32[3]"]) == 3


def test_an_input_alone_need_not_be_in_a_list(fake: Path) -> None:
    for inputs in ("float32[3]", np.zeros(3, np.float32)):
        onnxlab.load(script(), trust=True, inputs=inputs)


def test_torch_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ModuleNotFoundError('none', name='torch')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(LoadError, match=r"torch is not installed: pip install 'onnxlab\[torch\]'"):
        onnxlab.load(script(), trust=True, inputs=["float32[3]"])
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(LoadError, match=r"gone cannot be started to convert it: No such file"):
        onnxlab.load(MODULE, trust=True)


@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no interpreter that has torch")
@pytest.mark.parametrize("name", ["module", "several", "attention", "traced", "scripted", "loop"])
def test_outputs_are_those_of_torch(name: str) -> None:
    data = samples("pt2/torch")[f"{name}.pt"] if name in INPUTS else part(name)
    model = onnxlab.load(data, trust=True, inputs=INPUTS.get(name, ()))
    with np.load(io.BytesIO(samples("pt2/torch")["outputs.npz"])) as held:
        arrays = [held[f"{name}/in{place}"] for place in range(len(model.inputs))]
        expected = [held[f"{name}/out{place}"] for place in range(len(model.outputs))]
    outputs = model.run({value.name: array for value, array in zip(model.inputs, arrays, strict=True)})
    for array, right in zip(outputs.values(), expected, strict=True):
        np.testing.assert_allclose(array, right, rtol=0, atol=1e-5)
