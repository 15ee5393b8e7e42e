"""The environment: versions, what is optional, the machine; each with what would mend it."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from onnxlab.limits import available_memory, format_bytes
from onnxlab.printable import printable

REQUIRED = ("onnx", "numpy", "protobuf", "ml-dtypes", "networkx", "threadpoolctl")
OPTIONAL = {
    "numba": ("compiled kernels", "pip install 'onnxlab[fast]'"),
    "onnxruntime": ('the provider "onnxruntime", and judging by it', "pip install 'onnxlab[ort]'"),
    "jupyterlab": ("`onnxlab show`", "pip install 'onnxlab[lab]'"),
    "anywidget": ("the widget", "pip install anywidget"),
    "resvg-py": ("PNG pictures", "pip install resvg-py"),
}
_NODES = 24
"""Nodes of the example that comes along."""


@dataclass(frozen=True, slots=True)
class EnvironmentCheck:
    """The state of one part of the environment.

    Attributes:
        name: of the part.
        state: "ok"; "absent" for an optional part that is missing; "error" for a part that does not work.
        words: a version, or what is wrong.
        hint: what would mend it.
    """

    name: str
    state: Literal["ok", "absent", "error"]
    words: str
    hint: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        mark = {"ok": "ok    ", "absent": "absent", "error": "ERROR "}[self.state]
        return printable(f"{mark} {self.name}: {self.words}" + (f" ({self.hint})" if self.hint else ""))


def examined() -> Iterator[EnvironmentCheck]:
    """All findings; a question that raises becomes a finding."""
    for name, question in QUESTIONS.items():
        try:
            yield from question()
        except Exception as error:  # any error is a finding
            yield EnvironmentCheck(name, "error", f"{type(error).__name__}: {error}")


def _versions() -> Iterator[EnvironmentCheck]:
    import onnxlab

    machine = f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}"
    yield EnvironmentCheck("Python", "ok", machine)
    yield EnvironmentCheck("onnxlab", "ok", f"{onnxlab.__version__} in {Path(onnxlab.__file__).parent}")
    for name in REQUIRED:
        version = _version(name)
        yield EnvironmentCheck(
            name, "ok" if version else "error", version or "not installed", "" if version else f"pip install {name}"
        )


def _extras() -> Iterator[EnvironmentCheck]:
    for name, (purpose, hint) in OPTIONAL.items():
        version = _version(name)
        yield EnvironmentCheck(
            name, "ok" if version else "absent", version or f"needed for {purpose}", "" if version else hint
        )
    dot = shutil.which("dot")
    yield EnvironmentCheck(
        "Graphviz",
        "ok" if dot else "absent",
        dot or "static pictures are laid out in rows",
        "" if dot else "install graphviz",
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _machine() -> Iterator[EnvironmentCheck]:
    from onnxlab import threads

    cores = f"{os.cpu_count() or '?'} processors, {format_bytes(available_memory())} of memory free"
    yield EnvironmentCheck(
        "machine", "ok", cores if threads.are_there() else f"{cores}, no threads: runs cannot be interrupted"
    )


def _example() -> Iterator[EnvironmentCheck]:
    """Load, edit, undo and run the example."""
    import numpy as np

    import onnxlab

    model = onnxlab.load()
    model.nodes[0].name = "renamed"
    model.undo()
    result = model.run({"image": np.zeros((1, 1, 8, 8), np.float32)})["probabilities"]
    works = len(model.nodes) == _NODES and result.shape == (1, 10) and abs(float(result.sum()) - 1) < 1e-5
    words = "opens, is edited, undone and run" if works else f"a run gave {result!r}"
    yield EnvironmentCheck("example", "ok" if works else "error", words)


def _bundle() -> Iterator[EnvironmentCheck]:
    from onnxlab.notebook.widgets.bundle import bundled

    yield EnvironmentCheck("widget's bundle", "ok", format_bytes(len(bundled("widget.js"))))


def _kernels() -> Iterator[EnvironmentCheck]:
    from onnxlab.execution.numba.machine import availability, object_cache

    if availability.missing():
        return
    folder = Path(object_cache.folder())
    count = len(list(folder.glob("*.o"))) if folder.is_dir() else 0
    hint = "" if count else "`onnxlab warm` compiles them once"
    yield EnvironmentCheck("compiled kernels", "ok", f"{count} in {folder}", hint)


def _terminal() -> Iterator[EnvironmentCheck]:
    encoding = getattr(sys.stdout, "encoding", None) or "?"
    able = encoding.lower().replace("-", "") in ("utf8", "utf16")
    yield EnvironmentCheck(
        "terminal", "ok" if able else "absent", encoding, "" if able else "PYTHONUTF8=1 shows all names"
    )


QUESTIONS: dict[str, Callable[[], Iterator[EnvironmentCheck]]] = {
    "versions": _versions,
    "extras": _extras,
    "machine": _machine,
    "example": _example,
    "widget's bundle": _bundle,
    "compiled kernels": _kernels,
    "terminal": _terminal,
}
