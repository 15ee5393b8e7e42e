"""What a notebook shows that is opened again: the picture of each view, and no error of JupyterLab's."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.browser.support.lab import Lab

CELLS = ["import onnxlab", "model = onnxlab.load()\nmodel", "print('last')"]
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def shown(lab: Lab) -> dict[str, Any]:
    """What a reader sees of the outputs: how many pictures and widgets, and the words."""
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
    assert set(picture) == {"image/svg+xml", "text/plain"}
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
