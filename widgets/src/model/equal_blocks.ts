/**
 * Groups that are equal to others, as the kernel verified: asked for once the picture is there, again after structural
 * edits.
 */

import type { App } from "../app.ts";
import { Cell } from "../state.ts";

/** Milliseconds that nothing changed for: the kernel takes a second for 100,000 nodes, too long to be waited for. */
const QUIET_MS = 600,
  QUIET_MS_PER_NODE = 0.05;

export class Blocks {
  /** The groups that each group is equal to, itself among them. */
  readonly equal = new Cell<ReadonlyMap<number, readonly number[]>>(new Map());
  readonly #app: App;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;

  constructor(app: App) {
    this.#app = app;
  }

  /** Asks soon. */
  refresh(): void {
    clearTimeout(this.#timer);
    const quiet = Math.max(QUIET_MS, QUIET_MS_PER_NODE * this.#app.store.nodes.size);
    this.#timer = setTimeout(() => void this.#ask(), quiet);
  }

  async #ask(): Promise<void> {
    const turn = ++this.#turn;
    if (!this.#app.store.groups.size || this.#app.client.connection === "gone") return;
    try {
      const { blocks } = await this.#app.client.request("blocks", {});
      if (turn === this.#turn) this.#take(blocks);
    } catch {
      // Pictures without marks are no worse: an older page without a kernel has no such answer.
      if (turn === this.#turn) this.#take([]);
    }
  }

  #take(blocks: number[][]): void {
    this.equal.value = new Map(blocks.flatMap((groups) => groups.map((group) => [group, groups] as const)));
    this.#app.picture?.setEqual(this.equal.value);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#turn++;
  }
}
