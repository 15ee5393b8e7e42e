"""Screenshots of every model of the corpus in JupyterLab, light and dark, and sheets of them to look at.

python -m tests.browser.contact_sheet [MODEL …]      # into build/screens/models and build/screens/sheet_*.png
python -m tests.browser.contact_sheet --readme       # the picture in README
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, sync_playwright

from tests.browser.jupyter import Jupyter, chromium
from tests.browser.lab import FLAGS, Lab
from tests.corpus import Corpus

SCREENS = Path("build/screens")
README_PICTURE = Path("notebooks/images/widget.png")
THEMES = ("Light", "Dark")
COLUMNS, THUMBNAIL = 4, (560, 400)


def shots(browser: Browser, jupyter: Jupyter, names: Sequence[str]) -> dict[str, list[Path]]:
    """{theme: a picture of each model's widget}; every model is opened, and switches theme while it is open."""
    taken: dict[str, list[Path]] = {theme: [] for theme in THEMES}
    corpus = Corpus()
    for name in names:
        lab = Lab(browser.new_context(viewport={"width": 1400, "height": 1000}), jupyter)
        load = f"import onnxlab\nmodel = onnxlab.load({str(corpus[name])!r})"
        lab.open(f"{name}.ipynb", [load, "onnxlab.show(model, height=760)"])
        lab.run_all()
        widget = lab.widget()
        for theme in THEMES:
            lab.theme(f"JupyterLab {theme}")
            widget.settle()
            lab.page.wait_for_timeout(300)
            path = SCREENS / "models" / f"{name}_{theme.lower()}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            widget.root.screenshot(path=path)
            taken[theme].append(path)
        print(f"{name:26} {len(widget.debug()['boxes']):4} boxes  {'; '.join(lab.errors) or 'no errors'}", flush=True)
        lab.page.context.close()
        jupyter.settle()
    return taken


def sheet(paths: Sequence[Path], target: Path) -> None:
    """Thumbnails with the names below them."""
    width, height = THUMBNAIL
    rows = -(-len(paths) // COLUMNS)
    canvas = Image.new("RGB", (COLUMNS * width, rows * (height + 24)), "#808080")
    draw = ImageDraw.Draw(canvas)
    for number, path in enumerate(paths):
        left, top = number % COLUMNS * width, number // COLUMNS * (height + 24)
        with Image.open(path) as picture:
            picture.thumbnail((width - 8, height))
            canvas.paste(picture, (left + 4, top))
        draw.text((left + 8, top + height + 4), path.stem, fill="white")
    canvas.save(target)
    print(target)


def readme(browser: Browser, jupyter: Jupyter) -> None:
    """The widget with a convolution selected, right after an edit."""
    lab = Lab(browser.new_context(viewport={"width": 1240, "height": 1000}, device_scale_factor=1.5), jupyter)
    lab.open("readme.ipynb", ["import onnxlab\nmodel = onnxlab.load()", "onnxlab.show(model, height=620)"])
    lab.run_all()
    lab.command("application:toggle-left-area")
    widget = lab.widget()
    widget.select(widget.node("/block2/conv1/Conv"))
    widget.set_field("strides", "1, 1")
    widget.wait("handle => handle.store.history.position === 1")
    lab.page.mouse.move(2, 2)
    widget.settle()
    lab.page.wait_for_timeout(500)
    README_PICTURE.parent.mkdir(parents=True, exist_ok=True)
    widget.root.screenshot(path=README_PICTURE)
    print(README_PICTURE)


def main(arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            if "--readme" in arguments:
                readme(browser, jupyter)
            else:
                for theme, paths in shots(browser, jupyter, arguments or list(Corpus())).items():
                    sheet(paths, SCREENS / f"sheet_{theme.lower()}.png")
        finally:
            browser.close()
            jupyter.close()


if __name__ == "__main__":
    main(sys.argv[1:])
