"""Inference of one node, one scope, one call: from the facts of inputs to the facts of outputs.

For each node, in this order: the memo of its operator; our rule; onnx's C++ rule; what its schema says of types; for
an operator that nobody knows, what the model declares. Bodies are walked with the facts of their owner's inputs,
model-local functions once per distinct call (`calls.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

from onnxlab import schemas
from onnxlab.errors import Diagnostic
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import NodeRecord, Scope
from onnxlab.infer import bodies as schema_bodies
from onnxlab.infer import checks, native
from onnxlab.infer.calls import Calls
from onnxlab.infer.catalogue import catalogue_of
from onnxlab.infer.context import RuleContext, ScopeBody
from onnxlab.infer.frame import Frame
from onnxlab.infer.operators import Operator, Outcome, Problem
from onnxlab.infer.policy import DEFAULT_POLICY, Policy, refined
from onnxlab.infer.sifting import Inputs, bare, bounded, incomplete, is_plain, not_facts, relevant
from onnxlab.infer.sources import Sources
from onnxlab.infer.symbols import declared_token, has_holes, settle, settle_inside, token_of
from onnxlab.shapes import UNKNOWN, Fact, FactError


class Walker:
    """Infers nodes of one graph into frames.

    Attributes:
        overruled: {value id: what was inferred} where a policy other than the default one met a declared type that
            contradicts it.
    """

    def __init__(self, graph: ModelGraph, policy: Policy = DEFAULT_POLICY) -> None:
        self.graph = graph
        self.policy = policy
        self.token = token_of(graph)
        self.calls = Calls(self)
        self.catalogue = catalogue_of(graph, policy)
        self.sources = Sources(graph, declared_token(graph, policy), self.catalogue.tensors)
        self._by_node = self.catalogue.by_node
        self._adjusts = not policy.is_default
        self.overruled: dict[int, Fact] = {}

    # -- walking ----------------------------------------------------------------------------------------------------

    def walk_scope(self, frame: Frame, scope: Scope) -> None:
        """Infer initializers and all nodes of a scope; its inputs have facts already."""
        if not scope.is_function:
            self._walk_initializers(frame, scope)
        nodes, facts, known, identify = self.graph.nodes, frame.facts, self._by_node.get, self.catalogue.identify
        adjusted, problems = self._adjusted_values(scope), frame.problems
        keep = facts.__setitem__ if frame.changed is None else frame.set
        for ident in self.graph.index.topological(scope):
            node = nodes[ident]
            operator = known(ident) or identify(frame, node)
            if isinstance(operator, Operator):
                inputs = tuple([facts.get(vid) for vid in node.inputs])
                outcome = operator.memo.get(inputs)
                if (
                    outcome is None
                    or not outcome.plain
                    or (problems and ident in problems)
                    or (adjusted and not adjusted.isdisjoint(node.outputs))
                ):
                    self._infer_from(frame, node, operator, inputs)
                    continue
                found = outcome.facts  # inputs that were met before: nothing but facts to keep
            else:
                found = (operator,)
            for vid, fact in zip(node.outputs, found, strict=False):
                if vid:
                    keep(vid, fact)
        frame.evaluated += len(scope.node_ids)

    def _adjusted_values(self, scope: Scope) -> set[int]:
        """Values of a scope of which the policy says more than their nodes do."""
        if not self._adjusts:
            return set()
        values = self.graph.values
        everything = not self.policy.data_prop
        return {vid for vid in scope.names.values() if everything or values[vid].info is not None}

    def _walk_initializers(self, frame: Frame, scope: Scope) -> None:
        values, facts, known = self.graph.values, frame.facts, self.sources.fact
        for vid in scope.names.values():
            value = values[vid]
            if value.initializer is not None and facts.get(vid) is not (fact := known(value)):
                frame.set(vid, fact)

    def walk_body(self, frame: Frame, body: ScopeBody, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs for these facts of its inputs; where one is UNKNOWN, its declared type counts."""
        scope = self.graph.scopes[body.scope]
        frame.walked.add(scope.id)
        for position, vid in enumerate(scope.inputs):
            fact = facts[position] if position < len(facts) else UNKNOWN
            frame.set(vid, self.sources.declared(self.graph.values[vid]) if fact is UNKNOWN else fact)
        self.walk_scope(frame, scope)
        return [frame.facts.get(vid, UNKNOWN) for vid in scope.outputs]

    def walk_for(self, frame: Frame, owner: NodeRecord, body: ScopeBody, facts: Sequence[Fact]) -> list[Fact]:
        """The same for a rule of the body's owner: the holes in its facts are symbols there, of any one iteration."""
        names = owner.proto.output
        settled = [settle_inside(fact, self.token, frame.call, owner.id, names) for fact in facts]
        return self.walk_body(frame, body, settled)

    def _clear_bodies(self, frame: Frame, node: NodeRecord) -> None:
        """Forget what was found in a node's bodies: its rule may not walk them again."""
        bodies = itertools.chain.from_iterable(node.bodies.values())
        for scope in [self.graph.scopes[body] for body in bodies if body in frame.walked]:
            frame.walked.discard(scope.id)
            for vid in scope.names.values():
                frame.drop(vid)
            for inner in scope.node_ids:
                frame.problems.pop(inner, None)
                self._clear_bodies(frame, self.graph.nodes[inner])

    def infer_node(self, frame: Frame, node: NodeRecord) -> Sequence[int]:
        """Infer a node into the frame; return the ids of its outputs whose fact is another one than before."""
        frame.evaluated += 1
        operator = self._by_node.get(node.id) or self.catalogue.identify(frame, node)
        if not isinstance(operator, Operator):
            return [vid for vid in node.outputs if vid and frame.set(vid, operator)]
        facts = frame.facts
        return self._infer_from(frame, node, operator, tuple([facts.get(vid) for vid in node.inputs]))

    def _infer_from(self, frame: Frame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Sequence[int]:
        """The same, given the facts of its inputs, None for those that it leaves out and those that have none."""
        facts, ident = frame.facts, node.id
        if None in inputs:
            inputs = tuple([facts.get(vid, UNKNOWN) if vid else None for vid in node.inputs])
        outcome = operator.memo.get(inputs) or self._look_up(frame, node, operator, inputs)
        if outcome.problems:
            frame.problems[ident] = outcome.problems
        elif frame.problems:
            frame.problems.pop(ident, None)
        found = outcome.facts
        if outcome.holes or self._adjusts:
            found = self._fitted(frame, node, outcome)
        changed: list[int] = []
        for vid, fact in zip(node.outputs, found, strict=True):
            if vid and facts.get(vid) is not fact and frame.set(vid, fact):
                changed.append(vid)
        return changed

    def _look_up(self, frame: Frame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Outcome:
        """The outcome for inputs that were not met with all these elements, which may not matter."""
        read = relevant(inputs, operator.reads)
        outcome = operator.memo.get(read) if read is not inputs else None
        if outcome is None:
            outcome = self._infer(frame, node, operator, read)
            operator.remember(read, outcome)
        if read is not inputs:
            operator.remember(inputs, outcome)
        return outcome

    def _fitted(self, frame: Frame, node: NodeRecord, outcome: Outcome) -> tuple[Fact, ...]:
        """The facts of an outcome for one node: holes filled with its own symbols, declared types by the policy."""
        found: tuple[Fact, ...] = outcome.facts
        if outcome.holes:
            names = node.proto.output
            found = tuple([settle(fact, self.token, frame.call, node.id, at, names) for at, fact in enumerate(found)])
        if self._adjusts:
            found = tuple([self._adjusted(fact, vid) for vid, fact in zip(node.outputs, found, strict=True)])
        return found

    def diagnostics(self, frame: Frame) -> list[Diagnostic]:
        """The problems of a frame, by node id, with the labels that the nodes have now."""
        return [
            self.diagnostic(self.graph.nodes[node_id], problem)
            for node_id in sorted(frame.problems)
            for problem in frame.problems[node_id]
        ]

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
            if checks.contradiction(declared, fact):
                self.overruled[vid] = fact
            else:
                self.overruled.pop(vid, None)
            return self.policy.applied(fact, declared)
        return fact if self.policy.data_prop else fact.bare

    # -- one node ---------------------------------------------------------------------------------------------------

    def outcome(self, frame: Frame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Outcome:
        """What a node without bodies, not a call, would make of these inputs; nothing is kept, holes stay holes."""
        return self._infer(frame, node, operator, inputs)

    def _infer(self, frame: Frame, node: NodeRecord, operator: Operator, inputs: Inputs) -> Outcome:
        """The outcome for input facts that this operator has not met."""
        problems: list[Problem] = [] if operator.version else [checks.missing_opset(operator)]
        if node.bodies:
            self._clear_bodies(frame, node)
        if operator.function:
            found: Sequence[Fact] = self.calls.infer(frame, node, operator, inputs, problems)
        else:
            found = self._infer_operator(frame, node, operator, inputs, problems)
        count = len(operator.outputs)
        if len(found) != count:
            found = [*found[:count], *[UNKNOWN] * (count - len(found))]
        if all(map(is_plain, found)):
            return Outcome(tuple(found), False, tuple(problems))
        facts = tuple([fact if fact in inputs else bounded(fact, slot, problems) for slot, fact in enumerate(found)])
        holes = any(map(has_holes, facts))
        return Outcome(facts, holes, tuple(problems))

    def _infer_operator(
        self, frame: Frame, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        schema = operator.schema
        if schema is None and operator.rule is None:
            return self._unknown_operator(node, operator, problems)
        if schema is not None:
            if operator.arity is None:
                operator.faults = checks.attribute_problems(schema, operator.attributes)
                operator.arity = checks.arity_problem(schema, inputs, len(operator.outputs))
            problems.extend(operator.faults)
            if operator.arity:
                problems.append(operator.arity)
            if operator.arity or operator.faults:
                return self._despite(node, operator, inputs, problems)
            if refused := checks.type_problems(schema, inputs):
                problems.extend(refused)
                if self.policy.as_onnx and not node.bodies:
                    return self._despite(node, operator, inputs, problems)
        try:
            theirs: Sequence[Fact] = ()
            if self.policy.cross_check and not node.bodies:
                theirs = self._by_schema(node, operator, inputs, problems)
            if problems:
                inputs = bare(inputs)  # elements of a type that the operator does not take mean nothing to it
            if operator.rule is None:
                return theirs or self._by_schema(node, operator, inputs, problems)
            found = self._by_rule(frame, node, operator, inputs, problems)
        except FactError as error:
            if problem := self._problem(error, inputs):
                problems.append(problem)
            return checks.output_types(schema, inputs, len(operator.outputs))
        if self.policy.as_onnx and not node.bodies and any(map(has_holes, found)):
            return self._completed(node, operator, inputs, found, theirs, problems)
        return found

    def _problem(self, error: FactError, inputs: Inputs) -> Problem | None:
        """What an exception of a rule tells; nothing where onnx refuses what only lacks a type, unless it is asked."""
        if error.code != "onnx-inference" or not incomplete(inputs):
            return Problem("error", error.code, str(error), error.expected, error.found, error.hint)
        return Problem("error", "incomplete", str(error)) if self.policy.cross_check else None

    def _despite(
        self, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        """Facts of a node that is wrong: as onnx, whose rules look at what they need, or by type."""
        try:
            if self.policy.as_onnx:
                return self._by_schema(node, operator, inputs, problems)
        except FactError as error:
            if self.policy.cross_check and (problem := self._problem(error, inputs)):
                problems.append(problem)
        return checks.output_types(operator.schema, inputs, len(operator.outputs))

    def _completed(
        self,
        node: NodeRecord,
        operator: Operator,
        inputs: Inputs,
        found: Sequence[Fact],
        theirs: Sequence[Fact],
        problems: list[Problem],
    ) -> Sequence[Fact]:
        """Our facts with what they leave open filled in from onnx's."""
        try:
            theirs = theirs or self._by_schema(node, operator, inputs, problems)
        except FactError:
            return found
        return [refined(ours, other) for ours, other in zip(found, theirs, strict=False)]

    def _by_rule(
        self, frame: Frame, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        assert operator.rule is not None
        context = RuleContext(self, frame, node, operator)
        try:
            found = operator.rule(context, operator.attributes, *inputs)
        except FactError:
            raise
        except Exception as error:  # a defect of a rule costs one node's shape, never an edit
            if isinstance(error, KeyError) and operator.schema is None:  # with a schema, `faults` have told
                name = str(error.args[0])
                message, hint = f"its required attribute {name!r} is missing", f"set {name!r}"
                raise FactError(message, code="attribute-missing", expected=name, found="none", hint=hint) from error
            if operator.schema is None or operator.schema.onnx is None or node.bodies:
                message = f"its shape rule failed: {type(error).__name__}: {error}"
                raise FactError(message, code="rule-failed") from error
            return self._by_schema(node, operator, inputs, problems)
        problems.extend(context.problems)
        facts = found if isinstance(found, (tuple, list)) else (found,)
        if (operator.schema is None or operator.schema.onnx is None) and (wrong := not_facts(facts)):
            raise FactError(f"its shape rule returned {wrong}", code="rule-failed", expected="facts", found=wrong)
        return facts

    def _by_schema(
        self, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        """Facts by the schema: by onnx's rule, by the body of a custom operator, else by its types alone."""
        schema = operator.schema
        scope = self.graph.scopes[node.scope]
        if schema is None or schema.onnx is None:
            types = checks.output_types(schema, inputs, len(operator.outputs))
            if schema is None or schema.function is None:
                return types
            found = schema_bodies.infer(operator, inputs, self.graph.opset_version("", scope) or 0, problems)
            return [ours if ours is not UNKNOWN else kind for ours, kind in zip(found, types, strict=False)]
        opsets = {
            "": self.graph.opset_version("", scope) or 0,
            operator.domain: operator.version or schema.since_version,
        }
        found = native.infer(schema.onnx, operator.proto, inputs, opsets, self.graph.proto.ir_version or 8)
        types = checks.output_types(schema, inputs, len(operator.outputs))
        return [theirs if theirs is not UNKNOWN else ours for theirs, ours in zip(found, types, strict=True)]

    def _unknown_operator(self, node: NodeRecord, operator: Operator, problems: list[Problem]) -> Sequence[Fact]:
        """Types that the model declares, since nothing else is known of the operator."""
        name = f"{operator.domain}::{operator.op_type}" if operator.domain else operator.op_type
        hint = "onnxlab.ops.register() makes a custom operator known"
        if exists := schemas.versions(operator.domain, operator.op_type):
            hint = f"it exists since version {min(exists)}, the model imports {operator.version}"
        elif not operator.version:
            hint = f"add an opset import of {operator.domain or 'ai.onnx'!r}, or register a custom operator"
        message = f"{name} is no operator that onnxlab knows; its outputs have the types that the model declares"
        problems.append(Problem("info", "unknown-operator", message, "an operator that is known", name, hint))
        operator.shared = False
        values = self.graph.values
        return [
            self.sources.declared(values[vid], partial(native.hole, slot)) if vid else UNKNOWN
            for slot, vid in enumerate(node.outputs)
        ]
