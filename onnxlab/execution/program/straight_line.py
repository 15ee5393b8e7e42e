"""Steps of a short run as one Python function: a line for each call, values in local variables.

Where kernels take a microsecond, the executor's loop, which looks at each step, its kind and its slots, takes as long
as the kernels. The text of the function holds only the numbers of slots and calls, no name of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base.array_memory import buffers, own
from onnxlab.execution.program.program import Instruction
from onnxlab.execution.program.run_state import SMALL, is_small
from onnxlab.ops.base.registry import innermost

Function = Callable[[Sequence[Any], list[int]], Any]
"""`function(arrays, left)` computes values from the fed arrays; `left` is passed to contexts."""


class Output(NamedTuple):
    """A value that the caller gets by name; `is_fresh`: nothing else that is returned or kept shares its memory."""

    name: str
    slot: int
    is_fresh: bool


class Line(NamedTuple):
    """One step.

    Attributes:
        call: the callable.
        context: `context(captured, left)` makes the first argument of the step's own call, where that takes a context.
            If `call` is another callable, it returns None where the step's own call with a context is needed.
        is_known: whether the results are known to be small arrays, or lists of few items, as many as the step has.
    """

    instruction: Instruction
    call: Callable[..., Any]
    context: Callable[[tuple[Any, ...], list[int]], Any] | None = None
    is_known: bool = False


def straight_line(
    lines: Sequence[Line], feeds: Sequence[int], slots: Sequence[int], template: Sequence[Any],
    outputs: Sequence[Output] | None = None, most: int = SMALL,
) -> Function:  # fmt: skip
    """The function that runs `lines` and returns the values of `slots`; it raises LimitError for values not small.

    Args:
        feeds: slots of the arrays that the function is called with.
        template: values of slots before the run.
        outputs: values that the function returns besides, first, as {name: array that the caller may write to}.
        most: bytes that a small array has at most.
    """
    known: dict[str, Any] = {
        "own": own,
        "buffers": buffers,
        "array": np.ndarray,
        "small": small,
        "check": _check,
        "only": _only,
        "all_of": _all_of,
    }
    variables = {*feeds, *(slot for line in lines for slot in line.instruction.results)}

    def name(slot: int) -> str:
        if slot not in variables:
            known[f"k{slot}"] = template[slot]
        return f"v{slot}" if slot in variables else f"k{slot}"

    text = ["def run(arrays, left):", f"    {_listed(f'v{slot}' for slot in feeds)} = arrays"]
    for number, line in enumerate(lines):
        text += _written(number, line, name, most)
        known |= {f"c{number}": innermost(line.call), f"x{number}": line.context, f"own{number}": line.instruction.call,
                  f"s{number}": line.instruction.step.size}  # fmt: skip
    result = _listed(map(name, slots))
    if outputs is not None:
        known |= {f"n{place}": output.name for place, output in enumerate(outputs)}
        pairs = [f"n{place}: {name(output.slot)}" if output.is_fresh else f"n{place}: own({name(output.slot)}, shown)"
                 for place, output in enumerate(outputs)]  # fmt: skip
        text += [] if all(output.is_fresh for output in outputs) else [
            f"    shown = {{*buffers((*arrays, *{result}, *{_listed(name(o.slot) for o in outputs if o.is_fresh)}))}}"
        ]  # fmt: skip
        result = f"{{{', '.join(pairs)}}}, {result}"
    text.append(f"    return {result}")
    exec(_compiled("\n".join(text)), known)  # the text holds numbers alone, nothing of a model
    function: Function = known.pop("run")  # popped: else the function refers to itself by its globals, a cycle
    return function


@lru_cache(maxsize=256)
def _compiled(text: str) -> CodeType:
    """Code that is the same for programs of the same structure."""
    return compile(text, "<short run>", "exec")


def _listed(names: Iterable[str]) -> str:
    """A tuple of names."""
    listed = [*names]
    return f"({', '.join(listed)},)" if listed else "()"


def _written(number: int, line: Line, name: Callable[[int], str], most: int) -> list[str]:
    """The text of a step."""
    instruction = line.instruction
    arguments = [*map(name, instruction.reads[: instruction.arity])]
    is_asked = instruction.step.size is not None and instruction.quick is None and not line.is_known
    text = [f"    check(s{number}({', '.join(arguments)}))"] if is_asked else []
    inputs, again = ", ".join(arguments), ""
    if line.context is not None:
        captured = _listed(map(name, instruction.reads[instruction.arity :]))
        with_context = f"{', '.join([f'x{number}({captured}, left)', *arguments])}"
        if line.call is instruction.call:
            inputs = with_context
        else:
            again = f"own{number}({with_context})"
    results, of_part = instruction.results, instruction.step.node == 0
    several = len(results) > 1
    value = "results" if several else f"v{results[0]}" if results and results[0] > 0 else "unread"
    text.append(f"    {value} = c{number}({inputs})")
    looked_at = (f"all_of({{}}, {len(results)}, {of_part})" if several else f"only({{}}, {of_part}, {most})").format
    if again:
        text.append(f"    if {value} is None: {value} = {looked_at(again) if line.is_known else again}")
    if line.is_known:
        return [*text, f"    {_listed(f'v{slot}' for slot in results)} = results"] if several else text
    if not several:
        return [*text, f"    if type({value}) is not array or {value}.nbytes > {most}: {value} = {looked_at(value)}"]
    text.append(f"    results = {looked_at(value)}")
    for place, slot in enumerate(results):
        if slot > 0:
            text += [
                f"    v{slot} = results[{place}]",
                f"    if type(v{slot}) is not array or v{slot}.nbytes > {most}: v{slot} = small(v{slot}, {most})",
            ]
    return text


def _check(nbytes: int) -> None:
    if nbytes > SMALL:
        raise LimitError("this is no short run")


def small(value: Any, most: int) -> Any:
    """A value as slots hold it. Raises LimitError where it is not small."""
    if isinstance(value, np.generic):  # NumPy's result for arrays of rank 0
        return np.asarray(value)
    if (type(value) is np.ndarray and value.nbytes > most) or not is_small(value):
        raise LimitError("this is no small value")
    return value


def _only(result: Any, of_part: bool, most: int) -> Any:
    """The only output, out of the result of a step. Raises as `small`."""
    listed = isinstance(result, tuple) or (of_part and isinstance(result, list))
    return small(result[0] if listed else result, most)


def _all_of(results: Any, count: int, of_part: bool) -> Sequence[Any]:
    """Several outputs, out of the result of a step. Raises LimitError where there are fewer."""
    if not (isinstance(results, tuple) or (of_part and isinstance(results, list))) or len(results) < count:
        raise LimitError("outputs are missing")
    return results
