"""Screenshots of every model of the corpus in light and dark, and a sheet of all of them, for people to look at.

python -m tests.browser.contact_sheet [NAME …]        # writes build/screens/corpus/
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

from tests.browser.conftest import VIEWPORT
from tests.browser.gallery import exhibit
from tests.browser.jupyter import Jupyter, chromium
from tests.browser.lab import FLAGS, Lab
from tests.corpus import Corpus

FOLDER = Path("build/screens/corpus")
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
COLUMNS = 4
TILE = (420, 320)


def main(names: list[str]) -> None:
    """Take the screenshots and put the sheets together."""
    corpus = Corpus()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            lab = Lab(browser.new_context(viewport=VIEWPORT), jupyter)
            for name, widget in exhibit(lab, corpus, names or list(corpus)):
                for theme, title in THEMES.items():
                    lab.theme(title)
                    lab.page.wait_for_timeout(300)
                    widget.root.screenshot(path=FOLDER / f"{name}_{theme}.png")
                print(f"{name}: {len(widget.debug()['boxes'])} boxes", flush=True)
            for error in lab.errors:
                print(f"the page threw: {error}", file=sys.stderr)
        finally:
            browser.close()
            jupyter.close()
    for theme in THEMES:
        sheet(theme, names or list(corpus)).save(FOLDER.parent / f"contact_sheet_{theme}.png")


def sheet(theme: str, names: list[str]) -> Image.Image:
    """Tiles of all screenshots of a theme, with their names."""
    rows = -(-len(names) // COLUMNS)
    paper = Image.new("RGB", (COLUMNS * TILE[0], rows * TILE[1]), "white" if theme == "light" else "black")
    pen = ImageDraw.Draw(paper)
    for number, name in enumerate(names):
        left, top = number % COLUMNS * TILE[0], number // COLUMNS * TILE[1]
        picture = Image.open(FOLDER / f"{name}_{theme}.png").convert("RGB")
        picture.thumbnail((TILE[0] - 8, TILE[1] - 24))
        paper.paste(picture, (left + 4, top + 18))
        pen.text((left + 6, top + 3), name, fill="gray")
    return paper


if __name__ == "__main__":
    main(sys.argv[1:])
