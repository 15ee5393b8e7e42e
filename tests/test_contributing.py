"""CONTRIBUTING.md names files and functions that exist; its rule, command, diagnostic and measure work.

The operator, provider, pass, format and panel of it have tests of their own.
"""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxlab
from onnxlab.analysis import check_model
from onnxlab.analysis.findings import Findings
from onnxlab.cli.base.entries import Parser, Verbs
from onnxlab.notebook.panels import overlay
from onnxlab.transforms.rules import built_in_rules
from onnxlab.transforms.rules.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:onnxlab|tests|widgets)/[\w./]*)`", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_every_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("onnxlab/ops/base/registry.py", ["def kernel", "def rule", "RunContext"]),
        ("onnxlab/ops/base/kernel_helpers.py", ["def widened"]),
        ("onnxlab/graph/edit/changes.py", ["def apply(self, graph"]),
        ("onnxlab/notebook/protocol/messages.py", ["PROTOCOL ="]),
        ("onnxlab/notebook/protocol/questions.py", ["QUESTIONS", "repeatable", "recorded"]),
        ("onnxlab/graph/edits/table.py", ["EDITS"]),
        ("onnxlab/notebook/edits/kinds.py", ["KINDS"]),
        ("widgets/src/edit/commands/command.ts", ["interface Command"]),
        ("onnxlab/notebook/session/session.py", ["self._answers"]),
        ("widgets/src/state.ts", ["useEvents", "useCell"]),
    ],
)
def test_what_it_says_of_a_file_is_in_it(path: str, names: list[str]) -> None:
    source = (ROOT / path).read_text()
    assert [name for name in names if name not in source] == []


def test_the_table_of_places_has_thirty_rows_of_its_own() -> None:
    rows = re.findall(r"^\| (.+?) \| `((?:onnxlab|widgets)/[^`]*)` \|$", TEXT, re.MULTILINE)
    assert len({subject for subject, _ in rows}) == len(rows) >= 30
    assert len({where for _, where in rows}) >= 30


def blocks(section: str) -> list[str]:
    """The Python of a section."""
    return re.findall(r"```python\n(.*?)```", TEXT.split(f"## {section}\n")[1].split("\n## ")[0], re.DOTALL)


def test_the_rule_applies_and_is_new() -> None:
    (code,) = blocks("Add a rewrite rule")
    rule = eval(code, {"Rule": Rule})
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[3] x) => (y) { n = Neg(x) y = Abs(n) }'
    model = onnxlab.load(onnx.parser.parse_model(text))
    receipt = model.rewrite(rule)
    assert dict(receipt.counts) == {rule.name: 1}
    assert receipt.verdict == "bit equal"
    assert [node.op_type for node in model.nodes] == ["Abs"]
    assert rule.name not in {known.name for known in built_in_rules.STANDARD}


def test_the_command_answers_in_words_and_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = blocks("Add a command")
    names: dict[str, Any] = {}
    exec(text, names)
    top = Parser(prog="onnxlab")
    names["add"](Verbs(top))
    path = onnxlab.load().save(tmp_path / "digits.onnx")
    for words in ([], ["--json"]):
        options = top.parse_args(["stored", str(path), *words])
        assert options.command(options) == 0
    *lines, answer = capsys.readouterr().out.splitlines()
    assert "stem.conv.weight: float32[8,1,3,3]" in lines
    assert json.loads(answer)["schema"] == "onnxlab/stored/1"
    assert len(json.loads(answer)["tensors"]) == len(lines)


def test_the_diagnostic_finds_what_it_is_for() -> None:
    (text,) = blocks("Add a diagnostic")
    for version, codes in ((-1, ["model-version"]), (0, [])):
        findings = Findings()
        exec(textwrap.dedent(text), {"proto": onnx.ModelProto(model_version=version), "findings": findings})
        assert [problem.code for problem in findings.found] == codes
    assert "def check_model(proto: onnx.ModelProto, findings: Findings)" in Path(check_model.__file__).read_text()


def test_the_measure_counts_readers() -> None:
    function, row = blocks("Add a measure to color boxes by")
    names = dict(vars(overlay))
    exec(function, names)
    (by,) = added = eval(f"{{{row}}}", names)
    assert by not in overlay.MEASURES
    model = onnxlab.load()
    shown = added[by](model, {}, None)
    relu = model.nodes["/stem/relu/Relu"]
    assert shown.numbers[relu.id] == len(relu.outputs[0].uses) > 1
    assert shown.numbers.keys() == set(model.graph.nodes)
