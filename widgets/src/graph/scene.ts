/**
 * The picture as data: every visible box and line of a scope at its place, ready to draw and to search.
 *
 * Each open group is laid out as a problem of its own (layout/), with ports where values cross its border; an outer
 * layout sees it as a box with fixed ports. So folding or editing lays out again only a group and those around it.
 */

import type { Store } from "../store.ts";
import { GROUP_MIN_WIDTH, boxOf, entrances, type Box, type Measure } from "./boxes.ts";
import { contentOf, type Content } from "./content.ts";
import type { Hierarchy } from "./hierarchy.ts";
import { GROUP, NODE, idOf, kindOf } from "./keys.ts";
import {
  ARROW_NONE, BOTTOM, FREE, PORTAL, TOP, type LayoutInput, type LayoutResult,
} from "./layout/problem.ts";

/** A frame's title bar, and the space around its content. */
export const FRAME_HEADER = 28;
export const FRAME_PADDING = 16;
const TITLE_MARGIN = 10;

/** Text beside a line: a value's shape under its source. */
export interface Label {
  value: number;
  /** Left end and baseline middle. */
  x: number;
  y: number;
  room: number;
}

/** One end of a line that is cut: at the source with the number of targets, at a target with the source's name. */
export interface Portal {
  value: number;
  x: number;
  y: number;
  room: number;
  atSource: boolean;
  /** Targets that the cut hides, at the source. */
  count: number;
  /** Index of the box at this end; -1 for a port of a frame. */
  box: number;
}

export interface Scene {
  scope: number;
  width: number;
  height: number;
  /** Frames stand before what they contain. */
  boxes: Box[];
  x: Float64Array;
  y: Float64Array;
  w: Float64Array;
  h: Float64Array;
  /** 1 for open groups. */
  frame: Uint8Array;
  /** Frames around a frame or box. */
  depth: Uint8Array;
  /** x of a frame's title, where no line passes if there is room; 0 for other boxes. */
  titleX: Float64Array;
  /** x1, y1, x2, y2 per segment, in lines and curves as in LayoutResult. */
  segments: Float64Array;
  segmentValue: Int32Array;
  segmentArrow: Uint8Array;
  labels: Label[];
  portals: Portal[];
  indexOf: Map<number, number>;
  crossings: number;
}

/** Layouts many problems; may answer at once (layouter.ts). */
export interface Solver {
  solve(inputs: LayoutInput[]): LayoutResult[] | Promise<LayoutResult[]>;
}

/** A container that is shown, with its layout once that is known. */
interface Part {
  content: Content;
  boxes: Box[];
  /** Open groups by item index. */
  open: Map<number, Part>;
  /** Levels of open groups below, 0 for none. */
  height: number;
  input: LayoutInput | null;
  result: LayoutResult | null;
}

/** Builds scenes of one scope and remembers contents and places between them. */
export class SceneBuilder {
  readonly #store: Store;
  readonly #measure: Measure;
  readonly #solver: Solver;
  #contents = new Map<number, Content>();
  /** Where boxes were in their container, by key. */
  #places = new Map<number, number>();
  #hierarchy: Hierarchy | null = null;

  constructor(store: Store, solver: Solver, measure: Measure) {
    this.#store = store;
    this.#solver = solver;
    this.#measure = measure;
  }

  /** Contents are kept while the hierarchy object stays the same: make a new one when the structure changed. */
  build(hierarchy: Hierarchy, open: ReadonlySet<number>): Scene | Promise<Scene> {
    if (hierarchy !== this.#hierarchy) {
      if (hierarchy.scope !== this.#hierarchy?.scope) this.#places.clear();
      this.#contents.clear();
      this.#hierarchy = hierarchy;
    }
    const levels: Part[][] = [];
    const root = this.#part(hierarchy, open, 0, levels, entrances(this.#store));
    const solved = this.#solveLevels(levels, 0);
    const finish = (): Scene => {
      this.#remember(levels.flat());
      return compose(hierarchy, root, this.#measure);
    };
    return solved ? solved.then(finish) : finish();
  }

  #part(
    hierarchy: Hierarchy, open: ReadonlySet<number>, container: number, levels: Part[][],
    doors: ReturnType<typeof entrances>,
  ): Part {
    let content = this.#contents.get(container);
    if (!content) this.#contents.set(container, (content = contentOf(this.#store, hierarchy, container)));
    const boxes = content.items.map((key) => boxOf(this.#store, hierarchy, doors, key, this.#measure));
    const part: Part = { content, boxes, open: new Map(), height: 0, input: null, result: null };
    content.items.forEach((key, i) => {
      if (kindOf(key) !== GROUP || !open.has(idOf(key))) return;
      const inner = this.#part(hierarchy, open, idOf(key), levels, doors);
      part.open.set(i, inner);
      part.height = Math.max(part.height, inner.height + 1);
    });
    (levels[part.height] ??= []).push(part);
    return part;
  }

  /** Solves innermost parts first, each level in one batch; a promise only where the solver needs one. */
  #solveLevels(levels: Part[][], from: number): Promise<void> | null {
    for (let i = from; i < levels.length; i++) {
      const parts = levels[i]!;
      const inputs = parts.map((part) => (part.input = this.#input(part)));
      const answer = this.#solver.solve(inputs);
      const take = (results: LayoutResult[]): void => parts.forEach((part, k) => (part.result = results[k]!));
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

  #input({ content, boxes, open }: Part): LayoutInput {
    const items = content.items.length, ports = content.top.length + content.bottom.length;
    const count = items + ports;
    const width = new Float32Array(count).fill(2), height = new Float32Array(count);
    const pin = new Uint8Array(count);
    boxes.forEach((box, i) => {
      const inner = open.get(i);
      if (inner) sizeFrame(box, inner.result!, this.#measure);
      width[i] = box.width;
      height[i] = box.height;
    });
    pin.fill(TOP, items, items + content.top.length);
    pin.fill(BOTTOM, items + content.top.length);
    const netStart = new Int32Array(content.nets.length + 1);
    content.nets.forEach((net, i) => (netStart[i + 1] = netStart[i]! + net.targets.length));
    const links = netStart[content.nets.length]!;
    const sourcePort = new Float32Array(content.nets.length).fill(NaN), targetPort = new Float32Array(links).fill(NaN);
    const netTarget = new Int32Array(links);
    content.nets.forEach((net, i) => {
      const source = open.get(net.source);
      if (source) sourcePort[i] = portX(boxes[net.source]!, source, net.value, BOTTOM);
      net.targets.forEach((target, k) => {
        const inner = open.get(target);
        netTarget[netStart[i]! + k] = target;
        if (inner) targetPort[netStart[i]! + k] = portX(boxes[target]!, inner, net.value, TOP);
      });
    });
    return {
      count, width, height, pin, netSource: Int32Array.from(content.nets, (net) => net.source), netStart, netTarget,
      sourcePort, targetPort, hint: this.#hint(content, count),
    };
  }

  /** Earlier places; null unless most of the boxes have one, as then a fresh start draws better. */
  #hint(content: Content, count: number): Float32Array | null {
    const hint = new Float32Array(count).fill(NaN);
    let known = 0;
    content.items.forEach((key, i) => {
      const place = this.#places.get(key);
      if (place === undefined) return;
      hint[i] = place;
      known++;
    });
    return known * 2 > content.items.length ? hint : null;
  }

  #remember(parts: Part[]): void {
    for (const { content, boxes, result } of parts) {
      content.items.forEach((key, i) => this.#places.set(key, result!.x[i]! + boxes[i]!.width / 2));
    }
  }
}

/** The frame of an open group: around its content, wide enough for its title. */
function sizeFrame(box: Box, inner: LayoutResult, measure: Measure): void {
  const title = Math.min(measure(box.title, "title") + 96, 2 * GROUP_MIN_WIDTH);
  box.width = Math.max(inner.width + 2 * FRAME_PADDING, title);
  box.height = FRAME_HEADER + inner.height + FRAME_PADDING;
}

/** Where the content begins inside its frame: in the middle. */
function insetX(box: Box, inner: LayoutResult): number {
  return (box.width - inner.width) / 2;
}

/** x of the port of a value on a frame, from the frame's left edge; NaN where the value has none. */
function portX(box: Box, inner: Part, value: number, side: typeof TOP | typeof BOTTOM): number {
  const { items, top, bottom } = inner.content;
  const place = side === TOP ? top.indexOf(value) : bottom.indexOf(value);
  if (place < 0) return NaN;
  const port = items.length + (side === TOP ? place : top.length + place);
  return insetX(box, inner.result!) + inner.result!.x[port]! + 1;
}

/** Puts all parts at their absolute places. */
function compose(hierarchy: Hierarchy, root: Part, measure: Measure): Scene {
  const composer = new Composer(measure);
  composer.place(root, 0, 0, 0);
  return composer.scene(hierarchy.scope, root.result!);
}

class Composer {
  readonly #boxes: Box[] = [];
  readonly #rects: number[] = [];
  readonly #frame: number[] = [];
  readonly #depth: number[] = [];
  readonly #titles: number[] = [];
  readonly #measure: Measure;
  readonly #segments: number[] = [];
  readonly #values: number[] = [];
  readonly #arrows: number[] = [];
  readonly #labels: Label[] = [];
  readonly #portals: Portal[] = [];
  #crossings = 0;

  constructor(measure: Measure) {
    this.#measure = measure;
  }

  /** The leftmost gap between the lines that enter a frame that its title fits in. */
  #titleX(box: Box, { content, result }: Part, left: number): number {
    const inset = insetX(box, result!), items = content.items.length;
    const lines = content.top.map((_, i) => left + inset + result!.x[items + i]!).sort((a, b) => a - b);
    const width = 1.35 * this.#measure(box.title, "title") + 2 * TITLE_MARGIN;
    const end = left + box.width - 30;
    let from = left + 2;
    for (const line of [...lines, end]) {
      if (Math.min(line, end) - from >= width) return from + TITLE_MARGIN;
      from = Math.max(from, line);
    }
    return left + 2 + TITLE_MARGIN;
  }

  place(part: Part, left: number, top: number, depth: number): void {
    const { boxes, open } = part;
    const result = part.result!;
    const first = this.#boxes.length;
    this.#crossings += result.crossings;
    const inner: [Part, number, number][] = [];
    boxes.forEach((box, i) => {
      const x = left + result.x[i]!, y = top + result.y[i]!;
      const content = open.get(i);
      this.#boxes.push(box);
      this.#rects.push(x, y, box.width, box.height);
      this.#frame.push(content ? 1 : 0);
      this.#depth.push(depth);
      this.#titles.push(content ? this.#titleX(box, content, x) : 0);
      if (content) inner.push([content, x + insetX(box, content.result!), y]);
    });
    this.#addLines(part, left, top);
    this.#addNames(part, left, top, first);
    for (const [content, x, y] of inner) {
      this.#addPorts(content, x, y);
      this.place(content, x, y + FRAME_HEADER, depth + 1);
    }
  }

  #line(value: number, x1: number, y1: number, x2: number, y2: number, arrow: number): void {
    this.#segments.push(x1, y1, x2, y2);
    this.#values.push(value);
    this.#arrows.push(arrow);
  }

  #addLines({ content, result }: Part, left: number, top: number): void {
    const { segments, segmentNet, segmentArrow } = result!;
    for (let s = 0; s < segmentNet.length; s++) {
      const k = 4 * s;
      this.#line(
        content.nets[segmentNet[s]!]!.value, left + segments[k]!, top + segments[k + 1]!, left + segments[k + 2]!,
        top + segments[k + 3]!, segmentArrow[s]!,
      );
    }
  }

  /** Lines from a frame's edges to its inner ports. */
  #addPorts({ content, result }: Part, left: number, top: number): void {
    const { x, height } = result!;
    const items = content.items.length;
    content.top.forEach((value, i) => {
      const at = left + x[items + i]! + 1;
      this.#line(value, at, top, at, top + FRAME_HEADER, ARROW_NONE);
    });
    content.bottom.forEach((value, i) => {
      const at = left + x[items + content.top.length + i]! + 1;
      this.#line(value, at, top + FRAME_HEADER + height, at, top + FRAME_HEADER + height + FRAME_PADDING, ARROW_NONE);
    });
  }

  /** Labels under what makes a value, and the two ends of portals. */
  #addNames({ content, boxes, open, input, result }: Part, left: number, top: number, first: number): void {
    const { y, sourceX, targetX, labelRoom, portalRoom, style } = result!;
    const { netStart, pin, height } = input!;
    content.nets.forEach((net, i) => {
      let cut = 0;
      for (let k = netStart[i]!; k < netStart[i + 1]!; k++) {
        if (style[k] !== PORTAL) continue;
        cut++;
        const target = net.targets[k - netStart[i]!]!;
        this.#portals.push({
          value: net.value, x: left + targetX[k]!, y: top + y[target]!, room: portalRoom[k]!, atSource: false, count: 0,
          box: pin[target] === FREE ? first + target : -1,
        });
      }
      const x = left + sourceX[i]!, bottom = top + y[net.source]! + height[net.source]!;
      const isBox = pin[net.source] === FREE;
      if (cut) {
        this.#portals.push({
          value: net.value, x, y: bottom, room: labelRoom[i]!, atSource: true, count: cut,
          box: isBox ? first + net.source : -1,
        });
      }
      if (!isBox || open.has(net.source)) return;
      const { kind } = boxes[net.source]!;
      if (kind === NODE || kind === GROUP) this.#labels.push({ value: net.value, x: x + 6, y: bottom + 9, room: labelRoom[i]! - 10 });
    });
  }

  scene(scope: number, root: LayoutResult): Scene {
    const count = this.#boxes.length;
    const column = (offset: number) => Float64Array.from({ length: count }, (_, i) => this.#rects[4 * i + offset]!);
    return {
      scope, width: root.width, height: root.height, boxes: this.#boxes, x: column(0), y: column(1), w: column(2),
      h: column(3), frame: Uint8Array.from(this.#frame), depth: Uint8Array.from(this.#depth), titleX: Float64Array.from(this.#titles),
      segments: Float64Array.from(this.#segments), segmentValue: Int32Array.from(this.#values),
      segmentArrow: Uint8Array.from(this.#arrows), labels: this.#labels, portals: this.#portals,
      indexOf: new Map(this.#boxes.map((box, i) => [box.key, i])), crossings: this.#crossings,
    };
  }
}
