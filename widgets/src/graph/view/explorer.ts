/**
 * The part of the model that is shown: the scope, its open groups, and the scene that follows from them and the store.
 *
 * Each scope remembers how it was looked at. Every change ends in one scene, the last asked for; what is
 * looked at stays where it is on the screen.
 */

import type { Store } from "../../model/store.ts";
import type { Anchor, Place } from "../../view_contract.ts";
import type { Camera } from "../canvas/camera.ts";
import { SceneIndex } from "../canvas/visible.ts";
import { firstScope } from "../groups/first_scope.ts";
import { repeatAround, withAll, withAround, withFolded, withOpen } from "../groups/fold.ts";
import { GROUP, keyOf, NODE } from "../groups/group_keys.ts";
import { Hierarchy } from "../groups/hierarchy.ts";
import type { Repeat } from "../groups/repeat_words.ts";
import { boxOfContainer, type Ground } from "../input/walk.ts";
import type { Measure } from "../scene/boxes.ts";
import type { Flow, Reading } from "../scene/flow.ts";
import { Superseded } from "../scene/layouter.ts";
import type { Scene } from "../scene/scene.ts";
import { ScopeScenes } from "./scope_scenes.ts";
import { anchorsOf, home, isInView, isReadable, RESIZED_MS, Viewpoint } from "./viewpoint.ts";

export interface ExplorerOptions {
  /** Boxes that the camera should keep in place when the picture changes. */
  anchored(ground: Ground): Iterable<number>;
  /** Called when a new scene is there. */
  shown(): void;
  scopeChanged(scope: number): void;
  /** Boxes moved from one scene to the next; `shift` takes a point of the one to where it showed, in the other. */
  moved(before: Scene, after: Scene, shift: { x: number; y: number; scale: number }): void;
  /** Called before the view jumps elsewhere. */
  leaving(): void;
}

/** Zoom that revealing something goes to at least. */
const READING_ZOOM = 0.75;

export class Explorer {
  scope = 0;
  index: SceneIndex | null = null;
  readonly #store: Store;
  readonly #camera: Camera;
  readonly #options: ExplorerOptions;
  readonly #scenes: ScopeScenes;
  readonly #viewpoints = new Map<number, Viewpoint>();
  #hierarchy: Hierarchy | null = null;
  #build = 0;
  #resizing: ReturnType<typeof setTimeout> | undefined;
  #constants = false;

  constructor(store: Store, camera: Camera, measure: Measure, options: ExplorerOptions) {
    this.#store = store;
    this.#camera = camera;
    this.#options = options;
    this.#scenes = new ScopeScenes(store, camera, measure);
  }

  destroy(): void {
    this.#build++;
    clearTimeout(this.#resizing);
    this.#scenes.destroy();
  }

  get reading(): Reading {
    return this.#scenes.reading;
  }

  /** Lets pictures read another way. */
  set reading(reading: Reading) {
    if (reading === this.#scenes.reading) return;
    this.#scenes.reading = reading;
    this.#redraw();
  }

  get columns(): boolean {
    return this.#scenes.columns;
  }

  /** Whether what is very tall is put into columns. */
  set columns(columns: boolean) {
    if (columns === this.#scenes.columns) return;
    this.#scenes.columns = columns;
    this.#redraw();
  }

  get constants(): boolean {
    return this.#constants;
  }

  /** Whether nodes that only make parameters have boxes of their own. */
  set constants(constants: boolean) {
    if (constants === this.#constants) return;
    this.#constants = constants;
    this.#hierarchy = null;
    this.#rebuild(this.anchors());
  }

  /** Lays out everything anew; what is looked at stays in view. */
  #redraw(): void {
    for (const viewpoint of this.#viewpoints.values()) viewpoint.forget();
    const { moved } = this.viewpoint;
    this.#rebuild(moved ? this.anchors() : null, () => {
      if (!moved && this.index) home(this.#camera, this.index.scene);
    });
  }

  /** Milliseconds of all layouts so far. */
  get layoutMs(): number {
    return this.#scenes.layoutMs;
  }

  get viewpoint(): Viewpoint {
    let viewpoint = this.#viewpoints.get(this.scope);
    if (!viewpoint) this.#viewpoints.set(this.scope, (viewpoint = new Viewpoint()));
    return viewpoint;
  }

  /** Everything that finding boxes needs; null before the first scene. */
  get ground(): Ground | null {
    if (!this.index || !this.#hierarchy) return null;
    return { store: this.#store, hierarchy: this.#hierarchy, open: this.viewpoint.open, scene: this.index.scene };
  }

  /** The model was loaded (again): shows the scope shown before if it is still there, else the first to be seen. */
  reset(): void {
    const scopeRemains = this.#store.scopes.has(this.scope);
    const anchors = scopeRemains && this.index ? this.anchors() : null;
    if (!scopeRemains) {
      this.#viewpoints.clear();
      this.scope = firstScope(this.#store);
    }
    this.#hierarchy = null;
    this.#rebuild(anchors);
    if (!scopeRemains) this.#options.scopeChanged(this.scope);
  }

  /** The model changed: in its structure, or in words that boxes are as wide as. */
  follow(structural: boolean): void {
    if (!this.#store.scopes.has(this.scope)) {
      this.reset();
      return;
    }
    if (structural) this.#hierarchy = null;
    this.#rebuild(this.anchors());
  }

  /** The groups of the scope, and how it is looked at. */
  #look(): { hierarchy: Hierarchy; viewpoint: Viewpoint } {
    const { viewpoint } = this;
    this.#hierarchy ??= new Hierarchy(this.#store, this.scope, this.#constants, viewpoint.frameless);
    return { hierarchy: this.#hierarchy, viewpoint };
  }

  /** Lays out and shows the scope as it is now; what anchors name stays where it is on the screen. */
  #rebuild(anchors: Anchor[] | null, then?: () => void): void {
    if (!this.#store.scopes.size) return;
    const build = ++this.#build;
    const { hierarchy, viewpoint } = this.#look(),
      isFirst = !viewpoint.looked;
    const show = (scene: Scene): void => {
      if (build !== this.#build) return;
      if (isFirst && viewpoint.frameless && !isReadable(scene, this.#camera)) {
        Object.assign(viewpoint, { frameless: false, looked: false });
        this.#hierarchy = null;
        this.#rebuild(anchors, then);
      } else this.#show(scene, anchors, then);
    };
    const built = this.#scenes.of(hierarchy, viewpoint);
    if (!(built instanceof Promise)) show(built);
    else built.then(show, (error: unknown) => Superseded.ignore(error));
  }

  #show(scene: Scene, anchors: Anchor[] | null, then?: () => void): void {
    const before = this.index?.scene,
      { x, y, zoom } = this.#camera;
    const changedScope = before?.scope !== scene.scope;
    this.index = new SceneIndex(scene);
    if (changedScope || !anchors) this.viewpoint.restore(this.#camera) || home(this.#camera, scene);
    else this.viewpoint.keep(this.#camera, scene, anchors);
    if (before && anchors && !changedScope) {
      const scale = zoom / this.#camera.zoom;
      this.#options.moved(before, scene, { x: this.#camera.x - x * scale, y: this.#camera.y - y * scale, scale });
    }
    then?.();
    this.#options.shown();
  }

  /** Boxes that are to stay where they are on the screen, the most important first. */
  anchors(): Anchor[] {
    const { ground } = this;
    return ground ? anchorsOf(this.#camera, ground.scene, [...this.#options.anchored(ground)]) : [];
  }

  get place(): Place {
    const { x, y, zoom } = this.#camera;
    return { scope: this.scope, x, y, zoom, build: this.#build };
  }

  /** Goes back to a place; where boxes have moved since, to a node instead (0: none). */
  show(place: Place, node: number): void {
    const moved = place.build !== this.#build;
    if (moved && this.#store.nodes.has(node)) {
      this.#reveal(node);
      return;
    }
    if (!this.#store.scopes.has(place.scope)) return;
    const arrive = (): void => {
      Object.assign(this.#camera, { x: place.x, y: place.y, zoom: place.zoom });
      if (this.index) this.#camera.clampTo(this.index.scene);
      this.viewpoint.moved = true;
    };
    if (place.scope === this.scope) {
      arrive();
      this.#options.shown();
    } else {
      this.#goTo(place.scope);
      this.#rebuild(null, arrive);
    }
  }

  /** Shows all that there is. */
  fit(): void {
    if (this.index) this.viewpoint.fit(this.#camera, this.index.scene);
  }

  /** The view has another size: an untouched first look is made for the new one, and what was fitted is so again. */
  resized(): void {
    if (!this.index) return;
    if (this.viewpoint.moved) {
      if (this.viewpoint.isFitted(this.#camera, this.index.scene)) this.fit();
      return;
    }
    home(this.#camera, this.index.scene);
    clearTimeout(this.#resizing);
    this.#resizing = setTimeout(() => {
      if (this.viewpoint.moved) return;
      Object.assign(this.viewpoint, { frameless: true, looked: false });
      this.#hierarchy = null;
      this.#rebuild(null);
    }, RESIZED_MS);
  }

  isOpen(key: number): boolean {
    return this.viewpoint.open.has(key);
  }

  /** Folds or unfolds what has a key (`all`: and all below it), which stays in place. */
  setOpen(key: number, open: boolean, all = false, then?: () => void): void {
    const hierarchy = this.#hierarchy;
    if (!hierarchy?.containers.has(key)) return;
    const change = open ? withOpen : withFolded;
    this.#unfold(change(hierarchy, this.viewpoint.open, key, all), key, then);
  }

  /** The repeat around a group, and whether it shows all its groups; null for other groups. */
  repeatOf(group: number): Repeat | null {
    return this.#hierarchy && repeatAround(this.#hierarchy, this.viewpoint.open, group);
  }

  /** Lets a repeat show all its groups, or one for all. */
  setAll(repeat: number, all: boolean): void {
    const hierarchy = this.#hierarchy;
    if (hierarchy?.containers.has(repeat)) this.#unfold(withAll(hierarchy, this.viewpoint.open, repeat, all), repeat);
  }

  /** Shows the scope with other things open; what has a key stays in place. */
  #unfold(open: ReadonlySet<number>, key: number, then?: () => void): void {
    const { viewpoint, ground } = this;
    if (open.size === viewpoint.open.size && [...open].every((opened) => viewpoint.open.has(opened))) return;
    const at = ground ? boxOfContainer(ground, key) : -1;
    viewpoint.open = open;
    viewpoint.moved = true;
    this.#rebuild(ground && at >= 0 ? anchorsOf(this.#camera, ground.scene, [at]) : this.anchors(), then);
  }

  /** Shows the scope as it was. */
  restore(open: ReadonlySet<number>, then: () => void): void {
    Object.assign(this.viewpoint, { open, looked: true });
    this.#rebuild(this.anchors(), then);
  }

  /** Has the next scene laid out as another picture's is, without regard to the present one. */
  layOutAs(flow: Flow, frameless: boolean): void {
    if (frameless !== this.viewpoint.frameless) this.#hierarchy = null;
    Object.assign(this.viewpoint, { flow, frameless });
    this.#scenes.forget();
  }

  /** Opens everything, repeats to all their groups. */
  unfoldAll(): void {
    this.#showAll(withOpen(this.#look().hierarchy, this.viewpoint.open, 0, true));
  }

  foldAll(): void {
    this.#showAll(new Set());
  }

  #showAll(open: ReadonlySet<number>): void {
    this.viewpoint.open = open;
    this.#rebuild(this.anchors(), () => this.fit());
  }

  /** Shows another graph: a subgraph, a function, the main graph. False when that is shown or does not exist. */
  openScope(scope: number): boolean {
    if (scope === this.scope || !this.#store.scopes.has(scope)) return false;
    this.#options.leaving();
    this.#goTo(scope);
    this.#rebuild(null);
    return true;
  }

  #goTo(scope: number): void {
    this.viewpoint.save(this.#camera);
    this.scope = scope;
    this.#hierarchy = null;
    this.#options.scopeChanged(scope);
  }

  /**
   * Brings a node into view: in its scope, with the groups around it open. Returns the key of the box that shows it.
   */
  reveal(node: number): number {
    if (this.#store.nodes.has(node)) this.#options.leaving();
    return this.#reveal(node);
  }

  #reveal(node: number): number {
    const record = this.#store.nodes.get(node);
    if (!record) return 0;
    if (this.#look().hierarchy.homeOf(record.scope) === undefined) this.#goTo(this.#outermost(record.scope));
    const { hierarchy } = this.#look();
    const shown = hierarchy.inlined.get(node) ?? node,
      key = keyOf(NODE, shown);
    const container = hierarchy.containerOf(shown) ?? 0;
    this.#bring(container > 0 ? withOpen(hierarchy, this.viewpoint.open, container) : this.viewpoint.open, () =>
      this.index!.scene.indexOf.get(key),
    );
    return key;
  }

  /** Brings the first of some boxes into view if none of them is. */
  seek(boxes: readonly number[]): void {
    const camera = this.#camera,
      scene = this.index?.scene,
      [first] = boxes;
    if (!scene || first === undefined) return;
    if (isInView(camera, scene, boxes)) return;
    this.#options.leaving();
    this.viewpoint.bringIntoView(camera, scene, first, 0);
    this.#options.shown();
  }

  /** Brings the box or frame of a group into view, with what is around it open; false where it has none. */
  revealGroup(group: number): boolean {
    const scope = this.#store.groups.get(group)?.scope ?? 0,
      key = keyOf(GROUP, group);
    if (!this.#store.scopes.has(scope)) return false;
    this.#options.leaving();
    if (this.#look().hierarchy.homeOf(scope) === undefined) this.#goTo(this.#outermost(scope));
    const { hierarchy } = this.#look();
    if (!hierarchy.containers.has(key)) return false;
    this.#bring(withAround(hierarchy, this.viewpoint.open, key), () => boxOfContainer(this.ground!, key));
    return true;
  }

  /** The scope that shows another one: a subgraph is drawn inside its node. */
  #outermost(scope: number): number {
    let outer = scope;
    for (let steps = 0; steps < 100; steps++) {
      const owner = this.#store.nodes.get(this.#store.scopes.get(outer)?.owner ?? 0);
      if (!owner) break;
      outer = owner.scope;
    }
    return outer;
  }

  /** Shows the scope with other things open, and moves the camera to a box. */
  #bring(open: ReadonlySet<number>, box: () => number | undefined): void {
    const { viewpoint } = this;
    const center = (): void => {
      const at = box() ?? -1;
      if (at >= 0) viewpoint.bringIntoView(this.#camera, this.index!.scene, at, READING_ZOOM);
    };
    if (
      [...open].every((key) => viewpoint.open.has(key)) &&
      open.size === viewpoint.open.size &&
      this.index?.scene.scope === this.scope
    ) {
      center();
      this.#options.shown();
    } else {
      viewpoint.open = open;
      this.#rebuild(this.anchors(), center);
    }
  }
}
