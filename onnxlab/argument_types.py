"""Arguments of a wrong type refused in words, and integers of other libraries taken as plain ones."""

from __future__ import annotations

import operator
from reprlib import repr as short
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")


def plain(value: Any) -> Any:
    """Turn an integer of NumPy, or whatever else counts as an index, into an int; all else stays, arrays and bools too.

    Args:
        value: an argument.
    """
    kind = type(value)
    if kind is int or kind is bool or not hasattr(kind, "__index__") or hasattr(kind, "__len__"):
        return value  # arrays and tensors of one element have a length, and stay arrays
    try:
        return operator.index(value)
    except TypeError:  # such as NumPy's bool
        return value


def expect(value: Any, kinds: type | tuple[type, ...], name: str, expected: str) -> Any:
    """Raise TypeError where a value is of none of some kinds; True and False are no numbers.

    Args:
        value: the argument.
        kinds: the types that it may have; int stands for all kinds of integers.
        name: of the argument, for the message.
        expected: what it may be, in words.

    Returns:
        Any: the argument, an integer as int.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if int in kinds:
        value = plain(value)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"{name} is {short(value)}, a {type(value).__name__}: expected {expected}")
    return value


def seed_of(value: Any) -> int | None:
    """A seed as an int, or None.

    Raises:
        TypeError: it is no integer.
        ValueError: it is negative, which NumPy's generators do not take.
    """
    seed: int | None = expect(value, (int, type(None)), "seed", "a number, or None")
    if seed is not None and seed < 0:
        raise ValueError(f"seed is {seed}: expected a number from 0 on, or None")
    return seed


def tolerance_of(value: Any) -> float:
    """A tolerance as a float.

    Raises:
        TypeError: it is no number.
        ValueError: it is below 0, or NaN.
    """
    tolerance = float(expect(value, (int, float, np.floating), "tolerance", "a number from 0 on"))
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}: expected a number from 0 on")
    return tolerance


def listed(items: Any, name: str, expected: str) -> list[Any]:
    """Raise TypeError for what cannot be iterated over; else the items.

    Args:
        items: the argument.
        name: of the argument, for the message.
        expected: what it may be, in words.
    """
    try:
        iterator = iter(items)
    except TypeError:  # arrays of no dims have the method, too
        raise TypeError(f"{name} is {short(items)}, a {type(items).__name__}: expected {expected}") from None
    return list(iterator)


def several(items: Any, kinds: type[Item] | tuple[type[Item], ...], name: str, expected: str) -> list[Item]:
    """Raise TypeError for what are no items of some kinds; an item alone is a list of it.

    Args:
        items: the argument.
        kinds: the types that an item may have.
        name: of the argument, for the message.
        expected: what it may be, in words.

    Returns:
        list[Item]: the items.
    """
    if isinstance(items, kinds):
        return [items]
    return [expect(item, kinds, f"an item of {name}", expected) for item in listed(items, name, expected)]
