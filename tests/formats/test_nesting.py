"""Models nested deeper than protobuf allows: as text, in bytes, in memory; each is refused by a LoadError."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

import onnxlab
from onnxlab.errors import LoadError

HEAD = '<ir_version: 9, opset_import: ["" : 17]> '
GRAPH = "(float[2] x) => (float[2] y) { "
TEXTS = {
    "bodies": lambda levels: f"g {GRAPH}" + "y = If (c) <then_branch = b () => (float y) { " * levels,
    "sequences": lambda levels: typed("seq(", levels),
    "optionals": lambda levels: typed("optional(", levels),
}


def typed(kind: str, levels: int) -> str:
    return f"g ({kind * levels}float[2]{')' * levels} x) => (float[2] y) {{ y = Relu(x) }}"


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("levels", [150, 300_000])
def test_deep_texts_are_refused_before_the_parser_runs_out_of_stack(tmp_path: Path, name: str, levels: int) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(HEAD + TEXTS[name](levels))
    code = "import onnxlab, sys\ntry: onnxlab.load(sys.argv[1])\nexcept onnxlab.OnnxlabError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60, check=True)
    assert "cannot load" in done.stdout


def test_brackets_in_strings_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(HEAD + f'g (float[2] x) => (float[2] y) {{ y = Foo <a = "{"(" * 500} \\" {"{" * 500}"> (x) }}')
    assert onnxlab.load(path).nodes[0].attributes["a"].count("(") == 500


def nested(levels: int) -> onnx.ModelProto:
    model = helper.make_model(helper.make_graph([], "g", [], []), opset_imports=[helper.make_opsetid("", 17)])
    graph = model.graph
    for level in range(levels):
        node = graph.node.add(op_type="If", input=["c"], output=[f"y{level}"])
        graph = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.output.add(name=f"y{level + 1}")
    graph.node.add(op_type="Relu", input=["x"], output=[f"y{levels}"])
    return model


def test_deep_models_in_memory_are_refused() -> None:
    onnxlab.load(nested(30)).check()
    for levels in (60, 2000):
        with pytest.raises(LoadError, match="100 levels"):
            onnxlab.load(nested(levels))
        for call in (onnxlab.Model, onnxlab.check, onnxlab.infer_shapes):
            with pytest.raises(LoadError, match="100 levels"):
                call(nested(levels))
    model = nested(0)
    kind = model.graph.input.add(name="x").type
    for _ in range(3000):
        kind = kind.sequence_type.elem_type
    kind.tensor_type.elem_type = 1
    with pytest.raises(LoadError, match="100 levels"):
        onnxlab.load(model)
