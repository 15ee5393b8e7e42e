"""What is optional may be absent: numba (no build for Emscripten), the `dot` program, the notebook packages."""

import os
import subprocess
import sys

import pytest

JOB = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None  # importing it raises ImportError
import numpy as np
import onnxlab
model = onnxlab.load()
model.nodes["/head/Softmax"].attributes["axis"] = 0
assert model.diagnostics == []
model.undo()
found = model.run({{"image": np.ones((1, 1, 8, 8), np.float32)}})
assert found["probabilities"].shape == (1, 10)
from onnxlab.render import svg
picture = svg.render(model)
assert picture.startswith("<svg") and "Conv" in picture
from onnxlab.notebook.widgets.display import bundle
assert "24 nodes" in bundle(model)["text/plain"]
print("done")
"""


def run(blocked: list[str], path: str | None = None) -> None:
    """The job in a process of its own, where `blocked` cannot be imported and programs are looked for in `path`."""
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    command = [sys.executable, "-c", JOB.format(blocked=blocked)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.slow
def test_without_numba_and_llvmlite() -> None:
    run(["numba", "llvmlite"])


@pytest.mark.slow
def test_without_the_dot_program(tmp_path_factory: pytest.TempPathFactory) -> None:
    run([], path=str(tmp_path_factory.mktemp("empty")))


@pytest.mark.slow
def test_without_networkx_graphviz_and_the_notebook_packages() -> None:
    run(["networkx", "graphviz", "anywidget", "ipywidgets", "IPython", "onnxruntime"])
