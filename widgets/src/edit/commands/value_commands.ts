/** Commands of a value. */

import type { App } from "../../app.ts";
import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../../kernel/protocol.ts";
import { splitLabel, valueLabel } from "../../model/names.ts";
import type { Field } from "../fields.ts";
import { arrayFields, formFields } from "../forms.ts";
import { asking, type Command, direct, doc, metadata, type Target } from "./command.ts";

const flags = (app: App, target: Target): number => app.store.values.get(target.value)?.flags ?? 0;
const isInput = (app: App, target: Target): boolean => (flags(app, target) & GRAPH_INPUT) > 0;
const isFormal = (app: App, target: Target): boolean => (flags(app, target) & (GRAPH_INPUT | GRAPH_OUTPUT)) > 0;
const isStored = (app: App, target: Target): boolean => (flags(app, target) & INITIALIZER) > 0;
const isOutput = (app: App, target: Target): boolean => (flags(app, target) & GRAPH_OUTPUT) > 0;

async function typedNow(app: App, target: Target): Promise<Field[]> {
  const { label, initializer } = await app.client.request("value", { value: target.value });
  const { dtype, dims } = splitLabel(label);
  return arrayFields({
    dtype: initializer?.dtype ?? (dtype || "float32"),
    shape: initializer ? initializer.shape.join(", ") : dims,
  });
}

/** Whether a node reads the value. */
const isRead = (app: App, target: Target): boolean => app.store.uses(target.value).length > 0;

/** Glow's dialect keeps properties of values in their doc strings: "$layout:NHWC$elemKind:float". */
const inGlow = (app: App): boolean => [...app.store.nodes.values()].some(({ op }) => op.startsWith("Glow_"));

/** Asks for one property of a value in Glow's dialect; the others stay as they are. */
async function setGlowProperty(app: App, { value }: Target): Promise<void> {
  const { doc_string: text } = await app.client.request("about", { value });
  const fields: Field[] = [
    { kind: "text", name: "key", label: "Property", initial: "layout", required: true, hint: text || "none yet" },
    { kind: "text", name: "text", label: "Text", hint: "Empty: taken away" },
  ];
  await app.dialogs.open("Set a property of Glow's dialect", fields, (answers) =>
    app.edits.make("set_doc_string", "value", [value], {
      text: withProperty(text, String(answers.key), String(answers.text)),
    }),
  );
}

/** A doc string of the form $key:text with one property set, or taken away for an empty text. Pure. */
export function withProperty(doc: string, key: string, text: string): string {
  if (doc && !doc.startsWith("$")) throw new Error(`"${doc}" is not of the form $key:text; set the note instead.`);
  if (/[$:]/.test(key) || text.includes("$"))
    throw new Error(`A property's name holds no $ or colon, and its text no $; given "${key}" and "${text}".`);
  const parts = doc.split("$").slice(1),
    at = parts.findIndex((part) => part.startsWith(`${key}:`));
  if (at >= 0) parts.splice(at, 1, ...(text ? [`${key}:${text}`] : []));
  else if (text) parts.push(`${key}:${text}`);
  return parts.map((part) => `$${part}`).join("");
}

export const VALUE: Command[] = [
  {
    id: "rename_value",
    on: "value",
    title: "Rename",
    keys: "F2",
    menu: true,
    act: (app, target) => app.edits.rename({ value: target.value }),
  },
  {
    id: "insert_after",
    on: "value",
    title: "Insert a node here…",
    keys: "I",
    menu: true,
    act: (app, target) => app.palette.insertAfter(target.value),
  },
  {
    id: "add_reader",
    on: "value",
    title: "Add a node that reads this…",
    keys: "A",
    menu: true,
    act: (app, target) => app.palette.addNode([target.value]),
  },
  asking(
    "value",
    "redirect",
    "Let its readers read another value",
    (app, target) => [
      { kind: "value", name: "other", label: "Read instead", scope: app.store.values.get(target.value)?.scope ?? 0 },
    ],
    { menu: true, keys: "C", fits: isRead },
  ),
  direct("value", "add_output", "Make it an output", { menu: true, fits: (app, target) => !isOutput(app, target) }, {}),
  direct("value", "remove_output", "No output any more", { menu: true, fits: isOutput }, {}),
  direct("value", "remove_input", "No input any more", { menu: true, fits: isInput }, {}),
  asking(
    "value",
    "set_shape",
    "Set the declared shape",
    (app, target) =>
      formFields("set_shape", { shape: splitLabel(app.store.values.get(target.value)?.label ?? "").dims }),
    { menu: true, fits: isFormal },
  ),
  asking("value", "set_dim", "Set one dim", undefined, { fits: isFormal }),
  asking("value", "set_dtype", "Set the declared type", undefined, { fits: isFormal }),
  direct("value", "initializer_to_input", "Make it an input", { menu: true, fits: isStored }, { keep_default: false }),
  direct(
    "value",
    "initializer_to_input",
    "Make it an input with a default",
    { fits: isStored },
    { keep_default: true },
  ),
  direct("value", "initializer_to_constant", "Make it a Constant", { menu: true, fits: isStored }, {}),
  direct(
    "value",
    "input_to_initializer",
    "Store its default",
    { menu: true, fits: (app, target) => isStored(app, target) && isInput(app, target) },
    {},
  ),
  asking("value", "set_initializer", "Replace the data", typedNow, { menu: true, fits: isStored }),
  {
    id: "set_elements",
    on: "value",
    title: "Edit the elements…",
    menu: true,
    fits: isStored,
    act: (app, target) =>
      void app.dialogs.editElements(`Elements of ${valueLabel(app.store, target.value)}`, { value: target.value }),
  },
  {
    id: "load_array",
    on: "value",
    title: "Replace the data from a file…",
    fits: isStored,
    act: (app, target) =>
      void app.dialogs.open(
        "Replace the data from a file",
        [{ kind: "file", name: "file", label: "File", accept: ".npy,.npz,.pb" }],
        ({ file }) => app.edits.make("set_initializer", "value", [target.value], { array: { file: String(file) } }),
      ),
  },
  direct("value", "remove_initializer", "Remove the data", { fits: isStored }, {}),
  {
    id: "insert_onto",
    on: "value",
    title: "Insert a model onto this wire…",
    menu: true,
    fits: isRead,
    act: (app, target) => app.files.choose({ connect: target.value, feed: target.value }),
  },
  {
    id: "insert_fed",
    on: "value",
    title: "Insert a model that reads this…",
    act: (app, target) => app.files.choose({ connect: target.value, feed: 0 }),
  },
  {
    id: "insert_feeding",
    on: "value",
    title: "Insert a model in front of its readers…",
    fits: isRead,
    act: (app, target) => app.files.choose({ connect: 0, feed: target.value }),
  },
  doc("value", "Write a note about the value"),
  metadata("value", "Metadata of the value"),
  {
    id: "set_glow_property",
    on: "value",
    title: "Set a property of Glow's dialect…",
    fits: inGlow,
    act: (app, target) => void setGlowProperty(app, target).catch((error) => app.notices.fail(error)),
  },
];
