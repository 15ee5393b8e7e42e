"""The files of the widget that the build makes: its script, its styles, and the lines that load them."""

from pathlib import Path

from onnxlab.errors import OnnxlabError

STATIC = Path(__file__).parents[1] / "static"


def bundled(name: str) -> str:
    """A file of the bundle as text; with a path instead, anywidget would never release a widget."""
    try:
        return (STATIC / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise OnnxlabError(
            f"{STATIC / name} is missing: this checkout has no bundle of the widget yet; "
            "`pip install -e .` or `python hatch_build.py` builds it"
        ) from None


def page_parts() -> tuple[str, str]:
    """Script and styles, for a page without a kernel."""
    return bundled("widget.js"), bundled("widget.css")
