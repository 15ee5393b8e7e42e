/** Actions on several nodes at once, each as one step of the history: in the search, the inspector, tables. */

import type { App } from "../app.ts";
import { COMMANDS } from "./commands/command_registry.ts";

export interface BulkAction {
  id: string;
  label: string;
  title: string;
  /** Whether it changes the model. */
  edits: boolean;
  act: (app: App, nodes: number[]) => void;
}

/** Selects the nodes first, so that the picture shows what the edit is about to change. */
const selecting =
  (act: BulkAction["act"]): BulkAction["act"] =>
  (app, nodes) => {
    app.picked.select(nodes);
    act(app, nodes);
  };

function command(id: string): BulkAction["act"] {
  return selecting((app, nodes) => COMMANDS.find((item) => item.id === id)?.act(app, { nodes, value: 0 }));
}

export const BULK_ACTIONS: readonly BulkAction[] = [
  {
    id: "replace",
    label: "Replace…",
    title: "Another operator in their place, with the same wires",
    edits: true,
    act: selecting((app, nodes) => app.palette.replace(nodes)),
  },
  {
    id: "attribute",
    label: "Set attribute…",
    title: "Give all of them an attribute",
    edits: true,
    act: selecting((app, nodes) => {
      COMMANDS.find((item) => item.id === "set_attribute" && item.on === "nodes")?.act(app, { nodes, value: 0 });
    }),
  },
  {
    id: "bypass",
    label: "Bypass",
    title: "Delete them; what they fed reads what they read (Delete)",
    edits: true,
    act: (app, nodes) => void app.edits.remove(nodes, true),
  },
  {
    id: "delete",
    label: "Delete",
    title: "Delete them; refused where something still reads what they make (Shift+Delete)",
    edits: true,
    act: (app, nodes) => void app.edits.remove(nodes, false),
  },
  { id: "extract", label: "Extract", title: "Cut them out as a model", edits: false, act: command("extract") },
  {
    id: "color",
    label: "Color",
    title: "Mark them in the picture with a color of their own",
    edits: false,
    act: (app, nodes) => app.runs.paint(nodes),
  },
];
