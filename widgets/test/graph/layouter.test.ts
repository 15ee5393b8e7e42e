import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { layout } from "../../src/graph/layout/layout.ts";
import type { LayoutInput } from "../../src/graph/layout/problem.ts";
import { Layouter, Superseded } from "../../src/graph/scene/layouter.ts";

function chain(count: number): LayoutInput {
  return {
    count,
    width: new Float32Array(count).fill(80),
    height: new Float32Array(count).fill(30),
    pin: new Uint8Array(count),
    netSource: Int32Array.from({ length: count - 1 }, (_, i) => i),
    netStart: Int32Array.from({ length: count }, (_, i) => i),
    netTarget: Int32Array.from({ length: count - 1 }, (_, i) => i + 1),
    sourcePort: new Float32Array(count - 1).fill(NaN),
    targetPort: new Float32Array(count - 1).fill(NaN),
    hint: null,
  };
}

/** Stands in for the browser's Worker: answers when told to. */
class FakeWorker {
  static all: FakeWorker[] = [];
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: (() => void) | null = null;
  terminated = false;
  readonly asked: { id: number; inputs: LayoutInput[] }[] = [];

  constructor() {
    FakeWorker.all.push(this);
  }

  postMessage(message: { id: number; inputs: LayoutInput[] }): void {
    this.asked.push(message);
  }

  answer(i: number): void {
    const { id, inputs } = this.asked[i]!;
    this.onmessage!({ data: { id, results: inputs.map(layout) } });
  }

  terminate(): void {
    this.terminated = true;
  }
}

function withWorker(worker: unknown): void {
  (globalThis as Record<string, unknown>).Worker = worker;
}

afterEach(() => {
  delete (globalThis as Record<string, unknown>).Worker;
  FakeWorker.all = [];
});

test("small layouts are answered at once, equal ones from the cache", () => {
  const layouter = new Layouter();
  const results = layouter.solve([chain(5), chain(6), chain(5)]);
  assert.ok(Array.isArray(results));
  assert.equal(results[0], results[2]);
  assert.equal((layouter.solve([chain(6)]) as unknown[])[0], results[1]);
  layouter.destroy();
});

test("a batch that is larger than the cache is answered as a whole", async () => {
  const layouter = new Layouter();
  const different = (from: number, to: number): LayoutInput[] =>
    Array.from({ length: to - from }, (_, i) => ({ ...chain(2), width: new Float32Array(2).fill(from + i) }));
  await layouter.solve(different(0, 100));
  const results = await layouter.solve(different(0, 600));
  assert.equal(results.filter(Boolean).length, 600);
  layouter.destroy();
});

test("large layouts go to the Worker, and only what is not known yet", async () => {
  withWorker(FakeWorker);
  const layouter = new Layouter();
  const answer = layouter.solve([chain(2000), chain(2000), chain(900)]);
  assert.ok(answer instanceof Promise);
  const [worker] = FakeWorker.all;
  assert.equal(worker!.asked[0]!.inputs.length, 2);
  worker!.answer(0);
  assert.equal((await answer).length, 3);
  assert.ok(Array.isArray(layouter.solve([chain(2000)])));
  layouter.destroy();
  assert.ok(worker!.terminated);
});

test("a newer batch makes the one before void, whose late answer is ignored", async () => {
  withWorker(FakeWorker);
  const layouter = new Layouter();
  const first = layouter.solve([chain(2000)]) as Promise<unknown>;
  const second = layouter.solve([chain(2001)]) as Promise<{ x: Float32Array }[]>;
  await assert.rejects(first, Superseded);
  FakeWorker.all[0]!.answer(0);
  FakeWorker.all[0]!.answer(1);
  assert.equal((await second)[0]!.x.length, 2001);
  layouter.destroy();
});

test("without Workers layouts run on the page: absent, refused, or failing later", async () => {
  const absent = new Layouter();
  assert.ok(Array.isArray(absent.solve([chain(2000)])));
  withWorker(
    class {
      constructor() {
        throw new Error("blocked by the content security policy");
      }
    },
  );
  const refused = new Layouter();
  assert.ok(Array.isArray(refused.solve([chain(2000)])));
  withWorker(FakeWorker);
  const failing = new Layouter();
  const answer = failing.solve([chain(2000)]) as Promise<unknown[]>;
  FakeWorker.all[0]!.onerror!();
  assert.equal((await answer).length, 1);
  assert.ok(Array.isArray(failing.solve([chain(2100)])));
  for (const layouter of [absent, refused, failing]) layouter.destroy();
});
