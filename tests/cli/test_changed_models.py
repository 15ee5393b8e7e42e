"""`onnxlab insert`, and where `onnxlab convert` puts weights: files that come, and refusals."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import onnxlab
from onnxlab import cli
from onnxlab.cli.base import exits

NEG = '<ir_version: 10, opset_import: ["" : 20]> h (float[n,3] x) => (float[n,3] y) { y = Neg (x) }'


@pytest.fixture
def neg(tmp_path: Path) -> str:
    path = tmp_path / "neg.onnx"
    onnx.save(parser.parse_model(NEG), path)
    return str(path)


def test_a_model_is_put_behind_another_one(model: str, neg: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    new = tmp_path / "new.onnx"
    before = Path(model).read_bytes()
    assert cli.main(["insert", model, neg, "--connect", "x=z", "--prefix", "second/"]) == 0
    assert "second/y" in capsys.readouterr().out
    assert Path(model).read_bytes() == before
    assert not new.exists()
    assert cli.main(["insert", model, neg, "--connect", "x=z", "--prefix", "second/", "-o", str(new)]) == 0
    x = np.ones((2, 3), np.float32)
    assert np.array_equal(onnxlab.load(new).run({"x": x, "y": x})["second/y"], -2 * x)


def test_a_model_is_put_onto_a_wire(model: str, neg: str, tmp_path: Path) -> None:
    new = tmp_path / "new.onnx"
    wires = ["--connect", "x=x", "--feed", "x=y", "--outputs", ""]
    assert cli.main(["insert", model, neg, *wires, "-o", str(new)]) == 0
    changed, x = onnxlab.load(new), np.ones((2, 3), np.float32)
    assert [value.name for value in changed.outputs] == ["z"]
    assert np.array_equal(changed.run({"x": 3 * x, "y": x})["z"], -2 * x)


def test_names_with_an_equals_sign_are_given_with_a_backslash(model: str, neg: str, tmp_path: Path) -> None:
    opened, new, last = onnxlab.load(model), tmp_path / "new.onnx", tmp_path / "last.onnx"
    opened.value("x").name = "a=b=c"
    opened.save(tmp_path / "odd.onnx")
    words = ["--rename", r"a\=b\=c=d\=e=f", "--rename", "z=y=z"]
    assert cli.main(["edit", str(tmp_path / "odd.onnx"), *words, "-o", str(new)]) == 0
    changed = onnxlab.load(new)
    assert [value.name for value in (*changed.inputs, *changed.outputs)] == ["d=e=f", "y", "y=z"]
    assert cli.main(["insert", str(new), neg, "--connect", "x=y=z", "--prefix", "s/", "-o", str(last)]) == 0
    assert (
        cli.main(["insert", str(new), neg, "--feed", r"d\=e=f=y", "--connect", "x=y", "-o", str(last)]) == exits.USAGE
    )
    assert cli.main(["insert", str(new), neg, "--feed", r"d\=e\=f=y", "--connect", "x=y", "-o", str(last)]) == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--connect", "x"], exits.USAGE, "'x' names no two: write input=value"),
        (["--feed", "=y"], exits.USAGE, "'=y' names no two: write value=output"),
        (["--connect", "w=z"], exits.USAGE, "no input 'w'. It has 'x'"),
        (["--connect", "x=none"], exits.USAGE, "'none'"),
        (["-o", "{other}"], exits.UNWRITABLE, "neg.onnx"),
    ],
)
def test_an_insertion_is_refused(
    model: str, neg: str, words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(neg).read_bytes()
    assert cli.main(["insert", model, neg, *[word.format(other=neg) for word in words]]) == code
    assert message in capsys.readouterr().err
    assert Path(neg).read_bytes() == before


def test_standard_input_holds_one_of_the_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["insert", "-", "-"]) == exits.USAGE
    assert "only one of the two can be -" in capsys.readouterr().err


def test_weights_go_to_a_data_file_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parser.parse_model(NEG.replace("Neg (x)", "Add (x, w)"))
    proto.graph.initializer.append(numpy_helper.from_array(np.arange(3000, dtype=np.float32).reshape(1000, 3), "w"))
    names = ["m.onnx", "out.onnx", "in.onnx"]
    start, outside, inside = (tmp_path / name for name in names)
    onnx.save(proto, start)
    assert cli.main(["convert", str(start), str(outside), "--external-data"]) == 0
    assert outside.stat().st_size < 2000
    assert sum(path.stat().st_size for path in tmp_path.iterdir() if path.name not in names) == 12000
    assert cli.main(["convert", str(outside), str(inside), "--embed-data"]) == 0
    assert onnx.load(inside, load_external_data=False) == proto
    capsys.readouterr()
    assert cli.main(["convert", str(start), "-", "--format", "onnx", "--external-data"]) == exits.USAGE
    assert "has no data file beside it" in capsys.readouterr().err
    assert cli.main(["convert", str(start), "x.onnx", "--external-data", "--embed-data"]) == exits.USAGE
