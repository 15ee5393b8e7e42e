"""One JupyterLab, one Chromium and one page for all tests of this folder; a notebook and a kernel for each test.

Loading the page takes longer than most tests. One that has to change the page before it is loaded asks for `fresh_lab`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.support.jupyter import Jupyter, chromium
from tests.browser.support.lab import FLAGS, Lab

VIEWPORT = {"width": 1400, "height": 1000}


@pytest.hookimpl(tryfirst=True)  # before -m reads the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here drives a browser."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
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


def new_context(browser: Browser) -> BrowserContext:
    """A browser profile without history."""
    profile = browser.new_context(viewport=VIEWPORT)
    profile.grant_permissions(["clipboard-read", "clipboard-write"])
    return profile


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of the test's own."""
    fresh = new_context(browser)
    yield fresh
    fresh.close()


@pytest.fixture(scope="session")
def pages(browser: Browser) -> Iterator[list[Lab]]:
    """The page that tests share, where there is one: a test that fails takes it along."""
    labs: list[Lab] = []
    yield labs
    for lab in labs:
        lab.page.context.close()


@pytest.fixture
def lab(pages: list[Lab], browser: Browser, jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A page of JupyterLab; its kernels end with the test, and an uncaught exception of the page fails it."""
    shared = pages.pop() if pages else Lab(new_context(browser), jupyter)
    yield shared
    if _failed(shared, request.node):
        shared.page.context.close()
        jupyter.settle()
        return
    errors = list(shared.errors)
    shared.leave()
    pages.append(shared)
    assert errors == [], f"the page threw: {errors}"


@pytest.fixture
def fresh_lab(context: BrowserContext, jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A page of JupyterLab for one test alone."""
    opened = Lab(context, jupyter)
    yield opened
    _failed(opened, request.node)
    errors = list(opened.errors)
    opened.page.close()
    jupyter.settle()
    assert errors == [], f"the page threw: {errors}"


def _failed(lab: Lab, item: pytest.Item) -> bool:
    """Whether the test failed; then what the page shows is kept."""
    failed = item.stash.get(_FAILED, False)
    if failed:
        lab.screenshot(Path("build/screens/failed") / f"{item.name}.png")
    return failed


_FAILED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed  # type: ignore[attr-defined]
    return report
