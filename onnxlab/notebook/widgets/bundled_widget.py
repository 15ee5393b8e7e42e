"""Widgets whose code the page asks for once: what views of one model and of two have in common."""

import hashlib
from typing import Any

import anywidget
import traitlets

from onnxlab.notebook.widgets.bundle import bundled


def _digest(code: str) -> str:
    """The name of a bundle: a page that has a bundle of this name does not request it again."""
    return hashlib.sha256(code.encode()).hexdigest()[:16]


class BundledWidget(anywidget.AnyWidget):
    """A widget that sends a few lines of code to the page, which request the bundle where the page has none.

    Attributes:
        bundle: the name of the bundle's version.
    """

    _code = bundled("widget.js")
    _styles = bundled("widget.css")
    _esm = traitlets.Unicode(bundled("loader.js")).tag(sync=True)
    bundle = traitlets.Unicode(_digest(_code + _styles), read_only=True).tag(sync=True)

    def add_traits(self, **traits: Any) -> None:
        """Add traits that the class lacks; it declares anywidget's, which would else give each view its own class."""
        missing = {name: trait for name, trait in traits.items() if not self.has_trait(name)}
        if missing:
            super().add_traits(**missing)

    def answer_loader(self, content: Any) -> bool:
        """Send the bundle if a message is the loader's question (loader.ts); returns whether it was."""
        if not isinstance(content, dict) or content.keys() != {"bundle"}:
            return False
        self.send({"bundle": self.bundle, "code": self._code, "styles": self._styles})
        return True
