"""Classes of which `help` shows the docstring alone, on one screen; each member has a page of its own."""

import sys


class ShortHelp(type):
    """Metaclass: `help(cls)` shows the docstring of a class without the pages of all its members.

    The docstring names the members, and `help(cls.member)` shows one. pydoc has no option for this, so `__dir__`
    recognizes a call from pydoc and names no members then.
    """

    def __dir__(cls) -> list[str]:
        frame = sys._getframe(1).f_back  # dir() is asked by inspect, and inspect by pydoc
        if frame is not None and frame.f_globals.get("__name__") == "pydoc":
            return []
        return list(super().__dir__())
