/** Rewrites that are looked at: what would go is red in the picture, what would come green, until they are made or not. */

import type { App } from "../app.ts";
import type { RewriteGain, RewriteInfo, RewritePlace, Rewrites, Rewritten } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { Cell } from "../state.ts";

export interface AskedRewrite {
  /** Level of the standard rules, or a form in fewer bits; unused where `rules` are given. */
  level: string;
  /** Rules as texts or keys; none: all rules of the level. */
  rules: string[];
  /** Whether operators of com.microsoft may come. */
  microsoft: boolean;
  /** Names of nodes, values and graphs that stay as they are, and prefixes that end in "/". */
  protect: string[];
}

export interface LookedAt {
  asked: AskedRewrite;
  answer: Rewrites;
  /** Measured gains by key, null before they were measured. */
  gains: ReadonlyMap<string, RewriteGain> | null;
}

/** A rule, "" for all of them, and the number of one of its places, -1 for all of them. */
export interface ShownRewrite {
  rule: string;
  place: number;
}

const ALL: ShownRewrite = { rule: "", place: -1 };

export class Rewriting {
  readonly asked = new Cell<AskedRewrite>({ level: "basic", rules: [], microsoft: false, protect: [] });
  /** Thousandths of an output's largest element that a form may lose; null: any finite loss is accepted. */
  readonly atMost = new Cell<number | null>(null);
  readonly found = new Cell<LookedAt | null>(null);
  readonly shown = new Cell<ShownRewrite>(ALL);
  /** The work under way, "" for none. */
  readonly busy = new Cell("");
  /** Whether the pattern of the selected nodes is asked for. */
  readonly likes = new Cell(false);
  /** The result of the last action, in words. */
  readonly said = new Cell("");
  /** The answer of the last rewrite. */
  readonly receipt = new Cell<Rewritten | null>(null);
  readonly #app: App;
  /** Whether the model changed after what is listed was found. */
  #stale = false;

  constructor(app: App) {
    this.#app = app;
  }

  /** Opens the list, with what a level would change where nothing is listed yet. */
  async open(): Promise<void> {
    this.#app.drawer.value = "rewrites";
    if (!this.found.value) await this.ask({});
  }

  /** Opens the list with what storing weights in fewer bits would change. */
  quantize(): Promise<void> {
    return this.ask({ level: "int8_weights", rules: [] });
  }

  /** Finds out what would change, and shows all of it. */
  async ask(changes: Partial<AskedRewrite>): Promise<void> {
    const options = { ...this.asked.value, ...changes };
    this.asked.value = options;
    this.#app.drawer.value = "rewrites";
    this.forget();
    this.receipt.value = null;
    await this.#list();
  }

  async #list(): Promise<void> {
    await this.#attempt("Looking what would change…", async () => {
      const options = this.asked.value,
        { rule } = this.shown.value;
      const answer = await this.#app.client.request("rewrites", { ...options }).catch((error: unknown) => {
        this.forget();
        throw error;
      });
      this.found.value = { asked: options, answer, gains: null };
      this.shown.value = answer.rules.some((info) => info.rule === rule) ? { rule, place: -1 } : ALL;
      this.#mark();
      if (answer.rules.length) return "";
      const why = options.level.endsWith("_weights") ? ": no float32 weight of 1,024 elements or more is left" : "";
      return `Nothing would change${options.rules.length ? "" : why}.`;
    });
  }

  /** The model changed: what is listed is found out again where it shows, and forgotten where not. */
  follow(): void {
    if (!this.found.value || this.#app.drawer.value !== "rewrites") {
      this.forget();
      return;
    }
    this.hide(true); // the marked nodes may be gone
    this.#stale = true;
    if (!this.busy.value) void this.#list();
  }

  /** Measures what each rule gains alone. */
  async measure(): Promise<void> {
    await this.#attempt("Running the model before and after each rule…", async () => {
      const { level, microsoft } = this.asked.value;
      const { gains } = await this.#app.client.request("gains", { level, microsoft });
      const result = this.found.value;
      if (result) this.found.value = { ...result, gains: new Map(gains.map((gain) => [gain.key, gain])) };
      return "";
    });
  }

  /** Marks what a rule would do, at one of its places or at all; all rules for "". */
  show(rule: string, place = -1): void {
    this.shown.value = { rule, place };
    this.#mark();
    const at = this.#places(rule, place).find((match) => match.at || match.going.length);
    const node = at ? at.at || at.going[0]! : 0;
    if (rule && node) this.#app.picture?.reveal(node);
  }

  /** Goes to the next place of the rule that is shown, or to the one before. */
  step(by: number): void {
    const { rule, place } = this.shown.value,
      { length } = this.#places(rule, -1);
    if (length) this.show(rule, place < 0 ? (by > 0 ? 0 : length - 1) : (place + by + length) % length);
  }

  /** Applies rules alone, at a node or wherever they match; all that are asked for without any. */
  async apply(rules: string[], at: number | null = null): Promise<void> {
    const { level, microsoft, protect, rules: chosenRules } = this.asked.value;
    this.receipt.value = null;
    await this.#attempt("Running the model before and after…", async () => {
      const { version } = this.#app.store;
      const chosen = rules.length ? rules : chosenRules;
      this.receipt.value = await this.#app.client.request("rewrite", {
        level,
        microsoft,
        rules: chosen,
        at,
        protect,
        version,
        ...(this.atMost.value === null ? {} : { at_most: this.atMost.value }),
      });
      return "";
    });
  }

  /** Drops the rewrites that are listed, with their marks. */
  forget(): void {
    this.found.value = null;
    this.shown.value = ALL;
    this.#mark();
  }

  /** Takes the marks off, or puts them on again. */
  hide(hidden: boolean): void {
    this.#app.picture?.mark(hidden ? { going: [], coming: [] } : this.#marks());
  }

  #places(rule: string, place: number): RewritePlace[] {
    const rules = this.found.value?.answer.rules.filter((info) => !rule || info.rule === rule) ?? [];
    const places = rules.flatMap((info: RewriteInfo) => info.places);
    return place < 0 ? places : places.slice(place, place + 1);
  }

  #marks() {
    const places = this.#places(this.shown.value.rule, this.shown.value.place);
    return {
      going: [...new Set(places.flatMap(({ going }) => going))],
      coming: places
        .filter(({ at, coming, going }) => at && (coming.length || !going.length))
        .map(({ at, coming }) => [at, coming] as const),
    };
  }

  #mark(): void {
    this.#app.picture?.mark(this.#marks());
  }

  async #attempt(waiting: string, work: () => Promise<string>): Promise<void> {
    if (this.busy.value) return;
    this.busy.value = waiting;
    this.said.value = "";
    this.#stale = false;
    try {
      this.said.value = await work();
    } catch (error) {
      this.said.value = asRequestError(error).sentence;
    }
    this.busy.value = "";
    if (this.#stale) this.follow();
  }
}
