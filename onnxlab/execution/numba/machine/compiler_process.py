"""The process that compiles kernels for this one: started when something is missing, gone some time after.

Numba holds the interpreter's lock for most of a compilation; in a separate process it stops no thread of this one. The
process has its own process group, so that an interrupted notebook does not interrupt it, but not its own session: Linux
divides processors among sessions before it considers niceness. The process ends whenever this process ends, since its
standard input is closed then.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

from onnxlab.execution.numba.machine import object_cache
from onnxlab.execution.numba.machine.host import VARIABLE, host

POLITE = 5
"""Niceness of a process that compiles kernels that runs asked for without waiting."""
_SCRIPT = (  # it gives way from the start: imports take as long as a kernel; its end waits for no reader
    "import json, os, sys; path, way = json.loads(sys.argv[1]); sys.path[:] = path\n"
    "if way and hasattr(os, 'nice'): os.nice(way)\n"
    "from onnxlab.execution.numba.machine.compilation import serve; serve(); os._exit(0)"
)


class NoCompilerError(Exception):
    """There is no process that compiles; the message gives the reason."""


_ending = threading.Event()


def is_ending() -> bool:
    """Whether this process is about to end, so that nothing more is compiled."""
    return _ending.is_set()


class CompilerProcess:
    """One process that compiles kernels.

    Args:
        way: niceness of the process, up to 19; 0 where a call waits for it.

    Raises:
        NoCompilerError: the process cannot be started.
    """

    def __init__(self, way: int) -> None:
        if is_ending():
            raise NoCompilerError("this process is about to end")
        if not sys.executable or getattr(sys, "frozen", False):
            raise NoCompilerError("this program is not run by a Python interpreter that could be started again")
        command = [sys.executable, "-c", _SCRIPT, json.dumps([sys.path, way])]
        environment = os.environ | {VARIABLE: host().name, "NUMBA_DISABLE_JIT": "0"}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment, **_apart()
            )
        except OSError as error:
            raise NoCompilerError(f"{sys.executable} cannot be started: {error}") from error
        atexit.register(self._end_for_good)

    def compile(self, kernel: str) -> bytes:
        """The object code of a kernel.

        Raises:
            NoCompilerError: the process has ended, or takes too long.
            RuntimeError: the kernel cannot be compiled.
        """
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        try:
            questions.write(kernel.encode() + b"\n")
            questions.flush()
            head: dict[str, Any] = json.loads(answers.readline())
            code: bytes = answers.read(head["bytes"])
        except (OSError, ValueError) as error:
            self.end()
            raise NoCompilerError(f"the process that compiles has ended: {self._said()}") from error
        if head["error"]:
            raise RuntimeError(f"kernel {kernel}: {head['error']}")
        if head["version"] != object_cache.version(kernel) or len(code) != head["bytes"]:
            raise RuntimeError(f"kernel {kernel}: its sources have changed since this process began: start it again")
        return code

    def end(self) -> None:
        """End the process; it may be asked for more than once."""
        atexit.unregister(self._end_for_good)
        with contextlib.suppress(OSError), self._process:  # which closes its pipes; what was not sent yet is lost
            self._process.kill()

    def _end_for_good(self) -> None:
        _ending.set()
        self.end()

    def _said(self) -> str:
        """The end of the process's standard error."""
        self._errors.seek(0)
        return self._errors.read()[-2000:].decode(errors="replace").strip() or "without a word"


def _apart() -> dict[str, Any]:
    """Options of Popen for a process that no console, terminal or interrupt of ours reaches."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.BELOW_NORMAL_PRIORITY_CLASS}
    return {"process_group": 0}
