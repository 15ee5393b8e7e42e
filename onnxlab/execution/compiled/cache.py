"""Compiled kernels: how they are declared, and the folder on disk in which they are kept.

The cache holds pickles, so it belongs to the user alone (mode 0700, checked) and is never beside a model. A folder is
for one version of Numba, one processor and one set of kernel sources: any change of these begins a new one.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import caching

from onnxlab.execution.compiled.host import host

FOLDER_VARIABLE = "ONNXLAB_CACHE"
_OPTIONS: dict[str, Any] = {"nopython": True, "error_model": "numpy", "boundscheck": False}
_SIGNATURE = "void(int64,int64,int64)"


@cache
def folder() -> Path:
    """Where compiled kernels are kept; made when it is not there.

    It is $ONNXLAB_CACHE, else $XDG_CACHE_HOME/onnxlab, else ~/.cache/onnxlab; where that cannot be had for ourselves
    alone, a folder of this process that is lost with the machine's temporary files.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onnxlab"
    kernels = base / "kernels"
    try:
        kernels.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(kernels):
            raise PermissionError(f"{kernels} is not ours alone")
        own = kernels / version()
        own.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        own = Path(tempfile.mkdtemp(prefix="onnxlab-kernels-"))
    return own


def _is_private(path: Path) -> bool:
    """Whether a folder is no link, belongs to this user, and nobody else may write or read in it."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the profile folder has its own protection
        return True
    if found.st_uid != os.geteuid():
        return False
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return True


@cache
def version() -> str:
    """A name for what compiled code depends on: sources of the kernels, Numba, Python, processor, vector width."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        if _is_kernel(file):
            digest.update(file.name.encode() + file.read_bytes())
    features = llvm.get_host_cpu_features().flatten()
    about = (numba.__version__, sys.version, llvm.get_host_cpu_name(), features, host().name)
    digest.update(repr(about).encode())
    return f"{host().name}-{digest.hexdigest()[:20]}"


def _is_kernel(file: Path) -> bool:
    return file.parent.name == "kernels" or file.name in ("cache.py", "host.py", "operations.py", "records.py")


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Tells Numba where our files are. Sources need no stamp: the folder's name has it."""

    def __init__(self, function: Any, file: str) -> None:
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return version()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator:
        return cls(function, file)


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012 - as in the base class


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation


class Kernel:
    """A function `(record, unit, scratch)` of addresses and a number, to be called from compiled code.

    It is compiled, or read from the cache, when `address` is first asked for.
    """

    def __init__(self, function: Callable[[Any, Any, Any], None]) -> None:
        self.name = function.__name__
        self._function = function
        self._compiled: Any = None

    @property
    def ready(self) -> bool:
        return self._compiled is not None

    @property
    def address(self) -> int:
        """Of the machine code. Compiling holds Numba's lock, so that several threads may ask."""
        if self._compiled is None:
            from numba.core.ccallback import CFunc
            from numba.core.sigutils import normalize_signature

            made = CFunc(self._function, normalize_signature(_SIGNATURE), locals={}, options=dict(_OPTIONS))
            setattr(made, "_cache", _Cache(self._function))  # noqa: B010 - typed as if it had none
            made.compile()
            self._compiled = made
        address: int = self._compiled.address
        return address


def kernel(function: Callable[[Any, Any, Any], None]) -> Kernel:
    """Decorator: a kernel, which a record of a plan names and threads call once for each unit of its work."""
    return Kernel(function)


def helper(function: Any) -> Any:
    """Decorator: a function that kernels call; compiled into them."""
    return numba.njit(error_model="numpy", nogil=True)(function)


def entry(function: Any) -> Any:
    """Decorator: a function that Python calls, without the GIL; kept on disk like kernels."""
    made = numba.njit(error_model="numpy", nogil=True)(function)
    made._cache = _Cache(function)
    return made
