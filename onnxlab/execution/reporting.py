"""Errors of a run, for people: which node, which operator, on what, and what was broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import LimitError, RunError, RunStopped, UnsupportedOperatorError
from onnxlab.execution.program import Instruction
from onnxlab.execution.provider import Step

_NUMPY_REFUSES = re.compile(r"Unable to allocate (.+?) for an array with shape (\(.*?\))")


# What NumPy says in its own words, as the rule that was broken.
_REWORDED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(r"operands could not be broadcast together with (?:remapped )?shapes (.+)"),
        lambda found: f"{_shapes(found[1])} do not broadcast: along each axis sizes must be equal or 1",
    ),
    (
        re.compile(r"shape mismatch: objects cannot be broadcast.* shape (\(.*?\)) and .* shape (\(.*?\))"),
        lambda found: f"shapes {found[1]} and {found[2]} do not broadcast: along each axis sizes must be equal or 1",
    ),
    (
        re.compile(r"matmul: .*\(size (\d+) is different from (\d+)\)"),
        lambda found: f"the inner sizes {found[2]} and {found[1]} of a matrix product differ",
    ),
    (
        re.compile(r"not enough values to unpack \(expected (?:at least )?(\d+), got (\d+)\)"),
        lambda found: f"an input has {found[2]} axes where {found[1]} are expected",
    ),
    (
        re.compile(r"too many values to unpack \(expected (\d+)\)"),
        lambda found: f"an input has more than the {found[1]} axes that are expected",
    ),
)


def _shapes(text: str) -> str:
    """'(2,3) (4,5) (2,3)' as 'shapes (2,3) and (4,5)': the last of three is where the result was to go."""
    shapes = list(dict.fromkeys(re.findall(r"\([^)]*\)", text)))
    return f"shapes {', '.join(shapes[:-1])} and {shapes[-1]}" if len(shapes) > 1 else f"shape {text.strip()}"


def describe(value: Any) -> str:
    """'float32[2,3]', 'sequence of 4', 'map of 10', 'none': what kind of thing a value is."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return f"map of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"sequence of {len(value)}"
    array = np.asarray(value)
    try:
        name = dtypes.name(dtypes.from_numpy(array.dtype))
    except ValueError:
        name = str(array.dtype)
    return f"{name}[{','.join(map(str, array.shape))}]"


def failure(instruction: Instruction | None, frame: list[Any], error: Exception) -> RunError:
    """The error to raise for what a node's call raised: node, operator, inputs, and the rule broken.

    An error of a node in a body or function keeps that node; the nodes around it are added behind it.
    """
    if instruction is None:
        return error if isinstance(error, RunError) else RunError(str(error))
    step = instruction.step
    if isinstance(error, RunError) and error.node is not None:
        return type(error)(f"{error}; inside {_node(step)}", error.node)
    text = _rule(error)
    if isinstance(error, RunStopped):
        return RunStopped(f"{text} before {_node(step)}", step.label)
    kind = type(error) if isinstance(error, RunError) else RunError
    if isinstance(error, MemoryError):
        kind = LimitError
    if isinstance(error, NotImplementedError):
        kind = UnsupportedOperatorError
    return kind(f"{_node(step)}: {text}{_inputs(instruction, frame)}", step.label)


def _node(step: Step) -> str:
    return step.op if step.label == step.op else f"{step.label} ({step.op})"


def _rule(error: Exception) -> str:
    """What went wrong, in a sentence; Python's own terse errors get their kind in front."""
    text = str(error).strip().rstrip(".")
    for pattern, reworded in _REWORDED:
        if (match := pattern.search(text)) is not None:
            return reworded(match)
    if isinstance(error, MemoryError) and (found := _NUMPY_REFUSES.search(text)):
        return f"an array of shape {found[2]} needs {found[1]}, which cannot be allocated"
    if isinstance(error, RecursionError):
        return "bodies or functions are nested too deeply, or a function calls itself"
    if not text or isinstance(error, (KeyError, AttributeError, AssertionError, TypeError)):
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text


def _inputs(instruction: Instruction, frame: list[Any]) -> str:
    """'; inputs: X float32[2,3], W float32[4,5]', from the values that the frame still holds."""
    names = instruction.step.inputs
    if not names:
        return ""
    taken = instruction.take(frame)
    values = (taken,) if instruction.arity == 1 else taken
    shown = [f"{name} {describe(value)}" for name, value in zip(names, values, strict=True) if name]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"; inputs: {', '.join(shown[:8])}{more}"
