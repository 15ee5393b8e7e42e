"""Differences and comparisons of two Models, which can be looked at: both graphs side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from onnxlab.analysis.compare.comparing import renamed_feeds
from onnxlab.analysis.compare.comparison import Comparison
from onnxlab.analysis.compare.sides import RecordedSide, RunSide
from onnxlab.analysis.diff.change import Ignorable
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.matching import Fingerprints, GraphMatching
from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.viewers import viewer


class Viewable:
    """Views of two models: in a notebook, and as a page."""

    __slots__ = ()

    def view(self, *, height: int | None = None) -> Any:
        """Show both models side by side: what differs in colors, with linked pan, zoom, folding and selection.

        Args:
            height: of the view in pixels.

        Returns:
            PairWidget: at the end of a cell it shows itself.

        Examples:
            >>> onnxlab.diff(model, onnxlab.load()).view().height
            860
        """
        return viewer("pair")(self, height=height)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the same view as one HTML page that needs neither kernel nor network.

        Args:
            path: of the page.

        Returns:
            Path: of the page.

        Raises:
            SaveError: the page cannot be written, or a file of another kind is there; the old file stays.

        Examples:
            >>> onnxlab.diff(model, onnxlab.load()).to_html("diff.html").name
            'diff.html'
        """
        written: Path = viewer("pair_page")(self, path)
        return written

    def _ipython_display_(self) -> None:
        """The view in a notebook; the text where no kernel runs."""
        viewer("publish_pair")(self)


class ModelDiff(Viewable, Diff):
    """The difference of two Models.

    Attributes:
        models: makes both models, when a view needs them.
    """

    def __init__(
        self,
        models: Callable[[], tuple[Any, Any]],
        graphs: tuple[ModelGraph, ModelGraph],
        ignore: Collection[Ignorable] = (),
        tolerance: float = 0.0,
        fingerprints: Fingerprints | None = None,
    ) -> None:
        super().__init__(*graphs, ignore, tolerance, fingerprints)
        self.models = models


@dataclass(frozen=True, slots=True)
class Compared:
    """Both sides of a comparison, to run them again.

    Attributes:
        models: both models; None in place of recorded values.
        feeds: inputs of both, by input of the first one; None for the second where they are the same.
        again: repeats the comparison with the models as they are then.
        versions: versions of the models when they were compared.
    """

    models: tuple[Any, Any]
    a: RunSide
    b: RunSide | RecordedSide
    matching: GraphMatching
    feeds: tuple[Mapping[str, Any], Mapping[str, Any] | None]
    again: Callable[[], ModelComparison]
    versions: tuple[int, int]

    @property
    def is_current(self) -> bool:
        """Whether neither model was edited since the comparison."""
        return self.versions == versions_of(self.a, self.b)


def versions_of(a: RunSide, b: RunSide | RecordedSide) -> tuple[int, int]:
    """Versions of the models of two sides."""
    return a.graph.version, b.graph.version if isinstance(b, RunSide) else 0


@dataclass(frozen=True, slots=True, repr=False)
class ModelComparison(Viewable, Comparison):
    """A comparison of the values of two Models.

    Attributes:
        compared: both sides, to run them again.
    """

    compared: Compared | None = None

    def arrays(self, name: str) -> tuple[Any, Any]:
        """Compute a value of the first model, and the one that it was compared with, once more.

        Args:
            name: of a value of the first model.

        Returns:
            tuple[Any, Any]: the value on both sides.

        Raises:
            KeyError: the value was not compared.
            EditError: a model was edited since the comparison.
            RunError: as of `Model.run`.

        Examples:
            >>> a, b = onnxlab.compare(model, model).arrays("logits")
            >>> a.shape == b.shape
            True
        """
        entry, compared = self[name], self.compared
        if compared is None or not compared.is_current:
            raise EditError("a model was edited since it was compared; compare them again")
        a, b = compared.a, compared.b
        feeds, others = compared.feeds
        others = feeds if others is None else others
        its = feeds if isinstance(b, RecordedSide) else renamed_feeds(others, a.graph, b.graph, compared.matching)
        return a.values(feeds, [name])[name], b.values(its, [entry.b])[entry.b]
