"""Exit codes: one for each way in which a command ends."""

import contextlib
from collections.abc import Iterator

from onnxlab.errors import EditError, LoadError, NameLookupError, OnnxlabError, RunError, SaveError

DONE, DIFFERENT, USAGE, UNREADABLE, FAILED, UNWRITABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

MEANINGS = {
    DONE: "done; of a check: no errors",
    DIFFERENT: "check found errors; diff, compare or hunt found something; evaluate too large an error; explain knows "
    "no message; doctor found what does not work; git merge a conflict; --strict of a rewrite what was taken back",
    USAGE: "the command line is wrong, or names what is not in the model",
    UNREADABLE: "the model, or a file of inputs, cannot be read",
    FAILED: "the run failed, took longer than --timeout or more than --limit, or onnxlab has a fault",
    UNWRITABLE: "something cannot be written or started",
    INTERRUPTED: "interrupted",
}


class UsageError(OnnxlabError):
    """The words of a command line do not fit together."""


_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (UsageError, USAGE),
    (LoadError, UNREADABLE),
    (RunError, FAILED),
    (SaveError, UNWRITABLE),
    (NameLookupError, USAGE),
    (EditError, USAGE),
    (OnnxlabError, UNREADABLE),
    (OSError, UNWRITABLE),
    (KeyboardInterrupt, INTERRUPTED),
)


def code_of(error: BaseException) -> int:
    """The exit code of an error; FAILED for what onnxlab does not raise on purpose."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)


def is_expected(error: BaseException) -> bool:
    """Whether the error is about the model or the machine, and not about a fault of onnxlab."""
    return isinstance(error, (MemoryError, *(kind for kind, _ in _CODES)))


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ValueError about an option, which Python gets, into a UsageError."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, OnnxlabError):
            raise
        raise UsageError(str(error)) from None
