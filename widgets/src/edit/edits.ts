// Written by `python -m tests.support.twin` from onnxlab/graph/edits/table.py: change that, and run it again.

/** A dim of a declared shape: a size, a name, or "?". */
export type Dim = number | string;

/** One number fills a tensor. */
export type Numbers = number | string | boolean | (number | string | boolean)[];

/** A tensor as it is typed. */
export type NewArray = { dtype: string; shape: Dim[]; numbers: Numbers };

/** The elements of a tensor that are others now. */
export type NewElements = { elements: [place: number, number: number | string][] };

/** The parameters of every edit, as a request has them. */
export interface Edits {
  /** Put a node into a scope: where `position` says, else right behind the last node that makes one of its inputs. */
  add_node: {
    op_type: string;
    inputs: number[];
    outputs?: string[];
    name?: string;
    domain?: string;
    scope?: number;
    position?: number;
  };
  /** Give a graph (default: the main graph) another input; a function takes just a name. */
  add_input: {
    name: string;
    dtype?: string;
    shape?: Dim[] | null;
    position?: number;
    scope?: number;
  };
  /** Store a tensor under a new name, in the main graph or in a body. */
  add_initializer: {
    name: string;
    array: NewArray | NewElements | { file: string };
    scope?: number;
  };
  /** Set the doc_string of the model (None), a graph, function, node or value; "" takes it away. */
  set_doc_string: { text: string };
  /** Set entries of metadata_props of the model (None), a graph, function, node or value; None takes one away. */
  set_metadata: {
    key: string;
    text: string | null;
  };
  /** Set ir_version, producer_name, producer_version, domain, model_version or doc_string of the model. */
  set_model_field: {
    field: string;
    value: string;
  };
  /** Import another version of an operator domain (None: no longer), in the model or in a function of it. */
  set_opset: {
    domain: string;
    version: number;
  };
  /** Assign an output of the algorithm to an initializer after each step, or one of the initialization before them. */
  set_binding: {
    variable: string;
    output: string | null;
    initialization?: boolean;
    training?: number;
  };
  /** Convert the model, its bodies and its functions to another version of ai.onnx; returns how many nodes changed. */
  convert_opset: { version: number };
  /** Bring the declared types of values up to date, in bodies and functions too; inputs of the model stay. */
  set_declarations: { action: string };
  /** Put producers before consumers in the file order of a scope, or of all; returns how many nodes were moved. */
  sort_nodes: Record<string, never>;
  /** Remove every node that no output of its graph depends on, bodies and functions included; returns how many. */
  drop_dead_nodes: Record<string, never>;
  /** Remove every stored tensor without a reader; returns how many. Defaults of graph inputs stay. */
  drop_unused_initializers: Record<string, never>;
  /** Remove every function that no node calls, directly or through another function; returns how many. */
  drop_unused_functions: Record<string, never>;
  /** Replace every call of every function, nested ones too, and remove the functions, as one step. */
  inline_functions: Record<string, never>;
  /** Put a copy of another model's graph behind the nodes of the main graph, or in front of them, as one step. */
  insert_model: {
    file: string;
    connect: number[];
    feed: number[];
    prefix?: string;
    outputs?: boolean;
  };
  /** End the model at some values and let it start at others; outputs that do not depend on those stay. */
  cut: {
    outputs?: number[];
    inputs?: number[];
    siblings?: boolean;
  };
  /** Let a dim be another one wherever the main graph declares it; returns how many declarations changed. */
  replace_dim: {
    old: Dim;
    new: Dim;
    axis?: number;
    values?: number[];
  };
  /** Remove nodes. With `bypass` the readers of a node's first output read its first input instead. */
  remove_nodes: { bypass?: boolean };
  /** Copy nodes of one scope, bodies and all: copies read each other where the nodes do, and make new values. */
  duplicate_nodes: Record<string, never>;
  /**
   * Move nodes into a new function of the model and call it in their place; returns the calls, the nodes' own first.
   */
  make_function: {
    name: string;
    domain?: string;
    copies?: boolean;
  };
  /** Give an attribute a value of the type that the operator's schema says. */
  set_attribute: {
    name: string;
    value: Numbers | { type: string; value: Numbers } | NewArray | NewElements;
  };
  /** Take an attribute away, so that its default holds. */
  clear_attribute: { name: string };
  /** Take away every attribute that says what its default says; with `explicit` write the defaults out instead. */
  default_attributes: { explicit?: boolean };
  /** Give a node another name. ONNX Runtime wants node names to be unique, so a name in use is refused. */
  rename_node: { name: string };
  /** Put a node at another place of the file order; one that must not stand there is moved on at once. */
  move_node: { position: number };
  /** Make a node another operator (or call of a function) with the same inputs and outputs. */
  set_operator: {
    op_type: string;
    domain?: string;
  };
  /** Let an input slot of a node read the value called `name`; "" leaves an optional input out. */
  set_input: {
    slot: number;
    value: number;
  };
  /** Let a node read the values of these names, by slot; "" leaves an optional input out. */
  set_inputs: { values: number[] };
  /** Let a node make values of these names, by slot; "" leaves an optional output out. */
  set_outputs: { names: string[] };
  /** Put a new node on one wire: it reads what the slot read, and the slot reads its first output. */
  insert_on_edge: {
    slot: number;
    op_type: string;
    domain?: string;
  };
  /** Replace a Constant node by an initializer of the same name; the value stays the same one. */
  constant_to_initializer: Record<string, never>;
  /** Replace one call of a function by the function's nodes; with `nested` also the calls among these. */
  inline_call: { nested?: boolean };
  /** Give a value another name wherever the model mentions it, captures in bodies included. */
  rename_value: { name: string };
  /** Let all nodes that read a value, or only those given, read another one; outputs of graphs stay. */
  redirect: {
    other: number;
    readers?: number[];
  };
  /** Put a new node behind a value: all that read the value, outputs of its graph included, read the new node. */
  insert_after: {
    op_type: string;
    domain?: string;
  };
  /** Declare the shape of a graph input or output: integers, names of dynamic dims, None for unknown ones. */
  set_shape: { shape: Dim[] | null };
  /** Change one dimension of a graph input or output: an integer, a name to make it dynamic, None for unknown. */
  set_dim: {
    axis: number;
    dim: Dim;
  };
  /** Declare the element type of a graph input or output: a name ("float16"), a NumPy dtype or a DataType. */
  set_dtype: { dtype: string };
  /** Remove all nodes that depend on a value, and the outputs that they compute; the value itself stays. */
  remove_behind: Record<string, never>;
  /** Take an input away from its graph. One that has an initializer becomes a plain initializer. */
  remove_input: Record<string, never>;
  /** Make a value an output of the main graph; returns the outputs. */
  add_output: { position?: number };
  /** Take a value out of the outputs of a graph (default: the main graph), body or function; its maker stays. */
  remove_output: { scope?: number };
  /** Replace the data of an initializer; its documentation and metadata stay. */
  set_initializer: { array: NewArray | NewElements | { file: string } };
  /** Take a stored tensor away. One that is also a graph input becomes a required input. */
  remove_initializer: Record<string, never>;
  /** Make a stored tensor a graph input of its type and shape; with `keep_default` the data stays as default. */
  initializer_to_input: { keep_default?: boolean };
  /** Store a tensor in the place of a graph input; None takes the default that the input has. */
  input_to_initializer: { array?: NewArray | NewElements | { file: string } };
  /** Replace an initializer by a Constant node in front of its first reader; the value stays the same one. */
  initializer_to_constant: Record<string, never>;
}

export type EditName = keyof Edits;

export type Subject = "model" | "graph" | "node" | "nodes" | "value";

/** What a form calls a parameter. */
export interface EditField {
  kind: string;
  label: string;
  hint?: string;
}

/** What each edit may be made to, and the parameters that forms ask for. */
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
