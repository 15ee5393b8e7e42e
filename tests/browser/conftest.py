"""One JupyterLab and one Chromium for all tests of this folder; a page and a kernel for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.jupyter import Jupyter, chromium
from tests.browser.lab import FLAGS, Lab

VIEWPORT = {"width": 1400, "height": 1000}


@pytest.hookimpl(tryfirst=True)  # before -m reads the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here drives a browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """A JupyterLab that serves a folder of its own."""
    server = Jupyter(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile without history."""
    found = browser.new_context(viewport=VIEWPORT)
    found.grant_permissions(["clipboard-read", "clipboard-write"])
    yield found
    found.close()


@pytest.fixture
def lab(context: BrowserContext, jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A page of JupyterLab; its kernels end with the test, and an uncaught exception of the page fails it."""
    found = Lab(context, jupyter)
    yield found
    if request.node.stash.get(_FAILED, False):
        found.screenshot(Path("build/screens/failed") / f"{request.node.name}.png")
    errors = list(found.errors)
    found.page.close()
    jupyter.settle()
    assert errors == [], f"the page threw: {errors}"


_FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report
