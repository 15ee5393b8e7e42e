/**
 * The marks on the boxes: put together once for each change, drawn, told by the outline, and shown on the small map.
 */

import { plural } from "../../model/names.ts";
import type { Given } from "../../view_contract.ts";
import type { Marks } from "../canvas/painter.ts";
import type { Ground } from "../input/walk.ts";
import type { Words } from "../scene/words.ts";
import { Flash } from "./flash.ts";
import type { Minimap } from "./minimap.ts";
import type { Outline } from "./outline.ts";
import { Overlay } from "./overlay.ts";

export interface MarkLayerOptions {
  readonly words: Words;
  readonly outline: Outline;
  /** The small map, once there is one. */
  minimap(): Minimap | undefined;
  /** The scene that is shown now. */
  ground(): Ground | null;
  /** Draws a frame soon. */
  invalidate(): void;
  /** Whether the system asks for reduced motion. */
  calm(): boolean;
}

export class MarkLayer {
  readonly overlay = new Overlay();
  readonly #options: MarkLayerOptions;
  readonly #flash: Flash;
  #marks: Marks | null = null;

  constructor(options: MarkLayerOptions) {
    this.#options = options;
    this.#flash = new Flash(() => this.changed(false), options.calm);
  }

  get hasFocus(): boolean {
    return this.#options.outline.element.matches(":focus");
  }

  /** The marks as they are now. */
  of(ground: Ground): Marks {
    return (this.#marks ??= this.overlay.marks(ground, this.hasFocus, this.#flash.strength));
  }

  /** Selection, hover, focus, search or problems are different: draws again, and tells the outline if need be. */
  changed(spoken: boolean): void {
    this.#marks = null;
    this.#options.invalidate();
    const ground = this.#options.ground();
    if (!spoken || !ground) return;
    this.#mapChanged();
    const { words, outline } = this.#options,
      marks = this.of(ground);
    outline.update(ground.scene, this.overlay.focusBox(ground), marks.selected, {
      facts: (i) => words.spoken(ground.scene.boxes[i]!),
      problems: (i) => {
        const badge = marks.badges.get(i);
        return badge ? `${badge.count} ${badge.severity}${badge.count > 1 ? "s" : ""}` : "";
      },
      rewrites: (i) => {
        const gone = marks.going.get(i),
          words = marks.coming.get(i);
        const goes = !gone ? "" : ground.scene.boxes[i]!.folds ? `${plural(gone, "node")} would go` : "would go";
        return [goes, words && `would come: ${words}`].filter(Boolean).join(", ");
      },
    });
  }

  sceneChanged(): void {
    this.overlay.sceneChanged();
    this.changed(true);
  }

  give(marks: Partial<Given>): void {
    Object.assign(this.overlay, marks);
    this.changed(marks.diagnostics !== undefined || marks.going !== undefined);
    this.#mapChanged();
  }

  /** Mark changed values: they flash, and then stay marked. */
  setChanged(changed: ReadonlyMap<number, readonly [string, string]>, refusing: number): void {
    this.overlay.changed = changed;
    this.overlay.refusing = refusing;
    if (changed.size) this.#flash.start();
    else this.#flash.stop();
    this.changed(false);
  }

  destroy(): void {
    this.#flash.stop();
  }

  #mapChanged(): void {
    const ground = this.#options.ground();
    if (ground) this.#options.minimap()?.show(ground.scene, this.overlay.landmarks(ground));
  }
}
