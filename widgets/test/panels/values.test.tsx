/** Panels of values and dims, with answers of a kernel that are made up. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { App } from "../../src/app.ts";
import type { FoundBoxes, MemoryCurve, TensorPart } from "../../src/kernel/protocol.ts";
import { WatchList } from "../../src/panels/frame/watch_list.tsx";
import { WhatIf } from "../../src/panels/frame/what_if.tsx";
import { ValueWatches } from "../../src/panels/inspector/value_watches.tsx";
import { Attention } from "../../src/panels/values/attention.tsx";
import { Boxes } from "../../src/panels/values/boxes.tsx";
import { pageOf } from "../fixtures/page.ts";

const PART: TensorPart = {
  id: 1,
  source: "run",
  dtype: "float32",
  shape: [1, 3, 5, 7],
  rows: 2,
  columns: 3,
  at: [0, 0, 0, 0],
  image: false,
  cells: [],
  picture: null,
};

/** Pictures of 5 × 7 elements; what was asked for is noted. */
function drawing(app: App, requests: { at?: number[]; picture: string }[]): void {
  app.numbers.draw = async (how) => {
    requests.push(how);
    const picture = { height: 5, width: 7, channels: 1, low: 0, high: 1 };
    return { part: PART, picture, bytes: new Uint8Array(35).fill(255) };
  };
}

/** The app's questions are answered by a function. */
function answering(app: App, answer: (method: string, params: Record<string, unknown>) => unknown): void {
  app.client.request = (async (method: string, params: Record<string, unknown>) =>
    answer(method, params)) as unknown as App["client"]["request"];
}

test("heads of attention are chosen, and what is under the pointer is told", async () => {
  const requests: { at?: number[]; picture: string }[] = [];
  const page = await pageOf((app) => {
    drawing(app, requests);
    return <Attention app={app} part={PART} batch={0} />;
  });
  await page.settle();
  assert.equal(page.all("attention-head-2").length, 1);
  page.get("attention-head-2").click();
  await page.settle();
  assert.equal(page.get("attention-head-2").getAttribute("aria-selected"), "true");
  assert.deepEqual(requests.at(-1)?.at, [0, 2, 0, 0]);
  assert.match(page.get("attention").textContent ?? "", /query ↓ key →, head 2/);
  page.close();
});

test("boxes of a low score and those that overlap are left out, and a layout can be chosen", async () => {
  const layouts: unknown[] = [];
  const page = await pageOf((app) => {
    drawing(app, []);
    answering(app, (_, { layout }): FoundBoxes => {
      layouts.push(layout);
      const box = (left: number, score: number) => ({ corners: [left, 0.1, left + 0.4, 0.5], score, label: 1 });
      const boxes = [box(0.1, 0.9), box(0.12, 0.8), box(0.5, 0.7), box(0.3, 0.1)];
      return { image: 2, layout: "corners", layouts: ["corners", "center and size"], count: 4, boxes };
    });
    return <Boxes app={app} part={PART} batch={0} />;
  });
  await page.settle();
  assert.equal(page.all("found-box").length, 2);
  assert.match(page.get("boxes-count").textContent ?? "", /2 boxes of 4/);
  const layout = page.get("boxes-layout") as HTMLSelectElement;
  layout.value = "center and size";
  layout.dispatchEvent(new Event("change", { bubbles: true }));
  await page.settle();
  assert.deepEqual(layouts, [null, "center and size"]);
  page.close();
});

test("other sizes are asked for, and their peak, shapes and refusals shown", async () => {
  const requests: unknown[] = [];
  const page = await pageOf((app) => {
    const [node] = app.store.nodes.keys(),
      [value] = app.store.values.keys();
    answering(app, (method, { sizes }): MemoryCurve => {
      assert.equal(method, "memory");
      requests.push(sizes);
      const { batch = 1 } = sizes as Record<string, number>;
      return {
        dims: { batch },
        assumed: [],
        steps: 2,
        nodes: [node!, node!],
        alive: [500, 1000 * batch],
        peak: 1000 * batch,
        peak_node: node!,
        weights: 10,
        inputs: 10,
        at_peak: [{ values: [value!], nbytes: 600 }],
        more: 3,
        values: [value!],
        labels: [`${batch}×7`],
        open: 0,
        refused: batch === 8 ? ["it does not fit"] : [],
      };
    });
    return <WhatIf app={app} />;
  });
  await page.settle();
  assert.match(page.get("what-if-peak").textContent ?? "", /^1 kB at once/);
  const field = page.get("what-if-batch") as HTMLInputElement;
  field.value = "8";
  Object.defineProperty(field, "valueAsNumber", { value: 8 });
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await page.settle();
  assert.deepEqual(requests, [{}, { batch: 8 }]);
  assert.match(page.get("what-if-peak").textContent ?? "", /^8 kB at once/);
  assert.match(page.get("what-if-shape").textContent ?? "", /8×7/);
  assert.equal(page.get("what-if-refused").textContent?.trim(), "it does not fit");
  assert.match(page.get("what-if").textContent ?? "", /and 3 more/);
  page.close();
});

test("watches are added in the inspector of a value, listed with their state, and taken away", async () => {
  const watches: unknown[] = [];
  let value = 0;
  const answer = (method: string, params: Record<string, unknown>) => {
    if (method === "watch" && params.text === "nan =") throw new Error("expected the end, or an operator");
    if (method === "watch")
      watches.push({ name: "conv_out", text: params.text, state: "fails", why: "nan = 3", values: [params.value] });
    if (method === "unwatch") watches.splice(params.place as number, 1);
    return { watches: [...watches], refused: ["a line that cannot be read"], measures: ["nan"] };
  };
  const page = await pageOf((app) => {
    answering(app, answer);
    app.client.can = { run: true };
    value = [...app.store.values.keys()][0]!;
    return (
      <>
        <ValueWatches app={app} value={value} />
        <WatchList app={app} />
      </>
    );
  });
  const type = async (text: string) => {
    const [input] = page.all("watch-text") as HTMLInputElement[];
    input!.value = text;
    input!.dispatchEvent(new Event("input", { bubbles: true }));
    await page.settle();
    page.all("watch-add")[0]!.click();
    await page.settle();
  };
  await type("nan =");
  assert.match(page.get("watch-error").textContent ?? "", /expected the end/);
  await type("nan == 0");
  assert.equal(page.all("watch").length, 2, "in the inspector and in the list");
  assert.equal(page.all("watch")[0]!.dataset.state, "fails");
  assert.match(page.root.textContent ?? "", /nan = 3/);
  assert.match(page.root.textContent ?? "", /cannot be read/);
  assert.equal(page.app.watches.failing.length, 1);
  page.all("watch-remove")[0]!.click();
  await page.settle();
  assert.equal(page.all("watch").length, 0);
  page.close();
});
