/**
 * Tall layouts in columns, as in a newspaper: a layout that is many times taller than wide is cut between rows where
 * few lines pass, and goes on at the top of the next column. A line that passes a cut ends at a number and goes on at
 * the same number.
 */

import { filling } from "./filling.ts";
import {
  ARROW_DOWN,
  ARROW_NONE,
  ARROW_UP,
  BOTTOM,
  FREE,
  type Joint,
  type LayoutInput,
  type LayoutResult,
  LINE,
} from "./problem.ts";

/** Layouts that are more than so many times as tall as wide are put into columns. */
export const TALL = 6;
/** Rows of a layout below which columns are not worth it. */
const LEAST_ROWS = 24;
/** Lines that pass the best place to cut: beyond so many columns would be harder to read than one tall picture. */
const MOST_LINES = 16;
/** Width between columns, and to the right of every stem in one, for labels. */
const MARGIN = 30,
  LABEL_ROOM = 84;
/** Radius of the sign at which a line is cut, and how far its middle is from the column. */
export const SIGN_RADIUS = 9;
const SIGN_AWAY = 22,
  SIGN_ROOM = SIGN_AWAY + SIGN_RADIUS,
  SIGN_GAP = 4;
/** The distance that a column may have from the height of the mean, as a share of it. */
const SLACK = 0.3,
  LITTLE_SLACK = 0.1;

/** The cost of an end of a column that is too far away, in lines. */
const FAR_OFF = 100;

/** A layout in columns: width by height is `aspect` about; `rows` are the first ones of the columns but the first. */
export interface Columned {
  result: LayoutResult;
  rows: number[];
}

/**
 * Puts a tall layout into columns; null where it is not tall, or too many lines run all along it.
 *
 * `before`: rows that began columns the last time; they do so again as long as the columns stay of a height, so that an
 * edit does not move everything behind it.
 */
export function inColumns(
  input: LayoutInput,
  result: LayoutResult,
  aspect: number,
  before: readonly number[] = [],
): Columned | null {
  const { width, height, rowBottom } = result;
  if (height < TALL * width || rowBottom.length < LEAST_ROWS) return null;
  const columnCount = Math.round(Math.sqrt((aspect * height) / (width + 2 * MARGIN)));
  if (columnCount < 2) return null;
  const live = liveLines(input, result);
  const ideal = height / columnCount;
  const rows = stillGood(rowBottom, before, ideal) ? [...before] : chooseRows(rowBottom, live, ideal);
  if (!rows.length || rows.some((row) => live[row - 1]! > MOST_LINES)) return null;
  return { result: new Folding(input, result, rows).fold(), rows };
}

/** Columns of a canvas at most, and rows up to which every number of columns is tried. */
const MOST_COLUMNS = 8,
  FEW_ROWS = 200;
/** The factor by which one column more must enlarge things. */
const GAIN = 1.06;

/**
 * Puts a layout into the fewest columns that fill a canvas and can be read at that size, else into as many as let it be
 * largest; null where one is best.
 */
export function onCanvas(
  input: LayoutInput,
  result: LayoutResult,
  canvas: { width: number; height: number },
  before: readonly number[] = [],
): Columned | null {
  const { rowBottom, height, width } = result;
  if (rowBottom.length < 3) return null;
  const live = liveLines(input, result);
  const zoomOf = (layout: LayoutResult): number => Math.min(canvas.width / layout.width, canvas.height / layout.height);
  const guess = Math.round(Math.sqrt((canvas.width * height) / (canvas.height * (width + 2 * MARGIN))));
  const [low, high] = rowBottom.length > FEW_ROWS ? [guess - 1, guess + 1] : [2, MOST_COLUMNS];
  const suits = (layout: LayoutResult): boolean =>
    zoomOf(layout) >= Math.max(1, filling(layout.width - MARGIN, layout.height - MARGIN, canvas));
  let best: Columned | null = null,
    zoom = zoomOf(result);
  if (suits(result)) return null;
  for (let columns = Math.max(2, low); columns <= Math.min(high, rowBottom.length); columns++) {
    const ideal = height / columns;
    const choices = stillGood(rowBottom, before, ideal)
      ? [[...before]]
      : [SLACK, LITTLE_SLACK].map((slack) => chooseRows(rowBottom, live, ideal, slack));
    for (const rows of choices) {
      if (!rows.length || rows.some((row) => live[row - 1]! > MOST_LINES)) continue;
      const folded = new Folding(input, result, rows).fold();
      if (zoomOf(folded) < zoom * GAIN) continue;
      best = { result: folded, rows };
      zoom = zoomOf(folded);
      if (suits(folded)) return best;
    }
  }
  return best;
}

/** Number of nets that pass the gap below each row. */
function liveLines(
  { netSource, netStart, netTarget }: LayoutInput,
  { row, rowBottom, style }: LayoutResult,
): Int32Array {
  const change = new Int32Array(rowBottom.length + 1);
  for (let net = 0; net < netSource.length; net++) {
    let first = row[netSource[net]!]!,
      last = first;
    for (let k = netStart[net]!; k < netStart[net + 1]!; k++) {
      if (style[k] !== LINE) continue;
      first = Math.min(first, row[netTarget[k]!]!);
      last = Math.max(last, row[netTarget[k]!]!);
    }
    change[first]!++;
    change[last]!--;
  }
  for (let r = 1; r < change.length; r++) change[r]! += change[r - 1]!;
  return change;
}

function stillGood(rowBottom: Float32Array, rows: readonly number[], ideal: number): boolean {
  if (!rows.length || rows.some((row, i) => row <= (rows[i - 1] ?? 0) || row >= rowBottom.length)) return false;
  const ends = [...rows.map((row) => rowBottom[row - 1]!), rowBottom[rowBottom.length - 1]!];
  return (
    ends.every((end, i) => end - (ends[i - 1] ?? 0) < (1 + 2 * SLACK) * ideal) &&
    (rows.length + 1) * ideal < (1 + SLACK) * ends.at(-1)!
  );
}

/** Cuts where the fewest lines pass, near the ideal height of a column. */
function chooseRows(rowBottom: Float32Array, live: Int32Array, ideal: number, slack = SLACK): number[] {
  const rows: number[] = [],
    last = rowBottom.length - 1;
  let start = 0,
    row = 0;
  while (rowBottom[last]! - start > (1 + slack) * ideal) {
    let best = -1,
      least = Infinity;
    for (; row < last && rowBottom[row]! < start + (1 + slack) * ideal; row++) {
      const off = Math.abs(rowBottom[row]! - start - ideal) / ideal,
        cost = live[row]! + off + (off > slack ? FAR_OFF * off : 0);
      if (cost < least) [best, least] = [row, cost];
    }
    if (best < 0) best = row;
    if (best >= last) break;
    rows.push(best + 1);
    start = rowBottom[best]!;
    row = best + 1;
  }
  return rows;
}

/** A column: what of the tall layout is in it, and how that moves. */
interface Column {
  top: number;
  bottom: number;
  /** Extent of what is in it. */
  left: number;
  right: number;
  dx: number;
  dy: number;
  /** Lines that go on in the next column, by x, and where their signs are. */
  links: { net: number; x: number }[];
  signs: number[];
}

const NEAR = 0.6;

/** Places for signs near the given ones, rising, far enough apart. */
function spread(positions: readonly number[]): number[] {
  const apart = 2 * SIGN_RADIUS + SIGN_GAP;
  const placed: number[] = [];
  for (const x of positions) placed.push(Math.max(x, (placed.at(-1) ?? -Infinity) + apart));
  const shift = placed.reduce((sum, x, i) => sum + x - positions[i]!, 0) / Math.max(1, placed.length);
  return placed.map((x) => x - shift);
}

class Folding {
  readonly #input: LayoutInput;
  readonly #tall: LayoutResult;
  readonly #columns: Column[];
  readonly #columnOfRow: Int32Array;
  readonly #points: number[] = [];
  readonly #nets: number[] = [];
  readonly #arrows: number[] = [];
  /** Pieces of the tall layout with the column of each. */
  readonly #pieces: { column: number; s: number; y1: number; y2: number; arrow: number }[] = [];

  constructor(input: LayoutInput, tall: LayoutResult, rows: readonly number[]) {
    this.#input = input;
    this.#tall = tall;
    const { rowBottom } = tall;
    const ends = [...rows.map((row) => rowBottom[row - 1]!), tall.height];
    this.#columns = ends.map((bottom, i) => ({
      top: ends[i - 1] ?? 0,
      bottom,
      left: Infinity,
      right: -Infinity,
      dx: 0,
      dy: 0,
      links: [],
      signs: [],
    }));
    this.#columnOfRow = new Int32Array(rowBottom.length);
    for (let r = 0, c = 0; r < rowBottom.length; r++) {
      if (r === rows[c]) c++;
      this.#columnOfRow[r] = c;
    }
  }

  fold(): LayoutResult {
    this.#cutLines();
    this.#measure();
    const height = this.#place();
    const { x, y, row, sourceX, targetX, labelRoom } = this.#tall,
      input = this.#input;
    const columnOf = (box: number): Column => this.#columns[this.#columnOfRow[row[box]!]!]!;
    this.#drawPieces();
    const joints: Joint[] = [];
    for (let c = 0; c + 1 < this.#columns.length; c++) this.#drawLinks(c, joints);
    const moved = {
      x: x.map((place, box) => place + columnOf(box).dx),
      y: y.map((place, box) => place + columnOf(box).dy),
      sourceX: sourceX.map((place, net) => place + columnOf(input.netSource[net]!).dx),
      targetX: targetX.map((place, k) => place + columnOf(input.netTarget[k]!).dx),
    };
    // Ports at the lower edge of a frame are at the foot of the last column, which may end above the edge.
    input.pin.forEach((pin, box) => {
      if (pin !== BOTTOM) return;
      const net = input.netSource.findIndex((_, i) =>
        input.netTarget.subarray(input.netStart[i]!, input.netStart[i + 1]!).includes(box),
      );
      if (net >= 0) this.#line(net, moved.x[box]! + 1, moved.y[box]!, moved.x[box]! + 1, height, ARROW_NONE);
      moved.y[box] = height;
    });
    const last = this.#columns.at(-1)!;
    return {
      ...this.#tall,
      ...moved,
      width: last.right + last.dx,
      height,
      labelRoom: labelRoom.map((room, net) => {
        const column = columnOf(input.netSource[net]!);
        return Math.min(room, column.right - sourceX[net]!);
      }),
      segments: Float32Array.from(this.#points),
      segmentNet: Int32Array.from(this.#nets),
      segmentArrow: Uint8Array.from(this.#arrows),
      joints,
    };
  }

  /** Splits lines at the cuts, and notes which go on in the next column and where. */
  #cutLines(): void {
    const { segments, segmentNet, segmentArrow } = this.#tall,
      columns = this.#columns;
    const linked = columns.map(() => new Set<string>());
    const link = (c: number, net: number, x: number): void => {
      const key = `${net} ${x.toFixed(1)}`;
      if (linked[c]!.has(key)) return;
      linked[c]!.add(key);
      columns[c]!.links.push({ net, x });
    };
    for (let s = 0; s < segmentNet.length; s++) {
      let y1 = segments[4 * s + 1]!;
      const x1 = segments[4 * s]!,
        y2 = segments[4 * s + 3]!,
        arrow = segmentArrow[s]!;
      let c = this.#columnAt(y1);
      // What begins at a cut, a curve to the rows below, goes on from the column before.
      if (c > 0 && Math.abs(y1 - columns[c]!.top) < NEAR) link(c - 1, segmentNet[s]!, x1);
      for (let first = true; ; first = false, c++) {
        const ends = c === columns.length - 1 || y2 <= columns[c]!.bottom + NEAR;
        const end = ends ? y2 : columns[c]!.bottom;
        this.#pieces.push({
          column: c,
          s,
          y1,
          y2: end,
          arrow: (ends && arrow === ARROW_DOWN) || (first && arrow === ARROW_UP) ? arrow : ARROW_NONE,
        });
        if (ends) break;
        link(c, segmentNet[s]!, x1);
        y1 = end;
      }
    }
    for (const column of columns) {
      column.links.sort((a, b) => a.x - b.x || a.net - b.net);
      column.signs = spread(column.links.map(({ x }) => x));
    }
  }

  /** The column that something beginning at y is in: at a cut the one below. */
  #columnAt(y: number): number {
    let low = 0,
      high = this.#columns.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#columns[middle]!.top <= y + NEAR) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #measure(): void {
    const { x, row, sourceX, segments } = this.#tall,
      { width, pin, netSource } = this.#input;
    const extend = (column: Column, left: number, right: number): void => {
      column.left = Math.min(column.left, left);
      column.right = Math.max(column.right, right);
    };
    const columnOf = (box: number): Column => this.#columns[this.#columnOfRow[row[box]!]!]!;
    x.forEach((left, box) => extend(columnOf(box), left, left + width[box]!));
    for (const { column, s } of this.#pieces) {
      const [a, b] = [segments[4 * s]!, segments[4 * s + 2]!];
      extend(this.#columns[column]!, Math.min(a, b), Math.max(a, b));
    }
    netSource.forEach((box, net) => {
      if (pin[box] === FREE) extend(columnOf(box), sourceX[net]!, sourceX[net]! + LABEL_ROOM);
    });
    this.#columns.forEach((column, c) => {
      for (const sign of column.signs) {
        extend(column, sign - SIGN_RADIUS, sign + SIGN_RADIUS);
        extend(this.#columns[c + 1]!, sign - SIGN_RADIUS, sign + SIGN_RADIUS);
      }
    });
  }

  /** Puts the columns side by side; returns the height of all. */
  #place(): number {
    let x = 0,
      height = 0;
    this.#columns.forEach((column, c) => {
      column.dx = x - column.left;
      column.dy = (c ? SIGN_ROOM : 0) - column.top;
      x += column.right - column.left + MARGIN;
      height = Math.max(height, column.bottom + column.dy + (column.links.length ? SIGN_ROOM : 0));
    });
    return height;
  }

  #line(net: number, x1: number, y1: number, x2: number, y2: number, arrow: number): void {
    this.#points.push(x1, y1, x2, y2);
    this.#nets.push(net);
    this.#arrows.push(arrow);
  }

  #drawPieces(): void {
    const { segments, segmentNet } = this.#tall;
    for (const { column, s, y1, y2, arrow } of this.#pieces) {
      const { dx, dy } = this.#columns[column]!;
      this.#line(segmentNet[s]!, segments[4 * s]! + dx, y1 + dy, segments[4 * s + 2]! + dx, y2 + dy, arrow);
    }
  }

  /** Draws the lines from the foot of a column to the head of the next. */
  #drawLinks(c: number, joints: Joint[]): void {
    const column = this.#columns[c]!,
      next = this.#columns[c + 1]!;
    const foot = column.bottom + column.dy,
      head = next.top + next.dy;
    column.links.forEach(({ net, x }, i) => {
      const sign = column.signs[i]!,
        below = foot + SIGN_AWAY - SIGN_RADIUS,
        above = head - SIGN_AWAY + SIGN_RADIUS;
      this.#line(net, x + column.dx, foot, sign + column.dx, below, ARROW_NONE);
      this.#line(net, sign + next.dx, above, x + next.dx, head, ARROW_NONE);
      joints.push({
        net,
        number: joints.length + 1,
        fromX: sign + column.dx,
        fromY: foot + SIGN_AWAY,
        toX: sign + next.dx,
        toY: head - SIGN_AWAY,
      });
    });
  }
}
