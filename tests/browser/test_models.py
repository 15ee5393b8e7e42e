"""The tour's short form on other models: shown, edited in a field, undone, saved."""

import shutil

import pytest

from tests.browser.support.lab import Lab
from tests.support.corpus import Corpus

# model: (node, by name or first output; attribute; what is typed)
EDITS = {
    "bert_base": ("node_embedding", "axis", "1"),
    "gpt2_kv": ("/m/transformer/wte/Gather", "axis", "1"),
    "magika": ("jax2tf_get_logits_/pjit_get_logits_/MagikaV2/LayerNorm_0/Sum", "keepdims", "1"),
    "silero_vad_op18_ifless": ("node_Conv_29", "strides", "1"),
    "rapidocr_cls": ("conv2d_53.tmp_0", "strides", "1 1"),
    "lstm_gru": ("/e/Gather", "axis", "1"),
    "whisper_encoder": ("node_permute", "perm", "1, 2, 0"),
}


@pytest.mark.parametrize("name", EDITS)
def test_shown_edited_undone_and_saved(lab: Lab, corpus: Corpus, name: str) -> None:
    node_name, attribute, typed = EDITS[name]
    path = lab.jupyter.folder / f"{name}.onnx"
    shutil.copy(corpus[name], path)
    original = path.read_bytes()
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(path)!r})"
    lab.open(f"{name}.ipynb", [load, "model"])
    lab.run_all()
    widget = lab.widget()
    node = widget.node(node_name)
    value = widget.evaluate("(handle, node) => handle.store.nodes.get(node).outputs[0]", node)
    label = "(handle, value) => handle.store.values.get(value).label"
    before = widget.evaluate(label, value)

    widget.select(node)
    widget.set_field(attribute, typed)
    widget.wait(f"(handle, [value, before]) => ({label})(handle, value) !== before", [value, before])
    assert lab.python(f"print(json.dumps(model.fact({value}).label()))") == widget.evaluate(label, value)

    widget.press("Control+z")
    widget.wait(f"(handle, [value, before]) => ({label})(handle, value) === before", [value, before])
    widget.get("toolbar-save").click()
    widget.get("save-confirm").click()
    widget.wait("handle => handle.app.notices.toasts.value.some((toast) => toast.kind === 'success')")
    assert path.read_bytes() == original
