"""Checks of attributes: a node with values that no kernel is for is left to NumPy, which runs or refuses it."""

from __future__ import annotations

from onnxlab import dtypes
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.graph.edit.snapshot import NodeView

_AT_LEAST = {
    "strides": 1, "dilations": 1, "kernel_shape": 1, "group": 1, "pads": 0, "output_padding": 0, "softcap": 0.0,
}  # fmt: skip
"""Least values by attribute, for all operators."""

_BESIDES = frozenset((("Pad", "pads"), ("Imputer", "replaced_value_float")))
"""(operator, attribute) for which these least values, or NaN, have another meaning."""

_FLOATS = (dtypes.FLOAT, dtypes.FLOAT16, dtypes.BFLOAT16, dtypes.DOUBLE)

_ONE_OF = {
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Upsample", "mode"): ("nearest", "linear", "bilinear"),
    ("Attention", "qk_matmul_output_mode"): range(4),
    ("LayerNormalization", "stash_type"): _FLOATS,
    ("RMSNormalization", "stash_type"): _FLOATS,
    ("SimplifiedLayerNormalization", "stash_type"): _FLOATS,
}
"""Permitted values by operator and attribute."""


def unfit(node: NodeView) -> str:
    """The reason why kernels do not support a node's attributes, "" where they do."""
    for name, value in node.attributes.items():
        if name in _AT_LEAST and (node.op_type, name) not in _BESIDES:
            least = _AT_LEAST[name]
            if any(not number >= least for number in (value if isinstance(value, (list, tuple)) else (value,))):
                return f"{name} is {value}, expected {least} at least"
        elif isinstance(value, float) and value != value and (node.op_type, name) not in _BESIDES:
            return f"{name} is not a number"
        elif (allowed := _ONE_OF.get((node.op_type, name))) is not None and value not in allowed:
            return f"{name} is {value!r}"
    return ""


def axis_of(node: NodeView, rank: int, default: int = 0, after: int = 0, name: str = "axis") -> int:
    """The axis of a node, from the front.

    Args:
        rank: rank of the value; with `after`, that many axes beyond the last are valid too.
        name: name of the attribute.

    Raises:
        UnbindableError: there is no such axis.
    """
    axis = int(node.attributes.get(name, default))
    if not -rank <= axis < rank + after:
        raise UnbindableError(f"{name} is {axis}, there are {rank}")
    return axis + rank if axis < 0 else axis
