"""The stages of one graph in a folder of GE dumps, and what differs between two of them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx

from onnxlab.errors import LoadError
from onnxlab.formats import onnx as onnx_format
from onnxlab.formats.paths import absolute
from onnxlab.printable import printable_lines

_NAME: Final = re.compile(r"ge_onnx_(\d{1,18})_graph_(\d{1,18})_(.+)\.pbtxt")


@dataclass(frozen=True, slots=True)
class Stage:
    """One dump of a folder.

    Attributes:
        path: of the file.
        number: its place among all dumps of the run.
        graph: id of the graph.
        name: of the stage: "PreRunBegin", "AfterInfershape", "Build".
    """

    path: Path
    number: int
    graph: int
    name: str


def stages(folder: Any) -> list[Stage]:
    """The dumps in a folder, by graph and then in the order in which they were written.

    Args:
        folder: that DUMP_GE_GRAPH wrote into.

    Raises:
        LoadError: it is no folder, or holds no `ge_onnx_<number>_graph_<id>_<stage>.pbtxt`.

    Examples:
        >>> import onnxlab
        >>> from onnxlab.formats.ge_stages import stages
        >>> models = [onnxlab.load(stage.path) for stage in stages("dumps")]  # doctest: +SKIP
    """
    path = absolute(folder)
    if not path.is_dir():
        raise LoadError(f"cannot list the dumps in {path}: it is no folder")
    names = ((entry, _NAME.fullmatch(entry.name)) for entry in path.iterdir())
    stage_files = [Stage(entry, int(match[1]), int(match[2]), match[3]) for entry, match in names if match is not None]
    if not stage_files:
        raise LoadError(f"cannot list the dumps in {path}: it has no ge_onnx_<number>_graph_<id>_<stage>.pbtxt")
    return sorted(stage_files, key=lambda stage: (stage.graph, stage.number, stage.name))


@dataclass(frozen=True, slots=True)
class StageChanges:
    """Differences between two dumps of a graph, by names of nodes.

    Attributes:
        added: nodes that only the second one has.
        removed: nodes that only the first one has.
        changed: by node that both have, what differs: "op_type", "input", names of attributes.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        rows = [f"+ {name}" for name in self.added] + [f"- {name}" for name in self.removed]
        rows += [f"~ {name}: {', '.join(fields)}" for name, fields in self.changed.items()]
        return printable_lines(rows or ["no node differs"])


def compare(first: Any, second: Any) -> StageChanges:
    """Compare a graph before and after a stage.

    Args:
        first, second: a path, the bytes of a file, a Stage or a ModelProto.

    Raises:
        LoadError: one cannot be read.
    """
    before, after = ({node.name: node for node in _proto(source).graph.node} for source in (first, second))
    changed = {name: _differences(before[name], after[name]) for name in before if name in after}
    return StageChanges(
        tuple(name for name in after if name not in before),
        tuple(name for name in before if name not in after),
        {name: fields for name, fields in changed.items() if fields},
    )


def _proto(source: Any) -> onnx.ModelProto:
    return onnx_format.read(source.path if isinstance(source, Stage) else source)[0]


def _differences(before: onnx.NodeProto, after: onnx.NodeProto) -> tuple[str, ...]:
    fields = [field for field in ("op_type", "input", "output") if getattr(before, field) != getattr(after, field)]
    ours, theirs = ({attribute.name: attribute for attribute in node.attribute} for node in (before, after))
    return (*fields, *(name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)))
