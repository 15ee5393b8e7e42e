"""Views without a kernel: notebooks that are opened again, and exported pages."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from playwright.sync_api import BrowserContext, Page

import onnxlab
from tests.browser.support.lab import Lab
from tests.support.corpus import Corpus

CELLS = ["import onnxlab", "model = onnxlab.load()\nmodel", "print('last')"]
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def shown(lab: Lab) -> dict[str, Any]:
    """The outputs as a reader sees them: the numbers of pictures and widgets, and the words."""
    return lab.page.evaluate(
        """() => {
            const seen = (element) => element.getClientRects().length > 0;
            const count = (selector) => [...document.querySelectorAll(selector)].filter(seen).length;
            const words = [...document.querySelectorAll('.jp-OutputArea')].map((area) => area.innerText).join(' ');
            return { pictures: count('.jp-RenderedSVG'), widgets: count('.onnxlab'), words };
        }"""
    )


def test_the_picture_makes_room_for_the_widget_and_comes_back(fresh_lab: Lab) -> None:
    lab = fresh_lab
    lab.open("saved.ipynb", CELLS)
    lab.run_all()
    lab.widget()
    assert (shown(lab)["pictures"], shown(lab)["widgets"]) == (0, 1)
    lab.command("docmanager:save")
    lab.jupyter.settle()

    saved = nbformat.read(lab.jupyter.folder / "saved.ipynb", 4)
    picture, widget = (output.data for output in saved.cells[1].outputs)
    assert set(picture) == {"image/svg+xml", "image/png", "text/plain"}
    assert set(widget) == {WIDGET, "text/plain"}
    assert set(saved.metadata["widgets"][STATE]["state"]) == {widget[WIDGET]["model_id"]}

    lab.open("saved.ipynb")
    lab.page.get_by_text("Run the cell to explore").wait_for()
    lab.screenshot(Path("build/screens/saved_without_kernel.png"))
    assert (shown(lab)["pictures"], shown(lab)["widgets"]) == (1, 0)
    assert "Error" not in shown(lab)["words"]

    lab.run_all()
    lab.widget()
    assert (shown(lab)["pictures"], shown(lab)["widgets"]) == (0, 1)


def test_a_notebook_with_the_state_of_all_widgets_shows_the_picture(fresh_lab: Lab) -> None:
    """nbclient keeps the widget itself in the notebook: its loader finds no kernel, and the picture stays."""
    lab = fresh_lab
    path = lab.jupyter.write("executed.ipynb", CELLS)
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=120).execute()
    assert notebook.metadata["widgets"]
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "jupyter", "trust", str(path)]
    subprocess.run(command, check=True, capture_output=True, env=lab.jupyter.environment())
    lab.open("executed.ipynb")
    lab.page.locator(".jp-RenderedSVG").wait_for()
    lab.page.wait_for_timeout(500)
    lab.screenshot(Path("build/screens/executed_without_kernel.png"))
    assert (shown(lab)["pictures"], shown(lab)["widgets"]) == (1, 0)
    assert "Error" not in shown(lab)["words"]


def test_an_untrusted_notebook_shows_the_picture(fresh_lab: Lab) -> None:
    """JupyterLab shows no SVG of what it does not trust."""
    lab = fresh_lab
    path = lab.jupyter.write("foreign.ipynb", CELLS)
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=120, store_widget_state=False).execute()
    nbformat.write(notebook, path)
    lab.open("foreign.ipynb")
    image = lab.page.locator(".jp-RenderedImage img")
    image.wait_for()
    lab.screenshot(Path("build/screens/foreign_without_kernel.png"))
    assert image.evaluate("image => image.clientWidth < image.naturalWidth"), "sharp on fine screens"
    lab.run_all()
    lab.widget()
    assert image.count() == 0
    assert (shown(lab)["pictures"], shown(lab)["widgets"]) == (0, 1)


@pytest.fixture
def page(context: BrowserContext, corpus: Corpus, tmp_path: Path) -> Iterator[Page]:
    """bert_base as a page, without a network."""
    context.set_offline(True)
    shown = context.new_page()
    errors: list[str] = []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto(onnxlab.load(corpus["bert_base"]).to_html(tmp_path / "bert.html").as_uri())
    shown.wait_for_function(
        "() => document.querySelector('.onnxlab')?.__onnxlab?.view?.debug().boxes.length > 0", timeout=30_000
    )
    yield shown
    assert errors == []


def test_an_exported_page_explores_without_a_kernel(page: Page) -> None:
    root = page.get_by_test_id("onnxlab-root")
    before = root.evaluate("root => root.__onnxlab.view.debug().boxes.length")
    root.get_by_test_id("search-input").fill("node_embedding_1")
    root.get_by_test_id("search-input").press("Enter")
    root.get_by_test_id("inspector-node").wait_for()
    assert root.evaluate("root => root.__onnxlab.app.picked.nodes.length") == 1
    root.evaluate("root => root.__onnxlab.view.foldAll()")
    page.wait_for_function(
        "before => document.querySelector('.onnxlab').__onnxlab.view.debug().boxes.length !== before", arg=before
    )
    assert root.get_by_test_id("toolbar-run").count() == 0
    assert root.get_by_test_id("banner").count() == 0
    page.screenshot(path="build/screens/export.png")
