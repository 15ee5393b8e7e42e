"""The moving picture of the README: a stride is typed, the shapes downstream follow, undo takes it back.

python -m tests.browser.support.moving_picture     # writes notebooks/images/edit.gif
"""

import io
import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import VIEWPORT
from tests.browser.support.jupyter import Jupyter, chromium
from tests.browser.support.lab import FLAGS, Lab, Widget

PICTURE = Path("notebooks/images/edit.gif")
HEIGHT = 620
COLORS = 96  # of the palette: enough for flat boxes and text, a third of the bytes of 256
NODE = "/block2/conv1/Conv"


class Film:
    """Frames with the milliseconds for which each is shown."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def take(self, milliseconds: int) -> None:
        self._widget.page.mouse.move(2, 2)  # a tooltip would hide what changes
        self._widget.page.wait_for_timeout(300)
        picture = Image.open(io.BytesIO(self._widget.root.screenshot())).convert("RGB")
        self.frames.append(picture)
        self.durations.append(milliseconds)

    def save(self, path: Path) -> None:
        palette = self.frames[-2].quantize(COLORS)
        first, *rest = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        first.save(path, save_all=True, append_images=rest, duration=self.durations, loop=0, optimize=True)


def edit(widget: Widget) -> Film:
    """Select a convolution, type another stride, look at what follows, take it back."""
    film = Film(widget)
    film.take(1200)
    widget.select(widget.node(NODE))
    widget.settle()
    film.take(1200)
    field = widget.get("attr-field-strides")
    field.fill("1, 1")
    film.take(900)
    before = widget.version
    field.press("Enter")
    widget.wait_version(before + 1)
    widget.page.wait_for_timeout(700)
    film.take(3200)
    widget.get("toolbar-undo").click()
    widget.wait_version(before + 2)
    widget.page.wait_for_timeout(700)
    film.take(1800)
    return film


def main() -> None:
    """Make the picture in a JupyterLab of its own."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["ONNXLAB_STATE_HOME"] = folder  # no edits of other sessions to recover
        jupyter = Jupyter(Path(folder))
        browser: Browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            lab = Lab(browser.new_context(viewport=VIEWPORT), jupyter)
            lab.open("edit.ipynb", ["import onnxlab", f"onnxlab.show(height={HEIGHT})"])
            lab.run_all()
            widget = lab.widget()
            widget.wait_drawn()
            widget.settle()
            edit(widget).save(PICTURE)
        finally:
            browser.close()
            jupyter.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
