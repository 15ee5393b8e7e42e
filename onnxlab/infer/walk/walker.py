"""Inference of one node, one scope, one call: from the facts of inputs to the facts of outputs.

Outcomes for input facts met before are in the memo of a node's operator; for others, rules are called
(`node_facts.py`). Bodies are walked with the facts of their owner's inputs, model-local functions once per distinct
call (`function_calls.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.infer.facts.policy import DEFAULT_POLICY, Policy
from onnxlab.infer.facts.symbols import declared_token, has_holes, settle, settle_inside, token_of
from onnxlab.infer.facts.value_sources import Sources
from onnxlab.infer.rules import schema_checks
from onnxlab.infer.rules.budget import MAX_DEPTH, Budget
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator, Outcome, Problem
from onnxlab.infer.walk.body_walker import ScopeBody
from onnxlab.infer.walk.function_calls import Calls
from onnxlab.infer.walk.input_masks import Inputs, bounded, is_plain, relevant
from onnxlab.infer.walk.node_facts import Answers
from onnxlab.infer.walk.operator_catalogue import catalogue_of
from onnxlab.shapes import UNKNOWN, Fact, FactError


class Walker:
    """Infers nodes of one graph into frames.

    Attributes:
        overruled: {value id: what was inferred} where a policy other than the default one met a declared type that
            contradicts it.
        budget: what may still be inferred.
        begins: whether an edit began since something was inferred, so that the budget has to be renewed.
        depth: how many subgraphs and functions are being walked within each other.
    """

    def __init__(self, graph: ModelGraph, policy: Policy = DEFAULT_POLICY) -> None:
        self.graph = graph
        self.policy = policy
        self.token = token_of(graph)
        self.answers = Answers(self)
        self.calls = Calls(self)
        self.catalogue = catalogue_of(graph, policy)
        self.sources = Sources(graph, declared_token(graph, policy), self.catalogue.tensors)
        self._by_node = self.catalogue.by_node
        self._adjusts = not policy.is_default
        self.overruled: dict[int, Fact] = {}
        self.budget = Budget(len(graph.nodes))
        self.begins = False
        self.depth = 0

    # -- walking ----------------------------------------------------------------------------------------------------

    def walk_scope(self, frame: FactFrame, scope: Scope) -> None:
        """Infer initializers and all nodes of a scope; its inputs have facts already."""
        if not scope.is_function:
            self.walk_initializers(frame, scope)
        nodes, facts, known, identify = self.graph.nodes, frame.facts, self._by_node.get, self.catalogue.identify
        adjusted, problems = self._adjusted_values(scope), frame.problems
        fact_of = facts.get
        keep = facts.__setitem__ if frame.changed is None else frame.set
        for ident in self.graph.index.topological(scope):
            node = nodes[ident]
            operator = known(ident) or identify(frame, node)
            if isinstance(operator, Operator):
                inputs = tuple(map(fact_of, node.inputs))
                outcome = operator.memo.get(inputs) or self._outcome(frame, node, operator, inputs)
                if (
                    not outcome.plain
                    or (problems and ident in problems)
                    or (adjusted and not adjusted.isdisjoint(node.outputs))
                ):
                    self._keep(frame, node, outcome)
                    continue
                results = outcome.facts  # as for most nodes: nothing but facts to keep
            else:
                results = (operator,)
            for vid, fact in zip(node.outputs, results):  # noqa: B905 - naming it takes longer than the loop
                if vid:
                    keep(vid, fact)
        frame.evaluated += len(scope.node_ids)

    def _adjusted_values(self, scope: Scope) -> set[int]:
        """Values of a scope whose facts the policy may change after their nodes are inferred."""
        if not self._adjusts:
            return set()
        values = self.graph.values
        everything = not self.policy.data_prop
        return {vid for vid in scope.names.values() if everything or values[vid].info is not None}

    def walk_initializers(self, frame: FactFrame, scope: Scope) -> None:
        """Set the facts of the stored tensors of a scope."""
        if not scope.proto.initializer and not scope.proto.sparse_initializer:  # as where all constants are nodes
            return
        values, facts, known = self.graph.values, frame.facts, self.sources.fact
        for vid in scope.names.values():
            value = values[vid]
            if value.initializer is not None and facts.get(vid) is not (fact := known(value)):
                frame.set(vid, fact)

    def walk_body(self, frame: FactFrame, body: ScopeBody, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs for these facts of its inputs; where one is UNKNOWN, its declared type counts.

        Raises:
            FactError: the body is nested deeper than inference follows.
        """
        scope = self.graph.scopes[body.scope]
        frame.walked.add(scope.id)
        for position, vid in enumerate(scope.inputs):
            fact = facts[position] if position < len(facts) else UNKNOWN
            frame.set(vid, self.sources.declared(self.graph.values[vid]) if fact is UNKNOWN else fact)
        self.walk_inside(frame, scope)
        return [frame.facts.get(vid, UNKNOWN) for vid in scope.outputs]

    def walk_inside(self, frame: FactFrame, scope: Scope) -> None:
        """Walk a subgraph, or a function, of a node that is being inferred. Raises FactError where it is too deep."""
        if self.depth >= MAX_DEPTH:
            message = f"functions and subgraphs nested more than {MAX_DEPTH} deep are not followed"
            raise FactError(message, code="too-deep", severity="warning")
        self.depth += 1
        try:
            self.walk_scope(frame, scope)
        finally:
            self.depth -= 1

    def walk_for(self, frame: FactFrame, owner: NodeRecord, body: ScopeBody, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs, for a rule of its owner: holes in `facts` become symbols of any one iteration."""
        names = owner.proto.output
        settled = [settle_inside(fact, self.token, frame.call, owner.id, names) for fact in facts]
        return self.walk_body(frame, body, settled)

    def _clear_bodies(self, frame: FactFrame, node: NodeRecord) -> None:
        """Forget what was found in a node's bodies: its rule may not walk them again."""
        bodies = itertools.chain.from_iterable(node.bodies.values())
        for scope in [self.graph.scopes[body] for body in bodies if body in frame.walked]:
            frame.walked.discard(scope.id)
            for vid in scope.names.values():
                frame.drop(vid)
            for inner in scope.node_ids:
                frame.problems.pop(inner, None)
                self._clear_bodies(frame, self.graph.nodes[inner])

    def infer_node(self, frame: FactFrame, node: NodeRecord) -> Sequence[int]:
        """Infer a node into the frame; return the ids of its outputs whose fact is another one than before."""
        frame.evaluated += 1
        operator = self._by_node.get(node.id) or self.catalogue.identify(frame, node)
        if not isinstance(operator, Operator):
            return [vid for vid in node.outputs if vid and frame.set(vid, operator)]
        inputs = tuple(map(frame.facts.get, node.inputs))
        outcome = operator.memo.get(inputs) or self._outcome(frame, node, operator, inputs)
        return self._keep(frame, node, outcome)

    def _keep(self, frame: FactFrame, node: NodeRecord, outcome: Outcome) -> Sequence[int]:
        """Keep an outcome for a node, with all that comes with it; return the ids of the outputs that it changes."""
        facts, before, ident = frame.facts, frame.changed, node.id
        if outcome.problems:
            frame.problems[ident] = outcome.problems
        elif frame.problems:
            frame.problems.pop(ident, None)
        results = outcome.facts
        if outcome.holes or self._adjusts:
            results = self._fitted(frame, node, outcome)
        changed: list[int] = []
        for vid, fact in zip(node.outputs, results, strict=True):
            if vid and (old := facts.get(vid)) is not fact:
                facts[vid] = fact
                if old is None and fact is UNKNOWN:
                    continue
                changed.append(vid)
                if before is not None:
                    before.setdefault(vid, old or UNKNOWN)
        return changed

    def _outcome(self, frame: FactFrame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Outcome:
        """The outcome for inputs that the memo lacks; None stands for an input that is absent or has no fact yet."""
        original = inputs
        if None in inputs:
            inputs = tuple([frame.facts.get(vid, UNKNOWN) if vid else None for vid in node.inputs])
        read = relevant(inputs, operator.reads)
        outcome = None if read is original else operator.memo.get(read)  # the caller looked up the inputs as given
        if outcome is None:
            if self.begins:
                self.budget.renew(len(self.graph.nodes))
                self.begins = False
            if self.budget.is_spent():
                return self.budget.nothing(len(node.outputs))
            outcome = self._infer(frame, node, operator, read)
            self.budget.count(outcome)
            operator.remember(read, outcome)
        if read is not inputs:  # they differ in elements that do not matter
            operator.remember(inputs, outcome)
        return outcome

    def _fitted(self, frame: FactFrame, node: NodeRecord, outcome: Outcome) -> tuple[Fact, ...]:
        """The facts of an outcome for one node: holes filled with its own symbols, declared types by the policy."""
        facts: tuple[Fact, ...] = outcome.facts
        if outcome.holes:
            names = node.proto.output
            facts = tuple([settle(fact, self.token, frame.call, node.id, at, names) for at, fact in enumerate(facts)])
        if self._adjusts:
            facts = tuple([self._adjusted(fact, vid) for vid, fact in zip(node.outputs, facts, strict=True)])
        return facts

    def diagnostics(self, frame: FactFrame) -> list[Diagnostic]:
        """The problems of a frame, by node id, with the labels that the nodes have now."""
        return [
            self.diagnostic(self.graph.nodes[node_id], problem)
            for node_id in sorted(frame.problems)
            for problem in frame.problems[node_id]
        ]

    def all_diagnostics(self, frame: FactFrame) -> list[Diagnostic]:
        """The problems of a frame and of the calls that it makes."""
        frames = (frame, *(call.frame for call in self.calls.alive(frame).values()))
        return [problem for frame_of_call in frames for problem in self.diagnostics(frame_of_call)]

    def of(self, graph: ModelGraph) -> Walker:
        """A walker of another graph, with the default policy."""
        return Walker(graph)

    def diagnostic(self, node: NodeRecord, p: Problem) -> Diagnostic:
        """A problem pinned to its node."""
        message = f"{self.graph.label(node)} ({node.op_type}): {p.message}"
        return Diagnostic(p.severity, p.code, message, node.id, 0, node.scope, p.expected, p.found, p.hint)

    def _adjusted(self, fact: Fact, vid: int) -> Fact:
        """The fact by the policy, which may let the declared type have a say."""
        if vid and self.graph.values[vid].info is not None:
            declared = self.sources.declared(self.graph.values[vid])
            if declared is fact and not self.overruled:
                return fact
            if schema_checks.contradiction(declared, fact):
                self.overruled[vid] = fact
            else:
                self.overruled.pop(vid, None)
            return self.policy.applied(fact, declared)
        return fact if self.policy.data_prop else fact.bare

    # -- one node ---------------------------------------------------------------------------------------------------

    def outcome(self, frame: FactFrame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Outcome:
        """The outcome of a node without bodies, not a call, for these inputs; nothing is kept, holes stay holes."""
        return self._infer(frame, node, operator, inputs)

    def onnx_agrees(self, frame: FactFrame, vid: int) -> bool:
        """Whether a value's declared type contradicts onnx's rule for its node too, not only onnxlab's facts.

        True where onnx's rule cannot be called for the node alone: then nothing speaks against the contradiction.
        """
        value = self.graph.values[vid]
        node = self.graph.nodes[value.producers[0][0]] if value.producers else None
        operator = self.catalogue.find(frame, node) if node else None
        if node is None or not isinstance(operator, Operator) or operator.function or node.bodies:
            return True
        inputs = tuple([frame.facts.get(vid_read, UNKNOWN) if vid_read else None for vid_read in node.inputs])
        computed = {slot for slot, vid_read in enumerate(node.inputs) if vid_read and not self._is_stored(vid_read)}
        try:
            theirs = self.answers.by_onnx(node, operator, inputs, computed)
        except FactError:
            return True
        slot = value.producers[0][1]
        return slot >= len(theirs) or bool(schema_checks.contradiction(self.sources.declared(value), theirs[slot]))

    def _is_stored(self, vid: int) -> bool:
        """Whether a value is an initializer, or what a Constant makes."""
        value = self.graph.values[vid]
        return not value.producers or self.graph.nodes[value.producers[0][0]].op_type == "Constant"

    def _infer(self, frame: FactFrame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Outcome:
        """The outcome for input facts that this operator has not met."""
        problems: list[Problem] = [] if operator.version else [schema_checks.missing_opset(operator)]
        if node.bodies:
            self._clear_bodies(frame, node)
        results: Sequence[Fact]
        theirs: Sequence[Fact] | None = None
        if operator.function:
            results = self.calls.infer(frame, node, operator, inputs, problems)
        else:
            results, theirs = self.answers.facts(frame, node, operator, inputs, problems)
            problems += operator.oddities
        count = len(operator.outputs)
        if len(results) != count:
            results = [*results[:count], *[UNKNOWN] * (count - len(results))]
        if all(map(is_plain, results)):
            return Outcome(tuple(results), False, tuple(problems))
        if theirs is not None:
            results = self.answers.completed(node, operator, inputs, results, theirs, problems)
        facts = tuple([fact if fact in inputs else bounded(fact, slot, problems) for slot, fact in enumerate(results)])
        holes = any(map(has_holes, facts))
        return Outcome(facts, holes, tuple(problems))
