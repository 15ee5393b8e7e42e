"""Operator schemas by (domain, operator, opset version): those of onnx.defs, of ONNX Runtime, and custom ones.

A schema is turned into frozen Python values when it is first asked for; onnx is imported then, not with this
module. Custom schemas are registered beside onnx's and looked up by the same rule: the one with the greatest
since_version that is not above the opset version.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from onnxlab import attribute_choices, runtime_schemas
from onnxlab.forking import fork_safe
from onnxlab.operator_schema import UNBOUNDED as UNBOUNDED
from onnxlab.operator_schema import AttributeSchema as AttributeSchema
from onnxlab.operator_schema import FormalParameter as FormalParameter
from onnxlab.operator_schema import Option as Option
from onnxlab.operator_schema import Schema as Schema

OFFICIAL = ("", "ai.onnx.ml", "ai.onnx.preview.training")
"""ONNX's own domains."""

_NEWEST = (1 << 31) - 1
_lock = fork_safe(threading.Lock())
_custom: dict[tuple[str, str], dict[int, Schema]] = {}
_ranges: dict[str, tuple[int, int]] = {}
_standard: dict[tuple[str, str, int], Schema] = {}
_found: dict[tuple[str, str, int], Schema | None] = {}


class _Registry:
    """The operators that are registered here.

    Attributes:
        generation: grows whenever a custom operator is registered or removed: earlier answers may be stale.
    """

    generation = 0


registry = _Registry()


def canonical_domain(domain: str) -> str:
    """Return "" for the default domain under its other name, "ai.onnx", and any other domain as it is."""
    return "" if domain == "ai.onnx" else domain


def find(domain: str, op_type: str, version: int) -> Schema | None:
    """Return the schema that an operator has where `version` of `domain` is imported, or None.

    A version above the newest that is known gets the newest schema; a deprecated schema is returned too, marked as
    such.
    """
    key = (canonical_domain(domain), op_type, version)
    try:
        return _found[key]
    except KeyError:
        schema = custom(*key) or _standard_schema(*key)
        if schema is None:  # not kept: onnx.defs.register_schema may make it known later
            return None
        with _lock:
            return _found.setdefault(key, schema)


def custom(domain: str, op_type: str, version: int) -> Schema | None:
    """Return the registered schema that an operator has where `version` is imported; None where it has onnx's."""
    versions = _custom.get((domain, op_type))
    if not versions:
        return None
    usable = [since for since in versions if since <= version]
    return versions[max(usable)] if usable else None


def _standard_schema(domain: str, op_type: str, version: int) -> Schema | None:
    import onnx

    version = max(min(version, _NEWEST), -_NEWEST)  # a file can claim any; onnx takes 32 bits
    try:
        raw = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return runtime_schemas.find(domain, op_type, version)
    key = (domain, op_type, raw.since_version)
    with _lock:
        if key not in _standard:
            _standard[key] = _convert(raw)
        return _standard[key]


def _convert(raw: Any) -> Schema:
    """Copy an onnx.defs.OpSchema into ours."""
    domain, op_type, since = raw.domain, raw.name, raw.since_version
    attributes = {
        name: AttributeSchema(
            name,
            attribute.type.name.lower(),
            bool(attribute.required),
            _default(attribute),
            attribute.description,
            attribute_choices.find(domain, op_type, name, since) if attribute.type.name.startswith("STRING") else None,
        )
        for name, attribute in raw.attributes.items()
    }
    return Schema(
        domain,
        op_type,
        since,
        tuple(_convert_formal(formal) for formal in raw.inputs),
        tuple(_convert_formal(formal) for formal in raw.outputs),
        MappingProxyType(attributes),
        MappingProxyType({t.type_param_str: tuple(t.allowed_type_strs) for t in raw.type_constraints}),
        raw.min_input,
        raw.max_input,
        raw.min_output,
        raw.max_output,
        raw.doc or "",
        bool(raw.deprecated),
        bool(raw.has_function or raw.has_context_dependent_function),
        onnx=raw,
    )


def _convert_formal(raw: Any) -> FormalParameter:
    return FormalParameter(raw.name, raw.option.name.lower(), raw.type_str, raw.description, bool(raw.is_homogeneous))


def _default(attribute: Any) -> Any:
    """The default as a Python value; strings decoded, None where the schema gives none."""
    import onnx

    proto = attribute.default_value
    if not proto.type:
        return None
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)):
        return [item.decode() if isinstance(item, bytes) else item for item in value]
    return value


def latest_opset(domain: str) -> int:
    """Return the newest version known of a domain, 0 for a domain without operators."""
    import onnx

    domain = canonical_domain(domain)
    if domain in _ranges:
        return _ranges[domain][1]
    newest = [since for (d, _), versions in _custom.items() if d == domain for since in versions]
    newest += [raw.since_version for raw in onnx.defs.get_all_schemas() if raw.domain == domain]
    if domain not in OFFICIAL:
        newest += [since for d, _, since in runtime_schemas.known() if d == domain]
    if domain == "":
        newest.append(onnx.defs.onnx_opset_version())
    if domain == "ai.onnx.ml":
        newest.append(onnx.defs.onnx_ml_opset_version())
    return max(newest, default=0)


def newest_official(domain: str) -> int | None:
    """Return the newest version that the installed onnx knows of one of its own domains; None of any other."""
    import onnx

    match canonical_domain(domain):
        case "":
            return onnx.defs.onnx_opset_version()
        case "ai.onnx.ml":
            return onnx.defs.onnx_ml_opset_version()
        case "ai.onnx.preview.training":
            return 1
    return None


def operators(domain: str, version: int | None = None) -> tuple[str, ...]:
    """Return the names of a domain's operators in alphabetical order.

    With a version, only those that exist in it and are not deprecated. What ONNX Runtime adds to ONNX's own domains is
    not listed.
    """
    import onnx

    domain = canonical_domain(domain)
    names = {raw.name for raw in onnx.defs.get_all_schemas_with_history() if raw.domain == domain}
    names |= {op_type for d, op_type in _custom if d == domain}
    if domain not in OFFICIAL:
        names |= {op_type for d, op_type, _ in runtime_schemas.known() if d == domain}
    if version is not None:
        schemas = {op_type: find(domain, op_type, version) for op_type in names}
        names = {op_type for op_type, schema in schemas.items() if schema and not schema.deprecated}
    return tuple(sorted(names))


def versions(domain: str, op_type: str) -> tuple[int, ...]:
    """Return the since_versions of an operator, ascending; empty for an unknown one."""
    import onnx

    domain = canonical_domain(domain)
    runtime = () if domain in OFFICIAL else runtime_schemas.versions(domain, op_type)
    custom = {*_custom.get((domain, op_type), {}), *runtime}
    if not onnx.defs.has(op_type, domain):  # by far cheaper than the whole history
        return tuple(sorted(custom))
    since = onnx.defs.get_schema(op_type, domain).since_version
    known = {since}
    with contextlib.suppress(onnx.defs.SchemaError):  # there is none before the first version
        while since > 1:
            since = onnx.defs.get_schema(op_type, since - 1, domain).since_version
            known.add(since)
    return tuple(sorted(known | custom))


def domains() -> tuple[str, ...]:
    """Return every domain that has operators, the default one first."""
    import onnx

    names = {raw.domain for raw in onnx.defs.get_all_schemas_with_history()} | {d for d, _ in _custom}
    names |= {d for d, _, _ in runtime_schemas.known()}
    return tuple(sorted(names))


def register(schema: Any) -> None:
    """Make a custom operator known, for every model.

    A custom schema of an operator that ONNX has too hides ONNX's from its since_version on. Where a Schema does not say
    how many inputs and outputs there may be, its formals decide.

    Args:
        schema: a Schema, or an onnx.defs.OpSchema.

    Raises:
        ValueError: the schema has no name, a since_version below 1 or outside of its domain's versions, or formals that
            contradict each other; or this version is registered already.
    """
    schema = completed(schema if isinstance(schema, Schema) else _convert(schema))
    key = (canonical_domain(schema.domain), schema.op_type)
    with _lock:
        versions = _custom.setdefault(key, {})
        if schema.since_version in versions:
            where = f"{key[0] or 'ai.onnx'}::{key[1]} version {schema.since_version}"
            raise ValueError(f"{where} is registered already; unregister it first")
        versions[schema.since_version] = schema
        _forget_found()


def completed(schema: Schema) -> Schema:
    """The schema with what follows from its formals. Raises ValueError where it contradicts itself."""
    where = f"{schema.domain or 'ai.onnx'}::{schema.op_type}"
    first, last = _ranges.get(canonical_domain(schema.domain), (1, _NEWEST))
    if not schema.op_type or not first <= schema.since_version <= last:
        versions = "at least 1" if last == _NEWEST else f"from {first} to {last}, the versions of its domain"
        raise ValueError(f"a schema needs an op_type and a since_version {versions}; this is {schema!r}")
    for formals in (schema.inputs, schema.outputs):
        if any(formal.option == "variadic" for formal in formals[:-1]):
            raise ValueError(f"{where}: only the last input and the last output can be variadic")
        for formal in formals:
            if formal.type_str and formal.type_str not in schema.type_constraints and "(" not in formal.type_str:
                known = ", ".join(sorted(schema.type_constraints)) or "none"
                raise ValueError(
                    f"{where}: {formal.name!r} is of type {formal.type_str!r}, which is neither a type such as "
                    f"'tensor(float)' nor a type constraint; there are: {known}"
                )
    body = schema.function
    if body is not None and (len(body.input) > len(schema.inputs) or len(body.output) > len(schema.outputs)):
        raise ValueError(
            f"{where}: its body takes {len(body.input)} inputs and has {len(body.output)} outputs, "
            f"the schema {len(schema.inputs)} and {len(schema.outputs)}"
        )
    changes: dict[str, Any] = {"has_function": schema.has_function or body is not None}
    if schema.inputs and (schema.min_input, schema.max_input) == (0, UNBOUNDED):
        changes["min_input"], changes["max_input"] = _arity(schema.inputs)
    if schema.outputs and (schema.min_output, schema.max_output) == (0, UNBOUNDED):
        changes["min_output"], changes["max_output"] = _arity(schema.outputs)
    return replace(schema, **changes)


def _arity(formals: tuple[FormalParameter, ...]) -> tuple[int, int]:
    """(least, greatest number): up to the last one that is needed; all of them, or any number of the last."""
    needed = [slot for slot, formal in enumerate(formals, 1) if formal.option == "single"]
    variadic = formals[-1].option == "variadic"
    return max(needed, default=0), UNBOUNDED if variadic else len(formals)


def register_domain(domain: str, first: int, last: int) -> None:
    """State the versions that a custom domain has: operators of other ones are refused, `latest_opset` is the last.

    Raises:
        ValueError: the domain is one of onnx, or there are no such versions.
    """
    import onnx

    domain = canonical_domain(domain)
    if any(raw.domain == domain for raw in onnx.defs.get_all_schemas()):
        raise ValueError(f"the versions of {domain or 'ai.onnx'!r} are those of the installed onnx")
    if not 1 <= first <= last <= _NEWEST:
        raise ValueError(f"a domain has versions from 1 on, the last not before the first; given {first} to {last}")
    with _lock:
        _ranges[domain] = (first, last)
        _forget_found()


def unregister_domain(domain: str) -> None:
    """Forget what `register_domain` stated. Raises LookupError where it stated nothing."""
    with _lock:
        if _ranges.pop(canonical_domain(domain), None) is None:
            raise LookupError(f"no versions of {domain!r} are registered; there are: {', '.join(_ranges) or 'none'}")
        _forget_found()


def version_range(domain: str) -> tuple[int, int] | None:
    """(first, last) version of a domain that is known, None for a domain without operators."""
    domain = canonical_domain(domain)
    if domain in _ranges:
        return _ranges[domain]
    newest = latest_opset(domain)
    return (1, newest) if newest else None


def unregister(domain: str, op_type: str, since_version: int | None = None) -> None:
    """Forget a custom operator: one version of it, or all.

    Raises:
        LookupError: there is no such custom operator.
    """
    key = (canonical_domain(domain), op_type)
    with _lock:
        versions = _custom.get(key, {})
        if not versions or (since_version is not None and since_version not in versions):
            known = ", ".join(f"{d}::{name} {sorted(registered)}" for (d, name), registered in sorted(_custom.items()))
            raise LookupError(f"no custom operator {domain}::{op_type} is registered; there are: {known or 'none'}")
        if since_version is None:
            versions.clear()
        else:
            del versions[since_version]
        if not versions:
            del _custom[key]
        _forget_found()


def _forget_found() -> None:
    _found.clear()
    registry.generation += 1
