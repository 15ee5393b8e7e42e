"""Words of which the schema of the protocol is made: aliases, what a parameter may be, what a method answers.

The records of `records`, `answers` and `events` are TypedDicts of Python's own types; `python -m tests.support.twin`
writes them in TypeScript. A docstring becomes the comment there, and so does a text that annotates a field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

MAX_ID = 2**53 - 1  # the largest integer up to which JavaScript numbers are exact
MAX_TEXT = 1 << 20
MAX_ITEMS = 1 << 20

WireNumber = float | Literal["nan", "inf", "-inf"]
WireInt = int | str
ALIASES: Mapping[str, tuple[Any, str]] = {
    "WireNumber": (WireNumber, "JSON has neither NaN nor infinities, so the kernel writes them as these words."),
    "WireInt": (
        WireInt,
        "An integer; those that a double cannot hold exactly (int64 beyond 2^53) travel as decimal strings.",
    ),
}
"""Types that have a name of their own in TypeScript."""


# -- what a parameter may be -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a method; None counts as left out.

    Attributes:
        type: the Python type, which is translated to TypeScript.
        words: a description of the parameter, for refusals.
    """

    type: Any
    words: str
    required: bool = True

    def fits(self, value: object) -> bool:
        """Whether a value is of the type, and not too large."""
        return _fits(self.type, value)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= 100 and all(isinstance(key, str) for key in value)


_CHECKS: Mapping[Any, Callable[[object], bool]] = {
    int: _is_int,
    str: _is_text,
    bool: lambda value: isinstance(value, bool),
    dict: _is_object,
}


def _fits(kind: Any, value: object) -> bool:
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return isinstance(value, list) and len(value) <= MAX_ITEMS and all(_fits(inner, item) for item in value)
    return _CHECKS[get_origin(kind) or kind](value)


ID = Parameter(int, "an id (an integer from 0)")
IDS = Parameter(list[int], "a list of node ids")
TEXT = Parameter(str, f"a text of at most {MAX_TEXT} characters")
FLAG = Parameter(bool, "true or false")


def optional(kind: Any, words: str) -> Parameter:
    """A parameter that may be left out."""
    return Parameter(kind, words, required=False)


VERSION = optional(int, "the version of the model that the view shows")


@dataclass(frozen=True, slots=True)
class Method:
    """A request that a page may make.

    Attributes:
        answer: the TypedDict of the answer, or an alias of one.
        text: the comment in TypeScript.
        repeatable: whether the request can be made twice without harm.
        long: whether the answer may take long, so that the page does not take the kernel for silent meanwhile.
        edits: whether the method changes the model, and so takes the version that the view showed.
        recorded: the parameter by whose values a page without a kernel stores the answers, "" for a single answer;
            None where the page stores none.
    """

    parameters: Mapping[str, Parameter]
    answer: Any
    text: str = ""
    repeatable: bool = False
    long: bool = False
    edits: bool = False
    recorded: str | None = None


class Nothing(TypedDict):
    """An answer that says only that it was done."""


# -- whether a message fits its declaration ----------------------------------------------------------------------------


def mismatch(kind: Any, value: Any, where: str = "") -> str:
    """The place at which a value is not of a type of the schema, "" where it is."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return ""
    if origin is Annotated:
        return mismatch(args[0], value, where)
    if is_typeddict(kind):
        return _mismatch_of_record(kind, value, where)
    if origin in (list, dict, tuple):
        return _mismatch_of_items(origin, args, value, where)
    if origin in (Union, UnionType):
        problems = [mismatch(choice, value, where) for choice in args]
        return "" if "" in problems else problems[0]
    return "" if _is_plain(kind, value) else f"{where} is {value!r}, not {getattr(kind, '__name__', args or kind)}"


def _is_plain(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is kind


def _mismatch_of_items(origin: Any, args: tuple[Any, ...], value: Any, where: str) -> str:
    """The mismatch of a list, a dict, or a tuple, which is a list in JSON."""
    expected: Any = list | tuple if origin is tuple else origin
    if not isinstance(value, expected):
        return f"{where} is no {origin.__name__}"
    if origin is tuple and len(value) != len(args):
        return f"{where} is {value!r}, not {len(args)} items"
    items = value.items() if origin is dict else enumerate(value)
    kinds = iter(args) if origin is tuple else repeat(args[-1])
    problems = (mismatch(kind, item, f"{where}[{key!r}]") for kind, (key, item) in zip(kinds, items, strict=False))
    return next(filter(None, problems), "")


def _mismatch_of_record(kind: Any, value: Any, where: str) -> str:
    if not isinstance(value, dict):
        return f"{where} is {value!r}, no {kind.__name__}"
    hints = fields_of(kind)
    if unknown := value.keys() - hints.keys():
        return f"{where}: {kind.__name__} declares no {', '.join(sorted(unknown))}"
    for name, (hint, _, needed) in hints.items():
        if name not in value:
            if needed:
                return f"{where}: {kind.__name__} lacks {name}"
        elif problem := mismatch(hint, value[name], f"{where}.{name}"):
            return problem
    return ""


def fields_of(record: Any) -> dict[str, tuple[Any, str, bool]]:
    """{field: (type, comment, whether it must be there)} of a TypedDict."""
    fields = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        needed, text = True, ""
        while get_origin(hint) in (NotRequired, Annotated):
            if get_origin(hint) is NotRequired:
                needed, hint = False, get_args(hint)[0]
            else:
                hint, text = get_args(hint)[:2]
        fields[name] = (hint, text, needed)
    return fields
