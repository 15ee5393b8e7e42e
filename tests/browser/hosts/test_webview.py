"""The widget as VS Code's notebooks host it: drawn, edited, run and folded, in the editor's colors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.support.jupyter import Jupyter
from tests.browser.support.webview import THEMES, Webview
from tests.browser.test_access import AXE, violations

SCREENS = Path("build/screens")
CONV = "/stem/conv/Conv"

_COLORS = """(root) => {
    const style = getComputedStyle(root), canvas = root.querySelector('canvas');
    const [r, g, b] = canvas.getContext('2d').getImageData(4, 4, 1, 1).data;
    return { theme: root.dataset.theme, ground: style.backgroundColor, canvas: (r + g + b) / 3 };
}"""


@pytest.fixture
def webview(context: BrowserContext, jupyter: Jupyter) -> Iterator[Webview]:
    """A page with a kernel."""
    opened = Webview(context, jupyter)
    yield opened
    jupyter.settle()
    assert opened.errors == []


def rgb(color: str) -> str:
    """A color such as "#102030" in the words of a computed style."""
    return f"rgb({int(color[1:3], 16)}, {int(color[3:5], 16)}, {int(color[5:7], 16)})"


def test_opened_edited_run_and_folded_as_in_vs_code(webview: Webview) -> None:
    webview.run("import onnxlab\nmodel = onnxlab.load()\nmodel")
    widget = webview.widget()
    assert not webview.page.locator("svg[data-onnxlab]").is_visible(), "the widget takes its picture's place"
    widget.select(widget.node(CONV))

    # renamed and undone by keys that do not reach the editor, which would undo in the notebook
    webview.heard()
    widget.press("F2")
    webview.page.keyboard.type("first")
    webview.page.keyboard.press("Enter")
    widget.wait("h => [...h.store.nodes.values()].some((node) => node.name === 'first')")
    assert webview.run("print('first' in model.nodes)").strip() == "True"
    widget.press("Control+z")
    widget.wait("(h, name) => [...h.store.nodes.values()].some((node) => node.name === name)", CONV)
    assert webview.run("print('first' in model.nodes)").strip() == "False"
    assert webview.heard() == []

    # shapes follow an attribute
    labels = widget.labels()
    widget.set_field("strides", "2, 2")
    widget.wait("(h, labels) => [...h.store.values.values()].some((v) => v.label !== labels[v.name])", labels)
    webview.screenshot(SCREENS / "vscode_edit.png")
    widget.press("Control+z")
    widget.wait("(h, labels) => [...h.store.values.values()].every((v) => v.label === labels[v.name])", labels)

    # a run, with tensors that come as bytes at any offset
    widget.press("Escape")
    values = widget.run()
    assert values["probabilities"]["count"] == 2 * 10, "a batch is 2 where nothing else is said"
    assert values["probabilities"]["max"] <= 1

    frame = widget.evaluate("h => h.view.debug().boxes.find((box) => box.kind === 'frame').id")
    widget.evaluate("(h, group) => h.view.fold(group)", frame)
    widget.wait("(h, id) => h.view.debug().boxes.some((box) => box.kind === 'group' && box.id === id)", frame)


def test_colors_are_the_editors_in_every_theme(webview: Webview) -> None:
    webview.run("import onnxlab\nmodel = onnxlab.load()\nmodel")
    widget = webview.widget()
    widget.select(widget.node(CONV))
    widget.get("status-table").click()
    webview.page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    for theme, variables in THEMES.items():
        webview.theme(theme)
        light = theme == "vscode-light"
        webview.page.wait_for_timeout(100)  # the next frame is drawn in the new colors
        colors = widget.root.evaluate(_COLORS)
        assert colors["ground"] == rgb(variables["editor-background"])
        assert colors["theme"] == ("light" if light else "dark")
        assert (colors["canvas"] > 200) == light, theme
        assert violations(widget) == [], theme
        webview.screenshot(SCREENS / f"{theme.replace('-', '_')}.png")
