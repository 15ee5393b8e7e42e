"""Python as onnxlab finds it on Windows or on macOS, natively: what the system lacks there is hidden from it.

python tests/packaging/other_system.py win32|darwin JOB ARGUMENTS…     # runs JOB, a Python file, so

Only code of onnxlab sees it so: the standard library goes on as it is, and paths and locks stay those of this system.
"""

import builtins
import importlib
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = {
    "win32": ("fcntl", "resource", "pwd", "grp", "termios", "numba", "llvmlite"),
    "darwin": ("numba", "llvmlite"),
}
"""Those that are not there; kernels would be compiled anew for a system that is none."""
MISSING: dict[str, dict[str, tuple[str, ...]]] = {
    "win32": {
        "os": (
            "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "fchmod", "fchown", "chown", "nice",
            "sched_getaffinity", "sysconf", "statvfs", "getloadavg", "pread", "mkfifo", "killpg", "posix_fadvise",
            "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC",
        ),
        "signal": ("pthread_kill", "SIGKILL", "SIGALRM", "setitimer", "SIGUSR1"),
        "socket": ("AF_UNIX",),
    },
    "darwin": {"os": ("sched_getaffinity", "posix_fadvise", "posix_fallocate", "memfd_create", "O_TMPFILE")},
}  # fmt: skip
OTHER: dict[str, dict[str, dict[str, Any]]] = {
    "win32": {"os": {"name": "nt", "supports_dir_fd": set()}, "sys": {"platform": "win32"}},
    "darwin": {"sys": {"platform": "darwin"}},
}  # fmt: skip
"""What is something else there."""


_frame = sys._getframe  # noqa: SLF001  there is no other way to tell who asks


def _asks_for_itself() -> bool:
    """Whether code of onnxlab is two calls above."""
    return str(_frame(2).f_globals.get("__name__", "")).startswith("onnxlab")


def disguise(system: str) -> None:
    """Hide what a system has not from onnxlab, before anything of it is imported."""

    class Disguised(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            if _asks_for_itself():
                module_name = object.__getattribute__(self, "__name__")
                if name in MISSING[system].get(module_name, ()):
                    raise AttributeError(f"module {module_name!r} has no attribute {name!r} on {system}")
                if name in OTHER[system].get(module_name, {}):
                    return OTHER[system][module_name][name]
            return super().__getattribute__(name)

    for module in (os, signal, socket, sys):
        module.__class__ = Disguised
    imported = builtins.__import__

    def disguised_import(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] in MODULES[system] and _asks_for_itself():
            raise ImportError(f"no module named {name!r} on {system}")
        return imported(name, *arguments, **named)

    builtins.__import__ = disguised_import
    read_text = Path.read_text

    def disguised_read(path: Path, *arguments: Any, **named: Any) -> str:
        if str(path).startswith("/proc"):
            raise FileNotFoundError(path)
        return read_text(path, *arguments, **named)

    Path.read_text = disguised_read  # type: ignore[method-assign]


if __name__ == "__main__":
    importlib.import_module("numpy")
    importlib.import_module("IPython.core.interactiveshell")
    chosen = sys.argv[1]
    sys.modules["numba"] = sys.modules["llvmlite"] = None  # type: ignore[assignment]
    disguise(chosen)
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")
