"""`check`: every problem of a model at once, each pinned to its node or value, with what would mend it.

The rules are those of ONNX's IR specification as `onnx.checker` reads them, together with the findings of inference.
Both agree on every model: a model that onnx.checker accepts has no error here but those of `BEYOND`, and a model that
onnx.checker refuses has an error, or a warning of `LENIENT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx

from onnxlab.analysis import block_sizes, check_by_onnx, check_ge
from onnxlab.analysis import check_model as models
from onnxlab.analysis.check_model import Reader
from onnxlab.analysis.check_nodes import check_node
from onnxlab.analysis.check_scopes import check_scope, check_value, order_problems
from onnxlab.analysis.findings import Findings
from onnxlab.errors import Diagnostic
from onnxlab.formats import onnx as onnx_format
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope
from onnxlab.graph.protos.nesting import nesting_refused
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer import Inference
from onnxlab.infer.facts.policy import Policy

if TYPE_CHECKING:
    from onnxlab.execution.base.provider import Provider

BEYOND = {
    **{
        f"{code}-unchecked": "what a schema says that was registered here, and that onnx does not know"
        for code in ("arity", "attribute-missing", "attribute-unknown", "attribute-type", "attribute-value")
    },
    "tensor-size-unchecked": "more data than the shape takes: onnx.checker looks only whether there is enough",
    "tensor-type-unchecked": "an unknown element type in raw_data, which cannot be decoded",
    "value-type-unknown": "an element type that does not exist: onnx.checker sees it only where a node reads it",
    "external-data-unreadable": "offset, length and size of a data file: onnx.checker looks only at its name",
    "opset-newer": "a version that onnx does not know: onnx.checker takes the newest that it knows for it",
    "tree-ensemble": "lists that are no trees: onnx.checker does not look into them, every runtime refuses them",
    "zero-point-shape": "a zero point of another shape than its scale: onnx.checker does not compare them",
    "function-output-unmade": "an output of a function that nothing makes: no runtime can call it",
}
"""{code: why it is an error here}, of the errors that onnx.checker does not see."""

LENIENT = {"unknown-to-onnx": "operators that runtimes put into ONNX's own domains; their schemas are registered here"}
"""{code: why it is a warning here}, of what onnx.checker refuses a model for."""

Dirty = tuple[str, int]  # ("node", "value" or "scope", id)


_OF_INFERENCE = {"value-type", "unknown-operator", "missing-opset"}
"""Codes that mean nothing where neither operators nor types are ONNX's: see `EditableGraph.uninferred`."""


class Checker:
    """The rules over one ModelGraph, kept up to date: after a commit only what it touched is checked again.

    Attributes:
        dirty: what has to be checked again; None means everything, and then commits are not followed.
    """

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self._found: dict[Dirty, tuple[Diagnostic, ...]] = {}
        self.dirty: set[Dirty] | None = None
        self._doubts: tuple[tuple[int, bool], list[Diagnostic]] = (-1, False), []

    def follow(self, touched: Touched) -> None:
        """Note what a commit touched."""
        if self.dirty is None:
            return
        if touched.opsets or touched.functions or touched.metadata:
            self.dirty = None
            return
        for kind, idents in (
            ("node", touched.nodes | touched.removed_nodes),
            ("value", touched.values | touched.removed_values | touched.declared),
            ("scope", touched.scopes | touched.removed_scopes),
        ):
            self.dirty.update((kind, ident) for ident in idents)
        if touched.structure and len(self._graph.scopes) > 1:
            # the names that a body hides depend on the order of nodes and values outside of it
            for scope in self._graph.scopes.values():
                if scope.parent:
                    self.dirty.update(("value", vid) for vid in scope.names.values())

    def problems(self) -> list[Diagnostic]:
        """Everything that the rules find: of the model, then by scope, node and value, in the order of their ids."""
        graph = self._graph
        with graph.lock:
            if graph.is_ge_dump:
                return check_ge.problems(graph)
            findings = Findings()
            models.check_model(graph.proto, findings)
            if graph.proto.functions and graph.proto.ir_version >= 8:
                models.check_functions(graph, findings)
            self._refresh()
            result = list(findings.found)
            for key in sorted(self._found):
                result += self._found[key]
            for node, value, code, message in order_problems(graph):
                problem = Diagnostic("error", code, message, node, value, graph.nodes[node].scope, hint=_ORDER[code])
                result.append(self._weighed(problem))
            return [problem for problem in result if problem.code not in _OF_INFERENCE] if graph.uninferred else result

    def doubts(self, nothing_else: bool) -> list[Diagnostic]:
        """Refusals of onnx, as warnings, for models in which nothing else is wrong.

        Some rules accept what onnx refuses. The inference of onnx is therefore asked node by node, and its checker once
        for the whole model, where `nothing_else` says that no rule finds anything wrong.
        """
        graph = self._graph
        with graph.lock:
            if graph.is_ge_dump:
                return []
            key = graph.version, nothing_else
            if self._doubts[0] != key:
                self._doubts = key, _doubts(graph, nothing_else)
            return list(self._doubts[1])

    def _refresh(self) -> None:
        graph = self._graph
        if self.dirty is None:
            self._found.clear()
            everything: Iterable[Dirty] = (
                (kind, ident)
                for kind, records in (("scope", graph.scopes), ("node", graph.nodes), ("value", graph.values))
                for ident in records
            )
        else:
            everything = self.dirty
        imports: dict[int, dict[str, int]] = {}
        for key in everything:
            problems = self._check(key, imports)
            if problems:
                self._found[key] = tuple(map(self._weighed, problems))
            else:
                self._found.pop(key, None)
        self.dirty = set()

    def _check(self, key: Dirty, imports: dict[int, dict[str, int]]) -> list[Diagnostic]:
        """Problems of one node, value or scope; none where it is not in the model any more."""
        kind, ident = key
        graph = self._graph
        if kind == "node" and (node := graph.nodes.get(ident)):
            findings = Findings(node=ident, scope=node.scope)
            check_node(graph, node, self._imports(graph.scopes[node.scope], imports), findings)
            return findings.found
        if kind == "value" and (value := graph.values.get(ident)):
            if not value.producers and value.initializer is None:
                return []
            maker = value.producers[-1][0] if value.producers else 0
            findings = Findings(node=maker, value=ident, scope=value.scope)
            check_value(graph, value, findings)
            return findings.found
        if kind == "scope" and (scope := graph.scopes.get(ident)):
            findings = Findings(node=scope.owner, scope=ident)
            check_scope(graph, scope, findings)
            return findings.found
        return []

    def _imports(self, scope: Scope, known: dict[int, dict[str, int]]) -> dict[str, int]:
        """The opset imports that hold in a scope."""
        root = self._graph.root(scope)
        if root.id not in known:
            proto = self._graph.proto
            entries = root.proto.opset_import if root.is_function else proto.opset_import
            known[root.id] = models.imports_of(entries, 3 if root.is_function else proto.ir_version)
        return known[root.id]

    def _weighed(self, problem: Diagnostic) -> Diagnostic:
        """A problem as a warning where its graph is not run: in training, and in functions before IR version 8."""
        scope = self._graph.scopes.get(problem.scope)
        in_function = scope is not None and self._graph.root(scope).is_function
        idle = self._is_in_training(scope) or (in_function and self._graph.proto.ir_version < 8)
        return replace(problem, severity="warning") if idle and problem.severity == "error" else problem

    def _is_in_training(self, scope: Scope | None) -> bool:
        while scope is not None:
            if scope.kind == "training":
                return True
            scope = self._graph.scopes.get(scope.parent)
        return False


_ORDER = {
    "undefined-value": "connect it to a value that is made, or add an input or initializer of that name",
    "order": "sort the nodes so that each stands below what it reads: model.sort_nodes()",
    "cycle": "let a node of the cycle read another value, one that does not depend on it",
}


@nesting_refused()
def check(source: Any, *, types: bool = True, providers: Sequence[str | Provider] | None = None) -> list[Diagnostic]:
    """List every problem of a model, none where it is valid.

    Args:
        source: a Model, a path, bytes or a ModelProto.
        types: also what type and shape inference finds; False leaves the rules that `onnx.checker` has too.
        providers: warn of versions that these do not read, as `["onnxruntime"]`.

    Returns:
        list[Diagnostic]: with the ids of the node, value and scope, what was expected and found, and a hint. Problems
        of a training graph, which nothing runs, are warnings.

    Raises:
        LoadError: the source cannot be read as a model at all.
        ProviderError: no provider has that name.

    Examples:
        >>> broken = onnxlab.load().proto
        >>> broken.graph.node[0].op_type = "Cnov"
        >>> onnxlab.check(broken)[0].code
        'unknown-operator'
    """
    if hasattr(source, "check"):  # a Model, which stands above this layer
        problems: list[Diagnostic] = source.check(types=types, providers=providers)
        return problems
    proto, origin = onnx_format.read(source)
    graph = ModelGraph(proto, origin.base_dir)
    graph.uninferred = origin.uninferred
    checker = Checker(graph)
    rules = [*foreign_strings(origin.strings), *checker.problems()]
    if types:
        inference = Inference(graph)
        inferred = [*inference.diagnostics, *block_sizes.doubts(graph, inference)]
        rules = combined(rules, inferred, checker.doubts)
    return [*rules, *unread(graph.header, providers)]


def unread(header: onnx.ModelProto, providers: Sequence[str | Provider] | None) -> list[Diagnostic]:
    """Warnings of versions in the head of a model that some providers do not read; None names none of them."""
    if providers is None:
        return []
    from onnxlab.execution.run.provider_names import named

    findings = Findings()
    for provider in named(providers):
        if isinstance(provider, Reader):
            models.check_reader(header, provider, findings)
    return findings.found


def foreign_strings(stand_ins: Iterable[str]) -> list[Diagnostic]:
    """The findings about strings of a model that are not UTF-8, under their stand-ins."""
    hint = "give it another name or text; what you leave alone is saved as it was"
    return [
        Diagnostic("warning", "no-utf8", f"a string of the model is no UTF-8 and shown as {shown!r}", hint=hint)
        for shown in stand_ins
    ]


_ENDLESS = frozenset(("inference-budget", "too-deep"))
"""Codes of models that would take onnx too long."""


def _doubts(graph: ModelGraph, nothing_else: bool) -> list[Diagnostic]:
    inference = Inference(graph, Policy(as_onnx=True, cross_check=True))
    problems = inference.diagnostics
    errors = [problem for problem in problems if problem.severity == "error"]
    if nothing_else and not errors and _ENDLESS.isdisjoint(problem.code for problem in problems):
        return check_by_onnx.refusals(graph, inference.all_facts())
    return [
        replace(problem, severity="warning", code=check_by_onnx.CODE, message=f"onnx refuses {problem.message}",
                hint=check_by_onnx.HINT)
        for problem in errors
    ]  # fmt: skip


def combined(
    rules: Iterable[Diagnostic], inferred: Iterable[Diagnostic], doubts: Callable[[bool], Iterable[Diagnostic]]
) -> list[Diagnostic]:
    """Both lists in one; what inference says again of the same node or value under the same code is left out.

    Where neither list has an error, the refusals of onnx's own inference are added.
    """
    result = list(rules)
    known = {(problem.code, problem.node, problem.value) for problem in result}
    silent = {problem.node for problem in result if problem.code in _SAID_BY_INFERENCE_TOO and problem.node}
    result += [
        problem for problem in inferred
        if (problem.code, problem.node, problem.value) not in known
        and not (problem.node in silent and problem.code in _SAID_BY_INFERENCE_TOO)
    ]  # fmt: skip
    severities = {problem.severity for problem in result}
    return result if "error" in severities else [*result, *doubts("warning" not in severities)]


_SAID_BY_INFERENCE_TOO = frozenset(
    ("arity", "missing-opset", "unknown-operator", "attribute-missing", "attribute-unknown", "deprecated")
)


def errors(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The diagnostics for which onnx.checker would refuse the model."""
    return (
        problem for problem in problems
        if (problem.severity == "error" and problem.code not in BEYOND) or problem.code in LENIENT
    )  # fmt: skip
