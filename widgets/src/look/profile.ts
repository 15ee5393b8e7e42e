/** The time of a run: a profile of the model as it is, by node, by group and by operator. */

import type { App } from "../app.ts";
import type { ProfileTable } from "../kernel/protocol.ts";
import { nodeName, shortOp } from "../model/names.ts";
import type { Store } from "../model/store.ts";
import { Cell } from "../state.ts";
import { quantity } from "./node_heat.ts";

export interface Taken {
  table: ProfileTable;
  /** Version of the model that was run. */
  version: number;
}

export type ProfileBy = "node" | "group" | "operator";

export interface ProfileRow {
  key: string;
  name: string;
  detail: string;
  nodes: number[];
  /** Group id, 0: none. */
  group: number;
  ms: number;
  /** Share of the whole time, 0 to 1. */
  share: number;
  provider: string;
  /** Least time that the machine needs, as a share of the measured time. */
  ofRoofline: number;
  why: string;
}

export class Profile {
  readonly taken = new Cell<Taken | null>(null);
  readonly busy = new Cell(false);
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** Runs the model node by node and shows what took longest. */
  async take(): Promise<void> {
    if (this.busy.value || !this.#app.client.editable) return;
    this.busy.value = true;
    this.#app.drawer.value = "profile";
    const { version } = this.#app.store;
    try {
      this.taken.value = { table: await this.#app.client.request("profile", {}), version };
    } catch (error) {
      this.#app.notices.fail(error);
      if (!this.taken.value) this.#app.drawer.value = null;
    } finally {
      this.busy.value = false;
    }
  }
}

interface Sum {
  name: string;
  detail: string;
  group: number;
  nodes: number[];
  ms: number;
  flops: number;
  moved: number;
  /** Least milliseconds that the machine needs, and the part of them for arithmetic. */
  least: number;
  arithmetic: number;
  providers: Set<string>;
}

/** The rows of a profile, the slowest first. */
export function profileRows(store: Store, table: ProfileTable, by: ProfileBy): ProfileRow[] {
  const sums = new Map<string, Sum>(),
    all = table.ms.reduce((sum, ms) => sum + ms, 0) || 1;
  table.nodes.forEach((node, i) => {
    const record = store.nodes.get(node);
    if (!record) return;
    const op = shortOp(record.op),
      group = by === "group" ? record.group : 0;
    const key = by === "node" ? String(node) : by === "group" ? `group ${group}` : record.op;
    let sum = sums.get(key);
    if (!sum) {
      const name = by === "node" ? nodeName(store, node) : by === "group" ? groupPath(store, group) : op;
      sum = {
        name,
        detail: by === "node" ? op : "",
        group,
        nodes: [],
        ms: 0,
        flops: 0,
        moved: 0,
        least: 0,
        arithmetic: 0,
        providers: new Set(),
      };
      sums.set(key, sum);
    }
    sum.nodes.push(node);
    sum.ms += table.ms[i]!;
    sum.flops += Number(table.flops[i]);
    sum.moved += Number(table.moved[i]);
    sum.least += table.least[i]!;
    if (table.arithmetic[i]) sum.arithmetic += table.least[i]!;
    const provider = table.providers[table.provider[i]!];
    if (provider) sum.providers.add(provider);
  });
  return [...sums]
    .map(([key, { ms, providers, ...sum }]) => ({
      ...sum,
      key,
      ms,
      detail: by === "node" ? sum.detail : `${sum.nodes.length} node${sum.nodes.length === 1 ? "" : "s"}`,
      share: ms / all,
      provider: [...providers].join(", "),
      ofRoofline: Math.min(1, sum.least / Math.max(ms, 1e-6)),
      why: why(ms, { ...sum, ms, providers }),
    }))
    .sort((a, b) => b.ms - a.ms);
}

/** The work and the bytes of the measured time. */
function why(ms: number, { flops, moved, least, arithmetic }: Sum): string {
  const words = [];
  if (least > 0) words.push(arithmetic > least / 2 ? "arithmetic" : "memory");
  if (flops > 0) words.push(`${quantity(flops, "FLOP")} at ${quantity((1000 * flops) / Math.max(ms, 1e-6), "FLOP/s")}`);
  if (moved > 0) words.push(`${quantity(moved, "B")} moved`);
  return words.join(", ");
}

function groupPath(store: Store, group: number): string {
  const names = [];
  for (let id = group; id && names.length < 20; id = store.groups.get(id)?.parent ?? 0)
    names.unshift(store.groups.get(id)?.name ?? "");
  return names.join(" / ") || "no group";
}
