"""Names that a Model had before: they still work, and a DeprecationWarning says what stands in their place."""

import warnings
from operator import attrgetter
from typing import Any

RENAMED = {
    **{
        name: f"structure.{name}"
        for name in (
            "ancestors", "between", "boundary", "cone", "connected", "copies", "descendants", "is_convex", "paths",
        )
    },
    **{
        name: f"files.{name}"
        for name in (
            "discard", "load_weights", "loss_report", "on_save", "recover", "recoverable", "save_report",
            "save_weights", "unsaved",
        )
    },
    "declaration": "inference.declaration",
    "fact_of": "inference.fact",
    "scope_record": "graph.names.find_scope",
}  # fmt: skip
"""{old name: the new one}."""

WITHDRAWN = ("node_record", "node_records", "source", "type_refusal", "value_record", "value_records")
"""Names of inner parts that are not for users; they keep working under a leading underscore."""


def is_renamed(name: str) -> bool:
    """Whether a Model had an attribute of this name before."""
    return name in RENAMED or name in WITHDRAWN


def renamed(model: Any, name: str) -> Any:
    """Warn that a name is an old one, and return what it means."""
    if name in RENAMED:
        new = RENAMED[name]
        warnings.warn(f"model.{name} is now model.{new}", DeprecationWarning, stacklevel=3)
        return attrgetter(new)(model)
    warnings.warn(f"model.{name} is an inner part of Model and will go", DeprecationWarning, stacklevel=3)
    return getattr(model, f"_{name}")
