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
  set_doc_string: {
    text: string;
  };
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
  convert_opset: {
    version: number;
  };
  /** Bring the declared types of values up to date, in bodies and functions too; inputs of the model stay. */
  set_declarations: {
    action: string;
  };
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
  /** Take away all that was grouped, renamed and dissolved by hand; returns from how many nodes. */
  clear_groups: Record<string, never>;
  /** Remove nodes. With `bypass` the readers of a node's first output read its first input instead. */
  remove_nodes: {
    bypass?: boolean;
  };
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
  /** Make nodes a group of the picture, or rename the group whose nodes they all are; returns the group's path. */
  group_nodes: {
    name: string;
  };
  /** Dissolve the group whose nodes these are: what is in it stands in the one around it. */
  ungroup_nodes: Record<string, never>;
  /** Give an attribute a value of the type that the operator's schema says. */
  set_attribute: {
    name: string;
    value: Numbers | { type: string; value: Numbers } | NewArray | NewElements;
  };
  /** Take an attribute away, so that its default holds. */
  clear_attribute: {
    name: string;
  };
  /** Take away every attribute that says what its default says; with `explicit` write the defaults out instead. */
  default_attributes: {
    explicit?: boolean;
  };
  /** Give a node another name. ONNX Runtime wants node names to be unique, so a name in use is refused. */
  rename_node: {
    name: string;
  };
  /** Put a node at another place of the file order; one that must not stand there is moved on at once. */
  move_node: {
    position: number;
  };
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
  set_inputs: {
    values: number[];
  };
  /** Let a node make values of these names, by slot; "" leaves an optional output out. */
  set_outputs: {
    names: string[];
  };
  /** Put a new node on one wire: it reads what the slot read, and the slot reads its first output. */
  insert_on_edge: {
    slot: number;
    op_type: string;
    domain?: string;
  };
  /** Replace a Constant node by an initializer of the same name; the value stays the same one. */
  constant_to_initializer: Record<string, never>;
  /** Replace one call of a function by the function's nodes; with `nested` also the calls among these. */
  inline_call: {
    nested?: boolean;
  };
  /** Give a value another name wherever the model mentions it, captures in bodies included. */
  rename_value: {
    name: string;
  };
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
  set_shape: {
    shape: Dim[] | null;
  };
  /** Change one dimension of a graph input or output: an integer, a name to make it dynamic, None for unknown. */
  set_dim: {
    axis: number;
    dim: Dim;
  };
  /** Declare the element type of a graph input or output: a name ("float16"), a NumPy dtype or a DataType. */
  set_dtype: {
    dtype: string;
  };
  /** Remove all nodes that depend on a value, and the outputs that they compute; the value itself stays. */
  remove_behind: Record<string, never>;
  /** Take an input away from its graph. One that has an initializer becomes a plain initializer. */
  remove_input: Record<string, never>;
  /** Make a value an output of the main graph; returns the outputs. */
  add_output: {
    position?: number;
  };
  /** Take a value out of the outputs of a graph (default: the main graph), body or function; its maker stays. */
  remove_output: {
    scope?: number;
  };
  /** Replace the data of an initializer; its documentation and metadata stay. */
  set_initializer: {
    array: NewArray | NewElements | { file: string };
  };
  /** Take a stored tensor away. One that is also a graph input becomes a required input. */
  remove_initializer: Record<string, never>;
  /** Make a stored tensor a graph input of its type and shape; with `keep_default` the data stays as default. */
  initializer_to_input: {
    keep_default?: boolean;
  };
  /** Store a tensor in the place of a graph input; None takes the default that the input has. */
  input_to_initializer: {
    array?: NewArray | NewElements | { file: string };
  };
  /** Replace an initializer by a Constant node in front of its first reader; the value stays the same one. */
  initializer_to_constant: Record<string, never>;
}

export type EditName = keyof Edits;

export type Subject = "model" | "graph" | "node" | "nodes" | "value";
