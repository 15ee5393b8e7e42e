/** Commands that cut the model: at a value, and before or behind nodes. */

import type { App } from "../../app.ts";
import { INITIALIZER } from "../../kernel/protocol.ts";
import { mainScope } from "../../model/names.ts";
import type { Command, Target } from "./command.ts";

const isMade = (app: App, value: number): boolean =>
  app.store.producer(value) !== null && app.store.values.get(value)?.scope === mainScope(app.store);
const onMadeValue = (app: App, target: Target): boolean => isMade(app, target.value);

/** Values that nodes read of other nodes; neither initializers nor inputs of the model. */
export function valuesBefore(app: App, nodes: readonly number[]): number[] {
  const selected = new Set(nodes);
  const read = nodes.flatMap((node) => app.store.nodes.get(node)?.inputs ?? []);
  return [...new Set(read)].filter((value) => {
    const producer = value ? app.store.producer(value) : null;
    if (!producer || selected.has(producer.node) || !isMade(app, value)) return false;
    return !((app.store.values.get(value)?.flags ?? 0) & INITIALIZER) && !isConstant(app, producer.node);
  });
}

/** Values that nodes make and that other nodes read or the model returns. */
export function valuesBehind(app: App, nodes: readonly number[]): number[] {
  const selected = new Set(nodes);
  const all = nodes.flatMap((node) => app.store.nodes.get(node)?.outputs ?? []).filter((value) => value > 0);
  return all.filter((value) => isMade(app, value) && app.store.uses(value).some(({ node }) => !selected.has(node)));
}

/** A node without inputs makes the same in every run. */
function isConstant(app: App, node: number): boolean {
  return !app.store.nodes.get(node)?.inputs.some((value) => value > 0);
}

export const CUTS_OF_VALUES: Command[] = [
  {
    id: "cut_end",
    on: "value",
    title: "End the model here…",
    menu: true,
    fits: (app, target) => onMadeValue(app, target) && app.store.uses(target.value).length > 0,
    act: (app, target) => void app.cutting.ask("end", [target.value]),
  },
  {
    id: "cut_start",
    on: "value",
    title: "Start the model here…",
    menu: true,
    fits: onMadeValue,
    act: (app, target) => void app.cutting.ask("start", [target.value]),
  },
  {
    id: "remove_behind",
    on: "value",
    title: "Delete all behind…",
    menu: true,
    fits: (app, target) => app.store.uses(target.value).length > 0,
    act: (app, target) => void app.cutting.ask("behind", [target.value]),
  },
];

export const CUTS_OF_NODES: Command[] = [
  {
    id: "cut_before",
    on: "nodes",
    title: "End the model before it…",
    menu: true,
    fits: (app, target) => valuesBefore(app, target.nodes).length > 0,
    act: (app, target) => void app.cutting.ask("end", valuesBefore(app, target.nodes)),
  },
  {
    id: "cut_behind",
    on: "nodes",
    title: "End the model behind it…",
    menu: true,
    fits: (app, target) => valuesBehind(app, target.nodes).length > 0,
    act: (app, target) => void app.cutting.ask("end", valuesBehind(app, target.nodes)),
  },
  {
    id: "cut_from",
    on: "nodes",
    title: "Start the model with it…",
    menu: true,
    fits: (app, target) => valuesBefore(app, target.nodes).length > 0,
    act: (app, target) => void app.cutting.ask("start", valuesBefore(app, target.nodes)),
  },
];
