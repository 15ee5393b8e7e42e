"""The texts of boxes and frames of a picture, in as few characters as there is room for."""

from onnxlab.graph.query.groups import Group

MAX_TEXT = 32
"""Characters of a line in a box."""


def title_of(group: Group) -> str:
    """The name of a group, and how many units follow one another in it."""
    return f"{shorten(group.name)} ×{group.units}" if group.units else shorten(group.name)


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """At most `limit` characters on one line, cut in the middle, where names differ least."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    head = limit // 2 - 1
    return f"{text[:head]}…{text[head + 1 - limit :]}"
