"""Signatures of input shapes, as text: to explain a failure, never asked before one.

A signature names the axes of each input: "N C ...|C|C" means that the first has two axes or more, the others one each,
as long as the first one's second. "4H" is four times H, "1" is one, "?" any size, "" any shape; "a/b" are two ways.
Inputs that are absent, or no arrays, are left out. Source: the operators' pages at onnx.ai.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

_TERM: Final = re.compile(r"(\d*)(\w*)")


def misfit(signature: str, names: Sequence[str], arrays: Sequence[Any]) -> str:
    """The misfit with an operator's signature, "" for none.

    Args:
        signature: the operator's signature, from its traits.
        names: names of the operator's inputs, by position.
        arrays: the inputs; None for an absent one.
    """
    sizes: dict[str, tuple[int, str]] = {}
    for name, array, expected in zip(names, arrays, signature.split("|"), strict=False):
        if not isinstance(array, np.ndarray) or expected == "":
            continue
        ways = expected.split("/")
        chosen = [way.split() for way in ways if _takes(way.split(), array.ndim)]
        if not chosen:
            shapes = " or ".join(f"[{', '.join(way.split())}]" for way in ways)
            return f"input {name} has {array.ndim} axes: expected {shapes}"
        text = _sizes_misfit(name, array.shape, chosen[0], sizes) if len(chosen) == 1 else ""
        if text:
            return text
    return ""


def _takes(axes: Sequence[str], rank: int) -> bool:
    return rank >= len(axes) - 1 if axes[-1:] == ["..."] else rank == len(axes)


def _sizes_misfit(name: str, shape: Sequence[int], axes: Sequence[str], sizes: dict[str, tuple[int, str]]) -> str:
    """Bind the names of axes to sizes; return a text about the first that is bound to another size."""
    for axis, (size, term) in enumerate(zip(shape, axes, strict=False)):
        if term in ("...", "?"):
            continue
        match = _TERM.fullmatch(term)
        assert match is not None, term
        factor, symbol = int(match[1] or 1), match[2]
        if not symbol:
            if size != factor:
                return f"axis {axis} of input {name} is {size}: expected {factor}"
        elif symbol in sizes:
            value, where = sizes[symbol]
            if size != factor * value:
                meant = f"{term}, and {symbol} is {value} by {where}"
                return f"axis {axis} of input {name} is {size}: expected {factor * value}, since it is {meant}"
        elif size % factor:
            return f"axis {axis} of input {name} is {size}: expected a multiple of {factor}"
        else:
            sizes[symbol] = size // factor, f"input {name}"
    return ""
