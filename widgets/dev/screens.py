"""Screenshots of the widget over the fake kernel into build/screens/widget, and what must hold in a page.

    npm run dev && python dev/screens.py [name ...]

Needs Playwright for Python and an installed Chromium. Nothing else runs: no Jupyter, no kernel.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "build/widget-dev/index.html").as_uri()
SCREENS = ROOT / "build/screens/widget"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
]
APP = "document.querySelector('.onnxlab').__onnxlab.app"


def hook(name: str) -> str:
    """A control by its test hook."""
    return f'[data-testid="{name}"]'


def node_of(page: Page, op: str, index: int = 0) -> int:
    """Id of the index-th node of an operator."""
    ident = page.evaluate(f"[...lab.model.nodes.values()].filter(n => n.op === '{op}')[{index}].id")
    return int(ident)


def reveal(page: Page, op: str, index: int = 0) -> int:
    """Selects a node and waits for the inspector to be about it."""
    node = node_of(page, op, index)
    page.evaluate(f"{APP}.reveal({node})")
    page.wait_for_selector(f'{hook("inspector-node")}[data-node="{node}"] .ol-section')
    return node


def overview(page: Page) -> None:
    """The view as it opens."""


def node(page: Page) -> None:
    """A node, with a field that cannot be read and one that was refused."""
    reveal(page, "Conv", 3)
    page.fill(hook("attr-field-group"), "0")
    page.keyboard.press("Enter")
    page.wait_for_selector(hook("attr-error-group"))
    page.fill(hook("attr-field-strides"), "1, x")
    assert page.is_visible(hook("attr-error-strides"))


def problem(page: Page) -> None:
    """An edit with consequences, in the problems panel and at the node."""
    reveal(page, "Conv", 5)
    page.fill(hook("attr-field-strides"), "1, 1, 1")
    page.keyboard.press("Enter")
    page.click(hook("status-problems"))
    page.wait_for_selector(hook("problems-item"))
    assert page.is_visible(hook("node-diagnostic"))


def undone(page: Page) -> None:
    """Ctrl+Z in a field that was committed undoes the model."""
    reveal(page, "Conv")
    page.fill(hook("attr-field-strides"), "1, 1")
    page.keyboard.press("Enter")
    page.wait_for_selector(f'{hook("toolbar-undo")}:not(:disabled)')
    page.focus(hook("attr-field-strides"))
    page.keyboard.press("Control+z")
    page.wait_for_selector(f'{hook("toolbar-redo")}:not(:disabled)')
    assert page.input_value(hook("attr-field-strides")) == "2, 2"


def documentation(page: Page) -> None:
    """The operator's documentation, as text."""
    reveal(page, "Conv")
    page.click(hook("doc-toggle"))
    page.wait_for_selector(hook("doc-text"))


def results(page: Page) -> None:
    """After a run, a NaN among the values."""
    page.evaluate(f"{APP}.select([...lab.model.nodes.keys()].slice(0, 45))")
    page.click(hook("toolbar-run"))
    page.wait_for_selector(hook("drawer-results"))
    page.evaluate(f"{APP}.revealValue(lab.model.nodes.get({node_of(page, 'Conv', 2)}).outputs[0])")
    page.wait_for_selector(hook("inspector-value"))


def running(page: Page) -> None:
    """In the middle of a run."""
    page.click(hook("toolbar-run"))
    page.wait_for_selector(hook("toolbar-stop"))
    page.wait_for_timeout(300)


def search(page: Page) -> None:
    """Typing in the search box."""
    page.focus(".onnxlab")
    page.keyboard.press("Control+f")
    page.keyboard.type("layer3 conv2")
    page.wait_for_selector(hook("search-result"))


def found(page: Page) -> None:
    """A hit revealed."""
    search(page)
    page.keyboard.press("Enter")
    page.wait_for_selector(f'{hook("inspector-node")} .ol-section')


def menu(page: Page) -> None:
    """The context menu over a node."""
    target = reveal(page, "Add", 2)
    page.evaluate(f"{APP}.menu.value = {{node: {target}, value: 0, group: 0, x: 380, y: 250}}")
    page.wait_for_selector(hook("context-menu"))


def several(page: Page) -> None:
    """Several nodes selected."""
    page.evaluate(f"{APP}.select([...lab.model.nodes.keys()].slice(3, 12))")


def body(page: Page) -> None:
    """Inside a branch of an If."""
    reveal(page, "If")
    page.click(hook("body-link-0"))
    page.wait_for_selector(hook("breadcrumb-1"))


def busy(page: Page) -> None:
    """A kernel that does not answer, and a refusal with details."""
    reveal(page, "Conv")
    page.fill(hook("node-name-field"), "first")
    page.keyboard.press("Enter")
    page.wait_for_selector(f'{hook("toolbar-undo")}:not(:disabled)')
    page.evaluate("lab.kernel.setBusy(true)")
    page.click(hook("toolbar-undo"))
    page.evaluate(
        f"{APP}.toast('error', 'The model has no path yet.', "
        "'Save it once from Python with model.save(path); then this button writes there.')"
    )
    page.wait_for_selector(hook("banner"))
    page.click(hook("toast-more"))


def gone(page: Page) -> None:
    """A kernel that went away: the picture stays, editing ends."""
    reveal(page, "Conv")
    page.evaluate("lab.kernel.die()")
    page.wait_for_selector(hook("banner"))
    assert page.is_disabled(hook("attr-field-strides"))
    assert page.is_disabled(hook("toolbar-run"))


STATES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "overview": ("", overview),
    "node": ("", node),
    "problem": ("", problem),
    "undone": ("", undone),
    "documentation": ("", documentation),
    "results": ("", results),
    "running": ("", running),
    "search": ("", search),
    "found": ("", found),
    "menu": ("", menu),
    "several": ("", several),
    "body": ("", body),
    "busy": ("", busy),
    "gone": ("", gone),
    "small": ("&model=small", overview),
    "deep": ("&model=deep", overview),
    "empty": ("&model=empty", overview),
    "hostile": ("&model=hostile", several),
    "loading": ("&silent=1", overview),
    "base64": ("&binary=no", overview),
}


@contextmanager
def opened(browser: Browser, query: str, width: int = 1200) -> Iterator[Page]:
    """A page that must not raise, log an error, or leave anything behind when its views end."""
    page = browser.new_page(viewport={"width": width, "height": 660})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: complaints.append(f"a script ran: {dialog.message}"))
    page.add_init_script(COUNT_LISTENERS)
    page.goto(f"{PAGE}?{query}")
    if "silent" not in query:
        page.wait_for_selector(f'{hook("status-size")}:has-text("node")')
        page.wait_for_timeout(300)
    yield page
    page.evaluate("lab.ends.forEach((end) => end())")
    page.wait_for_timeout(50)
    left = page.evaluate("[...globalListeners]")
    assert not left, f"listeners left behind: {left}"
    assert page.evaluate("document.querySelector('.onnxlab')") is None
    assert not complaints, complaints
    page.close()


COUNT_LISTENERS = """
window.globalListeners = new Set();
for (const target of [window, document]) {
  const { addEventListener: add, removeEventListener: remove } = target;
  const key = (type, listener) => `${type} ${String(listener).slice(0, 80)}`;
  target.addEventListener = (type, listener, options) => {
    const driver = /_hitTargetInterceptor|playwright|seenEvent/.test(type + listener);
    if (!driver && !options?.once && !options?.signal) globalListeners.add(key(type, listener));
    add.call(target, type, listener, options);
  };
  target.removeEventListener = (type, listener, options) => {
    globalListeners.delete(key(type, listener));
    remove.call(target, type, listener, options);
  };
}
"""


def main(names: list[str]) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for theme in ("light", "dark"):
            for name, (query, act) in STATES.items():
                if names and name not in names:
                    continue
                with opened(browser, f"theme={theme}{query}") as page:
                    act(page)
                    page.wait_for_timeout(350)
                    page.screenshot(path=SCREENS / f"{name}-{theme}.png")
                print(f"{name}-{theme}")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
