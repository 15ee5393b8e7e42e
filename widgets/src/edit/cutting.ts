/** A cut that is being looked at: what goes is faint in the picture and counted, until it is made or given up. */

import type { App } from "../app.ts";
import type { CutPreview } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { plural } from "../model/names.ts";
import { Cell } from "../state.ts";

/** End the model at values, start it at them, delete all that depends on one; or make a model of nodes. */
export type CutWay = "end" | "start" | "behind" | "out";

export interface AskedCut {
  way: CutWay;
  /** Values; of a part that is cut out its nodes. */
  values: number[];
  /** Whether what crosses the same border is taken too. */
  siblings: boolean;
  /** The effect of the cut; null until the kernel has answered. */
  preview: CutPreview | null;
  /** The reason against the cut, "" while there is none. */
  refused: string;
}

export class Cutting {
  readonly asked = new Cell<AskedCut | null>(null);
  readonly #app: App;
  #turn = 0;

  constructor(app: App) {
    this.#app = app;
  }

  /** Shows what a cut would take away. */
  async ask(way: CutWay, values: number[], siblings = true): Promise<void> {
    if (!this.#app.client.editable || !values.length) return;
    const turn = ++this.#turn,
      cut: AskedCut = { way, values, siblings, preview: null, refused: "" };
    this.asked.value = cut;
    if (way === "out") this.#app.picked.show(values);
    this.#app.picked.select([]);
    const valuesOf = (...ways: CutWay[]) => (ways.includes(way) ? values : []);
    try {
      const preview = await this.#app.client.request("cut_preview", {
        outputs: valuesOf("end", "behind"),
        inputs: valuesOf("start"),
        part: valuesOf("out"),
        siblings,
        behind: way === "behind",
      });
      if (turn !== this.#turn) return;
      this.asked.value = { ...cut, preview };
      this.#app.picture?.mark({ dimmed: preview.nodes, lit: valuesOf("out") });
    } catch (error) {
      if (turn === this.#turn) this.asked.value = { ...cut, refused: asRequestError(error).message };
    }
  }

  /** Makes the cut that is shown. */
  async make(): Promise<void> {
    const cut = this.asked.value;
    if (!cut?.preview) return;
    const { way, values, siblings, preview } = cut;
    this.giveUp();
    const done =
      way === "behind"
        ? await this.#app.edits.attempt("remove_behind", "value", values, {})
        : await this.#app.edits.attempt("cut", "model", [], {
            [way === "end" ? "outputs" : "inputs"]: values,
            siblings,
          });
    if (done) this.#app.notices.done(this.#app, `${plural(preview.nodes.length, "node")} went`);
  }

  /** Hands the part that is shown out as a file, or shows it in the place of the model, which stays as it is. */
  take(how: "download" | "openPart"): void {
    const cut = this.asked.value;
    this.giveUp();
    if (cut) void this.#app.files[how](cut.values);
  }

  giveUp(): void {
    this.#turn++;
    if (!this.asked.value) return;
    this.asked.value = null;
    this.#app.picture?.mark({ dimmed: [], lit: [] });
  }
}
