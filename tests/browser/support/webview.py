"""A page that hosts the widget as VS Code's notebooks do, with a real kernel and without VS Code.

VS Code itself cannot be driven here, but what a widget meets in it can be had: the ipywidgets that Microsoft's Jupyter
extension carries is a package of npm (`@vscode/jupyter-ipywidgets8`), anywidget's AMD module lies in the kernel's
environment, and what the editor and the extension lay around both is little: classes and variables of the theme,
style rules for tables, links and focus, JupyterLab's *light* colors on the root whatever the theme, keys that bubble
up to the window (`widgets/dev/webview.ts` and `.html`).

What stays untried: the editor's own shortcuts, its frame around the page, and its passing on of messages.
"""

import mimetypes
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Route

from tests.browser.support.jupyter import REPOSITORY, Jupyter
from tests.browser.support.lab import SECONDS, Widget

NBEXTENSIONS = Path(sys.prefix) / "share" / "jupyter" / "nbextensions"
# Greetings that the extension's ipywidgets prints as errors.
_GREETINGS = ("Load ipywidgets8", "Activating ipywidgets8", "call activate in ipywidgets8", "Initializing ipywidgets8")

# The default themes: "Dark Modern", "Light Modern" and "Dark High Contrast".
THEMES: dict[str, dict[str, str]] = {
    "vscode-dark": {
        "editor-background": "#1f1f1f", "editor-foreground": "#cccccc", "focusBorder": "#0078d4",
        "foreground": "#cccccc", "textLink-foreground": "#4daafc", "textPreformat-foreground": "#d0d0d0",
        "input-background": "#313131",
    },
    "vscode-light": {
        "editor-background": "#ffffff", "editor-foreground": "#3b3b3b", "focusBorder": "#005fb8",
        "foreground": "#3b3b3b", "textLink-foreground": "#005fb8", "textPreformat-foreground": "#3b3b3b",
        "input-background": "#ffffff",
    },
    "vscode-high-contrast": {
        "editor-background": "#000000", "editor-foreground": "#ffffff", "focusBorder": "#f38518",
        "foreground": "#ffffff", "textLink-foreground": "#21a6ff", "textPreformat-foreground": "#ffffff",
        "contrastBorder": "#6fc3df",
    },
}  # fmt: skip
_FONTS = {
    "font-family": '"Segoe WPC", "Segoe UI", sans-serif', "font-size": "13px", "font-weight": "normal",
    "editor-font-family": '"Droid Sans Mono", monospace', "editor-font-size": "14px",
}  # fmt: skip
_SET_THEME = """([kind, variables]) => {
    document.documentElement.removeAttribute('style');
    for (const [name, value] of Object.entries(variables)) {
        document.documentElement.style.setProperty(`--vscode-${name}`, value);
    }
    document.body.className = kind;
    document.body.dataset.vscodeThemeKind = kind;
}"""


class Webview:
    """One page with a kernel of its own.

    Attributes:
        page: Playwright's.
        errors: uncaught exceptions of the page and what it prints as errors.
    """

    def __init__(
        self, context: BrowserContext, jupyter: Jupyter, theme: str = "vscode-light", text_only: bool = False
    ) -> None:
        """Open the page; with `text_only` it loses what messages carry beside their text, as Colab does."""
        self.jupyter = jupyter
        self.errors: list[str] = []
        self._files = jupyter.folder / "webview"
        script = REPOSITORY / "widgets" / "dev" / "webview.mjs"
        subprocess.run(["node", str(script), str(self._files)], check=True, timeout=60)
        context.grant_permissions(["local-network-access"], origin=jupyter.url)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(SECONDS)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)
        self.page.route(f"{jupyter.url}/webview/**", self._serve)
        kernel = jupyter.take_kernel()
        query = f"token={jupyter.token}&kernel={kernel}" + ("&text" if text_only else "")
        self.page.goto(f"{jupyter.url}/webview/index.html?{query}")
        self.theme(theme)
        self.page.wait_for_function("() => window.webview")

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_GREETINGS):
            self.errors.append(message.text)

    def _serve(self, route: Route) -> None:
        """Files of the page; modules of widgets from the environment in which the kernel runs."""
        name = route.request.url.partition("?")[0].partition("/webview/")[2]
        module = name.removeprefix("nbextensions/")
        path = self._files / name if module == name else NBEXTENSIONS / module
        if path.is_file():
            route.fulfill(path=path, content_type=mimetypes.guess_type(path)[0] or "text/plain")
        else:
            route.fulfill(status=404)

    def theme(self, kind: str) -> None:
        """Switch to a theme of `THEMES`, as the editor does: variables on the root, class and kind on the body."""
        self.page.evaluate(_SET_THEME, [kind, {**_FONTS, **THEMES[kind]}])

    def run(self, code: str) -> str:
        """Execute code in a new cell, wait until its outputs are shown, and return what it printed."""
        reply: dict[str, Any] = self.page.evaluate("code => window.webview.run(code)", code)
        assert not reply["error"], reply["error"]
        return str(reply["text"])

    def widget(self) -> Widget:
        """The widget of the page, once its first picture is drawn."""
        root = self.page.get_by_test_id("onnxlab-root")
        root.wait_for(state="attached")
        shown = Widget(self.page, root)
        shown.wait_drawn()
        return shown

    def heard(self) -> list[str]:
        """Keys that came through to the editor since the last time; it would act on them."""
        return list(self.page.evaluate("() => window.webview.heard.splice(0)"))

    def screenshot(self, path: Path) -> None:
        """Save what the page shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
