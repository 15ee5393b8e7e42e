"""Names are text: no script of a model runs and no command fires, in the widget, the tooltip, the SVG or the export."""

import subprocess
import sys
from pathlib import Path

import nbformat
import onnx
import pytest
from onnx import TensorProto, helper
from playwright.sync_api import BrowserContext

from tests.browser.support.jupyter import Jupyter
from tests.browser.support.lab import Lab

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    '<a data-commandlinker-command="apputils:reset" href="javascript:alert(1)">press</a>',
    "javascript:alert(1)",
    "[press](javascript:alert(1))",
    "{{constructor.constructor('alert(1)')()}}",
]
# A script, link or command of a model that takes effect leaves a trace here.
TRACE = """
    window.fired = [];
    window.alert = (text) => window.fired.push(`alert ${text}`);
    window.addEventListener('securitypolicyviolation', (event) => window.fired.push(`blocked ${event.blockedURI}`));
"""
WATCH_COMMANDS = """() => window.jupyterapp.commands.commandExecuted.connect((_, { id }) => {
    if (id.startsWith('apputils:reset')) window.fired.push(`command ${id}`);
})"""
FOUND = """() => [
    '[onerror]', '[onload]', '[data-commandlinker-command*="apputils:reset"]', 'a[href^="javascript:"]',
].flatMap((selector) => [...document.querySelectorAll(selector)]).map((element) => element.outerHTML)"""


@pytest.fixture
def path(jupyter: Jupyter) -> Path:
    """A chain whose nodes, values, documentation, metadata, attributes, graph, file and producer are hostile."""
    nodes = []
    for number, name in enumerate(HOSTILE):
        source = f"v{HOSTILE[number - 1]}" if number else HOSTILE[0]
        node = helper.make_node("Relu", [source], [f"v{name}"], name=name, doc_string=name)
        node.metadata_props.add(key=name, value=name)
        nodes.append(node)
    last = f"v{HOSTILE[-1]}"
    nodes.append(helper.make_node(HOSTILE[0], [last], ["own"], name="/<b>scope</b>/own", domain="own", text=HOSTILE[1]))
    nodes.append(helper.make_node("Relu", ["own"], ["end"], name="/<b>scope</b>/end"))
    graph = helper.make_graph(
        nodes,
        HOSTILE[1],
        [helper.make_tensor_value_info(HOSTILE[0], TensorProto.FLOAT, [HOSTILE[0], 2])],
        [helper.make_tensor_value_info("end", TensorProto.FLOAT, [HOSTILE[2], None])],
        doc_string=HOSTILE[0],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name=HOSTILE[0])
    file = jupyter.folder / "<img src=x onerror=alert(1)>.onnx"
    onnx.save(model, file)
    return file


def test_names_show_as_themselves(fresh_lab: Lab, path: Path) -> None:
    lab = fresh_lab
    lab.page.add_init_script(TRACE)
    cells = [
        "import onnxlab\n%load_ext onnxlab",
        f"model = onnxlab.load({str(path)!r})\nmodel",
        "%onnx_show model --static",
        "print(model); model.nodes[0]",
    ]
    lab.open("hostile.ipynb", cells)
    lab.page.evaluate(WATCH_COMMANDS)
    lab.run_all()
    widget = lab.widget()
    assert [box["label"] for box in widget.debug()["boxes"] if box["kind"] == "input"] == [HOSTILE[0]]

    for name in [*HOSTILE, "/<b>scope</b>/own"]:
        widget.select(widget.node(name))
        assert widget.get("inspector-node").locator("input").first.input_value() == name
    widget.get("inspector-node").screenshot(path="build/screens/hostile_inspector.png")
    widget.select(widget.node(HOSTILE[0]))
    lab.page.mouse.move(5, 5)
    box = widget.box(widget.node(HOSTILE[0]))
    lab.page.mouse.move(box["x"] + box["w"] / 2, box["y"] + box["h"] / 2)
    widget.get("tooltip").wait_for()
    assert HOSTILE[0] in widget.get("tooltip").inner_text()

    search = widget.get("search-input")
    search.fill("<img")
    widget.get("search-result").first.wait_for()
    assert HOSTILE[0] in widget.get("search-result").first.inner_text()
    search.fill("")
    lab.screenshot(Path("build/screens/hostile.png"))

    # an error message that repeats a hostile name, as a notice
    widget.evaluate(
        "({app}, [node, name]) => app.edits.renameNode(node, name).catch((error) => app.notices.fail(error))",
        [widget.node(HOSTILE[1]), HOSTILE[0]],
    )
    widget.wait("handle => handle.app.notices.toasts.value.length > 0")
    assert HOSTILE[0] in widget.get("toast").first.inner_text()

    assert lab.page.evaluate(FOUND) == []
    assert lab.page.evaluate("() => window.fired") == []


def test_names_are_text_in_the_html_export(jupyter: Jupyter, path: Path, context: BrowserContext) -> None:
    cells = [
        "import onnxlab",
        f"model = onnxlab.load({str(path)!r})\nmodel",
        "onnxlab.show(model, static=True)",
        "print(model); model.nodes[0]",
    ]
    notebook = jupyter.write("export.ipynb", cells)
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "--execute", str(notebook)]
    subprocess.run(command, check=True, capture_output=True, env=jupyter.environment())
    page = context.new_page()
    page.add_init_script(TRACE)
    page.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort())
    page.goto((jupyter.folder / "export.html").as_uri())
    page.wait_for_timeout(500)
    assert page.locator("img[src^='data:image/svg+xml'], svg").count() >= 1, "the picture is in the export"
    assert page.evaluate("() => window.fired") == []
    assert [text for text in page.evaluate(FOUND) if "alert(1)" in text] == []
    page.close()


def test_a_saved_notebook_is_read_without_a_kernel(fresh_lab: Lab, path: Path) -> None:
    """The picture and the text are in the file; what JupyterLab makes of them without a kernel is no markup."""
    lab = fresh_lab
    lab.page.add_init_script(TRACE)
    lab.open("saved.ipynb", ["import onnxlab", f"onnxlab.load({str(path)!r})"])
    lab.run_all()
    lab.widget()
    lab.command("docmanager:save")
    lab.jupyter.settle()
    saved = nbformat.read(lab.jupyter.folder / "saved.ipynb", 4)
    assert {"image/svg+xml", "text/plain"} <= set(saved.cells[1].outputs[0].data)
    lab.open("saved.ipynb")
    lab.page.wait_for_timeout(2000)
    lab.screenshot(Path("build/screens/saved_without_kernel.png"))
    assert lab.page.evaluate("() => window.fired") == []
    assert lab.page.evaluate(FOUND) == []
