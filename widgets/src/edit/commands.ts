/**
 * Every edit by hand that needs more than a field: what it is called, what it is done to, when it makes sense, and what it
 * asks for. The menus and the list of edits are made of this table; its edits and the words of their fields are those of `edits.ts`.
 */

import type { App } from "../app.ts";
import type { EditName, Edits, NewArray, Numbers, Subject } from "./edits.ts";
import type { Field } from "./fields.ts";
import { arrayFields, formFields, parametersOf } from "./forms.ts";
import { calledFunction, mainScope, plural, shortOp, valueLabel } from "../model/names.ts";
import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../kernel/protocol.ts";

/** What a command is done to: nodes, or a value, or else the model (the scope that one is in). */
export interface Target {
  nodes: number[];
  value: number;
}

export interface Command {
  /** The edit, or a name of its own. */
  id: string;
  on: Subject;
  title: string;
  keys?: string;
  /** Stands in the context menu too, not only in the list of all edits. */
  menu?: boolean;
  fits?: (app: App, target: Target) => boolean;
  act: (app: App, target: Target) => void;
}

type Fields = (app: App, target: Target) => Field[] | Promise<Field[]>;

/** An edit that needs nothing else. */
function direct<E extends EditName>(on: Command["on"], id: E, title: string, more: Partial<Command>, parameters: Edits[E]): Command {
  return { id, on, title, act: (app, target) => void app.edits.attempt(id, on, subject(on, target), parameters), ...more };
}

/** An edit that asks first; `known` is sent besides what the fields hold, or instead of it. */
function asking<E extends EditName>(
  on: Command["on"], id: E, title: string, fields: Fields = () => formFields(id), more: Partial<Command> = {},
  known: (app: App, target: Target, answers: Record<string, unknown>) => Partial<Edits[E]> = () => ({}),
): Command {
  const act = (app: App, target: Target) => void app.dialogs.open(title, fields(app, target), (answers) =>
    app.edits.make(id, on, subject(on, target), { ...parametersOf(id, answers), ...known(app, target, answers) }));
  return { id, on, title: `${title}…`, act, ...more };
}

function subject(on: Command["on"], target: Target): number[] {
  return on === "model" || on === "graph" ? [] : on === "value" ? [target.value] : target.nodes;
}

// ----------------------------------------------------------------------------------------------------- when, and with what

const one = (target: Target): number => target.nodes[0] ?? 0;
const flags = (app: App, target: Target): number => app.store.values.get(target.value)?.flags ?? 0;
const isConstant = (app: App, target: Target): boolean => app.store.nodes.get(one(target))?.op === "Constant";
const shownScope = (app: App) => ({ scope: inMain(app) ? 0 : app.picked.here });
const inMain = (app: App): boolean => !app.picked.here || app.picked.here === mainScope(app.store);
const firstOutput = (app: App, node: number): number => app.store.nodes.get(node)?.outputs.find((value) => value > 0) ?? 0;

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
  return arrayFields({ dtype: initializer?.dtype ?? (dtype || "float32"), shape: initializer ? initializer.shape.join(", ") : dims });
}

const metadata = (on: "model" | "node" | "value", title: string): Command =>
  asking(on, "set_metadata", title, undefined, {}, (_app, _target, { text }) => (text === "" ? { text: null } : {}));

const doc = (on: "model" | "graph" | "node" | "value", title: string): Command =>
  asking(on, "set_doc_string", title, async (app, target) => {
    const about = await app.client.request("about", on === "node" ? { node: one(target) } : on === "value" ? { value: target.value } : {});
    return formFields("set_doc_string", { text: (on === "graph" ? about.graph_doc_string : about.doc_string) ?? "" });
  });

/** What was typed, for an attribute of a type: a list for a list, 1.0 as a number. */
function attributeValue(type: string, value: unknown): Numbers {
  const items = (Array.isArray(value) ? value : [value]).map((item) => {
    if (type.startsWith("string")) return String(item);
    return typeof item === "string" && item !== "" && Number.isFinite(Number(item)) && Math.abs(Number(item)) < 2 ** 53 ? Number(item) : item;
  });
  return type.endsWith("s") || items.length > 1 ? items : items[0]!;
}

const modelField = (field: string): Command => asking("model", "set_model_field", `Set the model's ${field}`, async (app) => {
  const { fields } = await app.client.request("about", {});
  return formFields("set_model_field", { value: String(fields?.[field] ?? "") });
}, {}, () => ({ field }));

// ------------------------------------------------------------------------------------------------------------------- the table

const NODE: Command[] = [
  { id: "rename_node", on: "node", title: "Rename", keys: "F2", menu: true, act: (app, target) => app.edits.rename({ node: one(target) }) },
  { id: "replace", on: "node", title: "Replace the operator…", keys: "R", menu: true, act: (app, target) => app.palette.replace(one(target)) },
  {
    id: "insert_behind", on: "node", title: "Insert a node behind…", keys: "I", menu: true,
    fits: (app, target) => firstOutput(app, one(target)) > 0,
    act: (app, target) => app.palette.insertAfter(firstOutput(app, one(target))),
  },
  {
    id: "insert_before", on: "node", title: "Insert a node before an input…", fits: (app, target) => slots(app, target).length > 1,
    act: (app, target) => void app.dialogs.open(
      "Insert a node before an input", [{ kind: "choice", name: "slot", label: "Input", choices: slots(app, target).slice(0, -1) }],
      async ({ slot }) => app.palette.insertBefore(one(target), Number(slot)),
    ),
  },
  {
    id: "connect", on: "node", title: "Rewire an input…", keys: "C", menu: true,
    act: (app, target) => app.dialogs.connect(one(target)),
  },
  {
    id: "disconnect", on: "node", title: "Disconnect an input…", fits: (app, target) => slots(app, target).length > 1,
    act: (app, target) => void app.dialogs.open(
      "Disconnect an input", [{ kind: "choice", name: "slot", label: "Input", choices: slots(app, target).slice(0, -1) }],
      ({ slot }) => app.edits.make("set_input", "node", target.nodes, { slot: Number(slot), value: 0 }),
    ),
  },
  asking("node", "set_outputs", "Name the outputs", (app, target) => formFields("set_outputs", {
    names: (app.store.nodes.get(one(target))?.outputs ?? []).map((value) => (value ? valueLabel(app.store, value) : "")).join(", "),
  })),
  asking("node", "move_node", "Move in the file"),
  direct("node", "default_attributes", "Write out default attributes", {}, { explicit: true }),
  direct("node", "default_attributes", "Drop attributes that say the default", {}, { explicit: false }),
  {
    id: "set_tensor", on: "node", title: "Set a tensor attribute…",
    act: (app, target) => void app.dialogs.open(
      "Set a tensor attribute", [...formFields("set_attribute", { name: "value" }, ["value"]), ...arrayFields()],
      ({ name, ...value }) => app.edits.make("set_attribute", "node", target.nodes, { name: String(name), value: value as unknown as NewArray }),
    ),
  },
  direct("node", "constant_to_initializer", "Make it an initializer", { menu: true, fits: isConstant }, {}),
  direct("node", "inline_call", "Inline the function", { menu: true, fits: (app, target) => calledFunction(app.store, one(target)) > 0 }, { nested: false }),
  { id: "select_copies", on: "node", title: "Select its likes in all copies", keys: "L", menu: true, act: (app, target) => void app.picked.selectCopies(target.nodes) },
  doc("node", "Write a note about the node"),
  metadata("node", "Metadata of the node"),
];

const NODES: Command[] = [
  direct("nodes", "duplicate_nodes", "Duplicate", { keys: "Ctrl+D", menu: true }, {}),
  asking("nodes", "set_attribute", "Set an attribute", () => [
    ...formFields("set_attribute", {}, ["value"]),
    { kind: "choice", name: "type", label: "Type", choices: ["int", "float", "string", "ints", "floats", "strings"].map((value) => ({ value, label: value })), hint: "Counts where the operator's schema does not know the attribute." },
    { kind: "numbers", name: "value", label: "Value", hint: "Several values with commas between." },
  ], { menu: true, fits: (_, target) => target.nodes.length > 1 }, (_app, _target, { name, type, value }) => ({ name: String(name), value: { type: String(type), value: attributeValue(String(type), value) } })),
  asking("nodes", "make_function", "Make a function of it", () =>
    formFields("make_function", { name: "Block", domain: "local", copies: true }), { menu: true }),
  { id: "extract", on: "nodes", title: "Download as a model", menu: true, act: (app, target) => void app.files.download(target.nodes) },
  { id: "remove_bypass", on: "nodes", title: "Delete, joining around", keys: "Del", menu: true, act: (app, target) => void app.edits.remove(target.nodes, true) },
  { id: "remove", on: "nodes", title: "Delete", keys: "⇧ Del", menu: true, act: (app, target) => void app.edits.remove(target.nodes, false) },
];

const isInput = (app: App, target: Target): boolean => (flags(app, target) & GRAPH_INPUT) > 0;
const isFormal = (app: App, target: Target): boolean => (flags(app, target) & (GRAPH_INPUT | GRAPH_OUTPUT)) > 0;
const isStored = (app: App, target: Target): boolean => (flags(app, target) & INITIALIZER) > 0;
const isOutput = (app: App, target: Target): boolean => (flags(app, target) & GRAPH_OUTPUT) > 0;

const VALUE: Command[] = [
  { id: "rename_value", on: "value", title: "Rename", keys: "F2", menu: true, act: (app, target) => app.edits.rename({ value: target.value }) },
  { id: "insert_after", on: "value", title: "Insert a node here…", keys: "I", menu: true, act: (app, target) => app.palette.insertAfter(target.value) },
  { id: "add_reader", on: "value", title: "Add a node that reads this…", keys: "A", menu: true, act: (app, target) => app.palette.addNode([target.value]) },
  asking("value", "redirect", "Let its readers read another value", (app, target) => [
    { kind: "value", name: "other", label: "Read instead", scope: app.store.values.get(target.value)?.scope ?? 0 },
  ], { menu: true, keys: "C", fits: (app, target) => app.store.uses(target.value).length > 0 }),
  direct("value", "add_output", "Make it an output", { menu: true, fits: (app, target) => !isOutput(app, target) }, {}),
  direct("value", "remove_output", "No output any more", { menu: true, fits: isOutput }, {}),
  direct("value", "remove_input", "No input any more", { menu: true, fits: isInput }, {}),
  asking("value", "set_shape", "Set the declared shape", (app, target) =>
    formFields("set_shape", { shape: splitLabel(app.store.values.get(target.value)?.label ?? "").dims }), { menu: true, fits: isFormal }),
  asking("value", "set_dim", "Set one dim", undefined, { fits: isFormal }),
  asking("value", "set_dtype", "Set the declared type", undefined, { fits: isFormal }),
  direct("value", "initializer_to_input", "Make it an input", { menu: true, fits: isStored }, { keep_default: false }),
  direct("value", "initializer_to_input", "Make it an input with a default", { fits: isStored }, { keep_default: true }),
  direct("value", "initializer_to_constant", "Make it a Constant", { menu: true, fits: isStored }, {}),
  direct("value", "input_to_initializer", "Store its default", { menu: true, fits: (app, target) => isStored(app, target) && isInput(app, target) }, {}),
  asking("value", "set_initializer", "Replace the data", typedNow, { menu: true, fits: isStored }),
  {
    id: "set_elements", on: "value", title: "Edit the elements…", menu: true, fits: isStored,
    act: (app, target) => void app.dialogs.editElements(`Elements of ${valueLabel(app.store, target.value)}`, { value: target.value }),
  },
  {
    id: "load_array", on: "value", title: "Replace the data from a file…", fits: isStored,
    act: (app, target) => void app.dialogs.open(
      "Replace the data from a file", [{ kind: "file", name: "file", label: "File", accept: ".npy,.npz,.pb" }],
      ({ file }) => app.edits.make("set_initializer", "value", [target.value], { array: { file: String(file) } }),
    ),
  },
  direct("value", "remove_initializer", "Remove the data", { fits: isStored }, {}),
  {
    id: "insert_onto", on: "value", title: "Insert a model onto this wire…", menu: true, fits: (app, target) => app.store.uses(target.value).length > 0,
    act: (app, target) => void app.dialogs.insertModel({ connect: [target.value], feed: [target.value] }),
  },
  {
    id: "insert_fed", on: "value", title: "Insert a model that reads this…",
    act: (app, target) => void app.dialogs.insertModel({ connect: [target.value] }),
  },
  {
    id: "insert_feeding", on: "value", title: "Insert a model in front of its readers…", fits: (app, target) => app.store.uses(target.value).length > 0,
    act: (app, target) => void app.dialogs.insertModel({ feed: [target.value] }),
  },
  doc("value", "Write a note about the value"),
  metadata("value", "Metadata of the value"),
];

const MODEL: Command[] = [
  { id: "add_node", on: "model", title: "Add a node…", keys: "A", menu: true, act: (app) => app.palette.addNode() },
  asking("model", "add_input", "Add an input", undefined, { menu: true }, shownScope),
  asking("model", "add_initializer", "Add an initializer", undefined, { menu: true }, shownScope),
  { id: "insert", on: "model", title: "Insert another model…", menu: true, act: (app) => void app.dialogs.insertModel() },
  asking("model", "convert_opset", "Convert to another opset", (app) =>
    formFields("convert_opset", { version: String(app.store.opsets[""] ?? "") }), { menu: true }),
  asking("model", "set_opset", "Set an opset version", (app) => {
    const [domain = "", version = 21] = Object.entries(app.store.opsets)[0] ?? [];
    return formFields("set_opset", { domain, version: String(version) });
  }),
  ...["ir_version", "producer_name", "producer_version", "domain", "model_version"].map(modelField),
  doc("model", "Write a note about the model"),
  doc("graph", "Write a note about the graph"),
  metadata("model", "Metadata of the model"),
  direct("model", "sort_nodes", "Sort the nodes topologically", {}, {}),
  direct("model", "drop_dead_nodes", "Drop dead nodes", {}, {}),
  direct("model", "drop_unused_initializers", "Drop unused initializers", {}, {}),
  direct("model", "drop_unused_functions", "Drop unused functions", {}, {}),
  direct("model", "set_declarations", "Bring declared types up to date", {}, { action: "refresh" }),
  direct("model", "set_declarations", "Declare the type of every value", {}, { action: "store" }),
  direct("model", "set_declarations", "Drop declared types of inner values", {}, { action: "drop" }),
  direct("model", "inline_functions", "Inline all functions", { fits: (app) => [...app.store.scopes.values()].some(({ kind }) => kind === "function") }, {}),
];

export const COMMANDS: readonly Command[] = [...NODE, ...NODES, ...VALUE, ...MODEL];

/** Commands that make sense for a target, those of the model last. */
export function commandsFor(app: App, target: Target): Command[] {
  const about = target.nodes.length === 1 ? ["node", "nodes"] : target.nodes.length ? ["nodes"] : target.value ? ["value"] : [];
  const fitting = (on: string) => COMMANDS.filter((each) => (each.on === "graph" ? "model" : each.on) === on && (each.fits?.(app, target) ?? true));
  return [...about, "model"].flatMap(fitting);
}

/** What a list of commands is about, in words. */
export function targetLabel(app: App, target: Target): string {
  const [node = 0] = target.nodes;
  if (target.nodes.length > 1) return plural(target.nodes.length, "node");
  if (node) return shortOp(app.store.nodes.get(node)?.op ?? "");
  return target.value ? valueLabel(app.store, target.value) : "the model";
}
