"""The reference provider: every node by itself, through a kernel of `ops/`, a function's body, or a schema's.

The provider compiles parts into steps, one per node, so that each value can be watched and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from onnxlab import schemas
from onnxlab.errors import OnnxlabError, RunError, UnsupportedOperatorError
from onnxlab.execution.base import diagnosis, output_sizes, schema_functions
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Capabilities, Part, PartitionView, Provider, Step, SubgraphClaim
from onnxlab.execution.numpy import gradient, stored_inputs
from onnxlab.execution.numpy.half_precision import held_wide
from onnxlab.execution.planning.compiler import Compiler, ScopeCompiler
from onnxlab.execution.program import buffer_reuse
from onnxlab.execution.program.executor import NodeContext, ProgramBody
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.attributes import AttributeRef, BodyRef
from onnxlab.ops import KernelEntry, find_kernel, find_traits
from onnxlab.ops.base.image_layouts import BLOCKED
from onnxlab.schemas import Schema


@dataclass(eq=False)
class NumpyProvider(Provider):
    """Runs nodes with NumPy. The last provider: it gets nodes that no other took, and refuses those it cannot run.

    Args:
        exact: round 16-bit floats after every node.
    """

    name = "numpy"
    capabilities = Capabilities(inlines=True, trusted=True)

    exact: bool = True

    def get_capability(self, view: PartitionView) -> list[SubgraphClaim]:
        """Claim each node that has a kernel or a body."""
        others = {node.id: operator(node) for node in view.nodes if not self._runnable(node, view.scope)}
        view.refusals.update((node, f"no kernel for {name}") for node, name in others.items())
        claimed = tuple(node.id for node in view.nodes if node.id not in others)
        return [SubgraphClaim(claimed)] if claimed else []

    def compile(self, part: Part, view: PartitionView) -> list[Step]:
        """One step per node.

        Raises:
            UnsupportedOperatorError: a node has neither kernel nor body.
            RunError: a node lacks an attribute or input that its operator requires.
        """
        steps = [_read(_lean(step_of(node, view.scope), view), node, view) for node in paced(part.nodes)]
        return steps if len(steps) == 1 else held_wide(steps, part.nodes, part, view, self.exact)

    def check(self, part: Part, view: PartitionView) -> None:
        """Raise the errors of `compile`, in much less time where the nodes were compiled before."""
        for node in paced(part.nodes):
            step_of(node, view.scope)

    def _runnable(self, node: NodeView, scope: ScopeCompiler) -> bool:
        schema, functions = schema_of(node, scope), scope.compiler.snapshot.functions
        has_body = (node.domain, node.op_type, node.overload) in functions or (schema and schema.has_function)
        return bool(has_body) or _is_gradient(node) or _kernel(node, schema, scope) is not None


def operator(node: NodeView) -> str:
    """'Conv', 'com.microsoft::Attention'."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def schema_of(node: NodeView, scope: ScopeCompiler) -> Schema | None:
    """The operator's schema in the version that the node's graph imports."""
    return schemas.find(node.domain, node.op_type, scope.scope.opsets.get(node.domain, 1))


def _kernel(node: NodeView, schema: Schema | None, scope: ScopeCompiler) -> KernelEntry | None:
    version = schema.since_version if schema else scope.scope.opsets.get(node.domain, 1)
    return find_kernel(node.domain, node.op_type, version)


def step_of(node: NodeView, scope: ScopeCompiler) -> Step:
    """The step of a node: by its model-local function, else its kernel, else the body of its schema."""
    cached = scope.compiler.steps.get(node)
    if cached is not None:
        return cached
    try:
        return _made_step(node, scope)
    except OnnxlabError:
        raise
    except Exception as error:  # of a faulty node
        reason = f"{type(error).__name__}: {error}"
        raise RunError(
            f"{node.label} ({operator(node)}) cannot be prepared to run ({reason}); model.check() says what it lacks",
            node.label,
        ) from error


def _made_step(node: NodeView, scope: ScopeCompiler) -> Step:
    if _is_gradient(node):
        return gradient.gradient_step(
            node, scope, lambda part: step_of(part, scope), lambda part: _attributes(part, scope)
        )
    attributes = _given(node, scope)
    body = scope.compiler.function(node, attributes)
    if body is not None:
        if outside := scope.captures(node):
            raise UnsupportedOperatorError(
                f"{node.label}: a graph that it passes to its function reads {outside[0]!r} of outside, which the "
                "function may call otherwise; replace the call by the function's nodes: model.inline()", node.label,
            )  # fmt: skip
        return _function_step(node, scope, body)
    schema = schema_of(node, scope)
    kernel = _kernel(node, schema, scope)
    if schema is not None:
        check_arity(node, schema, attributes)
    if kernel is not None:
        step = _kernel_step(node, scope, kernel, schema, attributes)
        if not node.attributes.bodies and not scope.bindings and node.domain != BLOCKED:
            scope.compiler.steps.put(node, step)
        return step
    if schema is not None and schema.has_function:
        return _schema_step(node, scope, schema, attributes)
    raise _unsupported(node, scope, schema)


def _is_gradient(node: NodeView) -> bool:
    return node.op_type == "Gradient" and node.domain == gradient.DOMAIN


def _attributes(node: NodeView, scope: ScopeCompiler) -> dict[str, Any]:
    """The attributes of a node, defaults filled in."""
    return _keywords(schema_of(node, scope), _given(node, scope))


def _given(node: NodeView, scope: ScopeCompiler) -> dict[str, Any]:
    """The attributes that a node sets, references to the function's attributes resolved, graphs as bodies."""
    attributes = {}
    for name, value in node.attributes.items():
        if isinstance(value, AttributeRef):
            value = scope.bindings.get(value.name)
        elif isinstance(value, BodyRef):
            value = scope.inner(value)
        elif isinstance(value, list) and value and isinstance(value[0], BodyRef):
            value = [scope.inner(item) for item in value]
        if value is not None:
            attributes[name] = _array(value)
    return attributes


def _array(value: Any) -> Any:
    """Sparse tensors and the tensors of schema defaults as arrays; other values as they are."""
    return tensors.to_array(value) if type(value).__name__ in ("SparseTensorProto", "TensorProto") else value


def _keywords(schema: Schema | None, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a kernel: the operator's attributes, defaults where the node sets none."""
    known = attributes if schema is None else schema.attributes
    defaults = {} if schema is None else _defaults(schema)
    return defaults | {name: value for name, value in attributes.items() if name in known}


def _defaults(schema: Schema) -> dict[str, Any]:
    return {name: _array(value) for name, value in schema.defaults.items()}


def check_arity(node: NodeView, schema: Schema, attributes: Mapping[str, Any]) -> None:
    """Raise RunError where a required attribute or input is absent."""
    label = f"{node.label} ({operator(node)})"
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in attributes:
            raise RunError(f"{label} needs attribute {name!r} ({attribute.type}), which is not set", node.label)
    count = len(node.inputs)
    if not schema.min_input <= count <= schema.max_input:
        takes = f"at least {schema.min_input}" if count < schema.min_input else f"at most {schema.max_input}"
        raise RunError(f"{label} takes {takes} inputs, but lists {count}", node.label)
    for slot in [slot for slot, name in enumerate(node.inputs) if not name]:
        if (formal := schema.input(slot)) is not None and formal.option == "single":
            raise RunError(f"{label} needs input {slot} ({formal.name}), which is left out", node.label)


def _kernel_step(
    node: NodeView, scope: ScopeCompiler, kernel: KernelEntry, schema: Schema | None, attributes: Mapping[str, Any]
) -> Step:
    keywords = _keywords(schema, attributes)
    if node.domain == BLOCKED and not kernel.custom:
        keywords["block"] = scope.compiler.block
    if node.op_type == "Constant" and not node.domain:
        try:
            constant = kernel.function(**keywords)
        except Exception as error:
            kind = type(error) if isinstance(error, RunError) else RunError
            raise kind(f"{node.label} (Constant): {error}", node.label) from error
        return Step(node.label, "Constant", node.id, _unused, (), node.outputs, constants=(constant,))
    call = kernel.of(keywords)
    into = partial(kernel.into, **keywords) if kernel.into is not None and keywords else kernel.into
    return Step(
        node.label,
        operator(node),
        node.id,
        call,
        node.inputs,
        node.outputs,
        scope.captures(node),
        kernel.context,
        size=output_sizes.find(node.domain, node.op_type, node.since_version, keywords),
        pure=not (kernel.custom or find_traits(node.domain, node.op_type).random or node.attributes.bodies),
        opsets=scope.scope.opsets,
        explain=partial(diagnosis.broken_rule, node, scope.scope.opsets),
        into=into,
        in_place=kernel.in_place,
    )


def _unused(*arrays: Any) -> Any:
    raise AssertionError("a constant is never called")


def _lean(step: Step, view: PartitionView) -> Step:
    """The step without what inference knows to be of no use: a size estimate, or the reuse of small buffers.

    The estimate is of no use where outputs are small, or as large as an input.
    """
    if step.size is None and step.into is None:
        return step
    inputs, outputs = ([view.fact(name) for name in names if name] for names in (step.inputs, step.outputs))
    nbytes = view.fact(next(iter(step.outputs), "")).nbytes()
    into = None if isinstance(nbytes, int) and nbytes <= buffer_reuse.SMALL else step.into
    size = None if step.size is None or output_sizes.is_harmless(inputs, outputs) else step.size
    return step if size is step.size and into is step.into else replace(step, size=size, into=into)


def _read(step: Step, node: NodeView, view: PartitionView) -> Step:
    """The step with initializers that are left in files read when it runs."""
    scope: ScopeCompiler = view.scope
    if not scope.compiler.stored:
        return step
    kernel = _kernel(node, schema_of(node, scope), scope) if not step.captures else None
    return stored_inputs.reading(step, view, kernel, lambda: _attributes(node, scope))


def _function_step(node: NodeView, scope: ScopeCompiler, body: ProgramBody) -> Step:
    """A call of a function: one step, whose nodes run in the body's own program."""
    if len(node.inputs) > len(body.inputs):
        raise RunError(
            f"{node.label}: function {operator(node)} takes {len(body.inputs)} inputs, "
            f"but {len(node.inputs)} are listed",
            node.label,
        )
    return Step(node.label, operator(node), node.id, partial(_call_body, body), node.inputs, node.outputs,
                context=True, opsets=scope.scope.opsets)  # fmt: skip


def _call_body(body: ProgramBody, context: NodeContext, *arrays: Any) -> tuple[Any, ...]:
    """Run a function; inputs that the call leaves out are absent inside the function too."""
    return tuple(context.run(body, (*arrays, *[None] * (len(body.inputs) - len(arrays)))))


def _schema_step(node: NodeView, scope: ScopeCompiler, schema: Schema, attributes: Mapping[str, Any]) -> Step:
    """A node by the body that its schema carries."""
    bindings = _defaults(schema) | dict(attributes)
    fixed = schema_functions.fixed_function(schema, scope.scope.opsets)
    if fixed is not None:
        return _function_step(node, scope, Compiler(fixed[0], scope.compiler.providers).bound(fixed[1], bindings))
    bodies: dict[Any, ProgramBody] = {}  # by the types of the inputs, for which the schema makes them

    def call(context: NodeContext, *arrays: Any) -> tuple[Any, ...]:
        key = schema_functions.signature(arrays)
        if key not in bodies:
            function = schema_functions.made_function(schema, scope.scope.opsets, node, attributes, arrays)
            if function is None:
                raise _unsupported(node, scope, schema)
            bodies[key] = Compiler(function[0], scope.compiler.providers).bound(function[1], bindings)
        return _call_body(bodies[key], context, *arrays)

    return Step(node.label, operator(node), node.id, call, node.inputs, node.outputs, context=True,
                opsets=scope.scope.opsets)  # fmt: skip


def _unsupported(node: NodeView, scope: ScopeCompiler, schema: Schema | None) -> UnsupportedOperatorError:
    domain = node.domain or "ai.onnx"
    version = scope.scope.opsets.get(node.domain)
    imported = f"opset {version}" if version is not None else "a domain that the model does not import"
    advice = "register a kernel with onnxlab.ops.register"
    if schema is None:
        known: Sequence[int] = schemas.versions(node.domain, node.op_type)
        if known:
            imported += f"; the operator exists since {min(known)}"
            advice = "convert the model to a newer opset, or " + advice
        else:
            advice += ", or give the model a function of this name"
    elif schema.deprecated:
        advice = f"it is deprecated since {schema.since_version}: replace the node, or " + advice
    return UnsupportedOperatorError(
        f"{node.label}: no provider implements {domain}::{node.op_type} ({imported}); {advice}. "
        "Values that do not depend on this node can still be run.",
        node.label,
    )
