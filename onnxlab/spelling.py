"""Near names for a misspelt one, and objects that refuse attributes which they do not have."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any


def suggestion(key: str, names: Iterable[str]) -> str:
    """The end of a message, " Did you mean …", with names close to the key; "" where there are none."""
    pool = [name for name in names if name]
    close = difflib.get_close_matches(key, pool[:20_000], 3)
    close += [name for name in pool if key.lower() in name.lower() and name not in close][: 5 - len(close)]
    return f" Did you mean {', '.join(repr(name) for name in close)}?" if close else ""


class Spelled:
    """An object of which a misspelt attribute can be neither read nor set; classes derived from it have `__slots__`."""

    __slots__ = ()

    if not TYPE_CHECKING:  # else every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property of that name raised the AttributeError
                return object.__getattribute__(self, name)
            raise misspelt(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                object.__setattr__(self, name, value)
            except AttributeError:
                if hasattr(type(self), name):  # a property that cannot be set
                    raise
                raise misspelt(self, name) from None


def misspelt(owner: object, name: str) -> AttributeError:
    """The refusal of an attribute, with the near names that the object has."""
    known = [member for member in dir(type(owner)) if not member.startswith("_")]
    text = f"a {type(owner).__name__} has no attribute {name!r}.{suggestion(name, known)}"
    return AttributeError(text, name=name, obj=None)  # with an `obj`, Python would add the near name once more
