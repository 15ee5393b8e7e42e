/**
 * The picture of a model: the one implementation of Picture (../view_contract.ts).
 *
 * It follows the store, keeps what is only visual (camera, folding, hover, selection), and turns gestures and keys into
 * changes of those and into events. Layout, scene and drawing are modules of their own.
 */

import type { Diagnostic, Statistics } from "../protocol.ts";
import type { CommitChange, Store } from "../store.ts";
import type { Theme } from "../theme.ts";
import type { Picture, PictureEvents } from "../view_contract.ts";
import { facts } from "./boxes.ts";
import { Camera } from "./canvas/camera.ts";
import { Painter, type Marks } from "./canvas/painter.ts";
import { Surface } from "./canvas/surface.ts";
import { TextFitter } from "./canvas/text.ts";
import { readPalette } from "./canvas/theme.ts";
import { SceneIndex } from "./canvas/visible.ts";
import { type DebugState, describe } from "./debug.ts";
import { Emitter } from "./emitter.ts";
import { below, firstLook } from "./fold.ts";
import { Gestures } from "./gestures.ts";
import { Hierarchy } from "./hierarchy.ts";
import { Interaction, type Stage } from "./interaction.ts";
import { handleCanvasKey } from "./keyboard.ts";
import { GROUP, NODE, keyOf } from "./keys.ts";
import { Layouter, Superseded } from "./layouter.ts";
import { ranValues } from "./marks.ts";
import { opTitle } from "./names.ts";
import { Outline } from "./outline.ts";
import { Overlay } from "./overlay.ts";
import { SceneBuilder, type Scene } from "./scene.ts";
import { Viewpoint, anchorsOf, home, type Anchor } from "./viewpoint.ts";
import type { Ground } from "./walk.ts";

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

  readonly #overlay = new Overlay();
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
    const interaction = new Interaction(this.#stage());
    this.#gestures = new Gestures(element, interaction);
    const { signal } = this.#abort;
    element.addEventListener("keydown", (event) => {
      if (handleCanvasKey(interaction, event)) event.preventDefault();
    }, { signal });
    for (const type of ["focus", "blur"]) {
      this.#outline.element.addEventListener(type, () => this.#overlayChanged(false), { signal });
    }
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

  /** The groups of the scope, and how it is looked at: unfolded for a first look. */
  #look(): { hierarchy: Hierarchy; viewpoint: Viewpoint } {
    const hierarchy = (this.#hierarchy ??= new Hierarchy(this.#store, this.#scope));
    const viewpoint = this.#viewpoint;
    if (!viewpoint.looked) {
      viewpoint.looked = true;
      viewpoint.open = firstLook(this.#store, hierarchy);
    }
    return { hierarchy, viewpoint };
  }

  /** Lays out and shows the scope as it is now; what anchors name stays where it is on the screen. */
  #rebuild(anchors: Anchor[] | null, then?: () => void): void {
    if (!this.#store.scopes.size) return;
    const build = ++this.#build;
    const { hierarchy, viewpoint } = this.#look();
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
    this.#overlay.sceneChanged();
    if (changedScope || !anchors) this.#viewpoint.restore(this.#camera) || home(this.#camera, scene);
    else this.#viewpoint.keep(this.#camera, scene, anchors);
    then?.();
    this.#fresh = true;
    this.#overlayChanged(true);
  }

  #anchors(): Anchor[] {
    const ground = this.#ground;
    if (!ground) return [];
    return anchorsOf(this.#camera, ground.scene, [...this.#overlay.selectedBoxes(ground)]);
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
    this.#marks ??= this.#overlay.marks(this.#ground!, this.#hasFocus());
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

  /** Selection, hover, focus, search or problems are different: draws again, and tells the outline if need be. */
  #overlayChanged(spoken: boolean): void {
    this.#marks = null;
    this.#surface.invalidate();
    const ground = this.#ground;
    if (!spoken || !ground) return;
    const marks = (this.#marks = this.#overlay.marks(ground, this.#hasFocus()));
    this.#outline.update(ground.scene, this.#overlay.focusBox(ground), marks.selected, {
      facts: (i) => facts(this.#store, ground.scene.boxes[i]!).join(", "),
      problems: (i) => {
        const badge = marks.badges.get(i);
        return badge ? `${badge.count} ${badge.severity}${badge.count > 1 ? "s" : ""}` : "";
      },
    });
  }

  #cameraChanged(): void {
    if (this.#index) this.#camera.clampTo(this.#index.scene);
    this.#viewpoint.moved = true;
    this.#surface.invalidate();
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
    this.#goToScope(scope);
    this.#overlay.focusKey = 0;
    this.#rebuild(null);
  }

  #goToScope(scope: number): void {
    this.#viewpoint.save(this.#camera);
    this.#scope = scope;
    this.#hierarchy = null;
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
    if (select) this.selection = [node];
    if (record.scope !== this.#scope) this.#goToScope(record.scope);
    const { hierarchy, viewpoint } = this.#look();
    const shown = hierarchy.inlined.get(node) ?? node;
    const centre = (): void => {
      const index = this.#index?.scene.indexOf.get(keyOf(NODE, shown));
      if (index !== undefined) this.#bringIntoView(index);
    };
    const closed = hierarchy.around(hierarchy.containerOf(shown) ?? 0).filter((id) => id && !viewpoint.open.has(id));
    this.#overlay.focusKey = keyOf(NODE, shown);
    if (!closed.length && this.#index?.scene.scope === this.#scope) {
      centre();
      return;
    }
    viewpoint.open = new Set([...viewpoint.open, ...closed]);
    this.#rebuild(this.#anchors(), centre);
  }

  #bringIntoView(box: number): void {
    this.#viewpoint.bringIntoView(this.#camera, this.#index!.scene, box, READING_ZOOM);
    this.#overlayChanged(true);
  }

  // ------------------------------------------------------------------------------------------------------------ marks in

  get selection(): number[] {
    return [...this.#overlay.nodes];
  }

  set selection(nodes: number[]) {
    this.#overlay.select(nodes.filter((id) => this.#store.nodes.has(id)), 0, 0);
    this.#overlayChanged(true);
  }

  get selectedValue(): number {
    return this.#overlay.value;
  }

  set selectedValue(value: number) {
    this.#overlay.select([], 0, this.#store.values.has(value) ? value : 0);
    this.#overlayChanged(true);
  }

  setBadges(diagnostics: Diagnostic[]): void {
    this.#overlay.diagnostics = diagnostics;
    this.#overlayChanged(true);
  }

  setHighlights(nodes: number[]): void {
    this.#overlay.highlights = nodes;
    this.#overlayChanged(false);
  }

  setRunStats(statistics: Statistics[] | null): void {
    this.#overlay.ran = ranValues(statistics);
    this.#overlayChanged(false);
  }

  /** Selects on the user's behalf, and tells. */
  #choose(nodes: readonly number[], group = 0, value = 0): void {
    const before = { nodes: this.#overlay.nodes.length, group: this.#overlay.group, value: this.#overlay.value };
    this.#overlay.select(nodes, group, value);
    this.#overlayChanged(true);
    if (before.nodes || nodes.length) this.#emitter.emit("select", this.selection);
    if (group || (before.group && !nodes.length && !value)) this.#emitter.emit("selectgroup", group);
    if (value || (before.value && !nodes.length && !group)) this.#emitter.emit("selectvalue", value);
  }

  // --------------------------------------------------------------------------------------------------------- interaction

  /** Takes the keyboard's focus without scrolling the page. */
  focus(): void {
    this.#outline.element.focus({ preventScroll: true });
  }

  #hasFocus(): boolean {
    return this.#outline.element.matches(":focus");
  }

  #stage(): Stage {
    const view = this;
    return {
      store: this.#store,
      overlay: this.#overlay,
      camera: this.#camera,
      get index() { return view.#index; },
      get ground() { return view.#ground; },
      get viewpoint() { return view.#viewpoint; },
      hasFocus: () => this.#hasFocus(),
      focus: () => this.focus(),
      fit: () => this.fit(),
      choose: (nodes, group, value) => this.#choose(nodes, group, value),
      toggle: (group, all) => this.toggle(group, all),
      openScope: (scope) => this.openScope(scope),
      reveal: (node) => this.reveal(node),
      overlayChanged: (spoken) => this.#overlayChanged(spoken),
      cameraChanged: () => this.#cameraChanged(),
      setCursor: (cursor) => (this.#outline.element.style.cursor = cursor),
      hovered: (target) => this.#emitter.emit("hover", target),
      menuAsked: (target) => this.#emitter.emit("contextmenu", target),
    };
  }

  // --------------------------------------------------------------------------------------------------------------- tests

  /** What is on the screen, for browser tests: in pixels of the page's viewport. */
  debug(): DebugState {
    const rect = this.#surface.canvas.getBoundingClientRect();
    return describe(this.#index?.scene ?? null, this.#camera, rect, this.#frames, this.#layouter.milliseconds, this.#scope, (value) =>
      this.#store.values.get(value)?.label ?? "");
  }
}
