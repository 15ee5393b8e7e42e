"""Rules that undo what others do: operators written out with older ones. They are applied only where they are named."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from onnxlab import dtypes
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules.rule import Rule

_ERF: Final = "Mul(Mul(x, 0.5), Add(Erf(Mul(x, 0.7071067811865476)), 1))"
_TANH: Final = "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(0.044715, Mul(x, Mul(x, x)))), 0.7978845608028654)), 1))"


def _axes(match: Match) -> "Mapping[str, Any] | str":
    """The axes of a normalization, from its first to the last."""
    rank, axis = match.rank("x"), match.attributes["axis"]
    if axis >= 0 and rank is None:
        return "the rank of x is not known"
    first = axis - (rank or 0) if axis >= 0 else axis

    axes = list(range(first, 0))
    return {"axes": np.array(axes, np.int64), "list": axes, "e": np.array(match.attributes["epsilon"], np.float32)}


def _has_bias(match: Match) -> "Mapping[str, Any] | str":
    return {} if match.values["c"] is not None else "it has no bias"


def _factor(match: Match) -> "Mapping[str, Any] | str":
    """The factor of the scores of Attention."""
    shape, scale = match.shape("q"), match.attributes["scale"]
    if scale is None:
        size = shape[-1] if shape is not None else None
        if not isinstance(size, int):
            return "the size of a head is not known"
        scale = size**-0.5
    return {"c": np.array(scale).astype(dtypes.to_numpy(match.elem_type("q")))}


_PRODUCT: Final = "Mul(MatMul(q, Transpose(k, perm=[0, 1, 3, 2])), c)"


def _layer(mean: str, tail: str) -> str:
    centered = f"d := Sub(x, {mean.format('x')})"
    return tail.format(f"Div({centered}, Sqrt(Add({mean.format('Mul(d, d)')}, e)))")


_BY_INPUT: Final = "ReduceMean({}, axes, keepdims=1)"
_BY_ATTRIBUTE: Final = "ReduceMean({}, axes=list, keepdims=1)"
_NORMALIZED: Final = "LayerNormalization(x:float32, g{}, axis=axis, epsilon=epsilon)"

RULES: Final = tuple(
    Rule(name, text, doc, {}, compute, "decompose")
    for name, text, doc, compute in (
        ("decompose_gelu", f'Gelu(x, approximate="none") => {_ERF}', "Decompose Gelu with Erf.", None),
        ("decompose_gelu_tanh", f'Gelu(x, approximate="tanh") => {_TANH}', "Decompose Gelu with Tanh.", None),
        ("decompose_gelu_microsoft", f"com.microsoft::Gelu(x) => {_ERF}", "Decompose Gelu with Erf.", None),
        ("decompose_fast_gelu", f"com.microsoft::FastGelu(x) => {_TANH}", "Decompose FastGelu with Tanh.", None),
        (
            "decompose_hard_swish",
            "HardSwish(x) => Mul(x, HardSigmoid(x, alpha=0.16666666666666666, beta=0.5))",
            "Decompose HardSwish into Mul and HardSigmoid.",
            None,
        ),
        ("decompose_mish", "Mish(x) => Mul(x, Tanh(Softplus(x)))", "Decompose Mish into Mul, Tanh and Softplus.", None),
        ("decompose_swish", "Swish(x, alpha=1.0) => Mul(x, Sigmoid(x))", "Decompose Swish into Mul and Sigmoid.", None),
        *(
            (
                f"decompose_layer_normalization{name}",
                f"{_NORMALIZED.format(bias)} => {_layer(mean, tail)}",
                "Decompose LayerNormalization with ReduceMean.",
                _axes,
            )
            for mean, of in ((_BY_INPUT, ""), (_BY_ATTRIBUTE, "_attribute"))
            for bias, tail, name in (
                (", b", "Add(Mul({}, g), b)", f"_bias{of}"), ("", "Mul({}, g)", of),
            )
        ),
        (
            "decompose_skip_layer_normalization",
            "com.microsoft::SkipLayerNormalization(x, y, g, b, epsilon=epsilon)"
            " => LayerNormalization(Add(x, y), g, b, axis=-1, epsilon=epsilon)",
            "Decompose SkipLayerNormalization into Add and LayerNormalization.",
            None,
        ),
        (
            "decompose_rms_normalization",
            "RMSNormalization(x:float32, g, axis=axis, epsilon=epsilon)"
            f" => Mul(Div(x, Sqrt(Add({_BY_INPUT.format('Mul(x, x)')}, e))), g)",
            "Decompose RMSNormalization with ReduceMean.",
            _axes,
        ),
        *(
            (
                f"decompose_attention{name}",
                f"Attention(q:float [n, h, s, d], k:float [n, h, t, d], v:float [n, h, t, e]{mask}, is_causal=0,"
                " softcap=0.0, qk_matmul_output_mode=0, scale=scale, softmax_precision=none)"
                f" => MatMul(Softmax({scores}, axis=-1), v)",
                "Decompose Attention into MatMul and Softmax.",
                _factor,
            )
            for name, mask, scores in (("", "", _PRODUCT), ("_mask", ", m:float [..., t]", f"Add({_PRODUCT}, m)"))
        ),
        (
            "decompose_gemm",
            "Gemm(a, w, c?, alpha=1.0, beta=1.0, transA=0, transB=0) => Add(MatMul(a, w), c)",
            "Decompose Gemm into MatMul and Add.",
            _has_bias,
        ),
    )
)  # fmt: skip
