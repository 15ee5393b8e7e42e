/** Commands of one node, and of several. */

import type { App } from "../../app.ts";
import { calledFunction, valueLabel } from "../../model/names.ts";
import type { NewArray, Numbers } from "../edits.ts";
import { arrayFields, formFields } from "../forms.ts";
import { asking, type Command, direct, doc, firstNode, metadata, type Target } from "./command.ts";

const isConstant = (app: App, target: Target): boolean => app.store.nodes.get(firstNode(target))?.op === "Constant";
const firstOutput = (app: App, node: number): number =>
  app.store.nodes.get(node)?.outputs.find((value) => value > 0) ?? 0;

function slots(app: App, target: Target): { value: string; label: string }[] {
  const inputs = app.store.nodes.get(firstNode(target))?.inputs ?? [];
  const label = (value: number, slot: number) => `${slot}: ${value ? valueLabel(app.store, value) : "not connected"}`;
  const choices = inputs.map((value, slot) => ({ value: String(slot), label: label(value, slot) }));
  return [...choices, { value: String(inputs.length), label: `${inputs.length}: a further input` }];
}

/** The typed value, for an attribute of a type: a list for a list, 1.0 as a number. */
function attributeValue(type: string, value: unknown): Numbers {
  const items = (Array.isArray(value) ? value : [value]).map((item) => {
    if (type.startsWith("string")) return String(item);
    return typeof item === "string" && item !== "" && Number.isFinite(Number(item)) && Math.abs(Number(item)) < 2 ** 53
      ? Number(item)
      : item;
  });
  return type.endsWith("s") || items.length > 1 ? items : items[0]!;
}

export const NODE: Command[] = [
  {
    id: "rename_node",
    on: "node",
    title: "Rename",
    keys: "F2",
    menu: true,
    act: (app, target) => app.edits.rename({ node: firstNode(target) }),
  },
  {
    id: "insert_behind",
    on: "node",
    title: "Insert a node behind…",
    keys: "I",
    menu: true,
    fits: (app, target) => firstOutput(app, firstNode(target)) > 0,
    act: (app, target) => app.palette.insertAfter(firstOutput(app, firstNode(target))),
  },
  {
    id: "insert_before",
    on: "node",
    title: "Insert a node before an input…",
    fits: (app, target) => slots(app, target).length > 1,
    act: (app, target) =>
      void app.dialogs.open(
        "Insert a node before an input",
        [{ kind: "choice", name: "slot", label: "Input", choices: slots(app, target).slice(0, -1) }],
        async ({ slot }) => app.palette.insertBefore(firstNode(target), Number(slot)),
      ),
  },
  {
    id: "connect",
    on: "node",
    title: "Rewire an input…",
    keys: "C",
    menu: true,
    act: (app, target) => app.dialogs.connect(firstNode(target)),
  },
  {
    id: "disconnect",
    on: "node",
    title: "Disconnect an input…",
    fits: (app, target) => slots(app, target).length > 1,
    act: (app, target) =>
      void app.dialogs.open(
        "Disconnect an input",
        [{ kind: "choice", name: "slot", label: "Input", choices: slots(app, target).slice(0, -1) }],
        ({ slot }) => app.edits.make("set_input", "node", target.nodes, { slot: Number(slot), value: 0 }),
      ),
  },
  asking("node", "set_outputs", "Name the outputs", (app, target) =>
    formFields("set_outputs", {
      names: (app.store.nodes.get(firstNode(target))?.outputs ?? [])
        .map((value) => (value ? valueLabel(app.store, value) : ""))
        .join(", "),
    }),
  ),
  asking("node", "move_node", "Move in the file"),
  direct("node", "default_attributes", "Write out default attributes", {}, { explicit: true }),
  direct("node", "default_attributes", "Drop attributes that say the default", {}, { explicit: false }),
  {
    id: "set_tensor",
    on: "node",
    title: "Set a tensor attribute…",
    act: (app, target) =>
      void app.dialogs.open(
        "Set a tensor attribute",
        [...formFields("set_attribute", { name: "value" }, ["value"]), ...arrayFields()],
        ({ name, ...value }) =>
          app.edits.make("set_attribute", "node", target.nodes, {
            name: String(name),
            value: value as unknown as NewArray,
          }),
      ),
  },
  direct("node", "constant_to_initializer", "Make it an initializer", { menu: true, fits: isConstant }, {}),
  direct(
    "node",
    "inline_call",
    "Inline the function",
    { menu: true, fits: (app, target) => calledFunction(app.store, firstNode(target)) > 0 },
    { nested: false },
  ),
  {
    id: "select_copies",
    on: "node",
    title: "Select its likes in all copies",
    keys: "L",
    menu: true,
    act: (app, target) => void app.picked.selectCopies(target.nodes),
  },
  doc("node", "Write a note about the node"),
  metadata("node", "Metadata of the node"),
];

export const NODES: Command[] = [
  {
    id: "replace",
    on: "nodes",
    title: "Replace the operator…",
    keys: "R",
    menu: true,
    act: (app, target) => app.palette.replace(target.nodes),
  },
  {
    id: "find_likes",
    on: "nodes",
    title: "Find or replace all like this…",
    menu: true,
    act: (app) => {
      app.inspectorOpen.value = true;
      app.rewriting.likes.value = true;
    },
  },
  direct("nodes", "duplicate_nodes", "Duplicate", { keys: "Ctrl+D", menu: true }, {}),
  asking(
    "nodes",
    "set_attribute",
    "Set an attribute",
    () => [
      ...formFields("set_attribute", {}, ["value"]),
      {
        kind: "choice",
        name: "type",
        label: "Type",
        choices: ["int", "float", "string", "ints", "floats", "strings"].map((value) => ({ value, label: value })),
        hint: "Counts where the operator's schema does not know the attribute.",
      },
      { kind: "numbers", name: "value", label: "Value", hint: "Several values with commas between." },
    ],
    { menu: true, fits: (_, target) => target.nodes.length > 1 },
    (_app, _target, { name, type, value }) => ({
      name: String(name),
      value: { type: String(type), value: attributeValue(String(type), value) },
    }),
  ),
  {
    id: "group_nodes",
    on: "nodes",
    title: "Make a group of it…",
    keys: "Ctrl+G",
    menu: true,
    act: (app, target) => app.dialogs.group(target.nodes),
  },
  direct("nodes", "ungroup_nodes", "Dissolve their group", { fits: (_, target) => target.nodes.length > 1 }, {}),
  asking(
    "nodes",
    "make_function",
    "Make a function of it",
    () => formFields("make_function", { name: "Block", domain: "local", copies: true }),
    { menu: true },
  ),
  {
    id: "extract",
    on: "nodes",
    title: "Cut out as a model…",
    menu: true,
    act: (app, target) => void app.cutting.ask("out", target.nodes),
  },
  {
    id: "remove_bypass",
    on: "nodes",
    title: "Delete, joining around",
    keys: "Del",
    menu: true,
    act: (app, target) => void app.edits.remove(target.nodes, true),
  },
  {
    id: "remove",
    on: "nodes",
    title: "Delete",
    keys: "⇧ Del",
    menu: true,
    act: (app, target) => void app.edits.remove(target.nodes, false),
  },
];
