/** Scenes of a scope as it is looked at: laid out in the view's room, at a first look with as much open as can be read. */

import type { Store } from "../../model/store.ts";
import type { Camera } from "../canvas/camera.ts";
import type { Hierarchy } from "../groups/hierarchy.ts";
import { type Overview, Overviewer } from "../groups/overview.ts";
import type { Measure } from "../scene/boxes.ts";
import type { Flow, Reading } from "../scene/flow.ts";
import { Layouter } from "../scene/layouter.ts";
import type { Scene } from "../scene/scene.ts";
import { SceneBuilder } from "../scene/scene_builder.ts";
import { roomOf, type Viewpoint } from "./viewpoint.ts";

export class ScopeScenes {
  /** The wished direction of pictures. */
  reading: Reading = "auto";
  /** Whether what is very tall is put into columns. */
  columns = true;
  readonly #store: Store;
  readonly #camera: Camera;
  readonly #layouter = new Layouter();
  readonly #builder: SceneBuilder;

  constructor(store: Store, camera: Camera, measure: Measure) {
    this.#store = store;
    this.#camera = camera;
    this.#builder = new SceneBuilder(store, this.#layouter, measure);
  }

  destroy(): void {
    this.#layouter.destroy();
  }

  /** Milliseconds of all layouts so far. */
  get layoutMs(): number {
    return this.#layouter.milliseconds;
  }

  /** Lets the next scene be laid out as if there had been none. */
  forget(): void {
    this.#builder.forget();
  }

  /** The scene of a scope; what a first look opens is noted in its viewpoint. */
  of(hierarchy: Hierarchy, viewpoint: Viewpoint): Scene | Promise<Scene> {
    if (!viewpoint.looked) return this.#overview(hierarchy, viewpoint);
    const { reading } = this;
    return this.#layOut(hierarchy, viewpoint.open, reading === "auto" ? viewpoint.flow : reading);
  }

  #layOut(hierarchy: Hierarchy, open: ReadonlySet<number>, flow: Flow): Scene | Promise<Scene> {
    return this.#builder.build(hierarchy, open, flow, this.columns, roomOf(this.#camera));
  }

  /** A first look at a scope: as much as can be read at once. */
  #overview(hierarchy: Hierarchy, viewpoint: Viewpoint): Scene | Promise<Scene> {
    const take = ({ open, scene }: Overview): Scene => {
      Object.assign(viewpoint, { open, flow: scene.flow, looked: true });
      return scene;
    };
    const flows: Flow[] = this.reading === "auto" ? ["down", "right"] : [this.reading];
    const overview = new Overviewer(this.#store, hierarchy, roomOf(this.#camera, true), flows, (open, flow) => {
      this.#builder.forget();
      return this.#layOut(hierarchy, open, flow);
    }).find();
    return overview instanceof Promise ? overview.then(take) : take(overview);
  }
}
