"""Rules of attention that is written out: products, a scale, a mask, a Softmax."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from onnxlab.transforms.patterns.matcher import Match
from onnxlab.transforms.rules.rule import Rule

_PRODUCT: Final = "MatMul(q:float [n, h, s, d], Transpose(k:float [n, h, t, d], perm=[0, 1, 3, 2]))"
_SCORES: Final = (f"Mul({_PRODUCT}, c:const)", f"Div({_PRODUCT}, divisor:const)", _PRODUCT)
_V: Final = "v:float [n, h, t, e]"


def _scale(match: Match) -> "Mapping[str, Any] | str":
    """The factor of the scores."""
    for name in ("c", "divisor"):
        array = match.array(name)
        if array is not None and array.size != 1:
            return f"{name} is no single number"
        if array is not None:
            number = float(array.reshape(()).astype(np.float64))
            return {"scale": number if name == "c" else 1.0 / number}
    return {"scale": 1.0}


def _mask_fits(match: Match) -> bool:
    """Whether what is added to the scores has four dims, or fewer, and does not make them larger."""
    mask, query, key = match.shape("m"), match.shape("q"), match.shape("k")
    if mask is None or query is None or key is None or len(mask) != 4:
        return False
    scores = (*query[:3], key[2])
    return all(dim in (1, whole) for dim, whole in zip(mask, scores, strict=True)) and mask[-1] == scores[-1]


RULES: Final = (
    Rule(
        "attention_mask",
        " or ".join(f"MatMul(Softmax(Add({scores}, m:float), axis=-1), {_V})" for scores in _SCORES)
        + " or "
        + " or ".join(f"MatMul(Softmax(Add({scores}, m:float), axis=3), {_V})" for scores in _SCORES)
        + " => Attention(q, k, v, m, scale=scale)",
        "Attention with a mask that is written out is one operator.",
        {"m is no mask of the scores": _mask_fits},
        _scale,
        "extended",
    ),
    Rule(
        "attention",
        " or ".join(f"MatMul(Softmax({scores}, axis=-1), {_V})" for scores in _SCORES)
        + " or "
        + " or ".join(f"MatMul(Softmax({scores}, axis=3), {_V})" for scores in _SCORES)
        + " => Attention(q, k, v, scale=scale)",
        "Attention that is written out is one operator.",
        {},
        _scale,
        "extended",
    ),
)
