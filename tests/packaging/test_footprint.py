"""The packages of `pip install onnxlab`: no more, and no more bytes, than is promised."""

import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_PACKAGES, MOST_BYTES = 36, 260_000_000


def needed() -> dict[str, Distribution]:
    """The packages that onnxlab needs without extras, itself left out, as installed here."""
    packages: dict[str, Distribution] = {}
    waiting = [Requirement(line) for line in PROJECT["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in packages or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
            continue
        packages[name] = distribution(name)
        waiting += [Requirement(line) for line in packages[name].requires or ()]
    return packages


def size(package: Distribution) -> int:
    """Bytes of the files of a package, with the bytecode that pip makes of it."""
    paths = [Path(str(package.locate_file(entry))) for entry in package.files or () if entry.suffix != ".pyc"]
    stored = sum(path.stat().st_size for path in paths if path.is_file())
    return stored + sum(path.stat().st_size for path in paths if path.suffix == ".py" and path.is_file())


def test_few_packages_are_needed() -> None:
    packages = needed()
    assert len(packages) + 1 <= MOST_PACKAGES, sorted(packages)
    assert {"numba", "llvmlite", "onnxruntime", "jupyterlab", "ipykernel", "pillow"}.isdisjoint(packages)


def test_they_are_small() -> None:
    nbytes = sum(
        path.stat().st_size for path in (ROOT / "onnxlab").rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    sizes = {name: size(package) for name, package in needed().items()}
    assert nbytes + sum(sizes.values()) <= MOST_BYTES, sorted(sizes.items(), key=lambda item: -item[1])[:10]
    assert sum(sizes.values()) > 100_000_000  # they were found


def test_extras_hold_what_only_some_want() -> None:
    extras = PROJECT["optional-dependencies"]
    assert [Requirement(line).name for line in extras["fast"]] == ["numba"]
    assert "onnxlab[fast]" in extras["lab"]
    assert "onnxlab[lab,ort]" in extras["all"]
