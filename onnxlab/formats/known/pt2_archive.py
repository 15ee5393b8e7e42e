"""torch.export's archive of a program: a graph of torch's operators to look at, without torch."""

from onnxlab.formats.base.format import Content, Format, Opened
from onnxlab.formats.pt2 import archive


def _read(content: Content) -> Opened:
    return Opened(archive.read(content))


FORMAT = Format("pt2", "a torch.export archive", (".pt2",), archive.is_archive, _read, rank=20)
