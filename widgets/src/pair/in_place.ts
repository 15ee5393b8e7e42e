/** Two models in the place of a view, for as long as the kernel says: the view is hidden meanwhile, and stays as it is. */

import type { Client } from "../kernel/client.ts";
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

/** `client` is the hidden view's own: without a kernel there is no pair, and the view says so. */
export function pairInPlace(el: HTMLElement, model: WidgetModel, client: Client, end: () => void): () => void {
  const { ownerDocument } = el;
  let unmount = () => {},
    shows = false;
  const update = () => {
    unmount();
    unmount = () => {};
    const sides = sidesOf(model);
    shows = sides.length > 0 && !["connecting", "gone"].includes(client.connection);
    el.classList.toggle(PAIRED, shows);
    if (!shows) return;
    if (el.contains(ownerDocument.fullscreenElement)) void ownerDocument.exitFullscreen();
    const size: PairSize = {
      height: () =>
        model.get("height") === "fill" ? "fill" : Math.max(LEAST_HEIGHT, Number(model.get("height")) || 0),
      onHeight: (listener) => listen(model, "change:height", listener),
    };
    unmount = mountPair(el, sides, size, end);
  };
  update();
  const offs = [
    listen(model, "change:sides", update),
    client.on("connection", (connection) => (connection === "gone" || !shows) && update()),
  ];
  return () => {
    for (const off of offs) off();
    unmount();
    el.classList.remove(PAIRED);
  };
}
