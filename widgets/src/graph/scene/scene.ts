/** The picture as data: every visible box and line of a scope at its place, ready to draw and to search. */

import type { Box } from "./boxes.ts";
import type { Flow } from "./flow.ts";

/** A frame's title bar, and the space around its content. */
export const FRAME_HEADER = 28;
export const FRAME_PADDING = 16;

/** Text beside a line: a value's shape under its source. */
export interface Label {
  value: number;
  /** Index of the ribbon whose label it is, -1: it is that of one value. */
  ribbon: number;
  /** Left end and baseline middle. */
  x: number;
  y: number;
  room: number;
}

/** One end of a line that is cut: at the source with the number of targets, at a target with the source's name. */
export interface Portal {
  value: number;
  x: number;
  y: number;
  room: number;
  atSource: boolean;
  /** Targets that the cut hides, at the source. */
  count: number;
  /** Index of the box at this end; -1 for a port of a frame. */
  box: number;
  /** Index of the box that the value comes from; -1 for a port of a frame. */
  from: number;
  /** Number of a line that goes on in another column, else 0, and where it goes on. */
  number: number;
  elsewhere: { x: number; y: number } | null;
}

export interface Scene {
  flow: Flow;
  scope: number;
  width: number;
  height: number;
  /** Frames stand before what they contain. */
  boxes: Box[];
  x: Float64Array;
  y: Float64Array;
  w: Float64Array;
  h: Float64Array;
  /** 1 per open box, which is a frame. */
  frame: Uint8Array;
  /** Frames around a frame or box. */
  depth: Uint8Array;
  /** x of a frame's title, where no line passes if there is room; 0 for other boxes. */
  titleX: Float64Array;
  /**
   * x1, y1, x2, y2 per segment, in lines and curves as in LayoutResult; along the flow the second is never before the
   * first.
   */
  segments: Float64Array;
  segmentValue: Int32Array;
  /** Index of the ribbon that a segment is part of, -1: it stands for its value alone. */
  segmentRibbon: Int32Array;
  /** Values that go from box to box as one line. */
  ribbons: readonly (readonly number[])[];
  segmentArrow: Uint8Array;
  /** 1 per segment of a capture: what a subgraph reads from outside of itself. */
  segmentDashed: Uint8Array;
  labels: Label[];
  portals: Portal[];
  indexOf: Map<number, number>;
  /** Whether a container is in columns, or would be if columns were on. */
  isTall: boolean;
  crossings: number;
}
