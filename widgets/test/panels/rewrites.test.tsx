/** Rewrites in the drawer: what is marked for all, for a rule and for a place, and what is asked of the kernel. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Method, Params, Rewrites } from "../../src/kernel/protocol.ts";
import { Drawer } from "../../src/panels/frame/drawer.tsx";
import { Inspector } from "../../src/panels/inspector/inspector.tsx";
import type { Given, Picture } from "../../src/view_contract.ts";
import { commit } from "../fixtures/commits.ts";
import { type Page, pageOf } from "../fixtures/page.ts";

const PLACES = [
  { at: 1, label: "a", what: "became Gemm", going: [1, 2], coming: ["Gemm"] },
  { at: 4, label: "b", what: "became Gemm", going: [3, 4], coming: ["Gemm"] },
];
const ANSWER: Rewrites = {
  rules: [
    { rule: "matmul_add", key: "matmul_add", doc: "One node.", count: 2, places: PLACES, by_place: true },
    {
      rule: "shape folding",
      key: "known_shapes",
      doc: "Sizes.",
      count: 1,
      places: [{ at: 5, label: "c", what: "its target is fixed", going: [], coming: [] }],
      by_place: false,
    },
  ],
  nodes: [6, 4],
  bytes: [64, 64],
  staying: [],
};
const GAIN = { key: "matmul_add", nodes: 2, bytes: 2048, peak: 0, seconds: { numpy: 0.001 }, verdict: "bit equal" };
const DONE = {
  version: 1,
  python: "",
  applied: 1,
  nodes: [6, 5],
  bytes: [64, 64],
  verdict: "bit equal",
  refused: ["x: no"],
  unfit: ["y: a shape"],
  lost: [],
};

/** Answers of a kernel that rewrites, what it was asked, and the marks in the picture. */
function stubbed(page: Page): { asked: [Method, unknown][]; marks: Partial<Given>; revealed: number[] } {
  const log = { asked: [] as [Method, unknown][], marks: {} as Partial<Given>, revealed: [] as number[] };
  const answers: Record<string, unknown> = {
    rewrites: ANSWER,
    gains: { gains: [GAIN] },
    rewrite: DONE,
    pattern: { pattern: "Relu(Conv(x, w:const))" },
    pattern_places: { count: 1, places: [[1, 2]] },
  };
  page.app.client.request = (async (method: Method, params: Params<Method>) => {
    log.asked.push([method, params]);
    if (!(method in answers)) throw new Error(`not asked here: ${method}`);
    return answers[method];
  }) as typeof page.app.client.request;
  const picture: Partial<Picture> = {
    mark: (marks) => Object.assign(log.marks, marks),
    reveal: (node) => log.revealed.push(node),
  };
  const idle = () => undefined; // other calls of the picture do nothing
  page.app.attached.value = new Proxy(picture as Picture, { get: (target, name) => Reflect.get(target, name) ?? idle });
  return log;
}

test("what all rules would do is marked, then that of a rule, of a place, and nothing in the end", async () => {
  const page = await pageOf((app) => <Drawer app={app} />);
  const log = stubbed(page);
  await page.app.rewriting.open();
  await page.settle();
  assert.deepEqual(log.asked[0], ["rewrites", { level: "basic", rules: [], microsoft: false, protect: [] }]);
  assert.deepEqual(log.marks.going, [1, 2, 3, 4]);
  assert.deepEqual(log.marks.coming, [
    [1, ["Gemm"]],
    [4, ["Gemm"]],
    [5, []],
  ]);
  page.get("rewrite-matmul_add").querySelector("button")!.click();
  await page.settle();
  assert.equal(page.get("rewrite-number").textContent, "all 2");
  page.get("rewrite-before").click();
  await page.settle();
  assert.deepEqual(log.marks.going, [3, 4]);
  assert.equal(log.revealed.at(-1), 4);
  page.get("rewrite-here").click();
  await page.settle();
  assert.deepEqual(log.asked.at(-1), [
    "rewrite",
    { level: "basic", microsoft: false, rules: ["matmul_add"], at: 4, protect: [], version: page.store.version },
  ]);
  assert.equal(
    page.get("rewrites-receipt").textContent,
    "6 nodes before, 5 now; outputs: bit equal. undo1 change taken backx: no1 place not changedy: a shape",
  );
  page.get("rewrites-none").click();
  await page.settle();
  assert.deepEqual([log.marks.going, log.marks.coming], [[], []]);
  assert.equal(page.all("rewrites-table").length, 0);
  page.close();
});

test("after a rewrite the other rules are listed anew, after one elsewhere too, and forgotten where they do not show", async () => {
  const page = await pageOf((app) => <Drawer app={app} />);
  const log = stubbed(page);
  const request = page.app.client.request;
  const { store } = page;
  const edit = () => store.apply(commit({ seq: 0, version: store.version + 1, history: store.history }));
  page.app.client.request = (async (method: Method, params: Params<Method>) => {
    if (method === "rewrite") edit(); // its event comes before its answer
    const answer = await request(method as "rewrites", params as Params<"rewrites">);
    const times = log.asked.filter(([name]) => name === "rewrites").length;
    if (method === "rewrite") return { ...DONE, version: store.version };
    return times > 1 && method === "rewrites" ? { ...ANSWER, rules: [ANSWER.rules[1]], nodes: [5, 5 - times] } : answer;
  }) as typeof page.app.client.request;
  await page.app.rewriting.open();
  page.app.rewriting.show("matmul_add");
  await page.settle();
  page.get("rewrite-matmul_add").querySelector<HTMLButtonElement>("[aria-label^=Apply]")!.click();
  await page.settle();
  assert.deepEqual(
    log.asked.map(([method]) => method),
    ["rewrites", "rewrite", "rewrites"],
  );
  assert.equal(page.all("rewrite-matmul_add").length, 0);
  assert.equal(page.all("rewrite-known_shapes").length, 1);
  assert.match(page.get("rewrites-receipt").textContent!, /6 nodes before, 5 now/);
  assert.deepEqual(log.marks.coming, [[5, []]], "all that is left is marked, since the rule that was shown is gone");
  edit(); // an edit in a cell, or undo
  await page.settle();
  assert.equal(page.get("rewrites-nodes").textContent, "5 to 2 nodes");
  page.app.drawer.value = null;
  edit();
  await page.settle();
  assert.equal(page.app.rewriting.found.value, null);
  page.close();
});

test("a form in fewer bits tells bytes, what stays and why, and what it lost", async () => {
  const page = await pageOf((app) => <Drawer app={app} />);
  const log = stubbed(page);
  const request = page.app.client.request;
  const places = [{ at: 1, label: "w", what: "4,096 bytes become 1,088", going: [], coming: ["DequantizeLinear"] }];
  const rule = { rule: "int8_weights", key: "int8_weights", doc: "Weights.", count: 1, places, by_place: false };
  const answers: Record<string, unknown> = {
    rewrites: { rules: [rule], nodes: [6, 7], bytes: [4096, 1088], staying: ["v: it is an output of its graph"] },
    rewrite: { ...DONE, bytes: [4096, 1088], verdict: "rounded: y is off by up to 0.4 %", refused: [], unfit: [] },
  };
  page.app.client.request = (async (method: Method, params: Params<Method>) => {
    await request(method as "rewrites", params as Params<"rewrites">);
    return answers[method];
  }) as typeof page.app.client.request;
  await page.app.rewriting.quantize();
  await page.settle();
  assert.deepEqual(log.asked[0], ["rewrites", { level: "int8_weights", rules: [], microsoft: false, protect: [] }]);
  assert.equal(page.get("rewrites-nodes").textContent, "6 to 7 nodes, 4.1 kB to 1.09 kB");
  assert.equal(page.get("rewrites-staying").textContent, "1 place stays as beforev: it is an output of its graph");
  assert.equal(page.all("rewrites-microsoft").length, 0);
  const bound = page.get("rewrites-bound") as HTMLSelectElement;
  assert.equal(bound.value, "");
  bound.value = "10";
  bound.dispatchEvent(new window.Event("change", { bubbles: true }));
  await page.settle();
  page.get("rewrites-all").click();
  await page.settle();
  const applied = log.asked.findLast(([method]) => method === "rewrite")![1] as Params<"rewrite">;
  assert.equal(applied.at_most, 10);
  const receipt = "6 nodes before, 5 now, 4.1 kB to 1.09 kB; outputs: rounded: y is off by up to 0.4 %. undo";
  assert.equal(page.get("rewrites-receipt").textContent, receipt);
  page.close();
});

test("a comma in a protected name has a backslash", async () => {
  const page = await pageOf((app) => <Drawer app={app} />);
  const log = stubbed(page);
  await page.app.rewriting.open();
  await page.settle();
  const field = page.get("rewrites-protect") as HTMLInputElement;
  field.focus();
  field.value = "a\\,b, enc/";
  field.dispatchEvent(new window.Event("input", { bubbles: true }));
  await page.settle();
  field.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await page.settle();
  assert.deepEqual((log.asked.findLast(([method]) => method === "rewrites")![1] as { protect: string[] }).protect, [
    "a,b",
    "enc/",
  ]);
  assert.equal((page.get("rewrites-protect") as HTMLInputElement).value, "a\\,b, enc/");
  page.close();
});

test("measured gains stand beside their rules", async () => {
  const page = await pageOf((app) => <Drawer app={app} />);
  stubbed(page);
  await page.app.rewriting.open();
  await page.settle();
  page.get("rewrites-measure").click();
  await page.settle();
  assert.match(page.get("rewrite-matmul_add").textContent!, /−2−2.05 kB0−1 ms0bit equal/);
  page.get("rewrites-all").click();
  await page.settle();
  page.close();
});

test("selected nodes become a pattern that is found, and a rule that is looked at", async () => {
  const page = await pageOf((app) => <Inspector app={app} />);
  const [first, second] = [...page.store.nodes.keys()];
  page.app.picked.select([first!, second!]);
  await page.settle();
  const log = stubbed(page);
  page.get("pattern-ask").click();
  await page.settle();
  assert.equal((page.get("pattern-text") as HTMLTextAreaElement).value, "Relu(Conv(x, w:const))");
  page.get("pattern-find").click();
  await page.settle();
  assert.equal(page.get("pattern-count").textContent, "1 place");
  assert.deepEqual(log.marks.highlights, [1, 2]);
  const replacement = page.get("pattern-replacement") as HTMLTextAreaElement;
  replacement.value = "Conv(x, w)";
  replacement.dispatchEvent(new window.Event("input", { bubbles: true }));
  await page.settle();
  page.get("pattern-preview").click();
  await page.settle();
  assert.deepEqual(log.asked.at(-1), [
    "rewrites",
    { level: "basic", rules: ["Relu(Conv(x, w:const)) => Conv(x, w)"], microsoft: false, protect: [] },
  ]);
  assert.equal(page.app.drawer.value, "rewrites");
  page.close();
});
