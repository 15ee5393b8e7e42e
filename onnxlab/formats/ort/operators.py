"""Operators in ORT format: their version, the inputs of formal ones, the types that choose a kernel."""

from collections.abc import Iterable, Mapping
from typing import Any

import onnx

from onnxlab import schemas
from onnxlab.schemas import FormalParameter, Schema

KernelTypes = list[tuple[str, list[tuple[int, int]]]]


def schema_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> Schema | None:
    """The schema of a node by the opset imports; a domain that is not imported has its newest version."""
    domain = schemas.canonical_domain(node.domain)
    version = opsets.get(domain) or schemas.latest_opset(domain)
    return schemas.find(domain, node.op_type, version)


def op_id(domain: str, op_type: str, since: int) -> str:
    """The format's name for a version of an operator: ":Clip:11"."""
    return f"{schemas.canonical_domain(domain)}:{op_type}:{since}"


def input_arg_counts(schema: Schema, inputs: int) -> list[int]:
    """The number of a node's inputs for each formal input; absent inputs before the last present one count."""
    counts = []
    for formal in schema.inputs:
        matched = inputs if formal.option == "variadic" else min(inputs, 1)
        counts.append(matched)
        inputs -= matched
    return counts


def kernel_types(schema: Schema) -> KernelTypes:
    """[(type constraint, or formal parameter without one, [(0 for inputs or 1 for outputs, place)])] in order."""
    places: dict[str, list[tuple[int, int]]] = {}
    for kind, formals in enumerate((schema.inputs, schema.outputs)):
        for place, formal in enumerate(formals):
            places.setdefault(_type_name(schema, formal), []).append((kind, place))
    return sorted(places.items(), key=lambda item: item[0].encode())


def _type_name(schema: Schema, formal: FormalParameter) -> str:
    return formal.type_str if formal.type_str in schema.type_constraints else formal.name


def schema_of_id(ident: str) -> Schema | None:
    """The schema that an operator's id names, None where there is none."""
    domain, _, rest = ident.rpartition(":")[0].rpartition(":")
    since = ident.rpartition(":")[2]
    schema = schemas.find(domain, rest, int(since)) if since.isdecimal() else None
    return schema if schema is not None and schema.since_version == int(since) else None


def resolver_table(types: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """The table of all operators that a model has, by their ids."""
    return {
        "op_kernel_type_str_args": [
            {
                "op_id": ident,
                "kernel_type_str_args": [
                    {"kernel_type_str": name, "args": [{"arg_type": kind, "index": place} for kind, place in args]}
                    for name, args in types[ident]
                ],
            }
            for ident in sorted(types, key=str.encode)
        ]
    }
