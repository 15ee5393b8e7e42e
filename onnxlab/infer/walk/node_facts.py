"""Output facts of one node, from the first source that knows them.

The sources, in this order: onnxlab's rule; onnx's C++ rule; the types of the operator's schema; for an unknown
operator, the types that the model declares.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import proxy

from onnxlab import schemas
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos import glow_dialect
from onnxlab.infer.facts.ge_descriptors import output_facts
from onnxlab.infer.facts.policy import refined
from onnxlab.infer.facts.symbols import has_holes
from onnxlab.infer.rules import native, schema_checks
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator, Problem
from onnxlab.infer.walk import schema_bodies
from onnxlab.infer.walk.body_walker import BodyWalker
from onnxlab.infer.walk.input_masks import Inputs, bare, incomplete, not_facts
from onnxlab.infer.walk.rule_context import RuleContext
from onnxlab.shapes import UNKNOWN, Fact, FactError


class Answers:
    """Answers for the nodes of one graph; keeps nothing."""

    def __init__(self, walker: BodyWalker) -> None:
        self._walker: BodyWalker = proxy(walker)  # a proxy: the walker holds this object
        self._graph = walker.graph
        self._policy = walker.policy

    def facts(
        self, frame: FactFrame, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> tuple[Sequence[Fact], Sequence[Fact] | None]:
        """Facts of the outputs of a node that is no call, from those of its inputs; `problems` is told what is wrong.

        There may be fewer or more facts than the node has outputs, and they may have holes (`native.hole`). The second
        item is for `completed`: the facts of onnx's rule, empty where the rule was not called, None where it is not
        to fill holes.
        """
        schema = operator.schema
        if schema is None and operator.rule is None:
            return self._unknown_operator(node, operator, problems), None
        if schema is not None:
            if operator.arity is None:
                operator.faults = schema_checks.attribute_problems(schema, operator.attributes)
                operator.oddities = schema_checks.oddities(
                    schema, self._told(operator), operator.repeated, operator.unbound
                )
                operator.arity = schema_checks.arity_problem(schema, inputs, len(operator.outputs))
            problems.extend(operator.faults)
            if operator.arity:
                problems.append(operator.arity)
            if operator.arity or operator.faults:
                return self._despite(node, operator, inputs, problems), None
            if refused := schema_checks.type_problems(schema, inputs):
                problems.extend(refused)
                if self._policy.as_onnx and not node.bodies:
                    return self._despite(node, operator, inputs, problems), None
        try:
            theirs: Sequence[Fact] = ()
            if self._policy.cross_check and not node.bodies:
                theirs = self._by_schema(node, operator, inputs, problems)
            if problems:
                inputs = bare(inputs)  # elements of a type that the operator does not take mean nothing to it
            if operator.rule is None:
                return theirs or self._by_schema(node, operator, inputs, problems), None
            facts = self._by_rule(frame, node, operator, inputs, problems)
        except FactError as error:
            if problem := self._problem(error, inputs):
                problems.append(problem)
            return schema_checks.output_types(schema, inputs, len(operator.outputs)), None
        return facts, theirs if self._policy.as_onnx and not node.bodies else None

    def _told(self, operator: Operator) -> Mapping[str, Any]:
        """The attributes of a node but for those that Glow adds to any node."""
        if not glow_dialect.is_dialect(self._graph.header):
            return operator.attributes
        is_dialect_attribute = glow_dialect.is_own_attribute
        return {name: value for name, value in operator.attributes.items() if not is_dialect_attribute(name)}

    def _problem(self, error: FactError, inputs: Inputs) -> Problem | None:
        """The problem of a rule's exception; None where onnx refuses for lack of a type and not to cross-check."""
        if error.code != "onnx-inference" or not incomplete(inputs):
            return Problem(error.severity, error.code, str(error), error.expected, error.found, error.hint)
        return Problem("error", "incomplete", str(error)) if self._policy.cross_check else None

    def _despite(self, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]) -> Sequence[Fact]:
        """Facts of an invalid node: `as_onnx` by onnx's rule, which reads what it needs; else by types alone."""
        try:
            if self._policy.as_onnx:
                return self._by_schema(node, operator, inputs, problems)
        except FactError as error:
            if self._policy.cross_check and (problem := self._problem(error, inputs)):
                problems.append(problem)
        return schema_checks.output_types(operator.schema, inputs, len(operator.outputs))

    def completed(
        self,
        node: NodeRecord,
        operator: Operator,
        inputs: Inputs,
        facts: Sequence[Fact],
        theirs: Sequence[Fact],
        problems: list[Problem],
    ) -> Sequence[Fact]:
        """The facts of onnxlab's rule with their holes filled in from those of onnx's."""
        if not any(map(has_holes, facts)):
            return facts
        try:
            theirs = theirs or self._by_schema(node, operator, inputs, problems)
        except FactError:
            return facts
        both = [refined(ours, other) for ours, other in zip(facts, theirs, strict=False)]
        return [*both, *facts[len(both) :]]

    def _by_rule(
        self, frame: FactFrame, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        assert operator.rule is not None
        context = RuleContext(self._walker, frame, node, operator)
        try:
            result = operator.rule(context, operator.attributes, *inputs)
        except FactError:
            raise
        except Exception as error:  # a defect of a rule costs one node's shape, never an edit
            if isinstance(error, KeyError) and operator.schema is None:  # with a schema, `faults` report it
                name = str(error.args[0])
                message, hint = f"its required attribute {name!r} is missing", f"set {name!r}"
                raise FactError(message, code="attribute-missing", expected=name, found="none", hint=hint) from error
            if operator.schema is None or operator.schema.onnx is None or node.bodies:
                message = f"its shape rule failed: {type(error).__name__}: {error}"
                raise FactError(message, code="rule-failed") from error
            return self._by_schema(node, operator, inputs, problems)
        problems.extend(context.problems)
        facts = result if isinstance(result, (tuple, list)) else (result,)
        if (operator.schema is None or operator.schema.onnx is None) and (wrong := not_facts(facts)):
            raise FactError(f"its shape rule returned {wrong}", code="rule-failed", expected="facts", found=wrong)
        return facts

    def _by_schema(
        self, node: NodeRecord, operator: Operator, inputs: Inputs, problems: list[Problem]
    ) -> Sequence[Fact]:
        """Facts by the schema: by onnx's rule, by the body of a custom operator, else by its types alone."""
        schema = operator.schema
        scope = self._graph.scopes[node.scope]
        if schema is None or schema.onnx is None:
            types = schema_checks.output_types(schema, inputs, len(operator.outputs))
            if schema is None or schema.function is None:
                return types
            opset = self._graph.opset_version("", scope) or 0
            facts = schema_bodies.infer(operator, inputs, opset, problems, self._walker)
            return [ours if ours is not UNKNOWN else kind for ours, kind in zip(facts, types, strict=False)]
        facts = self.by_onnx(node, operator, inputs)
        types = schema_checks.output_types(schema, inputs, len(operator.outputs))
        return [theirs if theirs is not UNKNOWN else ours for theirs, ours in zip(facts, types, strict=True)]

    def by_onnx(
        self, node: NodeRecord, operator: Operator, inputs: Inputs, computed: Container[int] = ()
    ) -> Sequence[Fact]:
        """Facts by onnx's rule alone, see `native.infer`; empty without one. Raises FactError where that refuses."""
        schema = operator.schema
        if schema is None or schema.onnx is None:
            return ()
        version = self._graph.opset_version("", self._graph.scopes[node.scope]) or 0
        opsets = {"": version, operator.domain: operator.version or schema.since_version}
        return native.infer(schema.onnx, operator.proto, inputs, opsets, self._graph.proto.ir_version or 8, computed)

    def _unknown_operator(self, node: NodeRecord, operator: Operator, problems: list[Problem]) -> Sequence[Fact]:
        """Types that the model declares, since nothing else is known of the operator."""
        if self._graph.is_ge_dump:
            operator.shared = False
            return output_facts(node.proto, native.hole)
        name = f"{operator.domain}::{operator.op_type}" if operator.domain else operator.op_type
        hint = "onnxlab.ops.register() makes a custom operator known"
        if exists := schemas.versions(operator.domain, operator.op_type):
            hint = f"it exists since version {min(exists)}, the model imports {operator.version}"
        elif not operator.version:
            hint = f"add an opset import of {operator.domain or 'ai.onnx'!r}, or register a custom operator"
        message = f"{name} is no operator that onnxlab knows; its outputs have the types that the model declares"
        if not self._graph.uninferred:
            problems.append(Problem("info", "unknown-operator", message, "an operator that is known", name, hint))
        operator.shared = False
        values = self._graph.values
        return [
            self._walker.sources.declared(values[vid], partial(native.hole, slot)) if vid else UNKNOWN
            for slot, vid in enumerate(node.outputs)
        ]
