/**
 * Makers and readers of each value: of the snapshot as typed arrays by the value's id, which a model of 100,000
 * nodes has in a few milliseconds, and beside them the readers of those values that edits have touched since.
 */

/** Nodes in file order and, row by row, the ids of what they read and make; 0 where an input or output is left out. */
export interface Rows {
  nodes: Int32Array;
  inStarts: Int32Array;
  inputs: Int32Array;
  outStarts: Int32Array;
  outputs: Int32Array;
}

interface Ends {
  id: number;
  inputs: readonly number[];
  outputs: readonly number[];
}

const UNUSED: readonly number[] = [];

export class Wires {
  /** Node that makes each value, 0: none. */
  #makers: Int32Array;
  readonly #starts: Int32Array;
  readonly #readers: Int32Array;
  readonly #touched = new Map<number, readonly number[]>();

  constructor({ nodes, inStarts, inputs, outStarts, outputs }: Rows) {
    const size = Math.max(largest(inputs), largest(outputs)) + 1;
    this.#makers = new Int32Array(size);
    for (let i = 0; i < nodes.length; i++) {
      for (let k = outStarts[i]!; k < outStarts[i + 1]!; k++) if (outputs[k]) this.#makers[outputs[k]!] = nodes[i]!;
    }
    this.#starts = new Int32Array(size + 1);
    forEachRead(nodes, inStarts, inputs, (value) => this.#starts[value + 1]!++);
    for (let value = 0; value < size; value++) this.#starts[value + 1]! += this.#starts[value]!;
    const next = this.#starts.slice();
    this.#readers = new Int32Array(this.#starts[size]!);
    forEachRead(nodes, inStarts, inputs, (value, node) => (this.#readers[next[value]!++] = node));
  }

  /** The node that makes a value, 0: none. */
  maker(value: number): number {
    return this.#makers[value] ?? 0;
  }

  /** The nodes that read a value, each once; file order at first, then order of change. */
  readers(value: number): ArrayLike<number> & Iterable<number> {
    const touched = this.#touched.get(value);
    if (touched) return touched;
    return value + 1 < this.#starts.length
      ? this.#readers.subarray(this.#starts[value], this.#starts[value + 1])
      : UNUSED;
  }

  add({ id, inputs, outputs }: Ends): void {
    for (const value of outputs) if (value) this.#setMaker(value, id);
    for (const value of new Set(inputs)) if (value) this.#touched.set(value, [...this.readers(value), id]);
  }

  remove({ id, inputs, outputs }: Ends): void {
    for (const value of outputs) if (this.maker(value) === id) this.#setMaker(value, 0);
    for (const value of new Set(inputs))
      if (value)
        this.#touched.set(
          value,
          [...this.readers(value)].filter((reader) => reader !== id),
        );
  }

  /** Forgets a value that was removed. */
  forget(value: number): void {
    this.#setMaker(value, 0);
    this.#touched.set(value, UNUSED);
  }

  #setMaker(value: number, node: number): void {
    if (value >= this.#makers.length) {
      const more = new Int32Array(2 * value + 1);
      more.set(this.#makers);
      this.#makers = more;
    }
    this.#makers[value] = node;
  }
}

/** Calls back with each value that a node reads, once for each node. */
function forEachRead(
  nodes: Int32Array,
  starts: Int32Array,
  inputs: Int32Array,
  read: (value: number, node: number) => void,
): void {
  for (let i = 0; i < nodes.length; i++) {
    const first = starts[i]!,
      end = starts[i + 1]!;
    for (let k = first; k < end; k++) {
      const value = inputs[k]!;
      if (value && firstOf(inputs, value, first) === k) read(value, nodes[i]!);
    }
  }
}

function firstOf(values: Int32Array, value: number, from: number): number {
  let at = from;
  while (values[at] !== value) at++;
  return at;
}

function largest(values: Int32Array): number {
  let most = 0;
  for (let i = 0; i < values.length; i++) if (values[i]! > most) most = values[i]!;
  return most;
}
