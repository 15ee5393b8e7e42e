/**
 * The module that anywidget loads for each view: a few lines that fetch the bundle from the kernel once for a page.
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

/** A bundle that the page has, and the style sheet that its views need. */
interface Loaded {
  bundle: Bundle;
  styles: string;
}

/** Milliseconds between two questions, and how often is asked: a kernel may be busy with a cell for long. */
const PATIENCE = 3000,
  TIMES = 1200;

const page = globalThis as typeof globalThis & { __onnxlabLoaded?: Map<string, Promise<Loaded>> };
const bundles = (page.__onnxlabLoaded ??= new Map());

/** The bundle of a version: the page's own, or what the kernel answers; null where no kernel does. */
function load(model: WidgetModel): Promise<Loaded | null> {
  const version = String(model.get("bundle") ?? "");
  const known = bundles.get(version);
  if (known) return known;
  return new Promise((resolve) => {
    let attempts = 0;
    const stop = (): void => {
      clearInterval(timer);
      model.off("msg:custom", onMessage);
      model.off("destroy", onDestroy);
    };
    const onMessage = (content: { bundle?: unknown; code?: unknown; styles?: unknown }): void => {
      if (content?.bundle !== version || typeof content.code !== "string") return;
      stop();
      if (!bundles.has(version)) {
        bundles.set(version, evaluate(content.code, String(content.styles ?? "")));
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
      } else if (attempts++ === TIMES) onDestroy();
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

/**
 * Puts the style sheet into the tree that the view is in, once: the page's head, or a shadow root, into which no
 * style of the page reaches. Returns whether the view was in a tree at all.
 */
function addStyles(el: HTMLElement, version: string, text: string): boolean {
  const root = el.getRootNode(),
    around = root instanceof ShadowRoot ? root : document.head;
  if (![...around.querySelectorAll<HTMLElement>("style")].some((style) => style.dataset.onnxlab === version)) {
    const styles = document.createElement("style");
    styles.dataset.onnxlab = version;
    styles.textContent = text;
    around.append(styles);
  }
  return el.isConnected;
}

async function evaluate(code: string, styles: string): Promise<Loaded> {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  try {
    const module: { default: Bundle } = await import(url);
    return { bundle: module.default, styles };
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function render({ model, el }: Context): Promise<() => void> {
  const loaded = await load(model);
  if (!loaded) return () => undefined;
  const style = () => addStyles(el, String(model.get("bundle") ?? ""), loaded.styles);
  // Some hosts put a view on the page after it is made; only then it is known where that is.
  if (!style()) requestAnimationFrame(style);
  return loaded.bundle.render({ model, el });
}

export default { render };
