"""The description of an edit: function, subject, parameters, label, and its statement in Python.

A call of a function that is decorated with `recorded` gives the history a label and a statement. Only the outermost
call counts, since edits that it calls are parts of it. The label is made at once, for the journal; the statement is
made when it is first read, or before a change after which it would be another.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from onnxlab.argument_types import expect
from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.script import LateText, Recorded
from onnxlab.graph.edits.recording.python_calls import (
    UNWRITTEN,
    Argument,
    Statement,
    arguments_of,
    called,
    handle,
    late_array,
)
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.state.names import Names

Subject = Literal["model", "graph", "node", "nodes", "value"]
"""Kind of an edit's subject: a model, its main graph, a node, several nodes of one scope, or a value."""

Given = ParamSpec("Given")
Result = TypeVar("Result")
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an edit as Python's statement and the page's request name it.

    Attributes:
        kind: kind of the parameter's values, a key of `notebook.edits.kinds.KINDS`.
        title: label of the field in a form; "" where forms leave the parameter out.
        hint: a sentence under the field.
        default: default value in Python.
    """

    kind: str
    title: str = ""
    hint: str = ""
    default: Any = _REQUIRED

    @property
    def required(self) -> bool:
        """Whether Python needs it."""
        return self.default is _REQUIRED

    def is_default(self, value: Any) -> bool:
        """Whether a value says what holds without it."""
        return value is self.default or (type(value) is type(self.default) and bool(value == self.default))


@dataclass(frozen=True, slots=True)
class EditSpec:
    """One edit: `function(graph, subject, …)`, without the subject where that is the model alone.

    Attributes:
        subjects: kinds of subjects that the edit accepts.
        label: label in the history: a format of `subject` and of the function's arguments, or a function that makes
            the label.
        statement: the edit in Python; None where it consists of other edits, whose statements the history then has.
        parameters: parameters of the statement, in the order of the function's.
        titles: titles in menus, by the arguments that each implies.
        arguments: (graph, arguments of the function) -> arguments of the statement, None where no statement fits.
        written: (graph, subject, arguments of the function) -> the statement, where it has an unusual form.
        exact: whether the statement alone makes the same bytes on another copy of the model; else a script writes the
            changes.
    """

    function: Callable[..., Any]
    subjects: tuple[Subject, ...]
    label: str | Callable[[Mapping[str, Any]], str]
    statement: Statement | None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    arguments: Callable[[ModelGraph, Mapping[str, Any]], Mapping[str, Any] | None] | None = None
    written: Callable[[ModelGraph, Any, Mapping[str, Any]], str] | None = None
    exact: bool = True

    @property
    def name(self) -> str:
        """The edit's name in requests: the function's."""
        return self.function.__name__

    @property
    def subject(self) -> Subject:
        """The parameter that the edit is made to in the first place."""
        return self.subjects[0]

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").split("\n")[0]

    def label_of(self, arguments: Mapping[str, Any], subject: str) -> str:
        """The label, of the function's arguments and of what messages call the subject."""
        return self.label({"subject": subject, **arguments}) if callable(self.label) else self.label.format(
            subject=subject, **arguments
        )  # fmt: skip

    def recorded(self, graph: ModelGraph, subject: Any, values: Mapping[str, Any]) -> Recorded:
        """The label and the statement of an edit that is about to be made."""
        name = subject.proto.name if isinstance(subject, NodeRecord) else ""
        label = self.label_of(values, name or called(graph.names, subject))
        if self.statement is None:
            return Recorded(label)
        if self.written is not None:
            text = self.written(graph, subject, values)
            return Recorded(label, text, bool(text) and self.exact)
        named = (
            self.arguments(graph, values)
            if self.arguments
            else dict(zip(self.parameters, values.values(), strict=False))
        )
        if named is None:
            return Recorded(label)
        if (plain := _kept(named)) is not None and (subject is None or isinstance(subject, _RECORDS)):
            write = partial(self._spelled, graph.names, subject, plain)
            # the statement of an edit of the model itself is the same at any time
            late = LateText(write) if subject is None else graph.history.later(write)
            exact = self.exact and all([value is not UNWRITTEN for value in plain.values()])  # noqa: C419 - faster
            return Recorded(label, late, exact)
        arguments = list(arguments_of(graph.names, named, self.parameters))
        exact = self.exact and all(spelled.exact for spelled in arguments)
        return Recorded(label, self._text(graph.names, subject, arguments), exact)

    def _spelled(self, names: Names, subject: Any, named: Mapping[str, Any]) -> str:
        with names.lock:
            return self._text(names, subject, list(arguments_of(names, named, self.parameters)))

    def _text(self, names: Names, subject: Any, arguments: Sequence[Argument]) -> str:
        assert self.statement is not None
        if subject is None or isinstance(subject, _RECORDS) or not isinstance(subject, Sequence):
            return self.statement.text(handle(names, subject), arguments)
        target = subject[0] if len(subject) == 1 else subject
        return self.statement.text(handle(names, target), arguments, len(subject) > 1)


_RECORDS = (NodeRecord, ValueRecord)

_PLAIN = frozenset((bool, int, str, bytes, type(None)))
_MOST_KEPT = 64
"""Most items of a list, or characters of a text, that are kept to be written later."""


def _kept(named: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments that can be written at any time, copied where they could change; None where there are others."""
    plain = {}
    for name, value in named.items():
        kind = type(value)
        if kind is list or kind is tuple:
            if len(value) > _MOST_KEPT or not _PLAIN.issuperset(map(type, value)):
                return None
            value = kind(value)
        elif kind is np.ndarray:
            value = late_array(value)
            if value is None:
                return None
        elif kind not in _PLAIN:
            return None
        plain[name] = value
    return plain


_NONE = type(None)
_NUMBERS: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    int | None: ((int, _NONE), "a whole number"),
    int | str: ((int, str), "a whole number or a name"),
    int | str | None: ((int, str, _NONE), "a whole number, a name or None"),
}
"""Parameters that take numbers, by their annotation: the types of arguments, and these in words."""


def _with_plain_numbers(
    numbers: Sequence[tuple[int, str, tuple[tuple[type, ...], str]]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with each integer of NumPy as an int, which is what the statement and the protos take."""
    try:
        for at, name, (kinds, words) in numbers:
            if at < len(args):
                if type(args[at]) is not int:
                    args = (*args[:at], expect(args[at], kinds, name, words), *args[at + 1 :])
            elif name in kwargs:
                kwargs = {**kwargs, name: expect(kwargs[name], kinds, name, words)}
    except TypeError as error:
        raise EditError(str(error)) from None
    return args, kwargs


EDITS: dict[str, EditSpec] = {}
"""Every edit by the name of its function; `table` fills it."""


def recorded(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let an edit give the history what its row in the table says."""
    _, *rest = inspect.signature(function).parameters.items()
    defaults = {name: parameter.default for name, parameter in rest}
    names, key = list(defaults), function.__name__
    numbers = [
        (at, name, kinds)
        for at, (name, parameter) in enumerate(rest, 1)
        if (kinds := _NUMBERS.get(parameter.annotation))
    ]

    @functools.wraps(function)
    def made(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        graph: ModelGraph = args[0]  # type: ignore[assignment]
        if numbers:
            args, kwargs = _with_plain_numbers(numbers, args, kwargs)  # type: ignore[assignment]
        with graph.lock:
            spec = EDITS[key]
            if graph.recorded is not None or spec.statement is None:
                return function(*args, **kwargs)  # a part of an outer edit, or a row without a statement
            values = dict(zip(names, args[1:], strict=False))
            if len(values) < len(names):
                values = {**defaults, **values, **kwargs}
            subject = values.pop(names[0]) if spec.subjects != ("model",) else None
            try:
                record = spec.recorded(graph, subject, values)
            except Exception:  # the edit itself raises for wrong arguments
                record = Recorded(spec.name.replace("_", " "))
            graph.recorded = record
            try:
                if graph.transaction is None:
                    return function(*args, **kwargs)
                with graph.edit(record.label) as inner:
                    result = function(*args, **kwargs)
                    inner.sum_up(record)
                return result
            except BaseException:
                graph.history.drop_late(record.text)
                raise
            finally:
                graph.recorded = None

    return made
