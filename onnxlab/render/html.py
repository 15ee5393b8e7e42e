"""A model as one HTML page that needs nothing else: summary, picture, inputs and outputs, problems.

Every text of the model is escaped, and the page forbids scripts to itself, whatever a name may hold.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from onnxlab.render import svg, text
from onnxlab.render.picture import MAX_BOXES

if TYPE_CHECKING:
    from onnxlab.model import Model

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #8885; padding: 0.2rem 0.8rem; text-align: left; }
.error { color: #c33; } .warning { color: #b70; }
figure { margin: 1rem 0; overflow: auto; }
"""


def render(model: "Model", max_boxes: int = MAX_BOXES) -> str:
    """The page."""
    values = [("input", value) for value in model.inputs] + [("output", value) for value in model.outputs]
    rows = [(kind, value.name, str(model.fact(value.id))) for kind, value in values]
    problems = [(item.severity, item.message) for item in model.diagnostics]
    return "".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(model.name)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(model.name)}</h1><p>{escape(text.headline(model))}</p>",
            _table(("", "name", "type"), rows),
            "".join(f'<p class="{kind}">{escape(kind)}: {escape(message)}</p>' for kind, message in problems),
            f"<figure>{svg.render(model, max_boxes)}</figure></body></html>",
        ]
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    body = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table>"
