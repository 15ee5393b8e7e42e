"""Kernels that are compiled before a model needs them, in a process with a cache of its own."""

import json
import os
import subprocess
import sys

import pytest

import onnxlab
from onnxlab.execution.base import background
from onnxlab.execution.numba.machine import object_cache
from onnxlab.execution.numba.machine.compiler_process import NoCompilerError
from onnxlab.execution.numba.plan import kernels_ahead

_SCRIPT = """
import json, sys, time
import numpy as np
import onnxlab
from onnxlab.execution.numba.plan import engine, kernels_ahead
model = onnxlab.load(sys.argv[1])
feeds = model.sample_inputs()
for _ in range(3):
    model.run(feeds)
model.compiled.wait()
until = time.monotonic() + 200
while kernels_ahead.state().ready < 2 and kernels_ahead.is_under_way() and time.monotonic() < until:
    time.sleep(0.05)
state = model.compiled.kernels
told = state.ready, state.count, state.under_way, state.compiling
print(json.dumps([*told, "numba.core" in sys.modules, str(model.compiled)]))
"""


def _told(corpus, folder, **variables):
    environment = os.environ | {"ONNXLAB_CACHE": str(folder), **variables}
    command = [sys.executable, "-c", _SCRIPT, str(corpus["lstm_gru"])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=True)
    assert not done.stderr  # a process that ends during a compilation prints nothing
    return json.loads(done.stdout)


@pytest.mark.slow
def test_first_use_makes_kernels_that_the_model_does_not_need(corpus, tmp_path):
    ready, count, under_way, compiling, imported, text = _told(corpus, tmp_path, ONNXLAB_WARM="1")
    assert 2 <= ready < count
    assert under_way
    assert compiling in text
    assert f"of {count} kernels are on disk" in text
    assert not imported
    assert len(list((tmp_path / "kernels").iterdir())) >= ready


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"ONNXLAB_WARM": "0"}, {"ONNXLAB_WARM": "1", "ONNXLAB_COMPILE": "0"}])
def test_nothing_is_made_where_that_is_turned_off(corpus, tmp_path, variables):
    _, _, under_way, compiling, _, text = _told(corpus, tmp_path, **variables)
    assert not under_way
    assert not compiling
    assert "later models" not in text


@pytest.fixture
def begun(monkeypatch):
    """A function that begins, with these names on disk, and returns those that are compiled."""
    monkeypatch.setenv(kernels_ahead.VARIABLE, "1")
    monkeypatch.setattr(kernels_ahead, "_begun", 0)
    monkeypatch.setattr(kernels_ahead, "_left", [])
    monkeypatch.setattr("onnxlab.threads.start", lambda work, name: work())
    written = {}
    monkeypatch.setattr(object_cache, "write", written.__setitem__)

    def begin(on_disk, refusing=()):
        class Compiler:
            def __init__(self, way):
                assert way == 19

            def compile(self, name):
                if name in refusing:
                    raise NoCompilerError
                return name.encode()

            def end(self):
                written[""] = b"ended"

        monkeypatch.setattr(object_cache, "has", on_disk.__contains__)
        monkeypatch.setattr(kernels_ahead, "CompilerProcess", Compiler)
        kernels_ahead.begin()
        return written

    return begin


def test_only_what_is_not_on_disk_is_compiled_and_common_kernels_first(begun):
    names = kernels_ahead.NAMES
    ahead = begun({*names} - {"top", "gemm"})
    assert [*ahead] == ["gemm", "top", ""]
    assert ahead["gemm"] == b"gemm"
    assert not kernels_ahead.is_under_way()


def test_no_process_is_started_where_all_are_on_disk(begun):
    assert begun({*kernels_ahead.NAMES}) == {}


def test_it_ends_where_nothing_compiles(begun):
    ahead = begun(set(), refusing={"copy"})
    assert "copy" not in ahead
    assert ahead[""] == b"ended"
    assert not kernels_ahead.is_under_way()


def test_it_is_begun_once(begun, monkeypatch):
    begun({*kernels_ahead.NAMES})
    monkeypatch.setattr(object_cache, "has", lambda name: pytest.fail("begun again"))
    kernels_ahead.begin()


def test_waiting_for_a_model_does_not_wait_for_others(model_of_one_node):
    assert model_of_one_node.compiled.wait(60)
    assert background.wait(0)


@pytest.fixture
def model_of_one_node(corpus):
    model = onnxlab.load(corpus["lstm_gru"])
    model.run(model.sample_inputs())
    return model
