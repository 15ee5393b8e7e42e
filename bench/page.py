"""Costs of the widget in a page: JupyterLab in headless Chromium, driven as the browser tests drive it.

Times are the page's own (`performance`), the least of a few repeats; frames are counted by requestAnimationFrame, which
a screen of 60 Hz calls every 16.7 ms.
"""

import gzip
import json
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, CDPSession, sync_playwright

import onnxlab
from bench import models
from bench.measure import Figure, Line
from onnxlab.notebook.session.session import Session
from onnxlab.notebook.widgets.bundle import STATIC
from tests.browser.conftest import VIEWPORT
from tests.browser.support.jupyter import Jupyter, chromium
from tests.browser.support.lab import FLAGS, Lab, Widget
from tests.support.corpus import Corpus

REPEATS = 3
CYCLES, WARM = 200, 5
ONE_FRAME, TWO_FRAMES = 16.9, 33.4
"""Milliseconds at 60 Hz, as the page's clock tells them."""
MB = 1 << 20

_FRAME = """() => new Promise((resolve, reject) => {
    const seen = performance.getEntriesByName('onnxlab:frame').length, asked = performance.now();
    const look = () => {
        const marks = performance.getEntriesByName('onnxlab:frame');
        if (marks.length > seen) resolve(marks[seen].startTime - asked);
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    setTimeout(() => reject(new Error('no frame within 30 s')), 30000);
})"""

# Wheel events as a hand makes them, one a frame: half of them pan, the others zoom in and out.
_MOVE = """([root, at]) => new Promise((resolve) => {
    const { view } = root.__onnxlab, target = root.querySelector('[data-testid="outline"]'), taken = [];
    target.focus();
    const { left, top, width, height } = target.getBoundingClientRect();
    const middle = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true };
    let last = 0, number = 0;
    const step = (now) => {
        if (last) taken.push(now - last);
        last = now;
        if (number++ === 120) { resolve(taken); return; }
        const zoom = at === 'zoom';
        const delta = zoom ? (Math.floor(number / 15) % 2 ? 30 : -30) : Math.floor(number / 30) % 2 ? 20 : -20;
        const wheel = { ...middle, deltaY: delta, deltaX: zoom ? 0 : delta, ctrlKey: zoom };
        target.dispatchEvent(new WheelEvent('wheel', wheel));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


QUERIES = ("r", "re", "relu", "e", "_1", "op:Relu", "shape:*,64", "dtype:float32", "rank:2")
# The least of three: typing a letter, taking it away, typing it again.
_SEARCH = """(h, query) => {
    h.app.finder.index.prepare();
    return Math.min(...[1, 2, 3].map(() => {
        const from = performance.now();
        h.app.finder.setQuery(query);
        const taken = performance.now() - from;
        h.app.finder.setQuery('');
        return taken;
    }));
}"""

# Each run of the cell closes the view before it and shows another: a view is served only when its cell has ended.
_CYCLE = "if view: view.close()\nbeside()\nview = make()\nview"
_OURS = "make, beside = lambda: onnxlab.show(small), lambda: None"
_OURS_DRAWN = "() => performance.getEntriesByName('onnxlab:frame').length"
# What a widget costs that does next to nothing, with the same static picture beside it: JupyterLab and anywidget keep
# something of every widget and of every picture.
_COUNTER = """
import anywidget, traitlets
from onnxlab.notebook.widgets.display import StaticView
beside = lambda: display(StaticView(small))
class make(anywidget.AnyWidget):
    count = traitlets.Int(0).tag(sync=True)
    _esm = '''export default { render({ model, el }) {
        el.textContent = model.get("count");
        window.countersDrawn = (window.countersDrawn ?? 0) + 1;
    } }'''
"""
_COUNTER_DRAWN = "() => window.countersDrawn ?? 0"


def rows() -> Iterator[Line]:
    """Sizes first, which need no browser; then times in a page."""
    yield from sizes()
    with opened_lab() as lab:
        yield from first_frames(lab)
        yield from edits(lab)
        yield from moves(lab, (10_000, 50_000))
        yield from memory(Lab(_context(lab.page.context.browser), lab.jupyter))


@contextmanager
def opened_lab() -> Iterator[Lab]:
    """JupyterLab in a browser of its own."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS, "--enable-precise-memory-info"])
        try:
            yield Lab(_context(browser), jupyter)
        finally:
            browser.close()
            jupyter.close()


def _context(browser: Browser | None) -> BrowserContext:
    assert browser is not None
    return browser.new_context(viewport={"width": VIEWPORT["width"], "height": VIEWPORT["height"]})


def sizes() -> Iterator[Line]:
    """Bytes: the bundle, and what a page is sent for 10,000 nodes."""
    packed = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in ("widget.js", "widget.css"))
    yield Figure("bundle, gzipped", packed / 1000, "kB", at_most=165, note="script and styles")
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    session = Session(onnxlab.load(models.many_nodes(10_000)), lambda content, buffers: sent.append((content, buffers)))
    session.receive({"id": 1, "method": "snapshot", "params": {}})
    content, buffers = sent[-1]
    size = len(json.dumps(content, separators=(",", ":")).encode()) + sum(map(len, buffers))
    session.close()
    yield Figure("state on the wire, 10,000 nodes", size / MB, "MB", at_most=1)


def first_frames(lab: Lab) -> Iterator[Line]:
    """From asking for a view of a loaded model to its first frame, folded."""
    limits = {1000: 0.4, 10_000: 0.5, 100_000: 2.0}
    loads = [f"m{nodes} = onnxlab.load({str(models.residual(nodes))!r})" for nodes in limits]
    lab.open("first.ipynb", ["\n".join(["import onnxlab", *loads, "view = None"])])
    lab.run_all()
    seconds = shown(lab, "m1000")
    yield Figure("first frame of a page's first widget, 1,000 nodes", seconds, "s", at_most=1.5)
    for nodes, limit in limits.items():
        best = min(shown(lab, f"m{nodes}") for _ in range(REPEATS))
        yield Figure(f"first frame, {nodes:,} nodes", best, "s", at_most=limit)


def shown(lab: Lab, model: str) -> float:
    """Seconds from running a cell that shows a model until its picture is drawn; the view before is closed."""
    lab.add_cell("if view: view.close()")
    lab.wait_executed()
    lab.page.wait_for_function("() => !document.querySelector('[data-testid=\"onnxlab-root\"]')")
    lab.page.evaluate("() => performance.clearMarks('onnxlab:frame')")
    start = lab.page.evaluate("() => performance.now()")
    lab.add_cell(f"view = onnxlab.show({model}, height=700)\nview")
    lab.page.wait_for_function("() => performance.getEntriesByName('onnxlab:frame').length", polling=20)
    drawn = lab.page.evaluate("() => performance.getEntriesByName('onnxlab:frame')[0].startTime")
    return float(drawn - start) / 1000


def edits(lab: Lab) -> Iterator[Line]:
    """Edit to repaint, fold and unfold, search as you type."""
    lab.add_cell(f"swin = onnxlab.load({str(Corpus()['swin_s'])!r})")
    lab.wait_executed()
    for name, model, op in (("swin_s", "swin", "Softmax"), ("100,000 nodes", "m100000", "Gather")):
        shown(lab, model)
        widget = lab.widget()
        node = "[...h.store.nodes.values()].filter((n) => n.op === op)[5].id"
        edit = f"""(h, op) => {{ const node = {node}; window.turn = 1 - (window.turn ?? 0);
            return h.app.edits.setAttribute(node, 'axis', -window.turn, 'int'); }}"""
        widget.evaluate(edit, op)
        best = min(until_frame(widget, edit, op) for _ in range(5))
        yield Figure(f"edit to repaint, {name}", best, "ms", at_most=100)
        if model == "swin":
            fold = """(h) => { const open = h.view.debug().boxes.find((box) => box.kind === 'frame');
                window.folded = open.id; h.view.fold(open.id); }"""
            folding = [
                (until_frame(widget, fold), until_frame(widget, "(h) => h.view.unfold(window.folded)"))
                for _ in range(4)
            ]
            yield Figure("fold, swin_s", min(times[0] for times in folding), "ms", at_most=100)
            yield Figure("unfold, swin_s", min(times[1] for times in folding), "ms", at_most=100)
    worst = max(QUERIES, key=(slowest := {query: widget.evaluate(_SEARCH, query) for query in QUERIES}).__getitem__)
    note = f"the slowest of {', '.join(QUERIES)}: {worst}"
    yield Figure("search as you type, 100,000 nodes", slowest[worst], "ms", at_most=50, note=note)


def until_frame(widget: Widget, script: str, argument: Any = None) -> float:
    """Milliseconds from a call on the page until the frame that shows it; out of sight nothing would be drawn."""
    widget.root.scroll_into_view_if_needed()
    act = f"void ({script})(root.__onnxlab, argument)"
    milliseconds = widget.root.evaluate(
        f"(root, argument) => {{ const frame = ({_FRAME})(); {act}; return frame; }}", argument
    )
    widget.settle()
    return float(milliseconds)


def moves(lab: Lab, sizes: Iterable[int]) -> Iterator[Line]:
    """Frames while panning and zooming over many boxes, all groups open."""
    for nodes in sizes:
        median, late = (ONE_FRAME, ONE_FRAME) if nodes <= 10_000 else (TWO_FRAMES, 60)
        lab.add_cell(f"flat = onnxlab.load({str(models.residual(nodes))!r})")
        lab.wait_executed()
        shown(lab, "flat")
        widget = lab.widget()
        widget.root.scroll_into_view_if_needed()
        widget.evaluate("h => h.view.unfoldAll()")
        widget.wait("(h, nodes) => h.view.debug().boxes.length > nodes * 0.9", nodes, timeout=60_000)
        for gesture in ("pan", "zoom"):
            for look in ("overview", "reading"):
                widget.evaluate("h => h.view.fit()")
                if look == "reading":
                    widget.evaluate("h => h.app.picked.reveal([...h.store.nodes.keys()][100])")
                widget.page.wait_for_timeout(300)
                move = f"(root, at) => ({_MOVE})([root, at])"
                tries = [sorted(widget.root.evaluate(move, gesture)) for _ in range(REPEATS)]
                best = min(tries, key=lambda frames: frames[int(len(frames) * 0.95)])
                name = f"{gesture}, {nodes:,} boxes, {look}"
                yield Figure(f"{name}, median frame", statistics.median(best), "ms", at_most=median)
                yield Figure(f"{name}, 95th percentile", best[int(len(best) * 0.95)], "ms", at_most=late)


def memory(lab: Lab) -> Iterator[Line]:
    """Heap with 10,000 nodes; what is left after opening and closing a view many times."""
    path = str(models.residual(10_000))
    lab.open(
        "memory.ipynb", [f"import onnxlab, time\nm10000 = onnxlab.load({path!r})\nsmall = onnxlab.load()\nview = None"]
    )
    lab.run_all()
    tools = lab.page.context.new_cdp_session(lab.page)
    shown(lab, "small")  # the bundle itself is there
    without = held(tools)
    shown(lab, "m10000")
    used = held(tools)["JSHeapUsedSize"] - without["JSHeapUsedSize"]
    yield Figure("heap of 10,000 nodes", used / MB, "MB", at_most=60, note="above a page that shows a small model")
    theirs, ours = left_behind(lab, tools, _COUNTER, _COUNTER_DRAWN), left_behind(lab, tools, _OURS, _OURS_DRAWN)
    for key, name, unit, size, most in (
        ("JSEventListeners", "listeners", "", 1, 100), ("Nodes", "DOM nodes", "", 1, 2000),
        ("JSHeapUsedSize", "heap", "MB", MB, 8),
    ):  # fmt: skip
        counted = f"{CYCLES} views: {ours[key] / size:.4g} less the {theirs[key] / size:.4g} of a counter and a picture"
        yield Figure(f"{name} left behind", (ours[key] - theirs[key]) / size, unit, at_most=most, note=counted)
    yield Figure("workers left behind", len(lab.page.workers), at_most=0)


def left_behind(lab: Lab, tools: CDPSession, make: str, drawn: str) -> dict[str, float]:
    """Measure the memory that a page holds more after many views, opened and closed, than after a few.

    Args:
        make: Python that defines `make`, which returns a view.
        drawn: a script that counts what was drawn.
    """
    lab.python(f"{make}\nprint(0)")
    lab.add_cell(_CYCLE)
    lab.wait_executed()
    for _ in range(WARM):
        again(lab, drawn)
    before = held(tools)
    for _ in range(CYCLES):
        again(lab, drawn)
    after = held(tools)
    return {key: after[key] - before[key] for key in before}


def again(lab: Lab, drawn: str) -> None:
    """Run the last cell once more, until it has drawn: another cell would leave JupyterLab's own listeners behind."""
    before = lab.page.evaluate(drawn)
    lab.command("notebook:run-cell")
    lab.page.wait_for_function(f"(before) => ({drawn})() > before", arg=before, polling=50)


def held(tools: CDPSession) -> dict[str, float]:
    """The memory of the page after collecting garbage: bytes of heap, listeners, DOM nodes."""
    tools.send("Performance.enable")
    for _ in range(3):
        tools.send("HeapProfiler.collectGarbage")
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return {metric["name"]: metric["value"] for metric in metrics}
