import inspect
import subprocess
import sys

import numpy as np
import onnx
import pytest

from onnxlab import ops, schemas
from onnxlab.schemas import Schema


def test_lookup_takes_the_newest_version_that_is_not_above():
    for name, since in (("First", 2), ("Second", 7)):
        ops.register(Schema("my.ops", "Op", since, doc=name), kernel=abs)
    try:
        assert ops.find_kernel("my.ops", "Op", 1) is None
        assert [ops.find_kernel("my.ops", "Op", version).since for version in (2, 6, 7, 99)] == [2, 2, 7, 7]
        with pytest.raises(ValueError, match="registered already"):
            ops.register(Schema("my.ops", "Op", 7))
    finally:
        ops.unregister("my.ops", "Op")
    assert ops.find_kernel("my.ops", "Op", 99) is None
    assert schemas.find("my.ops", "Op", 99) is None


def test_a_custom_operator_hides_onnx_s_own_until_unregistered():
    original = ops.find_kernel("", "Relu", 14)
    ops.register(Schema("", "Relu", 14), kernel=abs, infer=lambda ctx, attributes, x: x)
    try:
        assert ops.find_kernel("ai.onnx", "Relu", 21).function is abs
        assert ops.find_rule("", "Relu", 14).since == 14
        assert ops.find_kernel("", "Relu", 13) is not None
    finally:
        ops.unregister("", "Relu")
    assert ops.find_kernel("", "Relu", 14) is original


def test_a_kernel_is_registered_once():
    ops.find_kernel("", "Relu", 14)  # loads the families
    since = ops.kernels()["", "Relu"][-1]
    with pytest.raises(ValueError, match=r"ai\.onnx::Relu since \d+ is registered already"):
        ops.kernel("Relu", since=since)(abs)


def test_families_are_imported_by_the_first_lookup_only():
    code = "import sys, onnxlab.ops as o; assert 'onnxlab.ops.onnx.math.elementwise' not in sys.modules; " \
           "assert o.find_kernel('', 'Add', 14); assert 'onnx' not in sys.modules"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_schema_of_onnx_has_a_kernel_that_takes_its_inputs_and_attributes():
    without, unfit = set(), []
    for raw in onnx.defs.get_all_schemas_with_history():
        kernel = ops.find_kernel(raw.domain, raw.name, raw.since_version)
        if kernel is None:
            without.add((raw.domain, raw.name))
        elif not isinstance(kernel.function, np.ufunc):
            unfit += [(raw.name, raw.since_version, name) for name in missing(kernel, raw)]
    assert without == {("ai.onnx.preview.training", "Gradient")}
    assert not unfit


def missing(kernel, raw):
    """Attributes that a kernel does not take, and "inputs" where it takes too few."""
    parameters = inspect.signature(kernel.bind or kernel.function).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        yield from (name for name in raw.attributes if name not in parameters)
    if inspect.Parameter.VAR_POSITIONAL not in kinds and kernel.bind is None:
        positional = [p for p in parameters.values() if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        if len(positional) - kernel.context < raw.max_input:
            yield "inputs"
