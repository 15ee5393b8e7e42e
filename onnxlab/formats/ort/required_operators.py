"""Lists of the operators that a build of ONNX Runtime has: required_operators.config, read, written and compared."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import onnx

from onnxlab import schemas
from onnxlab.errors import LoadError
from onnxlab.formats.ort.operators import schema_of
from onnxlab.graph.protos.renaming import nodes_inside
from onnxlab.printable import printable_lines

_TYPES: Final = "!globally_allowed_types;"
_ALL: Final = "!no_ops_specified_means_all_ops_are_required"
_NAME: Final = re.compile(r"\s*([^,{}\s]+)\s*")

Key = tuple[str, int, str]
"""(domain, since_version, operator)."""


@dataclass(frozen=True, slots=True)
class RequiredOperators:
    """The operators that models need, or that a build has.

    Attributes:
        operators: {(domain, since_version, operator): its allowed types as in the file, None for all}.
        allowed_types: the allowed types of all operators, by their names in C++; empty for all types.
        all_if_empty: whether a list without operators means all of them.
    """

    operators: Mapping[Key, Any] = field(default_factory=dict)
    allowed_types: tuple[str, ...] = ()
    all_if_empty: bool = False

    def __str__(self) -> str:
        """The text of a required_operators.config."""
        lines = [_ALL] if self.all_if_empty else []
        if self.allowed_types:
            lines.append(_TYPES + ",".join(self.allowed_types))
        rows: dict[tuple[str, int], list[str]] = {}
        for (domain, since, op_type), types in sorted(self.operators.items(), key=lambda item: item[0]):
            rows.setdefault((domain or "ai.onnx", since), []).append(op_type + (json.dumps(types) if types else ""))
        lines += [f"{domain};{since};{','.join(names)}" for (domain, since), names in sorted(rows.items())]
        return printable_lines(lines)

    def missing(self, build: "RequiredOperators") -> tuple[Key, ...]:
        """The operators that a build does not have."""
        if build.all_if_empty and not build.operators:
            return ()
        return tuple(sorted(set(self.operators) - set(build.operators)))


def parse(text: str) -> RequiredOperators:
    """Read the text of a required_operators.config; raises LoadError that quotes an invalid line."""
    operators: dict[Key, Any] = {}
    allowed: tuple[str, ...] = ()
    all_if_empty = False
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        if entry == _ALL:
            all_if_empty = True
        elif entry.startswith(_TYPES):
            allowed = tuple(name.strip() for name in entry[len(_TYPES) :].split(",") if name.strip())
        else:
            operators.update(_row(entry, number))
    return RequiredOperators(operators, allowed, all_if_empty)


def _row(entry: str, number: int) -> Iterator[tuple[Key, Any]]:
    parts = entry.split(";", 2)
    versions = parts[1].split(",") if len(parts) == 3 else []
    if not versions or not all(version.strip().isdecimal() for version in versions):
        raise LoadError(f"line {number} of the operators is {entry!r:.100}, not domain;version;operators")
    domain = schemas.canonical_domain(parts[0].strip())
    for op_type, types in _operators(parts[2], number):
        for version in versions:
            yield (domain, int(version), op_type), types


def _operators(text: str, number: int) -> Iterator[tuple[str, Any]]:
    """(operator, its types or None) of a list, where JSON with types may follow a name."""
    at = 0
    while at < len(text):
        match = _NAME.match(text, at)
        if match is None:
            raise LoadError(f"line {number} of the operators has {text[at : at + 60]!r} where an operator should be")
        name, types, at = match[1], None, match.end()
        if text[at : at + 1] == "{":
            try:
                types, at = json.JSONDecoder().raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                raise LoadError(f"line {number} of the operators has broken JSON behind {name!r}: {error}") from None
        yield name, types
        rest = text[at:].lstrip()
        if rest and not rest.startswith(","):
            raise LoadError(f"line {number} of the operators has {rest[:60]!r} behind {name!r}")
        at = len(text) - len(rest) + 1 if rest else len(text)


def required(model: onnx.ModelProto) -> RequiredOperators:
    """The operators that a model needs, those of its bodies and functions included."""
    opsets = _opsets(model.opset_import)
    operators = dict.fromkeys(_of_nodes(model.graph.node, opsets, _functions(model)))
    for function in model.functions:
        operators.update(dict.fromkeys(_of_nodes(function.node, _opsets(function.opset_import), _functions(model))))
    return RequiredOperators(operators)


def _opsets(imports: Any) -> dict[str, int]:
    return {schemas.canonical_domain(entry.domain): entry.version for entry in imports}


def _functions(model: onnx.ModelProto) -> set[tuple[str, str]]:
    return {(function.domain, function.name) for function in model.functions}


def _of_nodes(nodes: Any, opsets: Mapping[str, int], functions: set[tuple[str, str]]) -> Iterator[Key]:
    for node in nodes_inside(nodes):
        if (node.domain, node.op_type) in functions or (node.op_type == "Constant" and not node.domain):
            continue  # ONNX Runtime inlines calls and makes initializers of constants
        schema = schema_of(node, opsets)
        domain = schemas.canonical_domain(node.domain)
        yield domain, schema.since_version if schema is not None else opsets.get(domain, 1), node.op_type
