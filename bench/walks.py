"""The number of files that a reader enters on the way of an edit: by a cell, by the page, by undo.

Counted are the files of the package in which a Python function begins, and the moves from one file to another between
calls that follow each other; each walk is made on a small model, the third time, when nothing is imported or made ready
any more.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnxlab
from bench.measure import Figure, Line
from onnxlab.notebook.session.session import Session

ROOT = Path(onnxlab.__file__).parent
WARM = 2
"""Walks that are made before the one that is counted."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The files that were entered, call by call, by their paths in the package."""

    entered: tuple[str, ...]

    @property
    def files(self) -> Counter[str]:
        """The number of times that each file was entered."""
        return Counter(self.entered)

    @property
    def moves(self) -> int:
        """Calls that came from a call in another file."""
        return sum(before != after for before, after in zip(self.entered, self.entered[1:], strict=False))

    def folders(self) -> dict[str, int]:
        """The number of entered files of each folder of the package."""
        return dict(Counter(path.split("/")[0] for path in self.files))


def walked(action: Callable[[], Any]) -> Walk:
    """The walk that an action takes on this thread."""
    entered: list[str] = []
    prefix = f"{ROOT}/"

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and (path := frame.f_code.co_filename).startswith(prefix):
            entered.append(path.removeprefix(prefix))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return Walk(tuple(entered))


def walks() -> dict[str, Walk]:
    """Every walk by its name, on the model that comes along."""
    pages = {}
    for name, prepare in _WALKS.items():
        model = onnxlab.load(ROOT / "data" / "digits.onnx")
        action = prepare(model)
        for number in range(WARM):
            action(number)
        pages[name] = walked(partial(action, WARM))
    return pages


def _strides(model: onnxlab.Model) -> Callable[[int], object]:
    node = next(node for node in model.nodes if node.op_type == "Conv")
    return lambda number: node.attributes.__setitem__("strides", [1 + number % 2] * 2)


def _strides_from_the_page(model: onnxlab.Model) -> Callable[[int], object]:
    session = Session(model, lambda content, buffers: None)
    node = next(node for node in model.nodes if node.op_type == "Conv")

    def ask(number: int) -> None:
        value = {"type": "ints", "value": [1 + number % 2] * 2}
        params = {"edit": "set_attribute", "on": "node", "subject": [node.id], "version": model.version + 1}
        params["parameters"] = {"name": "strides", "value": value}
        session.receive({"id": number + 1, "method": "edit", "params": params})

    return ask


def _undo(model: onnxlab.Model) -> Callable[[int], object]:
    edit = _strides(model)
    for number in range(WARM + 1):
        edit(number)
    return lambda _: model.undo()


def _rename(model: onnxlab.Model) -> Callable[[int], object]:
    node = model.nodes[0]
    return lambda number: setattr(node, "name", f"name_{number}")


_WALKS: dict[str, Callable[[onnxlab.Model], Callable[[int], object]]] = {
    'node.attributes["strides"] = …': _strides,
    "the same from the page": _strides_from_the_page,
    "undo": _undo,
    "rename a node": _rename,
}
LIMITS = {'node.attributes["strides"] = …': 25, "the same from the page": 45}


def rows() -> Iterator[Line]:
    """Files entered and moves between them, by walk."""
    for name, walk in walks().items():
        folders = ", ".join(f"{folder} {count}" for folder, count in sorted(walk.folders().items()))
        yield Figure(f"files entered: {name}", len(walk.files), at_most=LIMITS.get(name), note=folders)
        yield Figure(f"moves between files: {name}", walk.moves, note=f"{len(walk.entered)} calls")
