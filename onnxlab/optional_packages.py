"""Packages that are needed for some things only, imported where they are needed."""

from importlib import import_module
from typing import Any

from onnxlab.errors import MissingPackageError


def needed(name: str, extra: str) -> Any:
    """Import a package of one of onnxlab's extras.

    Args:
        name: of the package.
        extra: the extra that installs it.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"this needs {name}, which is not installed: pip install 'onnxlab[{extra}]'"
        ) from error
