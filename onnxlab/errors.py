"""Exceptions and diagnostics: everything that onnxlab raises or reports, in one place.

A message says what was given, what was expected and what to do. Exceptions that stand in for a built-in one also
derive from it, so that `except ValueError` keeps working.
"""

from dataclasses import dataclass
from typing import Literal

from onnxlab.printable import printable
from onnxlab.short_help import ShortHelp

Severity = Literal["error", "warning", "info"]


_LONGEST = 20_000
"""Characters of the longest message."""


class OnnxlabError(Exception, metaclass=ShortHelp):
    """Base of every exception that onnxlab raises on purpose.

    The message says what was given, what was expected and what to do. Exceptions that stand in for a built-in one
    derive from it too, as EditError from ValueError; `onnxlab.errors` has all.

    Examples:
        >>> try:
        ...     model.nodes["/stem/conv/Conv"].remove()
        ... except onnxlab.OnnxlabError as error:
        ...     print(type(error).__name__)
        EditError
    """

    def __str__(self) -> str:
        text = super().__str__()  # a name in it may have ten megabytes
        return printable(text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}")


class LoadError(OnnxlabError, ValueError):
    """A file, bytes or a proto could not be read as a model."""


class SaveError(OnnxlabError, OSError):
    """A model could not be written; whatever stood at the path before is still there."""


class TextError(OnnxlabError, ValueError):
    """A textual format does not exist, or cannot hold the model."""


class OnnxlabWarning(UserWarning):
    """Base of the warnings that onnxlab has categories for."""

    def __str__(self) -> str:
        return printable(super().__str__())


class SaveWarning(OnnxlabWarning):
    """A model was written in another form than it was loaded in; the message says which and why."""


class JournalWarning(OnnxlabWarning):
    """Edits cannot be written to the crash journal, or some of it can be recovered; the message says what to do."""


class CheckpointWarning(OnnxlabWarning):
    """A checkpoint of a pass over a data set cannot be written; the pass goes on without."""


class EditError(OnnxlabError, ValueError):
    """An edit was refused; the model is as it was before."""


class TransformError(OnnxlabError, ValueError):
    """A rule or pattern cannot be understood; the message says where."""


class NameLookupError(OnnxlabError, LookupError):
    """A name, position or id means no node or value, or more than one."""


class ProviderError(NameLookupError, ValueError):
    """No provider has this name, or something else than a provider was given."""


class MissingPackageError(ProviderError, ImportError):
    """A package is not installed that what was asked for needs; the message says how to install it."""


class NotComputedError(NameLookupError, KeyError):
    """A value has no array: nothing was run yet, or the last run had not all the inputs that it needs."""

    __str__ = OnnxlabError.__str__


class MissingKeyError(NameLookupError, KeyError):
    """A mapping of a model, such as attributes, metadata or opsets, has no such key."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError's own puts the message into quotes


class RunError(OnnxlabError):
    """A run failed. `node` is the label of the node that failed, or None."""

    def __init__(self, message: str, node: str | None = None) -> None:
        super().__init__(message)
        self.node = node


class FeedError(RunError, ValueError):
    """The arrays given to a run do not fit the inputs it needs."""


class UnsupportedOperatorError(RunError, NotImplementedError):
    """No provider implements an operator that a run needs."""


class LimitError(RunError, MemoryError):
    """A run would have exceeded its budget of bytes, iterations or seconds."""


class RunStopped(RunError):
    """A run was stopped by its stop flag or by an interrupt."""


@dataclass(frozen=True, slots=True)
class Diagnostic(metaclass=ShortHelp):
    """One problem, pinned to where it is. Ids are 0 where they do not apply.

    Attributes:
        severity: "error" (cannot run), "warning" (suspect) or "info".
        code: a stable short name such as "shape-mismatch".
        message: one sentence for people.
        node, value, scope: ids in the ModelGraph.
        expected, found: the two sides of the contradiction, "" where there are none.
        hint: how to fix it.

    Examples:
        >>> model.nodes["/block2/conv1/Conv"].attributes["strides"] = [1, 1]
        >>> problem = model.diagnostics[0]
        >>> problem.code, model.node(problem.node)
        ('shape-mismatch', <Node '/block2/Add': Add>)
    """

    severity: Severity
    code: str
    message: str
    node: int = 0
    value: int = 0
    scope: int = 0
    expected: str = ""
    found: str = ""
    hint: str = ""

    def __str__(self) -> str:
        parts = [f"{self.severity}: {self.message}"]
        if self.expected or self.found:
            parts.append(f"expected {self.expected or '?'}, found {self.found or '?'}")
        if self.hint:
            parts.append(self.hint)
        return printable("; ".join(parts))
