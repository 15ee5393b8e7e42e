/** The picture in words and numbers, for tests in a browser. */

import type { Store } from "../../model/store.ts";
import type { Camera } from "../canvas/camera.ts";
import type { Renderer } from "../canvas/renderer.ts";
import { FONTS } from "../canvas/text.ts";
import { detailAt, FAR, NEAR } from "../canvas/visible.ts";
import { ALL, BODY, GROUP, INPUT, type Kind, NODE, OUTPUT, OUTSIDE, REPEAT, SHOWN } from "../groups/group_keys.ts";
import { SIGN_RADIUS } from "../layout/columns.ts";
import type { Box, Measure } from "../scene/boxes.ts";
import type { Portal, Scene } from "../scene/scene.ts";
import type { Words } from "../scene/words.ts";
import type { Explorer } from "./explorer.ts";

export interface DebugBox {
  /** Id of the node, group, value or scope; of a repeat, of its first group. */
  id: number;
  kind: "node" | "group" | "body" | "repeat" | "frame" | "input" | "output" | "outside";
  /** Frames around it. */
  depth: number;
  label: string;
  /** The kind, and the number of units that it stands for: 1 but for stages and repeats. */
  about: string;
  units: number;
  /** Whether it is a repeat of equal groups, folded or open. */
  isRepeat: boolean;
  /** Place of its last node in the file. */
  order: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface DebugState {
  scope: number;
  zoom: number;
  /** The nodes that would have boxes if all were unfolded. */
  nodes: number;
  boxes: DebugBox[];
  /** Beside lines; `area`: what of it is written. */
  labels: { value: number; text: string; x: number; y: number; area: Area }[];
  /** The ends of cut lines: numbers, and names. */
  signs: Area[];
  portals: number;
  frames: number;
  layoutMs: number;
  crossings: number;
  canvas: Area;
  /** Pixels of the smallest text in boxes; 0 where none is drawn. */
  smallestText: number;
  /** The panels on the canvas. */
  panels: Area[];
}

export interface Area {
  x: number;
  y: number;
  w: number;
  h: number;
}

const KINDS: Record<Kind, DebugBox["kind"]> = {
  [NODE]: "node",
  [GROUP]: "group",
  [INPUT]: "input",
  [OUTPUT]: "output",
  [OUTSIDE]: "outside",
  [BODY]: "body",
  [REPEAT]: "repeat",
  [ALL]: "repeat",
  [SHOWN]: "repeat",
};

export interface Shown {
  scene: Scene | null;
  camera: Camera;
  /** Rectangle of the canvas in the browser's viewport. */
  place: DOMRect;
  scope: number;
  frames: number;
  layoutMs: number;
  label(value: number): string;
  measure: Measure;
  store: Store;
  repeatOf(group: number): { groups: readonly number[]; period: number } | null;
  /** Place of the last node of a box in the file. */
  orderOf(key: number): number;
  nodes: number;
  panels: DOMRect[];
}

/** Boxes and labels at their places in the browser's viewport, in pixels; those out of view are listed too. */
export function describe(shown: Shown): DebugState {
  const { scene, camera, place, scope, frames, layoutMs, label } = shown;
  const x = (sceneX: number): number => place.left + camera.toScreenX(sceneX);
  const y = (sceneY: number): number => place.top + camera.toScreenY(sceneY);
  return {
    scope,
    zoom: camera.zoom,
    nodes: shown.nodes,
    boxes: (scene?.boxes ?? []).map((box, i) => ({
      id: box.id,
      depth: scene!.depth[i]!,
      kind: scene!.frame[i] ? "frame" : KINDS[box.kind],
      label: box.title,
      ...meaning(shown, box),
      x: x(scene!.x[i]!),
      y: y(scene!.y[i]!),
      w: scene!.w[i]! * camera.zoom,
      h: scene!.h[i]! * camera.zoom,
    })),
    labels: (scene?.labels ?? []).map((item) => ({
      value: item.value,
      text: label(item.value),
      x: x(item.x),
      y: y(item.y),
      area: written(shown, item.x, item.y, label(item.value), item.room),
    })),
    signs: (scene?.portals ?? []).map((portal) => sign(shown, portal)),
    portals: scene?.portals.length ?? 0,
    frames,
    layoutMs,
    crossings: scene?.crossings ?? 0,
    canvas: areaOf(place),
    smallestText: smallestText(camera.zoom),
    panels: shown.panels.map(areaOf),
  };
}

/** Half of the height of a line of small text. */
const HALF = 6;

/** The place of a text from a point of the scene on. */
function written({ camera, place, measure }: Shown, x: number, y: number, text: string, room: number): Area {
  const width = room < 14 ? 0 : Math.min(measure(text, "small"), room);
  return {
    x: place.left + camera.toScreenX(x),
    y: place.top + camera.toScreenY(y - HALF),
    w: width * camera.zoom,
    h: 2 * HALF * camera.zoom,
  };
}

function sign({ camera, place }: Shown, { x, y, number }: Portal): Area {
  const radius = number ? SIGN_RADIUS : 0;
  return {
    x: place.left + camera.toScreenX(x - radius),
    y: place.top + camera.toScreenY(y - radius),
    w: 2 * radius * camera.zoom,
    h: 2 * radius * camera.zoom,
  };
}

function areaOf({ left, top, width, height }: DOMRect): Area {
  return { x: left, y: top, w: width, h: height };
}

/** The smallest size of text: titles that stand alone grow to 10 pixels. */
function smallestText(zoom: number): number {
  const detail = detailAt(zoom);
  if (detail === FAR) return 0;
  return detail === NEAR ? FONTS.small.size * zoom : 10;
}

function meaning(
  { store, repeatOf, orderOf }: Shown,
  { key, kind, id }: Box,
): { about: string; units: number; isRepeat: boolean; order: number } {
  if (kind !== GROUP && kind !== REPEAT) return { about: "", units: 1, isRepeat: false, order: orderOf(key) };
  const group = store.groups.get(id),
    repeat = kind === REPEAT ? repeatOf(id) : null;
  return {
    about: group?.about ?? "",
    units: repeat ? repeat.groups.length : group?.units || 1,
    isRepeat: repeat !== null,
    order: orderOf(key),
  };
}

/** The state of a view, as tests read it. */
export function stateOf(
  explorer: Explorer,
  renderer: Renderer,
  words: Words,
  store: Store,
  minimap: { readonly element: HTMLElement },
): DebugState {
  return describe({
    scene: explorer.index?.scene ?? null,
    camera: renderer.camera,
    place: renderer.place,
    scope: explorer.scope,
    frames: renderer.frames,
    layoutMs: explorer.layoutMs,
    label: (value) => words.label(value),
    measure: renderer.measure,
    store,
    repeatOf: (group) => explorer.repeatOf(group),
    orderOf: (key) => explorer.ground?.hierarchy.lastOf(key) ?? -1,
    nodes: explorer.ground?.hierarchy.nodes.length ?? 0,
    panels: minimap.element.checkVisibility() ? [minimap.element.getBoundingClientRect()] : [],
  });
}
