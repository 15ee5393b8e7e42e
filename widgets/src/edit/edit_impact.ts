/** The effect of the last edit on shapes elsewhere: old beside new, and the first node that refuses its inputs. */

import type { App } from "../app.ts";
import type { Diagnostic } from "../kernel/protocol.ts";
import { plural, valueLabel } from "../model/names.ts";
import type { CommitChange } from "../model/store.ts";
import { Cell } from "../state.ts";

export interface Effects {
  version: number;
  /** The edit. */
  label: string;
  changed: CommitChange["labels"];
  refusal: Diagnostic | null;
}

export interface Explained {
  value: number;
  axis: number | null;
}

/** Milliseconds that the notice of an edit that no node refuses stays. */
const NOTICE_MS = 7000;

export class EditImpact {
  /** The changed shapes of the last commit; null where it changed none. */
  readonly effects = new Cell<Effects | null>(null);
  /** Whether the notice shows. */
  readonly noticed = new Cell(false);
  /** The value whose explanation the inspector shows, 0: none, and which axis of it, null: all. */
  readonly explained = new Cell<Explained>({ value: 0, axis: null });
  readonly #app: App;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  follow({ version, label, labels, refusal }: CommitChange): void {
    const shows = labels.size > 0 || refusal !== null;
    this.effects.value = shows ? { version, label, changed: labels, refusal } : null;
    this.noticed.value = shows;
    this.#app.picture?.setChanged(labels, refusal?.node ?? 0);
    clearTimeout(this.#timer);
    if (shows && !refusal)
      this.#timer = setTimeout(() => {
        this.noticed.value = false;
      }, NOTICE_MS);
  }

  dismiss(): void {
    this.noticed.value = false;
    this.#app.picture?.setChanged(new Map(), 0);
  }

  /** Shows why a value has the shape that it has. */
  why(value: number): void {
    this.#app.inspectorOpen.value = true;
    this.explained.value = { value, axis: null };
    this.#app.picked.revealValue(value);
  }

  /** Shows why a dim of a value is what it is, and lights the path that it comes along. */
  async whyDim(value: number, axis: number): Promise<void> {
    this.explained.value = { value, axis };
    try {
      const { steps, fact } = await this.#app.client.request("explain", { value, axis });
      const nodes = new Set(steps.map(({ node }) => node).filter((node) => node > 0));
      const title = `Why axis ${axis} of ${fact || valueLabel(this.#app.store, value)}: ${plural(nodes.size, "node")}`;
      const values = [value, ...steps.map((step) => step.value).filter((id) => id > 0)];
      this.#app.travel.lightNodes(title, [...nodes], values);
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** The input that a node refuses: the one that changed, else the first that a node makes. */
  culprit({ node, value }: Diagnostic): number {
    if (value) return value;
    const { store } = this.#app;
    const inputs = (store.nodes.get(node)?.inputs ?? []).filter((id) => id > 0);
    const changed = this.effects.value?.changed;
    return inputs.find((id) => changed?.has(id)) ?? inputs.find((id) => store.producer(id)) ?? inputs[0] ?? 0;
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }
}
