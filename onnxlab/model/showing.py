"""Showing a Model: by the layers above it that draw, which are asked for by name at that moment."""

from os import PathLike
from pathlib import Path
from types import EllipsisType
from typing import Any, Literal

from onnxlab.argument_types import expect
from onnxlab.formats import kinds, output
from onnxlab.graph.handles.model_lookup import NodeKeys
from onnxlab.model.saving import Saving
from onnxlab.viewers import viewer

_BOXES = "a number of boxes"


class Showing(Saving):
    """Looks of a Model in a notebook, on a page, and as a picture."""

    __slots__ = ()

    def view(
        self,
        *,
        new: bool = False,
        static: bool = False,
        title: str | None = None,
        height: int | Literal["fill"] | None = None,
        selection: NodeKeys | None = None,
        bookmarks: NodeKeys | None = None,
        flow: Literal["auto", "down", "right"] | None = None,
        columns: bool | None = None,
        deadline: float | EllipsisType | None = ...,
        layout: Any = None,
    ) -> Any:
        """Show the model: its last view, with the given options set, or a new one.

        Args:
            new: make another view in any case.
            static: no widget, but the picture that is shown where no kernel runs.
            title: shown above the picture.
            height: of the view in pixels; "fill": as high as what is around it.
            selection: nodes to select, as positions, names or handles.
            bookmarks: nodes to come back to with the key N.
            flow: which way the picture reads.
            columns: whether a graph that is many times longer than wide is drawn in columns, as in a newspaper.
            deadline: seconds that a run from the page may take unless the page sets another limit; None: no limit.
            layout: an ipywidgets Layout for a new view.

        Returns:
            ModelWidget: its `selection` follows the clicks, and can be set.

        Raises:
            OnnxlabError: an option cannot have this value.

        Examples:
            >>> model.view().selection = model.find("MaxPool")
            >>> model.view().selection
            (<Node '/head/pool/MaxPool': MaxPool>,)
        """
        return viewer("view")(
            self, new=new, static=static, title=title, height=height, selection=selection, bookmarks=bookmarks,
            flow=flow, columns=columns, deadline=deadline, layout=layout,
        )  # fmt: skip

    def __str__(self) -> str:
        """Its size, inputs and outputs, operators and problems, as `onnxlab info` prints them."""
        summary: str = viewer("text")(self)
        return summary

    def _ipython_display_(self) -> None:
        """The widget in a notebook; a static SVG and a summary where no kernel runs."""
        viewer("publish")(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the model as one HTML page that folds, searches and inspects without kernel or network.

        Args:
            path: of the page.

        Returns:
            Path: of the page.

        Raises:
            SaveError: the page cannot be written, or a file of another kind is there; the old file stays.

        Examples:
            >>> model.to_html("model.html").name
            'model.html'
        """
        written: Path = viewer("page")(self, path)
        return written

    def to_svg(self, path: str | PathLike[str] | None = None, boxes: int = 120) -> str:
        """Draw the main graph as an SVG document.

        Args:
            path: a file to write it to as well.
            boxes: groups are folded until at most this many boxes show.

        Returns:
            str: the document.

        Raises:
            SaveError: the picture cannot be written, or a file of another kind is there; the old file stays.

        Examples:
            >>> model.to_svg()[:4]
            '<svg'
        """
        drawn: str = viewer("svg")(self, expect(boxes, int, "boxes", _BOXES))
        if path is not None:
            output.write(path, drawn.encode(), kinds.SVG, [self.path])
        return drawn

    def to_png(self, path: str | PathLike[str] | None = None, boxes: int = 120) -> bytes:
        r"""Draw the same picture as `to_svg` as a PNG file.

        Args:
            path: a file to write it to as well.
            boxes: groups are folded until at most this many boxes show.

        Returns:
            bytes: of the file.

        Raises:
            OnnxlabError: no PNG can be drawn here, as in a browser.
            SaveError: the picture cannot be written, or a file of another kind is there; the old file stays.

        Examples:
            >>> model.to_png()[:4]
            b'\x89PNG'
        """
        drawn: bytes = viewer("png")(self, expect(boxes, int, "boxes", _BOXES))
        if path is not None:
            output.write(path, drawn, kinds.PNG, [self.path])
        return drawn

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The parts that `_ipython_display_` shows, by MIME type."""
        return viewer("mimebundle")(self, **options)
