"""The site that runs in a browser: what its build lays out, and that it is whole."""

import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import scripts

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def lite() -> ModuleType:
    return scripts.loaded(ROOT / "lite" / "build.py", "lite_build")


def site(folder: Path, packages: dict[str, list[str]], files: dict[str, bytes]) -> Path:
    """A site with a lock of packages and what they depend on, and some files."""
    place = folder / "static" / "pyodide-lock"
    place.mkdir(parents=True)
    lock = {name: {"file_name": f"{name}.whl", "depends": depends} for name, depends in packages.items()}
    (place / "pyodide-lock.json").write_text(json.dumps({"packages": lock}))
    for name, content in files.items():
        (place / name).write_bytes(content)
    return folder


PACKAGES = {"onnxlab": ["onnx"], "onnx": ["numpy", "ml-dtypes"], "numpy": [], "ml-dtypes": ["numpy"], "anywidget": []}


def test_a_whole_site_is_measured(lite: ModuleType, tmp_path: Path) -> None:
    files = {f"{name}.whl": bytes(2_000_000) for name in (*PACKAGES, "pandas")}
    report = lite.report(site(tmp_path, {**PACKAGES, "pandas": ["numpy"]}, files))
    assert report == "5 packages, 10.0 MB are loaded once by a visitor, before compression"


def test_a_site_that_asks_other_hosts_is_refused(lite: ModuleType, tmp_path: Path) -> None:
    files = {f"{name}.whl": b"x" for name in PACKAGES if name not in ("numpy", "ml-dtypes")}
    with pytest.raises(lite.BuildError, match=r"ml-dtypes\.whl, numpy\.whl would be loaded from elsewhere"):
        lite.report(site(tmp_path, PACKAGES, files))


def test_a_site_without_a_package_is_refused(lite: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(lite.BuildError, match="the lock of the site has no onnxlab"):
        lite.report(site(tmp_path, {name: [] for name in PACKAGES if name != "onnxlab"}, {}))


def test_notebooks_come_without_the_pictures_of_earlier_runs(lite: ModuleType, tmp_path: Path) -> None:
    contents = lite.lay_out(ROOT / "notebooks", tmp_path / "contents")
    assert {path.name for path in contents.iterdir()} == {path.name for path in (ROOT / "notebooks").iterdir()}
    for path in contents.glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        assert [cell["source"] for cell in cells] == [
            cell["source"] for cell in json.loads((ROOT / "notebooks" / path.name).read_text())["cells"]
        ]
        assert all(not cell.get("outputs") for cell in cells)


def test_what_onnxlab_needs_in_a_browser_is_pure_or_in_pyodide() -> None:
    """A dependency that neither is kept from it by its marker, nor known here, needs a look."""
    in_pyodide = {"ml-dtypes", "networkx", "numpy", "threadpoolctl", "tqdm"}
    pure_or_compiled_on_pypi = {"anywidget", "flatbuffers", "graphviz", "ipywidgets", "onnx", "shtab"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed_here = {line.split(">")[0] for line in project["dependencies"] if "sys_platform != 'emscripten'" not in line}
    assert needed_here <= in_pyodide | pure_or_compiled_on_pypi


def test_a_failing_step_says_its_last_words(lite: ModuleType) -> None:
    with pytest.raises(lite.BuildError, match="no such archive"):
        lite.run([sys.executable, "-c", "raise SystemExit('no such archive')"])
