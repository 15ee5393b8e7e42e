"""Rules of users: written in a line, in a decorator, or in a file that is named."""

import re
import runpy
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from onnxlab.argument_types import expect, several
from onnxlab.errors import TransformError
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules import built_in_rules
from onnxlab.transforms.rules.rule import AnyRule, Level, Procedure, Rule
from onnxlab.transforms.rules.rule_check import check

RuleSource: TypeAlias = str | Path | Rule | Procedure
"""A rule, the text of a rule, the name of a rule of onnxlab, or a `.toml` or `.py` file of rules."""

_ENTRIES = {"rule", "doc", "level"}


def rule(
    text: str,
    *,
    name: str = "",
    doc: str = "",
    level: Level = "basic",
    where: Mapping[str, Callable[[Match], bool]] | None = None,
) -> Rule:
    """Make a rule for `model.rewrite`: a pattern of nodes, and what takes its place.

    The rule is also a decorator: the function gets the match, and returns, by name, what the replacement reads and the
    pattern does not bind, or words that say why there is nothing to return.

    Args:
        text: such as "Add(MatMul(a, w), c:const) => Gemm(a, w, c)"; the guide to rewriting has the syntax.
        name: the name of the rule in receipts; default: the function's, or the text.
        doc: one line of documentation.
        level: the level of `model.optimize` that applies the rule.
        where: conditions of a match, each by the words for its failure.

    Returns:
        Rule: an argument for `model.rewrite` or `model.why_not`.

    Raises:
        TransformError: the text is no rule; the message says where.

    Examples:
        >>> square = onnxlab.rule("Pow(x, 2) => Mul(x, x)", name="square")
        >>> @onnxlab.rule("Mul(Mul(x, a:const), b:const) => Mul(x, c)")
        ... def one_factor(match):
        ...     "Two constant factors are one."
        ...     return {"c": match.array("a") * match.array("b")}
        >>> one_factor.name, one_factor.doc
        ('one_factor', 'Two constant factors are one.')
    """
    if level not in (*built_in_rules.LEVELS, "decompose"):
        raise TransformError(f"{level!r} is no level of rules; use one of {', '.join(built_in_rules.LEVELS)}")
    expect(where, (Mapping, type(None)), "where", "a mapping of words to functions of a match")
    return Rule(name, text, doc, dict(where or {}), None, level)


def rules_from(sources: RuleSource | Iterable[RuleSource]) -> list[AnyRule]:
    """The rules that sources give, in order.

    Raises:
        TransformError: a text or name is no rule, a rule could never apply, or a file has no rules or cannot be read;
            the message says where.
    """
    rules = [_called(entry) for source in sources_of(sources) for entry in _of(source)]
    for entry in rules:
        if isinstance(entry, Rule) and entry not in built_in_rules.STANDARD:
            check(entry)
    return rules


def sources_of(sources: RuleSource | Iterable[RuleSource]) -> list[RuleSource]:
    """The sources of rules as a list; raises TypeError for what is none."""
    kinds: Any = (str, Path, Rule, Procedure)
    return several(sources, kinds, "rules", "a rule, its text or name, a file of rules, or a list of these")


def _of(source: RuleSource) -> list[AnyRule]:
    if isinstance(source, Rule | Procedure):
        return [source]
    if isinstance(source, str) and "=>" in source:
        return [rule(source)]
    path = Path(source)
    if path.suffix in (".toml", ".py"):
        return _in_file(path)
    if not isinstance(source, str):
        raise TransformError(f"{source!r} is no file of rules; those end in .toml or .py")
    return [built_in_rules.named(source)]


def _called(entry: AnyRule) -> AnyRule:
    """A rule without a name is called by its text."""
    if isinstance(entry, Rule) and not entry.name:
        return Rule(entry.text, entry.text, entry.doc, entry.conditions, entry.compute, entry.level)
    return entry


def _in_file(path: Path) -> list[AnyRule]:
    """The rules of a file. A Python file is executed, so only files that the caller names are read."""
    try:
        rules = _in_toml(path) if path.suffix == ".toml" else _in_python(path)
    except OSError as error:
        raise TransformError(f"cannot read the rules in {path}: {error.strerror}") from error
    if not rules:
        how = "under [name], rule = 'pattern => replacement'" if path.suffix == ".toml" else "with onnxlab.rule"
        raise TransformError(f"{path} has no rules; write one {how}")
    return rules


def _in_toml(path: Path) -> list[AnyRule]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TransformError(f"{path} is no TOML: {error}") from error
    rules: list[AnyRule] = []
    for name, entries in tables.items():
        if not isinstance(entries, dict) or not isinstance(entries.get("rule"), str) or entries.keys() - _ENTRIES:
            raise TransformError(f'{path}: [{name}] has to have rule = "… => …", and may have doc and level')
        try:
            rules.append(
                rule(entries["rule"], name=name, doc=_text(entries, "doc"), level=entries.get("level", "basic"))
            )
        except TransformError as error:
            raise TransformError(f"{path}: [{name}]: {error}") from error
    return rules


def _text(entries: Mapping[str, Any], key: str) -> str:
    return re.sub(r"\s+", " ", str(entries.get(key, ""))).strip()


def _in_python(path: Path) -> list[AnyRule]:
    try:
        names = runpy.run_path(str(path))
    except OSError:
        raise
    except Exception as error:
        raise TransformError(f"{path} fails: {type(error).__name__}: {error}") from error
    rules = []
    for name, value in names.items():
        if isinstance(value, Rule | Procedure):
            if isinstance(value, Rule) and not value.name:
                value = Rule(name, value.text, value.doc, value.conditions, value.compute, value.level)
            rules.append(value)
    return rules
