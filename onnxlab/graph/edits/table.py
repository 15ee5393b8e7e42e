"""Every edit by name, for menus, messages and tests: its subject and its function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from onnxlab.graph.edits import (
    attributes,
    cleaning,
    constants,
    declaring,
    exposing,
    formals,
    initializers,
    inlining,
    insertion,
    metadata,
    naming,
    nodes,
    operators,
    outlining,
    wiring,
)

Subject = Literal["model", "node", "nodes", "value"]
"""What must be selected: nothing, a NodeRecord, several of one scope, or a ValueRecord."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: `function(graph, subject, **parameters)`, without the subject where that is the model."""

    function: Callable[..., Any]
    subject: Subject

    @property
    def name(self) -> str:
        """The name of the edit: that of its function."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").split("\n")[0]

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters besides the graph, the subject and the origin."""
        known = list(inspect.signature(self.function).parameters.values())[1 if self.subject == "model" else 2 :]
        return MappingProxyType({each.name: each for each in known if each.name != "origin"})


def _table(**functions: list[Callable[..., Any]]) -> Mapping[str, Edit]:
    return MappingProxyType(
        {each.__name__: Edit(each, subject) for subject, several in functions.items() for each in several}  # type: ignore[arg-type]
    )


EDITS: Mapping[str, Edit] = _table(
    model=[
        nodes.add_node, formals.add_input, initializers.add_initializer, metadata.set_doc_string,
        metadata.set_metadata, metadata.set_model_field, metadata.set_opset, cleaning.sort_nodes,
        cleaning.drop_dead_nodes, cleaning.drop_unused_initializers, cleaning.drop_unused_functions,
        inlining.inline_functions, insertion.insert_model, declaring.set_declarations,
    ],
    nodes=[nodes.remove_nodes, nodes.duplicate_nodes, outlining.make_function, outlining.for_each_copy],
    node=[
        attributes.set_attribute, attributes.clear_attribute, attributes.default_attributes, naming.rename_node,
        nodes.move_node, operators.set_operator, wiring.set_input, wiring.set_inputs, wiring.set_outputs,
        wiring.insert_on_edge, constants.constant_to_initializer, inlining.inline_call,
    ],
    value=[
        naming.rename_value, wiring.redirect, wiring.insert_after, formals.set_shape, formals.set_dim,
        formals.set_dtype, formals.remove_input, exposing.add_output, formals.remove_output,
        initializers.set_initializer, initializers.remove_initializer, initializers.initializer_to_input,
        initializers.input_to_initializer, constants.initializer_to_constant,
    ],
)  # fmt: skip
