"""The front door: what it offers, and what importing it must not cost."""

import json
import subprocess
import sys

import pytest

import onnxlab

HEAVY = {"onnx", "networkx", "anywidget", "numba", "IPython", "ipywidgets", "numpy", "google.protobuf"}


def modules_after(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after `statement`."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_pulls_nothing_heavy() -> None:
    assert not HEAVY & modules_after("import onnxlab")


def test_dir_pulls_nothing_heavy_and_lists_the_front_door() -> None:
    assert set(onnxlab.__all__) <= set(dir(onnxlab))
    assert not HEAVY & modules_after("import onnxlab; dir(onnxlab)")


@pytest.mark.parametrize("name", onnxlab.__all__)
def test_every_advertised_name_resolves(name: str) -> None:
    value = getattr(onnxlab, name)
    assert value is getattr(onnxlab, name)
    assert name == "__version__" or getattr(value, "__name__", name) == name


def test_loading_a_model_leaves_the_late_ones_alone() -> None:
    loaded = modules_after("import onnxlab; onnxlab.load; onnxlab.Model; onnxlab.infer_shapes")
    assert not {"anywidget", "ipywidgets", "IPython", "numba", "networkx.algorithms"} & loaded
    assert not [name for name in loaded if name.startswith("onnxlab.execution.p")], "imported with the first run"


def test_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'laod'; it offers .*load"):
        _ = onnxlab.laod


def test_no_dunder_is_exported_but_the_version() -> None:
    assert [name for name in onnxlab.__all__ if name.startswith("_")] == ["__version__"]
