"""The loops of the elementwise machine, written out from the table of its operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd import lanes, memory, vector_math
from onnxlab.execution.numba.machine.object_cache import helper
from onnxlab.execution.numba.machine.vector_operations import EXPRESSIONS, NUMBERS


def source() -> str:
    """The text of `apply(operation, d, a, b, c, count)`: for `count` vectors, d = expression(a, b, c)."""
    lines = ["def apply(operation, d, a, b, c, count):"]
    for number, (_, expression) in enumerate(EXPRESSIONS.items()):
        lines += [f"    {'if' if number == 0 else 'elif'} operation == {number}:"]
        lines += [f"        {name} = splat(F({value!r}))" for name, value in NUMBERS.items() if name in expression]
        lines += ["        for i in range(count):"]
        for name, address in (("x", "a"), ("y", "b"), ("z", "c")):
            if name in expression.replace("exp", "").replace("max", "").replace("axis", ""):
                lines.append(f"            {name} = load({address} + i * STEP)")
        lines.append(f"            store(d + i * STEP, {expression})")
    return "\n".join(lines)


def _make() -> Any:
    known = {name: getattr(module, name) for module in (lanes, memory, vector_math) for name in dir(module)}
    known.update(F=np.float32, STEP=lanes.BYTES, __name__=__name__)
    exec(compile(source(), __file__, "exec"), known)
    return helper(known["apply"])


apply = _make()
