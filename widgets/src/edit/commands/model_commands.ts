/** Commands of the model, and of the graph that is shown. */

import type { App } from "../../app.ts";
import { mainScope } from "../../model/names.ts";
import { formFields } from "../forms.ts";
import { asking, type Command, direct, doc, metadata } from "./command.ts";

const inMain = (app: App): boolean => !app.picked.here || app.picked.here === mainScope(app.store);
const shownScope = (app: App) => ({ scope: inMain(app) ? 0 : app.picked.here });

/** Asks for a field of the model. */
const modelField = (field: string): Command =>
  asking(
    "model",
    "set_model_field",
    `Set the model's ${field}`,
    async (app) => {
      const { fields } = await app.client.request("about", {});
      return formFields("set_model_field", { value: String(fields?.[field] ?? "") });
    },
    {},
    () => ({ field }),
  );

export const MODEL: Command[] = [
  { id: "add_node", on: "model", title: "Add a node…", keys: "A", menu: true, act: (app) => app.palette.addNode() },
  { id: "open", on: "model", title: "Open a file…", menu: true, act: (app) => app.files.choose() },
  {
    id: "reopen",
    on: "model",
    title: "Back to the model shown before",
    fits: (app) => app.client.former !== "",
    act: (app) => void app.files.back(),
  },
  { id: "download", on: "model", title: "Download the model", act: (app) => void app.files.download([]) },
  asking("model", "add_input", "Add an input", undefined, { menu: true }, shownScope),
  asking("model", "add_initializer", "Add an initializer", undefined, { menu: true }, shownScope),
  {
    id: "insert",
    on: "model",
    title: "Insert another model…",
    menu: true,
    act: (app) => app.files.choose({ connect: 0, feed: 0 }),
  },
  asking(
    "model",
    "convert_opset",
    "Convert to another opset",
    (app) => formFields("convert_opset", { version: String(app.store.opsets[""] ?? "") }),
    { menu: true },
  ),
  asking("model", "set_opset", "Set an opset version", (app) => {
    const [domain = "", version = 21] = Object.entries(app.store.opsets)[0] ?? [];
    return formFields("set_opset", { domain, version: String(version) });
  }),
  asking("model", "set_binding", "Bind a variable of training"),
  ...["ir_version", "producer_name", "producer_version", "domain", "model_version"].map(modelField),
  doc("model", "Write a note about the model"),
  doc("graph", "Write a note about the graph"),
  metadata("model", "Metadata of the model"),
  direct("model", "sort_nodes", "Sort the nodes topologically", {}, {}),
  direct("model", "drop_dead_nodes", "Drop dead nodes", {}, {}),
  direct("model", "drop_unused_initializers", "Drop unused initializers", {}, {}),
  direct("model", "drop_unused_functions", "Drop unused functions", {}, {}),
  direct("model", "clear_groups", "Clear groups made by hand", {}, {}),
  direct("model", "set_declarations", "Bring declared types up to date", {}, { action: "refresh" }),
  direct("model", "set_declarations", "Declare the type of every value", {}, { action: "store" }),
  direct("model", "set_declarations", "Drop declared types of inner values", {}, { action: "drop" }),
  direct(
    "model",
    "inline_functions",
    "Inline all functions",
    { fits: (app) => [...app.store.scopes.values()].some(({ kind }) => kind === "function") },
    {},
  ),
];
