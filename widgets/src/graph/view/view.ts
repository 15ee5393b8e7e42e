/**
 * The picture of a model: the one implementation of Picture (../view_contract.ts).
 *
 * It follows the store, keeps what is only visual (camera, folding, hover, selection), and turns gestures and keys into
 * changes of those and into events. Layout, scene and drawing are modules of their own.
 */

import { Emitter } from "../../emitter.ts";
import type { Theme } from "../../look/page_theme.ts";
import type { CommitChange, Store } from "../../model/store.ts";
import type { Given, Picture, PictureEvents, Place, PointerTarget } from "../../view_contract.ts";
import type { Marks } from "../canvas/painter.ts";
import { Renderer } from "../canvas/renderer.ts";
import type { SceneIndex } from "../canvas/visible.ts";
import { GROUP, idOf, keyOf } from "../groups/group_keys.ts";
import { Gestures } from "../input/gestures.ts";
import { Interaction } from "../input/interaction.ts";
import { handleCanvasKey } from "../input/keyboard.ts";
import { stageOf } from "../input/stage.ts";
import { MarkLayer } from "../marks/mark_layer.ts";
import { Minimap } from "../marks/minimap.ts";
import { type Frame, Motion } from "../marks/motion.ts";
import { Outline } from "../marks/outline.ts";
import { RibbonList } from "../marks/ribbon_list.ts";
import type { Reading } from "../scene/flow.ts";
import { Words } from "../scene/words.ts";
import { type DebugState, stateOf } from "./debug.ts";
import { Entering } from "./entering.ts";
import { Explorer } from "./explorer.ts";
import { LinkedLook } from "./linked_look.ts";
import { Lookout } from "./lookout.ts";
import { type FrameTiming, noteFrame } from "./timing.ts";
import { isOccupied } from "./viewpoint.ts";

/** Whether the system asks for reduced motion. */
const calm = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Events beyond those of Picture. */
export interface GraphViewEvents extends PictureEvents {
  /** Sent after the first frame of a new scene. */
  frame: FrameTiming;
}

export class GraphView implements Picture {
  readonly #store: Store;
  readonly #words: Words;
  readonly #renderer: Renderer;
  readonly #explorer: Explorer;
  readonly #entering: Entering;
  readonly #outline: Outline;
  readonly #layer: MarkLayer;
  readonly #gestures: Gestures;
  readonly #interaction: Interaction;
  readonly #emitter = new Emitter<GraphViewEvents>();
  readonly #offs: (() => void)[] = [];
  readonly #abort = new AbortController();
  readonly #minimap: Minimap;
  readonly #ribbonList: RibbonList;
  readonly #lookout = new Lookout(
    () => this.#explorer?.index && { index: this.#explorer.index, camera: this.#renderer.camera },
    (seen) => this.#emitter.emit("seen", seen),
  );
  readonly linked = new LinkedLook(
    () => this.#explorer,
    () => this.#renderer,
    () => this.#emitter.emit("looked", undefined),
  );
  readonly #motion = new Motion(calm);
  #ready = false;
  /** Whether the selection is to be sought in the first scene. */
  #seeking = false;

  constructor(element: HTMLElement, store: Store) {
    this.#store = store;
    this.#outline = new Outline(element);
    this.#words = new Words(store, (group) => this.#explorer.repeatOf(group));
    this.#layer = new MarkLayer({
      words: this.#words,
      outline: this.#outline,
      minimap: () => this.#minimap,
      ground: () => this.#explorer?.ground ?? null,
      invalidate: () => this.#renderer.invalidate(),
      calm,
    });
    this.#renderer = new Renderer(element, {
      texts: this.#words,
      current: () => this.#current(),
      // The first size comes while the canvas is being made, before there is anything to show.
      resized: () => this.#explorer?.resized(),
      painted: () => {
        this.#minimap?.follow();
        this.#lookout.follow();
        this.linked.follow();
      },
      themed: () => this.#minimap?.themeChanged(),
      shown: (paintMs) => this.#shown(paintMs),
    });
    this.#explorer = new Explorer(store, this.#renderer.camera, this.#renderer.measure, {
      anchored: (ground) => this.#layer.overlay.selectedBoxes(ground),
      shown: () => this.#newScene(),
      scopeChanged: (scope) => this.#emitter.emit("scope", scope),
      moved: (before, after, shift) => this.#motion.start(before, after, shift),
      leaving: () => this.#emitter.emit("leave", undefined),
    });
    this.#entering = new Entering(this.#explorer, this.#renderer.camera);
    const interaction = (this.#interaction = new Interaction(
      stageOf(
        {
          store,
          explorer: this.#explorer,
          renderer: this.#renderer,
          layer: this.#layer,
          outline: this.#outline,
          emitter: this.#emitter,
        },
        {
          focus: () => this.focus(),
          fit: () => this.fit(),
          choose: (nodes, group, value) => this.#choose(nodes, group, value),
          openScope: (scope) => this.openScope(scope),
          reveal: (node) => this.reveal(node),
          enter: (key, all) => this.#entering.enter(key, all),
          cameraChanged: () => this.#cameraChanged(),
          listRibbon: (values, x, y) => this.#ribbonList.open(values, x, y),
        },
      ),
    ));
    this.#ribbonList = new RibbonList(element, this.#words, (value) => {
      this.focus();
      if (value) this.#choose([], 0, value);
    });
    this.#gestures = new Gestures(element, interaction);
    this.#minimap = new Minimap(element, this.#renderer.camera, {
      palette: () => this.#renderer.palette,
      moved: () => this.#cameraChanged(),
      covers: (...rect) => {
        const { index } = this.#explorer;
        return index !== null && isOccupied(this.#renderer.camera, index, rect);
      },
    });
    const { signal } = this.#abort;
    element.addEventListener(
      "keydown",
      (event) => {
        if (handleCanvasKey(interaction, event)) event.preventDefault();
      },
      { signal },
    );
    for (const type of ["focus", "blur"]) {
      this.#outline.element.addEventListener(type, () => this.#layer.changed(false), { signal });
    }
    this.#offs.push(
      store.on("reset", () => this.#explorer.reset()),
      store.on("commit", (change) => this.#follow(change)),
    );
    if (store.scopes.size) this.#explorer.reset();
  }

  on<E extends keyof GraphViewEvents>(event: E, listener: (payload: GraphViewEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener);
  }

  destroy(): void {
    for (const off of this.#offs) off();
    this.#abort.abort();
    this.#layer.destroy();
    this.#minimap.destroy();
    this.#gestures.destroy();
    this.#lookout.destroy();
    this.#explorer.destroy();
    this.#outline.destroy();
    this.#renderer.destroy();
    this.#emitter.clear();
  }

  #follow(change: CommitChange): void {
    // A renamed node or value changes what a box says, and perhaps its width; labels only change what is drawn.
    if (change.structural || change.nodes.length || change.values.length) this.#explorer.follow(change.structural);
    else this.#renderer.changed();
  }

  #newScene(): void {
    this.#ribbonList.close();
    const { flow, isTall } = this.#explorer.index!.scene;
    this.#emitter.emit("laidout", { flow, isTall });
    this.#layer.sceneChanged();
    this.#renderer.changed();
    if (this.#seeking) this.seek();
  }

  #current(): { index: SceneIndex; marks: Marks; motion: Frame | null } | null {
    const { ground, index } = this.#explorer;
    if (!ground || !index) return null;
    const motion = this.#motion.frame(index.scene);
    if (motion) this.#renderer.invalidate();
    return { index, marks: this.#layer.of(ground), motion };
  }

  #shown(paintMs: number): void {
    const timing: FrameTiming = {
      frames: this.#renderer.frames,
      boxes: this.#explorer.index!.scene.boxes.length,
      layoutMs: this.#explorer.layoutMs,
      paintMs,
    };
    noteFrame(timing);
    this.#emitter.emit("frame", timing);
    if (this.#ready) return;
    this.#ready = true;
    this.#emitter.emit("ready", undefined);
  }

  #cameraChanged(): void {
    const { index, viewpoint } = this.#explorer;
    if (index) this.#renderer.camera.clampTo(index.scene);
    viewpoint.moved = true;
    this.#renderer.invalidate();
  }

  /** The colors themselves are in the page's style sheets: the name only says that they are others. */
  setTheme(_theme: Theme): void {
    this.#renderer.themeChanged();
  }

  targetAt(clientX: number, clientY: number): PointerTarget | null {
    const { left, top, right, bottom } = this.#renderer.place;
    const inside = clientX >= left && clientX <= right && clientY >= top && clientY <= bottom;
    return inside ? this.#interaction.targetAt(clientX - left, clientY - top) : null;
  }

  // ------------------------------------------------------------------------------------------------ folding and scopes

  get scope(): number {
    return this.#explorer.scope;
  }

  fold(group: number): void {
    this.#explorer.setOpen(keyOf(GROUP, group), false);
  }

  unfold(group: number): void {
    this.#explorer.setOpen(keyOf(GROUP, group), true);
  }

  repeatOf(group: number): { likes: number[]; all: boolean } | null {
    const repeat = this.#explorer.repeatOf(group);
    if (!repeat) return null;
    const place = repeat.groups.indexOf(keyOf(GROUP, group)) % repeat.period;
    return { likes: repeat.groups.filter((_, i) => i % repeat.period === place).map(idOf), all: repeat.all };
  }

  showAll(group: number, all: boolean): void {
    const repeat = this.#explorer.repeatOf(group);
    if (repeat) this.#explorer.setAll(repeat.key, all);
  }

  revealGroup(group: number): void {
    if (this.#explorer.revealGroup(group)) this.selectedGroup = group;
  }

  unfoldAll(): void {
    this.#explorer.unfoldAll();
  }

  foldAll(): void {
    this.#explorer.foldAll();
  }

  openScope(scope: number): void {
    if (this.#explorer.openScope(scope)) this.#layer.overlay.focusKey = 0;
  }

  back(): boolean {
    return this.#entering.back();
  }

  fit(): void {
    this.#explorer.fit();
    this.#renderer.invalidate();
  }

  /** Shows a node: in its scope, with the groups around it open, in view at a size to read. */
  reveal(node: number, { select = false }: { select?: boolean } = {}): void {
    if (select) this.selection = [node];
    this.#layer.overlay.focusKey = this.#explorer.reveal(node) || this.#layer.overlay.focusKey;
  }

  // ---------------------------------------------------------------------------------------------------------- marks in

  get selection(): number[] {
    return [...this.#layer.overlay.nodes];
  }

  set selection(nodes: number[]) {
    const known = nodes.filter((id) => this.#store.nodes.has(id));
    this.#layer.overlay.select(known, 0, 0);
    this.#layer.changed(true);
  }

  seek(): void {
    const { ground } = this.#explorer;
    this.#seeking = !ground;
    if (ground) this.#explorer.seek([...this.#layer.overlay.selectedBoxes(ground)]);
  }

  get reading(): Reading {
    return this.#explorer.reading;
  }

  set reading(reading: Reading) {
    this.#explorer.reading = reading;
  }

  get columns(): boolean {
    return this.#explorer.columns;
  }

  set columns(columns: boolean) {
    this.#explorer.columns = columns;
  }

  get constants(): boolean {
    return this.#explorer.constants;
  }

  set constants(constants: boolean) {
    this.#explorer.constants = constants;
  }

  get selectedGroup(): number {
    return this.#layer.overlay.group;
  }

  set selectedGroup(group: number) {
    this.#layer.overlay.select([], this.#store.groups.has(group) ? group : 0, 0);
    this.#layer.changed(true);
  }

  get selectedValue(): number {
    return this.#layer.overlay.value;
  }

  set selectedValue(value: number) {
    this.#layer.overlay.select([], 0, this.#store.values.has(value) ? value : 0);
    this.#layer.changed(true);
  }

  mark(marks: Partial<Given>): void {
    this.#layer.give(marks);
  }

  setChanged(changed: ReadonlyMap<number, readonly [string, string]>, refusing: number): void {
    this.#layer.setChanged(changed, refusing);
  }

  setEqual(groups: ReadonlyMap<number, readonly number[]>): void {
    this.#words.equal = groups;
    this.#renderer.invalidate();
  }

  toggleMinimap(): void {
    this.#minimap.wanted = !this.#minimap.wanted;
  }

  get place(): Place {
    return this.#explorer.place;
  }

  show(place: Place, node: number): void {
    this.#explorer.show(place, node);
    this.#renderer.invalidate();
  }

  /** Selects by a gesture or key, and tells the listeners. */
  #choose(nodes: readonly number[], group = 0, value = 0): void {
    const before = {
      nodes: this.#layer.overlay.nodes.length,
      group: this.#layer.overlay.group,
      value: this.#layer.overlay.value,
    };
    this.#layer.overlay.select(nodes, group, value);
    this.#layer.changed(true);
    if (before.nodes || nodes.length) this.#emitter.emit("select", this.selection);
    if (group || (before.group && !nodes.length && !value)) this.#emitter.emit("selectgroup", group);
    if (value || (before.value && !nodes.length && !group)) this.#emitter.emit("selectvalue", value);
  }

  // ------------------------------------------------------------------------------------------------------- interaction

  /** Takes the keyboard's focus without scrolling the page; by pointer, without a ring around the picture. */
  focus(): void {
    const options: FocusOptions & { focusVisible?: boolean } = { preventScroll: true, focusVisible: false };
    this.#outline.element.focus(options);
  }

  /** The screen for browser tests: in pixels of the page's viewport. */
  debug(): DebugState {
    return stateOf(this.#explorer, this.#renderer, this.#words, this.#store, this.#minimap);
  }
}
