"""Checks of a node: operator and attributes against the schema, names against each other."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from onnxlab import schemas
from onnxlab.analysis.check_tensors import check_sparse, check_tensor
from onnxlab.analysis.check_trees import check_trees
from onnxlab.analysis.findings import Findings
from onnxlab.attribute_choices import FLAGS
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos import glow_dialect
from onnxlab.graph.protos.attributes import attribute_type_name
from onnxlab.schemas import Schema

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph

OFFICIAL = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training")
"""Domains whose operators are all known, as nodes spell them."""

_EXPERIMENTAL = frozenset((
    "ATen", "Affine", "ConstantFill", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill", "ImageScaler",
    "ParametricSoftplus", "Scale", "ScaledTanh",
))  # fmt: skip

# field of AttributeProto: its type, as attribute_type_name says it
_VALUE_FIELDS = {
    "f": "float", "i": "int", "s": "string", "t": "tensor", "g": "graph", "tp": "type_proto",
    "sparse_tensor": "sparse_tensor", "floats": "floats", "ints": "ints", "strings": "strings", "tensors": "tensors",
    "graphs": "graphs", "sparse_tensors": "sparse_tensors", "type_protos": "type_protos",
}  # fmt: skip
_TENSORS = frozenset(("t", "tensors", "sparse_tensor", "sparse_tensors"))
_NEEDED = {"tensor": "t", "sparse_tensor": "sparse_tensor", "graph": "g", "type_proto": "tp"}


def check_node(graph: "ModelGraph", node: NodeRecord, imports: dict[str, int], findings: Findings) -> None:
    """Problems of one node, apart from those of its values and bodies.

    Args:
        imports: {domain: version} of the model or function that it is in, as written there.
    """
    proto, label = node.proto, graph.label(node)
    if not proto.op_type:
        findings.error("operator", f"node {label!r} has no operator", "set its op_type", "an op_type", "none")
        return
    if not len(proto.input) and not len(proto.output):
        findings.error(
            "no-values", f"{label} ({proto.op_type}) has neither inputs nor outputs", "connect it, or remove it"
        )
    version = imports.get(proto.domain, imports.get("ai.onnx") if proto.domain == "" else None)
    if version is None:
        findings.error(
            "missing-opset", f"{label} ({proto.op_type}) is of the domain {proto.domain!r}, which is not imported",
            f"import an opset of {proto.domain!r}", f"an opset import of {proto.domain!r}", "none",
        )  # fmt: skip
    _check_attributes(graph, node, findings)
    if version is None or (proto.op_type in _EXPERIMENTAL and proto.domain in ("", "ai.onnx")):
        return
    # a type that onnx does not know by name may be one registered here
    schema = schemas.find(proto.domain, proto.op_type, version)
    if schema is None or (schema.runtime and proto.domain in OFFICIAL):
        _check_unknown(graph, node, version, findings)
    elif schema.deprecated:
        findings.error(
            "deprecated", f"{label}: {proto.op_type} is deprecated in opset {version}",
            "use what replaced it, or an older opset", "an operator in use", f"{proto.op_type}-{schema.since_version}",
        )  # fmt: skip
    elif schema.onnx is not None:
        _check_schema(schema, node, label, findings, glow_dialect.is_dialect(graph.header))
        check_trees(graph, node, findings)
    else:
        _check_custom(schema, node, label, findings)


def _check_unknown(graph: "ModelGraph", node: NodeRecord, version: int, findings: Findings) -> None:
    proto, label = node.proto, graph.label(node)
    if proto.domain not in OFFICIAL:
        return  # only the maker of the domain knows its operators
    if glow_dialect.is_dialect(graph.header) and proto.op_type.startswith(glow_dialect.PREFIX):
        return
    known = schemas.versions(proto.domain, proto.op_type)
    domain = proto.domain or "ai.onnx"
    is_function = (node.domain, node.op_type, proto.overload) in graph.index.functions
    if known:
        message, hint = f"{proto.op_type} is there since opset {known[0]} of {domain}", f"import opset {known[0]} of it"
    elif is_function:
        message, hint = f"the function {proto.op_type} stands in ONNX's own domain", "give it a domain of its own"
    else:
        message = f"{domain} has no operator {proto.op_type}"
        hint = "correct the name or domain, or install a newer onnx package"
    findings.error(
        "unknown-operator", f"{label}: {message}, and the model imports opset {version}", hint,
        f"an operator of {domain} {version}", proto.op_type,
    )  # fmt: skip


def _check_custom(schema: Schema, node: NodeRecord, label: str, findings: Findings) -> None:
    """An operator whose schema was registered here: onnx has none, and looks only whether the domain is its own."""
    unchecked = Findings(findings.node, findings.value, findings.scope)
    _check_schema(schema, node, label, unchecked)
    findings.found += [replace(problem, code=f"{problem.code}-unchecked") for problem in unchecked.found]
    if node.proto.domain in OFFICIAL:
        findings.warning(
            "unknown-to-onnx", f"{label}: {node.proto.op_type} stands in ONNX's own domain, which has no such operator",
            "some runtimes know it; give it a domain of its own if yours does not",
        )  # fmt: skip


def _check_schema(schema: Schema, node: NodeRecord, label: str, findings: Findings, by_glow: bool = False) -> None:
    proto = node.proto
    for kind, names, formal, low, high in (
        ("input", proto.input, schema.input, schema.min_input, schema.max_input),
        ("output", proto.output, schema.output, schema.min_output, schema.max_output),
    ):
        count = len(names)
        if not low <= count <= high:
            expected = str(low) if low == high else f"at least {low}" if count < low else f"at most {high}"
            findings.error(
                "arity", f"{label} ({proto.op_type}) has {count} {kind}s, its operator takes {expected}",
                f"connect or remove {kind}s", expected, str(count),
            )  # fmt: skip
        for slot, name in enumerate(names):
            parameter = formal(slot)
            if not name and parameter is not None and parameter.option == "single":
                findings.error(
                    "arity", f"the required {kind} {parameter.name!r} of {label} ({proto.op_type}) is absent",
                    f"connect a value to {parameter.name!r}", parameter.name, "nothing",
                )  # fmt: skip
    present = set()
    for attribute in proto.attribute:
        present.add(attribute.name)
        if by_glow and glow_dialect.is_own_attribute(attribute.name):
            continue
        _check_against_schema(schema, attribute, f"{label} ({proto.op_type})", findings)
    for name, spec in schema.attributes.items():
        if spec.required and name not in present:
            findings.error(
                "attribute-missing", f"{label} ({proto.op_type}) lacks the required attribute {name!r}",
                f"set {name!r}", spec.type, "none",
            )  # fmt: skip


def _check_against_schema(schema: Schema, attribute: onnx.AttributeProto, label: str, findings: Findings) -> None:
    name = attribute.name
    spec = schema.attributes.get(name)
    if spec is None:
        if not name.startswith("__") and not schema.unchecked_attributes:
            known = ", ".join(schema.attributes) or "none"
            findings.error(
                "attribute-unknown", f"{label} has no attribute {name!r} in version {schema.since_version}",
                "clear it, or import the opset that has it", f"one of {known}", name,
            )  # fmt: skip
        return
    kind = attribute_type_name(attribute.type) if attribute.type else "undefined"
    if kind != spec.type:
        findings.error(
            "attribute-type", f"attribute {name!r} of {label} is of type {kind}",
            f"set it to a value of type {spec.type}", spec.type, kind,
        )  # fmt: skip
    elif not attribute.ref_attr_name and kind in _NEEDED and not attribute.HasField(_NEEDED[kind]):
        findings.error(
            "attribute-value", f"attribute {name!r} of {label} has no value",
            f"set its field {_NEEDED[kind]!r}", _NEEDED[kind], "none",
        )  # fmt: skip
    elif name in FLAGS and schema.domain in OFFICIAL and kind == "int" and attribute.i not in (0, 1):
        findings.warning(
            "attribute-flag", f"attribute {name!r} of {label} is {attribute.i}, which some runtimes take for 1, others "
            "for 0", "set it to 0 or 1", "0 or 1", str(attribute.i),
        )  # fmt: skip


def _check_attributes(graph: "ModelGraph", node: NodeRecord, findings: Findings) -> None:
    """Names and fields of attributes, whatever the operator."""
    seen: set[str] = set()
    label = f"{graph.label(node)} ({node.proto.op_type})"
    inside = graph.scopes[node.scope].kind == "subgraph"
    for attribute in node.proto.attribute:
        name = attribute.name
        if not name:
            findings.error("attribute-name", f"{label} has an attribute without a name", "name it", "a name", "none")
        if name in seen:
            findings.error(
                "attribute-repeated", f"{label} has more than one attribute {name!r}", "clear one of them", "one", "two"
            )
        seen.add(name)
        subject = f"attribute {name!r} of {label}"
        used = [descriptor.name for descriptor, _ in attribute.ListFields() if descriptor.name in _VALUE_FIELDS]
        _check_fields(attribute, used, subject, inside, graph.proto.ir_version, findings)
        if not _TENSORS.isdisjoint(used):
            _check_tensors(attribute, graph.base_dir, subject, findings)


def _check_fields(
    attribute: onnx.AttributeProto, used: list[str], subject: str, inside: bool, ir_version: int, findings: Findings
) -> None:
    if ir_version >= 2 and not attribute.HasField("type"):
        findings.error("attribute-type", f"{subject} does not say its type", "set its type", "a type", "none")
    elif attribute.HasField("type"):
        kind = attribute_type_name(attribute.type) if attribute.type else "undefined"
        for name in used:
            if _VALUE_FIELDS[name] != kind:
                findings.error(
                    "attribute-value", f"{subject} is of type {kind} and has its value in {name!r}",
                    "set the type that belongs to the value", _VALUE_FIELDS[name], kind,
                )  # fmt: skip
    if len(used) > 1:
        findings.error(
            "attribute-value", f"{subject} has more than one value", "clear all but one", "one", ", ".join(used)
        )
    if inside and attribute.HasField("ref_attr_name") and used:
        findings.error(
            "attribute-value", f"{subject} refers to an attribute of the function and has a value of its own",
            "clear one of the two", attribute.ref_attr_name, used[0],
        )  # fmt: skip


def _check_tensors(attribute: onnx.AttributeProto, base_dir: Path | None, subject: str, findings: Findings) -> None:
    single: tuple[Any, ...] = (attribute.t,) if attribute.HasField("t") else ()
    for tensor in (*single, *attribute.tensors):
        check_tensor(tensor, base_dir, findings, f"the tensor in {subject}")
    single = (attribute.sparse_tensor,) if attribute.HasField("sparse_tensor") else ()
    for sparse in (*single, *attribute.sparse_tensors):
        check_sparse(sparse, base_dir, findings, f"the sparse tensor in {subject}")
