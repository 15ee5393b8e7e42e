/** Tells which groups show and which ones surround what shows, a little after the picture stands. */

import type { Camera } from "../canvas/camera.ts";
import type { SceneIndex } from "../canvas/visible.ts";
import { GROUP, idOf, kindOf, REPEAT } from "../groups/group_keys.ts";

/** A group, or the first of a repeat that is drawn as one, that surrounds what shows. */
export interface Around {
  group: number;
  isRepeat: boolean;
  /** Whether its title is above what shows. */
  hidden: boolean;
}

export interface InView {
  /** Groups around the middle of what shows, outermost first; a group that shows as a whole surrounds nothing. */
  path: Around[];
  /** All groups of which something shows. */
  groups: ReadonlySet<number>;
}

const WAIT_MS = 90;
/** Share of the view that a folded box must take for one to be in it. */
const FILLS = 0.5;
const MOST = 400;

export class Lookout {
  readonly #current: () => { index: SceneIndex; camera: Camera } | null;
  readonly #tell: (seen: InView) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = "";

  constructor(current: () => { index: SceneIndex; camera: Camera } | null, tell: (seen: InView) => void) {
    this.#current = current;
    this.#tell = tell;
  }

  /** Looks at what shows a little later; to be called after each frame. */
  follow(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const current = this.#current();
      if (!current) return;
      const seen = inView(current.index, current.camera),
        state = JSON.stringify([seen.path, [...seen.groups]]);
      if (state === this.#last) return;
      this.#last = state;
      this.#tell(seen);
    }, WAIT_MS);
  }

  destroy(): void {
    clearTimeout(this.#timer);
  }
}

/** The part of a scene that shows. Pure. */
export function inView({ scene, ...index }: Pick<SceneIndex, "scene"> & Partial<SceneIndex>, camera: Camera): InView {
  const { x, y, width, height } = camera.view;
  const middle = { x: x + width / 2, y: y + height / 2 };
  const path: (Around & { depth: number })[] = [];
  const groups = new Set<number>();
  const shown = index.boxesIn ? index.boxesIn(x, y, x + width, y + height) : scene.boxes.map((_, i) => i);
  for (const i of shown) {
    const key = scene.boxes[i]!.key,
      kind = kindOf(key);
    if (kind !== GROUP && kind !== REPEAT) continue;
    if (groups.size < MOST) groups.add(idOf(key));
    const [left, top, right, bottom] = [scene.x[i]!, scene.y[i]!, scene.x[i]! + scene.w[i]!, scene.y[i]! + scene.h[i]!];
    if (middle.x < left || middle.x > right || middle.y < top || middle.y > bottom) continue;
    const whole = left >= x && right <= x + width && top >= y && bottom <= y + height;
    const share = (Math.min(right, x + width) - Math.max(left, x)) * (Math.min(bottom, y + height) - Math.max(top, y));
    if (scene.frame[i] ? !whole : share >= FILLS * width * height)
      path.push({ depth: scene.depth[i]!, group: idOf(key), isRepeat: kind === REPEAT, hidden: top < y });
  }
  path.sort((a, b) => a.depth - b.depth);
  return { path: path.map(({ depth: _, ...around }) => around), groups };
}
