"""Errors of a run, for people: which node, which operator, on what, and what was broken."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import LimitError, RunError, RunStopped, UnsupportedOperatorError
from onnxlab.execution.program import Instruction
from onnxlab.execution.provider import Step

_NUMPY_REFUSES = re.compile(r"Unable to allocate (.+?) for an array with shape (\(.*?\))")


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
