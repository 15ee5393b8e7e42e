"""The inputs of a run that the page asked for: made up, all the same, typed, from files, or those of the last run."""

import json
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxlab import dtypes
from onnxlab.errors import EditError, FeedError
from onnxlab.execution.program.run_errors import describe
from onnxlab.formats.arrays import with_type
from onnxlab.notebook.protocol.messages import ProtocolError
from onnxlab.notebook.protocol.typed_elements import element
from onnxlab.notebook.protocol.uploads import Uploads

if TYPE_CHECKING:
    from onnxlab.model import Model
    from onnxlab.shapes.facts import Fact

Array = np.ndarray[Any, Any]
WAYS = ("random", "zeros", "ones", "last", "text", "file")


def feeds(
    model: "Model", uploads: Uploads, payload: Mapping[str, Any] | None, sizes: Mapping[str, Any] | None, seed: int
) -> dict[str, Any]:
    """An array for every input of the main graph.

    Args:
        payload: by name `{"how": one of WAYS, "text": numbers or JSON, "file": id of an upload}`; inputs left out get
            random values. None for the inputs of the last run, where they fit.
        sizes: sizes of symbolic dims, by name.

    Raises:
        ProtocolError: an input is described in another way, or "last" is chosen for one that was in no run yet.
        FeedError, EditError: numbers or a file do not fit; the message names the input.
    """
    runner = model.runner
    chosen = {str(name): int(size) for name, size in (sizes or {}).items() if _is_size(name, size)}
    if payload is None:
        try:
            return runner.sample_inputs(runner.last_inputs(), seed=seed, sizes=chosen)
        except FeedError:  # the model has other inputs now
            return runner.sample_inputs(seed=seed, sizes=chosen)
    known = {value.name for value in model.inputs}
    ways = {name: _way(name, how, known) for name, how in payload.items()}
    fixed = {name: uploads.get(how.get("file")).array(name) for name, how in ways.items() if how["how"] == "file"}
    fixed = {name: _fit(model, name, array) for name, array in fixed.items()}
    last = runner.last_inputs()
    for name, how in ways.items():
        if how["how"] == "last":
            if name not in last:
                raise ProtocolError(
                    "nothing", f"{name} was in no run yet.", "Choose zeros, random numbers or a file for it."
                )
            fixed[name] = last[name]
        elif how["how"] == "text" and (array := _nested(name, how)) is not None:
            fixed[name] = _fit(model, name, array)
    samples = runner.sample_inputs(fixed, seed=seed, sizes=chosen)
    for name, how in ways.items():
        if how["how"] in ("zeros", "ones", "text") and not isinstance(samples[name], np.ndarray):
            raise EditError(f"input {name!r} takes {model.fact(name)}: give it in Python, model.run({{{name!r}: …}})")
        if how["how"] in ("zeros", "ones"):
            samples[name] = np.full_like(samples[name], how["how"] == "ones")
        elif how["how"] == "text" and name not in fixed:
            samples[name] = _flat(name, how, samples[name])
    return samples


def _is_size(name: str, size: Any) -> bool:
    if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 31:
        return True
    raise ProtocolError("malformed", f"run: the size of {name} is an integer from 0, got {size!r}")


def _way(name: str, how: Any, known: set[str]) -> Mapping[str, Any]:
    if name not in known:
        raise ProtocolError("malformed", f"run: the model has no input {name!r}; it has {', '.join(sorted(known))}")
    if not isinstance(how, dict) or how.get("how") not in WAYS:
        raise ProtocolError("malformed", f"run: how {name} is made is one of {', '.join(WAYS)}, got {how!r}")
    return how


def _nested(name: str, how: Mapping[str, Any]) -> Array | None:
    """Typed numbers in brackets, which give their shape; None where there are no brackets."""
    text = str(how.get("text", "")).strip()
    if not text.startswith("["):
        return None
    try:
        return np.asarray(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise EditError(f"input {name!r}: {text[:40]!r} is no list of numbers: {error}") from None


def _flat(name: str, how: Mapping[str, Any], like: Array) -> Array:
    """Typed numbers without brackets: one for all elements, or one for each."""
    words = [word for word in re.split(r"[,;\s]+", str(how.get("text", ""))) if word]
    if len(words) not in (1, like.size):
        expected = f"{like.size} for {describe(like)}, one for all, or [[…]] with its own shape"
        raise EditError(f"input {name!r}: {len(words)} numbers were typed; it takes {expected}")
    try:
        numbers = [element(word, like.dtype) for word in words]
    except EditError as error:
        raise EditError(f"input {name!r}: type numbers; {error}") from None
    return np.resize(np.asarray(numbers, like.dtype), like.shape)


def _cast(name: str, fact: "Fact", dtype: "np.dtype[Any]", array: Array) -> Array:
    """An array in the type of an input; refused where an element of a type that is not rounded would be another."""
    try:
        is_text = dtypes.STRING in (dtypes.from_numpy(array.dtype), dtypes.from_numpy(dtype))
    except ValueError:
        is_text = True
    if is_text:
        raise EditError(f"input {name!r} takes {fact}; given {describe(array)}")
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings(action="ignore"):
        cast = array.astype(dtype)
        rounds = dtypes.is_float(dtypes.from_numpy(cast.dtype)) and array.dtype.kind != "c"
        same_sign = np.array_equal(cast.astype(np.float64) < 0, array.astype(np.float64) < 0)
        if not rounds and not (same_sign and np.array_equal(cast.astype(array.dtype), array)):
            hint = "fractions, NaN and numbers out of its range would be others"
            raise EditError(f"input {name!r} takes {fact}, which cannot hold all of {describe(array)}: {hint}")
    return cast


def _fit(model: "Model", name: str, array: Array) -> Array:
    """An array in the declared type, with a batch axis added where only that is missing."""
    fact = model.fact(name)
    array = with_type(array, fact.dtype)
    if fact.dtype is not None and array.dtype != fact.dtype and array.dtype.kind not in "OUS":
        array = _cast(name, fact, fact.dtype, array)
    rank = fact.rank
    return array[None] if rank is not None and array.ndim == rank - 1 else array
