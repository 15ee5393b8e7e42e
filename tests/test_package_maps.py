"""The map in each package's docstring names every file with its first line."""

from pathlib import Path

import pytest

from tests.support.package_maps import PACKAGES, expected


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_the_map_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == expected(path), "run `python -m tests.support.package_maps`"
