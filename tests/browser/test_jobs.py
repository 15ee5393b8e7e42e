"""Twelve jobs that people come for, each in so many actions from the overview with nothing selected."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from tests.browser.conftest import VIEWPORT
from tests.browser.support.actions import Actions
from tests.browser.support.job_models import MODELS
from tests.browser.support.lab import Lab

Start = Callable[[str], Actions]


@pytest.fixture
def start(lab: Lab, tmp_path: Path) -> Start:
    """Opens a model; nothing has been done yet."""

    def opened(name: str) -> Actions:
        path = tmp_path / f"{name}.onnx"
        onnx.save(MODELS[name](), path)
        cell = (
            f"import json, onnxlab\nmodel = onnxlab.load({str(path)!r})\nview = onnxlab.show(model, height=720)\nview"
        )
        lab.open(f"{name}.ipynb", [cell])
        lab.run_all()
        widget = lab.widget()
        widget.settle()
        widget.root.scroll_into_view_if_needed()
        assert widget.selection() == []
        return Actions(widget)

    return opened


def test_which_node_is_slow(start: Start) -> None:
    actions = start("network")
    actions.click("toolbar-profile")
    slowest = actions.widget.get("profile-row").first
    slowest.wait_for()
    assert slowest.get_attribute("data-node") == str(actions.widget.node("/block3/conv/Conv"))
    provider = slowest.get_by_text("num")  # "numba" where it is compiled by now, else "numpy"
    assert provider.inner_text().strip() in ("numba", "numpy")
    assert len(actions) <= 2, actions.taken


def test_cut_the_nms_tail(start: Start, lab: Lab) -> None:
    actions = start("detector")
    actions.click_at(*actions.box("nms"), "the group nms", button="right")
    actions.click("menu-cut_before")
    actions.widget.get("cut-make").wait_for()
    assert actions.widget.get("cut-outputs-that-go").inner_text() == "sel, det"
    assert actions.widget.get("cut-new-outputs").inner_text() == "boxes, scores"
    actions.click("cut-make")
    actions.widget.wait("h => h.store.history.position === 1")
    assert lab.python("print(json.dumps([value.name for value in model.outputs]))") == ["features", "boxes", "scores"]
    assert lab.python("print(json.dumps(model.find('NonMaxSuppression')))") == []
    assert len(actions) <= 4, actions.taken


def test_replace_all_hardswish(start: Start, lab: Lab) -> None:
    actions = start("network")
    actions.click("search-input")
    actions.type("op:HardSwish")
    actions.click("search-replace")
    actions.click("operator-Relu")
    actions.widget.wait("h => h.store.history.position === 1")
    assert lab.python("print(json.dumps([len(model.find('HardSwish')), len(model.find('Relu'))]))") == [0, 8]
    assert len(actions) <= 4, actions.taken
    actions.click("toast-undo")
    actions.widget.wait("h => h.store.history.position === 0")
    assert lab.python("print(json.dumps(len(model.find('HardSwish'))))") == 8


def test_all_convolutions_3x3_with_stride_2(start: Start, lab: Lab) -> None:
    actions = start("network")
    actions.click("search-input")
    actions.type("op:Conv kernel_shape:3,3 strides:2,2")
    actions.widget.get("search-select-all").wait_for()
    shown = actions.widget.get("search-result").evaluate_all("rows => rows.map((row) => Number(row.dataset.id))")
    expected = lab.python("print(json.dumps([n.id for n in model.find('Conv', kernel_shape=[3, 3], strides=[2, 2])]))")
    assert sorted(shown) == sorted(expected)
    assert len(expected) == 3
    assert len(actions) <= 2, actions.taken


def test_make_97_batches_dynamic(start: Start, lab: Lab) -> None:
    actions = start("decoder")
    actions.click("status-dims")
    actions.click("size-dynamic-0-1")
    actions.widget.wait("h => h.store.history.position === 1")
    facts = lab.python("print(json.dumps([str(model.fact(value.name)) for value in model.inputs]))")
    assert len(facts) == 97
    assert all("[batch," in fact for fact in facts)
    assert lab.python("print(json.dumps([str(each) for each in model.diagnostics]))") == []
    assert len(actions) <= 3, actions.taken


def test_first_nan(start: Start) -> None:
    actions = start("faulty")
    actions.click("toolbar-run")
    banner = actions.widget.get("bad-banner")
    banner.wait_for()
    log = actions.widget.node("/middle/Log")
    assert banner.get_attribute("data-node") == str(log)
    assert "First NaN: Log /middle/Log" in banner.inner_text()
    actions.click("bad-show")
    actions.widget.wait("(h, node) => h.app.picked.nodes[0] === node", log)
    assert len(actions) <= 2, actions.taken


def test_look_at_an_activation_as_an_image(start: Start) -> None:
    actions = start("network")
    actions.click_at(*actions.label("a0"), "the wire of a0")
    actions.click("value-large")
    planes = actions.widget.get("large-figure")
    planes.nth(7).wait_for()
    assert planes.count() == 8, "one for each channel"
    drawn = (
        planes.nth(3)
        .get_by_test_id("tensor-canvas")
        .evaluate(
            "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
        )
    )
    assert drawn > 10, "the plane has colors"
    assert len(actions) <= 2, actions.taken


def test_feed_an_image_with_mean_and_std(start: Start, lab: Lab, tmp_path: Path) -> None:
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, :32] = [255, 0, 51]
    Image.fromarray(pixels).save(tmp_path / "half.png")
    actions = start("network")
    actions.click("toolbar-inputs")
    actions.choose_file("run-file-image", tmp_path / "half.png")
    actions.choose("run-image-preset-image", "ImageNet")
    actions.widget.wait("h => h.app.numbers.asked.inputs?.image?.file !== undefined")
    actions.widget.page.wait_for_timeout(500)  # the numbers of the preset are on their way
    actions.click("run-inputs-run")
    actions.widget.wait("h => h.app.runs.results.value !== null")
    fed = lab.python("print(json.dumps(model.runner.last_inputs()['image'][0, :, 5, [5, 50]].tolist()))")
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = [(np.array(color) / 255 - mean) / std for color in ([255, 0, 51], [0, 0, 0])]
    np.testing.assert_allclose(fed, expected, atol=1e-3)
    assert len(actions) <= 4, actions.taken


def test_save_a_copy(start: Start, lab: Lab) -> None:
    actions = start("detector")
    original = lab.python("print(json.dumps(str(model.path)))")
    actions.widget.root.focus()
    actions.key("Control+s")
    actions.click("save-copy")
    actions.widget.wait("h => h.store.path.endsWith('detector-edited.onnx')")
    copy = Path(original).with_name("detector-edited.onnx")
    assert copy.read_bytes() == Path(original).read_bytes()
    assert len(actions) <= 2, actions.taken


def test_why_is_this_dim_dynamic(start: Start) -> None:
    actions = start("decoder")
    actions.click_at(*actions.label("s47", kind="output"), "the output s47")
    actions.click("value-dim-1")
    trail = actions.widget.get("trail")
    trail.wait_for()
    assert "axis 1" in trail.inner_text()
    steps = actions.widget.get("explanation")
    steps.get_by_text("hidden").first.wait_for()
    lit = actions.widget.evaluate("h => h.app.travel.trail.value.nodes.length")
    assert lit > 40, "the way leads through the layers"
    assert len(actions) <= 2, actions.taken


def test_draw_a_wire(start: Start, lab: Lab) -> None:
    actions = start("loose")
    right, total = actions.widget.node("right"), actions.widget.node("sum")
    box, target = actions.widget.box(right), actions.widget.box(total)
    assert box is not None
    assert target is not None
    port = (box["x"] + box["w"] / 2, box["y"] + box["h"])
    actions.drag(port, (target["x"] + 0.75 * target["w"], target["y"] + target["h"] / 2), "from right to sum")
    actions.widget.wait("h => h.store.history.position === 1")
    assert lab.python("print(json.dumps([value.name for value in model.node('sum').inputs]))") == ["a", "b"]
    assert len(actions) <= 2, actions.taken


def test_a_wire_that_is_dropped_beside_all_asks_for_a_node_that_fits(start: Start, lab: Lab) -> None:
    actions = start("loose")
    box = actions.widget.box(actions.widget.node("right"))
    place = actions.widget.get("stage").bounding_box()
    assert box is not None
    assert place is not None
    port = (box["x"] + box["w"] / 2, box["y"] + box["h"])
    actions.drag(port, (place["x"] + 12, place["y"] + place["height"] - 12), "from right to nowhere")
    actions.widget.wait("h => h.app.palette.operators.value.length > 0")
    offered = actions.widget.evaluate("h => h.app.palette.operators.value.map(({ op }) => op)")
    assert "StringConcat" not in offered
    assert "Not" not in offered, "it takes booleans"
    actions.widget.get("palette-input").fill("Sigmoid")
    lab.page.keyboard.press("Enter")
    actions.widget.wait("h => h.store.history.position === 1")
    assert lab.python("print(json.dumps(model.nodes[-1].inputs[0].name))") == "b"


def test_where_in_the_model_am_i(start: Start, lab: Lab) -> None:
    lab.page.set_viewport_size({"width": 1900, "height": 1000})
    try:
        actions = start("network")
        widget = actions.widget
        widget.get("tree").wait_for()
        assert widget.get("tree-group").count() > 3, "the outline shows the groups at once"
        assert widget.get("breadcrumb-group").count() == 0, "all of it shows"
        assert len(actions) == 0
        # outline and breadcrumb follow every move
        node = widget.node("/block5/conv/Conv")
        widget.evaluate("(h, node) => h.app.picked.reveal(node)", node)
        widget.get("tree").locator(f'[data-testid="tree-node"][data-id="{node}"]').wait_for()
    finally:
        lab.page.set_viewport_size(VIEWPORT)
