"""Operators: one file per family with the NumPy kernels and the shape rules, found through the registry.

The files are imported at the first lookup, all of them; `import onnxlab.ops` alone imports none.
"""

from onnxlab.ops.registry import (
    Kernel,
    Rule,
    find_kernel,
    find_rule,
    kernel,
    kernels,
    register,
    rule,
    unregister,
)

__all__ = [
    "Kernel",
    "Rule",
    "find_kernel",
    "find_rule",
    "kernel",
    "kernels",
    "register",
    "rule",
    "unregister",
]
