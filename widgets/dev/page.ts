/** The development page: one or two views of a synthetic model; `lab` in the console drives the fake kernel. */

import { mount } from "../src/mount.tsx";
import { FakeKernel } from "./fake_kernel.ts";
import { FakeModel, type FakeOptions } from "./fake_model.ts";

const MODELS: Record<string, FakeOptions> = {
  small: { blocks: [1, 1], control: false },
  resnet: {},
  deep: { blocks: [12, 60, 180, 60] },
  hostile: { blocks: [1], hostile: true },
};

const query = new URLSearchParams(location.search);
const theme = query.get("theme");
if (theme) document.documentElement.dataset.theme = theme;
const model = new FakeModel(MODELS[query.get("model") ?? "resnet"] ?? {});
if (query.get("model") === "empty") {
  model.nodes.clear();
  model.groups.clear();
}
const kernel = new FakeKernel(model, { delay: Number(query.get("delay") ?? 5), binary: query.get("binary") !== "no" });
if (query.has("silent")) kernel.setBusy(true);

let selection: number[] = [];
const selectionListeners = new Set<() => void>();
const shared = {
  height: () => Number(query.get("height") ?? 600),
  onHeight: () => () => undefined,
  title: () => query.get("title") ?? "",
  onTitle: () => () => undefined,
  selection: () => selection,
  setSelection(nodes: number[]) {
    selection = nodes;
    for (const listener of selectionListeners) listener();
  },
  onSelection(listener: () => void) {
    selectionListeners.add(listener);
    return () => selectionListeners.delete(listener);
  },
  reading: () => (query.get("flow") === "right" ? ("right" as const) : ("down" as const)),
  columns: () => query.get("columns") !== "0",
  setColumns: () => undefined,
  setReading: () => undefined,
  onReading: () => () => undefined,
  bookmarks: () => [],
  setBookmarks: () => undefined,
  onBookmarks: () => () => undefined,
};

const ends: (() => void)[] = [];
for (const id of query.get("views") === "2" ? ["first", "second"] : ["first"]) {
  ends.push(mount(document.getElementById(id)!, kernel.transport, shared));
}
Object.assign(window, { lab: { kernel, model, shared, ends } });
