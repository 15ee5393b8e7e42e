"""The two sides of a comparison: models that are run, and recorded values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from onnxlab.errors import FeedError, LoadError
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.program.run_observers import Take
from onnxlab.execution.run.runner import Runner
from onnxlab.formats.arrays import read_arrays
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.limits import Limits


class Side(Protocol):
    """A source of values by name."""

    def values(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The values of these names for some inputs; names without a value are left out."""
        ...


@contextmanager
def whose(model: str) -> Iterator[None]:
    """Say in the message of inputs that do not fit which model they do not fit; "" says nothing."""
    try:
        yield
    except FeedError as error:
        raise FeedError(f"{model} does not take these inputs: {error}" if model else str(error)) from error


class RunSide:
    """A model that is run.

    Attributes:
        runs: how often it was run.
    """

    def __init__(
        self,
        graph: ModelGraph,
        fact: Callable[[int], Any],
        providers: Sequence[str | Provider] | None = None,
        limits: Limits | None = None,
        called: str = "",
    ) -> None:
        self.graph, self.runs, self._called = graph, 0, called
        self._limits = limits
        self.runner = Runner(graph, fact)
        self._by = None if providers is None else self.runner.by(providers)

    def values(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run once and return the values of these names."""
        self.runs += 1
        with whose(self._called):
            return self.runner.run(dict(feeds), list(names), keep=False, seed=0, strict=False, limits=self._limits,
                                   by=self._by)  # fmt: skip

    def hand(self, feeds: Mapping[str, Any], names: Sequence[str], take: Take) -> None:
        """Run once and hand over the values of these names, by their place, as they are made; none is kept."""
        self.runs += 1
        with whose(self._called):
            self.runner.hand(feeds, names, take, seed=0, limits=self._limits, by=self._by)


class RecordedSide:
    """Values that something else wrote down: {name: array}, or a folder with an .npy file for each."""

    def __init__(self, source: Mapping[str, Any] | str | Path) -> None:
        if isinstance(source, Mapping):
            self._arrays: dict[str, Any] = dict(source)
            self._files: dict[str, Path] = {}
            return
        folder = Path(source)
        if not folder.is_dir():
            raise LoadError(f"{str(source)!r} is no folder of .npy files")
        self._arrays = {}
        self._files = {path.stem: path for path in sorted(folder.glob("*.npy"))}
        if not self._files:
            raise LoadError(f"{str(source)!r} has no .npy files; name each by the value that it holds")

    def of(self, name: str) -> Any:
        """The array of a value, None where there is none.

        In the name of a file, "_" stands for each character but letters, digits, "-" and ".".

        Raises:
            LoadError: its file cannot be read.
        """
        if name in self._arrays:
            return self._arrays[name]
        path = self._files.get(name) or self._files.get(file_name(name))
        if path is None:
            return None
        with path.open("rb") as file:
            array = read_arrays(file, path.name)
        return array if isinstance(array, np.ndarray) else None

    def values(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The values that were recorded under these names."""
        arrays = ((name, self.of(name)) for name in names)
        return {name: array for name, array in arrays if array is not None}


def file_name(value: str) -> str:
    """The name that a file has for a value: letters, digits, "-" and "." stay."""
    return "".join(char if char.isalnum() or char in "-." else "_" for char in value)


def made_values(graph: ModelGraph) -> Iterable[int]:
    """Ids of what nodes of the main graph make, in an order in which each comes behind what it is made from."""
    for ident in graph.index.topological(graph.main):
        yield from (vid for vid in graph.nodes[ident].outputs if vid)


def graph_reads(graph: ModelGraph, ident: int) -> set[int]:
    """Ids of the values that a node reads, those that its bodies capture included."""
    node = graph.nodes[ident]
    reads = {vid for vid in node.inputs if vid}
    scopes = [graph.scopes[body] for bodies in node.bodies.values() for body in bodies]
    for scope in scopes:
        for inner in scope.node_ids:
            reads |= graph_reads(graph, inner)
        reads.update(vid for vid in scope.outputs if vid)
    return reads


def off_by_a_rounding(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The same inputs, every other element of floats the next larger number."""
    moved = dict(feeds)
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            flat = value.reshape(-1).copy()
            flat[::2] = np.nextafter(flat[::2], np.array(np.inf, value.dtype))
            moved[name] = flat.reshape(value.shape)
    return moved
