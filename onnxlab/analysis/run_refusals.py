"""The nodes that `run` refuses: those with an error for which ONNX Runtime refuses to load the whole model too.

A run of these nodes would give numbers, and often the intended ones; but no other runtime would run the model. Other
problems of a node (shapes, values of attributes) are reported by its kernel during the run.
"""

from collections.abc import Iterator
from itertools import chain

import onnx

from onnxlab.analysis import check_model
from onnxlab.analysis.findings import Findings
from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer import Inference

REFUSED = frozenset(
    ("type-mismatch", "arity", "attribute-missing", "attribute-type", "attribute-unknown", "attribute-repeated",
     "attribute-reference", "deprecated", "single-assignment", "opset-newer", "ir-version", "declared-type",
     "zero-point-shape", "tree-ensemble")
)  # fmt: skip
"""Codes of errors for which ONNX Runtime too refuses a model; "declared-type" of outputs that a node makes.

"attribute-reference" is refused by ONNX alone: ONNX Runtime takes a value that ONNX says is not there.
"""

GE_DUMP = "ge-dump"
"""The code for which a dump of GE is not run."""


class Judge:
    """Finds what keeps the nodes of one graph from running."""

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = graph
        self._inference = inference
        self._doubled: list[int] | None = None  # values that had several makers when this was first asked

    def refusals(self) -> list[Diagnostic]:
        """The errors as the model is now; those without a node are of the whole model."""
        with self._graph.lock:
            if self._graph.is_ge_dump:
                message = "this is a dump of GE, whose operators only that engine runs; it can be looked at and edited"
                return [Diagnostic("error", GE_DUMP, message)]
            problems = chain(self._inference.problems, self._inference.output_conflicts)
            refused = [problem for problem in problems if problem.code in REFUSED and self._counts(problem)]
            return [*self._versions(), *self._made_twice(), *refused]

    def sentence(self, problem: Diagnostic) -> str:
        """The reason for refusing a run, and what to do."""
        if problem.code == GE_DUMP:
            return str(problem)
        if problem.code == "attribute-reference":
            return f"{problem}; runtimes take different values for it: strict=False runs it with the default"
        return f"{problem}; onnxruntime refuses such a model too: strict=False runs it all the same"

    def needed(self, problem: Diagnostic, nodes: set[int]) -> bool:
        """Whether a problem keeps these nodes of the main graph from running.

        The problem may be of one of them, of a node in a body of theirs, of a function that they call, or of the whole
        model.
        """
        graph = self._graph
        with graph.lock:
            record = graph.nodes.get(problem.node)
            if record is None:
                return True
            root = graph.root(graph.scopes[record.scope])
            if root.is_function:
                return root.id in called(graph, [graph.nodes[node] for node in nodes if node in graph.nodes])
            return root.id == graph.main.id and graph.index.owner_in(record, graph.main.id) in nodes

    def _counts(self, problem: Diagnostic) -> bool:
        """Whether ONNX Runtime checks the node alike.

        ONNX Runtime does not check a Constant, runs what is deprecated by its function, and checks operators of other
        domains by its own schemas.
        """
        node = self._graph.nodes.get(problem.node)
        if (
            node is None
            or (problem.severity != "error" and problem.code != "declared-type")
            or (node.op_type == "Constant" and not node.domain)
        ):
            return False
        if function_key(node.proto) in self._graph.index.functions:
            return False
        schema = self._graph.schema(node)
        if problem.code == "deprecated" and schema is not None and not schema.removed:
            return False
        return schema is not None and (schema.onnx is not None or schema.runtime == "onnxruntime")

    def _versions(self) -> list[Diagnostic]:
        proto, findings = self._graph.header, Findings()
        check_model.check_newer(proto.opset_import, "the model", findings)
        if proto.ir_version > onnx.IR_VERSION:
            check_model.check_ir_version(proto, findings)
        return findings.found

    def _made_twice(self) -> Iterator[Diagnostic]:
        graph, values = self._graph, self._graph.values
        if self._doubled is None:  # no edit makes any: what a file has is all there ever is
            self._doubled = [vid for vid, value in values.items() if len(value.producers) > 1]
        for vid in self._doubled:
            value = values.get(vid)
            if value is not None and len(value.producers) > 1:
                makers = [graph.nodes[node] for node, _ in value.producers]
                named = " and by ".join(graph.label(node) for node in makers[:3])
                yield Diagnostic(
                    "error", "single-assignment", f"{value.name!r} is made by {named}", makers[-1].id, vid, value.scope,
                    "one maker", str(len(makers)), "give one of them another name",
                )  # fmt: skip


def called(graph: ModelGraph, nodes: list[NodeRecord]) -> set[int]:
    """Scope ids of the functions that some nodes call, themselves, in their bodies or through other functions."""
    reached: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        inside = list(chain.from_iterable(node.bodies.values()))
        function = graph.index.functions.get(function_key(node.proto))
        if function is not None and function not in reached:
            reached.add(function)
            inside.append(function)
        waiting += [graph.nodes[ident] for scope in inside for ident in graph.scopes[scope].node_ids]
    return reached
