/**
 * Scenes from the store and its open containers, one layout per container.
 *
 * Each open group is laid out as a problem of its own (layout/), with ports where values cross its border; an outer
 * layout sees it as a box with fixed ports. So folding or editing lays out again only a group and those around it.
 */

import type { Store } from "../../model/store.ts";
import { shownOf } from "../groups/fold.ts";
import { kindOf, NODE, REPEAT } from "../groups/group_keys.ts";
import type { Hierarchy } from "../groups/hierarchy.ts";
import { inColumns, onCanvas } from "../layout/columns.ts";
import { BOTTOM, type LayoutInput, type LayoutResult, TOP } from "../layout/problem.ts";
import { type Box, boxOf, entrances, GROUP_MIN_WIDTH, type Measure } from "./boxes.ts";
import { compose, type Part } from "./compose.ts";
import { type Content, contentOf, contentOfSome, type Net } from "./content.ts";
import { extent, type Flow, frameSize, inset } from "./flow.ts";
import { type Around, inRibbons } from "./ribbons.ts";
import type { Scene } from "./scene.ts";

/** Width by height that columns make of what is tall. */
const ASPECT = 1.6;

/** Width and height in pixels. */
export interface Canvas {
  width: number;
  height: number;
}

/** A frame higher than so much of the canvas is put into columns, to be within so much of it. */
const TALL_SHARE = 0.7,
  FRAME_SHARE = 0.85;

/** Nodes that read a value, beyond which its lines are cut. */
const MANY_READERS = 8;

/** Layouts many problems; may answer at once (layouter.ts). */
export interface Solver {
  solve(inputs: LayoutInput[]): LayoutResult[] | Promise<LayoutResult[]>;
}

/** Builds scenes of one scope and remembers contents and places between them. */
export class SceneBuilder {
  readonly #store: Store;
  readonly #measure: Measure;
  readonly #solver: Solver;
  #contents = new Map<number, Content>();
  /** The places of boxes in their container, by key. */
  #places = new Map<number, number>();
  /** Rows of boxes in their container, by key. */
  #rows = new Map<number, number>();
  /** Boxes that began columns, by container. */
  #starts = new Map<number, number[]>();
  #hierarchy: Hierarchy | null = null;
  #flow: Flow = "down";
  #columns = true;
  #canvas: Canvas | null = null;
  /** Whether a container is so tall that it is put into columns, or would be if columns were on. */
  #isTall = false;

  constructor(store: Store, solver: Solver, measure: Measure) {
    this.#store = store;
    this.#solver = solver;
    this.#measure = measure;
  }

  /**
   * Contents are kept while the hierarchy object stays the same: make a new one when the structure changed. `columns`:
   * whether what is very tall is put into columns; `canvas`: what all of it should fill, in pixels.
   */
  build(
    hierarchy: Hierarchy,
    open: ReadonlySet<number>,
    flow: Flow = "down",
    columns = true,
    canvas: Canvas | null = null,
  ): Scene | Promise<Scene> {
    this.#columns = columns;
    this.#canvas = canvas && (flow === "down" ? canvas : { width: canvas.height, height: canvas.width });
    if (flow !== this.#flow) {
      this.#flow = flow;
      this.#forget();
    }
    if (hierarchy !== this.#hierarchy) {
      if (hierarchy.scope !== this.#hierarchy?.scope) this.#forget();
      this.#contents.clear();
      this.#hierarchy = hierarchy;
    }
    const levels: Part[][] = [];
    this.#isTall = false;
    const root = this.#part(hierarchy, open, 0, levels, entrances(this.#store), null);
    const solved = this.#solveLevels(levels, 0);
    const finish = (): Scene => {
      this.#remember(levels.flat());
      return { ...compose(hierarchy, root, this.#measure, flow), isTall: this.#isTall };
    };
    return solved ? solved.then(finish) : finish();
  }

  /** Lets the next scene be laid out as if there had been none. */
  forget(): void {
    this.#forget();
  }

  #forget(): void {
    this.#places.clear();
    this.#rows.clear();
    this.#starts.clear();
  }

  #part(
    hierarchy: Hierarchy,
    open: ReadonlySet<number>,
    container: number,
    levels: Part[][],
    doors: ReturnType<typeof entrances>,
    around: Around | null,
  ): Part {
    const content = this.#content(hierarchy, open, container, around);
    const boxes = content.items.map((key) => boxOf(this.#store, hierarchy, doors, key, this.#measure));
    const part: Part = { content, boxes, open: new Map(), height: 0, input: null, tall: null, result: null };
    content.items.forEach((key, i) => {
      if (!boxes[i]!.folds || !open.has(key)) return;
      const inner = this.#part(hierarchy, open, key, levels, doors, { content, item: i });
      part.open.set(i, inner);
      part.height = Math.max(part.height, inner.height + 1);
    });
    (levels[part.height] ??= []).push(part);
    return part;
  }

  /** The content of a container, remembered by its key; of a repeat by the group that it shows for all. */
  #content(hierarchy: Hierarchy, open: ReadonlySet<number>, container: number, around: Around | null): Content {
    const shown = kindOf(container) === REPEAT ? shownOf(hierarchy, open, container) : [],
      contentKey = shown.length ? -shown[0]! : container;
    let content = this.#contents.get(contentKey);
    if (!content) {
      const computed = shown.length
        ? contentOfSome(this.#store, hierarchy, container, shown)
        : contentOf(this.#store, hierarchy, container);
      content = inRibbons(computed, hierarchy, around);
      this.#contents.set(contentKey, content);
    }
    return content;
  }

  /** Solves innermost parts first, each level in one batch; a promise only where the solver needs one. */
  #solveLevels(levels: Part[][], from: number): Promise<void> | null {
    for (let i = from; i < levels.length; i++) {
      const parts = levels[i]!;
      const inputs = parts.map((part) => (part.input = this.#input(part)));
      const answer = this.#solver.solve(inputs);
      const take = (results: LayoutResult[]): void => parts.forEach((part, k) => this.#take(part, results[k]!));
      if (Array.isArray(answer)) take(answer);
      else {
        return answer.then((results) => {
          take(results);
          return this.#solveLevels(levels, i + 1) ?? undefined;
        });
      }
    }
    return null;
  }

  /** Takes over a layout, in columns where it is very tall. */
  #take(part: Part, result: LayoutResult): void {
    part.tall = part.result = result;
    const { items, container } = part.content,
      began = new Set(this.#starts.get(container));
    const before = items.flatMap((key, i) => (began.has(key) ? [result.row[i]!] : [])).sort((a, b) => a - b);
    const rows = [...new Set(before)];
    const canvas = this.#canvas && (container === 0 || result.height > TALL_SHARE * this.#canvas.height);
    const room = container === 0 ? 1 : FRAME_SHARE;
    const columned =
      canvas && this.#canvas
        ? onCanvas(part.input!, result, { width: room * this.#canvas.width, height: room * this.#canvas.height }, rows)
        : inColumns(part.input!, result, this.#flow === "down" ? ASPECT : 1 / ASPECT, rows);
    if (!columned) return;
    this.#isTall = true;
    if (!this.#columns) return;
    part.result = columned.result;
    const first = new Map<number, number>();
    items.forEach((key, i) => {
      if (!first.has(result.row[i]!)) first.set(result.row[i]!, key);
    });
    this.#starts.set(
      container,
      columned.rows.flatMap((row) => first.get(row) ?? []),
    );
  }

  #input({ content, boxes, open }: Part): LayoutInput {
    const items = content.items.length,
      ports = content.top.length + content.bottom.length;
    const count = items + ports;
    const width = new Float32Array(count).fill(2),
      height = new Float32Array(count);
    const pin = new Uint8Array(count);
    const lines = busiestSides(content);
    boxes.forEach((box, i) => {
      const inner = open.get(i);
      if (inner) sizeFrame(this.#flow, box, inner.result!, this.#measure);
      else {
        const side = this.#flow === "down" ? "width" : "height";
        box[side] = Math.max(box[side], Math.min(MAX_PORTS_WIDTH, PORT_ROOM * (lines[i]! + 1)));
      }
      const { across, along } = extent(this.#flow, box, inner !== undefined);
      width[i] = across;
      height[i] = along;
    });
    pin.fill(TOP, items, items + content.top.length);
    pin.fill(BOTTOM, items + content.top.length);
    const netStart = new Int32Array(content.nets.length + 1);
    content.nets.forEach((net, i) => (netStart[i + 1] = netStart[i]! + net.targets.length));
    const links = netStart[content.nets.length]!;
    const sourcePort = new Float32Array(content.nets.length).fill(NaN),
      targetPort = new Float32Array(links).fill(NaN);
    const netTarget = new Int32Array(links);
    content.nets.forEach((net, i) => {
      const source = open.get(net.source);
      if (source) sourcePort[i] = portX(this.#flow, boxes[net.source]!, source, net.values, BOTTOM);
      net.targets.forEach((target, k) => {
        const inner = open.get(target);
        netTarget[netStart[i]! + k] = target;
        if (inner) targetPort[netStart[i]! + k] = portX(this.#flow, boxes[target]!, inner, net.values, TOP);
      });
    });
    return {
      count,
      width,
      height,
      pin,
      netSource: Int32Array.from(content.nets, (net) => net.source),
      netStart,
      netTarget,
      sourcePort,
      targetPort,
      shared: Uint8Array.from(content.nets, (net) => Number(this.#isShared(net))),
      ...this.#hint(content, count),
    };
  }

  /** Whether so many nodes read one value that lines to all of them would hide the others. */
  #isShared({ values }: Net): boolean {
    return values.length === 1 && this.#store.uses(values[0]!).length > MANY_READERS;
  }

  /** Earlier places; null unless most of the boxes have one, as then a fresh start draws better. */
  #hint(content: Content, count: number): { hint: Float32Array; hintRow: Int32Array } | { hint: null } {
    const hint = new Float32Array(count).fill(NaN),
      hintRow = new Int32Array(count).fill(-1);
    let known = 0;
    content.items.forEach((key, i) => {
      const place = this.#places.get(key);
      if (place === undefined) return;
      hint[i] = place;
      hintRow[i] = this.#rows.get(key)!;
      known++;
    });
    return known * 2 > content.items.length ? { hint, hintRow } : { hint: null };
  }

  #remember(parts: Part[]): void {
    for (const { content, boxes, tall } of parts) {
      content.items.forEach((key, i) => {
        this.#places.set(key, tall!.x[i]! + (this.#flow === "down" ? boxes[i]!.width : boxes[i]!.height) / 2);
        this.#rows.set(key, tall!.row[i]!);
      });
    }
  }
}

/** Width that a box gets per line on its busier side, and at most for many of them. */
const PORT_ROOM = 12,
  MAX_PORTS_WIDTH = 480;

/** Lines that enter or leave each item, whichever are more. */
function busiestSides({ items, nets }: Content): Int32Array {
  const entering = new Int32Array(items.length),
    leaving = new Int32Array(items.length);
  for (const { source, targets } of nets) {
    if (source < items.length) leaving[source]!++;
    for (const target of targets) if (target < items.length) entering[target]!++;
  }
  return entering.map((count, i) => Math.max(count, leaving[i]!));
}

/** The frame of what is open: around its content, wide enough for its title. */
function sizeFrame(flow: Flow, box: Box, inner: LayoutResult, measure: Measure): void {
  if (box.kind === NODE && box.subtitle) box.title = `${box.title}  ${box.subtitle}`;
  const most = (box.kind === REPEAT ? 3 : 2) * GROUP_MIN_WIDTH;
  Object.assign(
    box,
    frameSize(flow, inner, Math.min(measure(box.title, "title") + (box.kind === REPEAT ? 200 : 96), most)),
  );
}

/** The place of a line's port on a frame, across the flow; NaN where it has none. */
function portX(flow: Flow, box: Box, inner: Part, values: readonly number[], side: typeof TOP | typeof BOTTOM): number {
  const { items, top, portOf, like } = inner.content;
  const ports = side === TOP ? portOf.top : portOf.bottom,
    alike = side === TOP ? like?.top : like?.bottom;
  const known = values.find((value) => ports.has(value) || ports.has(alike?.get(value) ?? 0)) ?? 0;
  const place = ports.get(known) ?? ports.get(alike?.get(known) ?? 0) ?? -1;
  if (place < 0) return NaN;
  const port = items.length + (side === TOP ? place : top.length + place);
  return inset(flow, box, inner.result!).across + inner.result!.x[port]! + 1;
}
