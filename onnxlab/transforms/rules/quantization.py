"""Rules of QuantizeLinear and DequantizeLinear: pairs that undo each other, and what only moves numbers between."""

from typing import Final

from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules.rule import Rule


def _same_type(match: Match) -> bool:
    return bool(match.elem_type("x")) and match.elem_type("x") == match.elem_type("result")


def _one_scale(match: Match) -> bool:
    scale = match.shape("s")
    return scale is not None and (not scale or scale == (1,))


_TYPES: Final = {"what comes out has another type": _same_type}
_ONE: Final = {**_TYPES, "there is more than one scale": _one_scale}

RULES: Final = (
    Rule(
        "quantize_of_dequantize",
        "QuantizeLinear(DequantizeLinear(x, s, z?), s, z?) => x",
        "Remove a DequantizeLinear followed by the same QuantizeLinear.",
        _ONE,
    ),
    *(
        Rule(
            f"quantized_{op_type.lower()}",
            f"QuantizeLinear({op_type}(DequantizeLinear(x, s, z?), *rest), s, z?) => {op_type}(x, *rest)",
            f"Apply {op_type} between DequantizeLinear and QuantizeLinear to the quantized elements.",
            _ONE,
            level="extended",
        )
        for op_type in ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
    ),
)
