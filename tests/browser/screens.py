"""Screenshots of a dozen states of the widget in light and dark, and sheets of them, into build/screens/, to look at.

python -m tests.browser.screens [STATE …]
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, sync_playwright

from onnxlab.model.opening import EXAMPLE
from tests.browser.conftest import VIEWPORT
from tests.browser.support.jupyter import Jupyter, chromium
from tests.browser.support.lab import FLAGS, Lab, Widget
from tests.support.corpus import Corpus

FOLDER = Path("build/screens")
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
BACKGROUNDS = {"light": "white", "dark": "black"}
HEIGHT = 760
COLUMNS, TILE = 2, (700, 420)

State = Callable[[Widget], None]


def tiny(widget: Widget) -> None:
    """A small model as it opens."""


def big(widget: Widget) -> None:
    """A model of 8,000 nodes as it opens: folded."""


def huge(widget: Widget) -> None:
    """100,000 nodes as they open."""


def unfolded(widget: Widget) -> None:
    """A block opened and a node in it selected, its attributes in the inspector."""
    node = widget.node("node_layer_norm_3")
    widget.evaluate("(h, node) => h.app.picked.reveal(node)", node)
    widget.root.locator(f'[data-testid="inspector-node"][data-node="{node}"] .ol-section').first.wait_for()
    widget.settle()


def error(widget: Widget) -> None:
    """An edit that cannot be: the node marked, the problems listed."""
    widget.select(widget.node("/stem/conv/Conv"))
    widget.set_field("strides", "1, 1, 1")
    widget.get("status-problems").click()
    widget.get("problems-item").first.wait_for()


def run(widget: Widget) -> None:
    """After a run: statistics, the results in the drawer."""
    widget.run()
    widget.select(widget.node("/stem/conv/Conv"))


def edit(widget: Widget) -> None:
    """After an edit: what changed, the line of Python, the history."""
    widget.select(widget.node("/stem/conv/Conv"))
    widget.set_field("strides", "2, 2")
    widget.wait("h => h.store.history.position === 1")
    widget.get("status-history").click()
    widget.get("history-1").wait_for()


def save(widget: Widget) -> None:
    """Before a save: what changes in the file."""
    edit(widget)
    widget.get("toolbar-save").click()
    widget.get("save-confirm").wait_for()
    widget.root.locator('[data-testid="save-panel"] summary').click()


def palette(widget: Widget) -> None:
    """A node is inserted: operators with their documentation."""
    widget.select(widget.node("/stem/conv/Conv"))
    widget.press("i")
    widget.get("palette-input").fill("normal")
    widget.get("operator-LayerNormalization").wait_for()
    widget.page.wait_for_timeout(400)


def search(widget: Widget) -> None:
    """A query with its hits."""
    widget.get("search-input").fill("op:Conv")
    widget.get("search-result").first.wait_for()


def tables(widget: Widget) -> None:
    """The tables of the model."""
    widget.get("status-table").click()
    widget.page.wait_for_timeout(300)


def inside(widget: Widget) -> None:
    """An If inside a Loop, drawn where they are, and what they capture."""


def columns(widget: Widget) -> None:
    """A flat graph, unfolded, in columns."""
    widget.evaluate("h => h.view.unfoldAll()")
    widget.settle()


def rewrites(widget: Widget) -> None:
    """The effect of optimizing: nodes that go in red, nodes that come in green, the gain of each rule."""
    widget.get("rewrites-open").click()
    widget.get("rewrites-table").wait_for()
    widget.get("rewrites-measure").click()
    widget.root.get_by_text("onnxruntime", exact=True).first.wait_for()
    widget.root.get_by_title("Show in the picture", exact=False).first.click()
    widget.get("rewrite-next").click()
    widget.page.wait_for_timeout(600)


def likes(widget: Widget) -> None:
    """Two nodes as a pattern: where it matches, and what replacing it would change."""
    nodes = [widget.node("/block1/Add"), widget.node("/block1/relu2/Relu")]
    widget.evaluate("(h, nodes) => h.app.picked.show(nodes)", nodes)
    widget.get("pattern-ask").click()
    widget.get("pattern-find").click()
    widget.get("pattern-count").wait_for()
    widget.get("pattern-replacement").fill("Max(Add(x, y), 0.0)")
    widget.get("pattern-preview").click()
    widget.get("rewrites-table").wait_for()
    widget.page.wait_for_timeout(400)


def dump(widget: Widget) -> None:
    """A dump of GE: control edges are dashed, a node's descriptors in the inspector."""
    widget.evaluate("h => h.app.picked.select([[...h.store.nodes.keys()][2]])")
    widget.page.wait_for_timeout(600)


STATES: Mapping[str, tuple[str, State]] = {
    "tiny": ("", tiny),
    "big": ("swin_s", big),
    "huge": ("residual_100000", huge),
    "unfolded": ("bert_base", unfolded),
    "error": ("", error),
    "run": ("", run),
    "edit": ("", edit),
    "save": ("digits", save),
    "palette": ("", palette),
    "search": ("light_resnet50", search),
    "tables": ("bert_base", tables),
    "inside": ("script_control", inside),
    "columns": ("residual_1000", columns),
    "rewrites": ("bert_base", rewrites),
    "likes": ("", likes),
    "dump": ("ge_onnx_00000001_graph_1_PreRunBegin", dump),
}
"""Model ("" is the one that comes along) and what is done, by the state's name; the export is a page of its own."""


def main(names: list[str]) -> None:
    """Take the screenshots and put the sheets together; names that are no states are refused."""
    if unknown := set(names) - {*STATES, "export"}:
        sys.exit(f"no such state: {', '.join(sorted(unknown))}; there are {', '.join([*STATES, 'export'])}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = names or [*STATES, "export"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["ONNXLAB_STATE_HOME"] = folder  # no edits of other sessions to recover
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            states(browser, jupyter, [name for name in chosen if name in STATES])
            if "export" in chosen:
                export(browser, jupyter.folder)
        finally:
            browser.close()
            jupyter.close()
    for theme in THEMES:
        pictures = {name: FOLDER / f"state_{name}_{theme}.png" for name in [*STATES, "export"]}
        existing = {name: path for name, path in pictures.items() if path.exists()}
        sheet(existing, theme, COLUMNS, TILE).save(FOLDER / f"states_{theme}.png")


def states(browser: Browser, jupyter: Jupyter, names: list[str]) -> None:
    """Each state in a view of its own, one after the other in one notebook."""
    lab = Lab(browser.new_context(viewport=VIEWPORT), jupyter)
    lab.open("screens.ipynb", ["import onnxlab\nview = None"])
    lab.run_all()
    for name in names:
        model, do = STATES[name]
        path = repr(str(find(model))) if model else ""
        load = f"model = onnxlab.load({path})\nview = onnxlab.show(model, height={HEIGHT}, title={name!r})"
        lab.add_cell(f"if view: view.close()\n{load}\nview")
        lab.wait_executed()
        lab.page.get_by_test_id("onnxlab-root").filter(has_text=name).wait_for()
        widget = lab.widget()
        do(widget)
        for theme, title in THEMES.items():
            lab.theme(title)
            lab.page.mouse.move(2, 2)
            lab.page.wait_for_timeout(400)
            widget.root.screenshot(path=FOLDER / f"state_{name}_{theme}.png")
        print(f"{name}: {len(widget.debug()['boxes'])} boxes", flush=True)
    for problem in lab.errors:
        print(f"the page threw: {problem}", file=sys.stderr)


def export(browser: Browser, folder: Path) -> None:
    """The page that `Model.to_html` writes, with a node selected."""
    import onnxlab

    page_file = onnxlab.load().to_html(folder / "model.html")
    for theme in THEMES:
        context = browser.new_context(viewport={"width": VIEWPORT["width"], "height": HEIGHT}, color_scheme=theme)
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.get_by_test_id("onnxlab-root").wait_for()
        page.wait_for_timeout(800)
        page.screenshot(path=FOLDER / f"state_export_{theme}.png")
        context.close()
    print("export", flush=True)


def find(model: str) -> Path:
    """A model of the corpus, or the graph of 100,000 nodes that bench/models.py makes."""
    if model.startswith("residual_"):
        from bench.models import residual

        return Path(residual(int(model.removeprefix("residual_"))))
    if model == "digits":  # the packaged model, as a file of its own
        return Path(shutil.copy(EXAMPLE, FOLDER / "digits.onnx")).resolve()
    if model.startswith("ge_onnx_"):
        return (Path("tests/formats/ge") / f"{model}.pbtxt").resolve()
    return Path(Corpus()[model])


def sheet(pictures: Mapping[str, Path], theme: str, columns: int, tile: tuple[int, int]) -> Image.Image:
    """Tiles of screenshots by name, on white or black as their theme is."""
    width, height = tile
    paper = Image.new("RGB", (columns * width, -(-len(pictures) // columns) * height), BACKGROUNDS[theme])
    pen = ImageDraw.Draw(paper)
    for number, (name, path) in enumerate(pictures.items()):
        left, top = number % columns * width, number // columns * height
        picture = Image.open(path).convert("RGB")
        picture.thumbnail((width - 8, height - 24))
        paper.paste(picture, (left + 4, top + 18))
        pen.text((left + 6, top + 3), name, fill="gray")
    return paper


if __name__ == "__main__":
    main(sys.argv[1:])
