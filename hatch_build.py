"""Build hook: puts what is made of `widgets/` (TypeScript) into the package: the bundle, and JupyterLab's extension.

It runs for wheels, source distributions and editable installs; `python hatch_build.py` does the same by hand.
npm is asked only when a source is newer than the bundle, so that an install from a source distribution, which
carries the bundle, needs no Node.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = ("widget.js", "loader.js", "widget.css", "LICENSES.txt", "../../labextension/package.json")
"""Files of `onnxlab/notebook/static/`, and the one of `onnxlab/labextension/` that names its script."""
NOT_SOURCES = {"node_modules", "test", "tests", "dev", "bench", "dist"}

NO_NPM = (
    "{static} holds no widget.js, loader.js and widget.css, or onnxlab/labextension/ is missing, and "
    "npm, which builds them from widgets/, is not on the "
    "PATH. Install Node.js 20 or newer (Debian: apt-get install nodejs npm), or install a wheel of onnxlab."
)


class WidgetBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes sure, before each target is built, that the bundle is there and up to date."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before each target; raises RuntimeError where `ensure_bundle` does."""
        ensure_bundle(Path(self.root))


def ensure_bundle(root: Path) -> None:
    """Build the bundle of the project in `root` when it is missing or older than its sources.

    Raises:
        RuntimeError: there is no bundle and no npm to make one, or npm failed.
    """
    widgets, static = root / "widgets", root / "onnxlab" / "notebook" / "static"
    if is_fresh(widgets, static):
        return
    npm = shutil.which("npm")
    if npm is not None:
        build(npm, widgets)
    elif has_bundle(static):
        print("npm was not found: the widget's bundle stays older than widgets/", file=sys.stderr)
    else:
        raise RuntimeError(NO_NPM.format(static=static))
    if not has_bundle(static):
        raise RuntimeError(f"`npm run build` in {widgets} did not write {', '.join(BUNDLE)} to {static}")


def has_bundle(static: Path) -> bool:
    """Tell whether every file of the bundle is there."""
    return all((static / name).is_file() for name in BUNDLE)


def is_fresh(widgets: Path, static: Path) -> bool:
    """Tell whether the bundle is there and no file that it is made from is newer."""
    if not has_bundle(static):
        return False
    built = min((static / name).stat().st_mtime for name in BUNDLE)
    return all(path.stat().st_mtime <= built for path in sources(widgets))


def sources(widgets: Path) -> list[Path]:
    """List the files that the bundle is made from: all of widgets/ but its tests and what npm fetched."""
    if not widgets.is_dir():
        return []
    entries = [entry for entry in widgets.iterdir() if entry.name not in NOT_SOURCES]
    nested = [path for entry in entries if entry.is_dir() for path in entry.rglob("*")]
    return [path for path in [*entries, *nested] if path.is_file()]


def build(npm: str, widgets: Path) -> None:
    """Fetch the build tools with npm where they changed, and run the build.

    Raises:
        RuntimeError: widgets/ is incomplete, or npm failed; the message holds npm's own words.
    """
    request, lock = widgets / "package.json", widgets / "package-lock.json"
    if not request.is_file():
        raise RuntimeError(f"{request} is missing: the sources of the widget are not all here")
    steps = [["run", "build"]]
    if must_fetch(widgets):
        steps.insert(0, ["ci" if lock.is_file() else "install", "--no-audit", "--no-fund"])
    for step in steps:
        print(f"widgets: npm {' '.join(step)}", file=sys.stderr)
        done = subprocess.run([npm, *step], cwd=widgets, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"`npm {' '.join(step)}` in {widgets} failed:\n{done.stdout}{done.stderr}")


def must_fetch(widgets: Path) -> bool:
    """Tell whether node_modules is missing or older than what it was asked to hold."""
    installed = widgets / "node_modules" / ".package-lock.json"
    requests = [widgets / name for name in ("package.json", "package-lock.json")]
    return not installed.is_file() or any(
        path.stat().st_mtime > installed.stat().st_mtime for path in requests if path.is_file()
    )


if __name__ == "__main__":
    ensure_bundle(Path(__file__).resolve().parent)
