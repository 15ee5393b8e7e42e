"""Errors of a run, for people: which node, which operator, on what, and what was broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import LimitError, RunError, RunStopped, UnsupportedOperatorError
from onnxlab.execution.base.provider import Step
from onnxlab.execution.program.program import Instruction

_NUMPY_REFUSES = re.compile(r"Unable to allocate (.+?) for an array with shape (\(.*?\))")

# Number of nodes around a failed one that an error names: a recursive function may be nested a thousand deep.
_LEVELS = 6

Wording: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]

# Messages of NumPy, and the broken rule that stands for each.
_CLEAR: tuple[Wording, ...] = (
    (
        re.compile(r"operands could not be broadcast together with (?:remapped )?shapes (.+)"),
        lambda match: f"{_shapes(match[1])} do not broadcast: along each axis sizes must be equal or 1",
    ),
    (
        re.compile(r"shape mismatch: objects cannot be broadcast.* shape (\(.*?\)) and .* shape (\(.*?\))"),
        lambda match: f"shapes {match[1]} and {match[2]} do not broadcast: along each axis sizes must be equal or 1",
    ),
    (
        re.compile(r"matmul: .*\(size (\d+) is different from (\d+)\)"),
        lambda match: f"the inner sizes {match[2]} and {match[1]} of a matrix product differ",
    ),
)

# The same for messages that are used only where the operator's own rules give no reason.
_VAGUE: tuple[Wording, ...] = (
    (
        re.compile(r"not enough values to unpack \(expected (?:at least )?(\d+), got (\d+)\)"),
        lambda match: f"an input has {match[2]} axes where {match[1]} are expected",
    ),
    (
        re.compile(r"too many values to unpack \(expected (\d+)\)"),
        lambda match: f"an input has more than the {match[1]} axes that are expected",
    ),
    (
        re.compile(r"cannot reshape array of size (\d+) into shape (\(.*?\))"),
        lambda match: f"{match[1]} elements do not fill the shape {match[2].replace('newaxis', '?')}",
    ),
    (
        re.compile(r"all the input array.* along dimension (\d+), .* has size (\d+) and .* has size (\d+)"),
        lambda match: f"what is joined differs along axis {match[1]}: {match[2]} against {match[3]}",
    ),
    (
        re.compile(r"all the input arrays must have same number of dim.* has (\d+) dim.* has (\d+) dim"),
        lambda match: f"what is joined has {match[1]} and {match[2]} axes",
    ),
    (
        re.compile(r"could not broadcast (?:input array|where mask) from shape (\(.*?\)) into shape (\(.*?\))"),
        lambda match: f"shape {match[1]} does not fit into shape {match[2]}",
    ),
    (
        re.compile(r"could not be broadcast together with shapes (.+)"),
        lambda match: f"{_shapes(match[1].replace(') (', '),('))} do not go together",
    ),
    (
        re.compile(r"value array of shape (\(.*?\)) could not be broadcast to indexing result of shape (\(.*?\))"),
        lambda match: f"shape {match[1]} does not fit the {match[2]} places that it goes to",
    ),
    (re.compile(r"negative dimensions are not allowed"), lambda match: "a size comes out below 0"),
    (
        re.compile(r"(?:axis\d*: )?axis (-?\d+) is out of bounds for array of dimension (\d+)"),
        lambda match: f"axis {match[1]} is out of range for rank {match[2]}",
    ),
    (
        re.compile(r"too many indices for array: array is (\d+)-dimensional, but (\d+) were indexed"),
        lambda match: f"an input has {match[1]} axes where at least {match[2]} are expected",
    ),
    (
        re.compile(r"zip\(\) argument \d+ is (?:longer|shorter)|list index out of range"),
        lambda match: "inputs and attributes speak of different numbers of axes",
    ),
    (re.compile(r"tuple index out of range"), lambda match: "an input has fewer axes than are expected"),
    (
        re.compile(r"zero-size array to reduction|of an empty sequence|from an empty axes"),
        lambda match: "an input has no elements where at least one is needed",
    ),
    (
        re.compile(r"only (?:0-dimensional arrays|length-1 arrays|integer scalar arrays) can be converted"),
        lambda match: "an input has several elements where one is expected",
    ),
    (re.compile(r"duplicate value in 'axis'"), lambda match: "axes name one axis twice"),
    (re.compile(r"can only convert an array of size 1"), lambda match: "an input has not the one element expected"),
)
# Errors of Python for inputs that a kernel did not foresee; their messages speak of Python, not of the operator.
_PYTHON_SAYS = (AttributeError, AssertionError, KeyError, TypeError)
_TERSE = re.compile(r"einstein|operand|not supported for|ufunc|same number of dimensions")


def _shapes(text: str) -> str:
    """'(2,3) (4,5) (2,3)' as 'shapes (2,3) and (4,5)': the last of three is the shape of the result."""
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

    An error of a node in a body or function names that node first, then the nodes around it.
    """
    if instruction is None:
        return error if isinstance(error, RunError) else RunError(str(error))
    step = instruction.step
    if isinstance(error, RunError) and error.node is not None:
        is_deep = str(error).count("; inside ") >= _LEVELS
        return error if is_deep else type(error)(f"{error}; inside {_node(step)}", error.node)
    text = _explained(instruction, frame, error) or _rule(error)
    if isinstance(error, RunStopped):
        return RunStopped(f"{text} before {_node(step)}", step.label)
    kind = type(error) if isinstance(error, RunError) else RunError
    if isinstance(error, MemoryError):
        kind = LimitError
    if isinstance(error, NotImplementedError):
        kind = UnsupportedOperatorError
    return kind(f"{_node(step)}: {text}{_inputs(instruction, frame)}", step.label)


def _explained(instruction: Instruction, frame: list[Any], error: Exception) -> str:
    """The rule that the inputs break, where the error does not name it in the operator's words; "" where it does."""
    explain = instruction.step.explain
    if explain is None or isinstance(error, (RunError, MemoryError, NotImplementedError, RecursionError)):
        return ""
    text = str(error)
    clear = any(pattern.search(text) for pattern, _ in _CLEAR)
    terse = isinstance(error, _PYTHON_SAYS) or _TERSE.search(text) or any(row[0].search(text) for row in _VAGUE)
    return explain(_values(instruction, frame), fully=not clear) if clear or terse else ""


def _values(instruction: Instruction, frame: list[Any]) -> tuple[Any, ...]:
    """The values of a step's inputs that the frame still holds."""
    arguments = instruction.take(frame)
    values = (arguments,) if instruction.arity == 1 else arguments
    return values if instruction.step.shown is None else instruction.step.shown(values)


def _node(step: Step) -> str:
    return step.op if step.label == step.op else f"{step.label} ({step.op})"


def _rule(error: Exception) -> str:
    """The fault in a sentence; Python's own terse errors get their kind in front."""
    text = str(error).strip().rstrip(".")
    for pattern, reworded in (*_CLEAR, *_VAGUE):
        if (match := pattern.search(text)) is not None:
            return reworded(match)
    if isinstance(error, MemoryError) and (refusal := _NUMPY_REFUSES.search(text)):
        return f"an array of shape {refusal[2]} needs {refusal[1]}, which cannot be allocated"
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
    values = _values(instruction, frame)
    shown = [f"{name} {describe(value)}" for name, value in zip(names, values, strict=True) if name]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"; inputs: {', '.join(shown[:8])}{more}"
