/** A mark that holds for a while and fades: tells how strong it is now, and asks for frames as long as that changes. */

const HOLD_MS = 2200,
  FADE_MS = 700,
  FRAME_MS = 33;

export class Flash {
  #began = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #changed: () => void;
  readonly #calm: () => boolean;

  /**
   * `changed` is called when the strength is another one, `calm` tells whether motion is not wanted: then it ends at
   * once.
   */
  constructor(changed: () => void, calm: () => boolean) {
    this.#changed = changed;
    this.#calm = calm;
  }

  /** Strength of the mark: 1 while it holds, then falling to 0. */
  get strength(): number {
    const left = HOLD_MS + FADE_MS - (performance.now() - this.#began);
    return Math.max(0, Math.min(1, left / FADE_MS));
  }

  start(): void {
    this.#began = performance.now();
    this.#wait(HOLD_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#began = -Infinity;
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#calm()) this.#began = -Infinity;
      this.#changed();
      if (this.strength > 0) this.#wait(FRAME_MS);
    }, ms);
  }
}
