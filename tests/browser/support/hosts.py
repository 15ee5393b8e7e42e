"""Places that show the widget, each opened with the packaged model, and switched to a light or dark theme."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import BrowserContext, Page

from tests.browser.support.jupyter import REPOSITORY, START_SECONDS, Jupyter, free_port
from tests.browser.support.lab import READY, SECONDS, Widget
from tests.browser.support.webview import Webview

CELL = "import onnxlab\nmodel = onnxlab.load()\nmodel"
_THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
_MARIMO = """import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import onnxlab

    model = onnxlab.load()
    model
    return
"""


class Host(Protocol):
    """A place that shows the widget.

    Attributes:
        page: Playwright's.
    """

    page: Page

    def show(self, theme: str) -> Widget:
        """The widget, in the theme "light" or "dark"; the second call need not give the same view."""


class JupyterPage:
    """A notebook in JupyterLab ("lab/tree") or Notebook 7 ("notebooks")."""

    def __init__(self, context: BrowserContext, jupyter: Jupyter, place: str) -> None:
        self.page = opened_page(context)
        name = f"{place.partition('/')[0]}_host.ipynb"
        jupyter.write(name, [CELL])
        self.page.goto(f"{jupyter.url}/{place}/{name}?token={jupyter.token}")
        self.page.wait_for_function(READY, arg=name, polling=50)
        self.page.evaluate("async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); }")

    def show(self, theme: str) -> Widget:
        set_theme(self.page, theme)
        return only_widget(self.page)


class VoilaPage:
    """A notebook as a page of Voilà, which runs it and asks for the theme in the address."""

    def __init__(self, context: BrowserContext, jupyter: Jupyter) -> None:
        self.page = opened_page(context)
        jupyter.write("voila_host.ipynb", [CELL])
        self._address = f"{jupyter.url}/voila/render/voila_host.ipynb?token={jupyter.token}"

    def show(self, theme: str) -> Widget:
        self.page.goto(f"{self._address}&theme={theme}")
        return only_widget(self.page)


class MarimoPage:
    """A marimo app: each widget is in a shadow root of its own."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page = opened_page(context)
        self.page.goto(url)

    def show(self, theme: str) -> Widget:
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        return only_widget(self.page)


class WebviewPage:
    """A notebook of VS Code, or of Colab, which marks its theme on the root and loses buffers: see `webview.py`."""

    def __init__(self, view: Webview, colab: bool) -> None:
        self.page, self._view, self._colab = view.page, view, colab
        view.run(CELL)

    def show(self, theme: str) -> Widget:
        if self._colab:
            set_theme = """(theme) => {
                delete document.body.dataset.vscodeThemeKind;
                document.documentElement.removeAttribute('style');
                document.documentElement.setAttribute('theme', theme);
                document.body.style.background = theme === 'dark' ? '#383838' : '#ffffff';
            }"""
            self.page.evaluate(set_theme, theme)
        else:
            self._view.theme(f"vscode-{theme}")
        return self._view.widget()


def set_theme(page: Page, theme: str) -> None:
    """Switch a page of JupyterLab or Notebook to "light" or "dark"."""
    page.wait_for_function("() => window.jupyterapp.commands.hasCommand('apputils:change-theme')")
    change = "async (theme) => { await window.jupyterapp.commands.execute('apputils:change-theme', { theme }); }"
    page.evaluate(change, _THEMES[theme])


def opened_page(context: BrowserContext) -> Page:
    """An empty page that waits as long as the tests do."""
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    return page


def only_widget(page: Page) -> Widget:
    """The widget of a page, once its first picture is drawn."""
    root = page.get_by_test_id("onnxlab-root")
    root.wait_for(state="attached")
    shown = Widget(page, root)
    shown.wait_drawn()
    return shown


@contextmanager
def marimo_app(folder: Path) -> Iterator[str]:
    """A running marimo app; gives its address."""
    (folder / "config" / "marimo").mkdir(parents=True)
    (folder / "config" / "marimo" / "marimo.toml").write_text('[display]\ntheme = "system"\n')
    (folder / "app.py").write_text(_MARIMO)
    places = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "PYTHONPATH": str(REPOSITORY)}
    port = free_port()
    command = [sys.executable, "-m", "marimo", "run", "app.py", "--headless", "--no-token", f"--port={port}"]
    with (folder / "marimo.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **places}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait(20)


def wait_for(address: str, process: "subprocess.Popen[Any]") -> None:
    """Wait until a server answers.

    Raises:
        RuntimeError: it ended, or did not answer in time.
    """
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing answered at {address} within {START_SECONDS} s")


@contextmanager
def opened(name: str, context: BrowserContext, jupyter: Jupyter, folder: Path) -> Iterator[Host]:
    """One of the hosts of `docs/hosts.md`, by its name there."""
    if name == "marimo":
        with marimo_app(folder) as url:
            yield MarimoPage(context, url)
    elif name in ("VS Code", "Colab"):
        view = Webview(context, jupyter, text_only=name == "Colab")
        yield WebviewPage(view, name == "Colab")
        assert view.errors == []
    elif name == "Voilà":
        yield VoilaPage(context, jupyter)
    else:
        yield JupyterPage(context, jupyter, {"JupyterLab 4": "lab/tree", "Notebook 7": "notebooks"}[name])
