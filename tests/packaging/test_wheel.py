"""The wheel carries the widget's bundle, the sdist its sources; and the times at which the build hook works."""

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import onnxlab

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = tuple(f"onnxlab/notebook/static/{name}" for name in ("widget.js", "loader.js", "widget.css", "LICENSES.txt"))
EXTENSION = "onnxlab/labextension/package.json"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(kind: str, folder: Path) -> Path:
    """Build a "wheel" or "sdist" of the project into `folder`, with the tools of this environment."""
    options = ["--no-isolation", f"--{kind}", "--outdir", str(folder)]
    command = [sys.executable, "-m", "build", *options, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.mark.slow
def test_wheel_holds_the_bundle_and_the_type_marker(tmp_path: Path) -> None:
    with zipfile.ZipFile(build("wheel", tmp_path)) as wheel:
        names = set(wheel.namelist())
        assert {*BUNDLE, "onnxlab/py.typed", "onnxlab/__init__.py"} <= names
        assert all(wheel.getinfo(name).file_size > 500 for name in BUNDLE)
        assert not [name for name in names if "node_modules" in name or name.startswith(("tests", "widgets"))]
        place = f"onnxlab-{onnxlab.__version__}.data/data/share/jupyter/labextensions/onnxlab/"
        assert "preact" in wheel.read("onnxlab/notebook/static/LICENSES.txt").decode()
        entry = json.loads(wheel.read(f"{place}package.json"))["jupyterlab"]["_build"]
        assert b"onnxlab:open" in wheel.read(place + entry["load"])
        assert json.loads(wheel.read(f"{place}install.json"))["packageName"] == "onnxlab"
        assert EXTENSION not in names, "the extension is carried once"
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        text = wheel.read(metadata).decode()
    assert "License-Expression: Apache-2.0" in text
    assert "Requires-Dist: numba>=0.62; (sys_platform != 'emscripten') and extra == 'fast'" in text
    assert "Requires-Dist: numba>=0.62; (sys_platform != 'emscripten') and extra == 'lab'" in text


@pytest.mark.slow
def test_sdist_holds_the_sources_of_the_widget_and_the_bundle(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {*BUNDLE, EXTENSION, "hatch_build.py", "widgets/package.json", "widgets/package-lock.json"} <= names
    assert [name for name in names if name.startswith("widgets/src/")]
    assert not [name for name in names if "node_modules" in name or name.startswith("tests")]


def test_the_package_in_use_has_its_bundle() -> None:
    package = Path(onnxlab.__file__).parents[1]
    assert all((package / name).is_file() for name in (*BUNDLE, EXTENSION))


def test_jupyter_finds_the_extension_of_a_checkout() -> None:
    (place,) = onnxlab._jupyter_labextension_paths()
    about = json.loads((Path(onnxlab.__file__).parent / place["src"] / "package.json").read_text())
    assert about["name"] == place["dest"]


def project(root: Path) -> tuple[Path, Path]:
    """Lay out a project, a widget source and its bundle of one age; return (source, static folder)."""
    source, static = root / "widgets" / "src" / "main.ts", root / "onnxlab" / "notebook" / "static"
    for path in (root / "widgets" / "package.json", source, *(root / name for name in (*BUNDLE, EXTENSION))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        os.utime(path, (1000, 1000))
    return source, static


def test_bundle_is_fresh_until_a_source_is_newer(hook: ModuleType, tmp_path: Path) -> None:
    source, static = project(tmp_path)
    fetched = tmp_path / "widgets" / "node_modules" / "x.js"
    fetched.parent.mkdir()
    fetched.write_text("newer, but no source")
    assert hook.is_fresh(tmp_path / "widgets", static)
    os.utime(source, (1001, 1001))
    assert not hook.is_fresh(tmp_path / "widgets", static)


def test_without_npm_an_old_bundle_is_kept(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, _ = project(tmp_path)
    os.utime(source, (1001, 1001))
    monkeypatch.setattr(hook.shutil, "which", lambda name: None)
    hook.ensure_bundle(tmp_path)
    assert "npm was not found" in capsys.readouterr().err


def test_without_npm_and_bundle_the_error_says_what_to_do(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, static = project(tmp_path)
    (static / "widget.js").unlink()
    monkeypatch.setattr(hook.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"npm, which builds them.*Install Node\.js 20"):
        hook.ensure_bundle(tmp_path)


def test_a_failing_build_shows_npms_words(hook: ModuleType, tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "widgets" / "package.json").write_text("{not json")
    with pytest.raises(RuntimeError, match=r"(?s)npm install.*failed:.*package\.json"):
        hook.build("npm", tmp_path / "widgets")
