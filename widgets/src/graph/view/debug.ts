/** The picture in words and numbers, for tests in a browser. */

import type { Camera } from "../canvas/camera.ts";
import { ALL, BODY, GROUP, INPUT, type Kind, NODE, OUTPUT, OUTSIDE, RUN, SHOWN } from "../groups/group_keys.ts";
import type { Scene } from "../scene/scene.ts";

export interface DebugBox {
  /** Of the node, group, value or scope; of a run that of its first group. */
  id: number;
  kind: "node" | "group" | "body" | "run" | "frame" | "input" | "output" | "outside";
  /** Frames around it. */
  depth: number;
  label: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface DebugState {
  scope: number;
  zoom: number;
  boxes: DebugBox[];
  labels: { value: number; text: string; x: number; y: number }[];
  portals: number;
  frames: number;
  layoutMs: number;
  crossings: number;
}

const KINDS: Record<Kind, DebugBox["kind"]> = {
  [NODE]: "node",
  [GROUP]: "group",
  [INPUT]: "input",
  [OUTPUT]: "output",
  [OUTSIDE]: "outside",
  [BODY]: "body",
  [RUN]: "run",
  [ALL]: "run",
  [SHOWN]: "run",
};

export interface Shown {
  scene: Scene | null;
  camera: Camera;
  /** Of the canvas in the browser's viewport. */
  place: { left: number; top: number };
  scope: number;
  frames: number;
  layoutMs: number;
  label(value: number): string;
}

/** Boxes and labels at their places in the browser's viewport, in pixels; those out of view are listed too. */
export function describe({ scene, camera, place, scope, frames, layoutMs, label }: Shown): DebugState {
  const x = (sceneX: number): number => place.left + camera.toScreenX(sceneX);
  const y = (sceneY: number): number => place.top + camera.toScreenY(sceneY);
  return {
    scope,
    zoom: camera.zoom,
    boxes: (scene?.boxes ?? []).map((box, i) => ({
      id: box.id,
      depth: scene!.depth[i]!,
      kind: scene!.frame[i] ? "frame" : KINDS[box.kind],
      label: box.title,
      x: x(scene!.x[i]!),
      y: y(scene!.y[i]!),
      w: scene!.w[i]! * camera.zoom,
      h: scene!.h[i]! * camera.zoom,
    })),
    labels: (scene?.labels ?? []).map((each) => ({
      value: each.value,
      text: label(each.value),
      x: x(each.x),
      y: y(each.y),
    })),
    portals: scene?.portals.length ?? 0,
    frames,
    layoutMs,
    crossings: scene?.crossings ?? 0,
  };
}
