"""ONNX's node cases through the provider: every twentieth here, all of them with ONNXLAB_LONG=1 and in the bench."""

import os
import zlib

import pytest

from tests.execution.support.compiled_backend import REACHED, failures

EVERY = 1 if os.environ.get("ONNXLAB_LONG") else 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_cases_of_the_onnx_wheel():
    failed, passed = failures(lambda name: zlib.crc32(name.encode()) % EVERY == 0)
    assert failed == {}
    assert passed > 1500 / EVERY
    assert REACHED["regions"] > 400 / EVERY
