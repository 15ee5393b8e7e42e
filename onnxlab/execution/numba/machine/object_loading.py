"""Object code of kernels into memory that can be run. It takes LLVM's loader alone, neither Numba nor a compiler."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import threading
from pathlib import Path
from typing import Any

from onnxlab.execution.numba.machine.compilation import ENTRY
from onnxlab.forking import fork_safe

_lock = fork_safe(threading.Lock())
_loader: Any = None
_numbers = itertools.count()  # of libraries, whose names are not used again


def open_library() -> None:
    """Open LLVM's library, of 170 MB, without the interpreter's lock, which llvmlite's own way would hold."""
    if os.name != "posix":
        return
    import llvmlite.utils

    path = Path(llvmlite.__file__).parent / "binding" / llvmlite.utils.get_library_name()
    with contextlib.suppress(AttributeError):  # a C library without it
        opener = ctypes.CDLL(None).dlopen
        opener.argtypes, opener.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        opener(os.fsencode(path), os.RTLD_NOW | os.RTLD_LOCAL)  # where it fails, llvmlite says why


def load(name: str, code: bytes) -> int:
    """Load object code, in a millisecond, and return the address of its function. The code stays in memory.

    Args:
        name: of the kernel, for messages.

    Raises:
        RuntimeError: the object code cannot be loaded.
    """
    import llvmlite.binding as llvm

    with _lock:
        linked = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
        tracker = linked.link(_made_loader(), f"{name}-{next(_numbers)}")
        address: int = tracker[ENTRY]
        # LLVM would free the code with the interpreter's last objects, while threads may still run it
        tracker.detach()
        return address


def _made_loader() -> Any:
    global _loader
    if _loader is None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _loader = llvm.create_lljit_compiler(llvm.Target.from_default_triple().create_target_machine())
        atexit.register(_loader.detach)  # for the same reason
    return _loader
