"""Make a release, all but the upload: `make release`, from a clean tree.

A source distribution, and the wheel that is built of it alone; the list of what is in it (SBOM) and of what it needs;
the documentation of this version; sums. Pushing a tag `v…` has .github/workflows/release.yml do the same and upload it.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "release"
NEEDED = (
    "LICENSE", "onnxlab/notebook/static/widget.js", "onnxlab/notebook/static/LICENSES.txt", "onnxlab/py.typed",
    "onnxlab/execution/numba/llvm_ir/portable.zip",
)  # fmt: skip


class ReleaseError(Exception):
    """The release cannot be made; the text says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make everything below build/release; `--dirty` also from a tree with changes, to try it."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        version = version_of(ROOT)
        if "--dirty" not in words:
            check_tree()
        shutil.rmtree(TARGET, ignore_errors=True)
        wheel, source = build(TARGET / "dist")
        check_wheel(wheel, version)
        check_source(source)
        (TARGET / f"onnxlab-{version}.cdx.json").write_text(json.dumps(bill_of_materials(wheel), indent=2), "utf-8")
        write_documentation(version)
        write_sums()
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{TARGET} holds onnxlab {version}. To publish it: git tag v{version} && git push origin v{version}")
    return 0


def version_of(root: Path) -> str:
    """The version, which package, front end and citation must agree on.

    Raises:
        ReleaseError: they do not, or the changelog does not have it.
    """
    package = re.search(r'^__version__ = "(.+)"', (root / "onnxlab" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    page = json.loads((root / "widgets" / "package.json").read_text("utf-8"))["version"]
    cited = re.search(r"^version: (.+)", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    versions = {package[1] if package else "", page, cited[1] if cited else ""}
    if len(versions) > 1:
        raise ReleaseError(f"__init__.py, widgets/package.json and CITATION.cff differ: {', '.join(sorted(versions))}")
    (version,) = versions
    if f"\n## {version} " not in (root / "CHANGELOG.md").read_text("utf-8"):
        raise ReleaseError(f"CHANGELOG.md has no heading for {version}")
    return version


def check_tree() -> None:
    """Refuse a tree with changes that are not committed."""
    if changes := run(["git", "status", "--porcelain"]).strip():
        raise ReleaseError(f"the tree has changes that are not committed:\n{changes}")


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution with the LLVM IR of kernels, and the wheel of it; returns (wheel, sdist)."""
    run([sys.executable, str(ROOT / ".ci" / "llvm_ir.py")])
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def check_wheel(path: Path, version: str) -> None:
    """Look at what is in a wheel, and at what an index would read of it."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = metadata_of(wheel)
    missing = [name for name in NEEDED if not any(entry.endswith(name) for entry in names)]
    if missing:
        raise ReleaseError(f"{path.name} has no {', '.join(missing)}")
    if metadata["Version"] != version or not metadata["License-Expression"] or not metadata.get_payload():
        raise ReleaseError(f"{path.name} does not say its version, license and description as an index reads them")
    if foreign := [name for name in names if not name.startswith(("onnxlab/", f"onnxlab-{version}."))]:
        raise ReleaseError(f"{path.name} holds {foreign[0]}, which is no part of the package")


def metadata_of(wheel: zipfile.ZipFile) -> Any:
    """The METADATA of a wheel."""
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def check_source(path: Path) -> None:
    """Look whether a source distribution has what builds the wheel."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed_files = {"pyproject.toml", "hatch_build.py", "widgets/package-lock.json", "LICENSE", "CHANGELOG.md"}
    if missing := needed_files - names:
        raise ReleaseError(f"{path.name} has no {', '.join(sorted(missing))}")


def bill_of_materials(wheel: Path) -> Mapping[str, Any]:
    """The contents of a wheel as CycloneDX: npm's list of what is in the bundle, and the packages that pip fetches."""
    npm = ["npm", "sbom", "--sbom-format=cyclonedx", "--omit=dev", "--package-lock-only"]
    bill: dict[str, Any] = json.loads(run(npm, ROOT / "widgets"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = metadata_of(archive)
    package_url = f"pkg:pypi/onnxlab@{metadata['Version']}"
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    bundled = [part["bom-ref"] for part in bill["components"]]
    packages = [component(line) for line in needed]
    bill["metadata"]["component"] = {
        "bom-ref": package_url, "type": "library", "name": "onnxlab", "version": metadata["Version"],
        "purl": package_url,
        "licenses": [{"license": {"id": metadata["License-Expression"]}}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }  # fmt: skip
    bill["components"] += packages
    bill["dependencies"] = [{"ref": package_url, "dependsOn": [*bundled, *(part["bom-ref"] for part in packages)]}]
    return bill


def component(requirement: str) -> Mapping[str, Any]:
    """A package that pip fetches: its versions are a range, which a lock such as binder/requirements.txt fixes."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    if name is None:
        raise ReleaseError(f"{requirement!r} is no requirement")
    purl = f"pkg:pypi/{name[0].lower()}"
    return {
        "bom-ref": purl, "type": "library", "name": name[0], "purl": purl, "scope": "required",
        "properties": [{"name": "onnxlab:requirement", "value": requirement}],
    }  # fmt: skip


def write_documentation(version: str) -> None:
    """Build the site of this version, to lie beside those of others."""
    run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"])
    shutil.copytree(ROOT / "build" / "site", TARGET / "docs" / version)


def write_sums() -> None:
    """Write the sums of all files, as sha256sum checks them."""
    files = [path for path in sorted(TARGET.rglob("*")) if path.is_file() and "docs" not in path.parts]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(TARGET)}" for path in files]
    (TARGET / "SHA256SUMS").write_text("\n".join(lines) + "\n", "utf-8")


def run(command: Sequence[str], folder: Path = ROOT) -> str:
    """Run a step and return what it printed; raises ReleaseError with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise ReleaseError(f"`{' '.join(command)}` failed:\n{words}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
