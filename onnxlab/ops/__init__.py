"""Operators: one file per family with NumPy kernels, shape rules and traits, found through the registry.

The files are imported at the first lookup, all of them; `import onnxlab.ops` alone imports none.

Files:
    base/       Foundations of operators: the registry, helpers of kernels and of shape rules.
    glow/       Operators of Glow's own dialect of ONNX, as its serialization without loss writes them.
    microsoft/  Operators of com.microsoft, as ONNX Runtime's optimizer and exporters write them.
    ml/         Operators of ai.onnx.ml.
    nchwc/      Operators of com.microsoft.nchwc: images with channels in blocks, as ONNX Runtime saves them.
    onnx/       Operators of ai.onnx, by family: NumPy kernels and shape rules.
"""

from onnxlab.ops.base.registry import (
    KernelEntry,
    ShapeRule,
    find_kernel,
    find_rule,
    find_traits,
    kernel,
    kernels,
    layer_operators,
    register,
    rule,
    traits_of,
    unregister,
)
from onnxlab.ops.base.traits import OpTraits

__all__ = [
    "KernelEntry",
    "OpTraits",
    "ShapeRule",
    "find_kernel",
    "find_rule",
    "find_traits",
    "kernel",
    "kernels",
    "layer_operators",
    "register",
    "rule",
    "traits_of",
    "unregister",
]
