/** The commands of the page: the menus and the list of edits are made of them. */

import type { App } from "../../app.ts";
import { plural, shortOp, valueLabel } from "../../model/names.ts";
import type { Command, Target } from "./command.ts";
import { CUTS_OF_NODES, CUTS_OF_VALUES } from "./cut_commands.ts";
import { LOOKS } from "./look_commands.ts";
import { MODEL } from "./model_commands.ts";
import { NODE, NODES } from "./node_commands.ts";
import { VALUE } from "./value_commands.ts";

export const COMMANDS: readonly Command[] = [
  ...NODE,
  ...NODES,
  ...CUTS_OF_NODES,
  ...VALUE,
  ...CUTS_OF_VALUES,
  ...MODEL,
];

/** Commands that make sense for a target: its own, those of the model, and last those that change nothing. */
export function commandsFor(app: App, target: Target): Command[] {
  const about =
    target.nodes.length === 1 ? ["node", "nodes"] : target.nodes.length ? ["nodes"] : target.value ? ["value"] : [];
  const fitting = (on: string) =>
    COMMANDS.filter(
      (command) => (command.on === "graph" ? "model" : command.on) === on && (command.fits?.(app, target) ?? true),
    );
  return [...[...about, "model"].flatMap(fitting), ...LOOKS.filter(({ fits }) => fits?.(app, target) ?? true)];
}

/** The subject of a list of commands, in words. */
export function targetLabel(app: App, target: Target): string {
  const [node = 0] = target.nodes;
  if (target.nodes.length > 1) return plural(target.nodes.length, "node");
  if (node) return shortOp(app.store.nodes.get(node)?.op ?? "");
  return target.value ? valueLabel(app.store, target.value) : "the model";
}
