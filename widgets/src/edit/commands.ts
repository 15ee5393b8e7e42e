/**
 * Every edit by hand that needs more than a field: what it is called, what it is done to, when it makes sense, and what it
 * asks for. The menus and the list of edits are made of this table; its gestures are those of onnxlab/notebook/edits/edit_commands.py.
 */

import type { App } from "../app.ts";
import { ELEMENT_TYPE_NAMES } from "../model/attributes.ts";
import type { Field } from "./fields.ts";
import { calledFunction, mainScope, plural, shortOp, valueLabel } from "../model/names.ts";
import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../kernel/protocol.ts";

/** What a command is done to: nodes, or a value, or else the model (the scope that one is in). */
export interface Target {
  nodes: number[];
  value: number;
}

export interface Command {
  /** The gesture, or a name of its own. */
  id: string;
  on: "model" | "node" | "nodes" | "value";
  title: string;
  keys?: string;
  /** Stands in the context menu too, not only in the list of all edits. */
  menu?: boolean;
  fits?: (app: App, target: Target) => boolean;
  act: (app: App, target: Target) => void;
}

type Fields = (app: App, target: Target) => Field[] | Promise<Field[]>;

/** A gesture that needs nothing else. */
function direct(on: Command["on"], id: string, title: string, more: Partial<Command> = {}, given: Record<string, unknown> = {}): Command {
  return { id, on, title, act: (app, target) => void app.editing.gesture(id, subject(on, target), given), ...more };
}

/** A gesture that asks first; `given` is sent besides what the fields hold, or instead of it. */
function asking(
  on: Command["on"], id: string, title: string, fields: Fields, more: Partial<Command> = {},
  given: (app: App, target: Target, answers: Record<string, unknown>) => Record<string, unknown> = () => ({}),
): Command {
  const act = (app: App, target: Target) => void app.editing.form(title, fields(app, target), (answers) =>
    app.editing.set(id, subject(on, target), { ...answers, ...given(app, target, answers) }));
  return { id, on, title: `${title}…`, act, ...more };
}

function subject(on: Command["on"], target: Target): number[] {
  return on === "model" ? [] : on === "value" ? [target.value] : target.nodes;
}

// ----------------------------------------------------------------------------------------------------- when, and with what

const one = (target: Target): number => target.nodes[0] ?? 0;
const flags = (app: App, target: Target): number => app.store.values.get(target.value)?.flags ?? 0;
const isConstant = (app: App, target: Target): boolean => app.store.nodes.get(one(target))?.op === "Constant";
const shownScope = (app: App) => ({ scope: inMain(app) ? 0 : app.picked.here });
const inMain = (app: App): boolean => !app.picked.here || app.picked.here === mainScope(app.store);
const firstOutput = (app: App, node: number): number => app.store.nodes.get(node)?.outputs.find((value) => value > 0) ?? 0;

const dtypes = ELEMENT_TYPE_NAMES.filter(Boolean).map((value) => ({ value, label: value }));
const dtypeField = (initial = "float32"): Field => ({ kind: "choice", name: "dtype", label: "Type", choices: dtypes, initial });
const SHAPE_HINT = "Numbers, names for dynamic dims, ? for unknown ones: n, 3, ?, 224";
const NUMBERS_HINT = "One number fills the tensor; several are its elements in order.";

/** "float32[n, 3]" as its type and its dims. */
export function splitLabel(label: string): { dtype: string; dims: string } {
  const [, dtype = "", dims = ""] = /^([\w.]+)(?:\[(.*)\])?$/.exec(label.trim()) ?? [];
  return { dtype, dims: dims.split(",").map((dim) => dim.trim()).join(", ") };
}

function slots(app: App, target: Target): { value: string; label: string }[] {
  const inputs = app.store.nodes.get(one(target))?.inputs ?? [];
  const label = (value: number, slot: number) => `${slot}: ${value ? valueLabel(app.store, value) : "not connected"}`;
  const found = inputs.map((value, slot) => ({ value: String(slot), label: label(value, slot) }));
  return [...found, { value: String(inputs.length), label: `${inputs.length}: a further input` }];
}

async function typedNow(app: App, target: Target): Promise<Field[]> {
  const { label, initializer } = await app.client.request("value", { value: target.value });
  const { dtype, dims } = splitLabel(label);
  return [
    dtypeField(initializer?.dtype ?? (dtype || "float32")),
    { kind: "dims", name: "shape", label: "Shape", initial: initializer ? initializer.shape.join(", ") : dims },
    { kind: "numbers", name: "numbers", label: "Elements", initial: "0", hint: NUMBERS_HINT },
  ];
}

function noteFields(): Field[] {
  return [
    { kind: "text", name: "key", label: "Key", required: true },
    { kind: "text", name: "text", label: "Text", hint: "Empty takes the entry away." },
  ];
}

const noteGiven = (id: string, on: Command["on"], title: string): Command => ({
  id, on, title: `${title}…`,
  act: (app, target) => void app.editing.form(title, noteFields(), ({ key, text }) =>
    app.editing.set(id, subject(on, target), { key, text: text === "" ? null : text })),
});

const doc = (on: "model" | "node" | "value", id: string, title: string, which: "doc_string" | "graph_doc_string" = "doc_string"): Command =>
  asking(on, id, title, async (app, target) => {
    const about = await app.client.request("about", on === "node" ? { node: one(target) } : on === "value" ? { value: target.value } : {});
    return [{ kind: "long", name: "text", label: "Text", initial: about[which] ?? "" }];
  });

/** What was typed, for an attribute of a type: a list for a list, 1.0 as a number. */
function attributeValue(type: string, value: unknown): unknown {
  const items = (Array.isArray(value) ? value : [value]).map((item) => {
    if (type.startsWith("string")) return String(item);
    return typeof item === "string" && item !== "" && Number.isFinite(Number(item)) && Math.abs(Number(item)) < 2 ** 53 ? Number(item) : item;
  });
  return type.endsWith("s") || items.length > 1 ? items : items[0];
}

const modelField = (field: string): Command => asking("model", "set_field", `Set the model's ${field}`, async (app) => {
  const { fields } = await app.client.request("about", {});
  return [{ kind: "text", name: "text", label: field, initial: String(fields?.[field] ?? "") }];
}, {}, () => ({ field }));

// ------------------------------------------------------------------------------------------------------------------- the table

const NODE: Command[] = [
  { id: "rename_node", on: "node", title: "Rename", keys: "F2", menu: true, act: (app, target) => app.edits.rename({ node: one(target) }) },
  { id: "replace", on: "node", title: "Replace the operator…", keys: "R", menu: true, act: (app, target) => app.editing.replace(one(target)) },
  {
    id: "insert_behind", on: "node", title: "Insert a node behind…", keys: "I", menu: true,
    fits: (app, target) => firstOutput(app, one(target)) > 0,
    act: (app, target) => app.editing.insertAfter(firstOutput(app, one(target))),
  },
  {
    id: "insert_before", on: "node", title: "Insert a node before an input…", fits: (app, target) => slots(app, target).length > 1,
    act: (app, target) => void app.editing.form(
      "Insert a node before an input", [{ kind: "choice", name: "slot", label: "Input", choices: slots(app, target).slice(0, -1) }],
      async ({ slot }) => app.editing.insertBefore(one(target), Number(slot)),
    ),
  },
  {
    id: "connect", on: "node", title: "Rewire an input…", keys: "C", menu: true,
    act: (app, target) => app.editing.connect(one(target)),
  },
  {
    id: "disconnect", on: "node", title: "Disconnect an input…", fits: (app, target) => slots(app, target).length > 1,
    act: (app, target) => void app.editing.form(
      "Disconnect an input", [{ kind: "choice", name: "slot", label: "Input", choices: slots(app, target).slice(0, -1) }],
      ({ slot }) => app.editing.set("connect", target.nodes, { slot: Number(slot), value: 0 }),
    ),
  },
  asking("node", "set_outputs", "Name the outputs", (app, target) => [{
    kind: "texts", name: "names", label: "Outputs", hint: "Names with commas between; an empty one is not made.",
    initial: (app.store.nodes.get(one(target))?.outputs ?? []).map((value) => (value ? valueLabel(app.store, value) : "")).join(", "),
  }]),
  asking("node", "move", "Move in the file", () => [{ kind: "int", name: "position", label: "Position", initial: "0", hint: "0 is the first node." }]),
  direct("node", "default_attributes", "Write out default attributes", {}, { explicit: true }),
  direct("node", "default_attributes", "Drop attributes that say the default", {}, { explicit: false }),
  asking("node", "set_tensor", "Set a tensor attribute", () => [
    { kind: "text", name: "name", label: "Attribute", initial: "value", required: true }, dtypeField(),
    { kind: "dims", name: "shape", label: "Shape", initial: "1" },
    { kind: "numbers", name: "numbers", label: "Elements", initial: "0", hint: NUMBERS_HINT },
  ]),
  direct("node", "node_to_initializer", "Make it an initializer", { menu: true, fits: isConstant }),
  direct("node", "inline", "Inline the function", { menu: true, fits: (app, target) => calledFunction(app.store, one(target)) > 0 }, { nested: false }),
  { id: "select_copies", on: "node", title: "Select its likes in all copies", keys: "L", menu: true, act: (app, target) => void app.editing.selectCopies(target.nodes) },
  doc("node", "node_doc", "Write a note about the node"),
  noteGiven("node_metadata", "node", "Metadata of the node"),
];

const NODES: Command[] = [
  direct("nodes", "duplicate", "Duplicate", { keys: "Ctrl+D", menu: true }),
  asking("nodes", "set_attributes", "Set an attribute", () => [
    { kind: "text", name: "name", label: "Attribute", required: true },
    { kind: "choice", name: "type", label: "Type", choices: ["int", "float", "string", "ints", "floats", "strings"].map((value) => ({ value, label: value })), hint: "Counts where the operator's schema does not know the attribute." },
    { kind: "numbers", name: "value", label: "Value", hint: "Several values with commas between." },
  ], { menu: true, fits: (_, target) => target.nodes.length > 1 }, (_app, _target, { type, value }) => ({ value: attributeValue(String(type), value) })),
  asking("nodes", "make_function", "Make a function of it", () => [
    { kind: "text", name: "name", label: "Name", initial: "Block", required: true },
    { kind: "text", name: "domain", label: "Domain", initial: "local", required: true },
    { kind: "bool", name: "copies", label: "Call it in place of every copy of these nodes too", initial: true },
  ], { menu: true }),
  { id: "extract", on: "nodes", title: "Download as a model", menu: true, act: (app, target) => void app.editing.download(target.nodes) },
  { id: "remove_bypass", on: "nodes", title: "Delete, joining around", keys: "Del", menu: true, act: (app, target) => void app.edits.remove(target.nodes, true) },
  { id: "remove", on: "nodes", title: "Delete", keys: "⇧ Del", menu: true, act: (app, target) => void app.edits.remove(target.nodes, false) },
];

const isInput = (app: App, target: Target): boolean => (flags(app, target) & GRAPH_INPUT) > 0;
const isFormal = (app: App, target: Target): boolean => (flags(app, target) & (GRAPH_INPUT | GRAPH_OUTPUT)) > 0;
const isStored = (app: App, target: Target): boolean => (flags(app, target) & INITIALIZER) > 0;
const isOutput = (app: App, target: Target): boolean => (flags(app, target) & GRAPH_OUTPUT) > 0;

const VALUE: Command[] = [
  { id: "rename_value", on: "value", title: "Rename", keys: "F2", menu: true, act: (app, target) => app.edits.rename({ value: target.value }) },
  { id: "insert_after", on: "value", title: "Insert a node here…", keys: "I", menu: true, act: (app, target) => app.editing.insertAfter(target.value) },
  { id: "add_reader", on: "value", title: "Add a node that reads this…", keys: "A", menu: true, act: (app, target) => app.editing.addNode([target.value]) },
  asking("value", "replace_uses", "Let its readers read another value", (app, target) => [
    { kind: "value", name: "other", label: "Read instead", scope: app.store.values.get(target.value)?.scope ?? 0 },
  ], { menu: true, keys: "C", fits: (app, target) => app.store.uses(target.value).length > 0 }),
  direct("value", "add_output", "Make it an output", { menu: true, fits: (app, target) => !isOutput(app, target) }),
  direct("value", "remove_output", "No output any more", { menu: true, fits: isOutput }),
  direct("value", "remove_input", "No input any more", { menu: true, fits: isInput }),
  asking("value", "set_shape", "Set the declared shape", (app, target) => [{
    kind: "dims", name: "shape", label: "Shape", hint: SHAPE_HINT, initial: splitLabel(app.store.values.get(target.value)?.label ?? "").dims,
  }], { menu: true, fits: isFormal }),
  asking("value", "set_dim", "Set one dim", () => [
    { kind: "int", name: "axis", label: "Axis", initial: "0" }, { kind: "dim", name: "dim", label: "Dim", hint: SHAPE_HINT },
  ], { fits: isFormal }),
  asking("value", "set_dtype", "Set the declared type", () => [dtypeField()], { fits: isFormal }),
  direct("value", "to_input", "Make it an input", { menu: true, fits: isStored }, { keep_default: false }),
  direct("value", "to_input", "Make it an input with a default", { fits: isStored }, { keep_default: true }),
  direct("value", "to_constant", "Make it a Constant", { menu: true, fits: isStored }),
  direct("value", "to_initializer", "Store its default", { menu: true, fits: (app, target) => isStored(app, target) && isInput(app, target) }),
  asking("value", "set_array", "Replace the data", typedNow, { menu: true, fits: isStored }),
  {
    id: "set_elements", on: "value", title: "Edit the elements…", menu: true, fits: isStored,
    act: (app, target) => void app.editing.editElements(`Elements of ${valueLabel(app.store, target.value)}`, { value: target.value }),
  },
  asking("value", "load_array", "Replace the data from a file", () => [
    { kind: "file", name: "file", label: "File", accept: ".npy,.npz,.pb" },
  ], { fits: isStored }),
  direct("value", "remove_initializer", "Remove the data", { fits: isStored }),
  {
    id: "insert_onto", on: "value", title: "Insert a model onto this wire…", menu: true, fits: (app, target) => app.store.uses(target.value).length > 0,
    act: (app, target) => void app.editing.insertModel({ connect: [target.value], feed: [target.value] }),
  },
  {
    id: "insert_fed", on: "value", title: "Insert a model that reads this…",
    act: (app, target) => void app.editing.insertModel({ connect: [target.value] }),
  },
  {
    id: "insert_feeding", on: "value", title: "Insert a model in front of its readers…", fits: (app, target) => app.store.uses(target.value).length > 0,
    act: (app, target) => void app.editing.insertModel({ feed: [target.value] }),
  },
  doc("value", "value_doc", "Write a note about the value"),
  noteGiven("value_metadata", "value", "Metadata of the value"),
];

const MODEL: Command[] = [
  { id: "add_node", on: "model", title: "Add a node…", keys: "A", menu: true, act: (app) => app.editing.addNode() },
  asking("model", "add_input", "Add an input", () => [
    { kind: "text", name: "name", label: "Name", required: true }, dtypeField(),
    { kind: "dims?", name: "shape", label: "Shape", hint: `${SHAPE_HINT}. Empty: unknown rank.` },
  ], { menu: true }, shownScope),
  asking("model", "add_initializer", "Add an initializer", () => [
    { kind: "text", name: "name", label: "Name", required: true }, dtypeField(),
    { kind: "dims", name: "shape", label: "Shape", initial: "1" },
    { kind: "numbers", name: "numbers", label: "Elements", initial: "0", hint: NUMBERS_HINT },
  ], { menu: true }, shownScope),
  { id: "insert", on: "model", title: "Insert another model…", menu: true, act: (app) => void app.editing.insertModel() },
  asking("model", "convert_opset", "Convert to another opset", (app) => [
    {
      kind: "int", name: "version", label: "Version", initial: String(app.store.opsets[""] ?? ""),
      hint: "Of ai.onnx, up or down; nodes whose operators changed are rewritten.",
    },
  ], { menu: true }),
  asking("model", "set_opset", "Set an opset version", (app) => {
    const [domain = "", version = 21] = Object.entries(app.store.opsets)[0] ?? [];
    return [
      { kind: "text", name: "domain", label: "Domain", initial: domain, hint: "Empty is ai.onnx." },
      { kind: "int", name: "version", label: "Version", initial: String(version), hint: "0 takes the import away. Nothing is converted." },
    ];
  }),
  ...["ir_version", "producer_name", "producer_version", "domain", "model_version"].map(modelField),
  doc("model", "model_doc", "Write a note about the model"),
  doc("model", "graph_doc", "Write a note about the graph", "graph_doc_string"),
  noteGiven("model_metadata", "model", "Metadata of the model"),
  direct("model", "sort_nodes", "Sort the nodes topologically"),
  direct("model", "drop_dead_nodes", "Drop dead nodes"),
  direct("model", "drop_unused_initializers", "Drop unused initializers"),
  direct("model", "drop_unused_functions", "Drop unused functions"),
  direct("model", "refresh_declarations", "Bring declared types up to date"),
  direct("model", "store_declarations", "Declare the type of every value"),
  direct("model", "drop_declarations", "Drop declared types of inner values"),
  direct("model", "inline_all", "Inline all functions", { fits: (app) => [...app.store.scopes.values()].some(({ kind }) => kind === "function") }),
];

export const COMMANDS: readonly Command[] = [...NODE, ...NODES, ...VALUE, ...MODEL];

/** Commands that make sense for a target, those of the model last. */
export function commandsFor(app: App, target: Target): Command[] {
  const about = target.nodes.length === 1 ? ["node", "nodes"] : target.nodes.length ? ["nodes"] : target.value ? ["value"] : [];
  const fitting = (on: string) => COMMANDS.filter((each) => each.on === on && (each.fits?.(app, target) ?? true));
  return [...about, "model"].flatMap(fitting);
}

/** What a list of commands is about, in words. */
export function targetLabel(app: App, target: Target): string {
  const [node = 0] = target.nodes;
  if (target.nodes.length > 1) return plural(target.nodes.length, "node");
  if (node) return shortOp(app.store.nodes.get(node)?.op ?? "");
  return target.value ? valueLabel(app.store, target.value) : "the model";
}
