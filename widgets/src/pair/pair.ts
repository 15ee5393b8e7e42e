/**
 * Two views side by side: the kernel's comparison of both, and how one view follows the other.
 *
 * The view that had the last gesture or key leads: its look and its selection are translated to the other one.
 */

import type { App } from "../app.ts";
import type { Subject } from "../find/selection.ts";
import { GROUP, idOf, keyOf, kindOf } from "../graph/groups/group_keys.ts";
import { type ChangeInfo, type ErrorColumns, fromWire, type PairInfo } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import type { Heat } from "../look/node_heat.ts";
import { Cell } from "../state.ts";
import type { Look } from "../view_contract.ts";
import { groupsAround, Partners } from "./partners.ts";

export type Side = 0 | 1;
/** The measure that colors both graphs. */
export type ColoredBy = "difference" | "error" | "local" | "operator";

/** Milliseconds after an edit until both models are compared again. */
const SETTLES_MS = 400;
/** Milliseconds after which a view that moved by itself follows the other one again. */
const CATCHES_UP_MS = 200;

export class Pair {
  readonly info = new Cell<PairInfo | null>(null);
  readonly failure = new Cell("");
  readonly busy = new Cell(false);
  readonly colored = new Cell<ColoredBy>("operator");
  readonly linked = new Cell(true);
  /** The value of the first model whose numbers show, 0: none. */
  readonly value = new Cell(0);
  /** Place of the chosen change in the list, -1: none. */
  readonly change = new Cell(-1);
  /** The nodes of both models that stand side by side, 0: none. */
  readonly nodes = new Cell<readonly [number, number]>([0, 0]);
  /** Whether both models are run now. */
  readonly running = new Cell(false);
  /** The difference relative to the peak from which values count as different; null: what roundings explain. */
  readonly tolerance = new Cell<number | null>(null);
  /** Goes by so many changes of those that are listed. */
  step: (by: number) => void = () => undefined;
  /** Shows the one model again in whose place this stands; null where it stands by itself. */
  readonly end: (() => void) | null;
  readonly #apps: [App | null, App | null] = [null, null];
  #partners = new Partners();
  #leader: Side = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #catching: ReturnType<typeof setTimeout> | undefined;
  #offs: (() => void)[] = [];

  constructor(end: (() => void) | null = null) {
    this.end = end;
  }

  app(side: Side): App | null {
    return this.#apps[side];
  }

  /** Takes a view that has been mounted. */
  join(side: Side, app: App): void {
    this.#apps[side] = app;
    this.#offs.push(
      app.store.on("reset", () => this.#later(0)),
      app.store.on("commit", () => this.#later(SETTLES_MS)),
      app.picked.subject.on((subject) => this.#selected(side, subject)),
      app.attached.on((picture) => picture?.on("looked", () => this.#looked(side))),
    );
  }

  dispose(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#catching);
    for (const off of this.#offs) off();
    this.#offs = [];
  }

  /** Lets the view of a side lead: a gesture or key was in it. */
  lead(side: Side): void {
    this.#leader = side;
  }

  #later(wait: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), wait);
  }

  /** Asks what differs now; `again`: values are compared anew. */
  async refresh(again = false): Promise<void> {
    const [first, second] = this.#apps;
    if (!first?.store.version || (second && !second.store.version)) return;
    this.busy.value = true;
    try {
      this.#take(await first.client.request("pair", { again }));
    } catch (error) {
      this.#refused(error);
    } finally {
      this.busy.value = false;
    }
  }

  /** Runs both models on the inputs that the first view asks for, and shows where their values begin to differ. */
  async compareValues(local: boolean): Promise<void> {
    const [first] = this.#apps;
    if (!first || this.running.value) return;
    this.running.value = true;
    try {
      const info = await first.client.request("compare_values", { local, ...first.numbers.asked });
      this.#take(info);
      this.#begin(info);
      this.paint();
      if (this.value.value) this.showValue(info.errors!.a.indexOf(this.value.value));
    } catch (error) {
      this.#refused(error);
    } finally {
      this.running.value = false;
    }
  }

  stopComparing(): void {
    void this.#apps[0]?.client.request("stop_comparing", {});
  }

  #take(info: PairInfo): void {
    const known = this.info.value,
      [first, second] = this.#apps;
    this.#partners = new Partners(info, first!.store, second?.store ?? null);
    this.info.value = info;
    this.failure.value = "";
    if (!known) this.#begin(info);
    this.paint();
  }

  #refused(error: unknown): void {
    const refused = asRequestError(error);
    if (refused.code !== "disconnected") this.failure.value = refused.sentence;
  }

  /** Shows the first look: the largest difference, the same on both sides. */
  #begin(info: PairInfo): void {
    this.colored.value = info.errors ? (info.errors.local.length ? "local" : "error") : "difference";
    this.#follow();
    const first = info.errors && (info.errors.guilty[0] ?? info.errors.diverges);
    if (info.errors && first !== null && first >= 0) this.value.value = info.errors.a[first] ?? 0;
  }

  // ---------------------------------------------------------------------------------------------------------- following

  /** Lets a view follow again that moved by itself, as its size changed. */
  #looked(side: Side): void {
    if (side === this.#leader) this.#follow();
    else {
      clearTimeout(this.#catching);
      this.#catching = setTimeout(() => this.#follow(), CATCHES_UP_MS);
    }
  }

  #follow(): void {
    const side = this.#leader,
      look = this.#apps[side]?.picture?.linked.look,
      other = this.#apps[side ? 0 : 1]?.picture;
    if (!look || !other || !this.linked.value || !this.info.value) return;
    const scope = this.#partners.scope(side, look.scope);
    if (scope) other.linked.show(this.#translated(side, look, scope));
  }

  #translated(side: Side, look: Look, scope: number): Look {
    const open = new Set<number>();
    for (const key of look.open) {
      const partner = this.#partners.key(side, key);
      if (partner || !key) open.add(partner); // key 0 is the scope itself
    }
    for (const key of this.#groupsOfChosen(side, look)) open.add(key);
    const anchors = look.anchors.flatMap(({ key, x, y }) => {
      const partner = this.#partners.key(side, key);
      return partner ? [{ key: partner, x, y }] : [];
    });
    return { ...look, scope, open, anchors };
  }

  /** Groups around what is selected on the other side, where it shows on this one: groups need not have partners. */
  #groupsOfChosen(side: Side, look: Look): number[] {
    const keys = (app: App | null) =>
      app?.picked.nodes.flatMap((node) => groupsAround(app.store, node).map((group) => keyOf(GROUP, group))) ?? [];
    return keys(this.#apps[side]).every((key) => look.open.has(key)) ? keys(this.#apps[side ? 0 : 1]) : [];
  }

  #selected(side: Side, subject: Subject): void {
    const other = this.#apps[side ? 0 : 1];
    if (side !== this.#leader || !this.linked.value || !other || !this.info.value) return;
    const partners = this.#partners;
    if (subject.kind === "value") {
      const value = partners.value(side, subject.value);
      if (value) other.picked.selectValue(value);
      if (this.#errorOf(side ? value : subject.value) >= 0) this.value.value = side ? value : subject.value;
    } else if (subject.kind === "group") {
      const key = partners.key(side, keyOf(GROUP, subject.group));
      if (key && kindOf(key) === GROUP) other.picked.resume({ kind: "group", group: idOf(key) });
    } else {
      const nodes = subject.kind === "nodes" ? subject.nodes : [],
        theirs = partners.nodes(side, nodes);
      other.picked.selectFromKernel(theirs);
      if (nodes.length === 1) this.#look(side, nodes[0]!, theirs[0] ?? 0);
    }
  }

  /** Puts a node that was chosen in a picture beside its partner, and finds its change in the list. */
  #look(side: Side, node: number, partner: number): void {
    this.nodes.value = side ? [partner, node] : [node, partner];
    const { changes } = this.info.value!;
    if (!nodesOf(changes[this.change.value], side).includes(node))
      this.change.value = changes.findIndex((change) => nodesOf(change, side).includes(node));
  }

  #errorOf(value: number): number {
    return value ? (this.info.value?.errors?.a.indexOf(value) ?? -1) : -1;
  }

  // ---------------------------------------------------------------------------------------------------------- showing

  /** Shows both sides of a change, in the pictures and side by side. */
  showChange(place: number): void {
    const change = this.info.value?.changes[place];
    if (!change) return;
    this.change.value = place;
    this.#leader = change.b_nodes.length || change.b_value || !change.a_nodes.length ? 1 : 0;
    if (!this.#apps[this.#leader]) this.#leader = 0;
    const sides: Side[] = this.#leader ? [0, 1] : [1, 0]; // the leader comes last: its look decides
    for (const side of sides) this.#showSide(side, change);
    this.nodes.value = [change.a_nodes[0] ?? 0, change.b_nodes[0] ?? 0];
  }

  #showSide(side: Side, change: ChangeInfo): void {
    const app = this.#apps[side],
      nodes = nodesOf(change, side),
      value = side ? change.b_value : change.a_value;
    if (!app) return;
    if (value && app.store.values.has(value)) app.picked.revealValue(value);
    else if (nodes.length) app.picked.show(nodes);
    else app.picked.select([]);
  }

  /** Shows nodes of both sides. */
  showRegion(a: number[], b: number[]): void {
    this.#leader = 1;
    this.#apps[0]?.picked.show(a);
    this.#apps[1]?.picked.show(b);
  }

  /** Shows a compared value on both sides, and its numbers. */
  showValue(place: number): void {
    const errors = this.info.value?.errors;
    if (!errors) return;
    this.value.value = errors.a[place] ?? 0;
    this.#leader = 0;
    this.#apps[1]?.picked.revealValue(errors.b[place] ?? 0);
    this.#apps[0]?.picked.revealValue(this.value.value);
  }

  color(by: ColoredBy): void {
    this.colored.value = by;
    this.paint();
  }

  /** Colors the boxes of both sides by what is chosen. */
  paint(): void {
    const info = this.info.value;
    if (!info) return;
    for (const side of [0, 1] as const) {
      const app = this.#apps[side];
      if (!app) continue;
      app.runs.overlay.value = heatOfSide(info, side, this.colored.value, app);
      app.picture?.mark({ heat: app.runs.overlay.value });
    }
  }
}

function nodesOf(change: ChangeInfo | undefined, side: Side): number[] {
  return (side ? change?.b_nodes : change?.a_nodes) ?? [];
}

/** Place of the first value that differs by more than is allowed, -1: none. */
export function firstBeyond(errors: ErrorColumns, tolerance: number | null): number {
  if (tolerance === null) return errors.diverges;
  return errors.relative.findIndex((number) => !(fromWire(number) <= tolerance));
}

/** The measure that colors the boxes of a side. */
function heatOfSide(info: PairInfo, side: Side, by: ColoredBy, app: App): Heat | null {
  if (by === "difference") {
    const { nodes, kinds } = info.colors[side];
    if (!nodes.length) return null;
    return {
      title: "difference",
      unit: "",
      kinds: info.kinds,
      numbers: new Map(nodes.map((id, i) => [id, kinds[i]!])),
    };
  }
  const { errors } = info;
  if (by === "operator" || !errors) return null;
  const numbers = new Map<number, number>();
  (by === "local" ? errors.local : errors.relative).forEach((number, i) => {
    const value = (side ? errors.b : errors.a)[i]!,
      maker = app.store.producer(value)?.node;
    if (maker) numbers.set(maker, Math.max(numbers.get(maker) ?? 0, fromWire(number)));
  });
  return { title: by === "local" ? "error of the node alone" : "error", unit: "", kinds: [], numbers, scale: "log" };
}
