/** Panels as they are on the page: what they show of the model, and what a click or a key asks the kernel for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ColorBy, Legend } from "../../src/panels/frame/legend.tsx";
import { Placeholder } from "../../src/panels/frame/placeholder.tsx";
import { Inspector } from "../../src/panels/inspector/inspector.tsx";
import { Toasts } from "../../src/panels/parts/toasts.tsx";
import { type Page, pageOf } from "../fixtures/page.ts";

function nodeOf(page: Page, op: string): number {
  return [...page.store.nodes.values()].find((node) => node.op === op)!.id;
}

test("a toast shows its text whole, opens its details and goes when it is dismissed", async () => {
  const page = await pageOf((app) => <Toasts app={app} />);
  const text = "Conv_12 cannot take 3 channels: ".repeat(8).trim();
  page.app.notices.toast("error", text, "Expected 64.\nFound 3.");
  await page.settle();
  assert.equal(page.get("toast").dataset.kind, "error");
  assert.ok(page.get("toast").textContent?.includes(text));
  assert.equal(page.all("toast-details").length, 0);
  [...page.get("toast").querySelectorAll("button")].find((button) => button.textContent?.includes("Details"))?.click();
  await page.settle();
  assert.equal(page.get("toast-details").textContent, "Expected 64.\nFound 3.");
  page.get("toast-dismiss").click();
  await page.settle();
  assert.equal(page.all("toast").length, 0);
  page.close();
});

test("the inspector follows the selection from the model to a node, to several and back", async () => {
  const page = await pageOf((app) => <Inspector app={app} />);
  assert.ok(page.get("inspector-model"));
  const conv = nodeOf(page, "Conv"),
    relu = nodeOf(page, "Relu");
  page.app.picked.select([conv]);
  await page.settle();
  assert.equal(page.get("inspector-node").dataset.node, String(conv));
  page.app.picked.select([conv, relu]);
  await page.settle();
  assert.equal(page.all("selected-node").length, 2);
  page.app.picked.select([]);
  await page.settle();
  assert.ok(page.get("inspector-model"));
  page.close();
});

test("the model says what it stores, what wrote it and what it says of itself", async () => {
  const about = {
    doc_string: "a <b>model</b>",
    metadata: { license: "MIT" },
    fields: { ir_version: 10, producer_name: "pytorch", producer_version: "2.4" },
  };
  const page = await pageOf((app) => {
    const request = app.client.request.bind(app.client);
    const answer: typeof request = (method, params) =>
      method === "about" ? (Promise.resolve(about) as never) : request(method, params);
    app.client.request = answer;
    return <Inspector app={app} />;
  });
  await page.settle();
  assert.match(page.get("model-parameters").textContent ?? "", /^[\d.]+ [kM] · /);
  assert.equal(page.all("model-types").length, 0, "no type is known");
  assert.equal(page.get("model-producer").textContent, "pytorch 2.4");
  assert.equal(page.get("model-notes").textContent, "a <b>model</b>");
  assert.match(page.get("model-metadata").textContent ?? "", /license.*MIT/);
  page.close();
});

test("a model without nodes says so, and what can be done", async () => {
  const page = await pageOf((app) => <Placeholder app={app} />);
  assert.equal(page.all("placeholder").length, 0);
  await page.app.edits.remove([...page.store.nodes.keys()], false);
  await page.settle();
  assert.match(page.get("placeholder").textContent ?? "", /weights without a graph/);
  assert.ok(page.get("placeholder-open"));
  assert.equal(page.all("placeholder-add").length, 0);
  page.close();
});

test("an empty model offers what can be added: a node that reads, or first an input", async () => {
  const page = await pageOf((app) => <Placeholder app={app} />);
  page.store.values.clear();
  await page.app.edits.remove([...page.store.nodes.keys()], false);
  await page.settle();
  page.get("placeholder-add").click();
  assert.ok(page.app.palette.question.value, "the list of operators opens");
  page.app.palette.question.value = null;
  for (const [id, scope] of page.store.scopes) page.store.scopes.set(id, { ...scope, inputs: [], outputs: [] });
  page.app.edits.undo();
  await page.settle();
  await page.app.edits.remove([...page.store.nodes.keys()], false);
  await page.settle();
  assert.match(page.get("placeholder-add").textContent ?? "", /input/);
  page.close();
});

test("deleting several nodes from their inspector is one edit, which undo brings back", async () => {
  const page = await pageOf((app) => <Inspector app={app} />);
  const before = page.store.nodes.size,
    relus = [...page.store.nodes.values()].filter(({ op }) => op === "Relu").slice(0, 2);
  page.app.picked.select(relus.map(({ id }) => id));
  await page.settle();
  page.get("nodes-delete").click();
  await page.settle();
  assert.equal(page.store.nodes.size, before - 2);
  assert.ok(page.get("inspector-model"), "what was removed is selected no more");
  page.app.edits.undo();
  await page.settle();
  assert.equal(page.store.nodes.size, before);
  page.close();
});

test("the menu of measures says what the boxes are colored by", async () => {
  const page = await pageOf((app) => <ColorBy app={app} />);
  const shown = () => page.get("color-by").querySelector("option")?.textContent;
  assert.equal(shown(), "Color by");
  page.app.runs.color({ title: "FLOPs", unit: "", nodes: [nodeOf(page, "Conv")], numbers: [2] });
  await page.settle();
  assert.equal(shown(), "FLOPs");
  page.app.runs.color(null);
  await page.settle();
  assert.equal(shown(), "Color by");
  page.close();
});

test("inputs that are one box in the picture are one row, which a press lists", async () => {
  const page = await pageOf((app) => <Inspector app={app} />);
  const main = [...page.store.scopes.values()].find(({ kind }) => kind === "graph")!,
    { inputs } = main,
    names = () =>
      [...page.get("inspector-model").querySelectorAll(".ol-row-button")].map((row) => row.textContent ?? "");
  const [value] = [...page.store.values.values()];
  for (let i = 0; i < 6; i++)
    for (const word of ["k", "v"]) {
      const id = 900_000 + inputs.length;
      page.store.values.set(id, { ...value!, id, name: `past.${i}.${word}`, flags: 1, label: "1×2" });
      inputs.push(id);
    }
  page.app.picked.select([nodeOf(page, "Conv")]);
  await page.settle();
  page.app.picked.select([]);
  await page.settle();
  assert.equal(page.all("value-bundle").length, 1);
  assert.ok(page.get("value-bundle").textContent?.includes("past.{0…5}.{k,v}"));
  assert.ok(!names().some((text) => text.includes("past.3.k")));
  page.get("value-bundle").click();
  await page.settle();
  assert.equal(page.all("value-bundle").length, 0);
  assert.ok(names().some((text) => text.includes("past.3.k")));
  page.close();
});

test("the legend says from nothing to how much colors go, beside the measure", async () => {
  const page = await pageOf((app) => <Legend app={app} />);
  assert.equal(page.all("legend").length, 0);
  page.app.runs.color({ title: "FLOPs", unit: "", nodes: [nodeOf(page, "Conv")], numbers: [2000] });
  await page.settle();
  assert.equal(page.get("legend").getAttribute("aria-label"), "Colors of FLOPs");
  assert.ok(page.get("legend").textContent?.startsWith("0"));
  page.close();
});
