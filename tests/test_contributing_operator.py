"""The operator of CONTRIBUTING.md, put into files of its own, has all that other operators have."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECTION = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add an operator")[1].split("\n## ")[0]
FAMILY, COMPILED = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)

# The folders stand for those that CONTRIBUTING names, and their files are imported alike.
WITH_FILES = """
import sys
import onnxlab.execution.numba.rules.microsoft
import onnxlab.ops.microsoft

onnxlab.ops.microsoft.__path__.append(sys.argv[1])
onnxlab.execution.numba.rules.microsoft.__path__.append(sys.argv[2])

import numpy as np
import onnx
import onnxlab
from onnxlab.analysis.flops import flops_by_node
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.program import shape_specialization
from onnxlab.execution.run.runner import Runner

TEXT = '''<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[n,3] x) => (y, s) {
    y = com.microsoft.SoftCap <cap = 2.0> (x)
    s = Shape (y)
}'''
model = onnxlab.Model(onnx.parser.parse_model(TEXT))
node = model.nodes[0]
x = np.linspace(-9, 9, 12, dtype=np.float32).reshape(4, 3)
expected = np.tanh(x / np.float32(2)) * np.float32(2)
"""

CHECKS = {
    "kernel": """
np.testing.assert_array_equal(model.run({"x": x})["y"], expected)
""",
    "shape rule": """
fact = model.inference.fact(model.graph.main.outputs[0])
assert str(fact) == "float32[n,3]", fact
""",
    "color": """
from onnxlab.render.categories import category
assert category("com.microsoft", "SoftCap") == "activation"
""",
    "cost": """
counted = flops_by_node(model.graph, model.inference.fact)
assert counted == {node.id: 8 * 3}, counted  # n counts as 1
""",
    "folding": """
from tests.execution.support.internals import programs_of
runner = Runner(model.graph, model.inference.fact)
runner.run({"x": x}, keep=False)
(program,) = programs_of(runner)
ops = {program.instructions[number].step.op for number in shape_specialization.decided(program)}
assert ops == {"Shape"}, ops  # its result follows from the shape of x, through SoftCap
""",
    "half precision": """
from onnxlab.ops import find_traits
assert find_traits("com.microsoft", "SoftCap").half == "rounded"
""",
    "compiled rule": """
runner = Runner(model.graph, model.inference.fact, [NumbaProvider(background=False, least=0)])
made = runner.run({"x": x}, ["y"], keep=False)["y"]
np.testing.assert_allclose(made, expected, rtol=1e-6)
(part,) = [part for part in runner.partition().parts if part.provider == "numba"]
""",
}


REPORT = """
import json, traceback
wrong = {}
for what, check in json.loads(sys.argv[3]).items():
    try:
        exec(check)
    except Exception:
        wrong[what] = traceback.format_exc()
print(json.dumps(wrong))
"""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The faults, by check, in a process that has the operator's files."""
    folders = [tmp_path_factory.mktemp(name) for name in ("family", "compiled")]
    for folder, text in zip(folders, (FAMILY, COMPILED), strict=True):
        (folder / "soft_cap.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", WITH_FILES + REPORT, *map(str, folders), json.dumps(CHECKS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    faults: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return faults


@pytest.mark.parametrize("check", CHECKS)
def test_a_new_operator_is_complete(check: str, wrong: dict[str, str]) -> None:
    assert wrong.get(check, "") == ""


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """Without its files the operator has nothing."""
    command = [sys.executable, "-c", WITH_FILES + REPORT, str(tmp_path), str(tmp_path), json.dumps(CHECKS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]).keys() == CHECKS.keys()
