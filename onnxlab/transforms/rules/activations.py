"""Rules of activations: what is written out becomes the operator, where the model's opset or com.microsoft has it."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules.rule import Rule

_ERF: Final = ("Add(Erf(Div(x, 1.4142135)), 1)", "Add(Erf(Mul(x, 0.70710677)), 1)")
_INNER: Final = (
    "Add(x, Mul(0.044715, Pow(x, 3)))", "Add(x, Mul(0.044715, Mul(x, Mul(x, x))))",
    "Mul(x, Add(1, Mul(0.044715, Mul(x, x))))", "Add(x, Mul(Mul(Mul(0.044715, x), x), x))",
)  # fmt: skip
_TANH: Final = tuple(f"Add(Tanh(Mul({inner}, 0.7978846)), 1)" for inner in _INNER)


def _gelu(curves: tuple[str, ...]) -> str:
    ways = [
        way.replace("#", curve)
        for curve in curves
        for way in ("Mul(Mul(x, #), 0.5)", "Mul(Mul(x, 0.5), #)", "Mul(x, Mul(#, 0.5))")
    ]
    return " or ".join(ways)


def _factor(match: Match) -> "Mapping[str, Any] | str":
    array = match.array("a")
    if array is None or array.size != 1:
        return "a is no single number"
    return {"alpha": float(array.reshape(()).astype(np.float64))}


def _limits(match: Match) -> "Mapping[str, Any] | str":
    """The limits of a Clip as scalars."""
    limits = {}
    for name in ("low", "high"):
        array = match.array(name)
        if array is not None and array.size != 1:
            return f"{name} is no single number"
        if array is not None:
            limits[name + "est"] = array.reshape(())
    if len(limits) == 2 and limits["lowest"] > limits["highest"]:
        return "the lower limit is above the upper one"
    return limits


_CLIP_SIX: Final = "Clip(Add(x, 3), 0, 6)"

RULES: Final = (
    Rule(
        "clip_of_min_max",
        "Min(Max(x:float, low:const), high:const) or Max(Min(x:float, high:const), low:const)"
        " => Clip(x, lowest, highest)",
        "Fuse Min and Max with constants into Clip.",
        compute=_limits,
        level="extended",
    ),
    Rule(
        "hard_sigmoid",
        f"Div({_CLIP_SIX}, 6) or Mul({_CLIP_SIX}, 0.16666667) => HardSigmoid(x, alpha=0.16666667, beta=0.5)",
        "Fuse a Clip from 0 to 6 divided by 6 into HardSigmoid.",
        level="extended",
    ),
    Rule(
        "hard_swish",
        f"Mul(x, HardSigmoid(x, alpha=0.16666667, beta=0.5)) or Div(Mul(x, {_CLIP_SIX}), 6)"
        f" or Mul(Mul(x, {_CLIP_SIX}), 0.16666667) or Mul(x, Div({_CLIP_SIX}, 6)) => HardSwish(x)",
        "Fuse x · HardSigmoid(x) into HardSwish.",
        level="extended",
    ),
    Rule("mish", "Mul(x, Tanh(Softplus(x))) => Mish(x)", "Fuse x · Tanh(Softplus(x)) into Mish.",
         level="extended"),
    Rule("swish", "Mul(x, Sigmoid(x)) => Swish(x, alpha=1.0)", "Fuse x · Sigmoid(x) into Swish.",
         level="extended"),
    Rule("scaled_swish", "Mul(x, Sigmoid(Mul(x, a:const))) => Swish(x, alpha=alpha)",
         "Fuse x · Sigmoid(a·x) into Swish.", compute=_factor, level="extended"),
    Rule("gelu", f"{_gelu(_ERF)} => Gelu(x)",
         "Fuse the nodes of a Gelu computed with Erf into Gelu.", level="extended"),
    Rule("gelu_tanh", f'{_gelu(_TANH)} => Gelu(x, approximate="tanh")',
         "Fuse the nodes of a Gelu computed with Tanh into Gelu.", level="extended"),
    Rule("gelu_microsoft", f"{_gelu(_ERF)} => com.microsoft::Gelu(x)",
         "Fuse the nodes of a Gelu computed with Erf into the Gelu of com.microsoft.", level="extended"),
    Rule("fast_gelu_microsoft", f"{_gelu(_TANH)} => com.microsoft::FastGelu(x)",
         "Fuse the nodes of a Gelu computed with Tanh into FastGelu.", level="extended"),
    Rule("quick_gelu_microsoft",
         "Mul(x, Sigmoid(Mul(x, a:const))) => com.microsoft::QuickGelu(x, alpha=alpha)",
         "Fuse x · Sigmoid(a·x) into QuickGelu.", compute=_factor, level="extended"),
    Rule("silu_microsoft", "Mul(x, Sigmoid(x)) => com.microsoft::QuickGelu(x, alpha=1.0)",
         "Fuse x · Sigmoid(x) into QuickGelu.", level="extended"),
    Rule(
        "bias_gelu_microsoft",
        "com.microsoft::Gelu(Add(x:[..., n], b:const [n])) => com.microsoft::BiasGelu(x, b)",
        "Fuse the Add of a bias before a Gelu into BiasGelu.",
        level="extended",
    ),
)  # fmt: skip
