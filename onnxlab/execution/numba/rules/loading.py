"""Loading of all compiled rules: a file of rules enters them in the registry when it is imported."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

from onnxlab.execution.base import background
from onnxlab.graph.edit.snapshot import NodeView


@cache
def load() -> Callable[[NodeView], Any]:
    """Import every file of compiled rules; returns the function that finds a node's rule."""
    rules = "onnxlab.execution.numba.rules"
    for folder in (f"{rules}.onnx", f"{rules}.ml", f"{rules}.microsoft"):
        package = importlib.import_module(folder)
        for module in pkgutil.iter_modules(package.__path__, f"{folder}."):
            background.rest()
            importlib.import_module(module.name)
    return importlib.import_module(f"{rules}.registry").find  # type: ignore[no-any-return]
