"""Whether kernels can be compiled here, and if not, why: Numba is an extra, and a browser has none."""

import warnings
from functools import cache
from importlib.util import find_spec

HINT = "pip install 'onnxlab[fast]'"


@cache
def missing() -> str:
    """The reason why nothing can be compiled, "" where it can."""
    return "" if find_spec("numba") is not None else f"numba is not installed: {HINT}"


@cache
def warn() -> None:
    """Say once that NumPy runs what Numba was asked for, where that is so."""
    if missing():
        warnings.warn(f"providers: NumPy runs what 'numba' was asked for; {missing()}", stacklevel=4)
