"""Families of operators, for color: what people look for in a picture."""

from onnxlab.ops import find_traits
from onnxlab.ops.base import traits
from onnxlab.ops.base.traits import UNKNOWN

CATEGORIES = (*traits.CATEGORIES, "function")
"""Every name that `category` returns."""


def category(domain: str, op_type: str, is_function: bool = False) -> str:
    """Return the family of an operator, as its traits say.

    That is "function" for a call of the model's own. An operator of a domain that is not known looks like the one of
    ai.onnx that has its name, and is "custom" where there is none.
    """
    if is_function:
        return "function"
    row = find_traits(domain, op_type)
    return (find_traits("", op_type) if row is UNKNOWN else row).category
