/** Finds rectangles near a place: a uniform grid in CSR form. Build O(n), query O(cells + found). */

const CELL = 400;
const MAX_CELLS = 1 << 17;

export interface Bounds {
  readonly count: number;
  left(i: number): number;
  top(i: number): number;
  right(i: number): number;
  bottom(i: number): number;
}

export class SpatialGrid {
  readonly #bounds: Bounds;
  readonly #cellWidth: number;
  readonly #cellHeight: number;
  readonly #columns: number;
  readonly #rows: number;
  readonly #start: Int32Array;
  readonly #item: Int32Array;
  readonly #seen: Uint32Array;
  readonly #all: number[];
  /** Marks of the rectangles found; all zero except while a query is put in order. */
  readonly #found: Uint8Array;
  #stamp = 0;

  constructor(bounds: Bounds, width: number, height: number) {
    this.#bounds = bounds;
    const grow = Math.max(1, Math.sqrt(((width / CELL + 1) * (height / CELL + 1)) / MAX_CELLS));
    this.#cellWidth = this.#cellHeight = CELL * grow;
    this.#columns = Math.max(1, Math.ceil(width / this.#cellWidth));
    this.#rows = Math.max(1, Math.ceil(height / this.#cellHeight));
    const cells = this.#columns * this.#rows;
    const start = new Int32Array(cells + 1);
    this.#eachCell((cell) => start[cell + 1]!++);
    for (let c = 0; c < cells; c++) start[c + 1]! += start[c]!;
    const next = start.slice(0, cells);
    const item = new Int32Array(start[cells]!);
    this.#eachCell((cell, i) => (item[next[cell]!++] = i));
    this.#start = start;
    this.#item = item;
    this.#seen = new Uint32Array(bounds.count);
    this.#found = new Uint8Array(bounds.count);
    this.#all = Array.from(this.#seen, (_, i) => i);
  }

  /** A number that no query of the rectangle finds more than: O(rows of cells). */
  atMost(left: number, top: number, right: number, bottom: number): number {
    const c0 = this.#column(left),
      c1 = this.#column(right);
    let count = 0;
    for (let row = this.#row(top) * this.#columns; row <= this.#row(bottom) * this.#columns; row += this.#columns) {
      count += this.#start[row + c1 + 1]! - this.#start[row + c0]!;
    }
    return Math.min(count, this.#bounds.count);
  }

  /** Items that touch the rectangle, in rising order. The array is only to be read. */
  query(left: number, top: number, right: number, bottom: number): number[] {
    const bounds = this.#bounds;
    const width = this.#columns * this.#cellWidth,
      height = this.#rows * this.#cellHeight;
    if (left <= 0 && top <= 0 && right >= width && bottom >= height) return this.#all;
    const boxes: number[] = [];
    const stamp = ++this.#stamp;
    const c0 = this.#column(left),
      c1 = this.#column(right),
      r0 = this.#row(top),
      r1 = this.#row(bottom);
    for (let r = r0; r <= r1; r++) {
      for (let k = this.#start[r * this.#columns + c0]!; k < this.#start[r * this.#columns + c1 + 1]!; k++) {
        const i = this.#item[k]!;
        if (this.#seen[i] === stamp) continue;
        this.#seen[i] = stamp;
        if (bounds.left(i) <= right && bounds.right(i) >= left && bounds.top(i) <= bottom && bounds.bottom(i) >= top) {
          boxes.push(i);
        }
      }
    }
    return c0 === c1 && r0 === r1 ? boxes : this.#rising(boxes);
  }

  /** Puts the items of a query in order: many by a walk over all items, several times faster than by comparing. */
  #rising(boxes: number[]): number[] {
    if (boxes.length * 16 < this.#bounds.count) return boxes.sort((a, b) => a - b);
    const isFound = this.#found,
      sorted: number[] = [];
    for (const i of boxes) isFound[i] = 1;
    for (let i = 0; i < isFound.length; i++) {
      if (isFound[i]) sorted.push(i);
    }
    isFound.fill(0);
    return sorted;
  }

  #column(x: number): number {
    return Math.min(this.#columns - 1, Math.max(0, Math.floor(x / this.#cellWidth)));
  }

  #row(y: number): number {
    return Math.min(this.#rows - 1, Math.max(0, Math.floor(y / this.#cellHeight)));
  }

  #eachCell(visit: (cell: number, item: number) => void): void {
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.count; i++) {
      const c1 = this.#column(bounds.right(i)),
        r1 = this.#row(bounds.bottom(i));
      for (let r = this.#row(bounds.top(i)); r <= r1; r++) {
        for (let c = this.#column(bounds.left(i)); c <= c1; c++) visit(r * this.#columns + c, i);
      }
    }
  }
}
