/**
 * Numbered events in their order: applied as far as they follow on without a gap.
 *
 * Events may arrive late, twice or never. One that others overtook is waited for a moment; then a snapshot replaces it.
 */

import type { KernelEvent } from "./protocol.ts";

export interface EventSequenceOptions {
  /** Milliseconds for an event that others overtook. */
  gap: number;
  apply(event: KernelEvent): void;
  /** Fetches a snapshot, at whose end `restart` is called. */
  resync(): Promise<void>;
  /** Waits for a snapshot under way. */
  syncing(): Promise<void> | null;
  /** Whether the client was let go of: no event is applied any more. */
  disposed(): boolean;
  failed(error: unknown): void;
}

export class EventSequence {
  readonly #options: EventSequenceOptions;
  readonly #early = new Map<number, KernelEvent>();
  /** Number of the last event that was applied; null while a snapshot is on its way. */
  #last: number | null = null;
  #recovering = false;

  constructor(options: EventSequenceOptions) {
    this.#options = options;
  }

  /** Whether a snapshot was taken, on which events can be applied. */
  get running(): boolean {
    return this.#last !== null;
  }

  /** Holds events back, until the snapshot that is asked for is there. */
  suspend(): void {
    this.#last = null;
  }

  /** Goes on behind a snapshot, which contains the events up to `last`. */
  restart(last: number): void {
    this.#last = last;
    this.#drain();
  }

  add(event: KernelEvent): void {
    if (this.#last !== null && event.seq <= this.#last) return;
    this.#early.set(event.seq, event);
    this.#drain();
  }

  #drain(): void {
    if (this.#last === null) return;
    for (const seq of this.#early.keys()) if (seq <= this.#last) this.#early.delete(seq);
    for (let next = this.#early.get(this.#last + 1); next; next = this.#early.get(this.#last + 1)) {
      this.#early.delete(next.seq);
      this.#last = next.seq;
      this.#options.apply(next);
    }
    if (this.#early.size) void this.#mendGap();
  }

  /** Waits a moment for the missing event, then asks for snapshots; a number that none of them reaches was never sent. */
  async #mendGap(): Promise<void> {
    if (this.#recovering) return;
    this.#recovering = true;
    const { gap, resync, syncing, disposed, failed } = this.#options;
    try {
      await new Promise((resolve) => setTimeout(resolve, gap));
      await syncing();
      for (let tries = 0; tries < 3 && this.#early.size && !disposed(); tries++) await resync();
      this.#early.clear();
    } catch (error) {
      failed(error);
    } finally {
      this.#recovering = false;
    }
  }
}
