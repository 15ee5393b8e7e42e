"""Checks of a release before anything is uploaded; `.ci/release.py` makes it."""

import json
import shutil
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import onnxlab
from tests.support import scripts

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return scripts.loaded(ROOT / ".ci" / "release.py", "release")


def wheel(folder: Path, leave_out: str = "", extra: str = "") -> Path:
    """A wheel with little in it, but a part left out, or one too many."""
    path = folder / f"onnxlab-{onnxlab.__version__}-py3-none-any.whl"
    metadata = (
        f"Metadata-Version: 2.4\nName: onnxlab\nVersion: {onnxlab.__version__}\nLicense-Expression: Apache-2.0\n"
        "Requires-Dist: numpy>=2.0\nRequires-Dist: google-re2>=1.1; sys_platform != 'emscripten'\n"
        "Requires-Dist: jupyterlab>=4.2; extra == 'lab'\n\n# onnxlab\n"
    )
    names = [
        f"onnxlab-{onnxlab.__version__}.dist-info/licenses/LICENSE",
        *(f"onnxlab/notebook/static/{name}" for name in ("widget.js", "LICENSES.txt")),
        "onnxlab/execution/numba/llvm_ir/portable.zip",
        "onnxlab/py.typed",
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*names, *filter(None, [extra])):
            if not leave_out or not name.endswith(leave_out):
                archive.writestr(name, "text")
        archive.writestr(f"onnxlab-{onnxlab.__version__}.dist-info/METADATA", metadata)
    return path


def test_versions_agree(release: ModuleType, tmp_path: Path) -> None:
    assert release.version_of(ROOT) == onnxlab.__version__
    for name in ("onnxlab/__init__.py", "widgets/package.json", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "widgets" / "package.json"
    package.write_text(package.read_text().replace(onnxlab.__version__, "9.9.9"))
    with pytest.raises(release.ReleaseError, match=r"differ: .*9\.9\.9"):
        release.version_of(tmp_path)
    for name in ("onnxlab/__init__.py", "CITATION.cff"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(onnxlab.__version__, "9.9.9"))
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG\.md has no heading for 9\.9\.9"):
        release.version_of(tmp_path)


def test_a_whole_wheel_passes(release: ModuleType, tmp_path: Path) -> None:
    release.check_wheel(wheel(tmp_path), onnxlab.__version__)


@pytest.mark.parametrize("name", ["LICENSE", "LICENSES.txt", "widget.js", "py.typed"])
def test_a_wheel_that_lacks_a_part_is_refused(release: ModuleType, name: str, tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseError, match=name):
        release.check_wheel(wheel(tmp_path, leave_out=name), onnxlab.__version__)


def test_a_wheel_with_foreign_files_is_refused(release: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseError, match=r"tests/x\.py, which is no part"):
        release.check_wheel(wheel(tmp_path, extra="tests/x.py"), onnxlab.__version__)


def test_the_bill_of_materials_lists_the_bundle_and_what_pip_fetches(release: ModuleType, tmp_path: Path) -> None:
    bill = release.bill_of_materials(wheel(tmp_path))
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/onnxlab@{onnxlab.__version__}"
    shipped = set(json.loads((ROOT / "widgets" / "package.json").read_text())["dependencies"])
    assert {part["name"] for part in bill["components"]} == shipped | {"numpy", "google-re2"}
    (root,) = bill["dependencies"]
    assert set(root["dependsOn"]) == {part["bom-ref"] for part in bill["components"]}


def test_a_changed_tree_is_refused(release: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "run", lambda command: " M onnxlab/model/model.py\n")
    with pytest.raises(release.ReleaseError, match="not committed"):
        release.check_tree()
