"""Names of what users hold: old ones still work and warn, misspelt ones are refused, inner parts are not offered."""

import copy
import re
from typing import Any

import pytest
from onnx import parser

import onnxlab
from onnxlab.limits import Limits
from onnxlab.model import Model
from onnxlab.model.renamed import RENAMED, WITHDRAWN
from onnxlab.spelling import ELSEWHERE


@pytest.fixture
def model() -> Model:
    return onnxlab.load()


@pytest.mark.parametrize("name", [*RENAMED, *WITHDRAWN])
def test_an_old_name_works_and_warns(model: Model, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"model\.{name} is ") as warned:
        actual = getattr(model, name)
    assert warned[0].filename == __file__
    assert name not in dir(model)
    expected: Any = model
    for part in RENAMED.get(name, f"_{name}").split("."):
        expected = getattr(expected, part)
    assert actual == expected or callable(actual)


OLD: Any = {
    "model.ancestors(name)": "model.structure.ancestors(name)",
    "model.scope_record('').id": "model.graph.main.id",
    "model.fact_of(model.inputs[0].id)": "model.fact('image')",
    "model.node_record(name).id": "model.nodes[name].id",
}


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_does_what_it_did(model: Model, old: str) -> None:
    names = {"model": model, "name": "/stem/relu/Relu"}
    with pytest.warns(DeprecationWarning, match=r"^model\.\w+ is"):
        done = eval(old, names)
    assert done == eval(OLD[old], names)


HELD = {
    "model": (lambda model: model, "outptus", "outputs"),
    "node": (lambda model: model.nodes[0], "attribtues", "attributes"),
    "value": (lambda model: model.inputs[0], "nmae", "name"),
    "nodes": (lambda model: model.nodes, "idnex", "index"),
    "attributes": (lambda model: model.nodes[0].attributes, "itmes", "items"),
    "metadata": (lambda model: model.metadata, "kesy", "keys"),
    "opsets": (lambda model: model.opsets, "vlaues", "values"),
    "values": (lambda model: model.values, "is_stael", "is_stale"),
    "history": (lambda model: model.history, "budegt", "budget"),
    "files": (lambda model: model.files, "unsvaed", "unsaved"),
    "structure": (lambda model: model.structure, "ancestor", "ancestors"),
    "subgraph": (lambda model: model.subgraph([0]), "node_id", "node_ids"),
    "limits": (lambda _: Limits(), "byts", "bytes"),
}


@pytest.mark.parametrize("kind", HELD)
def test_a_misspelt_attribute_is_refused(model: Model, kind: str) -> None:
    make, wrong, right = HELD[kind]
    held = make(model)
    expected = rf"^an? \w+ has no attribute '{wrong}'\. Did you mean .*'{right}'.*\?$"
    with pytest.raises(AttributeError, match=expected):
        setattr(held, wrong, [1])
    with pytest.raises(AttributeError, match=expected):
        getattr(held, wrong)


def test_a_name_of_other_tools_leads_to_what_stands_for_it(model: Model) -> None:
    """Seen: "a Model has no attribute 'weights'." and nothing more; 'infer_shapes' led to 'near_misses'."""
    holders = {"Model": model, "Node": model.nodes[0], "Value": model.inputs[0]}
    assert set(ELSEWHERE) == set(holders)
    names = {"model": model, "node": model.nodes[0], "value": model.inputs[0], "copy": copy, "print": print}
    for kind, hints in ELSEWHERE.items():
        for name, counterpart in hints.items():
            refusal = rf"^a {kind} has no attribute '{name}'\. Use {re.escape(counterpart)}\.$"
            with pytest.raises(AttributeError, match=refusal):
                getattr(holders[kind], name)
            meant = re.match(r"\w+(\.\w+)*", counterpart)
            assert meant is not None
            eval(meant[0], names)  # it is there


def test_print_tells_what_is_in_a_model(model: Model) -> None:
    """Seen: README says that `model` shows inputs and outputs, and outside of a notebook it was a name and a number."""
    lines = str(model).splitlines()
    assert "  input image: float32[batch,1,8,8]" in lines
    assert "  output probabilities: float32[batch,10]" in lines
    assert repr(model) == "<Model 'digits': 24 nodes, version 0>"


@pytest.mark.parametrize(("kind", "name"), [("model", "outputs"), ("node", "inputs"), ("value", "uses")])
def test_what_cannot_be_set_is_not_called_misspelt(model: Model, kind: str, name: str) -> None:
    with pytest.raises(AttributeError, match="has no setter"):
        setattr(HELD[kind][0](model), name, ())


def test_an_error_inside_of_a_property_is_told_as_it_is() -> None:
    class Broken(Model):
        @property
        def inner(self) -> Any:
            return self.outptus  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="'outptus'"):
        _ = Broken(onnxlab.load().proto).inner


def test_a_class_derived_from_model_may_hold_more() -> None:
    class Mine(Model):
        pass

    derived = Mine(onnxlab.load().proto)
    derived.note = "kept"  # type: ignore[attr-defined]
    assert derived.note == "kept"  # type: ignore[attr-defined]


def test_what_is_inside_of_a_body_is_found_by_its_path() -> None:
    model = onnxlab.load(
        parser.parse_model(
            """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, bool c) => (float[2] y) {
                [choose] y = If (c) <then_branch = t () => (float[2] a) { [cast] a = Relu (x) },
                                     else_branch = e () => (float[2] b) { b = Neg (x) }>
            }"""
        )
    )
    with pytest.raises(onnxlab.OnnxlabError, match="In bodies and functions there is 'choose/then_branch/cast'"):
        model.nodes["cast"]
    with pytest.raises(onnxlab.OnnxlabError, match="In bodies and functions there is 'choose/else_branch/b'"):
        model.fact("b")
    assert model.nodes["choose/then_branch/cast"].op_type == "Relu"
    assert str(model.fact("choose/else_branch/b")) == "float32[2]"
