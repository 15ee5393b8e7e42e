"""Exceptions of onnx.shape_inference: the problems that the drop-ins raise, and under which class.

With any options, onnx raises for a domain without an opset import and for a function that calls itself; with
check_type, for wrong types and numbers of inputs; in strict mode for all other errors, in one exception. Behind an
operator that onnx does not know, in the same graph, strict mode raises nothing: onnx infers nothing there, and the
drop-ins follow it even where onnxlab infers more. For the same reason a declared type is an error only where onnx's
rule for the node contradicts it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
import onnx.checker
import onnx.shape_inference

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope
from onnxlab.graph.index.tables import function_key
from onnxlab.graph.protos.renaming import nodes_inside
from onnxlab.infer.live.live_inference import Inference

_TYPE_CODES = ("type-mismatch", "arity")
_WARNINGS = ("overflow", "function-outputs")
"""Codes of diagnostics that are errors to onnx but not to onnxlab."""


def refuse(graph: ModelGraph, inference: Inference, check_type: bool, strict: bool) -> None:
    """Raise what onnx raises for a model.

    Raises:
        onnx.shape_inference.InferenceError: the model is wrong by these options.
    """
    diagnostics = inference.diagnostics if strict else inference.problems
    for diagnostic in diagnostics:
        if diagnostic.code == "missing-opset":
            raise onnx.shape_inference.InferenceError(f"[TypeInferenceError] {diagnostic}")
        if check_type and diagnostic.code in _TYPE_CODES:
            raise onnx.shape_inference.InferenceError(f"[ShapeInferenceError] {diagnostic}")
    wrong = _not_behind_unknown(graph, [diagnostic for diagnostic in diagnostics if strict and _is_wrong(diagnostic)])
    lines = [
        str(problem) for problem in wrong if not problem.code.startswith("declared-") or inference.onnx_agrees(problem)
    ]
    if lines:
        raise onnx.shape_inference.InferenceError("[ShapeInferenceError] Inference error(s): " + "\n".join(lines))


_IGNORED = ("attribute-unknown", "deprecated")
"""Codes of problems that onnx.checker refuses and onnx.shape_inference does not check."""


def _is_wrong(diagnostic: Diagnostic) -> bool:
    if diagnostic.code in _TYPE_CODES or diagnostic.code in _IGNORED:
        return False
    return diagnostic.severity == "error" or diagnostic.code in _WARNINGS or diagnostic.code.startswith("declared-")


def _not_behind_unknown(graph: ModelGraph, wrong: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The diagnostics of nodes before the first one of their scope whose operator onnx does not know."""
    limits: dict[int, int | None] = {}
    for diagnostic in wrong:
        if diagnostic.scope not in limits:
            limits[diagnostic.scope] = _first_unknown(graph, graph.scopes.get(diagnostic.scope))
        limit = limits[diagnostic.scope]
        if limit is None or not diagnostic.node or graph.index.rank(graph.nodes[diagnostic.node]) < limit:
            yield diagnostic


def _first_unknown(graph: ModelGraph, scope: Scope | None) -> int | None:
    """Rank of the first node of a scope that calls no function and whose operator has no schema in onnx, if any."""
    for ident in graph.index.topological(scope) if scope else ():
        node = graph.nodes[ident]
        if function_key(node.proto) not in graph.index.functions:
            schema = graph.schema(node)
            if schema is None or schema.onnx is None:
                return graph.index.rank(node)
    return None


def refuse_cycles(model: onnx.ModelProto) -> None:
    """Refuse functions that call themselves, directly or not.

    Raises:
        onnx.checker.ValidationError: a function calls itself; the message names the calls.
    """
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    callees = {}
    for name, function in functions.items():
        called = ((node.domain, node.op_type, node.overload) for node in nodes_inside(function.node))
        callees[name] = [key for key in called if key in functions]
    done: set[tuple[str, str, str]] = set()
    for start in callees:
        path, pending = {start: None}, [iter(callees[start])]
        while pending:
            callee = next(pending[-1], None)
            if callee is None:
                pending.pop()
                done.add(path.popitem()[0])
            elif callee in path:
                around = list(path)
                chain = " -> ".join("::".join(filter(None, key)) for key in [*around[around.index(callee) :], callee])
                raise onnx.checker.ValidationError(
                    f"Cycle detected in model-local function references: {chain}. "
                    "Model-local functions must not be recursive."
                )
            elif callee not in done:
                path[callee] = None
                pending.append(iter(callees[callee]))
