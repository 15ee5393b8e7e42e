/** A first look: the most detailed folding at which all of a scope can be read on its canvas. */

import type { Store } from "../../model/store.ts";
import { filling } from "../layout/filling.ts";
import type { Flow } from "../scene/flow.ts";
import type { Scene } from "../scene/scene.ts";
import { type Class, classesInside, opened } from "./fold.ts";
import type { Container, Hierarchy } from "./hierarchy.ts";

/** Boxes that a first look shows at most. */
const MOST = 30;
/** Zoom at which the smallest text of a box has 11 pixels. */
export const READABLE = 1;
/** Zoom from which on another direction may be taken. */
const HOPELESS = 0.6;
/** Scenes of more boxes are not laid out for a comparison. */
const MANY = 400;
/** The factor by which the other direction must enlarge things to be chosen. */
const GAIN = 1.5;

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

/** The zoom from which on the boxes of a scene fill a canvas. */
export function fillingBoxes({ x, y, w, h }: Scene, canvas: Canvas): number {
  const span = (at: Float64Array, size: Float64Array): number => {
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < at.length; i++) {
      low = Math.min(low, at[i]!);
      high = Math.max(high, at[i]! + size[i]!);
    }
    return high - low;
  };
  return filling(span(x, w), span(y, h), canvas);
}

/**
 * Opens groups from the top down, class by class (fold.ts), as long as everything can still be read; a class that would
 * be too much stays folded, and the next is tried. Of both directions the one is taken that suits the canvas.
 */
export class Overviewer {
  readonly #store: Store;
  readonly #hierarchy: Hierarchy;
  readonly #build: (open: Set<number>, flow: Flow) => Scene | Promise<Scene>;
  readonly #canvas: Canvas;
  readonly #waiting: Class[];
  readonly #next: Map<string, Container[]> = new Map();
  /** Directions to try, the likely one first. */
  #flows: readonly Flow[];
  #open: Set<number> = new Set();
  #shown: number;

  constructor(
    store: Store,
    hierarchy: Hierarchy,
    canvas: Canvas,
    flows: readonly Flow[],
    build: (open: Set<number>, flow: Flow) => Scene | Promise<Scene>,
  ) {
    this.#store = store;
    this.#hierarchy = hierarchy;
    this.#canvas = canvas;
    this.#flows = flows;
    this.#build = build;
    const top = hierarchy.containers.get(0)!;
    this.#shown = top.nodes.length + top.groups.length;
    this.#waiting = largestFirst(classesInside(store, hierarchy, new Map([["", [top]]])));
  }

  /** The overview: at once where every layout is. */
  find(): Overview | Promise<Overview> {
    for (let next = this.#take(); next; next = this.#take()) {
      const tried = next,
        { open, inside } = opened(this.#hierarchy, this.#open, tried.containers);
      const judge = (flow: Flow | null): void => {
        if (!flow) return;
        this.#flows = [flow, ...this.#flows.filter((other) => other !== flow)];
        this.#open = open;
        this.#shown += tried.added;
        this.#next.set(tried.looks, inside);
      };
      const readable = this.#readable(open, 0);
      if (readable instanceof Promise) {
        return readable.then((flow) => {
          judge(flow);
          return this.find();
        });
      }
      judge(readable);
    }
    return this.#compare([], 0);
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

  /** The first direction in which everything can be read; null where there is none. */
  #readable(open: Set<number>, at: number): Flow | null | Promise<Flow | null> {
    const flow = this.#flows[at];
    if (!flow) return null;
    const judge = (scene: Scene): Flow | null | Promise<Flow | null> => {
      const zoom = fitting(scene, this.#canvas);
      if (zoom >= READABLE) return flow;
      return zoom < HOPELESS ? null : this.#readable(open, at + 1);
    };
    const built = this.#build(open, flow);
    return built instanceof Promise ? built.then(judge) : judge(built);
  }

  /** The open containers in the direction that suits the canvas best. `found`: scenes of the directions before. */
  #compare(scenes: readonly Scene[], at: number): Overview | Promise<Overview> {
    const open = this.#open,
      flow = this.#flows[at] ?? this.#suiting(scenes),
      built = this.#build(open, flow);
    // what was built last is what places are remembered of
    const go = (scene: Scene): Overview | Promise<Overview> => {
      const done = at === this.#flows.length || this.#flows.length === 1 || scene.boxes.length > MANY;
      return done ? { open, scene } : this.#compare([...scenes, scene], at + 1);
    };
    return built instanceof Promise ? built.then(go) : go(built);
  }

  /** The direction that suits the canvas: down, as models are read, unless the other one is better. */
  #suiting(scenes: readonly Scene[]): Flow {
    const canvas = this.#canvas,
      fills = (scene: Scene): boolean => fillingBoxes(scene, canvas) <= fitting(scene, canvas);
    const better = (scene: Scene, other: Scene): boolean => {
      const [was, is] = [fitting(scene, canvas), fitting(other, canvas)];
      if (was < READABLE || is < READABLE) return is > was;
      if (fills(scene) !== fills(other)) return fills(other);
      return is > GAIN * was;
    };
    const ways = [...scenes].sort((a, b) => Number(b.flow === "down") - Number(a.flow === "down"));
    return ways.reduce((best, other) => (better(best, other) ? other : best)).flow;
  }
}

/** Classes in the order of the share of the model that is in them. */
function largestFirst(classes: Class[]): Class[] {
  const sizeOf = ({ containers }: Class): number => containers.reduce((sum, { size }) => sum + size, 0);
  return classes.sort((a, b) => sizeOf(b) - sizeOf(a));
}
