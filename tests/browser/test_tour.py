"""The main job on real models: open, click, edit in a field, watch the shapes follow, undo, run, save."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import onnxlab
from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus

SCREENS = Path("build/screens")


@dataclass(frozen=True)
class Tour:
    """An edit and what comes of it: `value` is downstream of `node`."""

    node: str
    attribute: str
    before: str
    typed: str
    value: str
    label: str
    new_label: str


TOURS = {
    "light_resnet50": Tour("n0", "strides", "2, 2", "1, 1", "r6", "1×64×56×56", "1×64×112×112"),
    "minilm_int8": Tour("node_embedding_1", "axis", "0", "1", "embedding_1", "batch×sequence×384", "2×batch×sequence"),
}


def show(lab: Lab, path: Path) -> Widget:
    """A notebook that shows a model, run."""
    lab.open(f"{path.stem}.ipynb", ["import onnxlab", f"model = onnxlab.load({str(path)!r})", "model"])
    lab.run_all()
    return lab.widget()


def same_bytes(lab: Lab, path: Path) -> bool:
    """Whether the model in the kernel would be saved as the bytes that the file holds."""
    code = f"import json, pathlib; print(json.dumps(model.to_bytes() == pathlib.Path({str(path)!r}).read_bytes()))"
    return bool(lab.python(code))


def edit_and_undo(lab: Lab, widget: Widget, tour: Tour, path: Path) -> None:
    """An attribute in its field, and every shape downstream; then back to labels and bytes."""
    labels = widget.labels()
    widget.select(widget.node(tour.node))
    assert widget.get(f"attr-field-{tour.attribute}").input_value() in (tour.before, "")
    assert labels[tour.value] == tour.label
    widget.set_field(tour.attribute, tour.typed)
    widget.wait_label(tour.value, tour.new_label)
    lab.screenshot(SCREENS / f"tour_{path.stem}_edited.png")
    assert not same_bytes(lab, path)
    widget.press("Control+z")
    widget.wait_label(tour.value, tour.label)
    assert widget.labels() == labels
    assert same_bytes(lab, path)


def run_a_selection(lab: Lab, widget: Widget, tour: Tour, path: Path) -> None:
    """A selection runs and says what its values hold."""
    widget.select(widget.node(tour.node))
    results = widget.run()
    statistics = results[
        widget.evaluate("(h, id) => h.store.values.get(h.store.nodes.get(id).outputs[0]).name", widget.node(tour.node))
    ]
    assert statistics["count"] > 0
    assert statistics["nan"] == 0
    assert sum(statistics["histogram"]["counts"]) == statistics["count"]
    assert statistics["min"] <= statistics["mean"] <= statistics["max"]
    widget.get(f"run-row-{statistics['name']}").wait_for()
    lab.screenshot(SCREENS / f"tour_{path.stem}_run.png")


def save_and_reload(lab: Lab, widget: Widget, tour: Tour, path: Path) -> None:
    """Saving without a net edit writes the bytes that were loaded; with one, what a reload shows."""
    original = path.read_bytes()
    widget.get("toolbar-save").click()
    widget.get("save-confirm").click()
    widget.wait("handle => handle.app.notices.toasts.value.some((toast) => toast.text.startsWith('Saved'))")
    assert path.read_bytes() == original
    widget.select(widget.node(tour.node))
    widget.set_field(tour.attribute, tour.typed)
    widget.wait_label(tour.value, tour.new_label)
    widget.get("toolbar-save").click()
    widget.get("save-confirm").click()
    widget.wait("handle => !handle.store.dirty")
    assert path.read_bytes() != original
    assert same_bytes(lab, path)
    reloaded = onnxlab.load(path)
    assert reloaded.to_bytes() == path.read_bytes()
    assert reloaded.fact(tour.value).label() == tour.new_label
    assert reloaded.nodes[tour.node].attributes[tour.attribute] in (1, [1, 1])


@pytest.mark.parametrize("name", TOURS)
def test_tour(lab: Lab, corpus: Corpus, name: str) -> None:
    path = lab.jupyter.folder / f"{name}.onnx"
    shutil.copy(corpus[name], path)
    widget = show(lab, path)
    lab.screenshot(SCREENS / f"tour_{name}.png")
    edit_and_undo(lab, widget, TOURS[name], path)
    run_a_selection(lab, widget, TOURS[name], path)
    save_and_reload(lab, widget, TOURS[name], path)


def test_a_wrong_value_in_a_field_is_refused_and_the_old_one_stays(lab: Lab) -> None:
    lab.open("refused.ipynb", ["import onnxlab", "model = onnxlab.load()", "model"])
    lab.run_all()
    widget = lab.widget()
    before, version = widget.labels(), widget.version
    widget.select(widget.node("/stem/conv/Conv"))
    widget.set_field("strides", "1, x")
    assert "x" in widget.get("attr-error-strides").inner_text()
    widget.set_field("group", "1.5")
    assert widget.get("attr-error-group").inner_text()
    assert (widget.labels(), widget.version) == (before, version)
    assert lab.python("import json; print(json.dumps(model.nodes['/stem/conv/Conv'].attributes['strides']))") == [1, 1]
