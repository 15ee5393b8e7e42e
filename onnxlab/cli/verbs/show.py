"""`onnxlab show`: the widget, in JupyterLab on a scratch notebook."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from onnxlab.cli.base.answers import STDOUT, answer
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DONE, UNWRITABLE
from onnxlab.cli.base.inputs import open_model, whole
from onnxlab.errors import SaveError


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    show = verbs.add("show", _show, "open the model in JupyterLab, on a scratch notebook", models=())
    show.add_argument("model", help="path of the model")
    show.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    show.add_argument("--port", type=whole, help="port of the server")


def _show(options: argparse.Namespace) -> int:
    import importlib.util
    import subprocess
    import tempfile

    if importlib.util.find_spec("jupyterlab") is None:
        raise SaveError("`onnxlab show` needs JupyterLab: pip install 'onnxlab[lab]'")
    model = open_model(options)  # a bad path is said here, in one line, not in a cell
    notebook = Path(tempfile.mkdtemp(prefix="onnxlab-")) / "scratch.ipynb"
    path = notebook.with_name("model.onnx") if options.model == STDOUT else Path(options.model).resolve()
    if options.model == STDOUT:
        model.save(path)
    notebook.write_text(json.dumps(scratch(path)), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlab", str(notebook)]
    if options.no_browser:
        command.append("--no-browser")
    if options.port is not None:
        command.append(f"--port={options.port}")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--allow-root")
    answer(options, lambda: {"notebook": str(notebook)}, lambda: str(notebook))
    return UNWRITABLE if subprocess.run(command, check=False).returncode else DONE


def scratch(path: Path) -> dict[str, Any]:
    """A notebook that shows the model at `path`, as JSON."""
    cells = [f"import onnxlab\n\nmodel = onnxlab.load({str(path)!r})\nmodel"]
    return {
        "cells": [
            {"cell_type": "code", "execution_count": None, "id": f"cell{number}", "metadata": {}, "outputs": [],
             "source": cell}
            for number, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }  # fmt: skip
