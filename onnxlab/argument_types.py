"""Refusals of arguments of a wrong type: a TypeError that says what the argument is and what it may be."""

from __future__ import annotations

from reprlib import repr as short


def expect(value: object, kinds: type | tuple[type, ...], name: str, expected: str) -> None:
    """Raise TypeError where a value is of none of some kinds; True and False are no numbers.

    Args:
        value: the argument.
        kinds: the types that it may have.
        name: of the argument, for the message.
        expected: what it may be, in words.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"{name} is {short(value)}, a {type(value).__name__}: expected {expected}")
