"""torch.export's archive of a program: a graph of torch's operators to look at, without torch."""

from collections.abc import Sequence
from typing import Any

from onnxlab.errors import LoadError
from onnxlab.formats.base.format import Content, Format, OpenedFile
from onnxlab.formats.pt2 import archive


def _read(content: Content) -> OpenedFile:
    return OpenedFile(archive.read(content))


def _convert(content: Content, inputs: Sequence[Any]) -> bytes:
    from onnxlab.formats.pt2.converting import converted

    if inputs:
        raise LoadError("a torch.export archive itself holds the types of its inputs: leave inputs= out")
    return converted(content, "pt2", ())


FORMAT = Format(
    "pt2", "a torch.export archive", (".pt2",), archive.is_archive, _read, rank=20, convert=_convert,
    uninferred="Nothing is inferred of torch's operators: types are those that torch.export wrote down. To run it, let "
    "torch convert it: onnxlab.load(path, trust=True).",
)  # fmt: skip
