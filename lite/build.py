"""Build the site that runs onnxlab in a browser without a server: `python lite/build.py`; lite/README.md says how.

JupyterLite's Pyodide kernel does the work: its lock takes this project's wheel and all that it needs, so that
`import onnxlab` works in the first cell. What the site holds is looked at afterwards: nothing of it may lie elsewhere.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = "314.0.6"
"""The version that the kernel of requirements.txt is made for."""
ARCHIVE = f"https://github.com/pyodide/pyodide/releases/download/{PYODIDE}/pyodide-{PYODIDE}.tar.bz2"
LOADED = ("anywidget", "ml-dtypes", "numpy", "onnx", "onnxlab")
"""Packages without which no model opens."""


class BuildError(Exception):
    """The site cannot be built, or is not whole; the text says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "lite", help="folder of the site")
    words = "archive of Pyodide with all its packages, a path or an address; default: that of its release"
    parser.add_argument("--pyodide", default=ARCHIVE, help=words)
    options = parser.parse_args(arguments)
    try:
        build(options.output.resolve(), options.pyodide)
        print(f"{options.output}: {report(options.output)}")
    except BuildError as error:
        print(f"lite/build.py: {error}", file=sys.stderr)
        return 1
    return 0


def build(output: Path, pyodide: str) -> None:
    """Make wheel, contents and configuration, and run JupyterLite's own build.

    Raises:
        BuildError: a step failed.
    """
    work = output.with_name(f"{output.name}-work")
    shutil.rmtree(work, ignore_errors=True)
    wheels = work / "wheels"
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(ROOT)])
    contents = lay_out(ROOT / "notebooks", work / "contents")
    folder = work / "config"
    folder.mkdir(parents=True)
    config = configuration(wheels, contents, output, pyodide)
    (folder / "jupyter_lite_config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    (folder / "jupyter-lite.json").write_text(json.dumps(settings(), indent=2), encoding="utf-8")
    shutil.rmtree(output, ignore_errors=True)
    run([sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(folder)])


def lay_out(notebooks: Path, target: Path) -> Path:
    """Copy the notebooks without the pictures of earlier runs, and the files that they read."""
    target.mkdir(parents=True)
    for path in sorted(notebooks.iterdir()):
        if path.suffix != ".ipynb":
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, target / path.name)
            continue
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell.update(outputs=[], execution_count=None)
        (target / path.name).write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    return target


def configuration(wheels: Path, contents: Path, output: Path, pyodide: str) -> Mapping[str, Any]:
    """The configuration of JupyterLite's build."""
    return {
        "LiteBuildConfig": {"contents": [str(contents)], "output_dir": str(output), "no_sourcemaps": True},
        "PyodideAddon": {"pyodide_url": pyodide},
        "PyodideLockAddon": {
            "enabled": True,
            "wheels": [str(wheels)],
            "specs": ["onnxlab", "ipywidgets"],
            "prefetch_extra": ["onnxlab", "anywidget"],
        },
    }


def settings() -> Mapping[str, Any]:
    """Settings of the site: packages come from it, and from nowhere else."""
    plugin = "@jupyterlite/pyodide-kernel-extension:kernel"
    return {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "appName": "onnxlab",
            "exposeAppInBrowser": True,
            "litePluginSettings": {plugin: {"disablePyPIFallback": True}},
        },
    }


def report(site: Path) -> str:
    """The downloads of a visitor, in words.

    Raises:
        BuildError: a package is missing, or would be loaded from another host.
    """
    locks = sorted(site.glob("static/pyodide*/pyodide-lock.json"), key=lambda path: len(path.parent.name))
    if not locks:
        raise BuildError(f"{site} has no pyodide-lock.json: JupyterLite's build did not come that far")
    lock = locks[-1]
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    if missing := [name for name in LOADED if name not in packages]:
        raise BuildError(f"the lock of the site has no {', '.join(missing)}")
    files = [lock.parent / packages[name]["file_name"] for name in needed(packages, LOADED)]
    outside = [path.name for path in files if not path.is_file()]
    if outside:
        raise BuildError(
            f"{', '.join(outside)} would be loaded from elsewhere, or not at all: build with the archive of Pyodide "
            f"that has all packages ({ARCHIVE}), not with its core alone"
        )
    core = [
        path for path in lock.parent.parent.glob("pyodide/*") if path.name.startswith(("pyodide.asm", "python_stdlib"))
    ]
    size = sum(path.stat().st_size for path in (*files, *core)) / 1e6
    return f"{len(files)} packages, {size:.1f} MB are loaded once by a visitor, before compression"


def needed(packages: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Packages and all that they depend on."""
    ordered: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in ordered and name in packages:
            ordered.append(name)
            waiting += packages[name]["depends"]
    return sorted(ordered)


def run(command: Sequence[str]) -> None:
    """Run a step; raises BuildError with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise BuildError(f"`{' '.join(command)}` failed:\n{words}")


if __name__ == "__main__":
    sys.exit(main())
