"""The stages of one graph in a folder of GE dumps."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onnxlab.errors import LoadError
from onnxlab.formats.paths import absolute

_NAME: Final = re.compile(r"ge_onnx_(\d{1,18})_graph_(\d{1,18})_(.+)\.pbtxt")


@dataclass(frozen=True, slots=True)
class Stage:
    """One dump of a folder; `onnxlab.load` and `onnxlab.diff` take it as they take a path.

    Attributes:
        path: the path of the file.
        number: its place among all dumps of the run.
        graph: id of the graph.
        name: the name of the stage: "PreRunBegin", "AfterInfershape", "Build".
    """

    path: Path
    number: int
    graph: int
    name: str

    def __fspath__(self) -> str:
        return str(self.path)


def stages(folder: Any) -> list[Stage]:
    """The dumps in a folder, by graph and then in the order in which they were written.

    Args:
        folder: the folder that DUMP_GE_GRAPH wrote into.

    Raises:
        LoadError: the path is no folder, or the folder holds no `ge_onnx_<number>_graph_<id>_<stage>.pbtxt`.

    Examples:
        >>> import onnxlab
        >>> from onnxlab.formats.ge_stages import stages
        >>> first, second = stages("dumps")[:2]  # doctest: +SKIP
        >>> print(onnxlab.diff(first, second, ignore=["declarations", "order"]))  # doctest: +SKIP
    """
    path = absolute(folder)
    if not path.is_dir():
        raise LoadError(f"cannot list the dumps in {path}: it is no folder")
    names = ((entry, _NAME.fullmatch(entry.name)) for entry in path.iterdir())
    stage_files = [Stage(entry, int(match[1]), int(match[2]), match[3]) for entry, match in names if match is not None]
    if not stage_files:
        raise LoadError(f"cannot list the dumps in {path}: it has no ge_onnx_<number>_graph_<id>_<stage>.pbtxt")
    return sorted(stage_files, key=lambda stage: (stage.graph, stage.number, stage.name))
