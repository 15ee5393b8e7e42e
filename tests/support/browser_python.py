"""Python as it is in a browser, natively: no threads, processes, locks of files, hard links or clock of threads.

python -m tests.support.browser_python JOB     # runs JOB, a Python file, so
"""

import importlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

MODULES = ("fcntl", "resource", "multiprocessing", "_posixshmem", "numba", "llvmlite", "onnxruntime", "psutil", "re2")
"""Those that Pyodide has not."""
NAMES = {
    time: ("thread_time", "thread_time_ns"),
    os: ("link", "fork", "forkpty", "posix_spawn", "register_at_fork", "sched_getaffinity", "getloadavg"),
    signal: ("pthread_kill", "alarm", "setitimer"),
}
"""What its modules lack."""


def block() -> None:
    """Take it all away, before anything of onnxlab is imported."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it raises ImportError
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    threading.Thread.start = _no_thread  # type: ignore[method-assign]
    subprocess.Popen.__init__ = _no_process  # type: ignore[method-assign]
    os.environ["PATH"] = ""


def _no_thread(*_: Any) -> NoReturn:
    raise RuntimeError("can't start new thread")


def _no_process(*_: Any, **_named: Any) -> NoReturn:
    raise OSError(138, "emscripten does not support processes.")


if __name__ == "__main__":
    importlib.import_module("numpy")  # asks for its own threads and processors
    importlib.import_module("IPython.core.interactiveshell")
    block()
    runpy.run_path(sys.argv[1], run_name="__main__")
