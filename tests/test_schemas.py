import subprocess
import sys

import onnx
import pytest

from onnxlab import schemas
from onnxlab.schemas import AttributeSchema, FormalParameter, Schema


def test_find_follows_the_versions() -> None:
    assert schemas.find("", "Softmax", 11).since_version == 11
    assert schemas.find("ai.onnx", "Softmax", 12) is schemas.find("", "Softmax", 11)
    assert schemas.find("", "Softmax", 99).since_version == 13
    assert schemas.find("", "Range", 10) is None
    assert schemas.find("nowhere", "Softmax", 1) is None
    assert schemas.find("", "Upsample", 10).deprecated


def test_every_schema_of_onnx_converts() -> None:
    for raw in onnx.defs.get_all_schemas_with_history():
        schema = schemas.find(raw.domain, raw.name, raw.since_version)
        assert (schema.since_version, schema.min_input, schema.onnx.name) == (
            raw.since_version,
            raw.min_input,
            raw.name,
        )
        assert [formal.name for formal in schema.inputs] == [formal.name for formal in raw.inputs]
        assert list(schema.attributes) == list(raw.attributes)
        for attribute in schema.attributes.values():
            assert not isinstance(attribute.default, bytes)
            if attribute.choices and isinstance(attribute.default, str) and attribute.default != "foward":
                assert attribute.default in attribute.choices, (raw.name, attribute)


def test_formal_parameters_and_defaults() -> None:
    conv = schemas.find("", "Conv", 22)
    assert [formal.option for formal in conv.inputs] == ["single", "single", "optional"]
    assert conv.attributes["auto_pad"].default == "NOTSET"
    assert conv.attributes["group"].default == 1
    assert conv.attributes["pads"].default is None
    assert conv.input(3) is None
    concat = schemas.find("", "Concat", 13)
    assert (concat.input(7).option, concat.max_input) == ("variadic", schemas.UNBOUNDED)
    assert concat.attributes["axis"].required
    assert "tensor(float)" in concat.type_constraints["T"]


def test_choices_depend_on_the_version() -> None:
    assert "wrap" not in schemas.find("", "Pad", 18).attributes["mode"].choices
    assert "wrap" in schemas.find("", "Pad", 19).attributes["mode"].choices
    assert schemas.find("", "BitShift", 11).attributes["direction"].choices == ("LEFT", "RIGHT")
    assert schemas.find("", "LSTM", 14).attributes["direction"].choices[-1] == "bidirectional"
    assert schemas.find("", "Einsum", 12).attributes["equation"].choices is None


def test_lists() -> None:
    assert schemas.latest_opset("") == onnx.defs.onnx_opset_version()
    assert schemas.latest_opset("ai.onnx.ml") == 5
    assert schemas.latest_opset("nowhere") == 0
    assert "Upsample" in schemas.operators("")
    assert "Upsample" not in schemas.operators("", 10)
    assert schemas.versions("", "Softmax") == (1, 11, 13)
    assert schemas.domains()[0] == ""


def test_versions_are_those_of_the_whole_history() -> None:
    history: dict[tuple[str, str], set[int]] = {}
    for raw in onnx.defs.get_all_schemas_with_history():
        history.setdefault((raw.domain, raw.name), set()).add(raw.since_version)
    assert {key: set(schemas.versions(*key)) for key in history} == history
    assert schemas.versions("", "Nothing") == ()


def test_custom_operators_come_and_go() -> None:
    def declare(since: int) -> Schema:
        by = AttributeSchema("by", "float", default=2.0)
        return Schema("my.ops", "Scale", since, (FormalParameter("X"),), (FormalParameter("Y"),), {"by": by})

    schemas.register(declare(1))
    schemas.register(declare(3))
    try:
        assert schemas.find("my.ops", "Scale", 2).since_version == 1
        assert schemas.find("my.ops", "Scale", 9).since_version == 3
        assert schemas.versions("my.ops", "Scale") == (1, 3)
        assert (schemas.operators("my.ops"), schemas.latest_opset("my.ops")) == (("Scale",), 3)
        with pytest.raises(ValueError, match=r"my\.ops::Scale version 3 is registered already"):
            schemas.register(declare(3))
        schemas.unregister("my.ops", "Scale", 3)
        assert schemas.find("my.ops", "Scale", 9).since_version == 1
    finally:
        schemas.unregister("my.ops", "Scale")
    assert schemas.find("my.ops", "Scale", 9) is None
    with pytest.raises(LookupError, match=r"no custom operator my\.ops::Scale"):
        schemas.unregister("my.ops", "Scale")


def test_importing_is_cheap() -> None:
    code = "import sys, onnxlab.schemas; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
