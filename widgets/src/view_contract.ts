/** The picture as the panels see it. graph/view/view.ts is the one implementation; tests use a smaller one. */

import type { Flow, Reading } from "./graph/scene/flow.ts";
import type { InView } from "./graph/view/lookout.ts";
import type { Diagnostic, Statistics } from "./kernel/protocol.ts";
import type { Heat } from "./look/node_heat.ts";
import type { Theme } from "./look/page_theme.ts";

/** The target of the pointer. Ids are 0 where it is on something else. */
export interface PointerTarget {
  node: number;
  value: number;
  group: number;
  /** Place in CSS pixels, relative to the view's element. */
  x: number;
  y: number;
}

/** The place and the size of a thing; `build` tells whether boxes are still where they were. */
export interface Place {
  scope: number;
  x: number;
  y: number;
  zoom: number;
  build: number;
}

/** A box by key and where the middle of its top edge is on the screen. */
export interface Anchor {
  key: number;
  x: number;
  y: number;
}

/** The look at a scope, so that a picture beside it can show the same. */
export interface Look {
  scope: number;
  /** Keys of what is open. */
  open: ReadonlySet<number>;
  /** The layout: its direction, and whether a group around nearly everything has no frame. */
  flow: "down" | "right";
  frameless: boolean;
  zoom: number;
  /** Whether all of the scope shows. */
  whole: boolean;
  /** The anchors that are to stay where they are, the most important first. */
  anchors: readonly Anchor[];
}

export interface PictureEvents {
  /** The selection changed; node ids. */
  select: number[];
  selectvalue: number;
  selectgroup: number;
  hover: PointerTarget | null;
  contextmenu: PointerTarget;
  /** A wire of a selected value is being dragged; `shown`: nodes on the screen. */
  wire: { value: number; shown: number[] };
  /** The node under a dragged wire, 0: none. */
  wireover: number;
  /** A wire was let go of on a node (0: nowhere), `share` of its width from its left edge. */
  wiredrop: { node: number; share: number };
  /** The scope shown now. */
  scope: number;
  /** The direction of the picture now; whether a container is in columns, or would be if columns were on. */
  laidout: { flow: Flow; isTall: boolean };
  /** The view is about to jump elsewhere. */
  leave: void;
  /** Other groups show, or one is inside of others. */
  seen: InView;
  /** The view was moved or zoomed, or something folded. */
  looked: void;
  ready: void;
}

/** The layer over the plain picture. Nodes and values by id. */
export interface Given {
  diagnostics: readonly Diagnostic[];
  /** Nodes that a search found. */
  highlights: readonly number[];
  /** Numbers to color boxes by, null: they are colored by what they are. */
  heat: Heat | null;
  /** Nodes to draw faintly. */
  dimmed: readonly number[];
  /** Nodes whose boxes are not faint, whatever else they hold. */
  lit: readonly number[];
  /** Nodes that a rewrite would take out. */
  going: readonly number[];
  /** The nodes of a rewrite: those in whose place others come, and operators; none where a node is only changed. */
  coming: readonly (readonly [node: number, operators: readonly string[]])[];
  /** The nodes and values that alone are drawn strongly; no nodes: everything is. */
  trail: { nodes: ReadonlySet<number>; values: ReadonlySet<number> };
  bookmarks: readonly number[];
  pinned: ReadonlySet<number>;
  /** A small picture of a value's numbers where there is one already; asks for it where there is none. */
  thumbnail: ((value: number) => CanvasImageSource | null) | null;
  /** The statistics of a run, null: nothing any more. */
  statistics: readonly Statistics[] | null;
}

export interface Picture {
  /** Ids of the selected nodes; setting them notifies no listener. */
  selection: number[];
  /** The value that is marked, 0: none. Setting it unselects nodes and notifies no listener. */
  selectedValue: number;
  /** The group that is marked, 0: none. Setting it unselects nodes and notifies no listener. */
  selectedGroup: number;
  /** The wished direction. */
  reading: Reading;
  /** Whether what is many times taller than wide is drawn in columns. */
  columns: boolean;
  /** Whether nodes that only make parameters have boxes of their own. */
  constants: boolean;
  readonly scope: number;
  readonly place: Place;
  /** Goes to a place; where boxes have moved since, to a node instead (0: none). */
  show(place: Place, node: number): void;
  /** The look of the view, null before anything shows; `show` takes that of a picture beside it. */
  readonly linked: { readonly look: Look | null; show(look: Look): void };
  fit(): void;
  /** Goes back to where a group was entered by a double-click; false where none was. */
  back(): boolean;
  /** The target at a point of the browser's viewport; null outside of the picture. */
  targetAt(clientX: number, clientY: number): PointerTarget | null;
  /** Moves to what is selected if nothing of it shows; opens nothing. */
  seek(): void;
  reveal(node: number, options?: { select?: boolean }): void;
  fold(group: number): void;
  unfold(group: number): void;
  foldAll(): void;
  /** Opens everything, runs of equal groups to all of them. */
  unfoldAll(): void;
  /** Brings a group into view, with what is around it open, and marks it. */
  revealGroup(group: number): void;
  /**
   * The groups like it in the run that a group is drawn in, and whether that shows all; null where it is drawn alone.
   */
  repeatOf(group: number): { likes: number[]; all: boolean } | null;
  /** Lets the run of a group show all its groups, or one for all. */
  showAll(group: number, all: boolean): void;
  openScope(scope: number): void;
  /** Marks what is given; the other marks stay. */
  mark(marks: Partial<Given>): void;
  /**
   * Flashes the values that an edit changed, with what they were, and marks the node that cannot accept it (0: none).
   */
  setChanged(changed: ReadonlyMap<number, readonly [before: string, now: string]>, refusing: number): void;
  /** The groups that each group is equal to, itself among them. */
  setEqual(groups: ReadonlyMap<number, readonly number[]>): void;
  /** Shows or hides the small map of all. */
  toggleMinimap(): void;
  setTheme(theme: Theme): void;
  on<E extends keyof PictureEvents>(event: E, listener: (payload: PictureEvents[E]) => void): () => void;
  destroy(): void;
}
