/** Ports: where the values of a box leave it, to be dragged to what shall read them. Pure. */

import type { Store } from "../../model/store.ts";
import type { SceneIndex } from "../canvas/visible.ts";
import { INPUT, NODE } from "../groups/group_keys.ts";
import type { Scene } from "../scene/scene.ts";

export interface Port {
  value: number;
  x: number;
  y: number;
}

/** Pixels around a port that count as it. */
export const PORT_SLACK = 9;

/** The ports of a box, along the edge that the picture reads to; none for what is no node or input. */
export function portsOf(scene: Scene, store: Store, at: number): Port[] {
  const box = scene.boxes[at];
  if (!box || scene.frame[at] || (box.kind !== NODE && box.kind !== INPUT)) return [];
  const values = box.kind === INPUT ? [box.id] : (store.nodes.get(box.id)?.outputs ?? []).filter((value) => value > 0);
  const [x, y, w, h] = [scene.x[at]!, scene.y[at]!, scene.w[at]!, scene.h[at]!];
  return values.map((value, i) => {
    const share = (i + 1) / (values.length + 1);
    return scene.flow === "right" ? { value, x: x + w, y: y + h * share } : { value, x: x + w * share, y: y + h };
  });
}

/** The port at a point of the scene; null where there is none within `slack`. */
export function portAt(index: SceneIndex, store: Store, x: number, y: number, slack: number): Port | null {
  for (const at of index.boxesNear(x, y, slack)) {
    const port = portsOf(index.scene, store, at).find(
      (candidate) => Math.hypot(candidate.x - x, candidate.y - y) <= slack,
    );
    if (port) return port;
  }
  return null;
}
