"""Lists of required operators: those that onnxruntime's own tools wrote are what onnxlab says of the same models."""

import json
from pathlib import Path

import pytest
from onnx import helper

import onnxlab
from onnxlab import cli
from onnxlab.errors import LoadError
from onnxlab.formats.ort.encoding import captured
from onnxlab.formats.ort.required_operators import RequiredOperators, parse
from tests.support.samples import ort_pairs, samples

ARTIFACTS = samples("training/artifacts")


@pytest.mark.parametrize("name", ["ort_eval_model", "ort_optimizer_model", "ort_training_model"])
def test_lists_are_those_of_onnxruntime(name: str) -> None:
    expected = parse(ARTIFACTS[f"{name}.required_operators.config"].decode())
    required = onnxlab.load(ARTIFACTS[f"{name}.ort"]).files.required_operators()
    assert required == expected
    assert parse(str(required)) == required
    assert f"{required}\n" == "".join(
        line for line in ARTIFACTS[f"{name}.required_operators.config"].decode().splitlines(True) if line[0] != "#"
    )


def test_types_are_kept() -> None:
    text = samples("ort/configs")["required_operators_and_types.config"].decode()
    required = parse(text)
    assert required.operators["", 7, "Gemm"] == {"inputs": {"0": ["float"]}}
    assert str(required) == "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def test_special_lines_are_kept() -> None:
    lines = ["!no_ops_specified_means_all_ops_are_required", "!globally_allowed_types;float,int64_t"]
    text = "\n".join([*lines, 'ai.onnx;1,7;A{"a": [{"b": 1}]},B'])
    required = parse(text)
    assert required.allowed_types == ("float", "int64_t")
    assert {key: bool(types) for key, types in required.operators.items()} == {
        ("", 1, "A"): True, ("", 1, "B"): False, ("", 7, "A"): True, ("", 7, "B"): False,
    }  # fmt: skip
    assert parse(str(required)) == required
    assert required.missing(RequiredOperators(all_if_empty=True)) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Gemm", "line 1 of the operators is 'Gemm', not domain;version;operators"),
        ("#\nai.onnx;x;Gemm", "line 2 of the operators"),
        ('ai.onnx;7;Gemm{"a"', "broken JSON behind 'Gemm'"),
        ("ai.onnx;7;,", "where an operator should be"),
        ("ai.onnx;7;Gemm{} x", "has 'x' behind 'Gemm'"),
    ],
)
def test_what_is_no_list_is_refused(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(text)


def test_bodies_and_functions_are_looked_into() -> None:
    required = onnxlab.load(ort_pairs()["399_scan9_sum"][0]).files.required_operators()
    assert {name for _, _, name in required.operators} == {"Scan", "Add", "Identity"}


def test_graphs_in_attributes_of_other_types_are_no_bodies() -> None:
    relu = helper.make_graph([helper.make_node("Relu", ["outer"], ["r"])], "stray", [], [])
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    node.attribute[0].graphs.append(relu)
    node.attribute[0].g.CopyFrom(relu)
    values = [helper.make_tensor_value_info(name, 1, [2, 2]) for name in "xy"]
    proto = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]), ir_version=10)
    assert {name for _, _, name in onnxlab.load(proto).files.required_operators().operators} == {"Softmax"}
    assert list(captured(node)) == []


def test_the_command_line_prints_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, config = tmp_path / "m.onnx", tmp_path / "ops.config"
    model.write_bytes(ort_pairs()["126_conv_add"][0])
    assert cli.main(["info", "--operators", str(model)]) == 0
    printed = capsys.readouterr().out
    config.write_text(printed)
    assert cli.main(["check", str(model), "--build", str(config)]) == 0
    capsys.readouterr()
    config.write_text("\n".join(line for line in printed.splitlines() if "Conv" not in line))
    assert cli.main(["check", str(model), "--build", str(config)]) == 1
    assert "Conv of version 11 of ai.onnx is not in that build" in capsys.readouterr().out
    assert cli.main(["info", "--operators", "--json", str(model)]) == 0
    assert {entry["operator"] for entry in json.loads(capsys.readouterr().out)["operators"]} >= {"Conv"}
    config.write_text("nonsense")
    assert cli.main(["check", str(model), "--build", str(config)]) == 3
