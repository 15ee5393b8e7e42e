"""Text of a model on its way to a terminal: nothing in it moves the cursor, turns the line round or hides.

Names are any text: an escape sequence in one would be obeyed by a terminal, a newline would make a line of its own, and
marks of direction or of no width make a name look like another. Text for people (errors, diagnostics, reports,
representations) goes through this module as its last step; the model itself keeps its names.
"""

import re
from collections.abc import Iterable

# what counts as printable and has no width: joiners, fillers, variation selectors
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def printable(text: str) -> str:
    r"""A text on one line, with what is not visible written as in Python: \n, \x1b, \u202e."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escape(char) for char in text)
    return text if text.isascii() else _INVISIBLE.sub(lambda match: _escape(match[0]), text)


def printable_lines(lines: Iterable[str]) -> str:
    """Lines one below the other, as many as are given."""
    return "\n".join(map(printable, lines))


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
