"""Tensors that no runtime takes: the model opens, says what is wrong with them, and can be mended and saved."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnxlab
from onnxlab.errors import LoadError
from tests.graph.support.models import chain

# (what the initializer "w", float32[4, 3, 1, 1], is made into; what reading it says; the code that check gives it)
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "too little raw data": ({"raw_data": bytes(44)}, "44 bytes of raw_data", "tensor-size"),
    "too much raw data": ({"raw_data": bytes(52)}, "52 bytes of raw_data", "tensor-size-unchecked"),
    "too few floats": ({"float_data": [0.5] * 11}, "11 items of float_data", "tensor-size"),
    "too many floats": ({"float_data": [0.5] * 13}, "13 items of float_data", "tensor-size-unchecked"),
    "no data": ({}, "0 items of float_data", "tensor-data"),
    "negative dim": ({"dims": [4, -3, 1, 1], "raw_data": bytes(48)}, "dimensions are at least 0", "tensor-shape"),
    "dims that overflow": ({"dims": [1 << 40] * 4, "raw_data": bytes(48)}, "takes", "tensor-shape"),
    "an unheard type": ({"data_type": 99, "raw_data": bytes(48)}, "element type 99", "tensor-type-unchecked"),
    "no type": ({"data_type": 0, "raw_data": bytes(48)}, "element type 0", "tensor-type"),
    "strings in raw data": ({"data_type": 8, "raw_data": bytes(48)}, "string_data only", "tensor-data"),
    "another field": ({"data_type": 7, "float_data": [0.5] * 12}, "0 items of int64_data", "tensor-data"),
    "external without a place": ({"data_location": 1}, "not in which file", "external-data"),
    "external upwards": ({"location": "../w.bin"}, "goes up with", "external-data"),
    "external absolute": ({"location": "/etc/passwd"}, "absolute path", "external-data"),
    "external device": ({"location": "zero"}, "", "external-data"),
    "external missing": ({"location": "gone"}, "put the file beside the model", "external-data"),
    "external name too long": ({"location": "w" * 5000}, "", "external-data"),
    "external folder": ({"location": "folder"}, "no regular file", "external-data"),
    "external at a negative offset": ({"location": "w.bin", "offset": "-1"}, "-1", "external-data-unreadable"),
    "external far away": ({"location": "w.bin", "offset": str(1 << 62)}, "only 48", "external-data-unreadable"),
    "external of another length": ({"location": "w.bin", "length": "47"}, "47", "external-data-unreadable"),
    "external cut off": ({"location": "w.bin", "offset": "4"}, "only 48", "external-data-unreadable"),
}  # fmt: skip


def broken(fault: dict[str, Any]) -> onnx.ModelProto:
    model = chain()
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    for key, value in fault.items():
        if key in ("location", "offset", "length"):
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key=key, value=value)
        elif isinstance(value, list):
            getattr(tensor, key)[:] = value
        else:
            setattr(tensor, key, value)
    return model


@pytest.mark.parametrize("name", FAULTS)
def test_it_opens_says_what_is_wrong_and_can_be_mended(name: str, tmp_path: Path) -> None:
    fault, message, code = FAULTS[name]
    (tmp_path / "folder").mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(48))
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "m.onnx").write_bytes(broken(fault).SerializeToString())
    model = onnxlab.load(tmp_path / "m.onnx")
    before = model.to_bytes()
    with pytest.raises(LoadError, match=message):
        model.graph.array(model.value("w").id)
    assert code in {problem.code for problem in model.check(types=False)}
    # setting the data repairs a wrong shape or type, too
    model.value("w").array = np.full((4, 3, 1, 1), 0.5, np.float32)
    assert model.check() == []
    onnx.checker.check_model(str(model.save()), full_check=True)
    model.undo()
    assert model.save().read_bytes() == before
