"""The standard streams of a command: all three open, able to print any text, and told when their reader is gone."""

import contextlib
import io
import os
import sys


def prepare() -> None:
    """Give closed streams the null device, and have streams escape what their encoding lacks.

    A stream that is closed would give its descriptor to the next file that is opened, and what a library prints would
    go into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (open until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush() -> bool:
    """Whether all of the answer reaches standard output; if not, Python prints no more to it when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
