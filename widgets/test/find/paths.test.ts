import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeKernel } from "../../dev/fake_kernel.ts";
import { FakeModel } from "../../dev/fake_model.ts";
import { App } from "../../src/app.ts";
import { between, cone, valuesBetween } from "../../src/find/paths.ts";
import { placing } from "../../src/graph/marks/minimap.ts";
import { Client } from "../../src/kernel/client.ts";
import { Store } from "../../src/model/store.ts";
import { residualChain } from "../fixtures/networks.ts";

const store = residualChain(4).store();
const nodes = [...store.nodes.keys()];

/** The cone by its definition: one wire at a time, until nothing is new. */
function reached(from: number, forward: boolean): Set<number> {
  const seen = new Set([from]);
  for (let before = 0; before !== seen.size; ) {
    before = seen.size;
    for (const [id, { inputs }] of store.nodes) {
      for (const value of inputs) {
        const maker = store.producer(value)?.node;
        if (maker === undefined) continue;
        if (forward ? seen.has(maker) : seen.has(id)) seen.add(forward ? id : maker);
      }
    }
  }
  return seen;
}

test("cones hold everything that wires lead to or come from, and ways are what both have", () => {
  for (const node of nodes.filter((_, i) => i % 5 === 0)) {
    assert.deepEqual([...cone(store, [node], "descendants")].sort(), [...reached(node, true)].sort());
    assert.deepEqual([...cone(store, [node], "ancestors")].sort(), [...reached(node, false)].sort());
  }
  const [first, last] = [nodes[2]!, nodes[14]!];
  const ways = new Set([...reached(first, true)].filter((node) => reached(last, false).has(node)));
  assert.deepEqual([...between(store, first, last)].sort(), [...ways].sort());
  assert.deepEqual([...between(store, last, first)].sort(), [...ways].sort());
  for (const value of valuesBetween(store, ways)) assert.ok(ways.has(store.producer(value)!.node));
});

test("what a body reads is read by the node that owns it", async () => {
  const kernel = new FakeKernel(new FakeModel({ blocks: [1, 1], control: true }));
  const model = new Store(),
    client = new Client(kernel.transport, model);
  await client.start();
  const inner = [...model.scopes.values()].find(({ kind }) => kind === "subgraph")!;
  const outside = [...model.nodes.values()]
    .filter(({ scope }) => scope === inner.id)
    .flatMap(({ inputs }) => inputs)
    .find((value) => model.producer(value) && model.values.get(value)!.scope !== inner.id);
  assert.ok(outside, "the body reads an outer value");
  const maker = model.producer(outside)!.node;
  assert.ok(cone(model, [maker], "descendants").has(inner.owner));
  assert.ok(cone(model, [inner.owner], "ancestors").has(maker));
  client.dispose();
});

test("bookmarks go on and off, and a removed node loses its own", async () => {
  const kernel = new FakeKernel(new FakeModel({ blocks: [1], control: false }));
  const app = new App(new Client(kernel.transport, new Store()));
  await app.start();
  const bookmarks: number[][] = [];
  app.travel.onBookmarks = (marked) => bookmarks.push(marked);
  const [a, b] = [...app.store.nodes.keys()] as [number, number];
  app.travel.toggleBookmarks([a, b]);
  app.travel.toggleBookmarks([a]);
  assert.deepEqual(bookmarks, [[a, b], [b]]);
  await app.edits.remove([b], true);
  assert.deepEqual(app.travel.bookmarks.value, []);
  app.dispose();
  app.client.dispose();
});

test("the small map has room for graphs of any proportion", () => {
  for (const [width, height] of [
    [100, 100],
    [50, 100_000],
    [80_000, 60],
    [1, 1],
  ] as const) {
    const place = placing({ width, height }, { width: 900, height: 600 });
    assert.ok(place.width >= 34 && place.width <= 225 && place.height >= 34 && place.height <= 360);
    assert.ok(Math.abs(place.sx * width - place.width) < 1e-6 && Math.abs(place.sy * height - place.height) < 1e-6);
  }
});
