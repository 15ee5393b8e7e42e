"""Edits as lists of primitive changes. Each is one undo step, or part of the open one.

Plain functions over a ModelGraph and its records; `Model` and the handles offer them as methods. `EDITS` lists them by
name.

Files:
    attributes        Edits of attributes: set, clear, go back to the default; the operator's schema says what fits.
    bypassing         Take a node out and join what it read to what read it.
    cleaning          Edits that tidy a model: order, dead nodes, unused initializers and functions.
    connecting        Whether a wire may be drawn: the slot by the schema, visibility, cycles, types.
    constants         Constant nodes and initializers: two ways to store a tensor, each turned into the other.
    declaring         Edits of what a model says about its values: declarations brought up to date, written for all,
                      or dropped.
    exposing          Make values outputs of the model, those inside bodies and functions too: carried out scope by
                      scope.
    extraction        A part of a model as a model of its own: what some values are computed from, up to where others
                      are given.
    formals           Edits of what a graph or function takes and gives: inputs, outputs, and the types that they
                      declare.
    grouping          Edits of groups, which the picture folds to one box: metadata of nodes, which change no result.
    initializers      Edits of stored tensors: replace their data, add and remove them, make inputs of them and back.
    inlining          Replace calls of functions by what the functions do.
    insertion         Put another model into this one: its nodes, tensors, functions and declarations under names that
                      are free.
    metadata          Edits of what a model says about itself: opset imports, metadata, documentation, producer and
                      versions.
    naming            Edits of names, and names that are not in use yet.
    nodes             Edits of nodes: add, remove, duplicate, move.
    operators         Make a node another operator and keep its wires.
    opset_conversion  Convert a model to another version of ai.onnx: only the nodes whose operators changed between
                      the two.
    outlining         Turn a selection of nodes into a function, and its copies into calls; one edit for all copies of
                      a block.
    table             Every edit, one row each: function, subject, label, statement in Python, parameters as forms and
                      requests have them.
    wiring            Edits of wires: what a node reads and makes, and new nodes on them.
    cuts/             Cuts of a model in place.
    opsets/           Nodes in the words of another opset version: what `graph.edits.opset_conversion` puts into a
                      model.
    recording/        Records of edits for the history: the description of an edit, and its call as Python.
"""

from onnxlab.graph.edits.attributes import clear_attribute, default_attributes, set_attribute
from onnxlab.graph.edits.cleaning import drop_dead_nodes, drop_unused_functions, drop_unused_initializers, sort_nodes
from onnxlab.graph.edits.connecting import Targets, can_connect
from onnxlab.graph.edits.constants import constant_to_initializer, initializer_to_constant
from onnxlab.graph.edits.cuts import Cut, cut, plan_behind, plan_cut, remove_behind
from onnxlab.graph.edits.declaring import set_declarations
from onnxlab.graph.edits.exposing import add_output
from onnxlab.graph.edits.formals import (
    add_input,
    declare_output,
    remove_input,
    remove_output,
    replace_dim,
    set_dim,
    set_dtype,
    set_shape,
)
from onnxlab.graph.edits.grouping import clear_groups, group_nodes, ungroup_nodes
from onnxlab.graph.edits.initializers import (
    add_initializer,
    initializer_to_input,
    input_to_initializer,
    remove_initializer,
    set_initializer,
)
from onnxlab.graph.edits.inlining import inline_call, inline_function, inline_functions
from onnxlab.graph.edits.insertion import insert_model
from onnxlab.graph.edits.metadata import set_binding, set_doc_string, set_metadata, set_model_field, set_opset
from onnxlab.graph.edits.naming import rename_node, rename_value
from onnxlab.graph.edits.nodes import add_node, duplicate_nodes, insert_node, move_node, remove_nodes
from onnxlab.graph.edits.operators import check_operator, make_node, output_names, set_operator
from onnxlab.graph.edits.opset_conversion import convert_opset
from onnxlab.graph.edits.outlining import for_each_copy, make_function
from onnxlab.graph.edits.table import EDITS
from onnxlab.graph.edits.wiring import insert_after, insert_on_edge, redirect, set_input, set_inputs, set_outputs

__all__ = [
    "EDITS",
    "Cut",
    "Targets",
    "add_initializer",
    "add_input",
    "add_node",
    "add_output",
    "can_connect",
    "check_operator",
    "clear_attribute",
    "clear_groups",
    "constant_to_initializer",
    "convert_opset",
    "cut",
    "declare_output",
    "default_attributes",
    "drop_dead_nodes",
    "drop_unused_functions",
    "drop_unused_initializers",
    "duplicate_nodes",
    "for_each_copy",
    "group_nodes",
    "initializer_to_constant",
    "initializer_to_input",
    "inline_call",
    "inline_function",
    "inline_functions",
    "input_to_initializer",
    "insert_after",
    "insert_model",
    "insert_node",
    "insert_on_edge",
    "make_function",
    "make_node",
    "move_node",
    "output_names",
    "plan_behind",
    "plan_cut",
    "redirect",
    "remove_behind",
    "remove_initializer",
    "remove_input",
    "remove_nodes",
    "remove_output",
    "rename_node",
    "rename_value",
    "replace_dim",
    "set_attribute",
    "set_binding",
    "set_declarations",
    "set_dim",
    "set_doc_string",
    "set_dtype",
    "set_initializer",
    "set_input",
    "set_inputs",
    "set_metadata",
    "set_model_field",
    "set_operator",
    "set_opset",
    "set_outputs",
    "set_shape",
    "sort_nodes",
    "ungroup_nodes",
]
