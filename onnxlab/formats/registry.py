"""The formats that files of models have: found by content, by suffix or by name. Each is a module of `known/`."""

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from onnxlab.errors import NameLookupError
from onnxlab.formats import known
from onnxlab.formats.base.format import Content, Format


@cache
def formats() -> tuple[Format, ...]:
    """Every format, in the order in which formats are tried on a file."""
    modules = [import_module(f"{known.__name__}.{entry.name}") for entry in pkgutil.iter_modules(known.__path__)]
    forms: list[Format] = [module.FORMAT for module in modules]
    return tuple(sorted(forms, key=lambda form: (form.rank, form.name)))


def by_content(content: Content) -> Format | None:
    """The format that a file is in, whatever its name; None for text of no format."""
    return next((form for form in formats() if form.recognizes(content)), None)


def by_suffix(path: Path | None) -> Format | None:
    """The format of a file name's suffix, None where no format has it."""
    suffix = path.suffix.lower() if path is not None else ""
    return next((form for form in formats() if suffix in form.suffixes), None)


def by_name(name: str) -> Format:
    """The format of a name, or of a suffix with or without its dot.

    Raises:
        NameLookupError: there is no such format; the message lists all.
    """
    key = str(name).lower()
    for form in formats():
        if key == form.name or f".{key.removeprefix('.')}" in form.suffixes:
            return form
    raise NameLookupError(f"{name!r:.80} is no format; there are {', '.join(form.name for form in formats())}")
