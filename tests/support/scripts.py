"""Scripts of the repository that belong to no package, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def loaded(path: Path, name: str) -> ModuleType:
    """The script as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
