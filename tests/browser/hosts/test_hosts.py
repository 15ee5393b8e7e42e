"""The widget in each place that shows it: drawn, edited, run, undone, in a light and a dark theme."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.support.hosts import opened
from tests.browser.support.jupyter import REPOSITORY, Jupyter
from tests.browser.support.lab import Widget

HOSTS = ("JupyterLab 4", "Notebook 7", "Voilà", "marimo", "VS Code", "Colab")
TRIED = ("draw", "edit", "run", "undo", "themes")
SCREENS = Path("build/screens")
CONV = "/stem/conv/Conv"
_GROUND = """(root) => {
    const [r, g, b] = root.querySelector('canvas').getContext('2d').getImageData(4, 4, 1, 1).data;
    const bar = getComputedStyle(root.firstElementChild).display;
    return { theme: root.dataset.theme, canvas: (r + g + b) / 3, bar };
}"""


def edit_undo_run(widget: Widget) -> None:
    """Shapes follow an edit, undo brings them back, and a run gives results."""
    labels = widget.labels()
    widget.select(widget.node(CONV))
    widget.set_field("strides", "2, 2")
    widget.wait("(h, labels) => [...h.store.values.values()].some((v) => v.label !== labels[v.name])", labels)
    assert widget.label("stem/conv_out") == "batch×8×4×4"
    widget.press("Control+z")
    widget.wait("(h, labels) => [...h.store.values.values()].every((v) => v.label === labels[v.name])", labels)
    widget.press("Escape")  # without a selection the whole model runs
    values = widget.run()
    assert values["probabilities"]["count"] == 2 * 10, "a batch is 2 where nothing else is said"


def wait_theme(widget: Widget, theme: str) -> None:
    """Wait until widget and canvas are light or dark; the style sheet holds, since its bar is laid out in a row."""
    until = f"(root) => {{ const now = ({_GROUND})(root); return now.theme === '{theme}' && now.bar === 'flex' && "
    until += "now.canvas > 200; }" if theme == "light" else "now.canvas < 90; }"
    for _ in range(100):
        if widget.root.evaluate(until):
            return
        widget.page.wait_for_timeout(50)
    raise AssertionError(widget.root.evaluate(_GROUND))


@pytest.mark.parametrize("name", HOSTS)
def test_a_tour_of(name: str, context: BrowserContext, jupyter: Jupyter, tmp_path: Path) -> None:
    with opened(name, context, jupyter, tmp_path) as host:
        try:
            widget = host.show("light")
            wait_theme(widget, "light")
            host.page.screenshot(path=SCREENS / f"host_{name.lower().replace(' ', '_')}_light.png")
            edit_undo_run(widget)
            wait_theme(host.show("dark"), "dark")
        finally:
            host.page.screenshot(path=SCREENS / f"host_{name.lower().replace(' ', '_')}_dark.png")
    jupyter.settle()


def test_the_page_of_hosts_says_what_is_tried() -> None:
    text = (REPOSITORY / "docs" / "hosts.md").read_text(encoding="utf-8")
    header = f"| host | {' | '.join(TRIED)} |"
    rows = text[text.index(header) :].split("\n\n")[0].splitlines()[2:]
    ticks = " | ".join("✓" for _ in TRIED)
    assert [row.partition(" | ✓")[0].removeprefix("| ") for row in rows] == list(HOSTS)
    assert all(row.endswith(f"| {ticks} |") for row in rows)
