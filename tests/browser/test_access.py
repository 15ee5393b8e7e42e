"""For those who see little or hear the page: axe finds nothing serious in the outline and the panels."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus

AXE = Path(__file__).parents[2] / "widgets" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
OPENERS = {"toolbar-inputs": "run-inputs", "status-dims": "what-if", "toolbar-profile": "profile-row"}
"""What opens a panel, and the panel."""

_CHECK = """async (root) => {
    const found = await axe.run(root, { resultTypes: ['violations'] });
    return found.violations.map(({ id, impact, help, nodes }) => {
        return { id, impact, help, where: nodes.map((node) => node.html).slice(0, 3) };
    });
}"""


@pytest.fixture
def shown(lab: Lab, corpus: Corpus) -> Widget:
    """lstm_gru in a notebook."""
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(corpus['lstm_gru'])!r})"
    lab.open("access.ipynb", [load, "onnxlab.show(model, height=800)"])
    lab.run_all()
    return lab.widget()


def violations(shown: Widget) -> list[dict[str, Any]]:
    """The serious findings of axe in the widget."""
    return [violation for violation in shown.root.evaluate(_CHECK) if violation["impact"] in SERIOUS]


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_serious_in_outline_and_panels(theme: str, lab: Lab, shown: Widget) -> None:
    lab.theme(theme)
    lab.page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    assert violations(shown) == []
    shown.select(shown.node("/e/Gather"))
    shown.get("status-table").click()
    assert violations(shown) == []
    shown.get("status-history").click()
    shown.press("a")
    shown.get("operator-Add").wait_for()
    assert violations(shown) == []
    keys = lab.page.keyboard
    keys.press("Escape")
    keys.press("e")
    shown.get("command-input").wait_for()
    assert violations(shown) == []
    keys.press("Escape")
    keys.press("c")
    shown.get("form-value").wait_for()
    assert violations(shown) == []
    keys.press("Escape")
    for opener, panel in OPENERS.items():
        shown.get(opener).click()
        shown.get(panel).first.wait_for()
        assert violations(shown) == []
        keys.press("Escape")
    shown.root.focus()
    shown.press("?")
    shown.get("keys").wait_for()
    assert violations(shown) == []
