/** Puts containers that are laid out each for itself together to one scene. */

import { isTerminal } from "../groups/group_keys.ts";
import type { Hierarchy } from "../groups/hierarchy.ts";
import { ARROW_NONE, FREE, type LayoutInput, type LayoutResult, PORTAL } from "../layout/problem.ts";
import type { Box, Measure } from "./boxes.ts";
import type { Content } from "./content.ts";
import { type Flow, inset, tail } from "./flow.ts";
import type { Label, Portal, Scene } from "./scene.ts";

const TITLE_MARGIN = 10;
/** Room for the name at a cut line that reads to the right. */
const TURNED_ROOM = 70;

const NO_JOINT = { number: 0, elsewhere: null };

/** A container that is shown, with its layout once that is known. */
export interface Part {
  content: Content;
  boxes: Box[];
  /** The open parts, by item index. */
  open: Map<number, Part>;
  /** Levels of open parts below, 0 for none. */
  height: number;
  input: LayoutInput | null;
  /** The result of the layout, and as it is drawn: the same unless it is in columns. */
  tall: LayoutResult | null;
  result: LayoutResult | null;
}

/** Puts all parts at their absolute places. */
export function compose(hierarchy: Hierarchy, root: Part, measure: Measure, flow: Flow): Scene {
  const composer = new Composer(measure, flow);
  composer.place(root, 0, 0, 0);
  return composer.scene(hierarchy.scope, root.result!);
}

/** Coordinates in here are those of layouts: x across the flow, y along it. What is kept is turned. */
class Composer {
  readonly #flow: Flow;
  readonly #boxes: Box[] = [];
  readonly #rects: number[] = [];
  readonly #frame: number[] = [];
  readonly #depth: number[] = [];
  readonly #titles: number[] = [];
  readonly #measure: Measure;
  readonly #segments: number[] = [];
  readonly #values: number[] = [];
  readonly #ribbonOf: number[] = [];
  readonly #ribbons: (readonly number[])[] = [];
  readonly #arrows: number[] = [];
  readonly #dashed: number[] = [];
  readonly #labels: Label[] = [];
  readonly #portals: Portal[] = [];
  #crossings = 0;

  constructor(measure: Measure, flow: Flow) {
    this.#measure = measure;
    this.#flow = flow;
  }

  get #turned(): boolean {
    return this.#flow === "right";
  }

  /** The leftmost gap between the lines that enter a frame that its title fits in. */
  #titleX(box: Box, { content, result }: Part, left: number): number {
    if (this.#turned) return left + 2 + TITLE_MARGIN;
    const { across } = inset(this.#flow, box, result!),
      items = content.items.length;
    const lines = content.top.map((_, i) => left + across + result!.x[items + i]!).sort((a, b) => a - b);
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
    const inner: [Part, Box, number, number][] = [];
    boxes.forEach((box, i) => {
      const x = left + result.x[i]!,
        y = top + result.y[i]!;
      const content = open.get(i);
      this.#boxes.push(box);
      this.#rects.push(...(this.#turned ? [y, x] : [x, y]), box.width, box.height);
      this.#frame.push(content ? 1 : 0);
      this.#depth.push(depth);
      this.#titles.push(content ? this.#titleX(box, content, this.#turned ? y : x) : 0);
      if (content) inner.push([content, box, x, y]);
    });
    this.#addLines(part, left, top);
    this.#addNames(part, left, top, first);
    this.#addJoints(part, left, top);
    for (const [content, box, x, y] of inner) {
      const { across, along } = inset(this.#flow, box, content.result!);
      this.#addPorts(content, x + across, y, along, y + (this.#turned ? box.width : box.height));
      this.place(content, x + across, y + along, depth + 1);
    }
  }

  #line(
    values: readonly number[],
    x1: number,
    y1: number,
    x2: number,
    y2: number,
    arrow: number,
    dashed = false,
  ): void {
    if (this.#turned) this.#segments.push(y1, x1, y2, x2);
    else this.#segments.push(x1, y1, x2, y2);
    this.#values.push(values[0]!);
    this.#ribbonOf.push(this.#ribbon(values));
    this.#arrows.push(arrow);
    this.#dashed.push(Number(dashed));
  }

  /** Number of a ribbon, -1 of a single line. */
  #ribbon(values: readonly number[]): number {
    if (values.length < 2) return -1;
    if (this.#ribbons.at(-1) !== values) this.#ribbons.push(values);
    return this.#ribbons.length - 1;
  }

  #addLines({ content, result }: Part, left: number, top: number): void {
    const { segments, segmentNet, segmentArrow } = result!;
    for (let s = 0; s < segmentNet.length; s++) {
      const k = 4 * s,
        { values, capture, control } = content.nets[segmentNet[s]!]!;
      this.#line(
        values,
        left + segments[k]!,
        top + segments[k + 1]!,
        left + segments[k + 2]!,
        top + segments[k + 3]!,
        segmentArrow[s]!,
        capture || control,
      );
    }
  }

  /** Lines from a frame's edges to its inner ports. */
  #addPorts({ content, result }: Part, left: number, top: number, before: number, end: number): void {
    const { x, height } = result!;
    const items = content.items.length;
    const direct = new Set(content.nets.filter(({ capture }) => !capture).map(({ source }) => source));
    const controls = new Set(content.nets.filter(({ control }) => control).map(({ value }) => value));
    const isControl = ([value = 0]: readonly number[]) => controls.has(value);
    content.carried.top.forEach((values, i) => {
      const at = left + x[items + i]! + 1;
      this.#line(values, at, top, at, top + before, ARROW_NONE, !direct.has(items + i) || isControl(values));
    });
    content.carried.bottom.forEach((values, i) => {
      const at = left + x[items + content.top.length + i]! + 1;
      this.#line(values, at, top + before + height, at, end, ARROW_NONE, isControl(values));
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
          value: net.value,
          ...this.#at(left + targetX[k]!, top + y[target]!),
          room: this.#turned ? TURNED_ROOM : portalRoom[k]!,
          atSource: false,
          count: 0,
          box: pin[target] === FREE ? first + target : -1,
          from: pin[net.source] === FREE ? first + net.source : -1,
          ...NO_JOINT,
        });
      }
      const x = left + sourceX[i]!,
        bottom = top + y[net.source]! + height[net.source]!;
      const isBox = pin[net.source] === FREE;
      const run = isBox ? tail(this.#flow, boxes[net.source]!, open.has(net.source)) : 0;
      if (run) this.#line(net.values, x, bottom - run, x, bottom, ARROW_NONE, net.capture || net.control);
      if (cut) {
        this.#portals.push({
          value: net.value,
          ...this.#at(x, bottom),
          room: this.#turned ? TURNED_ROOM : labelRoom[i]!,
          atSource: true,
          count: cut,
          box: isBox ? first + net.source : -1,
          from: isBox ? first + net.source : -1,
          ...NO_JOINT,
        });
      }
      if (!isBox || open.has(net.source) || net.quiet) return;
      if (isTerminal(boxes[net.source]!.kind)) return;
      const words = { value: net.value, ribbon: this.#ribbon(net.values) };
      if (this.#turned) {
        const beside = content.nets.flatMap((other, k) => (other.source === net.source && k !== i ? sourceX[k]! : [])),
          up = freeSide(sourceX[i]!, beside);
        if (up !== null) this.#labels.push({ ...words, x: bottom - run + 8, y: x + up, room: run - 4 });
      }
      if (!this.#turned) this.#labels.push({ ...words, x: x + 6, y: bottom + 9, room: labelRoom[i]! - 10 });
    });
  }

  /** Both ends of lines that go on in the next column. */
  #addJoints({ content, result }: Part, left: number, top: number): void {
    for (const { net, number, fromX, fromY, toX, toY } of result!.joints) {
      const from = this.#at(left + fromX, top + fromY),
        to = this.#at(left + toX, top + toY);
      const common = { value: content.nets[net]!.value, room: 0, count: 0, box: -1, from: -1, number };
      this.#portals.push({ ...common, ...from, atSource: true, elsewhere: to });
      this.#portals.push({ ...common, ...to, atSource: false, elsewhere: from });
    }
  }

  #at(x: number, y: number): { x: number; y: number } {
    return this.#turned ? { x: y, y: x } : { x, y };
  }

  scene(scope: number, root: LayoutResult): Scene {
    const count = this.#boxes.length;
    const column = (offset: number) => Float64Array.from({ length: count }, (_, i) => this.#rects[4 * i + offset]!);
    const size = this.#turned ? { width: root.height, height: root.width } : { width: root.width, height: root.height };
    return {
      flow: this.#flow,
      scope,
      ...size,
      boxes: this.#boxes,
      x: column(0),
      y: column(1),
      w: column(2),
      h: column(3),
      frame: Uint8Array.from(this.#frame),
      depth: Uint8Array.from(this.#depth),
      titleX: Float64Array.from(this.#titles),
      segments: Float64Array.from(this.#segments),
      segmentValue: Int32Array.from(this.#values),
      segmentRibbon: Int32Array.from(this.#ribbonOf),
      ribbons: this.#ribbons,
      segmentArrow: Uint8Array.from(this.#arrows),
      segmentDashed: Uint8Array.from(this.#dashed),
      labels: this.#labels,
      portals: this.#portals,
      indexOf: new Map(this.#boxes.map((box, i) => [box.key, i])),
      crossings: this.#crossings,
      isTall: false,
    };
  }
}

/** Distance between two lines with a label between them. */
const LABEL_ROOM = 14;

/** The distance of a label above (or below) a line to the right, where no other line is; null where there is none. */
export function freeSide(at: number, others: readonly number[]): number | null {
  if (!others.some((other) => other <= at && at - other < LABEL_ROOM)) return -7;
  return others.some((other) => other >= at && other - at < LABEL_ROOM) ? null : 9;
}
