"""A file from the desktop dropped on the widget."""

import base64

from tests.browser.support.lab import Widget

# What the browser does with it; false where the page would not take it.
_DROP = """([name, data, x, y]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([Uint8Array.from(atob(data), (char) => char.charCodeAt(0))], name));
    const target = document.elementFromPoint(x, y);
    return ['dragover', 'drop'].every((type) => !target.dispatchEvent(new DragEvent(type, {
        bubbles: true, cancelable: true, composed: true, clientX: x, clientY: y, dataTransfer: carried,
    })));
}"""


def drop(widget: Widget, name: str, data: bytes, at: tuple[float, float] | None = None) -> None:
    """Let go of a file at a point, by default in a corner where nothing is drawn."""
    if at is None:
        box = widget.get("stage").bounding_box()
        assert box is not None
        at = box["x"] + 4, box["y"] + box["height"] - 4
    assert widget.page.evaluate(_DROP, [name, base64.b64encode(data).decode(), *at]), "the page takes the file"
