/** The widget as anywidget loads it: one `render` per view of the model, each with state of its own. */

import type { Reading } from "./graph/scene/flow.ts";
import { type Recorded, recordedTransport } from "./kernel/offline.ts";
import type { Snapshot } from "./kernel/protocol.ts";
import { keepNote } from "./kernel/saved_state.ts";
import { commTransport, listen, type WidgetModel } from "./kernel/transport.ts";
import { mount, type Shared } from "./mount.tsx";
import { pairInPlace, sidesOf } from "./pair/in_place.ts";
import { mountPair } from "./pair/mount_pair.tsx";

interface RenderContext {
  model: WidgetModel;
  el: HTMLElement;
}

function render({ model, el }: RenderContext): () => void {
  if (model.get("session") === undefined) {
    return mountPair(el, sidesOf(model), {
      height: () => Number(model.get("height")) || 0,
      onHeight: (listener) => listen(model, "change:height", listener),
    });
  }
  let leave = () => {};
  const unmount = mount(el, commTransport(model), traits(model), ({ client }) => {
    leave();
    leave = pairInPlace(el, model, client, () => setTrait(model, "sides", 0));
  });
  const forget = keepNote(
    model.widget_manager,
    String(model.get("session") ?? ""),
    String(model.get("_model_module_version") ?? ""),
  );
  return () => {
    leave();
    forget();
    unmount();
  };
}

/** Shows a recorded model on a whole page; see onnxlab/notebook/widgets/html_page.py. */
function offline(el: HTMLElement, model: Recorded): () => void {
  let selection: number[] = [],
    bookmarks: number[] = [];
  const { defaultView } = el.ownerDocument;
  return mount(el, recordedTransport(model), {
    height: () => defaultView?.innerHeight ?? 0,
    onHeight(listener) {
      defaultView?.addEventListener("resize", listener);
      return () => defaultView?.removeEventListener("resize", listener);
    },
    title: () => (model.answers.snapshot as { "": Snapshot })[""].title,
    onTitle: () => () => undefined,
    selection: () => selection,
    setSelection: (nodes) => {
      selection = nodes;
    },
    onSelection: () => () => undefined,
    reading: () => "auto",
    setReading: () => undefined,
    columns: () => true,
    setColumns: () => undefined,
    onReading: () => () => undefined,
    bookmarks: () => bookmarks,
    setBookmarks: (nodes) => {
      bookmarks = nodes;
    },
    onBookmarks: () => () => undefined,
  });
}

/** Shows two recorded models on a whole page; see onnxlab/notebook/widgets/pair_page.py. */
function offlinePair(el: HTMLElement, { sides }: { sides: Recorded[] }): () => void {
  const { defaultView } = el.ownerDocument;
  return mountPair(el, sides.map(recordedTransport), {
    height: () => defaultView?.innerHeight ?? 0,
    onHeight(listener) {
      defaultView?.addEventListener("resize", listener);
      return () => defaultView?.removeEventListener("resize", listener);
    },
  });
}

/** The widget's small durable state: what survives a reload of the page and is shared by its views. */
function traits(model: WidgetModel): Shared {
  return {
    height: () => (model.get("height") === "fill" ? "fill" : Number(model.get("height")) || 0),
    setHeight: (height) => setTrait(model, "height", height),
    onHeight: (listener) => listen(model, "change:height", listener),
    title: () => String(model.get("title") ?? ""),
    onTitle: (listener) => listen(model, "change:title", listener),
    selection: () => ids(model.get("selection")),
    setSelection: (nodes) => setIds(model, "selection", nodes),
    onSelection: (listener) => listen(model, "change:selection", listener),
    reading: () => readingOf(model.get("flow")),
    setReading: (reading) => setTrait(model, "flow", reading),
    columns: () => model.get("columns") !== false,
    setColumns: (columns) => setTrait(model, "columns", columns),
    onReading: (listener) => {
      const offs = ["change:flow", "change:columns"].map((event) => listen(model, event, listener));
      return () => offs.forEach((off) => off());
    },
    bookmarks: () => ids(model.get("bookmarks")),
    setBookmarks: (nodes) => setIds(model, "bookmarks", nodes),
    onBookmarks: (listener) => listen(model, "change:bookmarks", listener),
  };
}

function readingOf(value: unknown): Reading {
  return value === "down" || value === "right" ? value : "auto";
}

function setIds(model: WidgetModel, name: string, nodes: number[]): void {
  const before = ids(model.get(name));
  if (before.length === nodes.length && before.every((id, i) => id === nodes[i])) return;
  setTrait(model, name, nodes);
}

function setTrait(model: WidgetModel, name: string, value: unknown): void {
  model.set(name, value);
  try {
    model.save_changes();
  } catch {
    // The channel is closed, and the banner says so; selecting goes on working in the page.
  }
}

function ids(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((id): id is number => typeof id === "number") : [];
}

export default { render, offline, offlinePair };
