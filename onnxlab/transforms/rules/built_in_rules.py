"""The standard set of rules, by level and by name."""

from collections.abc import Iterable
from typing import Final

from onnxlab.errors import TransformError
from onnxlab.spelling import suggestion
from onnxlab.transforms.rules import (
    activations,
    attention,
    decompositions,
    layout,
    linear,
    no_ops,
    normalization,
    pairs,
    quantization,
    redundant,
)
from onnxlab.transforms.rules.rule import AnyRule, Level

LEVELS: Final[tuple[Level, ...]] = ("basic", "extended", "layout")
"""Levels of optimization; each includes those before it."""

STANDARD: Final[tuple[AnyRule, ...]] = (
    *no_ops.RULES, *pairs.RULES, *redundant.RULES, *quantization.RULES, *linear.RULES, *attention.RULES,
    *normalization.RULES, *activations.RULES, *layout.RULES, *decompositions.RULES,
)  # fmt: skip
"""Every rule that comes with onnxlab, in the order in which they are tried at a node."""


def up_to(level: str) -> tuple[AnyRule, ...]:
    """The rules of a level and of those before it.

    Raises:
        TransformError: there is no such level.
    """
    if not isinstance(level, str) or level not in LEVELS:
        raise TransformError(f"{level!r} is no level of optimization; use one of {', '.join(LEVELS)}")
    levels = LEVELS[: LEVELS.index(level) + 1]
    return tuple(rule for rule in STANDARD if rule.level in levels)


def named(name: str, rules: Iterable[AnyRule] = STANDARD) -> AnyRule:
    """The rule of a name.

    Raises:
        TransformError: no rule has that name; the message lists similar names, or all.
    """
    known = {rule.name: rule for rule in rules}
    if name not in known:
        near = suggestion(name, known) or f" There are {', '.join(sorted(known))}."
        raise TransformError(f"no rule is called {name!r}.{near}")
    return known[name]
