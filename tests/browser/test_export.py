"""The exported page, opened from the disk: it folds, searches and inspects, makes no requests, and offers no edits."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

import onnxlab
from tests.support.corpus import Corpus


@pytest.fixture
def page(context: BrowserContext, corpus: Corpus, tmp_path: Path) -> Iterator[Page]:
    """bert_base as a page, without a network."""
    context.set_offline(True)
    shown = context.new_page()
    errors: list[str] = []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto(onnxlab.load(corpus["bert_base"]).to_html(tmp_path / "bert.html").as_uri())
    shown.wait_for_function(
        "() => document.querySelector('.onnxlab')?.__onnxlab?.view?.debug().boxes.length > 0", timeout=30_000
    )
    yield shown
    assert errors == []


def test_an_exported_page_explores_without_a_kernel(page: Page) -> None:
    root = page.get_by_test_id("onnxlab-root")
    before = root.evaluate("root => root.__onnxlab.view.debug().boxes.length")
    root.get_by_test_id("search-input").fill("node_embedding_1")
    root.get_by_test_id("search-input").press("Enter")
    root.get_by_test_id("inspector-node").wait_for()
    assert root.evaluate("root => root.__onnxlab.app.picked.nodes.length") == 1
    root.evaluate("root => root.__onnxlab.view.foldAll()")
    page.wait_for_function(
        "before => document.querySelector('.onnxlab').__onnxlab.view.debug().boxes.length !== before", arg=before
    )
    assert root.get_by_test_id("toolbar-run").count() == 0
    assert root.get_by_test_id("banner").count() == 0
    page.screenshot(path="build/screens/export.png")
