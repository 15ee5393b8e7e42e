"""A command from words to exit code: an error is one line on standard error, and with --json an object too."""

import argparse
import contextlib
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from onnxlab.cli.base import streams
from onnxlab.cli.base.answers import json_text, paint, shows_color
from onnxlab.cli.base.deadline import Deadline, TimedOut
from onnxlab.cli.base.entries import take_trailing
from onnxlab.cli.base.exits import DONE, INTERRUPTED, code_of, is_expected
from onnxlab.cli.base.outputs import refuse_both
from onnxlab.cli.grammar import parser
from onnxlab.printable import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = argparse.Namespace(json="--json" in words, color="auto", debug="--debug" in words)
    streams.prepare()
    try:
        code = _command(words, options)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as `head` closed the pipe
        code = DONE
    except (Exception, KeyboardInterrupt) as error:
        code = _failed(error, options)
    streams.flush()
    return code


def _command(words: Sequence[str], options: argparse.Namespace) -> int:
    grammar = parser()
    parsed, rest = grammar.parse_known_args(words, options)
    if rest := take_trailing(parsed, rest):
        parsed.parser.refuse(rest)
    if not parsed.verb:
        grammar.print_help()
        return DONE
    refuse_both(parsed)
    command: Callable[[argparse.Namespace], int] = parsed.command
    with Deadline(parsed.timeout), _limited(parsed.limit), _heard(parsed):
        return command(parsed)


@contextlib.contextmanager
def _limited(nbytes: int | None) -> Iterator[None]:
    """Hold runs to so many bytes."""
    if nbytes is None:
        yield
        return
    from onnxlab.limits import memory_at_most

    with memory_at_most(nbytes):
        yield


@contextlib.contextmanager
def _heard(options: argparse.Namespace) -> Iterator[None]:
    """Print warnings in a line each; with --quiet nothing but the error reaches standard error."""

    def warned(message: Warning | str, *_: object, **_named: object) -> None:
        _complain(f"warning: {message}", "warning", options)

    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.showwarning = cast(Any, warned)
        if options.quiet:
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        yield


def _failed(error: BaseException, options: argparse.Namespace) -> int:
    """Say what went wrong, and return the code for it."""
    code = code_of(error)
    message = "interrupted" if code == INTERRUPTED else str(error) or type(error).__name__
    if not is_expected(error) and not isinstance(error, TimedOut):
        hint = "" if options.debug else "; `--debug` shows where, `onnxlab report` makes what a defect report needs"
        message = f"a fault of onnxlab: {type(error).__name__}: {message}{hint}"
    if options.debug:
        traceback.print_exception(error)
    line = _complain(message, "error", options)
    if options.json:
        with contextlib.suppress(OSError):  # standard output may be what failed
            print(
                json_text({"schema": "onnxlab/error/1", "code": code, "error": type(error).__name__, "message": line})
            )
    return code


def _complain(message: str, style: str, options: argparse.Namespace) -> str:
    line = printable(" ".join(message.split()))
    name = paint("onnxlab:", style) if shows_color(sys.stderr, options.color) else "onnxlab:"
    print(f"{name} {line}", file=sys.stderr)
    return line
