"""Requests of runs: what is fed, asked for and kept, checked against the graph as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from onnxlab.execution.base.value_store import State
from onnxlab.execution.base.watching import Watched
from onnxlab.execution.planning.compiler import Compiler

Keep: TypeAlias = 'bool | Literal["border"]'
"""What a run keeps: every value, none, or those at the borders of parts."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of the main graph.

    Attributes:
        compiler, state: of the model and of what is kept, at the same moment.
        unchecked, arrays: the feeds as they were given, and as they were checked.
        asked, names: the outputs as they were asked for, None for the graph's, and the values that make them.
        inner: those that are inside of bodies.
        keep: what is kept.
        again: whether the feeds are the inputs of the last run.
        plain: whether a later run of the same kind may do without all of this.
    """

    compiler: Compiler
    state: State
    unchecked: Mapping[str, Any]
    arrays: dict[str, Any]
    asked: Sequence[str] | None
    names: tuple[str, ...]
    inner: Sequence[Watched]
    keep: Keep
    again: bool
    plain: bool

    @property
    def is_of_inputs(self) -> bool:
        """Whether nothing but inputs is fed; otherwise it is a what-if, which changes nothing of what is kept."""
        main = self.compiler.snapshot.main
        return all(name in main.inputs and name not in main.initializers for name in self.unchecked)

    @property
    def is_kept(self) -> bool:
        """Whether the run leaves values behind: what happens in a body is seen only where it runs."""
        return bool(self.keep) and self.is_of_inputs and not self.inner

    @property
    def is_like_others(self) -> bool:
        """Whether a later run of the same key may do without the checks of this one: its feeds went in as they were."""
        same = self.unchecked.keys() == self.arrays.keys()
        same = same and all(self.arrays[name] is array for name, array in self.unchecked.items())
        return self.plain and not self.inner and same

    def picked(self, results: dict[str, Any]) -> dict[str, Any]:
        """The results that were asked for, in that order."""
        return results if self.asked is None else {name: results[name] for name in dict.fromkeys(self.asked)}
