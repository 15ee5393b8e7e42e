/**
 * Runs layouts: small ones at once, large ones in a Worker where the page allows Workers, each only once.
 *
 * Equal inputs (identical blocks, unchanged groups) come from a cache; a later batch makes an unfinished one void.
 */

import type { LayoutInput, LayoutResult } from "../layout/problem.ts";
import type { LayoutScope } from "./layout.worker.ts";
import program from "./layout.worker.ts?worker";

/** Boxes and lines up to which a layout takes less than a frame here, which is quicker than asking a Worker. */
const SMALL = 120;
const CACHE_SIZE = 400;

// The bundle has the code of layouts once: as the function that it calls, and whose text a Worker runs.
const scope: LayoutScope = {};
program(scope);
const layout = scope.layout!;

/** Rejected with this when a newer batch was asked for. */
export class Superseded extends Error {
  /** Throws any other error. */
  static ignore(error: unknown): void {
    if (!(error instanceof Superseded)) throw error;
  }
}

interface Waiting {
  id: number;
  resolve: (results: LayoutResult[]) => void;
  reject: (error: Error) => void;
  inputs: LayoutInput[];
}

export class Layouter {
  readonly #cache = new Map<number, { input: LayoutInput; result: LayoutResult }[]>();
  #cached = 0;
  #worker: Worker | null = null;
  #workersWork = true;
  #nextId = 1;
  #waiting: Waiting | null = null;
  /** Milliseconds spent in layouts, waiting for the Worker included. */
  milliseconds = 0;

  /** Results in the order of the inputs: at once when all are small or known, else later. Rejects with Superseded. */
  solve(inputs: LayoutInput[]): LayoutResult[] | Promise<LayoutResult[]> {
    this.cancel();
    // Taken out of the cache at once: what is stored below may push it out.
    const signatures = inputs.map(signature);
    const known = inputs.map((input, i) => this.#find(signatures[i]!, input));
    const missing: LayoutInput[] = [],
      keys: number[] = [];
    const places = inputs.map((input, i) => {
      if (known[i]) return -1;
      const key = signatures[i]!,
        same = missing.findIndex((other, k) => keys[k] === key && equal(other, input));
      if (same >= 0) return same;
      keys.push(key);
      return missing.push(input) - 1;
    });
    const size = missing.reduce((sum, { count, netTarget }) => sum + count + netTarget.length, 0);
    const began = performance.now();
    const take = (results: LayoutResult[]): LayoutResult[] => {
      this.milliseconds += performance.now() - began;
      missing.forEach((input, i) => this.#store(keys[i]!, input, results[i]!));
      return known.map((result, i) => result ?? results[places[i]!]!);
    };
    const worker = size > SMALL ? this.#startWorker() : null;
    return worker ? this.#ask(worker, missing).then(take) : take(missing.map(layout));
  }

  /** Makes an unfinished batch void: its promise rejects with Superseded. */
  cancel(): void {
    this.#waiting?.reject(new Superseded());
    this.#waiting = null;
  }

  destroy(): void {
    this.cancel();
    this.#worker?.terminate();
    this.#worker = null;
    this.#cache.clear();
  }

  #find(key: number, input: LayoutInput): LayoutResult | undefined {
    return this.#cache.get(key)?.find((entry) => equal(entry.input, input))?.result;
  }

  #store(key: number, input: LayoutInput, result: LayoutResult): void {
    if (this.#cached >= CACHE_SIZE) {
      const oldest = this.#cache.keys().next().value!;
      this.#cached -= this.#cache.get(oldest)!.length;
      this.#cache.delete(oldest);
    }
    const entry = { input, result };
    const same = this.#cache.get(key);
    if (same) same.push(entry);
    else this.#cache.set(key, [entry]);
    this.#cached++;
  }

  #startWorker(): Worker | null {
    if (this.#worker || !this.#workersWork) return this.#worker;
    let url = "";
    try {
      url = URL.createObjectURL(new Blob([`(${program})(self)`], { type: "text/javascript" }));
      const worker = new Worker(url);
      worker.onmessage = ({ data }: MessageEvent<{ id: number; results: LayoutResult[] }>) => this.#answer(data);
      // Content security policies forbid Workers this way: not by an exception, but by an event.
      worker.onerror = () => this.#fallBack();
      this.#worker = worker;
    } catch {
      this.#workersWork = false;
    } finally {
      if (url) setTimeout(() => URL.revokeObjectURL(url), 10_000);
    }
    return this.#worker;
  }

  #ask(worker: Worker, inputs: LayoutInput[]): Promise<LayoutResult[]> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting = { id, resolve, reject, inputs };
      worker.postMessage({ id, inputs });
    });
  }

  #answer({ id, results }: { id: number; results: LayoutResult[] }): void {
    if (this.#waiting?.id !== id) return;
    const { resolve } = this.#waiting;
    this.#waiting = null;
    resolve(results);
  }

  /** The Worker failed: this and all later layouts run here. */
  #fallBack(): void {
    this.#workersWork = false;
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = this.#waiting;
    this.#waiting = null;
    if (!waiting) return;
    try {
      waiting.resolve(waiting.inputs.map(layout));
    } catch (error) {
      waiting.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

const NONE = new Uint8Array();

/** Fields that decide a layout; the hint is left out, so that a group folded back looks as before. */
function parts(input: LayoutInput): (Float32Array | Int32Array | Uint8Array)[] {
  return [
    input.width,
    input.height,
    input.pin,
    input.netSource,
    input.netStart,
    input.netTarget,
    input.sourcePort,
    input.targetPort,
    input.shared ?? NONE,
  ];
}

/** A 32-bit hash (FNV-1a over words) of what decides a layout. */
function signature(input: LayoutInput): number {
  let hash = 0x811c9dc5;
  for (const part of parts(input)) {
    const whole = part.byteOffset % 4 === 0 && part.byteLength % 4 === 0;
    const words = whole ? new Uint32Array(part.buffer, part.byteOffset, part.byteLength / 4) : part;
    for (let i = 0; i < words.length; i++) hash = Math.imul(hash ^ words[i]!, 0x01000193);
    hash = Math.imul(hash ^ part.length, 0x01000193);
  }
  return hash >>> 0;
}

function equal(a: LayoutInput, b: LayoutInput): boolean {
  const left = parts(a),
    right = parts(b);
  return a === b || (a.count === b.count && a.portals === b.portals && left.every((part, i) => same(part, right[i]!)));
}

function same(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}
