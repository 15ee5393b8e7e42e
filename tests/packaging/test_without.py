"""Optional packages may be absent: numba, which is an extra, the `dot` program, the notebook packages."""

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
import os, tempfile
page = model.to_html(os.path.join(tempfile.mkdtemp(), "page.html")).read_text(encoding="utf-8")
assert page.endswith("</html>") and "/stem/conv/Conv" in picture
if "resvg_py" not in {blocked!r}:
    assert model.to_png().startswith(b"\\x89PNG")
if "onnxruntime" in {blocked!r}:  # seen: "a fault of onnxlab: ModuleNotFoundError"
    from onnxlab import cli
    for ask in (model.run, model.profile, model.partition, model.check):
        try:
            ask(providers=["onnxruntime"])
        except onnxlab.errors.ProviderError as error:
            assert "pip install 'onnxlab[ort]'" in str(error) and isinstance(error, ImportError)
        else:
            raise AssertionError(ask)
    path = str(model.save(os.path.join(tempfile.mkdtemp(), "digits.onnx")))
    assert cli.main(["run", path, "--providers", "onnxruntime"]) == 2
print("done")
"""
NUMBA = """
import sys, warnings
if {without!r}:
    sys.modules["numba"] = sys.modules["llvmlite"] = None
import numpy as np
import onnxlab
from onnxlab.execution.numba.provider import NumbaProvider
model = onnxlab.load()
image = np.linspace(-2, 2, 640, dtype=np.float32).reshape(10, 1, 8, 8)
answers = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for providers in (None, ["numpy"], ["numba"], ["numba", "numpy"], ["numba"], [NumbaProvider(background=False)]):
        answers.append(model.run({{"image": image}}, providers=providers)["probabilities"].argmax(1).tolist())
    model.simplify()
    model.profile(runs=1)
print([str(warning.message) for warning in caught])
print(answers)
print({{refusal.reason for refusal in model.partition(["numba"]).refusals}})
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
def test_without_numba_all_is_equal_and_told_once() -> None:
    jobs = [[sys.executable, "-c", NUMBA.format(without=without)] for without in (True, False)]
    done = [
        subprocess.run(job, capture_output=True, text=True, timeout=200, check=True).stdout.splitlines() for job in jobs
    ]
    (without, answers, *partition), (plain, expected, *_) = done
    assert "pip install 'onnxlab[fast]'" in without
    assert without.count("numba is not installed") == 1
    assert "not installed" not in plain
    assert answers == expected
    assert "numba is not installed" in " ".join(partition)


@pytest.mark.slow
def test_without_the_dot_program(tmp_path_factory: pytest.TempPathFactory) -> None:
    run([], path=str(tmp_path_factory.mktemp("empty")))


@pytest.mark.slow
def test_without_networkx_graphviz_resvg_and_the_notebook_packages() -> None:
    run(["networkx", "graphviz", "anywidget", "ipywidgets", "IPython", "traitlets", "comm", "onnxruntime", "resvg_py"])
