"""A page of JupyterLab with a notebook, and the widget in it, driven as a user would."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page

from tests.browser.support.jupyter import Jupyter

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 60_000
"""Milliseconds that anything may take before a test fails."""

READY = """(name) => {
    const panel = window.jupyterapp?.shell.currentWidget;
    if (!panel?.sessionContext?.isReady || !panel.content?.widgets?.length) return false;
    if (name && panel.context.path !== name) return false;
    const kernel = panel.sessionContext.session?.kernel;
    return kernel?.status === 'idle';
}"""

# No dialog asks whether to save.
_CLOSE = """() => {
    for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
        if (widget.context) widget.context.model.dirty = false;
        widget.close();
    }
}"""
_CLOSED = "() => ![...window.jupyterapp.shell.widgets('main')].some((widget) => widget.context)"
LIGHT = "JupyterLab Light"


class Lab:
    """One page of JupyterLab.

    Attributes:
        page: Playwright's.
        errors: uncaught exceptions of the page, as text.
    """

    def __init__(self, context: BrowserContext, jupyter: Jupyter) -> None:
        self.jupyter = jupyter
        self.page: Page = context.new_page()
        self.page.set_default_timeout(SECONDS)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.console: list[str] = []
        self.page.on("console", self._note)
        self._loaded = False
        self._theme = LIGHT

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.console.append(f"{message.type}: {message.text}")

    # -- notebook -------------------------------------------------------------------------------------------

    def open(self, name: str, cells: Sequence[str] | None = None) -> "Lab":
        """Open a notebook and wait for its kernel.

        With cells the notebook is written first and opened in the present page; without, the page is loaded anew.
        """
        if cells is not None:
            self.jupyter.write(name, cells)
        if cells is None or not self._loaded:
            self.page.goto(f"{self.jupyter.url}/lab/tree/{name}?reset&token={self.jupyter.token}")
            self._loaded = True
        else:
            kernel = {"id": self.jupyter.take_kernel()}
            self.command("docmanager:open", {"path": name, "factory": "Notebook", "kernel": kernel})
        self.wait_ready(name)
        return self

    def leave(self) -> None:
        """Close all documents and end their kernels; the page can be used again."""
        self.page.evaluate(_CLOSE)
        self.page.wait_for_function(_CLOSED, polling=50)
        if self._theme != LIGHT:
            self.theme(LIGHT)
        self.jupyter.settle()
        self.errors.clear()

    def wait_ready(self, name: str = "") -> None:
        """Wait until the kernel of the current notebook, which must be this one, is idle."""
        self.page.wait_for_function(READY, arg=name, polling=50)

    def command(self, name: str, arguments: Any = None) -> None:
        """Execute one of JupyterLab's commands, once it is registered, and wait for it."""
        self.page.wait_for_function("name => window.jupyterapp.commands.hasCommand(name)", arg=name)
        # What a command returns may be a whole document: Playwright would take seconds to put that into JSON.
        execute = "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args ?? {}); }"
        self.page.evaluate(execute, [name, arguments])

    def run_all(self) -> None:
        """Run every cell and wait for the last one."""
        self.command("notebook:run-all-cells")
        self.wait_ready()

    def add_cell(self, code: str) -> None:
        """Append a cell, select it and run it, without waiting."""
        self.page.evaluate(
            """async (code) => {
                const panel = window.jupyterapp.shell.currentWidget, notebook = panel.content;
                notebook.activeCellIndex = notebook.widgets.length - 1;
                await window.jupyterapp.commands.execute('notebook:insert-cell-below');
                notebook.activeCell.model.sharedModel.setSource(code);
                void window.jupyterapp.commands.execute('notebook:run-cell');
            }""",
            code,
        )

    def wait_executed(self) -> None:
        """Wait until the last cell has been executed; the kernel's status would count the widget's messages too."""
        self.page.wait_for_function(
            """() => {
                const cells = window.jupyterapp.shell.currentWidget.content.widgets;
                return cells[cells.length - 1].model.executionCount > 0;
            }""",
            polling=50,
        )

    def python(self, code: str) -> Any:
        """Run code in the kernel in a new last cell and return the JSON that it prints last."""
        self.add_cell(code)
        self.wait_executed()
        texts = self.cell_outputs(-1)
        if any(output.get("output_type") == "error" for output in texts):
            raise AssertionError(f"the cell failed: {texts}")
        streams = "".join(output["text"] for output in texts if output.get("name") == "stdout").strip()
        return json.loads(streams.splitlines()[-1]) if streams else None

    def cell_outputs(self, index: int) -> list[dict[str, Any]]:
        """Outputs of a cell, as nbformat has them."""
        return self.page.evaluate(
            """(index) => {
                const cells = window.jupyterapp.shell.currentWidget.content.widgets;
                const cell = cells[index < 0 ? cells.length + index : index];
                const outputs = cell.model.outputs;
                return Array.from({length: outputs?.length ?? 0}, (_, i) => outputs.get(i).toJSON());
            }""",
            index,
        )

    def theme(self, name: str) -> None:
        """Switch JupyterLab's theme, "JupyterLab Light" or "JupyterLab Dark"."""
        self.command("apputils:change-theme", {"theme": name})
        self._theme = name
        dark = "false" if "Dark" in name else "true"
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=dark)

    # -- widget ---------------------------------------------------------------------------------------------

    def widget(self, number: int = 0) -> "Widget":
        """The n-th widget on the page, once its first picture is drawn."""
        root = self.page.get_by_test_id("onnxlab-root").nth(number)
        root.wait_for(state="attached")
        shown = Widget(self.page, root)
        shown.wait_drawn()
        return shown

    def screenshot(self, path: Path) -> None:
        """Save what the page shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)


class Widget:
    """The widget in a page; `handle` is what it offers to tests, see mount.tsx."""

    def __init__(self, page: Page, root: Locator) -> None:
        self.page = page
        self.root = root

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Evaluate `(handle, argument) => …` in the page."""
        return self.root.evaluate(f"(root, argument) => ({script})(root.__onnxlab, argument)", argument)

    def wait(self, script: str, argument: Any = None, timeout: float = SECONDS) -> None:
        """Wait until `(handle, argument) => …` is true."""
        until = time.monotonic() + timeout / 1000
        while not self.evaluate(script, argument):
            if time.monotonic() > until:
                raise AssertionError(f"not within {timeout / 1000:g} s: {script} with {argument!r}")
            self.page.wait_for_timeout(20)

    def wait_drawn(self) -> None:
        """Wait until the model has arrived and is laid out."""
        self.wait("handle => handle?.view?.debug().frames > 0 && handle.view.debug().boxes.length > 0")

    def get(self, testid: str) -> Locator:
        """An element of the widget by its test id."""
        return self.root.get_by_test_id(testid)

    @property
    def version(self) -> int:
        return int(self.evaluate("handle => handle.store.version"))

    def node(self, name: str) -> int:
        """Id of the node with a name (or the name of its first output)."""
        ident = self.evaluate(
            """(handle, name) => {
                for (const node of handle.store.nodes.values()) {
                    if (node.name === name) return node.id;
                    const value = handle.store.values.get(node.outputs[0]);
                    if (value?.name === name) return node.id;
                }
                return 0;
            }""",
            name,
        )
        assert ident, f"the widget knows no node {name!r}"
        return int(ident)

    def label(self, value: str) -> str:
        """The label of a value in the picture."""
        return str(
            self.evaluate(
                """(handle, name) =>
                    [...handle.store.values.values()].find((value) => value.name === name)?.label ?? ''""",
                value,
            )
        )

    def labels(self) -> dict[str, str]:
        """Every label, by value name."""
        return self.evaluate(
            "handle => Object.fromEntries([...handle.store.values.values()].map((value) => [value.name, value.label]))"
        )

    # -- the picture ----------------------------------------------------------------------------------------

    def debug(self) -> dict[str, Any]:
        """The screen in pixels of the page: boxes, labels, zoom."""
        return self.evaluate("handle => handle.view.debug()")

    def box(self, ident: int, kind: str = "node") -> dict[str, Any] | None:
        """The box of a node (or group, input, output) if it shows, folded or not."""
        boxes = self.debug()["boxes"]
        return next((box for box in boxes if box["id"] == ident and box["kind"] == kind), None)

    def reveal(self, node: int) -> None:
        """Open the groups around a node and bring it into view."""
        self.evaluate("(handle, node) => handle.view.reveal(node)", node)
        self.wait(
            "(handle, node) => handle.view.debug().boxes.some((box) => box.kind === 'node' && box.id === node)", node
        )
        self.settle()

    def settle(self) -> None:
        """Wait until the picture has stopped moving."""
        before, until = None, time.monotonic() + 10
        while time.monotonic() < until:
            now = [(box["x"], box["y"]) for box in self.debug()["boxes"]]
            if now == before:
                return
            before = now
            self.page.wait_for_timeout(80)
        raise AssertionError("the picture did not come to rest within 10 s")

    def click(self, node: int, modifiers: Sequence[Any] = ()) -> None:
        """Click in the middle of a node's box."""
        box = self.box(node)
        assert box is not None, f"node {node} does not show"
        self.root.scroll_into_view_if_needed()
        box = self.box(node) or box
        for key in modifiers:
            self.page.keyboard.down(key)
        self.page.mouse.click(box["x"] + box["w"] / 2, box["y"] + box["h"] / 2)
        for key in modifiers:
            self.page.keyboard.up(key)

    def selection(self) -> list[int]:
        """Ids of the selected nodes."""
        return self.evaluate("handle => handle.app.picked.nodes")

    def select(self, node: int) -> None:
        """Bring a node into view, click it, and wait for its inspector.

        On a busy machine the page scrolls or the picture makes room while the pointer moves; a person then
        aims again, and so does this.
        """
        selected = "(handle, node) => handle.app.picked.nodes.length === 1 && handle.app.picked.nodes[0] === node"
        for patience in (3000, 6000, SECONDS):
            self.reveal(node)
            self.click(node)
            try:
                self.wait(selected, node, patience)
                break
            except AssertionError:
                if patience == SECONDS:
                    self.page.screenshot(path=Path("build/screens/failed_selection.png"))
                    raise
        self.root.locator(f'[data-testid="inspector-node"][data-node="{node}"]').wait_for()

    def set_field(self, attribute: str, text: str) -> None:
        """Type into the field of an attribute and press Enter."""
        field = self.get(f"attr-field-{attribute}")
        field.fill(text)
        field.press("Enter")

    def press(self, key: str) -> None:
        """Press a key with the focus in the picture."""
        self.root.focus()
        self.page.keyboard.press(key)

    def wait_label(self, value: str, label: str) -> None:
        """Wait until a value's label is this one and a frame has shown it."""
        frames = self.debug()["frames"]
        self.wait(
            """(handle, [name, label]) =>
                [...handle.store.values.values()].some((value) => value.name === name && value.label === label)""",
            [value, label],
        )
        self.wait("(handle, frames) => handle.view.debug().frames > frames", frames - 1)

    def wait_version(self, version: int) -> None:
        """Wait until the view shows a version of the model."""
        self.wait("(handle, version) => handle.store.version === version", version)

    def run(self) -> dict[str, dict[str, Any]]:
        """Press Run, wait for the results, and return the statistics by value name."""
        self.evaluate("handle => { handle.app.runs.results.value = null; }")
        self.get("toolbar-run").click()
        self.wait(
            "({app}) => app.runs.results.value !== null || app.notices.toasts.value.some(({kind}) => kind === 'error')"
        )
        values = self.evaluate("handle => handle.app.runs.results.value?.values ?? null")
        assert values is not None, self.toasts()
        return {value["name"]: value for value in values}

    def toasts(self) -> list[str]:
        """The texts of the notices."""
        return self.evaluate("handle => handle.app.notices.toasts.value.map((toast) => toast.text)")
