"""What operators say of the shapes of their inputs, as text: to explain a failure, never asked before one.

A signature names the axes of each input: "N C ...|C|C" means that the first has two axes or more, the others one each,
as long as the first one's second. "4H" is four times H, "1" is one, "?" any size, "" any shape; "a/b" are two ways.
Inputs that are absent, or no arrays, are left out. Source: the operators' pages at onnx.ai.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

_ATTENTION: Final = "B Q L D/B L ?|B K S D/B S ?|B K S V/B S ?|?/? ?/? ? ?/? ? ? ?|B K P D|B K P V|B"

SIGNATURES: Final[Mapping[str, str]] = {
    "Attention": _ATTENTION,
    "FlexAttention": "B Q L D|B K S D|B K S V",
    "AffineGrid": "N 2 3/N 3 4|4/5",
    "BatchNormalization": "N C ...|C|C|C|C",
    "CausalConvWithState": "B C L|C 1 K|C|B C P",
    "Col2Im": "N ? L|D|D",
    "Conv": "N ? ...|M ? ...|M",
    "ConvInteger": "N ? ...|M ? ...",
    "ConvTranspose": "N C ...|C ? ...|?",
    "CumProd": "...|/1",
    "DeformConv": "N C H W|M ? kH kW|N ? oH oW|M|N ? oH oW",
    "GridSample": "N C ...|N ...",
    "GroupNormalization": "N C ...|?|?",
    "GRU": "T B I|D 3H I|D 3H H|D 6H|B|D B H",
    "InstanceNormalization": "N C ...|C|C",
    "LSTM": "T B I|D 4H I|D 4H H|D 8H|B|D B H|D B H|D 3H",
    "RNN": "T B I|D H I|D H H|D 2H|B|D B H",
    "MaxRoiPool": "N C H W|R 5",
    "NegativeLogLikelihoodLoss": "N C ...|N ...|C",
    "NonMaxSuppression": "B S 4|B C S",
    "ReverseSequence": "? ? ...|?",
    "RoiAlign": "N C H W|R 4|R",
    "RotaryEmbedding": "B ? ? ?/B L ?|M d/B L d|M d/B L d|B L",
    "SoftmaxCrossEntropyLoss": "N C ...|N ...|C",
    "SpaceToDepth": "N C H W",
    "DepthToSpace": "N C H W",
    "STFT": "B T/B T ?|/1|W|/1",
    "TensorScatter": "B ...|B ...|B",
}

_TERM: Final = re.compile(r"(\d*)(\w*)")


def misfit(op_type: str, names: Sequence[str], arrays: Sequence[Any]) -> str:
    """What does not fit the operator's signature, "" where all does or there is none.

    Args:
        names: what the operator calls its inputs, by position.
        arrays: what it was given; None for an absent one.
    """
    sizes: dict[str, tuple[int, str]] = {}
    for name, array, wanted in zip(names, arrays, SIGNATURES.get(op_type, "").split("|"), strict=False):
        if not isinstance(array, np.ndarray) or wanted == "":
            continue
        ways = wanted.split("/")
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
    """Bind the names of axes to sizes, and tell the first that is bound to another one."""
    for axis, (size, term) in enumerate(zip(shape, axes, strict=False)):
        if term in ("...", "?"):
            continue
        found = _TERM.fullmatch(term)
        assert found is not None, term
        factor, symbol = int(found[1] or 1), found[2]
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
