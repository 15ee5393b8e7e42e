"""The page of first looks: every model as it opens, as pictures and a table of what can be computed.

    python -m bench looks [MODEL …]      # build/looks/*.png and index.md

Models are those of the corpus, and those of `bench.made`. Each is exported as a page and opened in headless Chromium,
light and dark, 1,440 and 1,100 px wide. What is measured comes from the widget's own list of what it drew.
"""

import json
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, sync_playwright

import onnxlab
from bench import made
from tests.browser.support.jupyter import chromium
from tests.browser.support.lab import FLAGS
from tests.support.corpus import Corpus

FOLDER = Path("build/looks")
WIDTHS, HEIGHT = (1440, 1100), 900
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LEAST_BOXES, MOST_BOXES = 5, 30
LEAST_TEXT = 11.0
LONG_AXIS, SHORT_AXIS = 0.6, 0.3
LEAST_NAMED = 0.8
MADE_UP = ("group", "part")
READY = "() => document.querySelector('.onnxlab')?.__onnxlab?.view?.debug().boxes.length > 0"
OVERVIEWS = {
    "resnet50": [3, 4, 6, 3],
    "light_resnet50": [3, 4, 6, 3],
    "resnet101_qdq": [3, 4, 23, 3],
    "light_densenet121": [6, 12, 24, 16],
    "light_squeezenet": [8],
    "light_shufflenet": [4, 8, 4],
    "bert_base": [12],
    "minilm_int8": [6],
    "gpt2_kv": [12],
    "llama12_dyn_ext": [12],
    "swin_s": [2, 2, 18, 2],
    "whisper_encoder": [4],
    "made_decoder48": [48],
    "made_speech60": [60],
}
"""Repeated units by stage, in order. A stage is one group, or a run of cards, with this many units."""


@dataclass(frozen=True)
class Look:
    """The figures of one picture."""

    model: str
    width: int
    whole: bool
    boxes: int
    nodes: int
    text: float
    overlaps: int
    across: float
    along: float
    crossings: float
    named: float
    units: str

    @property
    def faults(self) -> list[str]:
        """The names of figures beyond their limits."""
        most, least = max(self.across, self.along), min(self.across, self.along)
        wrong = {
            "cut off": not self.whole,
            f"{self.boxes} boxes": not min(LEAST_BOXES, self.nodes) <= self.boxes <= MOST_BOXES,
            f"text of {self.text:.1f} px": self.text < LEAST_TEXT,
            f"{self.overlaps} overlaps": self.overlaps > 0,
            f"{most:.0%} × {least:.0%} of the canvas": most < LONG_AXIS or least < SHORT_AXIS,
            f"{self.crossings:.1f} crossings a box": self.crossings > 1,
            f"{self.named:.0%} named": self.named < LEAST_NAMED,
            f"units {self.units}": self.units not in ("", "ok"),
        }
        return [words for words, is_wrong in wrong.items() if is_wrong]


def main(names: list[str]) -> int:
    """Draw the models and print the table; 1 where a picture has a fault."""
    corpus = Corpus()
    FOLDER.mkdir(parents=True, exist_ok=True)
    looks: list[Look] = []
    with opened() as browser:
        for name in names or [*corpus, *made.MADE]:
            for look in looks_of(browser, name, made.path(name) if name in made.MADE else corpus[name]):
                looks.append(look)
                print(row(look), flush=True)
    (FOLDER / "index.md").write_text("\n".join([HEAD, *map(row, looks), ""]), encoding="utf-8")
    bad = [look for look in looks if look.faults]
    print(f"{len(looks) - len(bad)} of {len(looks)} pictures without a fault")
    return int(bool(bad))


HEAD = (
    "| model | px | boxes | text | overlaps | canvas | crossings | named | faults |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def row(look: Look) -> str:
    """A line of the table."""
    canvas = f"{look.across:.0%} × {look.along:.0%}"
    cells = [look.model, look.width, look.boxes, f"{look.text:.1f}", look.overlaps, canvas, f"{look.crossings:.2f}"]
    return "| " + " | ".join(map(str, [*cells, f"{look.named:.0%}", ", ".join(look.faults) or "none"])) + " |"


@contextmanager
def opened() -> Iterator[Browser]:
    """Headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield browser
        browser.close()


def looks_of(browser: Browser, name: str, path: Path) -> Iterator[Look]:
    """Export a model, take its pictures and measure those in light."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        address = onnxlab.load(path).to_html(Path(folder) / "model.html").as_uri()
        for width in WIDTHS:
            for theme in THEMES:
                page = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
                page.goto(address)
                page.wait_for_function(READY, timeout=120_000)
                page.wait_for_timeout(400)
                page.screenshot(path=FOLDER / f"{name}_{width}_{theme}.png")
                if theme == "light":
                    yield measured(name, width, page)
                page.close()


def measured(name: str, width: int, page: Page) -> Look:
    """The figures that the widget reports of its picture."""
    state: dict[str, Any] = page.evaluate("() => document.querySelector('.onnxlab').__onnxlab.view.debug()")
    shown = [box for box in state["boxes"] if box["kind"] != "frame"]
    canvas = state["canvas"]
    left, top = min(box["x"] for box in shown), min(box["y"] for box in shown)
    right, bottom = max(box["x"] + box["w"] for box in shown), max(box["y"] + box["h"] for box in shown)
    inside = left >= canvas["x"] and top >= canvas["y"]
    inside = inside and right <= canvas["x"] + canvas["w"] and bottom <= canvas["y"] + canvas["h"]
    groups = [box for box in state["boxes"] if box["kind"] in ("group", "repeat", "frame")]
    named = [box for box in groups if box["label"] and not box["label"].startswith(MADE_UP)]
    return Look(
        name,
        width,
        inside,
        len(shown),
        state["nodes"],
        state["smallestText"],
        overlaps(shown, state),
        (right - left) / canvas["w"],
        (bottom - top) / canvas["h"],
        state["crossings"] / len(shown),
        len(named) / len(groups) if groups else 1.0,
        units(name, state["boxes"]),
    )


def overlaps(shown: list[dict[str, Any]], state: dict[str, Any]) -> int:
    """Pairs of boxes, panels over the canvas, words at lines and signs of cut lines that cover each other."""
    labels = [label["area"] for label in state["labels"] if label["area"]["w"] > 0]
    areas = [*shown, *state["panels"], *labels, *(sign for sign in state["signs"] if sign["w"] > 0)]
    return sum(_meet(area, other) for place, area in enumerate(areas) for other in areas[:place])


def _meet(area: dict[str, Any], other: dict[str, Any]) -> bool:
    across = min(area["x"] + area["w"], other["x"] + other["w"]) - max(area["x"], other["x"])
    along = min(area["y"] + area["h"], other["y"] + other["h"]) - max(area["y"], other["y"])
    return bool(across > 0.5 and along > 0.5)


def units(name: str, boxes: list[dict[str, Any]]) -> str:
    """Say "ok" where the stages of a model are there in their order, else what is."""
    expected = OVERVIEWS.get(name)
    if expected is None:
        return ""
    counts: list[int] = []
    before = ""
    for box in boxes:
        layers = re.match(r"(\d+) transformer layers$", box["about"])
        box["units"] = int(layers[1]) if layers and box["units"] == 1 and box["kind"] == "group" else box["units"]
    alike = {box["about"] for box in boxes if box["isRepeat"] and box["about"]}
    stages = [box for box in boxes if box["kind"] == "frame" and (box["units"] > 1 or box["about"] in alike)]
    for box in stages:  # the first of several layers may be open
        box["kind"] = "repeat" if box["isRepeat"] or box["units"] == 1 else "frame"
    for box in sorted(boxes, key=lambda entry: entry["order"]):
        if any(box is not stage and box["depth"] > stage["depth"] and _meet(box, stage) for stage in stages):
            continue
        if (box["kind"] == "frame" and box in stages) or (box["kind"] == "group" and box["units"] > 1):
            counts.append(box["units"])
            before = ""
        elif box["kind"] in ("group", "repeat") and box["about"]:
            counts[-1:] = [counts[-1] + box["units"]] if box["about"] == before else [*counts[-1:], box["units"]]
            before = box["about"]
    rest = iter(counts)
    return "ok" if all(number in rest for number in expected) else json.dumps(counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
