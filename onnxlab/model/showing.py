"""How a Model is shown: by the layers above it that draw, which are asked for by name at that moment."""

from os import PathLike
from pathlib import Path
from typing import Any

from onnxlab.formats import kinds, output
from onnxlab.model.saving import Saving
from onnxlab.viewers import viewer


class Showing(Saving):
    """What a Model looks like in a notebook, on a page, and as a picture."""

    __slots__ = ()

    def view(self, **options: Any) -> Any:
        """The widget on this model: the one made last, or a new one; its `selection` follows the clicks."""
        return viewer("view")(self, **options)

    def _ipython_display_(self) -> None:
        """The widget in a notebook; a static SVG and a summary where no kernel runs."""
        viewer("publish")(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the model as one HTML page that folds, searches and inspects without kernel or network.

        Raises:
            SaveError: it cannot be written; whatever was there is still there. Nothing but a page is replaced.
        """
        written: Path = viewer("page")(self, path)
        return written

    def to_svg(self, path: str | PathLike[str] | None = None, boxes: int = 120) -> str:
        """The main graph as an SVG document, folded until at most `boxes` boxes show; also written to `path`.

        Raises:
            SaveError: it cannot be written; whatever was there is still there. Nothing but a picture is replaced.
        """
        drawn: str = viewer("svg")(self, boxes)
        if path is not None:
            output.write(path, drawn.encode(), kinds.SVG, [self.path])
        return drawn

    def to_png(self, path: str | PathLike[str] | None = None, boxes: int = 120) -> bytes:
        """The same picture as the bytes of a PNG file, by Graphviz; also written to `path`.

        Raises:
            OnnxlabError: Graphviz is not installed.
            SaveError: it cannot be written; whatever was there is still there. Nothing but a picture is replaced.
        """
        drawn: bytes = viewer("png")(self, boxes)
        if path is not None:
            output.write(path, drawn, kinds.PNG, [self.path])
        return drawn

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """What `_ipython_display_` shows, by MIME type."""
        return viewer("mimebundle")(self, **options)
