"""Providers by the names that users give them: "numpy", "numba", "onnxruntime"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onnxlab.errors import ProviderError
from onnxlab.execution.base.provider import Provider
from onnxlab.execution.numba.machine import availability
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.ort.provider import OnnxRuntimeProvider

_MAKERS: dict[str, Callable[[int], Provider]] = {
    "numpy": lambda threads: NumpyProvider(exact=False),
    "numba": lambda threads: NumbaProvider(threads),
    "onnxruntime": lambda threads: OnnxRuntimeProvider(threads=threads),
}


def usual_names() -> tuple[str, ...]:
    """The names of the providers of a run for which none are given: the fastest that are there, NumPy last."""
    return ("numba", "numpy") if not availability.missing() else ("numpy",)


def named(names: Sequence[str | Provider], threads: int = 1) -> tuple[Provider, ...]:
    """Make the providers of these names, in order of preference; NumPy, which takes everything, ends the list.

    Args:
        names: names, or instances of Provider.
        threads: number of threads that each may use in a run.

    Raises:
        ProviderError: a name is not known, or an item is not a provider.
        MissingPackageError: onnxruntime is asked for and not installed.
    """
    providers: list[Provider] = []
    if not isinstance(names, Iterable):
        raise ProviderError(f"providers are a list of names, as ['numba', 'numpy'], given {names!r:.80}")
    for name in [names] if isinstance(names, str) else names:
        if isinstance(name, Provider):
            providers.append(name)
        elif isinstance(name, str) and name in _MAKERS:
            if name == "numba":
                availability.warn()
            providers.append(_MAKERS[name](threads))
        elif isinstance(name, str):
            raise ProviderError(f"no provider is called {name!r:.80}; there are {', '.join(_MAKERS)}")
        else:
            raise ProviderError(
                f"{name!r:.80} is no provider: derive its class from onnxlab.execution.base.provider.Provider and give "
                f"it a name and the methods get_capability and compile, or give one of the names {', '.join(_MAKERS)}"
            )
    if not providers or providers[-1].name != "numpy":
        providers.append(NumpyProvider(exact=False))
    return tuple(providers)
