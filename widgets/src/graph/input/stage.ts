/** The side of a view that gestures and keys see: the Stage of interaction.ts, over the view's parts. */

import type { Emitter } from "../../emitter.ts";
import type { Store } from "../../model/store.ts";
import type { PictureEvents } from "../../view_contract.ts";
import type { Renderer } from "../canvas/renderer.ts";
import { idOf, NODE } from "../groups/group_keys.ts";
import type { MarkLayer } from "../marks/mark_layer.ts";
import type { Outline } from "../marks/outline.ts";
import type { Explorer } from "../view/explorer.ts";
import type { Stage } from "./interaction.ts";

/** Nodes of which the kernel is asked whether a wire may end there. */
const WIRED = 2000;

interface Parts {
  readonly store: Store;
  readonly explorer: Explorer;
  readonly renderer: Renderer;
  readonly layer: MarkLayer;
  readonly outline: Outline;
  readonly emitter: Pick<Emitter<PictureEvents>, "emit">;
}

type Actions = Pick<
  Stage,
  "focus" | "fit" | "choose" | "openScope" | "reveal" | "enter" | "cameraChanged" | "listRibbon"
>;

export function stageOf({ store, explorer, renderer, layer, outline, emitter }: Parts, actions: Actions): Stage {
  return {
    ...actions,
    store,
    overlay: layer.overlay,
    camera: renderer.camera,
    get index() {
      return explorer.index;
    },
    get ground() {
      return explorer.ground;
    },
    get viewpoint() {
      return explorer.viewpoint;
    },
    hasFocus: () => layer.hasFocus,
    toggle: (key, all) => explorer.setOpen(key, !explorer.isOpen(key), all),
    turnRepeat: (key) => explorer.setAll(key, !explorer.repeatOf(idOf(key))?.all),
    overlayChanged: (spoken) => layer.changed(spoken),
    setCursor: (cursor) => (outline.element.style.cursor = cursor),
    hovered: (target) => emitter.emit("hover", target),
    wireGrabbed: (value) => emitter.emit("wire", { value, shown: nodesInView(explorer, renderer) }),
    wireOver: (node) => emitter.emit("wireover", node),
    wireDropped: (node, share) => emitter.emit("wiredrop", { node, share }),
    menuAsked: (target) => emitter.emit("contextmenu", target),
  };
}

/** Nodes whose boxes are on the screen. */
function nodesInView({ index }: Explorer, { camera }: Renderer): number[] {
  if (!index) return [];
  const { boxes } = index.visible(camera.view, camera.zoom);
  return [...boxes]
    .map((i) => index.scene.boxes[i]!)
    .filter(({ kind }) => kind === NODE)
    .map(({ id }) => id)
    .slice(0, WIRED);
}
