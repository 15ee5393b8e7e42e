/** The layer over the plain picture: selection, hover, keyboard focus, search matches, problems, runs. No DOM. */

import type { Diagnostic, Statistics } from "../../kernel/protocol.ts";
import type { Heat } from "../../look/node_heat.ts";
import type { Given } from "../../view_contract.ts";
import type { Badge, Marks } from "../canvas/painter.ts";
import { INPUT, OUTSIDE } from "../groups/group_keys.ts";
import { boxOfNode, type Ground } from "../input/walk.ts";
import type { Pick } from "../scene/pick.ts";
import {
  badgesOf,
  boxesOfValues,
  comingOf,
  countsOf,
  faintBoxes,
  heatOfBoxes,
  ranValues,
  selectedBoxes,
  trailBoxes,
  valuesAround,
} from "./marks.ts";

/** Selected nodes whose values are lit at most: where all are lit, none stands out. */
const LIT_NODES = 50;
/** Changed values whose groups flash at most: the nearest to the edit come first. */
const FLASHED = 5000;
/** Boxes that the small map marks. */
const LANDMARKS = 400;

export class Overlay {
  /** Selected nodes; at most one of nodes, group and value is set. */
  nodes: readonly number[] = [];
  group = 0;
  value = 0;
  hover: Pick | null = null;
  /** Key of the box that the keyboard is at, 0: none. */
  focusKey = 0;
  lasso: Marks["lasso"] = null;
  wire: Marks["wire"] = null;
  /** Ports of the box under the pointer. */
  ports: Marks["ports"] = [];
  #dimmed: readonly number[] = [];
  #lit: readonly number[] = [];
  #going: Given["going"] = [];
  #coming: Given["coming"] = [];
  #heat: Heat | null = null;
  #ran: Marks["ran"] = new Map();
  pinned: ReadonlySet<number> = new Set();
  thumbnail: Given["thumbnail"] = null;
  /** The node that cannot accept the last edit, 0: none. */
  refusing = 0;
  #changed: ReadonlyMap<number, readonly [before: string, now: string]> = new Map();
  #highlights: readonly number[] = [];
  #diagnostics: readonly Diagnostic[] = [];
  #bookmarks: readonly number[] = [];
  #trail: Given["trail"] = { nodes: new Set(), values: new Set() };
  #counted: {
    badBoxes: ReadonlySet<number>;
    trail: ReadonlySet<number> | null;
    bookmarks: ReadonlyMap<number, number>;
    changedBoxes: ReadonlySet<number>;
    matches: Map<number, number>;
    heat: Marks["heat"];
    dimmed: Map<number, number>;
    going: Map<number, number>;
    coming: Map<number, string>;
    badges: Map<number, Badge>;
  } | null = null;

  /** Computes the marks anew: scene or folding changed, so that boxes have other indices. */
  sceneChanged(): void {
    this.hover = null;
    this.#counted = null;
  }

  set highlights(nodes: readonly number[]) {
    this.#highlights = nodes;
    this.#counted = null;
  }

  set heat(heat: Heat | null) {
    this.#heat = heat;
    this.#counted = null;
  }

  set statistics(statistics: readonly Statistics[] | null) {
    this.#ran = ranValues(statistics);
    this.#counted = null;
  }

  set bookmarks(nodes: readonly number[]) {
    this.#bookmarks = nodes;
    this.#counted = null;
  }

  set trail(trail: Given["trail"]) {
    this.#trail = trail;
    this.#counted = null;
  }

  /** Boxes to be found in the small map: bookmarks, selection, matches, what refuses. */
  landmarks(ground: Ground): number[] {
    const marks = this.marks(ground, false);
    const boxes = [
      ...marks.bookmarks.keys(),
      ...marks.selected,
      ...marks.matches.keys(),
      ...(marks.refusing >= 0 ? [marks.refusing] : []),
    ];
    return boxes.slice(0, LANDMARKS);
  }

  set changed(changed: ReadonlyMap<number, readonly [before: string, now: string]>) {
    this.#changed = changed;
    this.#counted = null;
  }

  set dimmed(nodes: readonly number[]) {
    this.#dimmed = nodes;
    this.#counted = null;
  }

  set lit(nodes: readonly number[]) {
    this.#lit = nodes;
    this.#counted = null;
  }

  set going(nodes: Given["going"]) {
    this.#going = nodes;
    this.#counted = null;
  }

  set coming(coming: Given["coming"]) {
    this.#coming = coming;
    this.#counted = null;
  }

  set diagnostics(diagnostics: readonly Diagnostic[]) {
    this.#diagnostics = diagnostics;
    this.#counted = null;
  }

  select(nodes: readonly number[], group: number, value: number): void {
    this.nodes = [...new Set(nodes)];
    this.group = group;
    this.value = value;
  }

  /** Index of the box that the keyboard is at, that of the last selected node by default; -1 for none. */
  focusBox(ground: Ground): number {
    const shown = this.focusKey ? ground.scene.indexOf.get(this.focusKey) : undefined;
    if (shown !== undefined) return shown;
    const last = this.nodes[this.nodes.length - 1];
    return last ? boxOfNode(ground, last) : -1;
  }

  selectedBoxes(ground: Ground): Set<number> {
    return selectedBoxes(ground, this.nodes, this.group);
  }

  /**
   * The marks to draw; `keyboard`: whether the focus is shown; `flash`: how strongly changed shapes are marked.
   */
  marks(ground: Ground, keyboard: boolean, flash = 0): Marks {
    this.#counted ??= {
      trail: this.#trail.nodes.size ? trailBoxes(ground, this.#trail.nodes) : null,
      bookmarks: countsOf(ground, this.#bookmarks),
      badBoxes: boxesOfValues(
        ground,
        [...this.#ran].filter(([, { bad }]) => bad).map(([value]) => value),
      ),
      changedBoxes: boxesOfValues(ground, [...this.#changed.keys()].slice(0, FLASHED)),
      matches: countsOf(ground, this.#highlights),
      heat: this.#heat && heatOfBoxes(ground, this.#heat),
      dimmed: faintBoxes(ground, this.#dimmed, this.#lit),
      going: countsOf(ground, this.#going),
      coming: comingOf(ground, this.#coming),
      badges: badgesOf(ground, this.#diagnostics),
    };
    const { hover } = this;
    const hoverBox = hover && (hover.what === "box" || hover.what === "frame") ? hover.index : -1;
    const strongValues = new Set<number>();
    if (this.value) strongValues.add(this.value);
    if (hover?.what === "value")
      for (const value of ground.scene.ribbons[hover.ribbon] ?? [hover.value]) strongValues.add(value);
    const hovered = ground.scene.boxes[hoverBox];
    if (hovered && (hovered.kind === INPUT || hovered.kind === OUTSIDE)) strongValues.add(hovered.id);
    return {
      selected: this.selectedBoxes(ground),
      focus: keyboard ? this.focusBox(ground) : -1,
      hover: hoverBox,
      strongValues,
      litValues: this.#trail.values.size
        ? this.#trail.values
        : valuesAround(ground.store, this.nodes.length > LIT_NODES ? [] : this.nodes),
      ...this.#counted,
      ran: this.#ran,
      pinned: this.pinned,
      thumbnail: this.thumbnail,
      changed: this.#changed,
      flash,
      refusing: this.refusing ? boxOfNode(ground, this.refusing) : -1,
      lasso: this.lasso,
      wire: this.wire,
      ports: this.ports,
    };
  }
}
