"""Schemas that ONNX Runtime adds to ONNX's: equal to those of the installed onnxruntime, and judged by as it does."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

import onnxlab
from onnxlab import runtime_schemas, schemas
from onnxlab.notebook.panels.operator_docs import documentation
from onnxlab.schemas import AttributeSchema, Schema
from tests.support import runtime_schemas as made
from tests.support.one_operator import sound
from tests.support.ort_judge import OrtJudge

FAULTS = 200
OTHER = {"int": "x", "float": 3, "string": 2, "ints": [0.5], "floats": ["x"], "strings": 1}


def test_the_table_is_what_the_installed_onnxruntime_says() -> None:
    if onnxruntime.__version__ != "1.31.1":
        pytest.skip("the table is of onnxruntime 1.31.1")
    rows = [row for row in made.read(runtime_schemas.TABLE.read_text(encoding="utf-8")) if "r" not in row[3]]
    for row in rows:
        row[3].pop("u", None)  # found out by asking, which the faults below do
    assert rows == made.installed()


def test_every_schema_of_onnxruntime_is_found_as_it_is() -> None:
    known = state.get_all_operator_schema()
    for raw in known:
        if raw.domain in schemas.OFFICIAL:
            continue
        schema = schemas.find(raw.domain, raw.name, raw.since_version)
        assert schema is not None
        assert (schema.op_type, schema.since_version, schema.runtime) == (raw.name, raw.since_version, "onnxruntime")
        assert (schema.min_input, schema.max_input, schema.min_output, schema.max_output) == (
            raw.min_input, raw.max_input, raw.min_output, raw.max_output,
        )  # fmt: skip
        for ours, theirs in zip(schema.inputs + schema.outputs, [*raw.inputs, *raw.outputs], strict=True):
            assert (ours.name, ours.option) == (theirs.name, theirs.option.name.lower())
            assert set(schema.type_constraints.get(ours.type_str, (ours.type_str,))) == theirs.types
        assert {name: (spec.type, spec.required) for name, spec in schema.attributes.items()} == {
            name: (spec.type.name.lower(), spec.required) for name, spec in raw.attributes.items()
        }
    assert len(known) > 800


def test_domains_versions_and_operators_are_listed() -> None:
    assert {"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"} <= set(schemas.domains())
    assert "Attention" in schemas.operators("com.microsoft", 1)
    assert "Affine" not in schemas.operators("", 9), "ONNX's own domain lists what is ONNX's"
    assert schemas.versions("com.microsoft", "FusedConv") == (1,)
    assert schemas.latest_opset("com.microsoft") == 1
    assert schemas.find("", "SimplifiedLayerNormalization", 17) is not None
    newest = schemas.find("", "LayerNormalization", 17)
    assert newest is not None
    assert not newest.runtime, "ONNX's own comes first"


def test_documentation_comes_from_onnxruntime() -> None:
    schema = schemas.find("com.microsoft", "Attention", 1)
    assert schema is not None
    assert schema.doc == ""
    text = documentation(schema)
    assert "Multi-Head" in text
    assert "num_heads (int, required): Number of attention heads" in text


def test_there_is_none_where_onnxruntime_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_schemas, "_documentation", dict)
    schema = schemas.find("com.microsoft", "Attention", 1)
    assert schema is not None
    assert documentation(schema).startswith("Inputs\n  input (bfloat16, float, float16): \n")


def unknown_attribute(model: onnx.ModelProto, schema: Schema) -> bool:
    model.graph.node[0].attribute.append(helper.make_attribute("no_such_attribute", 1))
    return True


def wrong_attribute(model: onnx.ModelProto, schema: Schema) -> bool:
    specs: list[AttributeSchema] = [spec for spec in schema.attributes.values() if spec.type in OTHER]
    if not specs:
        return False
    node = model.graph.node[0]
    others = [attribute for attribute in node.attribute if attribute.name != specs[0].name]
    del node.attribute[:]
    node.attribute.extend([*others, helper.make_attribute(specs[0].name, OTHER[specs[0].type])])
    return True


def missing_attribute(model: onnx.ModelProto, schema: Schema) -> bool:
    if not schema.required:
        return False
    del model.graph.node[0].attribute[0]
    return True


def too_many_inputs(model: onnx.ModelProto, schema: Schema) -> bool:
    node = model.graph.node[0]
    if schema.max_input > 100:
        return False
    node.input.extend([node.input[0]] * (schema.max_input + 1 - len(node.input)))
    return True


def too_few_inputs(model: onnx.ModelProto, schema: Schema) -> bool:
    if schema.min_input == 0:
        return False
    del model.graph.node[0].input[schema.min_input - 1 :]
    return True


def wrong_type(model: onnx.ModelProto, schema: Schema) -> bool:
    if not schema.inputs or not model.graph.input:
        return False
    allowed = schema.type_constraints.get(schema.inputs[0].type_str, (schema.inputs[0].type_str,))
    if "tensor(string)" in allowed:
        return False
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    return True


Plant = Callable[[onnx.ModelProto, Schema], bool]
PLANTS: tuple[Plant, ...] = (
    unknown_attribute, wrong_attribute, missing_attribute, too_many_inputs, too_few_inputs, wrong_type,
)  # fmt: skip


def cases() -> Iterator[tuple[Schema, Plant]]:
    names = schemas.operators("com.microsoft", 1)
    pairs = list(itertools.product(names, PLANTS))
    random.Random(0).shuffle(pairs)
    for op_type, plant in pairs:
        schema = schemas.find("com.microsoft", op_type, 1)
        assert schema is not None
        if schema.runtime == "onnxruntime":
            yield schema, plant


def refused_here(model: onnx.ModelProto) -> list[Any]:
    problems = onnxlab.load(model).check()  # apart from the inputs, which onnxruntime lets be without a shape
    return [problem for problem in problems if problem.severity == "error" and problem.node]


def planted() -> tuple[int, list[tuple[str, str, str]]]:
    """The number of planted faults that onnxruntime judged, and those that are judged differently here."""
    judged, different = 0, []
    with OrtJudge() as judge:
        for schema, plant in cases():
            model = sound(schema)
            if model is None or judge.refusal(model.SerializeToString()) != "":
                continue  # no valid node for a fault: the operator needs shapes or a body that its schema does not give
            assert refused_here(model) == [], schema.op_type
            if not plant(model, schema) or (theirs := judge.refusal(model.SerializeToString())) is None:
                continue
            if bool(theirs) != bool(refused_here(model)):
                different.append((schema.op_type, plant.__name__, theirs))
            judged += 1
            if judged == FAULTS:
                break
    return judged, different


def test_200_planted_faults_are_judged_as_onnxruntime_does() -> None:
    judged, different = planted()
    assert different == []
    assert judged == FAULTS
