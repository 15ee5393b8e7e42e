"""The exception of shape rules whose inputs or attributes cannot be right."""

from __future__ import annotations

from onnxlab.errors import OnnxlabError, Severity


class FactError(OnnxlabError, ValueError):
    """The facts of a node's inputs contradict its operator.

    The message is a sentence without the node's name; inference turns it into a Diagnostic of the node.

    Attributes:
        code: stable short name, such as "shape-mismatch".
        expected, found: the two sides of the contradiction.
        hint: a possible fix.
        severity: "warning" where the node may be valid, but inference does not follow its shapes.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "shape-mismatch",
        expected: str = "",
        found: str = "",
        hint: str = "",
        severity: Severity = "error",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.expected = expected
        self.found = found
        self.hint = hint
        self.severity = severity
