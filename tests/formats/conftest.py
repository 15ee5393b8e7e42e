"""Fixtures of several tests of files and journals."""

from pathlib import Path

import onnx
import pytest

from tests.graph.support.models import branches


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model with bodies, saved."""
    path = tmp_path / "model.onnx"
    onnx.save(branches(), path)
    return path
