/** Runs and measures: what is under way, what came out, and what the boxes are colored by. */

import type { App } from "../app.ts";
import type { OverlayNumbers, ProgressEvent, RunResult, Statistics } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { plural } from "../model/names.ts";
import { Cell } from "../state.ts";
import { type Heat, heatOf } from "./node_heat.ts";

/** The run under way: its request id and how far it is. */
export interface Running {
  id: number;
  done: number;
  total: number;
  node: string;
  stopping: boolean;
}

export interface Results extends RunResult {
  /** Version of the model that was run. */
  version: number;
  byValue: Map<number, Statistics>;
}

/** The title of colors that were given by hand. */
const PAINTED = "colored";

export class Runs {
  readonly running = new Cell<Running | null>(null);
  readonly results = new Cell<Results | null>(null);
  /** The measure that colors the boxes; null: their kinds. */
  readonly overlay = new Cell<Heat | null>(null);
  /** A measure is being taken. */
  readonly measuring = new Cell(false);
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** The inputs of the last run, in words; "" before the first. */
  ranWith = "";

  /** Runs some nodes (null: all) and shows the statistics of what they made; `quiet`: without opening the results. */
  async run(nodes: number[] | null, { quiet = false } = {}): Promise<void> {
    if (this.running.value || !this.#app.client.editable) return;
    const version = this.#app.store.version;
    const how = this.#app.numbers.inWords;
    const { id, reply } = this.#app.client.begin("run", { nodes, ...this.#app.numbers.asked });
    this.running.value = { id, done: 0, total: nodes?.length ?? this.#app.store.nodes.size, node: "", stopping: false };
    try {
      const result = await reply;
      const byValue = new Map(result.values.map((value) => [value.id, value]));
      this.ranWith = how;
      this.results.value = { ...result, version, byValue };
      this.#app.finder.index.ran = byValue;
      this.#app.numbers.forget();
      this.#app.picture?.mark({ statistics: result.values, thumbnail: this.#app.numbers.small });
      if (!quiet) this.#app.drawer.value = "results";
    } catch (error) {
      const refused = asRequestError(error);
      if (refused.code === "stopped") this.#app.notices.toast("info", "Run stopped");
      else this.#app.notices.fail(refused);
    } finally {
      this.running.value = null;
    }
  }

  stop(): void {
    const running = this.running.value;
    if (!running || running.stopping) return;
    this.running.value = { ...running, stopping: true };
    this.#app.client.request("stop", { run: running.id }).catch((error) => this.#app.notices.fail(error));
  }

  /** Follows the run under way. */
  progress(event: ProgressEvent): void {
    const running = this.running.value;
    if (running?.id === event.run) {
      this.running.value = { ...running, done: event.done, total: event.total, node: event.node };
    }
  }

  /** Colors the boxes by a measure of the kernel's, null: by what they are. */
  async colorBy(by: string | null): Promise<void> {
    if (this.measuring.value) return;
    this.measuring.value = true;
    try {
      await this.#app.client.request("overlay", { by });
    } catch (error) {
      this.#app.notices.fail(error);
    } finally {
      this.measuring.value = false;
    }
  }

  /** Gives nodes a color of their own besides those that were painted before, under a name in the legend. */
  paint(nodes: readonly number[], name = plural(nodes.length, "node")): void {
    const before = this.overlay.value?.title === PAINTED ? this.overlay.value : null;
    const kinds = [...(before?.kinds ?? []), name],
      numbers = new Map(before?.numbers);
    for (const node of nodes) numbers.set(node, kinds.length - 1);
    this.overlay.value = { title: PAINTED, unit: "", kinds, numbers };
    this.#app.picture?.mark({ heat: this.overlay.value });
  }

  /** Shows a measure that the kernel took. */
  color(overlay: OverlayNumbers | null): void {
    this.overlay.value = heatOf(overlay);
    this.#app.picture?.mark({ heat: this.overlay.value });
  }
}
