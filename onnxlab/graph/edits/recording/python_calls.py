"""Statements of Python that make an edit: a call of a method, an attribute that is set, an entry of a mapping.

A statement can be written, for the history, and executed, given its arguments: one description serves both.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.graph.edit.script import node_handle
from onnxlab.graph.edit.statements import WRITTEN_DTYPES, value_handle
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.state.names import Names

MOST_ITEMS = 256
"""Most items of a list that is written out."""
MOST_ELEMENTS = 64
"""Most elements of an array that is written out."""
MOST_TEXT = 1 << 16
"""Most characters of a text that is written out."""
MOST_UNIFORM = 1 << 24
"""Most bytes of an array whose elements are compared, to write equal ones as `np.full`."""

_LATE_DTYPES = "?bBhHiIlLqQefd"

UNWRITTEN = object()
"""Stands for an argument without a short expression: the statement has only the argument's name."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a statement: what a keyword calls it, "" where it stands by its place, and its text.

    Attributes:
        exact: whether the text evaluates to the argument; else the text only names the argument.
    """

    keyword: str
    text: str
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.keyword}={self.text}" if self.keyword else self.text


def argument(names: Names, name: str, value: Any, keyword: bool) -> Argument:
    """An argument called `name`."""
    text = literal(names, value)
    return Argument(name if keyword else "", name if text is None else text, text is not None)


@dataclass(frozen=True, slots=True)
class PythonCall:
    """`subject.method(…)`.

    Attributes:
        of_model: whether the method is one of the model, with the subject as the first argument.
        alone: whether a single node has the method itself; several nodes are an argument of the model's method.
    """

    method: str
    of_model: bool = False
    alone: bool = False

    def text(self, subject: str, arguments: Sequence[Argument], several: bool = False) -> str:
        """The statement; `several` says that the subject is a list."""
        listed = ", ".join(map(str, arguments))
        if self.of_model and (several or not self.alone):
            return f"model.{self.method}({', '.join(filter(None, [subject, listed]))})"
        return f"{subject}.{self.method}({listed})"

    def make(self, model: Any, subject: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Do it."""
        if self.of_model:
            getattr(model, self.method)(subject, *positional, **keywords)
        else:
            getattr(subject, self.method)(*positional, **keywords)


@dataclass(frozen=True, slots=True)
class Assign:
    """`subject.attribute = value`."""

    attribute: str

    def text(self, subject: str, arguments: Sequence[Argument], several: bool = False) -> str:
        """The statement."""
        return f"{subject}.{self.attribute} = {arguments[0].text}"

    def make(self, model: Any, subject: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Do it."""
        setattr(subject, self.attribute, positional[0])


@dataclass(frozen=True, slots=True)
class Item:
    """`subject.mapping[key] = value`; without a value, or with None for it, the entry is deleted."""

    mapping: str

    def text(self, subject: str, arguments: Sequence[Argument], several: bool = False) -> str:
        """The statement."""
        place = f"{subject}.{self.mapping}[{arguments[0].text}]"
        if len(arguments) == 1 or arguments[1].text == "None":
            return f"del {place}"
        return f"{place} = {arguments[1].text}"

    def make(self, model: Any, subject: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Do it."""
        entries = getattr(subject, self.mapping)
        if len(positional) == 1 or positional[1] is None:
            del entries[positional[0]]
        else:
            entries[positional[0]] = positional[1]


Statement = PythonCall | Assign | Item


def handle(names: Names, subject: Any) -> str:
    """The expression that finds what an edit is made to on another copy of the model."""
    if isinstance(subject, NodeRecord):
        return node_handle(names, subject)
    if isinstance(subject, ValueRecord):
        return value_handle(names, subject)
    if isinstance(subject, Iterable):
        return f"[{', '.join(node_handle(names, node) for node in subject)}]"
    return "model"


def called(names: Names, subject: Any) -> str:
    """The subject's name in messages."""
    if subject is None:
        return "the model"
    if isinstance(subject, NodeRecord):
        return names.label(subject)
    if isinstance(subject, ValueRecord):
        return subject.name
    if isinstance(subject, Scope):
        return names.scope_path(subject) or "the graph"
    if isinstance(subject, Sequence):
        return names.label(subject[0]) if len(subject) == 1 else f"{len(subject)} nodes"
    return "the model"


def literal(names: Names, value: Any) -> str | None:
    """A short expression that makes exactly a value, None where there is none."""
    kind = type(value)
    if value is None or kind in (bool, int):
        return repr(value)
    if kind in (str, bytes):
        return repr(value) if len(value) <= MOST_TEXT else None
    if kind is float:
        return _float(value)
    if kind in (list, tuple):
        return _listed(names, value)
    if kind is dict:
        items = [(literal(names, key), literal(names, item)) for key, item in value.items()]
        whole = all(key and item for key, item in items)
        return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}" if whole else None
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value), isinstance(value, np.generic))
    if isinstance(value, NodeRecord | ValueRecord):
        return handle(names, value)
    return repr(names.scope_path(value, telling=True)) if isinstance(value, Scope) else None


def _float(value: float) -> str | None:
    text = repr(value) if np.isfinite(value) else f"float({str(value)!r})"
    same = struct.pack("d", float(str(value))) == struct.pack("d", value)
    return text if same else None  # False for a NaN with other bits


def _listed(names: Names, value: Sequence[Any]) -> str | None:
    if len(value) > MOST_ITEMS:
        return None
    texts = [text for item in value if (text := literal(names, item)) is not None]
    if len(texts) != len(value):
        return None
    inner = ", ".join(texts)
    return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"


def _array(array: "np.ndarray[Any, Any]", scalar: bool) -> str | None:
    dtype = array.dtype
    if not array.size or not dtype.isnative or (scalar and dtype.name not in WRITTEN_DTYPES):
        return None
    first = array.flat[0]
    if scalar:
        name = dtype.name if dtype.name != "bool" else "bool_"
        return f"np.{name}({element(first)})" if np.isfinite(first) else None
    if (shown := dtype_expression(dtype)) is None:
        return None
    plain = dtype.kind != "O"
    if plain and array.size > 4 and array.nbytes <= MOST_UNIFORM and array.tobytes() == first.tobytes() * array.size:
        text, rebuilt = f"np.full({array.shape!r}, {element(first)}, {shown})", np.full(array.shape, first, dtype)
    elif array.size <= MOST_ELEMENTS and array.ndim:
        items = ", ".join(element(item) for item in array.reshape(-1))
        text = f"np.array([{items}], {shown})" + (f".reshape({array.shape!r})" if array.ndim > 1 else "")
        rebuilt = np.array([_python(item) for item in array.reshape(-1)], dtype).reshape(array.shape)
    elif not array.ndim:
        text, rebuilt = f"np.array({element(first)}, {shown})", np.array(_python(first), dtype)
    else:
        return None
    if not plain:
        return text if all(type(item) is str for item in array.flat) else None
    return text if rebuilt.tobytes() == array.tobytes() else None


def late_array(array: "np.ndarray[Any, Any]") -> Any:
    """A copy of a small array, which `literal` writes exactly at any time; UNWRITTEN for one that has no expression.

    None where `literal` must try now: numbers that are not finite, large arrays whose elements may all be equal, dtypes
    that NumPy lacks.
    """
    dtype = array.dtype
    if dtype.char not in _LATE_DTYPES or not dtype.isnative or not array.size:
        return None
    if array.size > MOST_ELEMENTS:
        first, second = array.item(0), array.item(1)
        if first < second or first > second:  # quicker than to compare the bytes of NaN and of zeros with signs
            return UNWRITTEN
        return UNWRITTEN if array.flat[0].tobytes() != array.flat[1].tobytes() else None
    return array.copy() if dtype.kind != "f" or np.isfinite(array).all() else None


def dtype_expression(dtype: "np.dtype[Any]") -> str | None:
    """A dtype in Python; those that NumPy does not know come from `onnxlab.dtypes`. None for one that ONNX has not."""
    if dtype.kind == "O":
        return "object"
    if hasattr(np, dtype.name):
        return repr(dtype.name)
    try:
        return f"onnxlab.dtypes.to_numpy({dtypes.from_numpy(dtype)})"
    except (ValueError, KeyError, TypeError):
        return None


def element(item: Any) -> str:
    """An element of an array in Python: the shortest digits that give the same, words where there are none."""
    item = _python(item)
    if isinstance(item, float) and not np.isfinite(item):
        return "np.nan" if np.isnan(item) else "np.inf" if item > 0 else "-np.inf"
    return repr(item)


def _python(item: Any) -> Any:
    item = item.item() if isinstance(item, np.generic) else item
    item = item if isinstance(item, bool | int | float | complex | str) else float(item)
    return np.nan if isinstance(item, float) and np.isnan(item) else item


def arguments_of(names: Names, values: Mapping[str, Any], parameters: Mapping[str, Any]) -> Iterator[Argument]:
    """Arguments as they stand in a statement, of (name, value); those that say their default are left out.

    Args:
        parameters: rows with a `default`, by name; any other name is a keyword argument.
    """
    for name, value in values.items():
        parameter = parameters.get(name)
        if parameter is not None and parameter.is_default(value):
            continue
        yield argument(names, name, value, parameter is None or not parameter.required)
