"""Fixtures that every test may ask for: the corpus, inputs for it and onnxruntime as oracle.

A model that is absent is made or downloaded; where that fails, the test fails. None is skipped.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from tests.support.corpus import Corpus, inputs
from tests.support.oracle import Oracle, oracle

Feeds = dict[str, np.ndarray]
# models of the corpus whose runs take seconds
LARGE_MODELS = {"deep_chain_12k", "light_densenet121", "light_resnet50", "swin_s", "whisper_encoder"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases over large models of the corpus as slow."""
    for item in items:
        case = getattr(item, "callspec", None)
        if case is not None and LARGE_MODELS.intersection(x for x in case.params.values() if isinstance(x, str)):
            item.add_marker(pytest.mark.slow)


def pytest_configure() -> None:
    """pytest-xdist lets its workers ignore SIGINT; the tests that interrupt a run need what Python does with it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # journals of edits go apart from all others, kernels and command lines that tests start included
    os.environ["ONNXLAB_STATE_HOME"] = tempfile.mkdtemp(prefix="onnxlab-state-")
    os.environ.setdefault("ONNXLAB_WARM", "0")  # no process compiles what no test asks for


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ.pop("ONNXLAB_STATE_HOME"), ignore_errors=True)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """{name: path} of the 33 models, each made when first asked for."""
    return Corpus()


@pytest.fixture(scope="session")
def feeds(corpus: Corpus) -> Callable[[str], Feeds]:
    """A function of a model's name in the corpus: one valid {input: read-only array} for it."""

    @cache
    def drawn(name: str) -> Feeds:
        arrays = inputs(name, corpus[name])
        for array in arrays.values():
            array.setflags(write=False)
        return arrays

    return lambda name: dict(drawn(name))


@pytest.fixture(scope="session")
def ort_run() -> Oracle:
    """A function of path or bytes, feeds and outputs: {name: array} by onnxruntime, optimizations disabled."""
    return oracle()
