"""Families of operators, for color: what people look for in a picture."""

from onnxlab.ops import find_traits
from onnxlab.ops.base import traits
from onnxlab.ops.base.traits import UNKNOWN

CATEGORIES = (*traits.CATEGORIES, "function")
"""Every name that `category` returns."""


def category(domain: str, op_type: str, is_function: bool = False) -> str:
    """Return the family of an operator, as its traits say.

    A call of one of the model's own functions is of the family "function". An operator of an unknown domain gets the
    family of the ai.onnx operator of the same name, or "custom" where ai.onnx has none.
    """
    if is_function:
        return "function"
    row = find_traits(domain, op_type)
    return (find_traits("", op_type) if row is UNKNOWN else row).category
