"""The report of a difference, in every form, and an empty one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.parser
import pytest

import onnxlab
from onnxlab.analysis.diff.outline import outline
from onnxlab.cli import main
from tests.graph.support.torture import torture
from tests.support import corpus

HEADER = '<ir_version: 9, opset_import: ["" : 18]> g (float[b,4] x) => (float[b,4] y)'


def parsed(body: str, header: str = HEADER) -> onnxlab.Model:
    return onnxlab.load(onnx.parser.parse_model(f"{header} {{ {body} }}"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("y = Relu(x)", "y = Relu(x)", []),
        ("y = Relu(x)", "y = Neg(x)", ["node Neg#0: operator Relu → Neg"]),
        ("y = LeakyRelu<alpha=0.1>(x)", "y = LeakyRelu<alpha=0.2>(x)", ["node LeakyRelu#0: attribute alpha 0.1 → 0.2"]),
        ("y = LeakyRelu<alpha=0.5>(x)", "y = LeakyRelu(x)", ["node LeakyRelu#0: attribute alpha 0.5 → none"]),
        ("a = Relu(x) y = Neg(a)", "y = Neg(x)", ["node Relu#0: removed: a = Relu(x)", "node Neg#0: input 0 a → x"]),
        ("y = Neg(x)", "a = Relu(x) y = Neg(a)", ["node Relu#0: added: a = Relu(x)", "node Neg#1: input 0 x → a"]),
        ("a = Relu(x) y = Neg(a)", "c = Relu(x) y = Neg(c)", ["value a: renamed to c"]),
        ("a = Relu(x) b = Exp(x) y = Add(a, b)", "b = Exp(x) a = Relu(x) y = Add(a, b)",
         ["node Exp#0: position 1 → 0"]),
    ],
)  # fmt: skip
def test_each_kind_of_change(before: str, after: str, expected: list[str]) -> None:
    a, b = parsed(before), parsed(after)
    diff = onnxlab.diff(a, b)
    lines = [str(change) for change in diff]
    assert lines == expected or (len(lines) == len(expected) == 1 and "position" in lines[0])
    assert bool(diff) == bool(expected)


def test_changes_of_the_whole_model_are_named() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.metadata["license"] = "MIT"
    b.doc_string = "other"
    b.set_field("producer_name", "me")
    b.nodes["/stem/conv/Conv"].doc_string = "first"
    b.add_input("extra", "float32", [1])
    changes = {(change.kind, change.subject, change.field) for change in onnxlab.diff(a, b)}
    assert changes == {
        ("added", "metadata", ""), ("changed", "model", "documentation"), ("changed", "model", "producer_name"),
        ("changed", "node", "documentation"), ("added", "input", ""),
    }  # fmt: skip
    assert not onnxlab.diff(a, onnxlab.load())


def test_tolerance_and_ignore_leave_out() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.value("head.fc.weight").array = b.tensor("head.fc.weight")[:] * np.float32(1.001)
    assert len(onnxlab.diff(a, b)) == 1
    assert not onnxlab.diff(a, b, tolerance=0.01)
    assert not onnxlab.diff(a, b, ignore=["weights"])
    with pytest.raises(ValueError, match="cannot ignore weight; there are names"):
        onnxlab.diff(a, b, ignore=["weight"])  # type: ignore[list-item]


def test_five_became_one() -> None:
    body = "c = Constant<value = float {2}>() a = Mul(x, c) b = Sigmoid(a) d = Mul(a, b) e = Neg(d) y = Relu(e)"
    fused = onnx.parser.parse_model(f"{HEADER} {{ d = Gelu(x) e = Neg(d) y = Relu(e) }}")
    fused.graph.node[0].domain = "com.microsoft"
    fused.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    (region,) = onnxlab.diff(parsed(body), fused).regions
    assert region.text.startswith("Mul, Sigmoid, Mul (at Mul#1) became Gelu")


def test_what_changed_since_the_model_was_loaded() -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
    model.nodes["/head/Softmax"].name = "last"
    edited = model.to_bytes()
    assert [str(change) for change in model.changes_since()] == [
        "node /stem/relu/Relu: operator Relu → Sigmoid",
        "node /head/Softmax: renamed to last",
    ]
    assert len(model.changes_since(-1)) == 1
    assert len(model.changes_since(1)) == 1
    assert model.to_bytes() == edited
    assert model.history.labels == model.history.all_labels
    model.undo(0)
    assert len(model.changes_since(2)) == 2  # from the state that redo makes to the present one
    assert not model.changes_since()
    assert model.to_bytes() == before


def test_a_changed_data_file_is_a_difference(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        onnxlab.load().save(tmp_path / name / "m.onnx", external_data=True)
    a, b = (tmp_path / name / "m.onnx" for name in ("a", "b"))
    assert not onnxlab.diff(a, b)
    data = next(path for path in b.parent.iterdir() if path != b)
    content = bytearray(data.read_bytes())
    content[7] ^= 0x40
    data.write_bytes(content)
    assert {change.subject for change in onnxlab.diff(a, b)} == {"initializer"}


def test_text_of_a_model_is_no_markup_and_no_escape() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes[0].name = "``<script>`\x1b[31m\n# evil"
    diff = onnxlab.diff(a, b)
    for text in (str(diff), diff.to_markdown()):
        assert "\x1b" not in text
        assert not any(line.startswith("# evil") for line in text.splitlines())
    assert json.loads(diff.to_json())["changes"][0]["b"] == b.nodes[0].name
    line = next(line for line in diff.to_markdown().splitlines() if "script" in line)
    assert line.startswith("* ```` ")
    assert line.endswith(" ````")


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnxlab.load()
    path, other = model.save(tmp_path / "one.onnx"), tmp_path / "other.onnx"
    model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
    model.save(other)
    assert main(["diff", str(path), str(path)]) == 0
    assert capsys.readouterr().out == "The models are equal.\n"
    assert main(["diff", str(path), str(other)]) == 1
    assert "operator Relu → Sigmoid" in capsys.readouterr().out
    assert main(["diff", str(path), str(other), "--at-most", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {"changed": 1}
    assert main(["diff", str(path), str(other), "--markdown"]) == 1
    assert "### Changed" in capsys.readouterr().out
    page = tmp_path / "diff.html"
    assert main(["diff", str(path), str(other), "--html", str(page)]) == 1
    assert "operator Relu → Sigmoid" in page.read_text(encoding="utf-8")
    assert main(["diff", str(path), str(other), "--ignore", "nothing"]) == 2
    assert "cannot ignore nothing" in capsys.readouterr().err
    assert main(["diff", str(path), str(tmp_path / "none.onnx")]) == 3


def test_lines_for_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnxlab.load()
    before = outline(model.graph).splitlines()
    model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
    model.value("head.fc.weight").array = model.tensor("head.fc.weight")[:] * 2
    after = outline(model.graph).splitlines()
    assert [line.split()[0] for line in set(after) - set(before)] in (["initializer", "stem/relu_out"],
                                                                      ["stem/relu_out", "initializer"])  # fmt: skip
    path = str(model.save(tmp_path / "m.onnx"))
    assert main(["text", path, "--declared"]) == 0
    assert capsys.readouterr().out.splitlines() == after
    assert main(["text", path]) == 0
    assert (
        "logits = Gemm(head/flat, head.fc.weight, head.fc.bias) {transB=1} -> float32[batch,10]"
        in capsys.readouterr().out
    )


def test_another_format_of_the_same_model(tmp_path: Path) -> None:
    model = onnxlab.load()
    paths = model.save(tmp_path / "a.onnx"), model.save(tmp_path / "a.ort")
    words = ["names", "order", "declarations"]
    assert not onnxlab.diff(*paths, ignore=[*words, "defaults"])
    defaults = onnxlab.diff(*paths, ignore=words)
    assert defaults
    assert all(change.is_default and change.field.startswith("attribute") for change in defaults)
    model.nodes["/stem/relu/Relu"].op_type = "Abs"
    (change,) = onnxlab.diff(paths[0], model.save(tmp_path / "b.ort"), ignore=[*words, "defaults"])
    assert (change.field, change.old, change.new) == ("operator", "Relu", "Abs")
    assert not change.is_default


def test_a_difference_has_the_same_text_in_every_process() -> None:
    """Hashes of strings differ from process to process; no order and no match may come from them."""
    paths = [str(corpus.path(name)) for name in ("script_control", "stft_audio")]
    script = (
        "from tests.analysis.diff.test_patch import Diff, onnxlab, randomly_edited; "
        f"print(Diff(*randomly_edited(20)), onnxlab.diff(*{paths}))"
    )
    texts = {
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
                       capture_output=True).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda b: b.graph.node[0].device_configurations.add(configuration_id="two"), "node first: device_config"),
        (lambda b: b.functions[0].value_info.add(name="v"), "declaration v in torture::Twice: added"),
        (lambda b: setattr(b.graph.initializer[0].metadata_props[0], "value", "other"), "metadata of float_typed"),
    ],
)  # fmt: skip
def test_fields_that_say_nothing_of_results_are_told(change: Any, expected: str) -> None:
    other = torture()
    change(other)
    assert expected in str(onnxlab.diff(torture(), other, ignore=["docs"]).changes[0])


def test_an_order_that_nothing_else_tells_of_is_told_by_its_path() -> None:
    other = torture()
    other.opset_import.reverse()
    difference = onnxlab.diff(torture(), other)
    assert str(difference.changes[0]) == "model model: opset_import[0].domain ai.onnx → torture"
    assert not onnxlab.diff(torture(), torture()), "data that is missing of both and names of no value are equal too"
    assert not onnxlab.diff(torture(), other, ignore=["docs"]), "what a comparison looks at is equal"
