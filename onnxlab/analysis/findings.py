"""Collecting diagnostics: what the rules of `check` write into."""

from dataclasses import dataclass, field

from onnxlab.errors import Diagnostic, Severity


@dataclass(slots=True)
class Findings:
    """Problems of one node, value or scope, whose ids go into each of them."""

    node: int = 0
    value: int = 0
    scope: int = 0
    found: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, message: str, hint: str, expected: str = "", actual: str = "") -> None:
        """Add a finding that makes the model invalid."""
        self._add("error", code, message, hint, expected, actual)

    def warning(self, code: str, message: str, hint: str, expected: str = "", actual: str = "") -> None:
        """Add a finding that leaves the model valid."""
        self._add("warning", code, message, hint, expected, actual)

    def _add(self, severity: Severity, code: str, message: str, hint: str, expected: str, actual: str) -> None:
        self.found.append(
            Diagnostic(severity, code, message, self.node, self.value, self.scope, expected, actual, hint)
        )
