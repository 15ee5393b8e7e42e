/** Names of groups at the size of the screen, as on a map: for pictures from so far away that boxes have no words. */

import { BODY, GROUP, NODE, REPEAT } from "../groups/group_keys.ts";
import { FRAME_HEADER, type Scene } from "../scene/scene.ts";
import type { Camera } from "./camera.ts";
import type { TextFitter } from "./text.ts";
import type { Palette } from "./theme.ts";
import { type DrawList, FAR } from "./visible.ts";

/** Zoom below which the title bar of a frame is too low for its title. */
const TITLES_ZOOM = 10 / (0.8 * FRAME_HEADER);
/** Pixels: the longer side of a labeled box at least, the width of a label at least, and its height. */
const LEAST = 44,
  ROOM = 120,
  HEIGHT = 17,
  INSET = 5;
/** Labels drawn at most, the largest first. */
const MOST = 60;

interface Place {
  title: string;
  left: number;
  top: number;
  width: number;
}

/** Whether frames are named by the map instead of in their title bars. */
export function isMap(zoom: number): boolean {
  return zoom < TITLES_ZOOM;
}

/** Draws the labels in pixels of the screen. Returns those drawn, for tests. */
export function paintMapLabels(
  ctx: CanvasRenderingContext2D,
  text: TextFitter,
  palette: Palette,
  scene: Scene,
  list: DrawList,
  camera: Camera,
): string[] {
  ctx.font = text.css("title");
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  const named = chosen(text, scene, list, camera);
  for (const { title, left, top, width } of named) {
    const x = left + width / 2,
      y = top + HEIGHT / 2;
    ctx.lineWidth = 4;
    ctx.strokeStyle = palette.ground;
    ctx.strokeText(title, x, y);
    ctx.fillStyle = palette.text;
    ctx.fillText(title, x, y);
  }
  return named.map(({ title }) => title);
}

/** Labels that do not cover each other, those of the widest first. */
function chosen(text: TextFitter, scene: Scene, list: DrawList, camera: Camera): Place[] {
  const places = candidates(scene, list, camera).sort((a, b) => b.width - a.width),
    placed: Place[] = [];
  for (const place of places) {
    if (placed.length === MOST) break;
    const title = text.fit(place.title, "title", Math.max(ROOM, place.width) - 2 * INSET, false);
    if (!title) continue;
    const width = text.measure(title, "title") + 2 * INSET,
      left = place.left + (place.width - width) / 2;
    const label = { ...place, title, width, left };
    if (placed.every((other) => apart(label, other))) placed.push(label);
  }
  return placed;
}

function candidates({ boxes, x, y, w, h, frame }: Scene, list: DrawList, camera: Camera): Place[] {
  const places: Place[] = [];
  const consider = (i: number): void => {
    const { kind, title } = boxes[i]!;
    if (
      Math.max(w[i]!, h[i]!) * camera.zoom < LEAST ||
      (kind !== GROUP && kind !== REPEAT && kind !== BODY && !(kind === NODE && frame[i]))
    )
      return;
    // a box that reaches beyond the view is labeled in its visible part
    const left = Math.max(0, camera.toScreenX(x[i]!)),
      right = Math.min(camera.width, camera.toScreenX(x[i]! + w[i]!)),
      top = camera.toScreenY(y[i]!),
      height = h[i]! * camera.zoom;
    if (right < left) return;
    const inMiddle = !frame[i];
    places.push({
      title,
      left,
      top: inMiddle ? top + (height - HEIGHT) / 2 : Math.min(Math.max(top, 2), top + Math.max(0, height - HEIGHT)),
      width: right - left,
    });
  };
  list.frames.forEach(consider);
  if (list.detail === FAR) list.boxes.forEach(consider);
  return places;
}

function apart(place: Place, other: Place): boolean {
  return (
    place.left + place.width < other.left ||
    other.left + other.width < place.left ||
    Math.abs(place.top - other.top) > HEIGHT
  );
}
