"""Schemas of the operators that ONNX Runtime adds to ONNX's, read from a table that comes with onnxlab.

`python -m tests.support.runtime_schemas` makes the table from an installed onnxruntime: formal parameters, types,
attributes and defaults. Documentation is read from onnxruntime where it is installed. A schema is made, and its line of
the table parsed, when it is first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from onnxlab.operator_schema import UNBOUNDED, AttributeSchema, FormalParameter, Schema

TABLE: Final = Path(__file__).parent / "data" / "runtime_schemas.txt"
_OPTIONS = {"": "single", "?": "optional", "*": "variadic"}


@cache
def _lines() -> dict[tuple[str, str], dict[int, str]]:
    """{(domain, operator): {since_version: its line}}, lines not parsed."""
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        domain, op_type, since, rest = line.split("\t", 3)
        lines.setdefault((domain, op_type), {})[int(since)] = rest
    return lines


@cache
def _types() -> list[list[str]]:
    """Sets of types, which the lines name by number."""
    with TABLE.open(encoding="utf-8") as file:
        return json.loads(file.readline())  # type: ignore[no-any-return]


@cache
def known() -> Collection[tuple[str, str, int]]:
    """(domain, operator, since_version) of every schema."""
    return tuple((*key, since) for key, versions in _lines().items() for since in versions)


def versions(domain: str, op_type: str) -> tuple[int, ...]:
    """The since_versions of an operator, ascending; empty for an unknown one."""
    return tuple(sorted(_lines().get((domain, op_type), ())))


def find(domain: str, op_type: str, version: int) -> Schema | None:
    """The schema that an operator has where `version` of its domain is imported, or None."""
    since = [entry for entry in versions(domain, op_type) if entry <= version]
    return _schema(domain, op_type, max(since)) if since else None


@cache
def _schema(domain: str, op_type: str, since: int) -> Schema:
    entry = json.loads(_lines()[domain, op_type][since])
    low_in, high_in, low_out, high_out = (UNBOUNDED if count == "*" else count for count in entry["n"])
    return Schema(
        domain,
        op_type,
        since,
        tuple(_formals(entry["i"])),
        tuple(_formals(entry["o"])),
        MappingProxyType({name: _attribute(name, spec) for name, spec in entry.get("a", {}).items()}),
        MappingProxyType({name: tuple(_types()[number]) for name, number in entry.get("t", {}).items()}),
        low_in,
        high_in,
        low_out,
        high_out,
        deprecated=bool(entry.get("d")),
        runtime=entry.get("r", "onnxruntime"),
        unchecked_attributes=bool(entry.get("u")),
    )


def _formals(entries: list[str]) -> Iterator[FormalParameter]:
    """Formals from "name:type", with "?" behind optional ones, "*" behind variadic ones, "*~" where types differ."""
    for entry in entries:
        name, _, rest = entry.partition(":")
        type_str = rest.rstrip("?*~")
        mark = rest[len(type_str) :]
        yield FormalParameter(name, _OPTIONS[mark.rstrip("~")], type_str, homogeneous=not mark.endswith("~"))  # type: ignore[arg-type]


def _attribute(name: str, spec: list[Any]) -> AttributeSchema:
    """An attribute from [type], [type, default] or [type, null, "required"]."""
    return AttributeSchema(name, spec[0], len(spec) > 2, spec[1] if len(spec) > 1 else None)


def documented(schema: Schema) -> Schema:
    """The schema with documentation of an installed onnxruntime; unchanged where that is absent or does not have it."""
    raw = _documentation().get((schema.domain, schema.op_type, schema.since_version)) if schema.runtime else None
    if raw is None:
        return schema
    attributes = {
        name: replace(spec, doc=raw.attributes[name].description) if name in raw.attributes else spec
        for name, spec in schema.attributes.items()
    }
    pairs = [
        tuple(replace(ours, doc=theirs.description) for ours, theirs in zip(formals, raw_formals, strict=False))
        for formals, raw_formals in ((schema.inputs, raw.inputs), (schema.outputs, raw.outputs))
    ]
    return replace(schema, doc=raw.doc or "", attributes=attributes, inputs=pairs[0], outputs=pairs[1])


@cache
def _documentation() -> dict[tuple[str, str, int], Any]:
    """{(domain, operator, since_version): onnxruntime's own schema}, empty where it is not installed."""
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        return {(raw.domain, raw.name, raw.since_version): raw for raw in state.get_all_operator_schema()}
    except (ImportError, AttributeError):
        return {}


@cache
def half_precision_kernels() -> frozenset[str]:
    """Operators, as "domain:name", that ONNX Runtime can run on float16 on a processor; others it runs on float32."""
    return frozenset(TABLE.with_name("cpu_float16.txt").read_text(encoding="utf-8").split())
