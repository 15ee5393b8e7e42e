"""Rules of attention that is written out: products, a scale, a mask, a Softmax."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules.rule import Rule

WIDE_HEADS: Final = 32
"""Dims of a head from which on MultiHeadAttention takes ONNX Runtime no longer than the operators that it replaces.
Its time relative to theirs, on one core of an x86-64 processor: 1.0 for 32 dims, 1.1 for 16 and 1.4 for 4."""

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
    """Whether what is added to the scores has four dims that broadcast to theirs, the last one equal."""
    mask, query, key = match.shape("m"), match.shape("q"), match.shape("k")
    if mask is None or query is None or key is None or len(mask) != 4:
        return False
    scores = (*query[:3], key[2])
    return all(dim in (1, whole) for dim, whole in zip(mask, scores, strict=True)) and mask[-1] == scores[-1]


_SPLIT: Final = "Transpose({0}h := Reshape({0}:float [b, {1}, {2}], _), perm=[0, 2, 1, 3])"
_KEYS: Final = (
    "Transpose(kh := Reshape(k:float [b, t, f], _), perm=[0, 2, 3, 1])",
    f"Transpose({_SPLIT.format('k', 't', 'f')}, perm=[0, 1, 3, 2])",
)
_HEADS: Final = tuple(f"MatMul({_SPLIT.format('q', 's', 'f')}, {keys})" for keys in _KEYS)
_HEAD_SCORES: Final = tuple(
    form.format(product) for product in _HEADS for form in ("Mul({}, c:const)", "Div({}, divisor:const)", "{}")
)


def _joined(scores: str) -> str:
    """The pattern of attention that joins the heads again, for a format of the scores."""
    return " or ".join(
        f"Reshape(Transpose(MatMul(Softmax({scores.format(way)}, axis={axis}), {_SPLIT.format('v', 't', 'g')}),"
        " perm=[0, 2, 1, 3]), _)"
        for way in _HEAD_SCORES
        for axis in (-1, 3)
    )


def _heads(match: Match) -> "Mapping[str, Any] | str":
    """The number of heads and the factor of the scores."""
    scale = _scale(match)
    shape = match.shape("qh")
    return scale if isinstance(scale, str) or shape is None else {**scale, "heads": shape[2]}


def _splits_heads(match: Match) -> bool:
    """Whether queries, keys and values are split into heads of known sizes, and the result is joined again."""
    shapes = [match.shape(name) for name in ("q", "k", "v", "qh", "kh", "vh", "result")]
    if any(shape is None for shape in shapes):
        return False
    (q, k, v, qh, kh, vh, result) = (shape for shape in shapes if shape is not None)
    pairs = ((q, qh), (k, kh), (v, vh), (result, (*qh[:3], vh[-1])))
    if any(len(whole) != 3 or len(split) != 4 or not all(isinstance(dim, int) for dim in split[2:])
           for whole, split in pairs):  # fmt: skip
        return False
    same = all(whole[:2] == split[:2] and whole[2] == split[2] * split[3] for whole, split in pairs)
    return same and qh[2] == kh[2] == vh[2]


def _bias_fits(match: Match) -> bool:
    """Whether what is added to the scores is [batch or 1, heads or 1, queries, keys]."""
    mask, queries, keys = match.shape("m"), match.shape("qh"), match.shape("kh")
    if mask is None or queries is None or keys is None or len(mask) != 4:
        return False
    return mask[0] in (1, queries[0]) and mask[1] in (1, queries[2]) and mask[2:] == (queries[1], keys[1])


def _has_wide_heads(match: Match) -> bool:
    """Whether heads are so wide that ONNX Runtime's operator is as quick as the nodes that it replaces."""
    shape = match.shape("qh")
    return shape is not None and isinstance(shape[-1], int) and shape[-1] >= WIDE_HEADS


_SPLITS: Final = {
    "queries, keys and values are not split into heads of known sizes": _splits_heads,
    f"heads have fewer than {WIDE_HEADS} dims, for which ONNX Runtime's operator is slower": _has_wide_heads,
}

RULES: Final = (
    Rule(
        "multi_head_attention_mask_microsoft",
        _joined("Add({}, m:float)")
        + " => com.microsoft::MultiHeadAttention(q, k, v, _, _, m, num_heads=heads, scale=scale)",
        "Fuse the nodes of attention with several heads and a mask into MultiHeadAttention.",
        {**_SPLITS, "m is no bias of the scores": _bias_fits},
        _heads,
        "extended",
    ),
    Rule(
        "multi_head_attention_microsoft",
        _joined("{}") + " => com.microsoft::MultiHeadAttention(q, k, v, num_heads=heads, scale=scale)",
        "Fuse the nodes of attention with several heads into MultiHeadAttention.",
        _SPLITS,
        _heads,
        "extended",
    ),
    Rule(
        "attention_mask",
        " or ".join(f"MatMul(Softmax(Add({scores}, m:float), axis=-1), {_V})" for scores in _SCORES)
        + " or "
        + " or ".join(f"MatMul(Softmax(Add({scores}, m:float), axis=3), {_V})" for scores in _SCORES)
        + " => Attention(q, k, v, m, scale=scale)",
        "Fuse the nodes of attention with a mask into Attention.",
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
        "Fuse the nodes of attention into Attention.",
        {},
        _scale,
        "extended",
    ),
)
