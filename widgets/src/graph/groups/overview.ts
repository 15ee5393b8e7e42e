/** A first look: the most detailed folding at which all of a scope can be read on its canvas. */

import type { Store } from "../../model/store.ts";
import type { Scene } from "../scene/scene.ts";
import { type Class, classesInside, opened } from "./fold.ts";
import type { Container, Hierarchy } from "./hierarchy.ts";

/** Boxes that a first look shows at most. */
const MOST = 30;
/** Zoom at which the smallest text of a box has 11 pixels. */
export const READABLE = 1;

interface Canvas {
  width: number;
  height: number;
}

export interface Overview {
  open: Set<number>;
  scene: Scene;
}

/** The zoom at which a scene fits a canvas. */
export function fitting(scene: Scene, canvas: Canvas): number {
  return Math.min(canvas.width / Math.max(1, scene.width), canvas.height / Math.max(1, scene.height));
}

/**
 * Opens groups from the top down, class by class (fold.ts), as long as everything can still be read; what would be too
 * much stays folded, and the next is tried.
 */
export class Overviewer {
  readonly #store: Store;
  readonly #hierarchy: Hierarchy;
  readonly #build: (open: Set<number>) => Scene | Promise<Scene>;
  readonly #canvas: Canvas;
  readonly #waiting: Class[];
  readonly #next: Map<string, Container[]> = new Map();
  #best: Overview | null = null;
  #shown: number;

  constructor(
    store: Store,
    hierarchy: Hierarchy,
    canvas: Canvas,
    build: (open: Set<number>) => Scene | Promise<Scene>,
  ) {
    this.#store = store;
    this.#hierarchy = hierarchy;
    this.#canvas = canvas;
    this.#build = build;
    const top = hierarchy.containers.get(0)!;
    this.#shown = top.nodes.length + top.groups.length;
    this.#waiting = largestFirst(classesInside(store, hierarchy, new Map([["", [top]]])));
  }

  /** The overview: at once where every layout is. */
  find(): Overview | Promise<Overview> {
    const open = new Set<number>(),
      built = this.#build(open);
    if (built instanceof Promise) {
      return built.then((scene) => {
        this.#best = { open, scene };
        return this.#go();
      });
    }
    this.#best = { open, scene: built };
    return this.#go();
  }

  #go(): Overview | Promise<Overview> {
    for (let each = this.#take(); each; each = this.#take()) {
      const tried = each,
        { open, inside } = opened(this.#hierarchy, this.#best!.open, tried.containers),
        built = this.#build(open);
      const judge = (scene: Scene): void => {
        if (!this.#isReadable(scene)) return;
        this.#best = { open, scene };
        this.#shown += tried.added;
        this.#next.set(tried.looks, inside);
      };
      if (built instanceof Promise) {
        return built.then((scene) => {
          judge(scene);
          return this.#go();
        });
      }
      judge(built);
    }
    // the last one that was built need not be the best: places are remembered from scene to scene
    const { open } = this.#best!,
      again = this.#build(open);
    return again instanceof Promise ? again.then((scene) => ({ open, scene })) : { open, scene: again };
  }

  /** The next class that does not show too many boxes: of this level, else of the one below. */
  #take(): Class | undefined {
    for (;;) {
      if (!this.#waiting.length) {
        if (!this.#next.size) return undefined;
        this.#waiting.push(...largestFirst(classesInside(this.#store, this.#hierarchy, this.#next)));
        this.#next.clear();
        if (!this.#waiting.length) return undefined;
      }
      const first = this.#waiting.shift()!;
      if (this.#shown + first.added <= MOST) return first;
    }
  }

  #isReadable(scene: Scene): boolean {
    return fitting(scene, this.#canvas) >= READABLE;
  }
}

/** What most of the model is in says most of it. */
function largestFirst(classes: Class[]): Class[] {
  const sizeOf = ({ containers }: Class): number => containers.reduce((sum, { size }) => sum + size, 0);
  return classes.sort((a, b) => sizeOf(b) - sizeOf(a));
}
