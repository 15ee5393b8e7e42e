"""Rules of layers that are linear: what follows a convolution or product and is linear too goes into its weights."""

from typing import Final

import numpy as np

from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rewriting import Array
from onnxlab.transforms.rules.rule import Rule


def _channels(match: Match) -> int:
    weights = match.array("w")
    return 0 if weights is None else len(weights)


def _per_channel(match: Match, name: str) -> Array | None:
    """A constant with one number for each output channel, as [channels]; None where it has another shape."""
    array = match.array(name)
    weights = match.array("w")
    if array is None or weights is None or array.dtype != weights.dtype:
        return None
    if array.size == 1 and array.ndim <= weights.ndim:
        return np.broadcast_to(array.reshape(()), (len(weights),))
    shape = (1,) * (weights.ndim - array.ndim) + array.shape
    if len(shape) != weights.ndim or shape[1] != len(weights) or array.size != len(weights):
        return None
    return array.reshape(-1)


def _read_once(match: Match) -> bool:
    weights = match.values["w"]
    return weights is not None and len(weights.uses) == 1 and not weights.formal_outputs


def _bound(match: Match, name: str) -> Array:
    """The elements of a constant that the pattern binds."""
    array = match.array(name)
    assert array is not None, "the pattern asks for a constant"
    return array


def _scaled(match: Match, scale: Array, shift: Array) -> dict[str, Array]:
    """Weights and bias of a convolution whose result is multiplied and added to, computed in double precision."""
    weights, bias = _bound(match, "w"), match.array("b")
    wide = weights.astype(np.float64) * scale.astype(np.float64).reshape(-1, *[1] * (weights.ndim - 1))
    start = 0.0 if bias is None else bias.astype(np.float64) * scale.astype(np.float64)
    return {"w2": wide.astype(weights.dtype), "b2": (start + shift.astype(np.float64)).astype(weights.dtype)}


def _normalized(match: Match) -> dict[str, Array]:
    scale, shift, mean, var = (_bound(match, name).astype(np.float64) for name in ("scale", "shift", "mean", "var"))
    factor = scale / np.sqrt(var + match.attribute(match.root, "epsilon", 1e-5))
    return _scaled(match, factor, shift - mean * factor)


def _multiplied(match: Match) -> dict[str, Array]:
    factor = _per_channel(match, "c")
    assert factor is not None, "a condition asks for it"
    return _scaled(match, factor, np.zeros(len(factor)))


def _added(match: Match) -> dict[str, Array]:
    weights, bias, shift = _bound(match, "w"), match.array("b"), _per_channel(match, "c")
    assert shift is not None, "a condition asks for it"
    start = 0.0 if bias is None else bias.astype(np.float64)
    return {"b2": (start + shift.astype(np.float64)).astype(weights.dtype)}


def _columns(match: Match, name: str) -> Array | None:
    """A constant with one number for each column of a product [M, N], as [N]; None where it has another shape."""
    weights, array = match.array("w"), match.array(name)
    if weights is None or array is None or weights.ndim != 2 or array.dtype != weights.dtype:
        return None
    columns = weights.shape[0] if match.attributes.get("t") else weights.shape[1]
    if array.size == 1 and array.ndim <= 1:
        return np.broadcast_to(array.reshape(()), (columns,))
    last = bool(array.ndim) and array.shape[-1] == columns and array.size == columns
    return array.reshape(-1) if last and array.ndim <= 2 else None


def _scaled_columns(match: Match, scale: Array, shift: Array) -> dict[str, Array]:
    """Weights and bias of a Gemm whose columns are multiplied and added to, computed in double precision."""
    weights, bias = _bound(match, "w"), match.array("b") if "b" in match.values else None
    wide = scale.astype(np.float64)
    scaled = weights.astype(np.float64) * (wide.reshape(-1, 1) if match.attributes.get("t") else wide)
    start = np.zeros(len(wide)) if bias is None else np.broadcast_to(bias.astype(np.float64), (1, len(wide)))[0] * wide
    return {"w2": scaled.astype(weights.dtype), "b2": (start + shift.astype(np.float64)).astype(weights.dtype)}


def _normalized_columns(match: Match) -> dict[str, Array]:
    scale, shift, mean, var = (_bound(match, name).astype(np.float64) for name in ("scale", "shift", "mean", "var"))
    factor = scale / np.sqrt(var + match.attribute(match.root, "epsilon", 1e-5))
    return _scaled_columns(match, factor, shift - mean * factor)


def _multiplied_columns(match: Match) -> dict[str, Array]:
    factor = _columns(match, "c")
    assert factor is not None, "a condition asks for it"
    return _scaled_columns(match, factor, np.zeros(len(factor)))


def _is_row(match: Match) -> bool:
    """Whether the bias of a Gemm goes along its rows."""
    return match.array("b") is None or _columns(match, "b") is not None


def _is_bias(match: Match) -> bool:
    """Whether what is added goes along the rows of a product [M, N]: a number, [N] or [1, N]."""
    weights, bias = match.array("w"), match.array("c")
    if weights is None or bias is None or weights.ndim != 2 or bias.dtype != weights.dtype or bias.ndim > 2:
        return False
    columns = weights.shape[1] if not match.attribute(match.nodes[-1], "transB", 0) else weights.shape[0]
    return bias.size == 1 or (bias.shape[-1] == columns and bias.size == columns)


_FLOATS: Final = {"c has not one number for each channel": lambda match: _per_channel(match, "c") is not None}

_ROWS: Final = {"c has not one number for each column": lambda match: _columns(match, "c") is not None}

RULES: Final = (
    Rule(
        "conv_batch_normalization",
        "BatchNormalization(Conv(x, w:const, b:const?), scale:const, shift:const, mean:const, var:const)"
        " => Conv(x, w2, b2)",
        "Fold a BatchNormalization into the weights of the Conv before it.",
        {
            "the BatchNormalization trains": lambda match: not match.attribute(match.root, "training_mode", 0),
            "BatchNormalization has not one number for each channel": lambda match: all(
                _bound(match, name).shape == (_channels(match),) for name in ("scale", "shift", "mean", "var")
            ),
            "the weights are read by another node too": _read_once,
        },
        _normalized,
    ),
    Rule(
        "conv_mul",
        "Mul(Conv(x, w:const, b:const?), c:const) => Conv(x, w2, b2)",
        "Fold a factor per channel into the weights of the Conv before it.",
        {**_FLOATS, "the weights are read by another node too": _read_once},
        _multiplied,
    ),
    Rule(
        "conv_add",
        "Add(Conv(x, w:const, b:const?), c:const) => Conv(x, w, b2)",
        "Fold a constant added per channel into the bias of the Conv before it.",
        _FLOATS,
        _added,
    ),
    Rule(
        "matmul_add",
        "Add(MatMul(a, w:const), c:const) => Gemm(a, w, c)",
        "Fuse MatMul and the Add of a bias into Gemm.",
        {
            "a is no matrix": lambda match: match.rank("a") == 2,
            "c is no bias of the rows": _is_bias,
            "it is no product of floats": lambda match: _bound(match, "w").dtype.kind == "f",
        },
    ),
    Rule(
        "gemm_add",
        "Add(Gemm(a, w:const), c:const) => Gemm(a, w, c)",
        "Fold a constant added to a Gemm into its bias.",
        {
            "c is no bias of the rows": _is_bias,
            "beta is not 1": lambda match: match.attribute(match.nodes[-1], "beta", 1.0) == 1.0,
        },
    ),
    Rule(
        "gemm_batch_normalization",
        "BatchNormalization(Gemm(x, w:const, b:const?, transB=t, alpha=1.0, beta=1.0), scale:const, shift:const,"
        " mean:const, var:const, training_mode=0) => Gemm(x, w2, b2)",
        "Fold a BatchNormalization into the weights of the Gemm before it.",
        {
            "BatchNormalization has not one number for each column": lambda match: all(
                _columns(match, name) is not None for name in ("scale", "shift", "mean", "var")
            ),
            "the bias does not go along the rows": _is_row,
            "the weights are read by another node too": _read_once,
        },
        _normalized_columns,
    ),
    Rule(
        "gemm_mul",
        "Mul(Gemm(x, w:const, b:const?, transB=t, alpha=1.0, beta=1.0), c:const) => Gemm(x, w2, b2)",
        "Fold a factor per column into the weights of the Gemm before it.",
        {
            **_ROWS,
            "the bias does not go along the rows": _is_row,
            "the weights are read by another node too": _read_once,
        },
        _multiplied_columns,
    ),
    Rule(
        "matmul_mul",
        "Mul(MatMul(x:[..., ?, k], w:const [k, n]), c:const) => MatMul(x, w2)",
        "Fold a factor per column into the weights of the MatMul before it.",
        {**_ROWS, "the weights are read by another node too": _read_once},
        _multiplied_columns,
        "extended",
    ),
)
