"""Viewers of a model: the layers that draw stand above `Model`, which asks for them here when it is shown.

The front door registers them by name, so that nothing is imported before a model is shown.
"""

import importlib
from collections.abc import Callable
from typing import Any

_VIEWERS: dict[str, str] = {}


def register(**viewers: str) -> None:
    """Name functions that take a model first, as in svg="onnxlab.render.svg:render"."""
    _VIEWERS.update(viewers)


def viewer(name: str) -> Callable[..., Any]:
    """Import a function that was registered.

    Raises:
        KeyError: none is registered by this name.
    """
    module, _, function = _VIEWERS[name].partition(":")
    imported: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return imported
