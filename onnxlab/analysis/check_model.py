"""Checks of a model as a whole: versions, opset imports, metadata, and its functions among each other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import onnx

from onnxlab import schemas
from onnxlab.analysis.findings import Findings
from onnxlab.graph.protos.renaming import nodes_inside

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph

_LONGEST_CALL = 100
_MOST_FUNCTIONS = 10_000
_INT32 = 1 << 31
_NONE = -1  # no import; a file that says so means the same


def check_model(proto: onnx.ModelProto, findings: Findings) -> None:
    """Problems of the fields of a ModelProto."""
    check_ir_version(proto, findings)
    for key, count in Counter(entry.key for entry in proto.metadata_props).items():
        if count > 1:
            message = f"the metadata key {key!r} is there {count} times"
            findings.error("metadata", message, "remove one", "1", str(count))
    if proto.ir_version >= 3 and not proto.opset_import:
        findings.error(
            "missing-opset", "the model imports no opset", "add an opset import of ai.onnx", "an opset import", "none"
        )
    if proto.ir_version < 3 and proto.opset_import:
        findings.error(
            "opset", f"a model of IR version {proto.ir_version} cannot import opsets",
            "raise ir_version to 3 or more", "none", str(len(proto.opset_import)),
        )  # fmt: skip
    _check_versions(proto.opset_import, "the model", findings)
    for number, info in enumerate(proto.training_info):
        _check_bindings(proto, info, number, findings)


def _check_bindings(proto: onnx.ModelProto, info: onnx.TrainingInfoProto, number: int, findings: Findings) -> None:
    """Warnings of bindings of training that lead from no output, or to no initializer."""
    graphs = proto.graph, info.algorithm
    stored = {tensor.name for graph in graphs for tensor in graph.initializer}
    stored |= {tensor.values.name for graph in graphs for tensor in graph.sparse_initializer}
    for part, bindings in (("initialization", info.initialization_binding), ("algorithm", info.update_binding)):
        outputs = {output.name for output in getattr(info, part).output}
        for entry in bindings:
            wrong = [(entry.key, "initializer of the model", stored), (entry.value, f"output of the {part}", outputs)]
            for name, kind, names in wrong:
                if name not in names:
                    findings.warning(
                        "training-binding", f"training_info[{number}] binds {entry.key!r} to {entry.value!r}, and "
                        f"{name!r} is no {kind}", "bind it anew (model.bind)", f"an {kind}", "none",
                    )  # fmt: skip


def check_ir_version(proto: onnx.ModelProto, findings: Findings) -> None:
    """Whether the IR version is one that the installed onnx knows."""
    if not proto.ir_version:
        findings.error(
            "ir-version", "the model does not say its IR version", f"set ir_version, for example to {onnx.IR_VERSION}",
            f"1 to {onnx.IR_VERSION}", "none",
        )  # fmt: skip
    elif proto.ir_version > onnx.IR_VERSION:
        findings.error(
            "ir-version", f"the model has IR version {proto.ir_version}, newer than the installed onnx package knows",
            "install a newer onnx package, or lower ir_version", f"at most {onnx.IR_VERSION}", str(proto.ir_version),
        )  # fmt: skip


def check_newer(imports: Sequence[onnx.OperatorSetIdProto], subject: str, findings: Findings) -> None:
    """Whether ONNX's own domains are imported in versions that the installed onnx knows."""
    for entry in imports:
        newest = schemas.newest_official(entry.domain)
        if newest is not None and entry.version > newest:
            findings.error(
                "opset-newer", f"{subject} imports version {entry.version} of {entry.domain or 'ai.onnx'!r}, newer "
                "than the installed onnx package knows: what its operators mean is not known here",
                "correct the version, or install a newer onnx package", f"at most {newest}", str(entry.version),
            )  # fmt: skip


@runtime_checkable
class Reader(Protocol):
    """A provider that reads models up to some versions."""

    @property
    def name(self) -> str:
        """The function's name in messages."""

    def newest(self, domain: str, known: int) -> int:
        """The newest version of a domain that it reads, `known` where that is not below it."""

    def newest_ir(self, known: int) -> int:
        """The newest IR version that it reads, likewise."""


def check_reader(proto: onnx.ModelProto, reader: Reader, findings: Findings) -> None:
    """Warnings of versions that a runtime does not read, though others may run the model."""
    newest = reader.newest_ir(onnx.IR_VERSION)
    if proto.ir_version > newest:
        findings.warning(
            "runtime-ir-version", f"the model has IR version {proto.ir_version}, and {reader.name} reads version "
            f"{newest} at most", "lower ir_version, or install a newer runtime", f"at most {newest}",
            str(proto.ir_version),
        )  # fmt: skip
    for entry in proto.opset_import:
        known = schemas.newest_official(entry.domain)
        if known is None:
            continue
        newest = reader.newest(schemas.canonical_domain(entry.domain), known)
        if entry.version > newest:
            findings.warning(
                "runtime-opset", f"the model imports version {entry.version} of {entry.domain or 'ai.onnx'!r}, and "
                f"{reader.name} reads version {newest} at most", "convert the model (model.convert_opset), or install "
                "a newer runtime", f"at most {newest}", str(entry.version),
            )  # fmt: skip


def _check_versions(imports: Sequence[onnx.OperatorSetIdProto], subject: str, findings: Findings) -> None:
    check_newer([entry for entry in imports if entry.version < _INT32], subject, findings)
    for entry in imports:
        if not -_INT32 <= entry.version < _INT32:
            findings.error(
                "opset", f"{subject} imports version {entry.version} of {entry.domain or 'ai.onnx'!r}",
                "correct the version", "a version", str(entry.version),
            )  # fmt: skip


def imports_of(entries: Sequence[onnx.OperatorSetIdProto], ir_version: int) -> dict[str, int]:
    """{domain: version} as written; a model from before opsets has version 1."""
    versions = {entry.domain: entry.version for entry in entries}
    return versions if versions or ir_version >= 3 else {"": 1}


def check_functions(graph: "ModelGraph", findings: Findings) -> None:
    """Problems of model-local functions among each other, and of the opsets they import."""
    functions = graph.proto.functions
    if len(functions) > _MOST_FUNCTIONS:
        findings.error(
            "function-count", f"the model has {len(functions)} functions",
            "inline some", f"at most {_MOST_FUNCTIONS}", str(len(functions)),
        )  # fmt: skip
    keys = [_key(function.domain, function.name, function.overload) for function in functions]
    for key, count in Counter(keys).items():
        if count > 1:
            findings.error(
                "function-repeated", f"the function {'::'.join(key[:2])} is there {count} times",
                "remove one, or give it another overload", "1", str(count),
            )  # fmt: skip
    calls = {key: _callees(function.node, set(keys)) for key, function in zip(keys, functions, strict=True)}
    _check_calls(calls, findings)
    merged = imports_of(graph.proto.opset_import, graph.proto.ir_version)
    for function in functions:
        _check_versions(function.opset_import, f"function {function.name!r}", findings)
        for entry in function.opset_import:
            if merged.get(entry.domain, _NONE) == _NONE:
                merged[entry.domain] = entry.version
    for function in functions:
        declared = {entry.domain: entry.version for entry in function.opset_import}
        for node in function.node:
            versions = declared.get(node.domain, _NONE), merged.get(node.domain, _NONE)
            _check_compatible(node, function, *versions, findings)


def _check_compatible(
    node: onnx.NodeProto, function: onnx.FunctionProto, declared: int, merged: int, findings: Findings
) -> None:
    """A function may import another version than the model only where the operator is the same in both."""
    label = f"{node.op_type} in function {function.name!r}"
    if declared == _NONE:
        findings.error(
            "missing-opset", f"{label} is of the domain {node.domain!r}, which the function does not import",
            "add the opset import to the function", f"an opset import of {node.domain!r}", "none",
        )  # fmt: skip
        return
    if merged in (_NONE, declared):
        return
    ours, theirs = (schemas.find(node.domain, node.op_type, version) for version in (declared, merged))
    if (ours and ours.since_version) != (theirs and theirs.since_version):
        findings.error(
            "function-opset",
            f"{label} means another operator in opset {declared}, which the function imports, than in {merged}",
            "let the function import the opset of the model", str(merged), str(declared),
        )  # fmt: skip


def _key(domain: str, name: str, overload: str) -> tuple[str, str, str]:
    return ("" if domain == "ai.onnx" else domain, name, overload)


def _callees(nodes: Sequence[onnx.NodeProto], keys: set[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The functions that some nodes call, those in bodies included."""
    operators = dict.fromkeys(_key(node.domain, node.op_type, node.overload) for node in nodes_inside(nodes))
    return [key for key in operators if key in keys]


def _check_calls(calls: dict[tuple[str, str, str], list[tuple[str, str, str]]], findings: Findings) -> None:
    """Report cycles and chains of calls that are too long; without recursion."""
    done: set[tuple[str, str, str]] = set()
    for root in calls:
        if root in done:
            continue
        path: dict[tuple[str, str, str], Iterator[tuple[str, str, str]]] = {root: iter(calls[root])}
        while path:
            current = next(reversed(path))
            callee = next(path[current], None)
            if callee is None:
                done.add(current)
                del path[current]
            elif callee in path:
                names = [key[1] for key in path]
                cycle = " → ".join([*names[list(path).index(callee) :], callee[1]])
                findings.error(
                    "function-cycle", f"functions call each other in a circle: {cycle}",
                    "break the circle: functions may not be recursive", "no circle", cycle,
                )  # fmt: skip
            elif callee not in done:
                path[callee] = iter(calls[callee])
                if len(path) == _LONGEST_CALL + 1:
                    findings.error(
                        "function-depth", f"functions call each other {len(path)} deep, from {root[1]!r} on",
                        "inline some", f"at most {_LONGEST_CALL}", str(len(path)),
                    )  # fmt: skip
