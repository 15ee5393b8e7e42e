/**
 * What anywidget loads for each view: a few lines that fetch the bundle from the kernel once for a page.
 *
 * anywidget imports the text that a widget brings anew for every widget, and a browser keeps an imported module for
 * good: with the whole bundle in it every view that was ever opened would cost a megabyte until the page is closed.
 * The style sheet comes with it: as a trait it would be a part of the state of every view.
 */

import type { WidgetModel } from "./kernel/transport.ts";

interface Context {
  model: WidgetModel;
  el: HTMLElement;
}

interface Bundle {
  render(context: Context): () => void;
}

/** Milliseconds between two questions, and how often is asked: a kernel may be busy with a cell for long. */
const PATIENCE = 3000,
  TIMES = 1200;

const page = globalThis as typeof globalThis & { __onnxlabBundles?: Map<string, Promise<{ default: Bundle }>> };
const bundles = (page.__onnxlabBundles ??= new Map());

/** The bundle of a version: the page's own, or what the kernel answers; null where no kernel does. */
function load(model: WidgetModel): Promise<{ default: Bundle } | null> {
  const version = String(model.get("bundle") ?? "");
  const known = bundles.get(version);
  if (known) return known;
  return new Promise((resolve) => {
    let asked = 0;
    const stop = (): void => {
      clearInterval(timer);
      model.off("msg:custom", onMessage);
      model.off("destroy", onDestroy);
    };
    const onMessage = (content: { bundle?: unknown; code?: unknown; styles?: unknown }): void => {
      if (content?.bundle !== version || typeof content.code !== "string") return;
      stop();
      if (!bundles.has(version)) {
        addStyles(String(content.styles ?? ""));
        bundles.set(version, evaluate(content.code));
      }
      resolve(bundles.get(version)!);
    };
    const onDestroy = (): void => {
      stop();
      resolve(null);
    };
    const ask = (): void => {
      if (bundles.has(version)) {
        stop();
        resolve(bundles.get(version)!);
      } else if (asked++ === TIMES) onDestroy();
      else send(model, onDestroy);
    };
    model.on("msg:custom", onMessage);
    model.on("destroy", onDestroy);
    const timer = setInterval(ask, PATIENCE);
    ask();
  });
}

function send(model: WidgetModel, failed: () => void): void {
  try {
    model.send({ bundle: model.get("bundle") });
  } catch {
    failed(); // the channel is closed: the static picture stays
  }
}

function addStyles(text: string): void {
  const styles = document.createElement("style");
  styles.textContent = text;
  document.head.append(styles);
}

async function evaluate(code: string): Promise<{ default: Bundle }> {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function render(context: Context): Promise<() => void> {
  const bundle = await load(context.model);
  return bundle ? bundle.default.render(context) : () => undefined;
}

export default { render };
