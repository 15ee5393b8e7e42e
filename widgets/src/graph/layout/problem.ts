/**
 * The layered drawing problem and its solution, as typed arrays that cross to a Worker cheaply.
 *
 * Boxes are numbered from 0. A net is one value: it leaves one box at the bottom and enters others at the top. All
 * lengths are CSS pixels at zoom 1; y grows downwards.
 */

/** The range of a box: anywhere, or (boundary ports of a group) above or below everything else. */
export const FREE = 0;
export const TOP = 1;
export const BOTTOM = 2;

export interface LayoutInput {
  /** Number of boxes. */
  count: number;
  width: Float32Array;
  height: Float32Array;
  /** FREE, TOP or BOTTOM per box. */
  pin: Uint8Array;
  /** Box that each net leaves. */
  netSource: Int32Array;
  /** Targets of net i are netTarget[netStart[i] .. netStart[i + 1]). */
  netStart: Int32Array;
  netTarget: Int32Array;
  /** x where each net leaves its box, from the box's left edge; NaN lets the layout choose. */
  sourcePort: Float32Array;
  /** x where each target is entered, from that box's left edge; NaN lets the layout choose. */
  targetPort: Float32Array;
  /** x center of each box in an earlier layout, NaN for new boxes; null when there was none. Keeps edits calm. */
  hint: Float32Array | null;
  /** Row of each box in an earlier layout, -1 for new boxes: goes with `hint`. */
  hintRow?: Int32Array | null;
  /** 1 per net that very much reads: it keeps lines only to the row below what makes it; left out: none. */
  shared?: Uint8Array;
  /** Whether long and wide fan-outs may be cut into portals; left out: yes. */
  portals?: boolean;
}

/** The shape of the line to a target. */
export const LINE = 0;
/** A line cut into two named stubs, because it would be long or one of very many. */
export const PORTAL = 1;
/** A line against the flow, which still runs downwards: from the target's bottom to the source's top. */
export const REVERSED = 2;
/** A line that is not drawn: the target is the source. */
export const LOOP = 3;

/** Flags of a segment: where its arrowhead is. */
export const ARROW_NONE = 0;
export const ARROW_DOWN = 1;
export const ARROW_UP = 2;

export interface LayoutResult {
  /** Left top corner per box. */
  x: Float32Array;
  y: Float32Array;
  /** Row per box, from 0. */
  row: Int32Array;
  /** The end of each row: curves to the rows below begin there. */
  rowBottom: Float32Array;
  /** Extent of everything, boxes, lines and strips for labels included; the left top corner is (0, 0). */
  width: number;
  height: number;
  /** LINE, PORTAL, REVERSED or LOOP per target. */
  style: Uint8Array;
  /** Four numbers per segment: x1, y1 above x2, y2. A segment whose x differ is a curve with vertical ends. */
  segments: Float32Array;
  segmentNet: Int32Array;
  segmentArrow: Uint8Array;
  /** Absolute x where each net leaves its source. */
  sourceX: Float32Array;
  /** Absolute x where each target is entered. */
  targetX: Float32Array;
  /** Pixels to the right of the source stem that are free for the value's label. */
  labelRoom: Float32Array;
  /** Pixels to the right of the target stem that are free for a portal's name. */
  portalRoom: Float32Array;
  crossings: number;
  /** Lines that go on in the next column, in a layout in columns. */
  joints: Joint[];
}

/** A line that ends at the foot of a column and goes on at the head of the next: the middles of two signs. */
export interface Joint {
  net: number;
  number: number;
  fromX: number;
  fromY: number;
  toX: number;
  toY: number;
}

/** Horizontal gap between neighboring boxes, and where a line passes. */
export const BOX_GAP = 24;
export const WIRE_GAP = 12;
/** Height under a box for the labels of what leaves it, and above a box for portals that enter it. */
export const LABEL_STRIP = 17;
/** Width to the right of every stem that a label finds at least at the right end of a layout. */
export const LABEL_WIDTH = 112;
/** Height between two rows, for the curves. */
export const ROW_GAP = 14;
/** Height between two rows where all lines between them are straight. */
export const STRAIGHT_GAP = 10;
export const ROW_GAP_MAX = 52;
