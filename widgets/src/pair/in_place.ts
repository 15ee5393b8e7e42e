/** Two models in the place of a view, for as long as the kernel says: the view is hidden meanwhile, and stays as it is. */

import { listen, type WidgetModel } from "../kernel/transport.ts";
import { mountPair, type PairSize } from "./mount_pair.tsx";
import { sideTransport } from "./side_transport.ts";

const PAIRED = "ol-paired",
  /** Pixels that two pictures and what differs between them need. */
  LEAST_HEIGHT = 760;

/** Transports of the sides that the kernel compares. */
export function sidesOf(model: WidgetModel) {
  return ["a", "b"].slice(0, Number(model.get("sides")) || 0).map((side) => sideTransport(model, side));
}

export function pairInPlace(el: HTMLElement, model: WidgetModel, end: () => void): () => void {
  const { ownerDocument } = el;
  let unmount = () => {};
  const update = () => {
    unmount();
    unmount = () => {};
    const sides = sidesOf(model);
    el.classList.toggle(PAIRED, sides.length > 0);
    if (!sides.length) return;
    if (el.contains(ownerDocument.fullscreenElement)) void ownerDocument.exitFullscreen();
    const size: PairSize = {
      height: () =>
        model.get("height") === "fill" ? "fill" : Math.max(LEAST_HEIGHT, Number(model.get("height")) || 0),
      onHeight: (listener) => listen(model, "change:height", listener),
    };
    unmount = mountPair(el, sides, size, end);
  };
  update();
  const off = listen(model, "change:sides", update);
  return () => {
    off();
    unmount();
  };
}
