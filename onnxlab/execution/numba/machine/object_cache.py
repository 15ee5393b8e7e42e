"""Compiled kernels: how they are declared, and the folder on disk in which their object code is kept.

What is kept is run, so the folder belongs to the user alone (mode 0700, checked) and is never beside a model. A file's
name says what its code was made from: the sources that the kernel is compiled from, Numba, LLVM and the processor. A
change of any of these means another file.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.machine.records import module_of
from onnxlab.private_folder import closed

FOLDER_VARIABLE = "ONNXLAB_CACHE"
_NUMBA = Path(__file__).parents[1]
_IMPORT = re.compile(r"^from onnxlab\.execution\.numba((?:\.\w+)*) import (\([^)]*\)|.*)$", re.MULTILINE)


@cache
def folder() -> Path:
    """The folder of compiled kernels; made when it is not there.

    It is $ONNXLAB_CACHE, else $XDG_CACHE_HOME/onnxlab, else ~/.cache/onnxlab; where that cannot be had for ourselves
    alone, a folder of this process, which goes with it.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    try:
        base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onnxlab"
        path = closed(base / "kernels")
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        path = Path(tempfile.mkdtemp(prefix="onnxlab-kernels-"))
        atexit.register(_remove, path, os.getpid())
    return path


def _remove(path: Path, process: int) -> None:
    """Remove a process's folder; not where a fork of it ends."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


@cache
def origin(kernel: str) -> str:
    """A name for what the LLVM IR of a kernel depends on: its sources, and what the host is to have."""
    digest = hashlib.sha256(repr(host()).encode())
    for source in sorted(_sources(module_of(kernel))):
        digest.update(source.name.encode() + source.read_bytes())
    return f"{kernel}-{host().name}-{digest.hexdigest()[:20]}"


def version(kernel: str) -> str:
    """A name for what the object code of a kernel depends on: its `origin`, Numba, LLVM and the processor."""
    return f"{origin(kernel)}-{_about()}"


@cache
def _about() -> str:
    import llvmlite.binding as llvm

    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    about = metadata.version("numba"), llvm.llvm_version_info, sys.platform, platform.machine(), processor
    return hashlib.sha256(repr(about).encode()).hexdigest()[:10]


def _sources(module: str) -> set[Path]:
    """The files that a kernel module is compiled from: its own and, in turn, those of the package that it imports."""
    files: set[Path] = set()
    waiting = [_NUMBA / "kernels" / f"{module}.py", _NUMBA / "machine" / "compilation.py"]
    while waiting:
        file = waiting.pop()
        if file in files:
            continue
        files.add(file)
        if file.is_relative_to(_NUMBA / "kernels"):
            for dotted, listed in _IMPORT.findall(file.read_text(encoding="utf-8")):
                base = _NUMBA.joinpath(*dotted.split(".")[1:])
                places = [base, *(base / name for name in re.findall(r"\w+", listed))]
                waiting += [place for module_path in places if (place := module_path.with_suffix(".py")).exists()]
    return files


def read(kernel: str) -> bytes | None:
    """The object code of a kernel, None where it is not there, whole and unchanged."""
    try:
        content = _file(kernel).read_bytes()
    except OSError:
        return None
    code = content[_DIGEST:]
    return code if _digest(code) == content[:_DIGEST] else None


def has(kernel: str) -> bool:
    """Whether there is a file for the object code of a kernel."""
    return _file(kernel).exists()


def write(kernel: str, code: bytes) -> None:
    """Keep the object code of a kernel. Other processes see all of it or nothing; a full disk is no reason to fail."""
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(_digest(code) + code)
        os.replace(file.name, _file(kernel))


def _file(kernel: str) -> Path:
    return folder() / f"{version(kernel)}.o"


_DIGEST = 16


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_DIGEST).digest()


class Kernel:
    """A function of numbers (int64: addresses, counts), to be called from compiled code or by its address.

    Attributes:
        arity: how many it takes.
        returns: whether it returns one.
    """

    def __init__(self, function: Callable[..., Any], arity: int, returns: bool) -> None:
        self.function = function
        self.arity = arity
        self.returns = returns


def kernel(function: Callable[[Any, Any, Any], None]) -> Kernel:
    """Decorator: `(record, unit, scratch)`, which a record of a plan names and threads call once for each unit."""
    return Kernel(function, 3, returns=False)


def entry(function: Callable[..., Any]) -> Kernel:
    """Decorator: what Python calls."""
    return Kernel(function, function.__code__.co_argcount, returns=True)


def helper(function: Any) -> Any:
    """Decorator: a function that kernels call; compiled into them."""
    import numba

    return numba.njit(error_model="numpy", nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
