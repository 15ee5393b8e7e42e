/**
 * Which part of the model is shown: the scope, its open groups, and the scene that follows from them and the store.
 *
 * Each scope remembers how it was looked at. Every change ends in one scene, the last asked for; what the user looks at
 * stays where it is on the screen.
 */

import type { Store } from "../store.ts";
import type { Measure } from "./boxes.ts";
import type { Camera } from "./canvas/camera.ts";
import { SceneIndex } from "./canvas/visible.ts";
import { below, firstLook } from "./fold.ts";
import type { Flow } from "./flow.ts";
import { Hierarchy } from "./hierarchy.ts";
import { GROUP, NODE, keyOf } from "./keys.ts";
import { Layouter, Superseded } from "./layouter.ts";
import type { Place } from "../view_contract.ts";
import type { Scene } from "./scene.ts";
import { SceneBuilder } from "./scene_builder.ts";
import { Viewpoint, anchorsOf, home, type Anchor } from "./viewpoint.ts";
import type { Ground } from "./walk.ts";

export interface ExplorerOptions {
  /** Boxes that the camera should keep in place when the picture changes. */
  anchored(ground: Ground): Iterable<number>;
  /** A new scene is there. */
  shown(): void;
  scopeChanged(scope: number): void;
  /** Boxes moved from one scene to the next; `shift` takes a point of the one to where it showed, in the other. */
  moved(before: Scene, after: Scene, shift: { x: number; y: number; scale: number }): void;
  /** Before the view jumps elsewhere. */
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
  readonly #layouter = new Layouter();
  readonly #builder: SceneBuilder;
  readonly #viewpoints = new Map<number, Viewpoint>();
  #hierarchy: Hierarchy | null = null;
  #build = 0;
  #flow: Flow = "down";

  constructor(store: Store, camera: Camera, measure: Measure, options: ExplorerOptions) {
    this.#store = store;
    this.#camera = camera;
    this.#options = options;
    this.#builder = new SceneBuilder(store, this.#layouter, measure);
  }

  destroy(): void {
    this.#build++;
    this.#layouter.destroy();
  }

  get flow(): Flow {
    return this.#flow;
  }

  /** Lets pictures read another way; what is looked at stays in view. */
  set flow(flow: Flow) {
    if (flow === this.#flow) return;
    this.#flow = flow;
    for (const viewpoint of this.#viewpoints.values()) viewpoint.forget();
    const { moved } = this.viewpoint;
    this.#rebuild(moved ? this.#anchors() : null, () => {
      if (!moved && this.index) home(this.#camera, this.index.scene);
    });
  }

  /** Milliseconds of all layouts so far. */
  get layoutMs(): number {
    return this.#layouter.milliseconds;
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

  /** The model was loaded (again): shows the scope shown before if it is still there, else the main graph. */
  reset(): void {
    const kept = this.#store.scopes.has(this.scope);
    const anchors = kept && this.index ? this.#anchors() : null;
    if (!kept) {
      this.#viewpoints.clear();
      this.scope = [...this.#store.scopes.values()].find(({ kind }) => kind === "graph")?.id ?? 0;
    }
    this.#hierarchy = null;
    this.#rebuild(anchors);
    if (!kept) this.#options.scopeChanged(this.scope);
  }

  /** The model changed: in its structure, or in words that boxes are as wide as. */
  follow(structural: boolean): void {
    if (!this.#store.scopes.has(this.scope)) {
      this.reset();
      return;
    }
    if (structural) this.#hierarchy = null;
    this.#rebuild(this.#anchors());
  }

  /** The groups of the scope, and how it is looked at: unfolded for a first look. */
  #look(): { hierarchy: Hierarchy; viewpoint: Viewpoint } {
    const hierarchy = (this.#hierarchy ??= new Hierarchy(this.#store, this.scope));
    const { viewpoint } = this;
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
    const built = this.#builder.build(hierarchy, viewpoint.open, this.#flow);
    if (!(built instanceof Promise)) show(built);
    else built.then(show, (error: unknown) => {
      if (!(error instanceof Superseded)) throw error;
    });
  }

  #show(scene: Scene, anchors: Anchor[] | null, then?: () => void): void {
    const before = this.index?.scene, { x, y, zoom } = this.#camera;
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

  #anchors(): Anchor[] {
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
    const there = (): void => {
      Object.assign(this.#camera, { x: place.x, y: place.y, zoom: place.zoom });
      if (this.index) this.#camera.clampTo(this.index.scene);
      this.viewpoint.moved = true;
    };
    if (place.scope === this.scope) {
      there();
      this.#options.shown();
    } else {
      this.#goTo(place.scope);
      this.#rebuild(null, there);
    }
  }

  /** Shows all that there is. */
  fit(): void {
    if (!this.index) return;
    const { width, height } = this.index.scene;
    this.#camera.fit({ x: 0, y: 0, width, height }, 24);
    this.viewpoint.moved = true;
  }

  /** The view has another size: an untouched first look is made for the new one. */
  resized(): void {
    if (this.index && !this.viewpoint.moved) home(this.#camera, this.index.scene);
  }

  isOpen(group: number): boolean {
    return this.viewpoint.open.has(group);
  }

  /** Folds or unfolds a group (`all`: and all below it), which stays in place. */
  setOpen(group: number, open: boolean, all = false): void {
    const { viewpoint } = this;
    const groups = all && this.#hierarchy ? below(this.#hierarchy, group) : [group];
    const changed = groups.filter((id) => viewpoint.open.has(id) !== open && this.#hierarchy?.containers.has(id));
    if (!changed.length) return;
    const now = new Set(viewpoint.open);
    for (const id of changed) {
      if (open) now.add(id);
      else now.delete(id);
    }
    viewpoint.open = now;
    viewpoint.moved = true;
    const scene = this.index?.scene;
    const at = scene?.indexOf.get(keyOf(GROUP, group));
    this.#rebuild(scene && at !== undefined ? anchorsOf(this.#camera, scene, [at]) : this.#anchors());
  }

  foldAll(): void {
    this.viewpoint.open = new Set();
    this.#rebuild(this.#anchors(), () => this.fit());
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

  /** Brings a node into view: in its scope, with the groups around it open. Returns the key of the box that shows it. */
  reveal(node: number): number {
    if (this.#store.nodes.has(node)) this.#options.leaving();
    return this.#reveal(node);
  }

  #reveal(node: number): number {
    const record = this.#store.nodes.get(node);
    if (!record) return 0;
    if (record.scope !== this.scope) this.#goTo(record.scope);
    const { hierarchy, viewpoint } = this.#look();
    const shown = hierarchy.inlined.get(node) ?? node;
    const key = keyOf(NODE, shown);
    const centre = (): void => {
      const box = this.index!.scene.indexOf.get(key);
      if (box !== undefined) viewpoint.bringIntoView(this.#camera, this.index!.scene, box, READING_ZOOM);
    };
    const closed = hierarchy.around(hierarchy.containerOf(shown) ?? 0).filter((id) => id && !viewpoint.open.has(id));
    if (!closed.length && this.index?.scene.scope === this.scope) {
      centre();
      this.#options.shown();
    } else {
      viewpoint.open = new Set([...viewpoint.open, ...closed]);
      this.#rebuild(this.#anchors(), centre);
    }
    return key;
  }
}
