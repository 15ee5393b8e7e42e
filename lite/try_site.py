"""Open the built site in Chromium from a local server, draw, edit, run and undo there: `python lite/try_site.py`.

Fails on any request to another host. The figures are printed.
"""

import argparse
import functools
import http.server
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, Request, Response, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.hosts.test_hosts import edit_undo_run, wait_theme  # noqa: E402  after the path is set
from tests.browser.support.hosts import only_widget, set_theme  # noqa: E402
from tests.browser.support.jupyter import chromium  # noqa: E402
from tests.browser.support.lab import FLAGS  # noqa: E402

PATIENCE = 300_000
"""Milliseconds: a browser compiles some 30 MB before the first model is drawn."""
CELL = "import onnxlab\nmodel = onnxlab.load()\nmodel"
_NEW = """async (code) => {
    const app = window.jupyterapp;
    const panel = await app.commands.execute('notebook:create-new', { kernelName: 'python' });
    await panel.sessionContext.ready;
    panel.content.activeCell.model.sharedModel.setSource(code);
    void app.commands.execute('notebook:run-all-cells');
}"""
_AGAIN = """async () => {
    const app = window.jupyterapp, panel = app.shell.currentWidget;
    const future = panel.sessionContext.session.kernel.requestExecute({ code: 'onnxlab.load()' });
    await future.done;
}"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files with the types that browsers ask for."""

    extensions_map = {  # noqa: RUF012  the base class declares it for instances
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the library
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; gives the address."""
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def drive(page: Page, url: str) -> None:
    """Draw, edit, undo, run, in both themes."""
    started = time.monotonic()
    page.goto(f"{url}/lab/index.html")
    page.wait_for_function("() => window.jupyterapp?.commands.hasCommand('notebook:create-new')")
    page.evaluate(_NEW, CELL)
    widget = only_widget(page)
    print(f"page to picture: {time.monotonic() - started:.1f} s")
    edit_undo_run(widget)
    started = time.monotonic()
    page.evaluate(_AGAIN)
    print(f"second model: {time.monotonic() - started:.2f} s")
    set_theme(page, "dark")
    wait_theme(only_widget(page), "dark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive the site; 1 where it asked another host for anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "build" / "lite")
    site = parser.parse_args(arguments).site
    outside: list[str] = []
    sizes: list[int] = []
    with served(site) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(PATIENCE)

        def on_request(request: Request) -> None:
            if not request.url.startswith((url, "data:", "blob:")):
                outside.append(request.url)

        def on_response(response: Response) -> None:
            sizes.append(int(response.headers.get("content-length", 0)))

        page.context.on("request", on_request)
        page.context.on("response", on_response)
        try:
            drive(page, url)
        finally:
            page.screenshot(path=ROOT / "build" / "lite.png")
            browser.close()
    print(f"loaded: {sum(sizes) / 1e6:.1f} MB")
    if outside:
        print("requests to other hosts:", *sorted(set(outside)), sep="\n  ", file=sys.stderr)
    return int(bool(outside))


if __name__ == "__main__":
    sys.exit(main())
