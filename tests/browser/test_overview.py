"""The first look at a model: all of it, large enough to read; a double-click enters a group, Escape leaves it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import onnxlab
from tests.support.corpus import Corpus

READY = "() => document.querySelector('.onnxlab')?.__onnxlab?.view?.debug().boxes.length > 0"
DEBUG = "() => document.querySelector('.onnxlab').__onnxlab.view.debug()"


@pytest.fixture
def page(browser: Browser, corpus: Corpus, tmp_path: Path) -> Iterator[Page]:
    """light_resnet50, whose nodes have no names, as a page."""
    shown = browser.new_page(viewport={"width": 1440, "height": 900})
    shown.goto(onnxlab.load(corpus["light_resnet50"]).to_html(tmp_path / "model.html").as_uri())
    shown.wait_for_function(READY, timeout=60_000)
    shown.wait_for_timeout(300)
    yield shown
    shown.close()


def box_of(page: Page, group: int) -> dict[str, Any]:
    """The box or frame of a group."""
    boxes = page.evaluate(DEBUG)["boxes"]
    box: dict[str, Any] = next(box for box in boxes if box["id"] == group and box["kind"] in ("group", "frame"))
    return box


def test_all_of_a_model_can_be_read_at_first(page: Page) -> None:
    state = page.evaluate(DEBUG)
    canvas = state["canvas"]
    assert state["smallestText"] >= 11
    assert all(canvas["x"] <= box["x"] and box["x"] + box["w"] <= canvas["x"] + canvas["w"] for box in state["boxes"])
    assert all(canvas["y"] <= box["y"] and box["y"] + box["h"] <= canvas["y"] + canvas["h"] for box in state["boxes"])
    stages = [box for box in state["boxes"] if box["label"].startswith("stage")]
    assert sorted((box["label"], box["units"]) for box in stages) == [
        ("stage 1", 3),
        ("stage 2", 4),
        ("stage 3", 6),
        ("stage 4", 3),
    ]
    assert {box["about"] for box in stages} == {"residual block"}


def test_a_double_click_enters_a_group_and_escape_goes_back(page: Page) -> None:
    before = page.evaluate(DEBUG)
    folded = next(box for box in before["boxes"] if box["kind"] == "group")
    page.mouse.dblclick(folded["x"] + 40, folded["y"] + 20)
    page.wait_for_function(
        f"(id) => ({DEBUG})().boxes.some((box) => box.id === id && box.kind === 'frame')", arg=folded["id"]
    )
    page.wait_for_timeout(400)
    entered, canvas, zoom = box_of(page, folded["id"]), before["canvas"], page.evaluate(DEBUG)["zoom"]
    is_large = entered["h"] > 0.5 * canvas["h"] or entered["w"] > 0.5 * canvas["w"]
    assert is_large or zoom == pytest.approx(1.25), "it fills the canvas, or is as large as cards are shown"
    assert zoom > before["zoom"]
    assert entered["x"] + entered["w"] / 2 == pytest.approx(canvas["x"] + canvas["w"] / 2, abs=2)
    page.keyboard.press("Escape")
    page.wait_for_function(f"(zoom) => Math.abs(({DEBUG})().zoom - zoom) < 1e-6", arg=before["zoom"])
    after = box_of(page, folded["id"])
    assert after["kind"] == "group"
    assert (after["x"], after["y"]) == pytest.approx((folded["x"], folded["y"]), abs=2)


def test_space_on_an_empty_spot_does_not_scroll(page: Page) -> None:
    page.get_by_test_id("inspector-model").click(position={"x": 5, "y": 5})
    prevented = page.evaluate(
        """() => {
            const event = new KeyboardEvent('keydown', {key: ' ', bubbles: true, cancelable: true, composed: true});
            document.querySelector('[data-testid=inspector-model]').dispatchEvent(event);
            return event.defaultPrevented;
        }"""
    )
    assert prevented


def test_a_narrow_view_opens_on_the_picture(page: Page) -> None:
    page.set_viewport_size({"width": 700, "height": 900})
    page.reload()
    page.wait_for_function(READY, timeout=60_000)
    page.wait_for_timeout(300)
    assert page.get_by_test_id("inspector-model").count() == 0, "it is opened where it is wanted"
    state = page.evaluate(DEBUG)
    assert state["canvas"]["w"] > 690
    assert state["smallestText"] >= 11
    bar = page.locator(".ol-toolbar").bounding_box()
    last = page.locator(".ol-toolbar button").last.bounding_box()
    assert bar is not None
    assert last is not None
    assert last["x"] + last["width"] <= bar["x"] + bar["width"], "nothing of the bar is cut off"
