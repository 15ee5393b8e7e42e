// Written by `python -m tests.support.twin` from onnxlab/graph/edits/table.py: change that, and run it again.

import type { EditName, Subject } from "./edits.ts";

/** The name of a parameter in a form. */
export interface EditField {
  kind: string;
  label: string;
  hint?: string;
}

/** The subjects of each edit, and the parameters that forms ask for. */
export const EDITS: Record<EditName, { on: readonly Subject[]; fields: Record<string, EditField> }> = {
  add_node: { on: ["model"], fields: {} },
  add_input: {
    on: ["model"],
    fields: {
      name: { kind: "name", label: "Name" },
      dtype: { kind: "dtype", label: "Type" },
      shape: { kind: "shape", label: "Shape", hint: "Numbers, names for dynamic dims, ? for unknown ones: n, 3, ?, 224. Empty: unknown rank." },
    },
  },
  add_initializer: {
    on: ["model"],
    fields: {
      name: { kind: "name", label: "Name" },
      array: { kind: "array", label: "Elements" },
    },
  },
  set_doc_string: {
    on: ["model", "graph", "node", "value"],
    fields: {
      text: { kind: "long", label: "Text" },
    },
  },
  set_metadata: {
    on: ["model", "graph", "node", "value"],
    fields: {
      key: { kind: "name", label: "Key" },
      text: { kind: "text?", label: "Text", hint: "Empty takes the entry away." },
    },
  },
  set_model_field: {
    on: ["model"],
    fields: {
      value: { kind: "text", label: "Value" },
    },
  },
  set_opset: {
    on: ["model"],
    fields: {
      domain: { kind: "text", label: "Domain", hint: "Empty is ai.onnx." },
      version: { kind: "version", label: "Version", hint: "0 takes the import away. Nothing is converted." },
    },
  },
  set_binding: {
    on: ["model"],
    fields: {
      variable: { kind: "name", label: "Variable", hint: "An initializer of the algorithm or of the model." },
      output: { kind: "text?", label: "Output", hint: "It is assigned to the variable. Empty takes the binding away." },
      initialization: { kind: "bool", label: "Of the initialization, before the first step" },
    },
  },
  convert_opset: {
    on: ["model"],
    fields: {
      version: { kind: "int", label: "Version", hint: "Of ai.onnx; nodes whose operators changed are rewritten." },
    },
  },
  set_declarations: { on: ["model"], fields: {} },
  sort_nodes: { on: ["model"], fields: {} },
  drop_dead_nodes: { on: ["model"], fields: {} },
  drop_unused_initializers: { on: ["model"], fields: {} },
  drop_unused_functions: { on: ["model"], fields: {} },
  inline_functions: { on: ["model"], fields: {} },
  insert_model: {
    on: ["model"],
    fields: {
      file: { kind: "model_file", label: "Model" },
      prefix: { kind: "text", label: "Prefix", hint: "Put before all of its names." },
      outputs: { kind: "bool", label: "Its outputs become outputs of this model" },
    },
  },
  cut: {
    on: ["model"],
    fields: {
      siblings: { kind: "bool", label: "What crosses the same border too" },
    },
  },
  replace_dim: {
    on: ["model"],
    fields: {
      old: { kind: "dim", label: "Dim" },
      new: { kind: "dim", label: "Becomes", hint: "Numbers, names for dynamic dims, ? for unknown ones: n, 3, ?, 224" },
    },
  },
  clear_groups: { on: ["model"], fields: {} },
  remove_nodes: { on: ["nodes", "node"], fields: {} },
  duplicate_nodes: { on: ["nodes", "node"], fields: {} },
  make_function: {
    on: ["nodes"],
    fields: {
      name: { kind: "name", label: "Name" },
      domain: { kind: "name", label: "Domain" },
      copies: { kind: "bool", label: "Call it in place of every copy of these nodes too" },
    },
  },
  group_nodes: {
    on: ["nodes"],
    fields: {
      name: { kind: "name", label: "Name" },
    },
  },
  ungroup_nodes: { on: ["nodes"], fields: {} },
  set_attribute: {
    on: ["node"],
    fields: {
      name: { kind: "name", label: "Attribute" },
      value: { kind: "attribute", label: "Value" },
    },
  },
  clear_attribute: {
    on: ["node"],
    fields: {
      name: { kind: "name", label: "Attribute" },
    },
  },
  default_attributes: { on: ["node"], fields: {} },
  rename_node: {
    on: ["node"],
    fields: {
      name: { kind: "text", label: "Name" },
    },
  },
  move_node: {
    on: ["node"],
    fields: {
      position: { kind: "int", label: "Position", hint: "0 is the first node." },
    },
  },
  set_operator: { on: ["node"], fields: {} },
  set_input: {
    on: ["node"],
    fields: {
      slot: { kind: "int", label: "Input" },
      value: { kind: "value?", label: "Reads" },
    },
  },
  set_inputs: {
    on: ["node"],
    fields: {
      values: { kind: "values", label: "Inputs" },
    },
  },
  set_outputs: {
    on: ["node"],
    fields: {
      names: { kind: "names", label: "Outputs", hint: "Names with commas between; an empty one is not made." },
    },
  },
  insert_on_edge: {
    on: ["node"],
    fields: {
      slot: { kind: "int", label: "Input" },
    },
  },
  constant_to_initializer: { on: ["node"], fields: {} },
  inline_call: { on: ["node"], fields: {} },
  rename_value: {
    on: ["value"],
    fields: {
      name: { kind: "text", label: "Name" },
    },
  },
  redirect: {
    on: ["value"],
    fields: {
      other: { kind: "value", label: "Read instead" },
    },
  },
  insert_after: { on: ["value"], fields: {} },
  set_shape: {
    on: ["value"],
    fields: {
      shape: { kind: "shape", label: "Shape", hint: "Numbers, names for dynamic dims, ? for unknown ones: n, 3, ?, 224" },
    },
  },
  set_dim: {
    on: ["value"],
    fields: {
      axis: { kind: "int", label: "Axis" },
      dim: { kind: "dim", label: "Dim", hint: "Numbers, names for dynamic dims, ? for unknown ones: n, 3, ?, 224" },
    },
  },
  set_dtype: {
    on: ["value"],
    fields: {
      dtype: { kind: "dtype", label: "Type" },
    },
  },
  remove_behind: { on: ["value"], fields: {} },
  remove_input: { on: ["value"], fields: {} },
  add_output: { on: ["value"], fields: {} },
  remove_output: { on: ["value"], fields: {} },
  set_initializer: {
    on: ["value"],
    fields: {
      array: { kind: "array", label: "Elements" },
    },
  },
  remove_initializer: { on: ["value"], fields: {} },
  initializer_to_input: { on: ["value"], fields: {} },
  input_to_initializer: { on: ["value"], fields: {} },
  initializer_to_constant: { on: ["value"], fields: {} },
};
