"""Answers of the command line: lines, or one JSON object with a schema, or the bytes of a file on standard output."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any

from onnxlab.cli.base.exits import UsageError
from onnxlab.printable import printable

STDOUT = "-"
"""The name of standard input and output among the names of files."""

_STYLES = {"error": "31", "warning": "33", "-": "31", "+": "32", "~": "33"}
_MARKS = (": error: ", "error"), (": warning: ", "warning")


def answer(options: argparse.Namespace, rows: Callable[[], Any], words: Callable[[], str]) -> None:
    """Print an answer: as JSON where that is asked for, else in words, of which --quiet leaves none.

    Args:
        options: of the command line.
        rows: makes the JSON object; its own "schema" is kept, else the schema of the command is added.
        words: makes the lines.
    """
    if options.json:
        print(json_text({"schema": f"onnxlab/{options.verb}/1", **rows()}))
    elif not options.quiet:
        stream = sys.stderr if getattr(options, "output", None) == STDOUT else sys.stdout
        print(colored(words(), stream, options.color), file=stream)


def deliver(data: bytes | str) -> None:
    """Write the content of a file to standard output.

    Raises:
        UsageError: the content is no text, and standard output is a terminal.
    """
    if isinstance(data, str):
        data = (data if data.endswith("\n") else data + "\n").encode()  # as a file has it, whatever a terminal shows
    elif sys.stdout.isatty():
        raise UsageError("a binary file is not written to a terminal: redirect it, or name a file with -o")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def json_text(answer: Any) -> str:
    """JSON in UTF-8, but for what a terminal would obey or not show; ASCII where the output is in no UTF."""
    ascii_only = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(answer, ensure_ascii=ascii_only, allow_nan=False)
    if printable(text) == text:
        return text
    return "".join(char if printable(char) == char else json.dumps(char)[1:-1] for char in text)


def colored(text: str, stream: IO[str], when: str) -> str:
    """Lines with errors, warnings and changes in color, where the stream shows colors or is told to."""
    return "\n".join(map(_colored, text.split("\n"))) if shows_color(stream, when) else text


def shows_color(stream: IO[str], when: str) -> bool:
    """Whether a stream gets colors: "always", "never", or as the terminal and NO_COLOR say."""
    if when != "auto":
        return when == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str) -> str:
    """A text in the color of "error" or "warning"."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _colored(line: str) -> str:
    for mark, style in _MARKS:
        if mark in line:
            return line.replace(mark, f": {paint(style, style)}: ", 1)
    first = line.lstrip()[:2]
    return paint(line, first[0]) if first in ("+ ", "- ", "~ ") else line


def row(item: Any) -> dict[str, Any]:
    """Statistics of an array for JSON."""
    from onnxlab.notebook.protocol.messages import number

    names = ("minimum", "maximum", "mean", "std", "nan", "inf", "zeros")
    numbers = {name: number(getattr(item, name)) for name in names}
    return {"dtype": item.dtype, "shape": list(item.shape), "count": item.count, **numbers}


def line(name: str, item: Any) -> str:
    """Statistics of an array in a line."""
    shape = ",".join(str(dim) for dim in item.shape)
    parts = [f"{name}: {item.dtype}[{shape}]"]
    if item.minimum is not None:
        parts.append(f"min {item.minimum:.6g} max {item.maximum:.6g}")
    if item.mean is not None:
        parts.append(f"mean {item.mean:.6g} std {item.std:.6g}")
    if item.nan or item.inf:
        parts.append(f"{item.nan} NaN {item.inf} infinite")
    return "  ".join(parts)
