"""Providers by the names that users give them: "numpy", "numba", "onnxruntime"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxlab.execution.base.provider import Provider
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.ort.provider import OnnxRuntimeProvider

_MAKERS: dict[str, Callable[[int], Provider]] = {
    "numpy": lambda threads: NumpyProvider(),
    "numba": lambda threads: NumbaProvider(threads),
    "onnxruntime": lambda threads: OnnxRuntimeProvider(threads=threads),
}


def named(names: Sequence[str | Provider], threads: int = 1) -> tuple[Provider, ...]:
    """Make the providers of these names, in order of preference; NumPy, which takes everything, ends the list.

    Args:
        names: names, or providers of your own.
        threads: that each may use in a run.

    Raises:
        ValueError: a name is none of those known.
        ImportError: onnxruntime is asked for and not installed.
    """
    made: list[Provider] = []
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            made.append(name)
        elif name in _MAKERS:
            made.append(_MAKERS[name](threads))
        else:
            raise ValueError(f"no provider is called {name!r}; there are {', '.join(_MAKERS)}")
    if not made or made[-1].name != "numpy":
        made.append(NumpyProvider())
    return tuple(made)
