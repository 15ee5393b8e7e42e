"""The border of a part that a provider from outside compiled: read-only inputs, checked outputs.

The providers of onnxlab declare by `trusted` that they need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onnxlab.errors import OnnxlabError, RunError
from onnxlab.execution.base.provider import CompiledPart, Part, PartitionView, Provider, Step
from onnxlab.shapes import Fact, MapFact, OptionalFact, SequenceFact, TensorFact


def compiled(provider: Provider, part: Part, view: PartitionView) -> CompiledPart | list[Step]:
    """The part as its provider compiles it, its border watched unless the provider is `trusted`.

    Raises:
        OnnxlabError: what the provider returns cannot be called.
    """
    compiled_part = provider.compile(part, view)
    if provider.capabilities.trusted:
        return compiled_part if isinstance(compiled_part, (CompiledPart, list)) else CompiledPart(compiled_part)
    whole = compiled_part if isinstance(compiled_part, CompiledPart) else None
    call: Any = compiled_part if whole is None else whole.call
    first, last = part.nodes[0].label, part.nodes[-1].label
    named = f"the part of {first}" if len(part.nodes) == 1 else f"the part from {first} to {last}"
    if not callable(call):
        raise OnnxlabError(
            f"provider {provider.name!r} compiled {named} to {_described(compiled_part)}; return one callable, or as a "
            "trusted provider a list of Steps"
        )
    bordered = _Bordered(call, f"provider {provider.name!r}: {named}", part, view.fact)
    return CompiledPart(bordered, own_threads=whole is not None and whole.own_threads)


class _Bordered:
    """A compiled part between read-only inputs and checked outputs.

    Args:
        description: name of the part in errors.
        fact: what inference knows of a name.
    """

    def __init__(self, call: Callable[..., Any], description: str, part: Part, fact: Callable[[str], Fact]) -> None:
        self._call, self._what, self._inputs, self._outputs = call, description, part.inputs, part.outputs
        self._facts = {name: fact(name) for name in (*part.inputs, *part.outputs)}

    def __call__(self, context: Any, *arrays: Any) -> tuple[Any, ...]:
        """The outputs; their facts hold where those of the inputs do, which a run may be fed against."""
        result, count = self._call(context, *map(_read_only, arrays)), len(self._outputs)
        results = (result,) if count == 1 and isinstance(result, (np.ndarray, np.generic)) else result
        if not isinstance(results, (list, tuple)):
            raise self._fault(f"returned {_described(result)}", f"a list of {count} arrays", "one for each output")
        if len(results) != count:
            raise self._fault(
                f"returned {len(results)} values", f"{count}", f"one for each of {', '.join(map(repr, self._outputs))}"
            )
        facts: Mapping[str, Fact] = self._facts
        if not all(_fits(array, facts.get(name)) for name, array in zip(self._inputs, arrays, strict=True)):
            facts = {}
        return tuple(map(self._value, self._outputs, results, map(facts.get, self._outputs)))

    def _value(self, name: str, value: Any, fact: Fact | None) -> Any:
        """One output that fits what is known of it."""
        array = np.asarray(value) if isinstance(value, np.generic) else value
        if isinstance(self._facts[name], (OptionalFact, SequenceFact, MapFact)):
            return array
        if not isinstance(array, np.ndarray):
            raise self._fault(f"returned {_described(array)} for {name!r}", "a NumPy array", "np.asarray makes one")
        if array.dtype.kind in "US" or not array.dtype.isnative:
            expected = "an array in the machine's byte order, of objects for strings"
            raise self._fault(f"returned {_described(array)} for {name!r}", expected, "see .astype")
        if fact is not None and not _fits(array, fact):
            raise self._fault(f"returned {_described(array)} for {name!r}", str(fact), "as the model says")
        return array

    def _fault(self, fault: str, expected: str, advice: str) -> RunError:
        return RunError(f"{self._what} {fault}; expected {expected} ({advice})")


def _read_only(value: Any) -> Any:
    """A view that cannot be written through; lists of arrays alike."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    return [*map(_read_only, value)] if isinstance(value, list) else value


def _fits(value: Any, fact: Fact | None) -> bool:
    """Whether an array contradicts nothing that is known of it in numbers."""
    if not isinstance(fact, TensorFact) or not isinstance(value, np.ndarray):
        return True
    dims = value.shape if fact.shape is None else fact.shape
    sized = all(not isinstance(dim, int) or dim == size for dim, size in zip(dims, value.shape, strict=False))
    return sized and len(dims) == value.ndim and (fact.dtype is None or value.dtype == fact.dtype)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return "None" if value is None else f"{type(value).__name__}"
