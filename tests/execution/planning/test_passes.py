"""A pass is one file: that of CONTRIBUTING.md is found and does what it says."""

import re
import subprocess
import sys
from pathlib import Path

from onnxlab.execution.planning.passes.nchwc_to_nchw import WithoutBlocks
from onnxlab.execution.planning.passes.pass_list import listed
from onnxlab.execution.planning.passes.string_labels import NumberedLabels
from onnxlab.execution.planning.passes.text_counts import CountedTexts

ROOT = Path(__file__).resolve().parents[3]
SECTION = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a pass")[1].split("\n## ")[0]

# The folder stands for that of the passes, and its files are imported alike.
WITH_FILE = """
import sys
from onnxlab.execution.planning import passes
passes.__path__.append(sys.argv[1])

import numpy as np
import onnx
import onnxlab
from onnxlab.execution.base.provider import Capabilities
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner


class SeesThroughCalls(NumpyProvider):
    capabilities = Capabilities(inlines=True, trusted=True)


TEXT = '''<ir_version: 10, opset_import: ["" : 21]>
g (float[n] x) => (float[n] y, float[n] z) {
    a = Neg (x)  b = Neg (a)  c = Exp (b)  y = Neg (c)  z = Neg (y)
}'''
model = onnxlab.Model(onnx.parser.parse_model(TEXT))
runner = Runner(model.graph, model.inference.fact, [SeesThroughCalls()])
x = np.linspace(-2, 2, 5, dtype=np.float32)
for _ in range(3):
    results = runner.run({"x": x}, keep=False)
    np.testing.assert_array_equal(results["y"], -np.exp(x))
    np.testing.assert_array_equal(results["z"], np.exp(x))
(program,) = runner.programs.compiled.programs.values()
print(*[instruction.step.op for instruction in program.instructions])
"""


def test_the_pass_of_the_guide_is_found_where_its_file_is(tmp_path: Path) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    (tmp_path / "double_negations.py").write_text(source)
    done = subprocess.run([sys.executable, "-c", WITH_FILE, str(tmp_path)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Exp", "Neg", "Neg"], "of the first two nothing is left"


def test_passes_are_in_their_order() -> None:
    assert [type(item) for item in listed()] == [CountedTexts, NumberedLabels, WithoutBlocks]
