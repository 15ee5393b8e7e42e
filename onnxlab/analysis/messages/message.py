"""An error message of another tool: how it is told, what it means and how that is mended."""

import re
from dataclasses import dataclass
from functools import cached_property

FALLBACK = {
    "node": "the node",
    "op": "the operator",
    "value": "the value",
    "domain": "its domain",
    "version": "this version",
    "got": "what was given",
    "expected": "what was expected",
    "attribute": "the attribute",
    "file": "the file",
}
"""Words for what a message does not say, by the names of groups in patterns."""


@dataclass(frozen=True)
class Message:
    """A message as users meet it.

    Attributes:
        code: its name here, as "E07".
        title: what is wrong, in some words.
        patterns: regular expressions, one of which its text matches; groups are called as in FALLBACK.
        cause: the meaning; placeholders such as {node} stand for what the text says of them.
        fix: what to do.
        codes: codes of the diagnostics by which onnxlab says the same of a model.
    """

    code: str
    title: str
    patterns: tuple[str, ...]
    cause: str
    fix: str
    codes: tuple[str, ...] = ()

    @cached_property
    def regex(self) -> tuple[re.Pattern[str], ...]:
        """The patterns, where any white space stands for any other: messages are pasted from anywhere."""
        spaced = [pattern.replace(" ?", r"\s*").replace(" ", r"\s+") for pattern in self.patterns]
        return tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in spaced)
