"""TorchScript, a program of torch with code and pickles in it: only torch itself converts it, where it is trusted."""

from collections.abc import Sequence
from typing import Any, Final

from onnxlab.errors import LoadError
from onnxlab.formats.base.format import Content, Format, OpenedFile

_MARKS: Final = (b"/code/__torch__", b"/constants.pkl")


def _recognizes(content: Content) -> bool:
    """Whether a zip archive names code of TorchScript at its beginning, or at its end, where its entries are listed."""
    if not content.head.startswith(b"PK\x03\x04"):
        return False
    return any(mark in content.head or mark in content.tail for mark in _MARKS)


def _read(content: Content) -> OpenedFile:
    raise LoadError(
        "it is TorchScript, and loading it runs code that is in it. Where you trust it, "
        "onnxlab.load(path, trust=True, inputs=['float32[N,3,224,224]']) converts it with torch, or "
        "`onnxlab convert FILE m.onnx --trust --input 'float32[N,3,224,224]'`"
    )


def _convert(content: Content, inputs: Sequence[Any]) -> bytes:
    from onnxlab.formats.pt2.converting import converted

    return converted(content, "script", inputs)


FORMAT = Format("torchscript", "TorchScript", (), _recognizes, _read, rank=21, convert=_convert)
