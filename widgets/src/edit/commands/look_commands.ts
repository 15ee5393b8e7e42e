/** Commands that change nothing in the model: looking around, running, saving, help. */

import type { App } from "../../app.ts";
import type { Command } from "./command.ts";

const look = (id: string, title: string, act: (app: App) => void, more: Partial<Command> = {}): Command => ({
  id,
  on: "model",
  title,
  act,
  ...more,
});

const opens = (drawer: NonNullable<App["drawer"]["value"]>, title: string): Command =>
  look(`look_${drawer}`, title, (app) => {
    app.drawer.value = drawer;
  });

const canRun = (app: App): boolean => app.client.can.run !== false && app.client.editable;

const COLORED = {
  time: "time",
  memory: "memory",
  flops: "operations",
  least: "least time by the machine's roofline",
  bound: "whether arithmetic or memory is the limit",
  parameters: "parameters",
  range: "range",
  provider: "provider",
};

export const LOOKS: readonly Command[] = [
  look("look_run", "Run all", (app) => void app.runs.run(null), { fits: canRun }),
  look(
    "look_inputs",
    "Inputs of the run…",
    (app) => {
      app.numbers.asking.value = true;
    },
    { fits: canRun },
  ),
  look("look_profile_now", "Profile: which node is slow", (app) => void app.profile.take(), { fits: canRun }),
  look("look_rewrites", "Rewrites: what would make it smaller or faster", (app) => void app.rewriting.open(), {
    fits: (app) => app.client.editable,
  }),
  look("look_quantize", "Quantize: float16 or int8, with what that loses", (app) => void app.rewriting.quantize(), {
    fits: (app) => app.client.editable,
  }),
  look(
    "look_compare",
    "Compare with another model, file or earlier state…",
    (app) => {
      app.comparing.value = true;
    },
    { fits: (app) => app.client.can.compare === true && app.client.editable },
  ),
  ...Object.entries(COLORED).map(([by, words]) =>
    look(`look_color_${by}`, `Color boxes by ${words}`, (app) => void app.runs.colorBy(by), { fits: canRun }),
  ),
  look("look_fit", "Fit to view", (app) => app.picture?.fit(), { keys: "Space" }),
  look("look_fold", "Fold all groups", (app) => app.picture?.foldAll()),
  look("look_unfold", "Unfold all groups", (app) => app.picture?.unfoldAll()),
  look("look_full", "Full window, and back", (app) => app.toggleFull()),
  look(
    "look_outline",
    "Show or hide the outline",
    (app) => {
      app.outlineOpen.value = !app.outlineOpen.value;
    },
    { keys: "O" },
  ),
  look("look_map", "Show or hide the small map", (app) => app.picture?.toggleMinimap(), { keys: "M" }),
  opens("dims", "Dims: rename, fix, make dynamic"),
  opens("table", "Tables of nodes, values, operators"),
  opens("problems", "Problems"),
  opens("results", "Results of the last run"),
  opens("history", "History of edits"),
  opens("watches", "Watches: what shall hold of values"),
  look("look_save", "Save…", (app) => void app.edits.save(), { keys: "Ctrl+S", fits: (app) => app.client.editable }),
  look(
    "look_keys",
    "Keys",
    (app) => {
      app.keysOpen.value = true;
    },
    { keys: "?" },
  ),
];
