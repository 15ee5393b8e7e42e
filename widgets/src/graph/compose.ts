/** Puts containers that are laid out each for itself together to one scene. */

import type { Box, Measure } from "./boxes.ts";
import type { Content } from "./content.ts";
import type { Hierarchy } from "./hierarchy.ts";
import { GROUP, NODE } from "./keys.ts";
import { ARROW_NONE, FREE, PORTAL, type LayoutInput, type LayoutResult } from "./layout/problem.ts";
import { FRAME_HEADER, FRAME_PADDING, type Label, type Portal, type Scene } from "./scene.ts";

const TITLE_MARGIN = 10;

/** A container that is shown, with its layout once that is known. */
export interface Part {
  content: Content;
  boxes: Box[];
  /** Open groups by item index. */
  open: Map<number, Part>;
  /** Levels of open groups below, 0 for none. */
  height: number;
  input: LayoutInput | null;
  result: LayoutResult | null;
}

/** Where the content begins inside its frame: in the middle. */
export function insetX(box: Box, inner: LayoutResult): number {
  return (box.width - inner.width) / 2;
}

/** Puts all parts at their absolute places. */
export function compose(hierarchy: Hierarchy, root: Part, measure: Measure): Scene {
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
