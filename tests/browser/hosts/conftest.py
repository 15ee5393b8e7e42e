"""Settings of tests of hosts in Jupyter are forgotten after them: later tests begin in a light theme."""

from collections.abc import Iterator

import pytest

from tests.browser.support.jupyter import Jupyter


@pytest.fixture(autouse=True)
def light_again(jupyter: Jupyter) -> Iterator[None]:
    """Forget the theme once the test's pages, which are made later and so end earlier, are closed."""
    yield
    jupyter.forget_settings()
