"""A model whose attributes are large: a forest of 1,000 trees, 10 million entries in eleven lists.

`python -m bench.attributes SIDE [KIND] MODEL` prints seconds of the processor and peak memory of one side, of which
each has a process of its own: memory that one gave back would be the other's for nothing.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import models
from bench.measure import Figure, Line, Row

REPEATS = 3
EDITS = 20
ROWS = 16
LISTS: dict[str, tuple[str, float | None]] = {
    "floats": ("nodes_values", 3), "ints": ("nodes_featureids", 3), "strings": ("nodes_modes", None),
}  # fmt: skip
"""The attribute that is edited for each kind of list, and the most that its edits may take, in files; strings take 8 or
16 bytes for each item that changes, which protobuf keeps until the model goes: 3.6 files where half of them do."""

Taken = dict[str, float]


def rows() -> Iterator[Line]:
    """All lines of the topic."""
    path = models.forest()
    ours, theirs = _least("ours", path), _least("theirs", path)
    yield Row("load 10 million entries of attributes", ours["load"], theirs["load"], "onnx.load", 1.5)
    peaks = f"{ours['loaded'] / 1e6:.0f} MB, onnx.load {theirs['loaded'] / 1e6:.0f} MB"
    yield Figure("peak memory of that ÷ onnx.load's", ours["loaded"] / theirs["loaded"], at_most=1.5, note=peaks)
    session = "onnxruntime's session and run"
    yield Row(f"its first run, {ROWS} rows", ours["run"], theirs["run"], session, 2)
    yield Row("its second run", ours["again"], theirs["again"], "onnxruntime's second run")
    note = f"of 1.1 million entries; the first takes {ours['first edit']:.2g} s"
    yield Figure("edit one of its attributes", ours["edit"], "s", at_most=1, note=note)
    yield Figure("the slowest edit", max(ours["first edit"], ours["slowest edit"]), "s", at_most=1)
    yield Figure("undo it", ours["undo"], "s", at_most=1)
    size = path.stat().st_size
    for kind, (name, limit) in LISTS.items():
        measured = ours if kind == "floats" else _least(f"ours {kind}", path)
        note = f"{name}: {measured['most'] / 1e6:.0f} MB, of which {measured['edits'] / 1e6:.0f} MB stay; "
        note += f"file {size / 1e6:.0f} MB"
        yield Figure(
            f"peak memory of {EDITS} edits of {kind} ÷ the file", measured["most"] / size, at_most=limit, note=note
        )


def _least(side: str, path: Path) -> Taken:
    """The least time of a side over some processes."""
    command = [sys.executable, "-m", "bench.attributes", *side.split(), str(path)]
    runs: list[Taken] = [json.loads(subprocess.check_output(command, text=True)) for _ in range(REPEATS)]
    return {quantity: min(run[quantity] for run in runs) for quantity in runs[0]}


def peak() -> int:
    """The most that this process has had in memory since it was last asked, in bytes."""
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    Path("/proc/self/clear_refs").write_text("5")
    assert match is not None
    return int(match[1]) * 1024


def taken(action: Callable[[], Any]) -> float:
    """Seconds of the processor, of all threads."""
    start = time.process_time()
    action()
    return time.process_time() - start


def feeds(count: int = ROWS) -> dict[str, Any]:
    """Rows for the forest."""
    return {"x": np.random.default_rng(count).normal(size=(count, 64)).astype(np.float32)}


def ours(path: Path) -> Taken:
    """Load, run twice, edit, undo."""
    import onnxlab
    from onnxlab.execution.base import background

    small = onnxlab.load()
    small.run(small.sample_inputs())  # imports all that there is
    background.wait()  # what is compiled for it is no part of what comes after it
    peak()
    before = peak()
    figures, held = {}, []
    figures["load"] = taken(lambda: held.append(onnxlab.load(path)))
    figures["loaded"] = peak() - before
    model = held[0]
    figures["run"] = taken(lambda: model.run(feeds()))
    figures["again"] = taken(lambda: model.run(feeds(ROWS + 1)))
    return figures | _edited(model)


def ours_edited(path: Path, kind: str) -> Taken:
    """Edits alone, of another kind of list."""
    import onnxlab

    model = onnxlab.load(path)
    model.run(feeds())
    return _edited(model, kind)


def _edited(model: Any, kind: str = "floats") -> Taken:
    """Edits of an attribute, each to other values, as a list and as an array."""
    node, name = model.nodes["forest"], LISTS[kind][0]
    count = next(len(getattr(attribute, kind)) for attribute in node.proto.attribute if attribute.name == name)
    lists = _others(kind, count)
    peak()
    before = peak()
    seconds = [taken(partial(node.attributes.__setitem__, name, numbers)) for numbers in lists]
    most, held = peak() - before, peak() - before  # the second since the first was asked for
    undone = [taken(model.undo) for _ in range(EDITS)]
    return {
        "first edit": seconds[0], "edit": sorted(seconds)[EDITS // 2], "slowest edit": max(seconds[1:]),
        "edits": held, "most": most, "undo": sorted(undone)[EDITS // 2],
    }  # fmt: skip


def _others(kind: str, count: int) -> list[Any]:
    """Other values for each edit."""
    rng = np.random.default_rng(3)
    if kind == "strings":
        words = ("BRANCH_LEQ", "LEAF")
        return [[words[place] for place in row.tolist()] for row in rng.integers(0, 2, (EDITS, count), np.int8)]
    values = (
        rng.normal(size=(EDITS, count)).astype(np.float32)
        if kind == "floats"
        else rng.integers(64, size=(EDITS, count))
    )
    return [row.tolist() if number % 2 else row for number, row in enumerate(values)]


def theirs(path: Path) -> Taken:
    """The same of onnx, and of a session of onnxruntime."""
    import onnx
    import onnxruntime

    onnx.load(models.many_nodes(50))  # imports all that there is
    peak()
    before = peak()
    figures = {"load": taken(partial(onnx.load, path))}
    figures["loaded"] = peak() - before
    held: list[Any] = []

    def first() -> None:
        held.append(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]))
        held[0].run(None, feeds())

    figures["run"] = taken(first)
    figures["again"] = taken(lambda: held[0].run(None, feeds(ROWS + 1)))
    return figures


if __name__ == "__main__":
    *_, model = sys.argv
    sides: dict[str, Callable[[Path], Taken]] = {"ours": ours, "theirs": theirs}
    if len(sys.argv) == 4:
        print(json.dumps(ours_edited(Path(model), sys.argv[2])))
    else:
        print(json.dumps(sides[sys.argv[1]](Path(model))))
