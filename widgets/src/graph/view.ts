/**
 * The picture of a model: the one implementation of Picture (../view_contract.ts).
 *
 * It follows the store, keeps what is only visual (camera, folding, hover, selection), and turns gestures and keys into
 * changes of those and into events. Layout, scene and drawing are modules of their own.
 */

import type { Diagnostic, Statistics } from "../protocol.ts";
import type { CommitChange, Store } from "../store.ts";
import type { Theme } from "../theme.ts";
import type { Picture, PictureEvents, PointerTarget } from "../view_contract.ts";
import { facts, type Box } from "./boxes.ts";
import { Camera } from "./canvas/camera.ts";
import { Painter, type Marks } from "./canvas/painter.ts";
import { Surface } from "./canvas/surface.ts";
import { TextFitter } from "./canvas/text.ts";
import { readPalette } from "./canvas/theme.ts";
import { SceneIndex } from "./canvas/visible.ts";
import { type DebugState, describe } from "./debug.ts";
import { Emitter } from "./emitter.ts";
import { below, firstLook } from "./fold.ts";
import { Gestures, type GestureHandler } from "./gestures.ts";
import { Hierarchy } from "./hierarchy.ts";
import { handleCanvasKey } from "./keyboard.ts";
import { GROUP, INPUT, NODE, OUTSIDE, keyOf } from "./keys.ts";
import { Layouter, Superseded } from "./layouter.ts";
import { badgesOf, countsOf, ranValues, selectedBoxes, valuesAround } from "./marks.ts";
import { opTitle } from "./names.ts";
import { Outline } from "./outline.ts";
import { pickAt, type Pick } from "./pick.ts";
import { SceneBuilder, type Scene } from "./scene.ts";
import { Viewpoint, anchorsOf, home, type Anchor } from "./viewpoint.ts";
import { boxOfNode, step, type Direction, type Ground } from "./walk.ts";

export interface GraphViewOptions {
  theme?: Theme;
}

export interface FrameTiming {
  /** Frames drawn so far. */
  frames: number;
  boxes: number;
  /** Milliseconds of all layouts so far, and of this frame's drawing. */
  layoutMs: number;
  paintMs: number;
}

/** Events beyond those of Picture. */
export interface GraphViewEvents extends PictureEvents {
  /** After the first frame of a new scene. */
  frame: FrameTiming;
}

/** Pixels within which a line counts as hit. */
const LINE_SLACK = 6;
/** Zoom that revealing something goes to at least. */
const READING_ZOOM = 0.75;

export class GraphView implements Picture {
  readonly #element: HTMLElement;
  readonly #store: Store;
  readonly #surface: Surface;
  readonly #outline: Outline;
  readonly #gestures: Gestures;
  readonly #camera = new Camera();
  readonly #layouter = new Layouter();
  readonly #emitter = new Emitter<GraphViewEvents>();
  readonly #offs: (() => void)[] = [];
  readonly #abort = new AbortController();
  readonly #viewpoints = new Map<number, Viewpoint>();
  #palette;
  #fitter: TextFitter;
  #painter: Painter;
  #builder: SceneBuilder;

  #scope = 0;
  #hierarchy: Hierarchy | null = null;
  #index: SceneIndex | null = null;
  #build = 0;
  #frames = 0;
  /** A scene or labels that no frame has shown yet. */
  #fresh = false;
  #ready = false;
  #themeTimer = 0;

  #selection: number[] = [];
  #selectedGroup = 0;
  #selectedValue = 0;
  #highlights: number[] = [];
  #diagnostics: readonly Diagnostic[] = [];
  #ran: ReadonlyMap<number, boolean> = new Map();
  #hover: Pick | null = null;
  /** Key of the box that the keyboard is at, 0: none. */
  #focusKey = 0;
  #lasso: Marks["lasso"] = null;
  #marks: Marks | null = null;

  constructor(element: HTMLElement, store: Store, _options: GraphViewOptions = {}) {
    this.#element = element;
    this.#store = store;
    this.#surface = new Surface(element, { paint: () => this.#paint(), resize: (w, h) => this.#resize(w, h) });
    this.#palette = readPalette(element);
    this.#fitter = new TextFitter(this.#surface.context, this.#palette.family);
    this.#painter = this.#makePainter();
    this.#builder = new SceneBuilder(store, this.#layouter, (text, font) => this.#fitter.measure(text, font));
    this.#outline = new Outline(element);
    this.#gestures = new Gestures(element, this.#gestureHandler());
    const { signal } = this.#abort;
    element.addEventListener("keydown", (event) => this.#keyDown(event), { signal });
    this.#outline.element.addEventListener("focus", () => this.#focusChanged(), { signal });
    this.#outline.element.addEventListener("blur", () => this.#focusChanged(), { signal });
    this.#offs.push(store.on("reset", () => this.#reset()), store.on("commit", (change) => this.#follow(change)));
    if (store.scopes.size) this.#reset();
  }

  on<E extends keyof GraphViewEvents>(event: E, listener: (payload: GraphViewEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener);
  }

  destroy(): void {
    for (const off of this.#offs) off();
    this.#abort.abort();
    clearTimeout(this.#themeTimer);
    this.#build++;
    this.#gestures.destroy();
    this.#layouter.destroy();
    this.#outline.destroy();
    this.#surface.destroy();
    this.#emitter.clear();
  }

  // ------------------------------------------------------------------------------------------------ following the store

  #reset(): void {
    const main = [...this.#store.scopes.values()].find((scope) => scope.kind === "graph")?.id ?? 0;
    const kept = this.#store.scopes.has(this.#scope);
    const anchors = kept && this.#index ? this.#anchors() : null;
    if (!kept) {
      this.#viewpoints.clear();
      this.#scope = main;
    }
    this.#hierarchy = null;
    this.#rebuild(anchors);
    if (!kept) this.#emitter.emit("scope", this.#scope);
  }

  #follow(change: CommitChange): void {
    if (!this.#store.scopes.has(this.#scope)) {
      this.#reset();
      return;
    }
    if (change.structural) this.#hierarchy = null;
    // A renamed node or value changes what a box says, and perhaps its width; labels only change what is drawn.
    if (change.structural || change.nodes.length || change.values.length) this.#rebuild(this.#anchors());
    else {
      this.#fresh = true;
      this.#surface.invalidate();
    }
  }

  get #viewpoint(): Viewpoint {
    let viewpoint = this.#viewpoints.get(this.#scope);
    if (!viewpoint) this.#viewpoints.set(this.#scope, (viewpoint = new Viewpoint()));
    return viewpoint;
  }

  /** Everything that finding boxes needs; null before the first scene. */
  get #ground(): Ground | null {
    if (!this.#index || !this.#hierarchy) return null;
    return { store: this.#store, hierarchy: this.#hierarchy, open: this.#viewpoint.open, scene: this.#index.scene };
  }

  /** Lays out and shows the scope as it is now; what anchors name stays where it is on the screen. */
  #rebuild(anchors: Anchor[] | null, then?: () => void): void {
    if (!this.#store.scopes.size) return;
    const build = ++this.#build;
    const hierarchy = (this.#hierarchy ??= new Hierarchy(this.#store, this.#scope));
    const viewpoint = this.#viewpoint;
    if (!viewpoint.looked) {
      viewpoint.looked = true;
      viewpoint.open = firstLook(this.#store, hierarchy);
    }
    const show = (scene: Scene): void => {
      if (build === this.#build) this.#show(scene, anchors, then);
    };
    const built = this.#builder.build(hierarchy, viewpoint.open);
    if (!(built instanceof Promise)) show(built);
    else built.then(show, (error: unknown) => {
      if (!(error instanceof Superseded)) throw error;
    });
  }

  #show(scene: Scene, anchors: Anchor[] | null, then?: () => void): void {
    const changedScope = this.#index?.scene.scope !== scene.scope;
    this.#index = new SceneIndex(scene);
    this.#hover = null;
    if (changedScope || !anchors) this.#viewpoint.restore(this.#camera) || home(this.#camera, scene);
    else this.#viewpoint.keep(this.#camera, scene, anchors);
    then?.();
    this.#fresh = true;
    this.#marksChanged();
    this.#surface.invalidate();
  }

  #anchors(): Anchor[] {
    const ground = this.#ground;
    if (!ground) return [];
    return anchorsOf(this.#camera, ground.scene, [...selectedBoxes(ground, this.#selection, this.#selectedGroup)]);
  }

  // ------------------------------------------------------------------------------------------------------------- drawing

  #makePainter(): Painter {
    return new Painter(this.#surface.context, this.#fitter, this.#palette, {
      facts: (box) => facts(this.#store, box),
      label: (value) => this.#store.values.get(value)?.label ?? "",
      origin: (value) => this.#origin(value),
    });
  }

  /** What a cut line is called at its targets: the name of the value, or of what makes it where that is shorter. */
  #origin(value: number): string {
    const name = this.#store.values.get(value)?.name ?? "";
    const producer = this.#store.nodes.get(this.#store.producer(value)?.node ?? 0);
    return producer && name.length > 16 ? opTitle(producer.op) : name;
  }

  #resize(width: number, height: number): void {
    this.#camera.x += (this.#camera.width - width) / 2 / this.#camera.zoom;
    this.#camera.width = width;
    this.#camera.height = height;
    if (this.#index && !this.#viewpoint.moved) home(this.#camera, this.#index.scene);
  }

  #paint(): void {
    // The surface measures itself while it is being made: there is nothing to draw yet.
    if (!this.#painter || !this.#index) return;
    const began = performance.now();
    this.#marks ??= this.#makeMarks();
    const list = this.#index.visible(this.#camera);
    this.#painter.paint(this.#index, list, this.#camera, this.#marks, this.#surface.pixelRatio);
    this.#frames++;
    if (!this.#fresh) return;
    this.#fresh = false;
    const timing: FrameTiming = {
      frames: this.#frames, boxes: this.#index.scene.boxes.length, layoutMs: this.#layouter.milliseconds,
      paintMs: performance.now() - began,
    };
    performance.mark("onnxlab:frame", { detail: timing });
    this.#emitter.emit("frame", timing);
    if (!this.#ready) {
      this.#ready = true;
      this.#emitter.emit("ready", undefined);
    }
  }

  #makeMarks(): Marks {
    const ground = this.#ground!;
    const hover = this.#hover;
    const strong = new Set<number>();
    if (this.#selectedValue) strong.add(this.#selectedValue);
    if (hover?.what === "value") strong.add(hover.value);
    const hoverBox = hover && (hover.what === "box" || hover.what === "frame") ? hover.index : -1;
    const hovered = ground.scene.boxes[hoverBox];
    if (hovered && (hovered.kind === INPUT || hovered.kind === OUTSIDE)) strong.add(hovered.id);
    return {
      selected: selectedBoxes(ground, this.#selection, this.#selectedGroup),
      focus: this.#keyboardHere() ? this.#focusBox() : -1,
      hover: hoverBox,
      strongValues: strong,
      litValues: valuesAround(this.#store, this.#selection.length > 50 ? [] : this.#selection),
      matches: countsOf(ground, this.#highlights),
      badges: badgesOf(ground, this.#diagnostics),
      ran: this.#ran,
      lasso: this.#lasso,
    };
  }

  /** Selection, search, badges, hover or focus are different: draws again, and tells the outline. */
  #marksChanged(outline = true): void {
    this.#marks = null;
    this.#surface.invalidate();
    if (!outline || !this.#index) return;
    const { scene } = this.#index;
    const marks = (this.#marks = this.#makeMarks());
    this.#outline.update(scene, this.#focusBox(), marks.selected, {
      facts: (i) => facts(this.#store, scene.boxes[i]!).join(", "),
      problems: (i) => {
        const badge = marks.badges.get(i);
        return badge ? `${badge.count} ${badge.severity}${badge.count > 1 ? "s" : ""}` : "";
      },
    });
  }

  setTheme(_theme: Theme): void {
    this.#readTheme();
    // JupyterLab says what theme it has before that theme's style sheet is there.
    clearTimeout(this.#themeTimer);
    this.#themeTimer = setTimeout(() => this.#readTheme(), 300) as unknown as number;
  }

  #readTheme(): void {
    this.#palette = readPalette(this.#element);
    this.#painter = this.#makePainter();
    this.#surface.invalidate();
  }

  // ------------------------------------------------------------------------------------------------- folding and scopes

  get scope(): number {
    return this.#scope;
  }

  fold(group: number): void {
    this.#setOpen([group], false, group);
  }

  unfold(group: number): void {
    this.#setOpen([group], true, group);
  }

  foldAll(): void {
    this.#viewpoint.open = new Set();
    this.#rebuild(this.#anchors(), () => this.fit());
  }

  /** Folds or unfolds a group, or all groups below it too, with the group kept in place. */
  toggle(group: number, all = false): void {
    const open = !this.#viewpoint.open.has(group);
    this.#setOpen(all && this.#hierarchy ? below(this.#hierarchy, group) : [group], open, group);
  }

  #setOpen(groups: number[], open: boolean, anchor: number): void {
    const viewpoint = this.#viewpoint;
    const changed = groups.filter((id) => viewpoint.open.has(id) !== open && this.#hierarchy?.containers.has(id));
    if (!changed.length) return;
    const now = new Set(viewpoint.open);
    for (const id of changed) {
      if (open) now.add(id);
      else now.delete(id);
    }
    viewpoint.open = now;
    const scene = this.#index?.scene;
    const at = scene?.indexOf.get(keyOf(GROUP, anchor));
    const anchors = scene && at !== undefined ? anchorsOf(this.#camera, scene, [at]) : this.#anchors();
    viewpoint.moved = true;
    this.#rebuild(anchors);
  }

  openScope(scope: number): void {
    if (scope === this.#scope || !this.#store.scopes.has(scope)) return;
    this.#viewpoint.save(this.#camera);
    this.#scope = scope;
    this.#hierarchy = null;
    this.#focusKey = 0;
    this.#rebuild(null);
    this.#emitter.emit("scope", scope);
  }

  fit(): void {
    if (!this.#index) return;
    const { width, height } = this.#index.scene;
    this.#camera.fit({ x: 0, y: 0, width, height }, 24);
    this.#viewpoint.moved = true;
    this.#surface.invalidate();
  }

  /** Shows a node: in its scope, with the groups around it open, in view at a size to read. */
  reveal(node: number, { select = false }: { select?: boolean } = {}): void {
    const record = this.#store.nodes.get(node);
    if (!record) return;
    if (select) this.#setSelection([node], 0, 0, false);
    if (record.scope !== this.#scope) {
      this.#viewpoint.save(this.#camera);
      this.#scope = record.scope;
      this.#hierarchy = null;
      this.#emitter.emit("scope", record.scope);
    }
    const hierarchy = (this.#hierarchy ??= new Hierarchy(this.#store, this.#scope));
    const viewpoint = this.#viewpoint;
    if (!viewpoint.looked) {
      viewpoint.looked = true;
      viewpoint.open = firstLook(this.#store, hierarchy);
    }
    const shown = hierarchy.inlined.get(node) ?? node;
    const centre = (): void => {
      const index = this.#index?.scene.indexOf.get(keyOf(NODE, shown));
      if (index !== undefined) this.#bringIntoView(index);
    };
    const closed = hierarchy.around(hierarchy.containerOf(shown) ?? 0).filter((id) => id && !viewpoint.open.has(id));
    this.#focusKey = keyOf(NODE, shown);
    if (!closed.length && this.#index?.scene.scope === this.#scope) {
      centre();
      return;
    }
    viewpoint.open = new Set([...viewpoint.open, ...closed]);
    this.#rebuild(this.#anchors(), centre);
  }

  /** Moves the camera only as far as needed when the box is readable already, else to its middle. */
  #bringIntoView(box: number): void {
    const { scene } = this.#index!;
    this.#viewpoint.bringIntoView(this.#camera, scene, box, READING_ZOOM);
    this.#marksChanged();
  }

  // ------------------------------------------------------------------------------------------------------------ marks in

  /** Ids of the selected nodes; setting them tells nobody. */
  get selection(): number[] {
    return [...this.#selection];
  }

  set selection(nodes: number[]) {
    this.#setSelection(nodes.filter((id) => this.#store.nodes.has(id)), 0, 0, false);
  }

  get selectedValue(): number {
    return this.#selectedValue;
  }

  /** Marks a value in place of nodes; setting it tells nobody. */
  set selectedValue(value: number) {
    this.#setSelection([], 0, this.#store.values.has(value) ? value : 0, false);
  }

  setBadges(diagnostics: Diagnostic[]): void {
    this.#diagnostics = diagnostics;
    this.#marksChanged();
  }

  setHighlights(nodes: number[]): void {
    this.#highlights = nodes;
    this.#marksChanged(false);
  }

  setRunStats(statistics: Statistics[] | null): void {
    this.#ran = ranValues(statistics);
    this.#marksChanged(false);
  }

  #setSelection(nodes: number[], group: number, value: number, tell: boolean): void {
    const before = { nodes: this.#selection, group: this.#selectedGroup, value: this.#selectedValue };
    this.#selection = [...new Set(nodes)];
    this.#selectedGroup = group;
    this.#selectedValue = value;
    this.#marksChanged();
    if (!tell) return;
    if (before.nodes.length || nodes.length) this.#emitter.emit("select", this.selection);
    if (group || (before.group && !nodes.length && !value)) this.#emitter.emit("selectgroup", group);
    if (value || (before.value && !nodes.length && !group)) this.#emitter.emit("selectvalue", value);
  }

  // ------------------------------------------------------------------------------------------------------------ gestures

  #gestureHandler(): GestureHandler {
    return {
      hasFocus: () => this.#keyboardHere(),
      takeFocus: () => this.focus(),
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      hover: (x, y) => this.#hoverAt(x, y),
      leave: () => this.#setHover(null, 0, 0),
      click: (x, y, add) => this.#click(this.#pick(x, y), add),
      doubleClick: (x, y, all) => this.#doubleClick(this.#pick(x, y), all),
      menu: (x, y) => this.#menu(x, y),
      lasso: (x1, y1, x2, y2, done) => this.#drawLasso(x1, y1, x2, y2, done),
      panning: (active) => this.#cursor(active ? "grabbing" : ""),
    };
  }

  /** Takes the keyboard's focus without scrolling the page. */
  focus(): void {
    this.#outline.element.focus({ preventScroll: true });
  }

  #keyboardHere(): boolean {
    return this.#outline.element.matches(":focus");
  }

  #focusChanged(): void {
    this.#marksChanged(false);
  }

  pan(dx: number, dy: number): void {
    if (!this.#index) return;
    this.#camera.pan(dx, dy);
    this.#camera.clampTo(this.#index.scene);
    this.#viewpoint.moved = true;
    this.#surface.invalidate();
  }

  /** Zooms at a point of the element, or at its middle. */
  zoom(factor: number, x = this.#camera.width / 2, y = this.#camera.height / 2): void {
    if (!this.#index) return;
    this.#camera.zoomAt(factor, x, y);
    this.#camera.clampTo(this.#index.scene);
    this.#viewpoint.moved = true;
    this.#surface.invalidate();
  }

  #pick(x: number, y: number): Pick | null {
    if (!this.#index) return null;
    return pickAt(this.#index, this.#camera.toSceneX(x), this.#camera.toSceneY(y), LINE_SLACK / this.#camera.zoom);
  }

  #cursor(cursor: string): void {
    this.#outline.element.style.cursor = cursor;
  }

  #hoverAt(x: number, y: number): void {
    this.#setHover(this.#pick(x, y), x, y);
  }

  #setHover(pick: Pick | null, x: number, y: number): void {
    const before = this.#hover;
    this.#hover = pick;
    const target = pick ? this.#target(pick, x, y) : null;
    const something = target && (target.node || target.value || (target.group && pick!.what !== "ground"));
    this.#cursor(something ? "pointer" : "");
    if (JSON.stringify(before) !== JSON.stringify(pick)) this.#marksChanged(false);
    this.#emitter.emit("hover", something ? target : null);
  }

  /** What a pick means to the panels. */
  #target(pick: Pick, x: number, y: number): PointerTarget {
    const target: PointerTarget = { node: 0, value: 0, group: 0, x, y };
    if (pick.what === "value") target.value = pick.value;
    else {
      const box = this.#index!.scene.boxes[pick.what === "ground" ? pick.frame : pick.index];
      if (box?.kind === NODE) target.node = box.id;
      else if (box?.kind === GROUP) target.group = box.id;
      else if (box) target.value = box.id;
    }
    return target;
  }

  #click(pick: Pick | null, add: boolean): void {
    if (!pick) return;
    if (pick.what === "ground") {
      if (!add) this.#setSelection([], 0, 0, true);
      return;
    }
    if (pick.what === "value") {
      this.#setSelection([], 0, pick.value, true);
      return;
    }
    const box = this.#index!.scene.boxes[pick.index]!;
    if (pick.fold) this.toggle(box.id);
    else if (pick.what === "box" && pick.enter) this.openScope(box.scope);
    else this.selectBox(box, add);
  }

  /** Selects what a box stands for; `add` adds a node to the selection, or takes it out. */
  selectBox(box: Box, add: boolean): void {
    this.#focusKey = box.key;
    if (box.kind === GROUP) this.#setSelection([], box.id, 0, true);
    else if (box.kind !== NODE) this.#setSelection([], 0, box.id, true);
    else if (!add) this.#setSelection([box.id], 0, 0, true);
    else {
      const without = this.#selection.filter((id) => id !== box.id);
      this.#setSelection(without.length < this.#selection.length ? without : [...without, box.id], 0, 0, true);
    }
  }

  #doubleClick(pick: Pick | null, all: boolean): void {
    if (!pick || !this.#index) return;
    if (pick.what === "value") {
      const producer = this.#store.producer(pick.value);
      if (pick.portal >= 0 && producer && !this.#index.scene.portals[pick.portal]!.atSource) this.reveal(producer.node);
      return;
    }
    if (pick.what === "ground") return;
    this.enter(pick.index, all);
  }

  /** Folds, unfolds or enters what a box stands for. */
  enter(index: number, all = false): void {
    const box = this.#index!.scene.boxes[index]!;
    if (box.kind === GROUP) this.toggle(box.id, all);
    else if (box.enter) this.openScope(box.scope);
  }

  #menu(x: number, y: number): void {
    const pick = this.#pick(x, y);
    if (!pick) return;
    const target = this.#target(pick, x, y);
    if (target.node && !this.#selection.includes(target.node)) this.#setSelection([target.node], 0, 0, true);
    this.#emitter.emit("contextmenu", target);
  }

  #drawLasso(x1: number, y1: number, x2: number, y2: number, done: boolean): void {
    const camera = this.#camera;
    const left = camera.toSceneX(Math.min(x1, x2)), top = camera.toSceneY(Math.min(y1, y2));
    const right = camera.toSceneX(Math.max(x1, x2)), bottom = camera.toSceneY(Math.max(y1, y2));
    this.#lasso = done ? null : { x: left, y: top, width: right - left, height: bottom - top };
    if (done && this.#index) {
      const { scene } = this.#index;
      const found = this.#index.boxesIn(left, top, right, bottom).map((i) => scene.boxes[i]!);
      const nodes = found.flatMap((box) => (box.kind === NODE ? [box.id] : []));
      if (nodes.length) this.#setSelection([...this.#selection, ...nodes], 0, 0, true);
    }
    this.#marksChanged(false);
  }

  // ------------------------------------------------------------------------------------------------------------ keyboard

  #keyDown(event: KeyboardEvent): void {
    if (handleCanvasKey(this, event)) event.preventDefault();
  }

  #focusBox(): number {
    const { scene } = this.#index!;
    const node = this.#selection[this.#selection.length - 1];
    const shown = this.#focusKey ? scene.indexOf.get(this.#focusKey) : undefined;
    if (shown !== undefined) return shown;
    return node ? boxOfNode(this.#ground!, node) : -1;
  }

  /** Moves the keyboard's place along values (up, down) or rows, and selects there. */
  walk(direction: Direction, add: boolean): void {
    const ground = this.#ground;
    if (!ground) return;
    const from = this.#focusBox();
    this.#goTo(from < 0 ? this.#viewpoint.middleBox(this.#camera, ground.scene) : step(ground, from, direction), add);
  }

  /** Next or previous box in reading order; false at the end, where Tab leaves the picture. */
  walkOrder(by: 1 | -1): boolean {
    if (!this.#index) return false;
    const from = this.#focusBox();
    const next = from < 0 ? this.#viewpoint.middleBox(this.#camera, this.#index.scene) : from + by;
    return this.#goTo(next, false);
  }

  #goTo(index: number, add: boolean): boolean {
    const box = this.#index?.scene.boxes[index];
    if (!box) return false;
    this.#focusKey = box.key;
    this.selectBox(box, add);
    this.#viewpoint.bringIntoView(this.#camera, this.#index!.scene, index, 0);
    this.#surface.invalidate();
    return true;
  }

  /** Enter: folds, unfolds or enters the box that the keyboard is at. */
  enterFocused(all: boolean): boolean {
    const index = this.#index ? this.#focusBox() : -1;
    if (index >= 0) this.enter(index, all);
    return index >= 0;
  }

  // --------------------------------------------------------------------------------------------------------------- tests

  /** What is on the screen, for browser tests: in pixels of the page's viewport. */
  debug(): DebugState {
    const rect = this.#surface.canvas.getBoundingClientRect();
    return describe(this.#index?.scene ?? null, this.#camera, rect, this.#frames, this.#layouter.milliseconds, this.#scope, (value) =>
      this.#store.values.get(value)?.label ?? "");
  }
}
