/**
 * The direction of a picture. Layouts know only one: rows from top to bottom. A picture that reads to the right is laid
 * out with widths and heights exchanged, and turned when it is put together: "along" is the way of the lines, "across"
 * the other.
 */

import { isTerminal, REPEAT } from "../groups/group_keys.ts";
import type { LayoutResult } from "../layout/problem.ts";
import type { Box } from "./boxes.ts";
import { FRAME_HEADER, FRAME_PADDING } from "./scene.ts";

export type Flow = "down" | "right";
/** The wish for a direction: one of them, or the one that suits the canvas. */
export type Reading = Flow | "auto";

/** Room behind a box that reads to the right, for the shape on its line. */
const LABEL_ROOM = 96;

/** A box as layouts see it. */
export function extent(flow: Flow, box: Box, open: boolean): { across: number; along: number } {
  const height = box.height + (open ? 0 : stack(box));
  if (flow === "down") return { across: box.width, along: height };
  return { across: height, along: box.width + tail(flow, box, open) };
}

/** Height of the edges that show below what is folded: there is more inside. */
export function stack({ folds, kind }: Box): number {
  return folds ? (kind === REPEAT ? 8 : 4) : 0;
}

/** The length of the line of a box within the room that layouts take for the box. */
export function tail(flow: Flow, { kind }: Box, open: boolean): number {
  return flow === "right" && !open && !isTerminal(kind) ? LABEL_ROOM : 0;
}

/** The place at which the content of a frame begins, its title bar being at the top either way. */
export function inset(flow: Flow, box: Box, inner: LayoutResult): { across: number; along: number } {
  if (flow === "down") return { across: (box.width - inner.width) / 2, along: FRAME_HEADER };
  return { across: FRAME_HEADER, along: FRAME_PADDING };
}

/** The size of a frame around its content. */
export function frameSize(flow: Flow, inner: LayoutResult, leastWidth: number): { width: number; height: number } {
  const [width, height] = flow === "down" ? [inner.width, inner.height] : [inner.height, inner.width];
  return { width: Math.max(width + 2 * FRAME_PADDING, leastWidth), height: FRAME_HEADER + height + FRAME_PADDING };
}
