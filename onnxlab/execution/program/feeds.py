"""The caller's arrays, checked against what the model declares before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import FeedError
from onnxlab.execution.program.run_errors import describe
from onnxlab.shapes import (
    Dim,
    Expr,
    Fact,
    MapFact,
    OptionalFact,
    SequenceFact,
    SparseTensorFact,
    TensorFact,
    evaluate,
)
from onnxlab.shapes.expressions import Atom


def convert(feeds: Mapping[str, Any], facts: Mapping[str, Fact]) -> dict[str, Any]:
    """Return the feeds as arrays that fit.

    Python numbers, lists and strings take the declared dtype; arrays must have it. Declared dims must match, and a
    symbolic dim must mean the same size in every input.

    Args:
        feeds: {name: array, number, nested list, list of arrays for a sequence, None for an optional}.
        facts: what is declared or known of each of these names.

    Raises:
        FeedError: a dtype, rank or size does not fit; the message says what was given and what is expected.
    """
    arrays = {name: _convert(name, value, facts[name]) for name, value in feeds.items()}
    _check_dims({name: facts[name] for name in feeds}, arrays)
    return arrays


def _convert(name: str, value: Any, fact: Fact) -> Any:
    if isinstance(fact, OptionalFact):
        return None if value is None else _convert(name, value, fact.elem)
    if isinstance(fact, SequenceFact):
        if not isinstance(value, (list, tuple)):
            raise _misfit(name, describe(value), fact, "give a list of arrays")
        return [_convert(f"{name}[{number}]", item, fact.elem) for number, item in enumerate(value)]
    if isinstance(fact, MapFact):
        if not isinstance(value, dict):
            raise _misfit(name, describe(value), fact, "give a dict")
        return {key: _number(item, fact.elem) for key, item in value.items()}
    dtype = fact.dtype if isinstance(fact, (TensorFact, SparseTensorFact)) else None
    is_free = dtype is None and (value is None or isinstance(value, (list, dict)))  # nothing is declared
    return value if is_free else _tensor(name, value, fact, dtype)


def _number(value: Any, fact: Fact) -> Any:
    """A Python number in the declared dtype; anything else as it is."""
    dtype = fact.dtype if isinstance(fact, TensorFact) else None
    return dtype.type(value) if type(value) in (int, float) and dtype is not None and dtype.kind in "fiu" else value


def _tensor(name: str, value: Any, fact: Fact, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    if value is None or isinstance(value, dict) or np.ma.is_masked(value):
        raise _misfit(
            name, describe(value), fact,
            "fill in what is masked, as .filled(0) does" if isinstance(value, np.ndarray) else "give an array",
        )  # fmt: skip
    has_dtype = hasattr(value, "dtype") or hasattr(value, "__array__")
    try:
        array = np.asarray(value) if has_dtype or dtype is None else np.asarray(value, dtype=dtype)
        array = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    except Exception as error:  # a foreign object's __array__ may raise any exception
        raise _misfit(name, f"{type(value).__name__} ({error})", fact, "give an array") from error
    if array.dtype.kind == "U" or not array.dtype.isnative:
        array = array.astype(object if array.dtype.kind == "U" else array.dtype.newbyteorder("="))
    if dtype is not None and array.dtype != dtype:
        expected = dtypes.name(dtypes.from_numpy(dtype))
        raise _misfit(name, describe(array), fact, f"convert it with .astype({expected!r}) if that is what you mean")
    return array


def _misfit(name: str, shown: str, fact: Fact, advice: str) -> FeedError:
    return FeedError(f"input {name!r} takes {fact}; given {shown}; {advice}")


def _check_dims(facts: Mapping[str, Fact], arrays: Mapping[str, Any]) -> None:
    """Raise FeedError where a shape contradicts a declared one, or two inputs contradict each other."""
    sizes: dict[Atom, tuple[int, str]] = {}  # symbol: its size, and the input that says so
    compound: list[tuple[str, int, Dim, int]] = []
    for name, fact in facts.items():
        array = arrays[name]
        if fact.shape is None or not isinstance(array, np.ndarray):
            continue
        if len(fact.shape) != array.ndim:
            raise _misfit(name, describe(array), fact, f"it must have rank {len(fact.shape)}")
        for axis, (dim, size) in enumerate(zip(fact.shape, array.shape, strict=True)):
            symbol = _symbol(dim)
            if isinstance(dim, int):
                if dim != size:
                    raise _misfit(name, describe(array), fact, f"axis {axis} must be {dim}, not {size}")
            elif symbol is None:
                compound.append((name, axis, dim, size))
            elif sizes.setdefault(symbol, (size, name))[0] != size:
                other, source = sizes[symbol]
                raise _misfit(
                    name, describe(array), fact, f"axis {axis} is {dim}, which is {other} in input {source!r}"
                )
    known = {symbol.name: size for symbol, (size, _) in sizes.items()}
    for name, axis, dim, size in compound:
        expected = evaluate(dim, known)
        if expected is not None and expected != size:
            raise _misfit(
                name, describe(arrays[name]), facts[name], f"axis {axis} must be {dim} = {expected}, not {size}"
            )


def _symbol(dim: Dim) -> Atom | None:
    """The symbol of a dim that is a single symbol, None for a number or a compound expression."""
    if not isinstance(dim, Expr) or len(dim.terms) != 1:
        return None
    (monomial, coefficient), *_ = dim.terms.items()
    return monomial[0] if coefficient == 1 and len(monomial) == 1 and not monomial[0].function else None


def check_names(feeds: Iterable[str], inputs: Mapping[str, Fact], values: Iterable[str]) -> None:
    """Raise FeedError for a fed name that no value has; the message lists the inputs."""
    known = set(values)
    for name in feeds:
        if name not in known:
            close = difflib.get_close_matches(str(name), list(known), 1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise FeedError(f"no value is called {name!r}; the inputs are {listed(inputs)}{meant}")


def check_missing(needed: Iterable[str], feeds: Iterable[str], inputs: Mapping[str, Fact]) -> None:
    """Raise FeedError where an input that the run needs is not fed."""
    fed = set(feeds)
    missing = {name: inputs[name] for name in needed if name not in fed}
    if missing:
        raise FeedError(
            f"these inputs are needed and not fed: {listed(missing)}; "
            f"fed: {', '.join(map(repr, sorted(fed))) or 'none'}"
        )


def listed(inputs: Mapping[str, Fact]) -> str:
    """'input' float32[1,3,224,224], 'mask' int64[batch,seq]."""
    return ", ".join(f"{name!r} {fact}" for name, fact in inputs.items()) or "none"
