"""Screenshots of every model of the corpus in light and dark, and a sheet of all of them, for people to look at.

python -m tests.browser.support.contact_sheet [NAME …]        # writes build/screens/corpus/
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import VIEWPORT
from tests.browser.screens import THEMES, sheet
from tests.browser.support.gallery import exhibit
from tests.browser.support.jupyter import Jupyter, chromium
from tests.browser.support.lab import FLAGS, Lab
from tests.support.corpus import Corpus

FOLDER = Path("build/screens/corpus")
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
        pictures = {name: FOLDER / f"{name}_{theme}.png" for name in names or corpus}
        sheet(pictures, theme, COLUMNS, TILE).save(FOLDER.parent / f"contact_sheet_{theme}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
